"""Trees of counts: private by enumeration, level by level, and as one algorithm."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.curator.account import Account
from local_dp.curator.intervals.level import IntervalCounts, Level, LevelCounts
from local_dp.curator.intervals.tree import CountTree
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.mechanism import Neighbours
from local_dp.curator.multisets import Multiset
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import run
from local_dp.loss import NANO, Pure, exp_epsilon, split_epsilon
from local_dp.noise import KeyedNoise

TREE = CountTree(2, 1.5, branching=2)


@dataclass(frozen=True)
class OneCount(Level):
    """A wrong twin: the noise of a record that is counted in one interval only, as if a replaced one did not appear in another."""

    @property
    def noise(self) -> Fraction:
        return Fraction(self.loss.nano)


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
        for told, weight in law.items():
            if weight * least > most * other[told]:
                most, least = weight, other[told]
        return Fraction(most * sum(other.values()), least * sum(law.values()))

    return max(prod((ratio(level, here, there) for level in levels), start=Fraction(1)) for here, there in databases(n).pairs(neighbours))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("width", [1, 2])
def test_a_level_is_pure_by_enumeration(width: int, n: int) -> None:
    """No delta at its epsilon on all pairs; for one record all of its epsilon is needed, and the twin of one count has a delta of .1."""
    level = Level(2, width, 1.5)
    assert databases(n).worst_delta(level) == 0
    if n == 1:
        assert databases(n).worst_delta(level, Pure(level.loss.nano - 1)) > 0
        assert databases(n).worst_delta(OneCount(2, width, 1.5)) > 0.1


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_tree_is_pure_by_enumeration(neighbours: Neighbours) -> None:
    """All levels together: epsilon against a replaced record, half of it against one more or less, exactly; the twin of free leaves passes it."""
    allowed = exp_epsilon(TREE.loss.nano if neighbours == "replace" else Fraction(TREE.loss.nano, 2))
    assert allowed * (1 - Fraction(1, 10**40)) < worst_ratio(TREE.levels, 3, neighbours) <= allowed
    assert worst_ratio(FreeLeaves(2, 1.5, branching=2).levels, 1, neighbours) > 1.4 * allowed


def test_the_code_draws_from_its_law() -> None:
    """6,000 levels, cut to 0..m, fit their law (chi-squared, failure 1e-6); not that of a neighbour."""
    level, draws = Level(2, 2, 1.5), Draws(KeyedNoise(2))
    drawn = Counter(tuple(np.clip(level.release(Multiset.of([0, 1, 3], 2), draws).counts, 0, 3).tolist()) for _ in range(6000))

    def p_value(database: Multiset) -> float:
        law = level.law(database)
        total, counts = sum(law.values()), [drawn[tuple(told.counts.tolist())] for told in law]
        return float(chisquare(counts, [6000 * weight / total for weight in law.values()]).pvalue)

    assert p_value(Multiset.of([0, 1, 3], 2)) > 1e-6 > p_value(Multiset.of([0, 2, 3], 2))


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


def test_counts_of_a_level_are_equal_by_value() -> None:
    assert LevelCounts(np.array([1, 2])) == LevelCounts(np.array([1, 2])) != LevelCounts(np.array([2, 1]))


def test_bad_input_gets_a_line() -> None:
    """Of the mechanisms, of databases of another domain, and of intervals."""
    with pytest.raises(InputError, match="bits is 23"):
        CountTree(23, 1.0)
    with pytest.raises(InputError, match="branching is 1"):
        CountTree(4, 1.0, 1)
    with pytest.raises(InputError, match="for 4 levels"):
        CountTree(4, 3e-9, 2)
    with pytest.raises(InputError, match="one domain"):
        TREE.release(Multiset.of([1], 3), Draws(KeyedNoise(0)))
    with pytest.raises(InputError, match="width is 0"):
        Level(2, 0, 1.0)
    with pytest.raises(InputError, match="up to 4096 outcomes"):
        Level(2, 1, 1.0).law(Multiset.of([0] * 9, 2))
    with pytest.raises(InputError, match="low <= x < high"):
        IntervalCounts(np.zeros(5)).count(3, 2)
