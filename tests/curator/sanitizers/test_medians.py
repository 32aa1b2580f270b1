"""Trees of medians: their loss by enumeration, and their error on five shapes of data."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.curator.laws import SmallDatabases, epsilon_of, hockey_stick
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.baselines import DyadicTree, NoisyHistogram
from local_dp.curator.sanitizers.medians import Medians, Node, TreeOfMedians
from local_dp.curator.sanitizers.sparse_medians import SparseMedians
from local_dp.curator.sanitizers.spread import Spread
from local_dp.curator.sanitizers.steps import Steps
from local_dp.curator.selection.exponential import numbered
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Pure, exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.populations.shapes import shaped


def databases(n: int, values: int = 4) -> SmallDatabases[tuple[int], Multiset]:
    """All of n records of a few values of 0..3."""
    return SmallDatabases([(value,) for value in range(values)], n, lambda records: Multiset.of([value for (value,) in records], 2))


@dataclass(frozen=True)
class Doubled(Medians):
    """A wrong twin: twice the exponent that the loss pays for."""

    @property
    def loss(self) -> Pure:
        return Pure(Medians(self.epsilon / 2, self.levels, self.low).loss.nano)


def lost(mechanism: Medians, n: int, values: int = 4) -> float:
    """The largest loss over all databases of n records and all replacements, in shares of its own."""
    return epsilon_of(max(databases(n, values).worst_ratios(mechanism).values())) / mechanism.loss.epsilon


def test_one_level_loses_nearly_what_it_says() -> None:
    """Two bits, 14 records, one level: .957 of epsilon; the twin of doubled weights more than epsilon."""
    assert lost(Medians(1.0, 1, 0), 14) == pytest.approx(0.957, abs=0.002)
    assert lost(Doubled(1.0, 1, 0), 14) > 1.2


@pytest.mark.parametrize(("n", "low"), [(3, 0), (5, 0), (2, 1)])
def test_two_levels_lose_no_more(n: int, low: int) -> None:
    """Ties, empty nodes and finer points included."""
    found = lost(Medians(1.0, 2, low), n)
    assert 0.3 < found <= 1
    if n < 5:
        assert lost(Doubled(2.0, 2, low), n) > 1.5 * found


def test_a_record_more_costs_half() -> None:
    """Databases of different sizes: what learning from both labels' medians rests on."""
    mechanism = Medians(1.0, 2, 0)
    worst = Fraction(1)
    for n in (1, 2, 3):
        for larger, smaller in databases(n).pairs("add-remove"):
            law, other = (mechanism.law(Multiset.of([value for (value,) in records], 2)) for records in (larger, smaller))
            total, others = sum(law.values()), sum(other.values())
            worst = max(worst, *(Fraction(weight * others, other[cuts] * total) for cuts, weight in law.items()))
    assert 0.2 < epsilon_of(worst) <= 0.5


@dataclass(frozen=True)
class LightGrowth(SparseMedians):
    """A wrong twin: a record is taken to lie in one dyadic interval."""

    def _choice(self, bits: int) -> SparseChoice:
        return replace(super()._choice(bits), growth=1)


def spare(mechanism: SparseMedians, pairs: Iterable[tuple[Multiset, Multiset]]) -> float:
    """The largest hockey stick when a record is removed, or was not there, in shares of the delta of that."""
    growth = exp_epsilon(mechanism.removed.nano)
    found = [max(hockey_stick(mechanism.law(one), mechanism.law(other), growth) for one, other in (pair, pair[::-1])) for pair in pairs]
    return float(max(found)) / mechanism.removed.delta


@pytest.mark.parametrize(("n", "levels"), [(1, 1), (2, 1), (5, 1), (2, 2)])
def test_sparse_medians_are_private(n: int, levels: int) -> None:
    """The worst delta over all databases and replacements is at most its own; half the loss for a record removed."""
    mechanism = SparseMedians(2.0, levels, 0, 1e-2)
    assert databases(n).worst_delta(mechanism) <= Fraction(mechanism.loss.atto, 10**18)
    pairs = (tuple(Multiset.of([value for (value,) in records], 2) for records in pair) for pair in databases(n).pairs("add-remove"))
    assert spare(mechanism, ((one, other) for one, other in pairs)) <= 1


