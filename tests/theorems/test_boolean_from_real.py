"""Real-valued statistical queries from Boolean ones: every small function, every way to err, and a twin with a digit too few."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from local_dp.interaction import Adaptive, Nonadaptive, run
from local_dp.learners.tabular import TABULAR
from local_dp.oracles.statistical.oracles import ExactOracle, RealQuery, StatisticalPlay, StatisticalQuery, on_domain
from local_dp.populations.finite import Finite
from local_dp.populations.table import Rows
from local_dp.queries.encoded import Encoding
from local_dp.queries.tables import Bounded, Category
from local_dp.records import Records
from local_dp.theorems.on_table import among_complete, bit_queries, bit_tolerances, boolean_from_real, on_table, read_bits
from tests.support.inputs.worlds import NUMBERS, Biased, X


def test_bits_meet_their_bound_for_every_function() -> None:
    """All 5^4 functions on |Z| = 4 and all 2^M ways to err by tau_m, in floating point: error within the tolerance, and equal to the bound for some."""
    tau = 0.4
    tolerances = bit_tolerances(tau)
    bound = math.fsum(2.0**-m * tau_m for m, tau_m in enumerate(tolerances, start=1)) + 2.0 ** -len(tolerances)
    law, worst = np.array([0.125, 0.25, 0.5, 0.125]), 0.0
    column = Category("c", ("0", "1", "2", "3"))
    for function in product(np.linspace(-1, 1, 5).tolist(), repeat=4):
        query = RealQuery(column, tau, function)
        bits = bit_queries(query)
        exact = [bit.expectation(law) for bit in bits]
        if len(bits) == 1:
            assert exact[0] == query.expectation(law)
            continue
        for pattern in product((-1, 1), repeat=len(bits)):
            answers = tuple(value + sign * bit.tolerance for value, sign, bit in zip(exact, pattern, bits, strict=True))
            worst = max(worst, abs(read_bits(answers) - query.expectation(law)))
    assert bound <= tau
    assert worst == pytest.approx(bound, abs=1e-12)


def test_one_bit_too_few_is_outside() -> None:
    """The twin with one digit fewer, at the tolerances of the others, misses g = -1 by more than the tolerance that all digits keep."""
    tau = 0.25
    tolerances = bit_tolerances(tau)
    assert len(tolerances) == 3
    assert abs(read_bits(tuple(-1 + tau_m for tau_m in tolerances)) + 1) == pytest.approx(tau)
    assert abs(read_bits(tuple(-1 + tau_m for tau_m in tolerances[:-1])) + 1) > 1.3 * tau


def test_boolean_from_real_preserves_the_algorithm() -> None:
    """Non-adaptive and adaptive algorithms get Boolean queries only, all legal, and end within tolerance against every pattern of a biased oracle."""
    real = StatisticalQuery(Bounded("v", 0.0, 1.0), 0.05)
    truth = real.expectation(NUMBERS.law(real.query))

    def play() -> StatisticalPlay[float]:
        (first,) = yield (real,)
        (second,) = yield (StatisticalQuery(Bounded("v", 0.0, 2.0), 0.1),)
        return first + 0 * second

    flat = boolean_from_real(Nonadaptive((real, StatisticalQuery(X, 0.2)), lambda answers: answers[0]))
    assert len(flat.queries) == len(bit_tolerances(0.05)) + 1
    assert all(set(on_domain(query).tolist()) <= {-1.0, 1.0} for query in flat.queries)
    steps = boolean_from_real(Adaptive(play))
    for pattern in ((1,), (1, -1)):
        assert abs(run(steps, Biased(NUMBERS, pattern)) - truth) <= 0.05
        answers = Biased(NUMBERS, pattern).answer(flat.queries[:-1])
        assert abs(flat.decode((*answers, 0.0)) - truth) <= 0.05


GENERATOR = np.random.default_rng(7)
VALUES = GENERATOR.normal(size=(3, 400))
LABEL = (VALUES[0] + 0.5 * VALUES[1] + 0.3 * GENERATOR.normal(size=400) > 0).astype(float)
HOLES = GENERATOR.random(size=(4, 400)) < 0.1
TABLE = Records(dict(zip("abcz", np.where(HOLES, np.nan, np.vstack([VALUES, LABEL])), strict=True)))


def posed(name: str) -> tuple[Any, Encoding]:
    """A learner, and the table as it sees it."""
    seen = TABULAR[name]
    features = ("a",) if seen.form == "grid" else ("a", "b", "c > 0.2")
    d = len(features)
    y = (-1.0, 2.0) if seen.answer == "number" else (0.0, 0.0)
    lows, highs = (-2.0, -2.0, 0.0)[:d], (2.0, 2.0, 1.0)[:d]
    learner = seen.make(d, {"steps": 5} if name in ("local-sgd", "logistic-regression") else {})
    return learner, Encoding(
        features=features, lows=lows, highs=highs, form=seen.form, scale=seen.scale(d), constant=seen.constant,
        steps=16, label="" if seen.answer == "none" else "z", label_low=y[0], label_high=y[1],
    )  # fmt: skip


@pytest.mark.parametrize("name", TABULAR)
def test_expectations_over_complete_rows_are_exact(name: str) -> None:
    """Every learner on an exact oracle over the table with holes gives what it gives on the encoded complete rows; undivided answers give some another."""
    learner, encoding = posed(name)
    kept = encoding.present(TABLE)
    assert 0.4 < kept.mean() < 0.9
    complete = Finite(encoding.encode(TABLE.take(np.flatnonzero(kept))), [1.0] * int(kept.sum()), 1, 0)
    expected = run(learner.algorithm(), ExactOracle(complete))
    algorithm = among_complete(learner.algorithm(), encoding)
    assert isinstance(algorithm, Adaptive if learner.model() == "SQ" else Nonadaptive)
    oracle = ExactOracle(Rows(TABLE))
    assert numbers(run(algorithm, oracle)) == pytest.approx(numbers(expected), abs=1e-9)
    assert oracle.queries <= learner.queries + 1
    assert oracle.rounds <= learner.rounds
    if name in ("logistic-regression", "naive-bayes", "low-degree"):
        assert numbers(run(on_table(learner.algorithm(), encoding), ExactOracle(Rows(TABLE)))) != pytest.approx(numbers(expected), abs=1e-2)


def numbers(hypothesis: Any) -> list[float]:
    """Everything that is a number in a hypothesis."""
    if isinstance(hypothesis, (int, float)):
        return [float(hypothesis)]
    if isinstance(hypothesis, tuple):
        return [number for part in hypothesis for number in numbers(part)]
    return [] if hypothesis is None else numbers(tuple(vars(hypothesis).values()))
