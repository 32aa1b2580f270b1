"""The sizes that KLNRS only remarks on: VC classes, and parity with a test set."""

import math
from itertools import pairwise

import numpy as np
import pytest

from local_dp.bounds.curator import occam_examples, paper_parity_examples
from local_dp.bounds.simulations import chosen_examples, growth, vc_examples, verified_parity_examples
from local_dp.errors import InputError

POINTS = 7


def labellings(*edges: int) -> int:
    """How many sets of POINTS points are unions of at most `edges` / 2 intervals (an odd edge: up to the end); VC dimension `edges`."""
    return sum(bin(mask ^ (mask << 1) & ~(1 << POINTS)).count("1") <= edge for edge in edges for mask in range(1 << POINTS))


@pytest.mark.parametrize("dimension", [0, 1, 2, 3, 4, 6, 7])
def test_sauers_count_is_attained(dimension: int) -> None:
    """Subsets of the line with at most v changes have VC dimension v and exactly as many labellings as Sauer's lemma allows; v - 1 would be too few."""
    assert labellings(dimension) == growth(dimension, POINTS)
    assert dimension == 0 or labellings(dimension) > growth(dimension - 1, POINTS)


def test_vc_sizes_grow_with_the_dimension_times_the_logarithm_of_the_points() -> None:
    """Thresholds over N points cost what N + 1 hypotheses do, and each squaring of N adds about as much again for each of v dimensions."""
    assert vc_examples(1, 255, 1.0, 0.1, 0.1) == occam_examples(256, 1.0, 0.1, 0.1)
    for dimension in (1, 2, 3):
        sizes = [vc_examples(dimension, 1 << power, 1.0, 0.1, 0.1) for power in (8, 16, 32)]
        assert sizes[2] - sizes[1] == pytest.approx(2 * (sizes[1] - sizes[0]), rel=0.05)
        assert sizes[1] - sizes[0] == pytest.approx(dimension * 8 * math.log(2) / math.log(1 / 0.1) * (occam_examples(1, 1.0, 0.1, 0.1)), rel=0.05)
    assert vc_examples(100, 1 << 32, 1.0, 0.1, 0.1) < 100 * vc_examples(1, 1 << 32, 1.0, 0.1, 0.1)  # some 10^800 labellings
    with pytest.raises(InputError, match="VC dimension"):
        vc_examples(-1, 4, 1.0, 0.1, 0.1)


def chance_of_the_bad_one(n: int, epsilon: float, alpha: float) -> float:
    """Exact: two candidates, the bad one errs alone with probability alpha and the good one alone with alpha / 2; the exponential mechanism on n records."""
    law = np.array([1.0])
    for _ in range(n):
        law = np.convolve(law, [alpha / 2, 1 - 1.5 * alpha, alpha])
    more = np.arange(-n, n + 1)
    return float(law @ (1 / (1 + np.exp(epsilon / 2 * more))))


@pytest.mark.parametrize(("epsilon", "alpha", "beta"), [(0.5, 0.2, 0.1), (1.0, 0.1, 0.05), (4.0, 0.2, 0.01)])
def test_the_test_set_chooses_well(epsilon: float, alpha: float, beta: float) -> None:
    """With `chosen_examples` the worse of two is chosen with probability at most beta, by the exact law; with a sixth of them it is chosen more often."""
    n = chosen_examples(1, epsilon, alpha, beta)
    assert chance_of_the_bad_one(n, epsilon, alpha) <= beta < chance_of_the_bad_one(n // 6, epsilon, alpha)


@pytest.mark.parametrize(("d", "exponent"), [(4, 7), (8, 11), (16, 21)])
def test_a_test_set_removes_a_logarithm(d: int, exponent: int) -> None:
    """In ln(1/beta) the size with a test set grows in a line, that of Theorem 3.8 as a square; they cross near the stated beta, and not before."""
    betas = [10.0**-power for power in (20, 40, 60, 80)]
    tested, printed = ([size(d, 0.5, 0.1, beta) for beta in betas] for size in (verified_parity_examples, paper_parity_examples))
    steps = [later - earlier for earlier, later in pairwise(tested)]
    assert max(steps) < 1.02 * min(steps)
    rises = [later - earlier for earlier, later in pairwise(printed)]
    assert rises[-1] > 1.5 * rises[0]
    sooner, later = 10.0 ** (2 - exponent), 10.0 ** -(exponent + 2)
    assert verified_parity_examples(d, 0.5, 0.1, sooner) > paper_parity_examples(d, 0.5, 0.1, sooner)
    assert verified_parity_examples(d, 0.5, 0.1, later) < paper_parity_examples(d, 0.5, 0.1, later)
    with pytest.raises(InputError, match="alpha"):
        verified_parity_examples(d, 0.5, 0.6, 0.1)
