"""Text for a person: significant digits, signs for what is spelt out, no broken word; and the
English of documents, help, errors and docstrings."""

import ast
import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from local_dp.cli.commands import APP
from local_dp.foreign import shown
from local_dp.text.layout import (
    definitions,
    grain,
    held,
    in_python,
    in_shell,
    marked,
    number,
    typeset,
    wrapped,
)
from local_dp.text.screen import SCREEN
from local_dp.text.widgets import table
from tests.support.inputs.documents import ROOT
from tests.support.language import complaints, in_file, participles
from tests.support.runs.command import local_dp


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.329812, 0.0064321, "0.3298"),
        (0.0064321, 0.0064321, "0.0064"),
        (0.00001234, 0.00001234, "0.000012"),
        (29.0829, 0.213, "29.08"),
        (123456.7, 1234.5, "123,500"),
        (0.25, None, "0.25"),
        (1.0, None, "1"),
        (0.00004, None, "0.00004"),
        (1234567.1, None, "1,234,567"),
        (104.95, 0.0, "104.95"),
        (20200101.0, 0.0, "20,200,101"),
        (6366, None, "6,366"),
        (0.0, None, "0"),
        (-0.51237, 0.02, "-0.512"),
        (2.5e-9, None, "2.500e-09"),
        (math.inf, None, "inf"),
        (0.5, 0.0, "0.5"),
        (0.5, math.inf, "0.5"),
    ],
)
def test_numbers_have_as_many_digits_as_they_are_good_for(
    value: float, error: float | None, text: str
) -> None:
    """To the point and four significant digits alone; beside a standard error, up to its second
    one; never zero for another number."""
    assert number(value, error) == text


@pytest.mark.parametrize(
    ("error", "ends", "value", "text"),
    [
        (0.018, (52347.7509, 52347.9021), 52347.8265, ["52,347.751", "52,347.902", "52,347.827"]),
        (None, (52347.7509, 52347.9021), 52347.8265, ["52,347.75", "52,347.90", "52,347.83"]),
        (None, (None, 104.99), 104.951, ["104.990", "104.951"]),
        (None, (20200101.0, 20200101.0), 20200101.0, ["20,200,101"] * 3),
        (None, (30.0, 33.0), 31.0, ["30", "33", "31"]),
        (None, (0.375, 0.375), 0.375, ["0.375"] * 3),
        (None, (None, None), 104.951, ["105"]),
        (350.0, (15.0, 45.0), 16.5, ["15", "45", "16"]),
        (350.0, (45.0, 45.0), 45.0, ["45"] * 3),
    ],
)
def test_an_estimate_has_the_digits_that_its_error_or_its_interval_shows(
    error: float | None, ends: tuple[float | None, float | None], value: float, text: list[str]
) -> None:
    """The width of the interval where no standard error is known, or one beyond it; whole numbers,
    and an interval of one number, in full."""
    assert [
        number(each, grain(error, ends, value)) for each in (*ends, value) if each is not None
    ] == text


@given(st.floats(1e-12, 1e18), st.floats(1e-12, 1e18))
def test_a_number_that_is_shown_is_the_number(value: float, error: float) -> None:
    assert abs(float(number(value).replace(",", "")) - value) <= 0.00051 * value
    assert (
        abs(float(number(value, error).replace(",", "")) - value) <= 0.051 * error + 1e-12 * value
    )
    assert float(number(error, error).replace(",", "")) > 0


def test_what_is_held_together_is_not_parted() -> None:
    assert wrapped(f"clients: {held('300 asked')}, {held('300 answered')}", 20) == [
        "clients: 300 asked,",
        "300 answered",
    ]


HEADINGS = ("label", "largest error", "what it means")
ROWS = [
    ("village", "-0.5", "a b"),
    ("日本語の村", "1,000", "c"),
    ("👍🏽 é", "-12,345.25\xa0..\xa0open", "d"),
]


def ends(text: str, words: Sequence[str], measure: Callable[[str], int] = cell_len) -> list[int]:
    """Where these words end on the screen."""
    return [
        measure(line[: line.index(word) + len(word)])
        for word in words
        for line in text.splitlines()
        if word in line
    ]


