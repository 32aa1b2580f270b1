"""Class 2: the questions and results of a private run hold nothing read off the data."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from local_dp.api.asking import RunOptions, ask
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Game
from local_dp.oracles.local.asked import LocalQuery
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.protocols.surveys.policies import Launch
from local_dp.protocols.surveys.survey import Survey
from local_dp.records import Records
from local_dp.server.round import Round
from local_dp.tallies import Tally
from local_dp.wire import encode
from tests.support.figures import figure
from tests.support.inputs.launches import CITIES, PAIR, PEOPLE, RUNNING, TABLE

ROUNDS = 4
OUTLIERS: dict[str, list[Any]] = {
    "age": [1e9, -np.inf, np.nan, 5e-324],
    "city": ["", "a town that nobody listed", "\u00e9"],
    "n": [1 << 62, -7, 2],
    "word": ["", "an unlisted word"],
}
CHOICES: dict[str, list[Any]] = {  # of each parameter, what a search tries instead
    "column": ["age", "city", "n", "word"],
    "columns": [("age",), PAIR, ("city", "word"), ("age", "n"), ("age > 30", "n == 1")],
    "question": ["age > 30", "n == 1", "city == 'Oslo'", "age > 30 or n == 1"],
    "labels": [(), CITIES, ("0", "1"), ("Oslo|Rome",), ("Oslo|Rome", "milk|tea")],
    "labels_from_data": [False, True],
    "by": ["", "city", "n"], "label": ["n == 1", "age", "city == 'Oslo'"],
    "on": [("age > 30",), PAIR], "weights": [(), ("1", "2", "3")],
    "features": [(), ("age",), ("age > 30", "n == 1")],
    "bounds": [(), ("age=0..100", "n=0..1"), ("age=0..100",)],
    "missing": ["refuse", "exclude", "no", "category", "middle"],
    "other": ["refuse", "exclude", "category"], "outside": ["refuse", "clip"],
    "radius": [None, 50.0],
    "rounds": ["1", "2", "best"], "ways": [1, 2], "whole": [False, True], "text": [False, True],
    "bins": [4, 16],
    "randomizer": ["best", "grr", "one-bit-mean", "oue"],
}  # fmt: skip


def _changed(column: str, value: Any) -> Records:
    """The table with one record that differs, of the same types."""
    values = TABLE[column]
    other = np.where(np.arange(PEOPLE) == 7, value, values).astype(
        "U40" if values.dtype.kind == "U" else values.dtype
    )
    return Records({**TABLE.columns, column: other})


TABLES = [
    TABLE,
    *(_changed(column, value) for column, values in OUTLIERS.items() for value in values),
]


def _varied(name: str, changes: int, generator: np.random.Generator) -> LocalProtocol[Any] | None:
    """The protocol with so many of its parameters changed by chance; None where they do not fit
    together."""
    parameters, open_to = (
        dict(RUNNING[name]),
        [each.name for each in fields(PROTOCOLS[name]) if each.name in CHOICES],
    )
    for key in generator.choice(open_to, min(changes, len(open_to)), replace=False).tolist():
        parameters[key] = CHOICES[key][int(generator.integers(len(CHOICES[key])))]
    try:
        return replace(PROTOCOLS[name](), **parameters)
    except (InputError, TypeError, ValueError, AttributeError):
        return None


def _requests(protocol: LocalProtocol[Any]) -> list[bytes]:
    """The requests of its first rounds, answered by empty hands."""
    game, requests = Game(protocol.algorithm(1.0, PEOPLE)), []
    for number in range(1, ROUNDS + 1):
        if game.queries is None:
            break
        requests.append(encode(Round("r", number, game.queries, 5).request()))
        game.send(tuple(_drawn(query, number) for query in game.queries))
    return requests


def _drawn(query: LocalQuery, number: int) -> Tally:
    """Reports of clients who all hold the domain's first value."""
    from local_dp.noise import Draw, KeyedNoise
    from local_dp.oracles.local.asked import cells_of, randomize

    cohort, randomizer = query.cohort, query.randomizer
    reports = randomize(
        query,
        query.query.domain.first(len(cohort)),
        cohort.start,
        KeyedNoise(3),
        Draw(number),
        bytes(16),
    )
    return randomizer.tally(reports, cells_of(randomizer, bytes(16), cohort.start, cohort.stop))


