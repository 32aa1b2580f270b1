"""P4: the questions and results of a private run hold nothing read off the data."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from local_dp.api.asking import RunOptions, ask
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Game
from local_dp.noise import Draw, KeyedNoise
from local_dp.oracles.local.asked import Asking, LocalQuery, cells_of
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records
from local_dp.server.round import Round
from local_dp.tallies import Tally
from local_dp.wire import encode
from tests.support.inputs.launches import PEOPLE, RUNNING, TABLE
from tests.support.long import short

ROUNDS = 4
OUTLIERS: dict[str, list[Any]] = {
    "age": [1e9, np.nan],
    "city": ["", "a town that nobody listed"],
    "n": [1 << 62, -7],
    "word": ["an unlisted word"],
}


def _with_change(column: str, value: Any) -> Records:
    """The table with one record that differs, of the same types."""
    values = TABLE[column]
    other = np.where(np.arange(PEOPLE) == 7, value, values).astype(
        "U40" if values.dtype.kind == "U" else values.dtype
    )
    return Records({**TABLE.columns, column: other})


TABLES = [
    TABLE,
    *(_with_change(column, value) for column, values in OUTLIERS.items() for value in values),
]


def _requests(protocol: LocalProtocol[Any]) -> list[bytes]:
    """The requests of its first rounds, answered by empty hands."""
    game, requests = Game(protocol.algorithm(1.0, PEOPLE)), []
    for number in range(1, ROUNDS + 1):
        if game.queries is None:
            break
        requests.append(encode(Round("r", number, game.queries, 5).request()))
        game.send(tuple(_tally_of(query, number) for query in game.queries))
    return requests


def _tally_of(query: LocalQuery, number: int) -> Tally:
    """Reports of clients who all hold the domain's first value."""
    cohort, randomizer = query.cohort, query.randomizer
    asking = Asking(query, cohort.start, KeyedNoise(3), Draw(number), bytes(16))
    reports = asking.randomize(query.query.domain.first(len(cohort)))
    return randomizer.tally(reports, cells_of(randomizer, bytes(16), cohort.start, cohort.stop))


def _outcome(protocol: LocalProtocol[Any], table: Records) -> tuple[str, Any]:
    """What a private launch makes of a table: an error's text, or the protocol and all that it
    asks."""
    try:
        launch = protocol.for_table(Launch(table, private=True))
        return repr(launch), _requests(launch)
    except (InputError, RefusedError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", short(RUNNING, lambda name: name != "heavy-hitters"))
def test_a_private_run_asks_the_same_of_tables_that_differ(name: str) -> None:
    """Of every protocol, tables that differ in one record outside what was declared: the same
    requests, byte for byte, or the same error."""
    assert set(RUNNING) == {
        each for each, kind in PROTOCOLS.items() if kind.for_table is not LocalProtocol.for_table
    }
    first = _outcome(replace(PROTOCOLS[name](), **RUNNING[name]), TABLE)
    assert isinstance(first[1], list) == (name != "prefix-sums"), (
        "which has no answer for a value beyond its own, and so no private run"
    )
    for parameters in (RUNNING[name], {**RUNNING[name], "missing": "refuse"}):
        protocol = PROTOCOLS[name]()
        with suppress(TypeError, InputError):  # it has no such policy
            protocol = replace(protocol, **parameters)
        others = np.random.default_rng(len(name)).choice(len(TABLES) - 1, 3, replace=False)
        assert len({repr(_outcome(protocol, TABLES[place])) for place in (0, *(1 + others))}) == 1


def test_a_private_launch_has_no_row_to_look_at() -> None:
    """The attack: labels taken from the data go into the request. A private launch holds columns
    without rows; the twin that looks finds the labels."""
    assert [len(Launch(TABLE, private).records) for private in (True, False)] == [0, PEOPLE]
    looking = PROTOCOLS["frequency"].from_settings(
        {"column": "city", "labels_from_data": "true", "other": "category", "missing": "category"}
    )
    assert _outcome(looking, TABLE)[0] == "InputError"
    simulations = [
        repr(looking.for_table(Launch(table, private=False)))
        for table in (TABLE, _with_change("city", "Bonn"))
    ]
    assert simulations[0] != simulations[1]
    assert "Bonn" in simulations[1]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "mean",
            {"column": "age", "low": "0", "high": "100", "missing": "exclude", "outside": "clip"},
        ),
        (
            "frequency",
            {"column": "city", "labels": "Oslo;Rome", "missing": "category", "other": "category"},
        ),
    ],
)
def test_no_truth_is_computed_in_private(
    name: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a private run no method that knows the truth is called, and the result has none, no digest
    and no seed; a simulation calls them."""

    def look(*anything: Any) -> Any:
        raise LookupError

    for method in ("truth", "true_error", "compared"):
        monkeypatch.setattr(PROTOCOLS[name], method, look)
    protocol = PROTOCOLS[name].from_settings(settings)
    data = ask(protocol, TABLE, RunOptions(private=True, notice=lambda line: None)).to_dict()
    assert (data["result"]["truth"], data["result"]["true_error"], data["table"], data["seed"]) == (
        None,
        None,
        None,
        None,
    )
    with pytest.raises(LookupError):
        ask(protocol, TABLE, RunOptions(seed=1, notice=lambda line: None))
