"""Trees of counts: their privacy, and least squares on them against dense matrices."""

from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.intervals import CountTree, Level, Shape, best_branching, branchings, consistent, largest_variance, nested, prefix_variances
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.mechanism import Neighbours
from local_dp.curator.multisets import Multiset
from local_dp.draws import Draws
from local_dp.errors import RefusedError
from local_dp.interaction import run
from local_dp.loss import NANO, Pure, exp_epsilon, split_epsilon
from local_dp.noise import KeyedNoise

TREE = CountTree(2, 1.5, branching=2)


@dataclass(frozen=True)
class FreeLeaves(CountTree):
    """A wrong twin: the level of the points is not paid for."""

    @property
    def levels(self) -> tuple[Level, ...]:
        each = split_epsilon(self.epsilon, self.shape.height - 1)
        return tuple(Level(self.bits, width, each) for width in self.shape.widths)

    @property
    def loss(self) -> Pure:
        return sum((level.loss for level in self.levels[:-1]), Pure(0))


def points(records: tuple[tuple[int], ...]) -> Multiset:
    return Multiset.of([value for (value,) in records], 2)


def databases(n: int) -> SmallDatabases[tuple[int], Multiset]:
    """All of n records of four points."""
    return SmallDatabases([(0,), (1,), (2,), (3,)], n, points)


def worst_ratio(levels: tuple[Level, ...], n: int, neighbours: Neighbours) -> Fraction:
    """The largest ratio of the probabilities of one answer of all levels: they are independent, so the product of each level's, pair by pair."""
    laws = {(level, records): level.cut_law(points(records), n) for level in levels for pair in databases(n).pairs(neighbours) for records in pair}

    def ratio(level: Level, here: tuple[tuple[int], ...], there: tuple[tuple[int], ...]) -> Fraction:
        law, other, most, least = laws[level, here], laws[level, there], 0, 1
        for answer, weight in law.items():
            if weight * least > most * other[answer]:
                most, least = weight, other[answer]
        return Fraction(most * sum(other.values()), least * sum(law.values()))

    return max(prod((ratio(level, here, there) for level in levels), start=Fraction(1)) for here, there in databases(n).pairs(neighbours))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_tree_is_pure_by_enumeration(neighbours: Neighbours) -> None:
    """All levels together: epsilon against a replaced record, half of it against one more or less, exactly; the twin of free leaves passes it."""
    allowed = exp_epsilon(TREE.loss.nano if neighbours == "replace" else Fraction(TREE.loss.nano, 2))
    assert allowed * (1 - Fraction(1, 10**40)) < worst_ratio(TREE.levels, 1, neighbours) <= allowed
    assert worst_ratio(FreeLeaves(2, 1.5, branching=2).levels, 1, neighbours) > 1.4 * allowed


def test_a_tree_is_one_round_of_levels() -> None:
    """The oracle takes the loss of all levels and answers as `release` does from the same words; a smaller budget takes nothing."""
    database = Multiset.of([0, 5, 5, 200], 8)
    tree = CountTree(8, 1.0)
    oracle = TrustedOracle(database, Account(tree.loss), Draws(KeyedNoise(3)))
    answered = run(tree.algorithm(database.size), oracle)
    assert np.array_equal(answered.below, tree.release(database, Draws(KeyedNoise(3))).below)
    assert (oracle.rounds, oracle.queries, oracle.account.spent) == (1, 2, Pure(NANO))
    with pytest.raises(RefusedError, match="exceeds the budget"):
        run(tree.algorithm(database.size), TrustedOracle(database, Account(Pure(NANO - 1)), Draws(KeyedNoise(3))))


@pytest.mark.parametrize(("bits", "branching", "levels"), [(2, 2, 2), (8, 256, 1), (8, 16, 2), (20, 16, 5), (10, 3, 7)])
def test_levels_share_the_budget(bits: int, branching: int, levels: int) -> None:
    """As many as the branching needs, the last one of single points, and together no more than epsilon, to a nano-nat each."""
    tree = CountTree(bits, 1.0, branching)
    assert len(tree.levels) == levels
    assert tree.levels[-1].cells == 1 << bits
    assert NANO - levels < tree.loss.nano <= NANO


SHAPES = [Shape(8, 2), Shape(8, 8), Shape(8, 3), Shape(9, 3), Shape(16, 4), Shape(32, 5)]