@pytest.mark.parametrize("width", [0, 45, 44, 37])
def test_numbers_stand_right_beside_wide_signs(width: int) -> None:
    """East Asian letters take two columns and an emoji too: every number ends at one place, whole
    also where the screen is narrow. By `len` it does not."""
    grid = table(HEADINGS, ROWS, width)
    numbers = [row[1].replace("\xa0", " ") for row in ROWS]
    assert ends(grid, numbers) == ends(grid, numbers[:1]) * 3
    assert len(set(ends(grid, numbers, len))) > 1
    assert max(map(cell_len, grid.splitlines())) <= (width or 45)
    assert ("what it means" in grid) == (width in (0, 45))


def test_a_table_too_wide_is_a_list_for_each_row() -> None:
    """Where words and numbers do not fit side by side, each row is a list of its headings and
    cells."""
    assert [line.split("  ")[0] for line in table(HEADINGS, ROWS[:1], 22).splitlines()] == list(
        HEADINGS
    )
    assert "─" * 23 in table(HEADINGS, ROWS[:1], 23)


def test_foreign_cells_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markup of rich stays as typed, a control character is an escape, and nothing has a colour,
    whatever the environment asks for."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    grid = table(
        ("[red]label", "x"),
        [("[bold]town[/bold] :smile:", "1"), ("\x1b[31mred\x9b\r", "[link=x]2")],
        0,
    )
    for text in ("[red]label", "[bold]town[/bold] :smile:", r"\x1b[31mred\x9b\r", "[link=x]2"):
        assert text in grid
    assert grid.replace("\n", "").isprintable()


def test_a_pipe_gets_whole_lines_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table takes the columns that it needs where no terminal is, 80 or not, without a colour and
    without a line of work."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setattr(SCREEN, "delay", 0.0)
    done = local_dp("mechanisms")
    assert done.returncode == 0
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) > 80
    assert "\n   " not in done.stdout  # a further line of a cell
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (
            "epsilon 0.5: -0.5006 +- 0.0234; epsilon = 1",
            "ε\xa0=\xa00.5: −0.5006 ± 0.0234; ε\xa0=\xa01",
        ),
        ("at any epsilon, epsilon-locally private", "at any ε, ε-locally private"),
        (
            "q / (4 tau^2) = 2^(-d/2), e^epsilon, tanh(eps/2)",
            "q / (4 τ^2) = 2^(−d/2), e^ε, tanh(ε/2)",
        ),
        ("(1 + tau')/(1 - tau') times 2^-1", "(1 + τ′)/(1 − τ′) times 2^−1"),
        ("n >= 8, p <= 0.5, 90% and 95 %", "n ≥ 8, p ≤ 0.5, 90\xa0% and 95\xa0%"),
        (
            "from -1 to [-1, 1], 2 * d, 1.5e-05, 1e+20, 1/sqrt(n)",
            "from −1 to [−1, 1], 2 · d, 1.5 · 10^−5, 10^20, 1/√n",
        ),
        ("C / (2 sqrt n), z sqrt(v / n), log2(k) + pi^2", "C / (2 √n), z √(v / n), log₂(k) + π^2"),
        ("local-dp run --epsilon 1 --quick", "local-dp run --epsilon 1 --quick"),
        (
            "epsilon_spent, max_tau, `epsilon`, non-interactive 1-2, theorem-5.1",
            "epsilon_spent, max_tau, `epsilon`, non-interactive 1-2, theorem-5.1",
        ),
        (
            "n >= 8, such as 'age >= 30' or \"-1 <= x\", people's n >= 8",
            "n ≥ 8, such as 'age >= 30' or \"-1 <= x\", people's n ≥ 8",
        ),
        ("", ""),
    ],
)
def test_notation(text: str, result: str) -> None:
    """Greek letters, signs and powers of ten are typeset; options, names in code and hyphens are
    not; typeset twice is typeset once."""
    assert typeset(text) == result
    assert typeset(result) == result


def test_code_stays_as_it_is() -> None:
    """What stands in backticks is a name, of which nothing is typeset, and is marked as such; a
    backtick alone is a character."""
    assert list(marked("give `epsilon ^2`, epsilon 1")) == [
        ("", "give "),
        ("code", "epsilon ^2"),
        ("", ", ε\xa0=\xa01"),
    ]
    assert list(marked("a ` b")) == [("", "a ` b")]


