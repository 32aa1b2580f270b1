"""Real-valued statistical queries from Boolean ones: every small function, every way to err, and a twin with a digit too few."""

import math
from itertools import product

import numpy as np
import pytest

from local_dp.interaction import Adaptive, Nonadaptive, run
from local_dp.oracles.statistical.oracles import RealQuery, StatisticalPlay, StatisticalQuery, on_domain
from local_dp.queries.tables import Bounded, Category
from local_dp.theorems.on_table import bit_queries, bit_tolerances, bits_needed, boolean_from_real, read_bits
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
    assert len(tolerances) == bits_needed(tau) == 3
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
    assert len(flat.queries) == bits_needed(0.05) + 1
    assert all(set(on_domain(query).tolist()) <= {-1.0, 1.0} for query in flat.queries)
    steps = boolean_from_real(Adaptive(play))
    for pattern in ((1,), (1, -1)):
        assert abs(run(steps, Biased(NUMBERS, pattern)) - truth) <= 0.05
        answers = Biased(NUMBERS, pattern).answer(flat.queries[:-1])
        assert abs(flat.decode((*answers, 0.0)) - truth) <= 0.05
