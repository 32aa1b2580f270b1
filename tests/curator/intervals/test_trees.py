"""Interval counts: trees and least squares against dense matrices, and the square-root
factorization with whole coefficients."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from local_dp.arrays import Counts, Floats
from local_dp.curator import intervals
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.intervals import CountTree, PrefixFactorization, Shape
from local_dp.curator.multisets import Multiset
from local_dp.interaction import run
from local_dp.loss import NANO, Pure
from tests.support.runs.scripted import Script, seeded


def test_a_tree_is_one_round_of_levels() -> None:
    """The oracle takes the loss of all levels and answers as `release` does from the same words."""
    database, tree = Multiset.of([0, 5, 5, 200], 8), CountTree(8, 1.0)
    oracle = TrustedOracle(database, Account(tree.loss), seeded(3))
    answer = run(tree.algorithm(database.size), oracle)
    assert np.array_equal(answer.below, tree.release(database, seeded(3)).below)
    assert (oracle.rounds, oracle.queries, oracle.account.spent) == (1, 2, Pure(NANO))


@pytest.mark.parametrize(
    ("bits", "branching", "levels"), [(2, 2, 2), (8, 256, 1), (8, 16, 2), (20, 16, 5), (10, 3, 7)]
)
def test_levels_share_the_budget(bits: int, branching: int, levels: int) -> None:
    """As many as the branching needs, the last one of single points, and together no more than
    epsilon, to a nano-nat each."""
    tree = CountTree(bits, 1.0, branching)
    assert len(tree.levels) == levels
    assert tree.levels[-1].cells == 1 << bits
    assert NANO - levels < tree.loss.nano <= NANO


SHAPES = [Shape(8, 2), Shape(8, 8), Shape(8, 3), Shape(9, 3), Shape(16, 4), Shape(32, 5)]


def measured(shape: Shape) -> list[Floats]:
    """The matrix of each level: a row for each node, 1 at the leaves below it."""
    leaves = np.arange(shape.leaves)
    nodes = [np.arange(-(-shape.leaves // width))[:, None] for width in shape.widths]
    return [
        (leaves // width == node).astype(float)
        for node, width in zip(nodes, shape.widths, strict=True)
    ]


def solved(shape: Shape) -> tuple[Floats, Floats]:
    """Least squares under a given sum, by its optimality conditions: the leaves as a function of
    the counts, and of the sum."""
    rows = np.concatenate(measured(shape))
    leaves = shape.leaves
    ones = np.ones((leaves, 1))
    system = np.block([[rows.T @ rows, ones], [ones.T, np.zeros((1, 1))]])
    inverse = np.linalg.inv(system)
    return inverse[:leaves, :leaves] @ rows.T, inverse[:leaves, leaves]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_the_dense_solution(shape: Shape) -> None:
    """Of random counts, whole trees and ragged ones; adding the counts up as they are is another
    answer, and the same of exact counts."""
    generator, levels = np.random.default_rng(1), measured(shape)
    counts = [generator.integers(-9, 30, len(level)) for level in levels]
    of_counts, of_total = solved(shape)
    expected = of_counts @ np.concatenate(counts) + of_total * 71
    assert intervals.consistent(counts, shape, 71) == pytest.approx(expected, abs=1e-9)
    plain = np.diff(intervals.nested(counts, shape, 71))
    assert shape.height == 1 or np.abs(plain - expected).max() > 0.1
    leaves = np.arange(shape.leaves)
    exact = [(level @ leaves).astype(np.int64) for level in levels]
    plain = np.diff(intervals.nested(exact, shape, int(leaves.sum())))
    assert plain == pytest.approx(leaves, abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_variances_are_those_of_the_dense_solution(shape: Shape) -> None:
    """Of all counts below a point, exactly; of all intervals the closed form is an upper bound,
    within a factor 2.2 of the largest."""
    of_counts, _ = solved(shape)
    sums = np.concatenate([np.zeros((1, of_counts.shape[1])), np.cumsum(of_counts, axis=0)])
    assert intervals.prefix_variances(shape) == pytest.approx((sums**2).sum(axis=1), abs=1e-9)
    widest = max(float(((high - low) ** 2).sum()) for high in sums for low in sums)
    bound = intervals.largest_variance(shape.leaves, shape.branching)
    assert widest <= bound * (1 + 1e-9) <= 2.2 * widest


def matrix(coefficients: Counts) -> Counts:
    """The lower-triangular Toeplitz matrix with this first column."""
    places = np.arange(len(coefficients))
    lags = places[:, None] - places
    return np.where(lags >= 0, coefficients[np.maximum(lags, 0)], 0)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2**32), st.integers(0, 2**13)), min_size=1, max_size=30))
def test_products_are_exact(pairs: list[tuple[int, int]]) -> None:
    """Against Python's whole numbers, up to the largest sums there are."""
    a, b = np.array(pairs).T
    expected = np.convolve(a.astype(object), b.astype(object))[: len(pairs)]
    assert intervals.exact_product(a, b).tolist() == expected.tolist()


