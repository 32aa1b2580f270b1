"""The commands and their options: help that is there at once and says what the code says, wrong
names answered with the right ones, one published form."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import jsonschema
import numpy as np
import pytest

from local_dp.api.show import summary
from local_dp.cli.commands import APP, COMMANDS
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.simulation.settings import Randomness
from tests.support.inputs.builders import with_law
from tests.support.long import short
from tests.support.runs.command import command, local_dp, outcome_of

pytestmark = pytest.mark.usefixtures("warm")

ROOT = Path(__file__).parents[2]
HEAVY = (
    "numpy",
    "scipy",
    "pydantic",
    "polars",
    "matplotlib",
    "rich",
    "asyncio",
    "aiomqtt",
    "multiprocessing",
)
SCHEMA: dict[str, Any] = json.loads(
    files("local_dp.simulation").joinpath("outcome.schema.json").read_text()
)


def imports(*arguments: str) -> list[str]:
    """The modules that a command has imported at its end."""
    program = (
        "from local_dp.__main__ import main\nimport sys\ntry:\n    main()\nfinally:\n    "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.splitlines()[-1].split()


def test_help_imports_nothing_heavy() -> None:
    modules = imports("--help")
    assert not {name.split(".")[0] for name in modules} & set(HEAVY)
    assert len(modules) <= 200
    assert {name for name in modules if name.startswith("local_dp.cli.")} == {
        f"local_dp.cli.{name}" for name in ("main", "commands", "fields")
    }
    done = subprocess.run(
        [sys.executable, "-c", "import sys, local_dp; print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {name.split(".")[0] for name in done.stdout.split()} & set(HEAVY)


@pytest.mark.parametrize(
    ("more", "expected"),
    short([(("--json",), False), ((), True)], lambda each: not each[1], several=True),
)
def test_only_a_table_imports_rich(more: tuple[str, ...], expected: bool) -> None:
    """A run for a program, in a pipe, starts without rich; one whose table is printed has it."""
    modules = imports(*shlex.split("run survey --tier aggregate --clients 9"), *more)
    assert ("rich" in modules) == expected


def test_the_listed_help_is_each_commands_own() -> None:
    """The line beside each command in `--help`, which is written down so that nothing is imported,
    is the first one of the command's own help."""
    ctx = click.Context(APP)
    for name, (_, line) in COMMANDS.items():
        entry = APP.get_command(ctx, name)
        assert entry is not None
        assert (entry.help or "").split("\n\n")[0] == line, name


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_help_of_a_protocol_is_about_it(name: str) -> None:
    """Its claim, each parameter with help, unit and default, the options of every run, an example;
    `--help` takes at most 40 lines of 80 columns."""
    brief = local_dp("run", name, "--help").stdout
    output = " ".join(local_dp("run", name, "--help-all").stdout.split())
    kind = PROTOCOLS[name]
    assert len(brief.splitlines()) <= 40
    assert "--epsilon" in brief
    assert "--crowd" not in brief
    assert all(option in output for option in ("--epsilon", "--worst-case", "--stores", "--crowd"))
    assert f"{kind.summary}." in brief
    own, _, shared = output.partition("Options of run:")
    for field in fields(kind):
        assert field.metadata["brief"] in own, f"{name}.{field.name} has no help"
        assert f"--{field.name.replace('_', '-')}" in own
        assert field.metadata["unit"] in own
    assert "--clients N" in shared
    assert f"local-dp run {name} -" in shared.partition("Example:")[2]
    assert all(
        f"{role} {name}" in local_dp(role, name, "--help").stdout
        for role in ("server", "host", "client")
    )


def test_defaults_and_units_are_told() -> None:
    """A default stands as it is typed, a unit beside it; what is left open has no default; what
    must be given says so."""
    words = " ".join(local_dp("run", "survey", "--help-all").stdout.split())
    assert all(
        part in words
        for part in (
            "[share, default: 0.05]",
            "[nats, default: 1]",
            "[default: yes == 1]",
            "--seed S",
        )
    )
    assert "None" not in words
    assert "[required]" in local_dp("server", "survey", "-h").stdout


