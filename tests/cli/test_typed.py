"""An option that is typed counts, also where it is typed with its default."""

from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

import local_dp as ldp
from local_dp.api.asking import RunOptions
from local_dp.cli.commands import COMMANDS
from local_dp.cli.fields import Option, instance_of, parameters_of
from local_dp.cli.run.run import Run
from local_dp.errors import InputError
from local_dp.protocols.surveys.survey import Survey
from tests.support.runs.command import local_dp
from tests.support.wrong import wrong

SELECTING = {"hosts": "2", "broker": "embedded", "fault": "kill=0", "stores": "."}


def _commands() -> Iterator[tuple[str, type[Any]]]:
    for name, (place, _) in COMMANDS.items():
        module, _, attribute = place.partition(":")
        home = getattr(import_module(f"local_dp.cli.{module}"), attribute)
        yield from (
            ((f"{name} {each}", kind) for each, kind in home.items())
            if isinstance(home, dict)
            else ((name, home),)
        )


ALL = dict(_commands())


def _parse(kind: type[Any], *words: str) -> Any:
    command = click.Command(
        "x",
        params=[each for each in parameters_of(kind) if isinstance(each, Option)],
        callback=lambda **texts: texts,
    )
    for each in command.params:
        each.required = False
    return command.main(list(words), standalone_mode=False)


@pytest.mark.parametrize("name", ALL)
def test_what_counts_where_nothing_is_typed_counts_where_it_is(name: str) -> None:
    """Of all options of all commands, one whose help shows a default is none only where it is not
    typed; else the default itself is its value."""
    kind, silent = ALL[name], _parse(ALL[name])
    for option in parameters_of(kind):
        if not isinstance(option, Option) or not option.preset or option.multiple:
            continue
        done = _parse(kind, option.opts[0], option.preset)[option.name]
        (each,) = [each for each in fields(kind) if each.name == option.name]
        assert done is not None
        assert (silent[option.name] is None) == (each.metadata.get("usual") is not None), (
            option.name
        )
        assert silent[option.name] in (None, done), option.name


@wrong(
    "local_dp.api.asking:RunOptions.chosen_tier",
    "any((each is not None for each in (self.broker, self.hosts, self.fault, self.stores)))",
    (
        "self.broker not in (None, EMBEDDED) or self.hosts not in (None, Settings.hosts) or "
        "self.fault or self.stores"
    ),
    "--hosts 2 selects no hosts",
)
def test_options_that_need_real_clients_select_them() -> None:
    """Each whose help says that it selects tier hosts does so, with its default or another value,
    typed or in Python; another tier beside it is refused."""
    selecting = {
        each.name for each in fields(RunOptions) if "selects tier hosts" in each.metadata["brief"]
    }
    assert selecting == SELECTING.keys()
    assert _run().chosen_tier == "population"
    for name, text in SELECTING.items():
        assert _run(f"--{name}", text).chosen_tier == "hosts", name
        value = int(text) if name == "hosts" else text
        assert RunOptions.of({name: value}).chosen_tier == "hosts", name
        with pytest.raises(InputError, match=r"--tier (hosts|processes)"):
            _run(f"--{name}", text, "--tier", "population", "--clients", "2000").settings(
                Survey(), None
            )


def _run(*words: str) -> Run:
    command: Run = instance_of(Run, _parse(Run, *words))
    return command


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("run survey --clients 9 --tier processes --hosts 2", "tier processes has no --hosts"),
        (
            "run survey --clients 9 --tier aggregate --broker embedded",
            "tier aggregate has no --broker",
        ),
        *(
            (f"run survey --clients 9 --{name} ", f"--{name} is empty")
            for name in ("broker", "person")
        ),
        ("run survey --clients 9 --fault ", "--fault is empty"),
        (
            "curate mean --records t.csv --column a --low 0 --high 1 --rows 1",
            "name the column of people",
        ),
        (
            "curate mean --records t.csv --column a --low 0 --high 1 --pure --delta 1e-06",
            "--pure has none",
        ),
        ("sweep t.toml --out t.csv --workers 0", "workers is 0"),
    ],
)
def test_a_typed_option_without_an_effect_is_refused(
    words: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never dropped in silence."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a\n0\n1\n")
    Path("t.toml").write_text("epsilon = [1.0]\nclients = [100]\n[survey]\n")
    done = local_dp(*words.split(" "))
    assert done.returncode == 2
    assert says in done.stderr


@wrong(
    "local_dp.api.sweep:swept",
    "cores() if workers is None else workers",
    "workers or cores()",
    "--workers 0 is dropped",
)
def test_python_keywords_count_too() -> None:
    with pytest.raises(InputError, match="workers is 0"):
        ldp.sweep({"epsilon": [1.0], "clients": [100], "survey": {}}, workers=0)
    with pytest.raises(InputError, match="rows is 1"):
        ldp.curate.mean({"a": [0.0, 1.0]}, column="a", bounds=(0, 1), rows=1)