def _outcome(protocol: LocalProtocol[Any], table: Records) -> tuple[str, Any]:
    """What a private launch makes of a table: an error's text, or the protocol and all that it
    asks."""
    try:
        launched = protocol.for_table(Launch(table, private=True))
        return repr(launched), _requests(launched)
    except (InputError, RefusedError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("variants", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_a_private_run_asks_the_same_of_tables_that_differ(variants: int) -> None:
    """Every protocol, parameters by search, tables that differ in one record outside what was
    declared: the same requests, byte for byte, or the same error."""
    assert set(RUNNING) == {
        name for name, kind in PROTOCOLS.items() if kind.for_table is not LocalProtocol.for_table
    }
    generator, compared, ran, names = np.random.default_rng(2), 0, 0, set()
    for name in RUNNING:
        for variant in range(variants):
            protocol = _varied(name, min(variant, 2), generator)
            if protocol is None:
                continue
            first = _outcome(protocol, TABLE)
            for place in (1 + generator.choice(len(TABLES) - 1, 3, replace=False)).tolist():
                assert _outcome(protocol, TABLES[place]) == first, (name, protocol, place)
                compared += 1
            if isinstance(first[1], list):
                ran += 1
                names.add(name)
    figure(
        "class 2",
        (
            f"{compared} pairs of private launches, {ran} of which ran, of {len(names)} "
            "protocols: 0 differences"
        ),
    )
    assert names >= set(RUNNING) - {"prefix-sums"}, (
        "which has no answer for a value beyond its own, and so no private run"
    )


def test_a_private_launch_has_no_row_to_look_at() -> None:
    """The attack: labels taken from the data go into the request. A private launch holds columns
    without rows; the twin that looks finds the labels."""
    assert [len(Launch(TABLE, private).records) for private in (True, False)] == [0, PEOPLE]
    looking = PROTOCOLS["frequency"].from_settings(
        {"column": "city", "labels_from_data": "true", "other": "category", "missing": "category"}
    )
    assert _outcome(looking, TABLE)[0] == "InputError"
    simulated = [
        repr(looking.for_table(Launch(table, private=False)))
        for table in (TABLE, _changed("city", "Bonn"))
    ]
    assert simulated[0] != simulated[1]
    assert "Bonn" in simulated[1]


TRUTHS = ("truth", "true_error", "compared")


def _ask(protocol: LocalProtocol[Any], table: Records, private: bool) -> dict[str, Any]:
    how = RunOptions(private=private, seed=None if private else 1, notice=lambda line: None)
    data: dict[str, Any] = ask(protocol, table, how).to_dict()
    return data


def _noted(real: Callable[..., Any], called: list[str]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        called.append(real.__name__)
        return real(*arguments)

    return noted


ASKED: Sequence[tuple[str, dict[str, str]]] = [
    ("survey", {"question": "age > 30", "missing": "no"}),
    ("mean", {"column": "age", "low": "0", "high": "100", "missing": "exclude", "outside": "clip"}),
    (
        "frequency",
        {"column": "city", "labels": "Oslo;Rome", "missing": "category", "other": "category"},
    ),
    ("histogram", {"column": "age", "low": "0", "high": "100", "bins": "4", "missing": "category"}),
]


@pytest.mark.parametrize(("name", "settings"), ASKED)
def test_no_truth_is_computed_in_private(
    name: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a private run no method that knows the truth is called, and the result has none, no digest
    and no seed; a simulation calls them."""
    kind, called = PROTOCOLS[name], list[str]()
    for method in TRUTHS:
        monkeypatch.setattr(kind, method, _noted(getattr(kind, method), called))
    protocol = kind.from_settings(settings)
    data = _ask(protocol, TABLE, private=True)
    assert called == []
    assert (data["result"]["truth"], data["result"]["true_error"], data["table"], data["seed"]) == (
        None,
        None,
        None,
        None,
    )
    _ask(protocol, TABLE, private=False)
    assert set(called) >= {"truth", "true_error"}


def test_the_form_of_a_private_result_is_the_same_for_every_table() -> None:
    """Results of tables that differ have the same keys, and what is public in them is equal: all
    but estimates, digests and times."""
    protocol = Survey(question="age > 30", missing="no")
    results = []
    for table in islice(TABLES, 6):
        data = _ask(protocol, table, private=True)
        # which follow from the estimate
        data["result"] = sorted(set(data["result"]) - {"uninformative", "moved"})
        for each in data["rounds"]:
            del each["seconds"], each["digest"]
        del data["wall_s"]
        del data["influence"]["had_all_answered"]  # which does too
        results.append(data)
    assert all(each == results[0] for each in results)
