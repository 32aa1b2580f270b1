"""Packing: how few records a purely private algorithm cannot do with."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from local_dp.bounds.packing import (
    is_excluded,
    k_point_records,
    least_not_excluded,
    least_records,
    point_records,
    point_records_printed,
    pure_success,
    sanitizer_records,
    sanitizer_size,
    threshold_records,
)
from local_dp.bounds.tails import CountLaw, log_sum
from local_dp.errors import InputError

BITS = [16, 32, 64, 128, 256]


@pytest.mark.parametrize(("n", "share"), [(5, 0.5), (300, 0.1), (100_000, 0.01)])
def test_the_binomial_law(n: int, share: float) -> None:
    """Against another implementation; nothing of weight lies outside of what is listed."""
    law = CountLaw.binomial(n, share)
    assert law.shares == pytest.approx(binom.pmf(law.sizes, n, share), rel=1e-6, abs=1e-30)
    assert law.mean(law.sizes.astype(np.float64)) == pytest.approx(n * share)
    assert log_sum(np.zeros(0)) == -math.inf


@pytest.mark.parametrize("m", [3, 20, 60])
def test_the_least_of_all_algorithms(m: int) -> None:
    """E[e^(-eps K); K above its beta-quantile] is the least E[e^(-eps K) f(K)] with E f(K) >= 1 - beta: by linear programming over f."""
    law, epsilon, beta = CountLaw.binomial(m, 0.3), 0.7, 0.15
    weights = law.shares * np.exp(-epsilon * law.sizes)
    least = linprog(weights, A_ub=[-law.shares], b_ub=[-(1 - beta)], bounds=(0, 1)).fun
    border = math.log(beta) - math.log(least)
    assert is_excluded(border + 1e-6, law, epsilon, beta)
    assert not is_excluded(border - 1e-6, law, epsilon, beta)


def test_rows_of_learners() -> None:
    """At alpha = beta = .1 and epsilon 1; where Lemma 5.7's constants give 55 for points of 64 bits."""
    assert [point_records(bits, 1.0, 0.1, 0.1) for bits in BITS] == [155, 278, 520, 993, 1924]
    assert [threshold_records(bits, 1.0, 0.1, 0.1) for bits in BITS] == [73, 134, 254, 490, 954]
    assert point_records_printed(64, 1.0, 0.1) == 55
    assert [k_point_records(64, k, 1.0, 0.1, 0.1) for k in (2, 4, 8, 16)] == [92, 174, 332, 641]


def test_all_thresholds_exclude_more_than_odd_ones() -> None:
    """The 2^bits - 1 kinds of all t > 0 exclude each other as well: what the odd t of one more bit give."""

    def all_of(bits: int) -> int:
        return least_not_excluded(math.log((1 << bits) - 2), lambda m: CountLaw.binomial(m, 0.2), 1.0, 0.1)

    assert [all_of(bits) for bits in BITS] == [77, 138, 258, 494, 958]


def test_rows_of_sanitizers() -> None:
    """Lemma 4.15 with 2 alpha as a formula, and what is proven of it with whole records: up to 5 less; its next to last m is excluded by whole ones."""
    assert [math.ceil(sanitizer_size(bits, 1.0, 0.1, 0.1)) for bits in BITS] == [67, 122, 233, 455, 899]
    assert [int(sanitizer_size(bits, 1.0, 0.1, 0.1, times=3)) for bits in (16, 32, 64, 256)] == [44, 81, 155, 598]
    proven = [sanitizer_records(bits, 1.0, 0.1, 0.1) for bits in BITS]
    assert proven == [65, 120, 230, 450, 895]
    for bits, m in zip(BITS, proven, strict=True):
        log_others = math.log((1 << bits) - 1)
        assert is_excluded(log_others, CountLaw.always(m // 5), 1.0, 0.1)  # m - 1 records: more than .2 (m - 1) are m / 5
        assert not is_excluded(log_others, CountLaw.always(m // 5 + 1), 1.0, 0.1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("bits", [4, 16, 64])
def test_nothing_that_exists_is_excluded(bits: int, epsilon: float) -> None:
    """The exponential mechanism over all points does with more than is excluded, and with less than four times as many."""
    enough = least_records(lambda m: pure_success(bits, epsilon, m, 0.1))
    assert point_records(bits, epsilon, 0.1, 0.1) <= enough < 4 * point_records(bits, epsilon, 0.1, 0.1)


def test_domains_beyond_a_float() -> None:
    """2^65536 points, in logarithms: about proportional to the bits."""
    assert point_records(65536, 1.0, 0.1, 0.1) / point_records(32768, 1.0, 0.1, 0.1) == pytest.approx(2, rel=0.01)
    assert sanitizer_records(65536, 1.0, 0.1, 0.1) == 227_140
    assert threshold_records(65536, 1.0, 0.1, 0.1) > 60_000


def test_bad_input_gets_a_line() -> None:
    for k, bits, alpha, said in ((3, 64, 0.1, "even"), (2, 4, 0.1, "too few"), (2, 64, 0.3, "5 alpha is 1.5"), (0, 64, 0.1, "k is 0")):
        with pytest.raises(InputError, match=said):
            k_point_records(bits, k, 1.0, alpha, 0.1)
    with pytest.raises(InputError, match="bits is 65537"):
        point_records(65537, 1.0, 0.1, 0.1)
    with pytest.raises(InputError, match="epsilon is 0"):
        point_records(8, 0.0, 0.1, 0.1)
    with pytest.raises(InputError, match="2 alpha is 1"):
        threshold_records(8, 1.0, 0.5, 0.1)
    with pytest.raises(InputError, match="beta is 0"):
        sanitizer_records(8, 1.0, 0.1, 0)
