"""Interval counts: trees and least squares against dense matrices, and the square-root
factorization with whole coefficients."""

import math
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from local_dp.accounting.losses import gaussian_delta
from local_dp.arrays import Counts, Floats
from local_dp.curator import intervals
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.intervals import CountTree, Level, PrefixFactorization, Shape
from local_dp.curator.mechanism import Neighbours, SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.errors import RefusedError
from local_dp.interaction import run
from local_dp.loss import NANO, Approximate, Pure, exp_epsilon, split_epsilon
from tests.support.mechanisms.case import points
from tests.support.runs.scripted import Script, seeded

TREE = CountTree(2, 1.5, branching=2)


FREE_LEAVES = tuple(
    Level(2, width, split_epsilon(1.5, TREE.shape.height - 1)) for width in TREE.shape.widths
)
"""A wrong twin: the level of the points is not paid for."""


def databases(n: int) -> SmallDatabases[tuple[int], Multiset]:
    return SmallDatabases([(0,), (1,), (2,), (3,)], n, points(2))


def worst_ratio(levels: tuple[Level, ...], n: int, neighbours: Neighbours) -> Fraction:
    """The largest ratio of the probabilities of one answer of all levels: they are independent, so
    the product of each level's, pair by pair."""
    laws = {
        (level, records): level.cut_law(points(2)(records), n)
        for level in levels
        for pair in databases(n).pairs(neighbours)
        for records in pair
    }

    def ratio(
        level: Level, here: tuple[tuple[int], ...], there: tuple[tuple[int], ...]
    ) -> Fraction:
        law, other, most, least = laws[level, here], laws[level, there], 0, 1
        for answer, weight in law.items():
            if weight * least > most * other[answer]:
                most, least = weight, other[answer]
        return Fraction(most * sum(other.values()), least * sum(law.values()))

    return max(
        prod((ratio(level, here, there) for level in levels), start=Fraction(1))
        for here, there in databases(n).pairs(neighbours)
    )


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_tree_is_pure_by_enumeration(neighbours: Neighbours) -> None:
    """All levels together: epsilon against a replaced record, half of it against one more or less,
    exactly; the twin of free leaves passes it."""
    allowed = exp_epsilon(
        TREE.loss.nano if neighbours == "replace" else Fraction(TREE.loss.nano, 2)
    )
    assert allowed * (1 - Fraction(1, 10**40)) < worst_ratio(TREE.levels, 1, neighbours) <= allowed
    assert worst_ratio(FREE_LEAVES, 1, neighbours) > 1.4 * allowed


def test_a_tree_is_one_round_of_levels() -> None:
    """The oracle takes the loss of all levels and answers as `release` does from the same words; a
    smaller budget takes nothing."""
    database = Multiset.of([0, 5, 5, 200], 8)
    tree = CountTree(8, 1.0)
    oracle = TrustedOracle(database, Account(tree.loss), seeded(3))
    answered = run(tree.algorithm(database.size), oracle)
    assert np.array_equal(answered.below, tree.release(database, seeded(3)).below)
    assert (oracle.rounds, oracle.queries, oracle.account.spent) == (1, 2, Pure(NANO))
    with pytest.raises(RefusedError, match="exceeds the budget"):
        run(
            tree.algorithm(database.size),
            TrustedOracle(database, Account(Pure(NANO - 1)), seeded(3)),
        )


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
    return [
        (np.arange(shape.leaves) // width == np.arange(-(-shape.leaves // width))[:, None]).astype(
            float
        )
        for width in shape.widths
    ]


