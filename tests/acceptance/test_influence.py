"""P7: what missing and lying clients can have done to an estimate stands in the result, and
holds."""

from typing import Any

import numpy as np
import pytest

from local_dp.api.show import _irregular, summary
from local_dp.bounds.attacks import ALPHA, Influence, influence_of
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.noise import Draw, KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery, cells_of
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.surveys.survey import Survey
from local_dp.queries.query import Query
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.progress import Turnout
from local_dp.server.round import Round
from local_dp.simulation.outcome import Outcome, as_data
from local_dp.simulation.settings import Randomness, Settings
from local_dp.tallies import Estimate, Tally
from tests.support.inputs.builders import RUN, SEED, survey_query
from tests.support.inputs.randomizers import built_in, of_sets

COINS = bytes(16)


def _survey_of(randomizer: Any, n: int) -> Nonadaptive[LocalQuery, Tally, Any]:
    query = LocalQuery(_Any(randomizer.domain), randomizer, Cohort(0, n))
    return Nonadaptive((query,), lambda tallies: randomizer.estimate(tallies[0]))


class _Any(Query):
    """A query with values of any domain, which nobody is asked."""

    name = "any"

    def __init__(self, domain: Any) -> None:
        self.__dict__["domain"] = domain

    domain = None  # type: ignore[assignment]

    def __call__(self, records: Any) -> Any:
        raise NotImplementedError


def _single(randomizer: Any, reports: Any, cells: Any, place: int) -> np.ndarray:
    tally = randomizer.tally(
        reports[place : place + 1], cells[place : place + 1] if randomizer.uses_coins else cells
    )
    return np.asarray(randomizer.estimate(tally).value)


def test_one_report_adds_no_more_than_is_said_and_as_much() -> None:
    """For each built-in finite channel and frequency oracle: every single report lies within the
    ends; where all are tried, both are reached."""
    count = 0
    for randomizer in [*built_in(1.0), *of_sets(1.0)]:
        if randomizer.domain.size > 300:
            continue
        influence = influence_of(_survey_of(randomizer, 10))
        if influence is None:
            continue
        count += 1
        if isinstance(randomizer, FiniteChannel):
            counts = randomizer.empty().counts
            some = np.eye(counts.size, dtype=np.int64)[
                :: 1 if counts.size <= 512 else counts.size // 200
            ]
            each = np.array(
                [randomizer.estimate(Tally(unit.reshape(counts.shape), 1)).value for unit in some]
            )
            if len(some) == counts.size:
                assert np.allclose(each.min(axis=0), influence.low, atol=1e-9), randomizer
                assert np.allclose(each.max(axis=0), influence.high, atol=1e-9), randomizer
        else:
            values = np.resize(randomizer.domain.values(), 200)
            cells = cells_of(randomizer, COINS, 0, 200)
            reports = randomizer.respond(
                values, randomizer.draw(KeyedNoise(1), Draw(1), 0, 200), cells
            )
            each = np.array([_single(randomizer, reports, cells, place) for place in range(200)])
        assert (each >= influence.low - 1e-9).all(), randomizer
        assert (each <= influence.high + 1e-9).all(), randomizer
    assert count > 40


def test_possible_values_are_the_expectations_of_each_value() -> None:
    """For each built-in finite channel: the mean of clients with one value is within `least` and
    `most`, and of a scalar both are reached."""
    count = 0
    for randomizer in built_in(2.0):
        influence = influence_of(_survey_of(randomizer, 10))
        if (
            influence is None
            or not isinstance(randomizer, FiniteChannel)
            or randomizer.domain.size > 64
            or randomizer.cells * randomizer.alphabet > 512
        ):
            continue
        count += 1
        # the channel as counts, which have 64 bits
        shift, cells = (
            np.uint64(max(0, randomizer.word_bits - 44)),
            range(randomizer.cells),
        )
        counts = np.stack([randomizer.channel(cell) >> shift for cell in cells], axis=1).astype(
            np.int64
        )
        means = np.array([randomizer.estimate(Tally(each)).value for each in counts])
        scale = 1e-6 * np.max(influence.high - influence.low)
        assert (np.clip(means, influence.least - scale, influence.most + scale) == means).all(), (
            randomizer
        )
        assert (
            means.ndim > 1
            or abs(means.min() - influence.least) + abs(means.max() - influence.most) <= 2 * scale
        ), randomizer
    assert count > 10