# docstrings and errors of code
COVERED = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
    "local_dp",
    "clients",
    "server",
    "experiments",
)


def _files(*places: str, endings: tuple[str, ...] = (".md", ".py")) -> Iterator[Path]:
    for place in places:
        top = ROOT / place
        yield from (
            sorted(path for path in top.rglob("*") if path.suffix in endings)
            if top.is_dir()
            else [top]
        )


@pytest.mark.parametrize("place", COVERED)
def test_texts_are_plain(place: str) -> None:
    """No sentence of a document, a docstring or an error has more than 25 words, and none has a
    word that a reader must translate."""
    assert [
        f"{path.relative_to(ROOT)}:{line}: {why}"
        for path in _files(place)
        for line, why in in_file(path)
    ] == []


# keys of JSON or of messages, options, and names of the public interface
PUBLIC = {
    "asked", "told", "kept", "charged", "chosen", "resolved", "uncovered", "optimised",
    "unverified", "simulated", "said", "accepted", "lost", "undecided", "answered", "refused",
    "made", "failed", "placed", "shown", "repeated", "delayed", "killed", "lied", "silenced",
    "heard", "_disconnected",
}  # fmt: skip


@pytest.mark.parametrize("place", ["local_dp", "clients", "server", "experiments", "tests"])
def test_things_are_named_by_nouns(place: str) -> None:
    """No variable, argument, attribute or private function is a bare participle. Fields of classes
    in a claim are keys of its stored measurements."""
    claims = ROOT / "experiments" / "claims"
    for path in filter(lambda path: path.suffix == ".py", _files(place)):
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        fields = {each.target.lineno for each in nodes if isinstance(each, ast.AnnAssign)}
        keys = fields if path.is_relative_to(claims) else set()
        bare = [f"{path}:{line}: {name}" for line, name in participles(nodes) if line not in keys]
        assert [each for each in bare if each.split(": ")[1] not in PUBLIC] == []


def _helps(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Each command of the tree with its own texts: those of its options and, except for protocols,
    its own help."""
    for parameter in command.get_params(context):
        yield (
            context.command_path,
            str(getattr(parameter, "help", "") or getattr(parameter, "meaning", "")),
        )
    yield context.command_path, command.help or ""
    if (
        isinstance(command, click.Group)
        and context.command_path.count(" ") < 2
        and not hasattr(command, "role")
    ):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _helps(child, click.Context(child, parent=context, info_name=name))


def test_help_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((1000, 24)))
    texts = list(_helps(APP, click.Context(APP, info_name="local-dp")))
    assert len(texts) > 200
    assert [f"{path}: {why}" for path, text in texts for _, why in complaints(text)] == []


@pytest.mark.parametrize(
    ("plain", "shell", "python"),
    [
        (
            "choose missing=exclude (shares)",
            "choose --missing exclude (shares)",
            'choose missing="exclude" (shares)',
        ),
        ("as in labels='a;b'", "as in --labels 'a;b'", 'as in labels=["a", "b"]'),
        (
            "let them be read: labels_from_data",
            "let them be read: --labels-from-data",
            "let them be read: labels_from_data=True",
        ),
        (
            "use --tier population and no --private",
            "use --tier population and no --private",
            'use tier="population" and no private',
        ),
        ("leave out --records", "leave out --records", "leave out the table"),
        (
            "make one: local-dp budget FILE --seed 1",
            "make one: local-dp budget FILE --seed 1",
            "make one: local-dp budget FILE --seed 1",
        ),
    ],
)
def test_errors_speak_the_readers_dialect(plain: str, shell: str, python: str) -> None:
    assert in_shell(plain) == shell
    assert in_python(plain) == python


def test_wide_signs_and_a_narrow_encoding_keep_the_columns() -> None:
    lines = definitions([("\u65e5\u672c", "x"), ("b", "x")], 60).splitlines()
    assert [cell_len(line) for line in lines] == [9, 9]
    assert shown("\u2500\u2500 \u65e5", "block", "latin-1") == "-- \\u65e5"