@pytest.mark.parametrize("name", ["survey", "frequency", "mean", "sq"])
def test_the_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example in the help of a protocol for tables runs on the table that `export` writes: the
    truth is within 5 standard errors."""
    monkeypatch.chdir(tmp_path)
    assert local_dp("export", "fair", "fair.csv").returncode == 0
    result = outcome_of(
        name, *shlex.split(PROTOCOLS[name].example), "--tier", "population", "--seed", "1"
    )["result"]
    assert result["true_error"] <= 5 * np.max(result["standard_error"])


def test_every_spelling_of_a_parameter_means_the_same(table: Path) -> None:
    """Options before or after the protocol's name, and 1e2 for 100: the same run. A list is
    repeated, or has commas or semicolons outside quotes."""
    common = shlex.split(f"--records {table} --seed 4 --tier population")
    runs = [
        outcome_of(*shlex.split("mean --column age --low 0 --high 100 --clients 100"), *common),
        outcome_of(*shlex.split("mean --column age --low=0 --high 1e2 --clients 1e2"), *common),
        outcome_of(*common, *shlex.split("--clients=100 mean --column age --low 0 --high 100")),
        outcome_of(*shlex.split("mean --column age --low 0 --high 100 --clients 0x64"), *common),
    ]
    assert len({run["rounds"][0]["digest"] for run in runs}) == 1
    assert [run["parameters"] for run in runs] == [runs[0]["parameters"]] * 4
    digests = [
        outcome_of("sq", option, "age >= 30; smokes == 'yes'", *common)["rounds"][0]["digest"]
        for option in ("--queries", "--question")
    ]
    assert digests[0] == digests[1]
    columns = ["age >= 30", "smokes in ['yes', 'a,b;c']"]
    ways = (
        ["--column", columns[0], "--columns", columns[1]],
        ["--column", ", ".join(columns)],
        ["--columns", ";".join(columns)],
    )
    assert [outcome_of("crosstab", *words, *common)["parameters"]["columns"] for words in ways] == [
        columns
    ] * 3


def test_version_names_of_the_program_and_of_nothing() -> None:
    """`--version` in one line; `python -m local_dp` is the same program; without a command, help
    and exit code 2."""
    assert local_dp("--version").stdout.startswith("local-dp ")
    done = subprocess.run(
        [sys.executable, "-m", "local_dp", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == local_dp("--version").stdout
    bare = local_dp()
    assert bare.returncode == 2
    assert bare.stdout == local_dp("-h").stdout
    for word, listing in (
        ("run", "local-dp protocols"),
        ("describe", "local-dp protocols, randomizers, queries or mechanisms"),
    ):
        words = local_dp(word, "telepathy").stderr
        assert "did you mean" not in words
        assert "there are compare, " in words
        assert words.endswith(f" more (`{listing}`)\n")


@pytest.mark.long
def test_a_shell_completes_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script for each shell is shown, and installed once where that shell reads it; asked by
    it, the program names commands, protocols and options."""
    for shell in ("bash", "zsh", "fish"):
        assert "_LOCAL_DP_COMPLETE" in local_dp("--show-completion", shell).stdout
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    (tmp_path / ".bashrc").write_text("alias x=y")
    for _ in range(2):
        assert local_dp("--install-completion").returncode == 0
    first, line = (tmp_path / ".bashrc").read_text().splitlines()
    assert first == "alias x=y"
    assert (
        Path(line.removeprefix(". ").strip("'")).read_text() == local_dp("--show-completion").stdout
    )
    for words, expected in (
        ("local-dp dim", "plain,dimension"),
        ("local-dp run masked-parity-o", "plain,masked-parity-one-round"),
        ("local-dp run survey --tole", "plain,--tolerance"),
    ):
        surroundings = {
            **os.environ,
            "_LOCAL_DP_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        assert subprocess.run(
            command(), env=surroundings, capture_output=True, text=True, check=True
        ).stdout.split() == [expected]


