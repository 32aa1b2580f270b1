"""Every option has a brief and every listed class a summary, short and without a formula; declared
choices bind on the command line and in Python; the stub is what the declarations say."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal

import pytest

from local_dp.api.asking import RunOptions
from local_dp.api.curate import QUESTIONS
from local_dp.api.function import function
from local_dp.cli.commands import COMMANDS
from local_dp.curator.mechanism import mechanisms
from local_dp.errors import InputError
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.protocols.search.quantiles import Quantiles
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from tests.support.runs.command import local_dp
from tests.support.wrong import wrong

pytestmark = pytest.mark.usefixtures("warm")

ROOT = Path(__file__).parents[2]
FORMULA = re.compile(r"[$^<>={}\\…]|\*|\.\.\.")
CHOICES = [
    (name, each.name, each.metadata["choices"])
    for name in PROTOCOLS
    for each in fields(PROTOCOLS[name])
    if each.metadata["choices"]
]


def declared() -> Iterator[tuple[str, Any]]:
    """Every dataclass that declares options, with a name for messages."""
    yield "a run", RunOptions
    yield from PROTOCOLS.items()
    for name, (home, _) in COMMANDS.items():
        module, _, attribute = home.partition(":")
        kind = getattr(import_module(f"local_dp.cli.{module}"), attribute)
        yield from kind.items() if isinstance(kind, dict) else [(name, kind)]


def listed() -> dict[str, list[tuple[str, str]]]:
    """By command that lists them: the names and their summaries."""
    registries: dict[str, Any] = {
        "protocols": PROTOCOLS,
        "randomizers": RANDOMIZERS,
        "queries": QUERIES,
        "mechanisms": {kind.__name__: kind for kind in mechanisms()},
        "run": PROTOCOLS,
        "curate": QUESTIONS,
        "attack": import_module("local_dp.cli.curate.attack").ATTACK,
        "keys": import_module("local_dp.cli.operate.keys").KEYS,
    }
    lines = {
        command: [(name, kinds[name].summary) for name in kinds]
        for command, kinds in registries.items()
    }
    return lines | {"--help": [(name, line) for name, (_, line) in COMMANDS.items()]}


def fits(text: str, most: int) -> bool:
    """Whether a text is there, short and without a formula or an ellipsis."""
    return 0 < len(text) <= most and not FORMULA.search(text)


def test_a_cut_text_or_a_formula_does_not_fit() -> None:
    """The wrong twins of the two rules below, as they were printed once."""
    for text in (
        "Names a parity w with y (-1)^<w",
        "The sum of the…",
        "",
        "x" * 57,
        "k = 2 groups",
    ):
        assert not fits(text, 56)


def test_a_brief_is_short_and_plain() -> None:
    """At most 56 characters, no formula and no ellipsis, a capital first, no full stop last; and
    what `--help-all` adds ends in no full stop either."""
    for name, kind in declared():
        for each in fields(kind):
            about = each.metadata
            brief = about["brief"] or about["ends"][0]
            assert fits(brief, 56), f"{name} {each.name}: {brief}"
            assert not brief[0].islower(), f"{name} {each.name}: {brief}"
            assert "…" not in about["help"], f"{name} {each.name}: {brief}"
            assert not {brief[-1:], about["help"][-1:]} & {"."}, f"{name} {each.name}: {brief}"


@wrong("local_dp.cli.inspect.listing:_show", "kind.summary", "kind.summary[:40]", "a cut list")
@wrong(
    "local_dp.cli.fields:Kinds.line_of", ".summary", ".__name__", "another line than the summary"
)
def test_a_summary_is_short_and_listed_whole() -> None:
    """At most 60 characters, no formula, one of its own for each class; every list prints it."""
    for command, entries in listed().items():
        text = " ".join(local_dp(*command.split()).stdout.split())
        assert "…" not in text
        assert len({line for _, line in entries}) == len(entries), command
        for name, line in entries:
            assert fits(line, 60), f"{name}: {line}"
            assert {name, *line.split()} <= {*text.split()}, f"{command} {name}: {line}"
            assert line in text, f"{command} {name}: {line}"


def refusal(protocol: str, name: str, word: str) -> str:
    """The words that refuse a parameter; empty if it is accepted."""
    try:
        PROTOCOLS[protocol].from_settings({name: word})
    except InputError as error:
        return str(error)
    return ""


@wrong("local_dp.checks:check_choices", "value not in choices", "False", "no check in Python")
@wrong(
    "local_dp.cli.fields:protocol_options",
    "click.Choice(about['choices'])",
    "click.STRING",
    "any word",
)
def test_each_choice_of_a_protocol_counts_and_no_other() -> None:
    """In Python and on the command line: one line that lists the choices."""
    assert len(CHOICES) > 30
    for protocol, name, choices in CHOICES:
        option = f"--{name.replace('_', '-')}"
        assert not any("choose from" in refusal(protocol, name, word) for word in choices)
        listing = f"{name} is 'drop'; choose from {', '.join(choices)}"
        assert refusal(protocol, name, "drop") == listing
        done = local_dp("run", protocol, option, "drop")
        assert done.returncode == 2, (protocol, name)
        assert len(done.stderr.splitlines()) == 1, (protocol, name)
        assert f"'{option}': 'drop' is not one of" in done.stderr
        assert all(f"'{word}'" in done.stderr for word in choices), (protocol, name)


def test_each_treatment_of_the_curator_counts_and_no_other() -> None:
    """The same of the questions to a curator, on the command line."""
    for question, kind in QUESTIONS.items():
        for each in fields(kind):
            choices = each.metadata.get("choices") or ()
            if choices:
                done = local_dp("curate", question, f"--{each.name}", "drop")
                assert done.returncode == 2
                assert all(f"'{word}'" in done.stderr for word in choices), question


@wrong(
    "local_dp.api.function:_hint_and_default", "each.metadata.get('of_table')", "False", "no need"
)
@wrong("local_dp.api.function:_parameters", "'bounds' if name in ENDS else name", "name", "ends")
def test_a_function_is_its_declaration() -> None:
    """It takes every parameter, a range as one pair, and every option of a run. What a table needs
    has no default, and choices are its type."""
    parameters = signature(function(Quantiles, "table", "column")).parameters
    options = {each.name for each in (*fields(Quantiles), *fields(RunOptions))}
    assert parameters.keys() == options - {"low", "high"} | {"table", "bounds"}
    required = [name for name, each in parameters.items() if each.default is Parameter.empty]
    assert required == ["table", "column", "bounds"]
    assert parameters["rounds"].annotation == Literal["best", "one", "several"]


def test_the_stub_is_current() -> None:
    """Type checkers see the functions that the declarations make."""
    output = subprocess.run(
        [sys.executable, "scripts/stub"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert output == (ROOT / "local_dp" / "api" / "functions.pyi").read_text()