@pytest.mark.parametrize("bits", [1, 2, 5, 8])
def test_sensitivity_over_all_pairs(bits: int) -> None:
    """Every record replaced by every other, in whole numbers: the largest squared distance of two
    columns."""
    mechanism = PrefixFactorization(bits, 1.0, 1e-6)
    columns = matrix(mechanism.coefficients).T
    worst = max(int(((columns - other) ** 2).sum(axis=1).max()) for other in columns)
    assert mechanism.square == worst
    # of a record that is added: too little
    assert bits == 1 or mechanism.square > int((columns[0] ** 2).sum())


def test_what_is_released_is_the_product_and_noise() -> None:
    """With words that draw no noise, W x, exactly, and no error; with noise, errors of the
    deviations that a dense inverse of W has."""
    mechanism, database = PrefixFactorization(4, 1.0, 1e-6), Multiset.of([0, 3, 3, 15], 4)
    weights = matrix(mechanism.coefficients)
    counts = np.bincount([0, 3, 3, 15], minlength=16)
    assert mechanism.measured(database, Script([0] * 32)).tolist() == (weights @ counts).tolist()
    assert np.abs(mechanism.release(database, Script([0] * 32)).errors(database)).max() < 1e-9
    rows = np.tril(np.ones((16, 16))) @ np.linalg.inv(weights.astype(float))
    spread = math.sqrt(mechanism.variance + 1 / 12) * np.linalg.norm(rows, axis=1)
    assert mechanism.deviations()[1:] == pytest.approx(spread, rel=1e-6)


def test_coefficients_are_those_of_the_root() -> None:
    """Rounded so that their sums are within 1/2 of binom(2k, k) / 4^k times the scale, all of them
    0 or more."""
    coefficients = PrefixFactorization(8, 1.0, 1e-6).coefficients
    exact, total = Fraction(1), Fraction(0)
    for k, records in enumerate(np.cumsum(coefficients).tolist()):
        total += 32 * exact
        assert abs(records - total) <= Fraction(1, 2)
        exact *= Fraction(2 * k + 1, 2 * k + 2)
    assert coefficients.min() >= 0


def test_privacy_of_two_points_by_enumeration() -> None:
    """A replaced record moves W x by W (e_a - e_b), whatever x is. All whole answers: within delta,
    and most of it; not with half the variance."""
    mechanism = PrefixFactorization(1, 1.0, 1e-2)
    move = tuple((matrix(mechanism.coefficients) @ [1, -1]).tolist())

    def price(variance: float) -> float:
        sigma, most = math.sqrt(variance), int(12 * math.sqrt(variance)) + 8
        one = np.diff(norm.cdf((np.arange(-most, most + 2) - 0.5) / sigma))
        law = np.outer(one, one)
        return float(np.maximum(law - math.e * np.roll(law, move, axis=(0, 1)), 0).sum())

    assert 0.75e-2 < price(mechanism.variance) <= 1e-2 < price(mechanism.variance / 2)