def test_drawn_seeds_survive_a_reader_of_json() -> None:
    """A seed that is drawn and shown is below 2^53, where a double keeps every whole number; 200 of
    64 bits would all be with probability below 2^-2000."""
    seeds = [Randomness.choose(None, False).seed for _ in range(200)]
    assert all(int(float(seed)) == seed < 1 << 53 for seed in seeds)
    assert len(set(seeds)) == 200


VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SIZES = {
    "heavy-hitters": shlex.split("--clients 20000 --bits 8 --share 0.09"),
    "mean-vector": ("--clients", "100"),
}


@pytest.mark.parametrize(
    "name",
    short(
        PROTOCOLS, lambda name: name not in ("local-sgd", "heavy-hitters", "heavy-hitters-asked")
    ),
)
def test_every_protocol_prints_what_the_schema_says(name: str) -> None:
    """Each protocol runs by its name, its JSON fits the published schema, and its summary has the
    true error and the counts of clients."""
    data = outcome_of(
        name,
        "--tier",
        "aggregate" if name in with_law() else "population",
        "--seed",
        "2",
        *SIZES.get(name, ()),
    )
    VALIDATOR.validate(data)
    text = summary(data, 80)
    assert "true error" in text
    assert "0 missing" in text


def test_the_published_schema_is_one(table: Path) -> None:
    """`local-dp schema` prints a valid JSON schema, and a table, a private run and a run over hosts
    print data that fit it."""
    assert json.loads(local_dp("schema").stdout) == SCHEMA
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    arguments = (
        *shlex.split(f"frequency --records {table} --column smokes --labels"),
        "no;yes",
        "--tier",
        "population",
    )
    runs = [
        outcome_of(*arguments, "--seed", "1"),
        outcome_of(*arguments, "--missing", "category", "--other", "category", "--private"),
    ]
    runs.append(outcome_of("survey", "--clients", "60", "--tier", "hosts"))
    for run in runs:
        VALIDATOR.validate(run)
    output, private, _ = runs
    assert output["table"]["rows"] == 500
    assert output["result"]["truth"] == [350 / 500, 150 / 500]
    assert output["rounds"][0]["randomizers"] == [{"name": "grr", "epsilon": 1.0, "k": 2}]
    assert output["parameters"]["column"] == "smokes"
    assert private["table"] is private["result"]["truth"] is None
    changes: list[dict[str, Any]] = [
        {"seed": "7"},
        {"stamp": None},
        {"surprise": 1},
        {"rounds": [{}]},
        {"table": {"rows": 1}},
        {"private": True},
    ]
    for change in changes:
        assert not VALIDATOR.is_valid({**output, **change}), change
    assert not VALIDATOR.is_valid({key: value for key, value in output.items() if key != "version"})


SENTENCES = {
    "masked-parity --d 3 --r 5 --a 1": (
        "The learned rule: of the 3 bits of x only bits 0 and 2 matter; a record (x, i, b) has "
        "the label -1 if b = 1 and i is one of them, or if b = 0 and an even number of them are "
        "1, and else the label +1."
    ),
    "parity --d 3 --r 4": (
        "The learned rule predicts the label of a record x: it is -1 if bit 2 of x is 1, else +1."
    ),
    "learn-thresholds": "The learned rule predicts the label of a record: it is +1 where x >= ",
    "learn-k-means": "The records gather around the points (",
}


@pytest.mark.parametrize("arguments", SENTENCES)
def test_a_hypothesis_is_explained_in_one_sentence(
    arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finished run ends in one sentence that says what was learned, in its output and in its
    JSON."""
    monkeypatch.setenv("COLUMNS", "1000")
    done = shlex.split("--tier aggregate --seed 3 --epsilon 4")
    sentence = outcome_of(*arguments.split(), *done)["result"]["explanation"]
    assert SENTENCES[arguments] in sentence
    assert sentence.endswith(".")
    assert local_dp("run", *arguments.split(), *done).stdout.splitlines()[-1] == sentence