def test_a_record_alone_in_its_intervals() -> None:
    """One at 7 beside 30 at 0, eight points: candidates that only it makes weigh nearly all of delta; a forgotten growth is too much."""
    pair = Multiset.of([0] * 30 + [7], 3), Multiset.of([0] * 30, 3)
    assert 0.4 < spare(SparseMedians(2.0, 1, 0, 1e-2), [pair]) <= 1
    assert spare(LightGrowth(2.0, 1, 0, 1e-2), [pair]) > 1.4


@pytest.mark.parametrize(("mechanism", "times"), [(Medians(1.0, 2, 1), 1), (SparseMedians(2.0, 2, 1, 1e-2), 12)], ids=["pure", "sparse"])
def test_the_code_draws_from_its_law(mechanism: TreeOfMedians[Any], times: int) -> None:
    """800 draws, outcomes of less than 1/50 pooled, fit (chi-squared, failure 1e-6); not the law of another database."""
    held, other = (Multiset.of(records * times, 2) for records in ([0] * 6 + [1] * 2 + [3] * 9, [0] * 9 + [2] * 2 + [3] * 6))
    draws = Draws(KeyedNoise(2))
    drawn = Counter(mechanism.release(held, draws) for _ in range(800))

    def p_value(database: Multiset) -> float:
        law = mechanism.law(database)
        total = sum(law.values())
        common = {steps: 800 * weight / total for steps, weight in law.items() if 50 * weight > total}
        rest = 800 - sum(common.values())
        seen = [drawn[steps] for steps in common]
        return float(chisquare([*seen, 800 - sum(seen)], [*common.values(), rest]).pvalue)

    assert p_value(held) > 1e-6 > p_value(other)


def test_what_is_far_off_is_left_out_of_the_runs_and_not_of_the_law() -> None:
    """Scores that are clamped anyway: the same weights whether runs list them or not."""
    generator = np.random.default_rng(0)
    points = Multiset.of(generator.integers(256, size=3000), 8)
    held, mechanism = Spread(points, 2), Medians(6.0, 1, 2)
    node = Node(0, 1 << 10, 0, 3000)
    runs = mechanism._scores(held, node)
    choice = mechanism._choice
    every = -np.abs(2 * np.array([held.rank(cut) for cut in range((1 << 10) + 1)]) - 3000)
    law, dense = choice.law(runs), choice.law(numbered(every))
    assert len(runs.scores) < 600
    assert {cut: Fraction(weight, sum(law.values())) for cut, weight in law.items()} == {
        cut: Fraction(weight, sum(dense.values())) for cut, weight in dense.items()
    }


def test_points_of_65536_bits() -> None:
    """3,000 records at five points of a domain of 2^65536: the error is 1/16, as without noise."""
    held = Multiset.of([place << 65_000 for place in (1, 2, 3, 5, 8) for _ in range(600)], 1 << 16)
    steps = SparseMedians(8.0, 3, 10, 1e-6).release(held, Draws(KeyedNoise(0)))
    assert steps.error(held) < 0.07


def test_nobody_has_medians_too() -> None:
    for mechanism in (Medians(1.0, 3), SparseMedians(1.0, 3)):
        assert isinstance(mechanism.release(Multiset.of([], 70), Draws(KeyedNoise(0))), Steps)


def test_bad_input_gets_a_line() -> None:
    for epsilon, levels, low, said in ((0.0, 3, 10, "epsilon is 0"), (1.0, 0, 10, "levels is 0"), (1.0, 17, 10, "levels is 17"), (1.0, 3, 21, "low is 21")):
        with pytest.raises(InputError, match=said):
            Medians(epsilon, levels, low)
    with pytest.raises(InputError, match="delta is 1"):
        SparseMedians(1.0, 3, 10, 1.0)
    with pytest.raises(InputError, match="fewer levels"):
        DyadicTree(1e-9, 3)
    with pytest.raises(InputError, match="cells is 21"):
        NoisyHistogram(1.0, 21)
    with pytest.raises(InputError, match="no shape"):
        shaped("round", 10, 8, 0)