def test_where_the_result_is_no_average_nothing_is_said() -> None:
    """A quotient and two queries have no influence that is a constant: none is claimed, and a worst
    case is refused. Where the possible means are unknown no estimate is impossible."""
    far = Estimate(np.array([-5.0]), np.ones(1), 9)
    assert Influence(np.zeros(1), np.ones(1)).chance(far) == (0, 1)
    quotient, one = Frequency(k=3, missing="exclude"), survey_query(10)
    assert influence_of(quotient.algorithm(1.0, 100)) is None
    with pytest.raises(InputError, match="no average"):
        Settings(quotient, quotient.synthetic(10, 1), 1.0, Randomness(1, False), worst_case=0.0)
    assert (
        influence_of(Nonadaptive((one, one), lambda tallies: one.randomizer.estimate(tallies[0])))
        is None
    )


def _survey(seed: int, drop: int, worst_case: float | None = None) -> dict[str, Any]:
    """A survey of 5,000 clients with 30 % yes, of whose replies so many that are 1 are lost."""
    protocol, randomizer, cells = (
        Survey(question="yes == 1"),
        BinaryRR(1.0),
        np.zeros(1, dtype=np.uint8),
    )
    run = Settings(
        protocol,
        protocol.synthetic(5000, seed),
        1.0,
        Randomness(seed, False),
        worst_case=worst_case,
    )
    reports = randomizer.respond(
        (np.arange(5000) < 1500).astype(np.int64),
        randomizer.draw(KeyedNoise(seed), Draw(1), 0, 5000),
        cells,
    )
    remaining = np.delete(reports, np.flatnonzero(reports == 1)[:drop])
    algorithm = protocol.algorithm(1.0, 5000)
    assert isinstance(algorithm, Nonadaptive)
    estimate, counts = (
        algorithm.decode((randomizer.tally(remaining, cells),)),
        Turnout(asked=5000, answered=len(remaining), missing=drop),
    )
    outcome = Outcome(
        result=estimate,
        interaction="non-interactive",
        rounds=[],
        seconds=[],
        counts=counts,
        max_epsilon_spent=1.0,
        wall=0.1,
    )
    return as_data(run, outcome, truth_known=False)


def test_selective_dropping_is_answered_for() -> None:
    """The attack: all replies equal to 1 are lost, up to 10 % of the clients. The plain interval
    misses the truth, the worst case holds it."""
    for seed in range(10):
        data = _survey(seed, 500, worst_case=0.0)
        assert data["result"]["interval"][1] < 0.3
        low, high = data["influence"]["worst_case"]["interval"]
        assert low <= 0.3 <= high
    assert "500 missing clients resemble" in " ".join(summary(_survey(1, 500), 100).split())
    assert "missing clients resemble" not in " ".join(summary(_survey(1, 0), 100).split())


def test_forged_bits_are_flagged_and_move_an_estimate_within_the_bound() -> None:
    """Reports of one bit from 1 % of the clients: the p-value is below 1e-4 and the result says so;
    honest ones are not flagged."""
    protocol = Frequency(k=32, randomizer="oue")
    algorithm = protocol.algorithm(1.0, 5000)
    assert isinstance(algorithm, Nonadaptive)
    (query,), influence, tallies = algorithm.queries, influence_of(algorithm), list[Tally]()
    assert influence is not None
    for bad, has_flag in ((0, False), (50, True)):
        round = Round(RUN, 1, (query,), SEED)
        (part,) = round.parts
        words = query.randomizer.draw(KeyedNoise(3), Draw(1), 0, 5000)
        reports = query.randomizer.respond(np.arange(5000) % 32, words, np.zeros(1, dtype=np.uint8))
        part.reports[:] = reports.view(np.uint8)
        part.reports[:bad] = [1, 0, 0, 0]
        part.answered[:] = True
        p_value = round.irregularity()
        assert p_value is not None
        assert (p_value < ALPHA) is has_flag
        tallies += round.tallies()
        assert ("round 1" in _irregular({"rounds": [{"irregularity": p_value}, {}]})) is has_flag
    honest, attack = (query.randomizer.estimate(tally).value for tally in tallies)
    assert 0 < abs(attack - honest).max() <= influence.of_share(0.01).max()
    assert Round(RUN, 1, (survey_query(4),), SEED).irregularity() is None