def solved(shape: Shape) -> tuple[Floats, Floats]:
    """Least squares under a given sum, by its optimality conditions: the leaves as a function of
    the counts, and of the sum."""
    rows = np.concatenate(measured(shape))
    leaves = shape.leaves
    system = np.block(
        [[rows.T @ rows, np.ones((leaves, 1))], [np.ones((1, leaves)), np.zeros((1, 1))]]
    )
    inverse = np.linalg.inv(system)
    return inverse[:leaves, :leaves] @ rows.T, inverse[:leaves, leaves]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_the_dense_solution(shape: Shape) -> None:
    """Of random counts, whole trees and ragged ones; adding the counts up as they are is another
    answer."""
    generator = np.random.default_rng(1)
    counts = [generator.integers(-9, 30, len(level)) for level in measured(shape)]
    of_counts, of_total = solved(shape)
    expected = of_counts @ np.concatenate(counts) + of_total * 71
    assert intervals.consistent(counts, shape, 71) == pytest.approx(expected, abs=1e-9)
    if shape.height > 1:
        assert np.abs(np.diff(intervals.nested(counts, shape, 71)) - expected).max() > 0.1


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_variances_are_those_of_the_dense_solution(shape: Shape) -> None:
    """Of all counts below a point, exactly; of all intervals the closed form is an upper bound,
    within a factor 2.2 of the largest."""
    of_counts, _ = solved(shape)
    sums = np.concatenate([np.zeros((1, of_counts.shape[1])), np.cumsum(of_counts, axis=0)])
    assert intervals.prefix_variances(shape) == pytest.approx((sums**2).sum(axis=1), abs=1e-9)
    widest = max(float(((high - low) ** 2).sum()) for high in sums for low in sums)
    assert (
        widest
        <= intervals.largest_variance(shape.leaves, shape.branching) * (1 + 1e-9)
        <= 2.2 * widest
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exact_counts_are_left_as_they_are(shape: Shape) -> None:
    leaves = np.random.default_rng(2).integers(0, 20, shape.leaves)
    counts = [(level @ leaves).astype(np.int64) for level in measured(shape)]
    assert intervals.consistent(counts, shape, leaves.sum()) == pytest.approx(leaves, abs=1e-9)
    assert intervals.nested(counts, shape, leaves.sum()) == pytest.approx(
        np.append(0, np.cumsum(leaves)), abs=1e-9
    )


@pytest.mark.long
def test_the_best_branching() -> None:
    """Sixteen on domains of 2^8, 2^12, 2^16, 2^20; a flat histogram below 2^8; of each height only
    the smallest branching is tried."""
    assert [intervals.best_branching(bits, 1.0) for bits in (8, 12, 16, 20)] == [16] * 4
    assert [intervals.best_branching(bits, 1.0) for bits in range(1, 8)] == [
        1 << bits for bits in range(1, 8)
    ]
    assert list(intervals.branchings(64)) == [2, 3, 4, 8, 64]
    every = {branching: CountTree(10, 1.0, branching).deviation for branching in range(2, 34)}
    assert min(every, key=lambda branching: every[branching]) == intervals.best_branching(10, 1.0)


def test_errors_have_their_variance() -> None:
    """Over 400 releases of a 16-ary tree of 2^8, the mean square of each threshold's error, in
    standard ones, averages 1 within 6 standard errors. It does not with the variance of half the
    noise."""
    tree, database = CountTree(8, 1.0), Multiset.of([3, 3, 200], 8)
    draws, one = seeded(5), 1 / (np.cosh(tree.levels[0].epsilon / 2) - 1)
    exact = one * intervals.prefix_variances(tree.shape)[1:-1]
    scores = np.array(
        [
            np.mean(tree.release(database, draws).errors(database)[1:-1] ** 2 / exact)
            for _ in range(400)
        ]
    )
    standard = scores.std() / 20
    assert abs(scores.mean() - 1) < 6 * standard < 0.5


def matrix(coefficients: Counts) -> Counts:
    """The lower-triangular Toeplitz matrix with this first column."""
    places = np.arange(len(coefficients))
    lags = places[:, None] - places
    return np.where(lags >= 0, coefficients[np.maximum(lags, 0)], 0)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2**32), st.integers(0, 2**13)), min_size=1, max_size=30))
def test_products_are_exact(pairs: list[tuple[int, int]]) -> None:
    """Against Python's whole numbers, up to the largest sums there are."""
    a, b = ([pair[k] for pair in pairs] for k in (0, 1))
    expected = [sum(a[j] * b[i - j] for j in range(i + 1)) for i in range(len(a))]
    assert intervals.exact_product(np.array(a), np.array(b)).tolist() == expected


def test_a_series_times_its_inverse() -> None:
    """Is 1, at lengths that are powers of two and that are not."""
    for size in (1, 2, 5, 64, 100):
        series = np.append(3.0, np.random.default_rng(size).random(size - 1) / size)
        assert intervals.series_product(series, intervals.series_inverse(series)) == pytest.approx(
            np.eye(size)[0], abs=1e-12
        )


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


