"""The thresholded histogram: private by enumeration, tails and all, and right as often as its exact law says."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.bounds.packing import cell_failures, histogram_success, least_multiple
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.cells import CellNoise
from local_dp.curator.sanitizers.histogram import ThresholdedHistogram
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO
from local_dp.noise import KeyedNoise

SMALL = [(2.0, 0.05), (1.0, 0.2), (3.0, 0.01)]


def databases(n: int) -> SmallDatabases[tuple[int], Multiset]:
    """All of n records of three values."""
    return SmallDatabases([(0,), (1,), (3,)], n, lambda records: Multiset.of([value for (value,) in records], 2))


@dataclass(frozen=True)
class LowThreshold(ThresholdedHistogram):
    """A wrong twin: told from one less."""

    @property
    def threshold(self) -> int:
        return super().threshold - 1


@dataclass(frozen=True)
class WholeEpsilon(ThresholdedHistogram):
    """A wrong twin: noise for one count that moves, though a replacement moves two."""

    @property
    def _nano(self) -> Fraction:
        return Fraction(self.loss.nano)


@pytest.mark.parametrize(("epsilon", "delta"), SMALL)
def test_private_by_enumeration(epsilon: float, delta: float) -> None:
    """The worst delta over all databases of up to 6 records is what a count of 1 is told with: at most delta, more with a threshold of one less."""
    histogram = ThresholdedHistogram(epsilon, delta)
    worst = [databases(n).worst_delta(histogram) for n in (1, 2, 4, 6)]
    told = histogram.noise.beyond(histogram.threshold - 1)
    assert worst == [told] * 4
    assert told <= Fraction(histogram.loss.atto, ATTO)
    assert databases(2).worst_delta(LowThreshold(epsilon, delta)) > Fraction(histogram.loss.atto, ATTO)


def test_half_the_noise_is_not_private() -> None:
    """Noise for one count only: four times delta at databases whose counts are told."""
    twin = WholeEpsilon(2.0, 0.05)
    assert float(databases(6).worst_delta(twin)) > 4 * 0.05


def test_thresholds() -> None:
    """1 + ceil((2 / eps) ln(1 / (delta (1 + e^(-eps / 2))))): 28 and 14; the last one down at which a single record is too likely told."""
    for delta, threshold in ((1e-6, 28), (1e-3, 14)):
        histogram = ThresholdedHistogram(1.0, delta)
        assert histogram.threshold == threshold
        assert histogram.noise.beyond(threshold - 1) <= Fraction(histogram.loss.atto, ATTO) < histogram.noise.beyond(threshold - 2)


def test_the_code_draws_from_its_law() -> None:
    """4,000 releases fit (chi-squared, failure 1e-6); not the law of a database of one replacement more."""
    histogram, points = ThresholdedHistogram(2.0, 0.05), Multiset.of([0] * 3 + [1] * 4, 2)
    draws = Draws(KeyedNoise(5))
    drawn = Counter(histogram.release(points, draws) for _ in range(4000))

    def p_value(database: Multiset) -> float:
        law = histogram.law(database)
        likely = {told: weight / sum(law.values()) for told, weight in law.items() if weight * 400 > sum(law.values())}
        counts = [drawn[told] for told in likely]
        expected = [4000 * share for share in likely.values()]
        return float(chisquare([*counts, 4000 - sum(counts)], [*expected, 4000 - sum(expected)]).pvalue)

    assert p_value(points) > 1e-6 > p_value(Multiset.of([0] * 4 + [1] * 3, 2))


def partitions(m: int, most: int) -> Iterator[tuple[int, ...]]:
    """All ways to write m as a sum of counts."""
    if not m:
        yield ()
    for first in range(min(m, most), 0, -1):
        for rest in partitions(m - first, first):
            yield (first, *rest)


@pytest.mark.parametrize(("m", "alpha"), [(12, 0.25), (15, 0.3), (9, 0.5)])
def test_the_worst_database_is_found(m: int, alpha: float) -> None:
    """Against every database of m records by hand: the sum of the cells' exact laws beyond the error."""
    noise, error = ThresholdedHistogram(2.0, 0.05).noise, int(alpha * m)
    right = []
    for counts in range(m + 1):
        law = noise.law(counts, m)
        right.append(float(sum(share for told, share in law.items() if abs(told - counts) <= error)))
    assert 1 - cell_failures(noise, m, error) == pytest.approx(right, rel=1e-12)
    by_hand = min(float(np.prod([right[count] for count in counts])) for counts in partitions(m, m))
    assert histogram_success(noise, m, alpha) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize(("delta", "records"), [(1e-6, 340), (1e-3, 200)])
def test_records_for_point_counts(delta: float, records: int) -> None:
    """All counts within .1 m nine times of ten, in the worst database and a domain of any size: 340 and 200 at epsilon 1."""
    noise = ThresholdedHistogram(1.0, delta).noise
    assert least_multiple(lambda m: histogram_success(noise, m, 0.1), 0.1) == records


def test_sizes_of_any_kind() -> None:
    """Heavy points of a domain of 65,536 bits are told close to their counts, light ones not at all; nobody is told of nobody."""
    top = (1 << 65536) - 1
    values = np.array([5, *(1 << place for place in range(10, 500)), top], dtype=object)
    points = Multiset(65536, values, np.array([10**9, *[1] * 490, 400]))
    told = ThresholdedHistogram(1.0, 1e-9).release(points, Draws(KeyedNoise(0)))
    assert told.values.tolist() == [5, top]
    assert np.abs(told.counts - [10**9, 400]).max() < 60
    assert told.at(np.array([5, 6, top], dtype=object)).tolist() == [told.counts[0], 0, told.counts[1]]
    assert len(ThresholdedHistogram(1.0, 1e-6).release(Multiset.of([], 8), Draws(KeyedNoise(0))).values) == 0


def test_a_count_moves_the_law_of_its_cell_by_e() -> None:
    """The law of a cell, tails and all, adds up to 1, and between neighbouring counts no told value is more than e^e likelier."""
    noise = CellNoise(Fraction(10**9, 2), 4)
    laws = [noise.law(count, 12) for count in range(13)]
    assert all(sum(law.values()) == 1 for law in laws)
    worst = max(max(one[told] / other[told], other[told] / one[told]) for one, other in pairwise(laws) for told in one)
    assert np.exp(0.5) * (1 - 1e-9) < float(worst) <= np.exp(0.5) * (1 + 1e-15)


def test_bad_input_gets_a_line() -> None:
    for epsilon, delta, said in ((0.0, 1e-6, "epsilon is 0"), (1.0, 0.0, "delta is 0"), (1.0, 1.0, "delta is 1"), (1.0, float("nan"), "delta is nan")):
        with pytest.raises(InputError, match=said):
            ThresholdedHistogram(epsilon, delta)
    with pytest.raises(InputError, match="outcomes"):
        ThresholdedHistogram(1.0, 1e-3).law(Multiset.of(range(40), 6))
    with pytest.raises(InputError, match="domain"):
        ThresholdedHistogram(1.0, 1e-3).release(Multiset.of([1], 6), Draws(KeyedNoise(0))).at(np.array([64]))