def measured(shape: Shape) -> list[Floats]:
    """The matrix of each level: a row for each node, 1 at the leaves below it."""
    return [(np.arange(shape.leaves) // width == np.arange(-(-shape.leaves // width))[:, None]).astype(float) for width in shape.widths]


def solved(shape: Shape) -> tuple[Floats, Floats]:
    """Least squares under a given sum, by its optimality conditions: the leaves as a function of the counts, and of the sum."""
    rows = np.concatenate(measured(shape))
    leaves = shape.leaves
    system = np.block([[rows.T @ rows, np.ones((leaves, 1))], [np.ones((1, leaves)), np.zeros((1, 1))]])
    inverse = np.linalg.inv(system)
    return inverse[:leaves, :leaves] @ rows.T, inverse[:leaves, leaves]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_the_dense_solution(shape: Shape) -> None:
    """Of random counts, whole trees and ragged ones; adding the counts up as they are is another answer."""
    generator = np.random.default_rng(1)
    counts = [generator.integers(-9, 30, len(level)) for level in measured(shape)]
    of_counts, of_total = solved(shape)
    expected = of_counts @ np.concatenate(counts) + of_total * 71
    assert consistent(counts, shape, 71) == pytest.approx(expected, abs=1e-9)
    if shape.height > 1:
        assert np.abs(np.diff(nested(counts, shape, 71)) - expected).max() > 0.1


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_variances_are_those_of_the_dense_solution(shape: Shape) -> None:
    """Of all counts below a point, exactly; of all intervals the closed form is an upper bound, within a factor 2.2 of the largest."""
    of_counts, _ = solved(shape)
    sums = np.concatenate([np.zeros((1, of_counts.shape[1])), np.cumsum(of_counts, axis=0)])
    assert prefix_variances(shape) == pytest.approx((sums**2).sum(axis=1), abs=1e-9)
    widest = max(float(((high - low) ** 2).sum()) for high in sums for low in sums)
    assert widest <= largest_variance(shape.leaves, shape.branching) * (1 + 1e-9) <= 2.2 * widest


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exact_counts_are_left_as_they_are(shape: Shape) -> None:
    """By least squares and by adding up."""
    leaves = np.random.default_rng(2).integers(0, 20, shape.leaves)
    counts = [(level @ leaves).astype(np.int64) for level in measured(shape)]
    assert consistent(counts, shape, leaves.sum()) == pytest.approx(leaves, abs=1e-9)
    assert nested(counts, shape, leaves.sum()) == pytest.approx(np.append(0, np.cumsum(leaves)), abs=1e-9)


def test_the_best_branching() -> None:
    """Sixteen on domains of 2^8, 2^12, 2^16, 2^20; a flat histogram below 2^8; of each height only the smallest branching is tried."""
    assert [best_branching(bits, 1.0) for bits in (8, 12, 16, 20)] == [16] * 4
    assert [best_branching(bits, 1.0) for bits in range(1, 8)] == [1 << bits for bits in range(1, 8)]
    assert list(branchings(64)) == [2, 3, 4, 8, 64]
    every = {branching: CountTree(10, 1.0, branching).deviation for branching in range(2, 130)}
    assert min(every, key=lambda branching: every[branching]) == best_branching(10, 1.0)


def test_errors_have_their_variance() -> None:
    """Over 400 releases of a 16-ary tree of 2^8, the mean square of each threshold's error, in standard ones, averages 1 within 6 standard errors.

    It does not with the variance of half the noise.
    """
    tree, database = CountTree(8, 1.0), Multiset.of([3, 3, 200], 8)
    draws, one = Draws(KeyedNoise(5)), 1 / (np.cosh(tree.levels[0].epsilon / 2) - 1)
    exact = one * prefix_variances(tree.shape)[1:-1]
    scores = np.array([np.mean(tree.release(database, draws).errors(database)[1:-1] ** 2 / exact) for _ in range(400)])
    standard = scores.std() / 20
    assert abs(scores.mean() - 1) < 6 * standard < 0.5


def test_the_largest_errors() -> None:
    """Means over runs of the largest error of a threshold and of an interval, within 6 standard errors and 3 % of what the documents say."""
    stated = {(8, 256): (37.1, 52.2), (8, 16): (34.8, 57.6), (8, 2): (71.4, 124.4)}
    for (bits, branching), figures in stated.items():
        tree, database, draws = CountTree(bits, 1.0, branching), Multiset.of([3, 3, 9], bits), Draws(KeyedNoise(bits))
        errors = [tree.release(database, draws).errors(database) for _ in range(150)]
        for figure, result in zip(figures, ([np.abs(each).max() for each in errors], [np.ptp(each) for each in errors]), strict=True):
            assert abs(np.mean(result) - figure) < 6 * np.std(result) / 150**0.5 + 0.03 * figure