@settings(max_examples=30)
@given(st.lists(st.integers(0, 50), min_size=2, max_size=12))
def test_sensitivity_of_any_coefficients(column: list[int]) -> None:
    columns = matrix(np.array(column)).T
    assert intervals.square_sensitivity(np.array(column)) == max(
        int(((a - b) ** 2).sum()) for a in columns for b in columns
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (8.0, 1e-9)])
def test_noise_is_the_least_that_the_loss_allows(epsilon: float, delta: float) -> None:
    """A variance one smaller has a larger delta; against records added or removed, half the squared
    sensitivity or more, it has less."""
    mechanism = PrefixFactorization(6, epsilon, delta)
    assert mechanism.loss == Approximate(round(epsilon * 10**9), round(delta * 10**18))
    spent = [
        gaussian_delta(math.sqrt(mechanism.square / variance), epsilon)
        for variance in (mechanism.variance, mechanism.variance - 1)
    ]
    assert spent[0] <= delta < spent[1]


def test_what_is_released_is_the_product_and_noise() -> None:
    """With words that draw no noise, W x itself, exactly; from drawn noise, the same plus noise
    that does not depend on x."""
    mechanism, database = PrefixFactorization(4, 1.0, 1e-6), Multiset.of([0, 3, 3, 15], 4)
    counts = np.bincount([0, 3, 3, 15], minlength=16)
    assert (
        mechanism.measured(database, Script([0] * 32)).tolist()
        == (matrix(mechanism.coefficients) @ counts).tolist()
    )
    noise = mechanism.measured(database, seeded(4)) - matrix(mechanism.coefficients) @ counts
    other = Multiset.of([7, 7, 7, 8], 4)
    assert np.array_equal(
        mechanism.measured(other, seeded(4)) - noise,
        matrix(mechanism.coefficients) @ np.bincount([7, 7, 7, 8], minlength=16),
    )


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


@pytest.mark.parametrize("bits", [2, 6, 11])
def test_rounding_costs_little(bits: int) -> None:
    """Row norm times sensitivity, against that of the root itself: within 5 % on small domains and
    2 % on larger ones."""
    mechanism = PrefixFactorization(bits, 1.0, 1e-6)
    root = np.append(1.0, np.cumprod(1 - 1 / (2 * np.arange(1, 1 << bits))))
    lags = [
        float(((root - np.append(np.zeros(d), root[: len(root) - d])) ** 2).sum())
        for d in range(1, len(root))
    ]
    best = math.sqrt(max(lags) * float((root**2).sum()))
    assert (
        0.98
        < math.sqrt(mechanism.square) * np.linalg.norm(mechanism.decoding) / best
        < (1.05 if bits == 2 else 1.02)
    )


def test_errors_of_the_factorization_have_their_variance() -> None:
    """Over 300 releases, squares of all thresholds' errors in standard ones average 1 within 6
    standard errors: unbiased, and no larger than said."""
    mechanism, database, draws = (
        PrefixFactorization(7, 1.0, 1e-6),
        Multiset.of([0, 100, 100, 127], 7),
        seeded(6),
    )
    errors = np.array([mechanism.release(database, draws).errors(database)[1:] for _ in range(300)])
    scores = np.mean((errors / mechanism.deviations()[1:]) ** 2, axis=1)
    standard = scores.std() / 300**0.5
    assert abs(scores.mean() - 1) < 6 * standard < 0.5
    assert np.abs(errors.mean(axis=0) / mechanism.deviations()[1:]).max() < 6 / 300**0.5


def test_privacy_of_two_points_by_enumeration() -> None:
    """All pairs of replaced records, all whole answers W x + z: within delta, and most of it; not
    with half the variance. The noise does not depend on x, so a pair of neighbours is the move W
    (e_a - e_b) alone, whatever the other records are."""
    mechanism = PrefixFactorization(1, 1.0, 1e-2)
    columns = matrix(mechanism.coefficients).T

    def spent(variance: float) -> float:
        sigma, most = math.sqrt(variance), int(12 * math.sqrt(variance)) + 8
        borders = (np.arange(-most, most + 2) - 0.5) / sigma
        one = np.diff(norm.cdf(borders))
        law, worst = np.outer(one, one), 0.0
        for move in (columns[0] - columns[1], columns[1] - columns[0]):
            other = np.roll(law, tuple(move.tolist()), axis=(0, 1))
            worst = max(worst, float(np.maximum(law - math.e * other, 0).sum()))
        return worst

    assert 0.75e-2 < spent(mechanism.variance) <= 1e-2 < spent(mechanism.variance / 2)
