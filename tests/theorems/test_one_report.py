"""One report a client, one-way protocols, and real-valued queries from Boolean ones: unbiased,
exact, at one charge of epsilon."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.curator.mechanism import SmallDatabases
from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.thresholds.learner import PureThresholds
from local_dp.draws import Draws
from local_dp.errors import RefusedError
from local_dp.interaction import Adaptive, Nonadaptive, run
from local_dp.learners.tabular import TABULAR
from local_dp.loss import Pure
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.oracles.statistical.oracles import (
    ExactOracle,
    RealQuery,
    Statistical,
    StatisticalPlay,
    StatisticalQuery,
)
from local_dp.populations.finite import Finite, Rows
from local_dp.queries.encoded import Bit, Encoding, packed
from local_dp.queries.examples import SignedLabel
from local_dp.queries.tables import Bounded, Category, Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems import from_sq
from local_dp.theorems.curated import PublicLearner, learner_from_one_way, one_way_from_learner
from local_dp.two_party import OneWay, Problem
from tests.support.inputs.refusals import refuse
from tests.support.inputs.worlds import NUMBERS, Biased
from tests.support.mechanisms.case import labelled

TABLE = Records({"age": np.array([30, 40, 50]), "sick": np.array([1, 0, 1])})
QUERIES = (
    StatisticalQuery(Question("sick == 1"), 0.1),
    StatisticalQuery(Question("sick == 0 and age > 35"), 0.1),
    StatisticalQuery(Question("age > 45"), 0.1),  # of what is public alone
    StatisticalQuery(SignedLabel("age < 45", "sick"), 0.1),
    RealQuery(Question("sick == 1"), 0.1, (-0.25, 0.75)),
)
PLAIN: Statistical[tuple[float, ...]] = Nonadaptive(QUERIES, lambda answers: answers)
EPSILON, FAILURE = 1.0, 1e-6


def blind(table: Records) -> Records:
    return Records({**table.columns, "sick": np.zeros(len(table), dtype=np.int64)})


def test_own_bits_are_unbiased_for_every_query() -> None:
    """Over all reports of three clients each answer averages exactly to the table's, also of public
    columns; wrong twin: reports at their word."""
    algorithm = from_sq.from_own_bits(PLAIN, blind(TABLE), "sick", EPSILON)
    keep = BinaryRR(epsilon=EPSILON).channel()[0, 0] / BinaryRR(epsilon=EPSILON).total
    averages = np.zeros(len(QUERIES))
    at_their_word = np.zeros(len(QUERIES))
    for reports in product((0, 1), repeat=3):
        agree = np.array(reports) == TABLE["sick"]
        chance = float(np.prod(np.where(agree, keep, 1 - keep)))
        tallies = tuple(Tally(np.eye(2, dtype=np.int64)[[report]]) for report in reports)
        averages += chance * np.array(algorithm.decode(tallies))
        table = Records({**TABLE.columns, "sick": np.array(reports)})
        at_their_word += chance * np.array(ExactOracle(Rows(table)).answer(QUERIES))
    truth = np.array(ExactOracle(Rows(TABLE)).answer(QUERIES))
    assert averages == pytest.approx(truth, abs=1e-7)  # a real query's values are rounded to 2^-30
    assert np.abs(at_their_word - truth).max() > 0.1


def test_own_bits_cost_one_epsilon_whatever_is_asked() -> None:
    """Clients of budget epsilon pay for any number of queries, in one round; of a little less they
    refuse before they answer."""
    algorithm = from_sq.from_own_bits(PLAIN, blind(TABLE), "sick", EPSILON)
    oracle = PopulationOracle(Rows(TABLE), KeyedNoise(1), 0, EPSILON)
    assert len(run(algorithm, oracle)) == len(QUERIES)
    assert [(summary.n, summary.epsilon) for summary in oracle.rounds] == [(3, EPSILON)]
    with pytest.raises(RefusedError):
        run(algorithm, PopulationOracle(Rows(TABLE), KeyedNoise(1), 0, 0.99 * EPSILON))


@pytest.mark.parametrize("terms", [1, 3, 5, 7])
def test_a_sign_correlates_with_every_term(terms: int) -> None:
    """For all v and all signs z, exactly: the mean of z_j sign(<z, v>) is v_j C(t - 1, (t - 1) / 2)
    / 2^(t - 1); and for many terms about sqrt(2 / (pi t))."""
    signs = np.array(list(product((-1, 1), repeat=terms)))
    for v in signs:
        means = (signs * np.sign(signs @ v)[:, None]).mean(axis=0)
        ways = math.comb(terms - 1, terms // 2)
        assert means == pytest.approx(v * ways / 2 ** (terms - 1), abs=1e-15)
        assert means == pytest.approx(v * from_sq.sign_correlation(terms), abs=1e-12)
    assert from_sq.sign_correlation(10_001) == pytest.approx(
        math.sqrt(2 / (math.pi * 10_001)), rel=1e-3
    )


def test_a_sign_is_told_of_yes_and_no_alone() -> None:
    """It is the sign of the sum under the client's own signs, of an odd number of terms; other
    queries are refused, and so are no clients."""
    rows = np.array(list(product((False, True), repeat=4)))
    for t in (3, 4):
        query = from_sq.SignOfAll(
            tuple(StatisticalQuery(Bit(number), 0.1) for number in range(t)), 1, 2
        )
        own = (2 * rows[:, :t].astype(int) - 1) @ query.signs[:t]
        sums = own + sum(query.signs[t:])
        assert len(query.signs) % 2 == 1
        assert query.values(packed(rows)).tolist() == (sums > 0).tolist()
    refuse(
        ("yes/no", lambda: from_sq.one_sign_each(PLAIN, 1.0, 3, 1)),
        (
            "give 1 or more",
            lambda: from_sq.one_sign_each(
                Nonadaptive(QUERIES[:1], lambda answers: answers), 1.0, 0, 1
            ),
        ),
    )


def test_one_sign_each_is_unbiased() -> None:
    """Three clients, two bits: over 300 draws the answers average to the table's; counted twice,
    they do not (normal test at 1e-6). It costs epsilon."""
    rows = packed(np.array([[True, False]] * 3))  # far from 0, so that a factor shows
    questions = tuple(StatisticalQuery(Bit(number), 0.1) for number in range(2))
    plain: Statistical[tuple[float, ...]] = Nonadaptive(questions, lambda answers: answers)
    oracles = [PopulationOracle(Rows(rows), KeyedNoise(seed), 0, 3.0) for seed in range(300)]
    results: Floats = np.array(
        [
            run(from_sq.one_sign_each(plain, 3.0, 3, seed), oracle)
            for seed, oracle in enumerate(oracles)
        ]
    )
    truth = np.array(ExactOracle(Rows(rows)).answer(questions))
    reach = stats.norm.isf(FAILURE / 4) * np.std(results, axis=0) / np.sqrt(len(results))
    assert np.all(np.abs(np.mean(results, axis=0) - truth) < reach)
    assert np.any(np.abs(2 * np.mean(results, axis=0) - truth) > reach)
    assert {summary.epsilon for oracle in oracles for summary in oracle.rounds} == {3.0}


BITS, EPSILON_ONE_WAY = 3, 0.5
# Bob is next to Alice: other thresholds err on half
NEEDLE = Problem(
    {(a, b): 1 for a in range(1, 1 << BITS) for b in (a - 1, a)}, lambda a, b: int(b >= a)
)


def public(n: int) -> PublicLearner[LabelledMultiset, int, int]:
    """The exponential mechanism over thresholds, and n copies of (0, 0)."""
    database = labelled(BITS)([(0, 0)] * n)
    return PublicLearner(PureThresholds(EPSILON_ONE_WAY), database, n, lambda t, b: int(b >= t))


def test_a_learner_makes_a_protocol() -> None:
    """By exact laws no good hypothesis is listed with at most `failure`, for every a, and not with
    the list of one record less; Alice says a number."""
    learner, problem = PureThresholds(EPSILON_ONE_WAY), NEEDLE
    for a in range(1, 1 << BITS):
        database = labelled(BITS)([(a - 1, 0), (a, 1)] * 4)
        success = learner.chance(database, a, a)
        miss = 1 - learner.chance(public(8).database, a, a)
        assert miss ** public(8).tries(success, 0.05) <= 0.05
    assert public(8).tries(0.3, 0.05) == math.ceil(
        math.exp(8 * EPSILON_ONE_WAY) * math.log(20) / 0.3
    )
    protocol = one_way_from_learner(public(6), problem, 200, Draws(KeyedNoise(4)))
    assert protocol.bits == 8
    assert problem.error(protocol) == 0


def test_a_protocol_makes_a_learner() -> None:
    """Where Alice says her threshold, it is the pure learner of thresholds, law for law, and
    private on all pairs of examples; at twice epsilon it is not."""
    protocol: OneWay[int, int] = OneWay(5, lambda a: a, lambda message, b: int(b >= message))
    mechanism = learner_from_one_way(protocol, EPSILON_ONE_WAY)
    examples = [(0, 0), (1, 1), (3, 1), (2, 0)]
    assert mechanism.law(examples) == PureThresholds(EPSILON_ONE_WAY).law(labelled(2)(examples))
    databases: SmallDatabases[tuple[int, int], Sequence[tuple[int, int]]] = SmallDatabases(
        list(product(range(4), (0, 1))), 3, lambda rows: rows
    )
    assert databases.worst_delta(mechanism) == 0
    assert (
        databases.worst_delta(
            learner_from_one_way(protocol, 2 * EPSILON_ONE_WAY), Pure(mechanism.loss.nano)
        )
        > 0.01
    )


def test_bits_meet_their_bound_for_every_function() -> None:
    """All 5^4 functions on |Z| = 4 and all 2^M ways to err by tau_m, in floating point: error
    within the tolerance, and equal to the bound for some."""
    tolerances = from_sq.bit_tolerances(0.4)
    cut = 2.0 ** -len(tolerances)
    bound = math.fsum(2.0**-m * tau for m, tau in enumerate(tolerances, start=1)) + cut
    law, worst = np.array([0.125, 0.25, 0.5, 0.125]), 0.0
    for function in product(np.linspace(-1, 1, 5).tolist(), repeat=4):
        query = RealQuery(Category("c", ("0", "1", "2", "3")), 0.4, function)
        exact = np.array([bit.expectation(law) for bit in from_sq.bit_queries(query)])
        if len(exact) == 1:
            assert exact[0] == query.expectation(law)
            continue
        for signs in product((-1, 1), repeat=len(exact)):
            answers = tuple(exact + np.multiply(signs, tolerances))
            worst = max(worst, abs(from_sq.read_bits(answers) - query.expectation(law)))
    assert worst == pytest.approx(bound, abs=1e-12)
    assert bound <= 0.4


def test_boolean_from_real_preserves_the_algorithm() -> None:
    """Non-adaptive and adaptive algorithms get Boolean queries only, all legal, and end within
    tolerance against every pattern of a biased oracle."""
    real = StatisticalQuery(Bounded("v", 0.0, 1.0), 0.05)
    truth = real.expectation(NUMBERS.law(real.query))

    def play() -> StatisticalPlay[float]:
        (first,) = yield (real,)
        yield (StatisticalQuery(Bounded("v", 0.0, 2.0), 0.1),)
        return first

    flat = from_sq.boolean_from_real(Nonadaptive((real,), lambda answers: answers[0]))
    assert len(flat.queries) == len(from_sq.bit_tolerances(0.05))
    assert all(set(query.scale.tolist()) <= {-1.0, 1.0} for query in flat.queries)
    steps = from_sq.boolean_from_real(Adaptive(play))
    for pattern in ((1,), (1, -1)):
        assert abs(run(flat, Biased(NUMBERS, pattern)) - truth) <= 0.05
        assert abs(run(steps, Biased(NUMBERS, pattern)) - truth) <= 0.05


GENERATOR = np.random.default_rng(7)
VALUES = GENERATOR.normal(size=(3, 400))
NOISE = 0.3 * GENERATOR.normal(size=400)
LABEL = (VALUES[0] + 0.5 * VALUES[1] + NOISE > 0).astype(float)
HOLES = GENERATOR.random(size=(4, 400)) < 0.1
COLUMNS = np.vstack([VALUES, LABEL])
WITH_HOLES = Records(dict(zip("abcz", np.where(HOLES, np.nan, COLUMNS), strict=True)))


def posed(name: str) -> tuple[Any, Encoding]:
    view = TABULAR[name]
    features = ("a",) if view.form == "grid" else ("a", "b", "c > 0.2")
    d = len(features)
    y = (-1.0, 2.0) if view.answer == "number" else (0.0, 0.0)
    lows = (-2.0, -2.0, 0.0)[:d]
    highs = (2.0, 2.0, 1.0)[:d]
    learner = view.make(d, {"steps": 5} if name in ("local-sgd", "logistic-regression") else {})
    return learner, Encoding(
        features=features, lows=lows, highs=highs, form=view.form, scale=view.scale(d),
        constant=view.constant,
        steps=16, label="" if view.answer == "none" else "z", label_low=y[0], label_high=y[1],
    )  # fmt: skip


@pytest.mark.parametrize("name", TABULAR)
def test_expectations_over_complete_rows_are_exact(name: str) -> None:
    """Every learner on an exact oracle over the table with holes gives what it gives on the encoded
    complete rows; undivided answers give some another."""
    learner, encoding = posed(name)
    present = encoding.present(WITH_HOLES)
    assert 0.4 < present.mean() < 0.9
    rows = WITH_HOLES.take(np.flatnonzero(present))
    complete = Finite(encoding.encode(rows), [1.0] * int(present.sum()), 1, 0)
    expected = run(learner.algorithm(), ExactOracle(complete))
    algorithm = from_sq.among_complete(learner.algorithm(), encoding)
    assert isinstance(algorithm, Adaptive if learner.model() == "SQ" else Nonadaptive)
    oracle = ExactOracle(Rows(WITH_HOLES))
    assert numbers(run(algorithm, oracle)) == pytest.approx(numbers(expected), abs=1e-9)
    assert oracle.queries <= learner.queries + 1
    assert oracle.rounds <= learner.rounds
    if name in ("logistic-regression", "naive-bayes", "low-degree"):
        on_all = from_sq.on_table(learner.algorithm(), encoding)
        assert numbers(run(on_all, ExactOracle(Rows(WITH_HOLES)))) != pytest.approx(
            numbers(expected), abs=1e-2
        )


def numbers(hypothesis: Any) -> list[float]:
    if isinstance(hypothesis, (int, float)):
        return [float(hypothesis)]
    if isinstance(hypothesis, tuple):
        return [number for part in hypothesis for number in numbers(part)]
    return [] if hypothesis is None else numbers(tuple(vars(hypothesis).values()))
