"""Class 10, and acceptance test 26: what missing and lying clients can have done to an estimate
stands in the result, and holds."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_dp.api.show import summary
from local_dp.bounds.attacks import (
    ALPHA,
    Influence,
    influence_of,
    irregularity,
    ones_law,
    ones_seen,
)
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.noise import Draw, KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery, cells_of
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.surveys.frequency import Frequency, Histogram
from local_dp.protocols.surveys.survey import Survey
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.queries.query import Query
from local_dp.queries.tables import Category
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.unary import OUE, SUE, UnaryEncoding
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.progress import Turnout
from local_dp.server.round import Round
from local_dp.simulation.execute import execute
from local_dp.simulation.outcome import Outcome, as_data
from local_dp.simulation.settings import Randomness, Settings
from local_dp.tallies import Estimate, Tally
from tests.support.inputs.builders import RUN, SEED, survey_query
from tests.support.inputs.randomizers import built_in, of_sets
from tests.support.long import short

COINS = bytes(16)


def _asked(randomizer: Any, n: int) -> Nonadaptive[LocalQuery, Tally, Any]:
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


@pytest.mark.parametrize("epsilon", short([0.3, 1.0, 4.0], lambda epsilon: epsilon == 1.0))
def test_one_report_adds_no_more_than_is_said_and_as_much(epsilon: float) -> None:
    """For each built-in finite channel and frequency oracle: every single report lies within the
    ends; where all are tried, both are reached."""
    known = 0
    for randomizer in [*built_in(epsilon), *of_sets(epsilon)]:
        if randomizer.domain.size > 300:
            continue
        influence = influence_of(_asked(randomizer, 10))
        if influence is None:
            continue
        known += 1
        if isinstance(randomizer, FiniteChannel):
            counts = randomizer.empty().counts
            some = (
                np.eye(counts.size, dtype=np.int64)
                if counts.size <= 512
                else np.eye(counts.size, dtype=np.int64)[:: counts.size // 200]
            )
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
    print(
        f"class 10: {known} randomizers at epsilon {epsilon}: every single report within what is "
        "said of it"
    )
    assert known > 40


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_possible_values_are_the_expectations_of_each_value(epsilon: float) -> None:
    """For each built-in finite channel: the mean of clients with one value is within `least` and
    `most`, and of a scalar both are reached."""
    known = 0
    for randomizer in built_in(epsilon):
        if (
            not isinstance(randomizer, FiniteChannel)
            or randomizer.domain.size > 64
            or randomizer.cells * randomizer.alphabet > 512
        ):
            continue
        influence = influence_of(_asked(randomizer, 10))
        if influence is None:
            continue
        known += 1
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
        assert (means >= influence.least - scale).all(), randomizer
        assert (means <= influence.most + scale).all(), randomizer
        if means.ndim == 1:
            assert (
                abs(means.min() - influence.least) + abs(means.max() - influence.most) <= 2 * scale
            ), randomizer
    assert known > 10


def test_of_randomized_response_it_is_the_closed_form() -> None:
    """(m / n) / (p - q) for m liars of n; (1 - q) / (p - q) and -q / (p - q) from one report."""
    randomizer = BinaryRR(1.0)
    q = randomizer.flip / randomizer.total
    influence = influence_of(_asked(randomizer, 10))
    assert influence is not None
    assert float(influence.low) == pytest.approx(-q / (1 - 2 * q), rel=1e-12)
    assert float(influence.high) == pytest.approx((1 - q) / (1 - 2 * q), rel=1e-12)
    assert float(influence.of_share(0.01)) == pytest.approx(0.01 / (1 - 2 * q), rel=1e-12)


def test_where_the_result_is_no_average_nothing_is_said() -> None:
    """A quotient, an answer that is clipped, and two queries have no influence that is a constant,
    and none is claimed."""
    assert influence_of(Frequency(k=3, missing="exclude").algorithm(1.0, 100)) is None
    one = survey_query(10)

    def clip(estimate: Estimate) -> Estimate:
        return replace(estimate, value=np.clip(estimate.value, 0.0, 1.0))

    clipped: Nonadaptive[LocalQuery, Tally, Any] = Nonadaptive(
        (one,), lambda tallies: clip(one.randomizer.estimate(tallies[0]))
    )
    assert influence_of(clipped) is None
    assert (
        influence_of(Nonadaptive((one, one), lambda tallies: one.randomizer.estimate(tallies[0])))
        is None
    )


@settings(max_examples=60, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["grr", "hadamard", "oue", "subset-selection", "olh"]),
    st.integers(2, 6),
    st.integers(1, 60),
    st.integers(0, 60),
    st.integers(0, 1 << 30),
)
def test_no_attack_leaves_the_bound(name: str, k: int, honest: int, bad: int, seed: int) -> None:
    """By search: whatever reports some clients send, or withhold, the estimate of all honest
    answers lies between the ends that the result states."""
    protocol = Frequency(k=k, randomizer=name)
    algorithm = protocol.algorithm(1.0, honest + bad)
    assert isinstance(algorithm, Nonadaptive)
    randomizer, influence = algorithm.queries[0].randomizer, influence_of(algorithm)
    assert influence is not None
    n, generator = honest + bad, np.random.default_rng(seed)
    values, cells = generator.integers(0, k, n), cells_of(randomizer, COINS, 0, n)
    reports = randomizer.respond(values, randomizer.draw(KeyedNoise(seed), Draw(1), 0, n), cells)

    def estimated(sent: Any, of: slice) -> Estimate:
        return algorithm.decode(
            (randomizer.tally(sent[of], cells[of] if randomizer.uses_coins else cells),)
        )

    truth = estimated(reports, slice(None)).value
    low, high = influence.had_all_answered(estimated(reports, slice(honest)).value, honest, bad)
    assert (low <= truth + 1e-9).all()
    assert (truth <= high + 1e-9).all()
    forged = reports.copy()
    forged[honest:] = reports[generator.integers(0, n, bad)] if bad else reports[:0]
    assert (
        abs(estimated(forged, slice(None)).value - truth) <= influence.of_share(bad / n) + 1e-9
    ).all()


def _survey(
    n: int, seed: int, drop: float, worst_case: float | None = None
) -> tuple[dict[str, Any], float]:
    """A survey of n clients with 30 % yes, where replies equal to 1 are lost until a share `drop`
    of all clients is missing; and the truth."""
    protocol = Survey(question="yes == 1")
    run = Settings(
        protocol, protocol.synthetic(n, seed), 1.0, Randomness(seed, False), worst_case=worst_case
    )
    randomizer = BinaryRR(1.0)
    values = (np.arange(n) < 0.3 * n).astype(np.int64)
    reports = randomizer.respond(
        values, randomizer.draw(KeyedNoise(seed), Draw(1), 0, n), np.zeros(1, dtype=np.uint8)
    )
    lost = np.flatnonzero(reports == 1)[: int(drop * n)]
    kept = np.delete(reports, lost)
    algorithm = protocol.algorithm(1.0, n)
    assert isinstance(algorithm, Nonadaptive)
    estimate = algorithm.decode((randomizer.tally(kept, np.zeros(1, dtype=np.uint8)),))
    counts = Turnout(asked=n, answered=len(kept), missing=len(lost))
    outcome = Outcome(
        result=estimate,
        interaction="non-interactive",
        rounds=[],
        seconds=[],
        counts=counts,
        max_epsilon_spent=1.0,
        wall=0.1,
    )
    return as_data(run, outcome, truth_known=False), 0.3


def test_selective_dropping_is_answered_for() -> None:
    """The attack: all replies equal to 1 are lost, up to 10 % of the clients. The plain interval
    misses the truth, the worst case holds it."""
    plainly, widely = 0, 0
    for seed in range(40):
        data, truth = _survey(5000, seed, 0.1, worst_case=0.0)
        low, high = data["result"]["interval"]
        plainly += low <= truth <= high
        low, high = data["influence"]["worst_case"]["interval"]
        widely += low <= truth <= high
    print(
        f"class 10: 10 % dropped by what they say: the plain interval held the truth in {plainly} "
        f"of 40 runs, that of the worst case in {widely}"
    )
    assert (plainly, widely) == (0, 40)
    text = summary(_survey(5000, 1, 0.1)[0], 100)
    assert "500 missing clients resemble" in " ".join(text.split())
    assert "missing clients resemble" not in " ".join(
        summary(_survey(5000, 1, 0.0)[0], 100).split()
    )


def _attacked(
    name: type[UnaryEncoding], share: float, padded: bool, seed: int, n: int = 5000, k: int = 32
) -> tuple[float, float, float]:
    """The p-value of n reports of which a share is forged to make symbol 0 frequent; by how much
    that moved its estimate; and the bound."""
    randomizer = name(1.0, k=k)
    generator, cells = np.random.default_rng(seed), np.zeros(1, dtype=np.uint8)
    values = generator.integers(0, k, n)
    honest = randomizer.respond(values, randomizer.draw(KeyedNoise(seed), Draw(1), 0, n), cells)
    bits, bad = np.unpackbits(honest, axis=1, count=k, bitorder="little"), int(share * n)
    bits[:bad] = 0
    bits[:bad, 0] = 1
    if padded:
        wanted = generator.choice(k + 1, bad, p=ones_law(randomizer) / ones_law(randomizer).sum())
        for row, ones in enumerate(wanted):
            bits[row, 1 + generator.permutation(k - 1)[: max(0, ones - 1)]] = 1
    sent = np.packbits(bits, axis=1, bitorder="little")
    moved = (
        randomizer.estimate(randomizer.tally(sent, cells)).value
        - randomizer.estimate(randomizer.tally(honest, cells)).value
    )
    influence = influence_of(Frequency(k=k, randomizer=name.name).algorithm(1.0, n))
    p_value = irregularity(randomizer, ones_seen(randomizer, sent))
    assert influence is not None
    assert p_value is not None
    return p_value, float(abs(moved).max()), float(influence.of_share(share).max())


def test_poisoning() -> None:
    """Test 26: one-bit reports of .5 % of 5,000 clients are flagged at 1e-4, honest ones not;
    padded ones cannot be, and stay below the bound."""
    forged, honest, padded = (
        [_attacked(OUE, share, pad, seed) for seed in range(20)]
        for share, pad in ((0.005, False), (0.0, False), (0.005, True))
    )
    flags = [sum(p < ALPHA for p, _, _ in runs) for runs in (forged, honest, padded)]
    shift, bound = max(moved for _, moved, _ in padded), padded[0][2]
    print(
        f"test 26: flagged {flags[0]}/20 one-bit attacks, {flags[1]}/20 honest rounds, "
        f"{flags[2]}/20 padded ones, which moved {shift:.4f} of {bound:.4f}"
    )
    assert flags == [20, 0, 0]
    assert all(moved <= most + 1e-12 for _, moved, most in (*forged, *padded))
    assert shift > 0.2 * bound


@pytest.mark.parametrize("kind", [OUE, SUE])
def test_the_law_of_ones_is_that_of_the_channel(kind: type[UnaryEncoding]) -> None:
    """By enumeration of all vectors of five bits, for each value: the number of ones has the law
    that is stated, which no value changes."""
    randomizer = kind(1.0, k=5)
    vectors = np.unpackbits(
        np.arange(32, dtype=np.uint8)[:, None], axis=1, count=5, bitorder="little"
    )
    for value in range(5):
        shares = np.array(randomizer.ones)[randomizer.code[value]] / randomizer.total
        law = np.bincount(
            vectors.sum(axis=1, dtype=int),
            weights=np.where(vectors == 1, shares, 1 - shares).prod(axis=1),
        )
        assert np.allclose(law, ones_law(randomizer), atol=1e-15)


def test_the_server_says_that_some_do_not_follow() -> None:
    """A round's reports as they come over the bus: the p-value stands in the round, and the summary
    says so where it is below 1e-4."""
    query = LocalQuery(Category("x", tuple(map(str, range(32)))), OUE(1.0, k=32), Cohort(0, 600))
    for bad, flagged in ((0, False), (60, True)):
        round = Round(RUN, 1, (query,), SEED)
        part = round.parts[0]
        values = np.arange(600) % 32
        part.reports[:] = query.randomizer.respond(
            values,
            query.randomizer.draw(KeyedNoise(3), Draw(1), 0, 600),
            np.zeros(1, dtype=np.uint8),
        ).view(np.uint8)
        part.reports[:bad] = [1, 0, 0, 0]
        part.answered[:] = True
        p_value = round.irregularity()
        assert p_value is not None
        assert (p_value < ALPHA) is flagged
    data = {"rounds": [{"irregularity": 1e-9}, {}]}
    from local_dp.api.show import _irregular

    assert "round 1" in _irregular(data)
    assert _irregular({"rounds": [{"irregularity": 0.5}]}) == ""
    assert Round(RUN, 1, (survey_query(4),), SEED).irregularity() is None


@pytest.mark.parametrize(
    "protocol", [Survey(), Frequency(k=4), Mean(), Histogram()], ids=lambda protocol: protocol.name
)
def test_these_protocols_state_their_influence(protocol: LocalProtocol[Any]) -> None:
    run = Settings(
        protocol, protocol.synthetic(500, 1), 1.0, Randomness(1, False), tier="population"
    )
    data = as_data(run, execute(run, lambda progress: None))
    assert json.loads(json.dumps(data["influence"])) == data["influence"]
    assert np.all(np.array(data["influence"]["of_one_per_cent"]) > 0)


def test_a_worst_case_must_be_one() -> None:
    with pytest.raises(InputError, match="from 0 to below 1"):
        _survey(10, 1, 0.0, worst_case=1.0)
    quotient = Frequency(k=3, missing="exclude")
    with pytest.raises(InputError, match="no average"):
        Settings(quotient, quotient.synthetic(10, 1), 1.0, Randomness(1, False), worst_case=0.0)
    with pytest.raises(InputError, match="share"):
        Influence(np.zeros(1), np.ones(1)).interval(Estimate(np.zeros(1), np.ones(1), 4), 0, -0.1)
