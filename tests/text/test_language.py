"""The English that people read: documents, help, errors and docstrings, as far as a program can check it."""

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from local_dp.experiments.cli.commands import APP
from local_dp.experiments.text.dialect import in_python, in_shell
from tests.support.inputs.documents import ROOT
from tests.support.language import complaints, in_file

COVERED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "local_dp", "clients", "server", "experiments")  # docstrings and errors of code
GONE = (  # thirty sentences that nobody should have to translate
    "ask everybody a yes/no question that nobody answers truthfully for sure",
    "Messy data is decided aloud",
    "keeps what all releases of a table may lose in a file, which holds whichever are started at once and whenever one is killed",
    "every report accepted was charged, 0 charged and not accepted",
    "its answers will be coarser than promised",
    "are told; what is rare is not",
    "records between 3",
    "which the nearest table of 2^2 rows lessens",
    "Tells records that no one gave",
    "exact: optimal, the worst laws together",
    "each way at the law that is least favourable to it",
    "a missing value leaves 'body_mass_g > 4000' open",
    "of everybody, also enough for the interval to keep its level",
    "Repeats an attack; without it, one is drawn and shown",
    "exactly computed ones are farther from the real answer's law than is proven",
    "Answers as wrong as is proven harmless mislead",
    "its words are those that it is given",
    "The chunks in parts of at most so many, of which there are several for each worker where there are chunks enough",
    "Another bus, of which nothing is heard but what its speaker said",
    "What tells a reply's reports, of whom and to what, from others",
    "b, the chance that none is told as a sign; a, that a sign is told as one",
    "says nothing at all, on its two streams either, whoever writes to them: for one that is told of errors over a line of its own",
    "those whole of which it finds UNTOLD",
    "What a hypothesis says, in one sentence; empty for numbers, which speak for themselves",
    "with a third report that cannot be told from others' third reports",
    "clients that are slow for a reason are missing, and if the reason depends on their records the estimate is biased by that",
    "One answer touches some 1,500 pages of memory, and where more than ten processes take turns all of them are cold.",
    "open .. open",
    "Few children are not laid together for",
    "Names of messages are matched by Python's own engine",
)


def _files(*places: str, endings: tuple[str, ...] = (".md", ".py")) -> Iterator[Path]:
    for place in places:
        top = ROOT / place
        yield from sorted(path for path in top.rglob("*") if path.suffix in endings) if top.is_dir() else [top]


@pytest.mark.parametrize("place", COVERED)
def test_texts_are_plain(place: str) -> None:
    """No sentence of a document, a docstring or an error has more than 25 words, and none has a word that a reader must translate."""
    assert [f"{path.relative_to(ROOT)}:{line}: {why}" for path in _files(place) for line, why in in_file(path)] == []


def test_the_thirty_sentences_are_gone() -> None:
    folders = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "local_dp", "clients", "server", "experiments", "tests", "examples")
    files = {path: " ".join(path.read_text().split()) for path in _files(*folders, endings=(".md", ".py", ".html", ".js", ".toml"))}
    files.pop(Path(__file__), None)
    assert [(sentence, path.relative_to(ROOT)) for path, text in files.items() for sentence in GONE if sentence in text] == []


def _helps(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Each command of the tree with its own texts: those of its options and, except for protocols, its own help."""
    for parameter in command.get_params(context):
        yield context.command_path, str(getattr(parameter, "help", "") or getattr(parameter, "meaning", ""))
    yield context.command_path, command.help or ""
    if isinstance(command, click.Group) and context.command_path.count(" ") < 2 and not hasattr(command, "role"):
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
        ("choose missing=exclude (shares)", "choose --missing exclude (shares)", 'choose missing="exclude" (shares)'),
        ("as in labels='a;b'", "as in --labels 'a;b'", 'as in labels=["a", "b"]'),
        ("let them be read: labels_from_data", "let them be read: --labels-from-data", "let them be read: labels_from_data=True"),
        ("use --tier population and no --private", "use --tier population and no --private", 'use tier="population" and no private'),
        ("leave out --records", "leave out --records", "leave out the table"),
        ("make one: local-dp budget FILE --seed 1", "make one: local-dp budget FILE --seed 1", "make one: local-dp budget FILE --seed 1"),
    ],
)
def test_errors_speak_the_readers_dialect(plain: str, shell: str, python: str) -> None:
    assert (in_shell(plain), in_python(plain)) == (shell, python)
