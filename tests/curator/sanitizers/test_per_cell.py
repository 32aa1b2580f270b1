"""The pure baseline of point counts: the law of noise on every cell, of which only what is told is drawn."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.bounds.packing import least_multiple, per_cell_success, told_cells_success
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import Multiset, absent
from local_dp.curator.sanitizers.cells import CellNoise
from local_dp.curator.sanitizers.per_cell import PerCellHistogram
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.noise import KeyedNoise

CELLS = PerCellHistogram(2, 1.5, strangers=1)


@dataclass(frozen=True)
class WholeEpsilon(PerCellHistogram):
    """A wrong twin: noise for one count that moves, though a replacement moves two."""

    @property
    def noise(self) -> CellNoise:
        return CellNoise(Fraction(self.loss.nano), 1)


def databases(n: int) -> SmallDatabases[tuple[int], Multiset]:
    """All of n records of four values, of which one never occurs."""
    return SmallDatabases([(0,), (1,), (3,)], n, lambda records: Multiset.of([value for (value,) in records], 2))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pure_by_enumeration(n: int) -> None:
    """No delta at its epsilon, on all pairs; the twin of noise for one count has more than .1."""
    assert databases(n).worst_delta(CELLS) == 0
    assert 1 < max(databases(n).worst_ratios(CELLS).values()) <= exp_epsilon(CELLS.loss.nano)
    assert databases(n).worst_delta(WholeEpsilon(2, 1.5)) > 0.1


def test_the_code_draws_from_its_law() -> None:
    """3,000 releases fit the law of all cells (chi-squared, failure 1e-6); not that of a neighbour."""
    points, draws = Multiset.of([1, 1, 3], 2), Draws(KeyedNoise(2))
    drawn = Counter(CELLS.release(points, draws) for _ in range(3000))

    def p_value(database: Multiset) -> float:
        law = CELLS.law(database)
        likely = {told: weight / sum(law.values()) for told, weight in law.items() if weight * 300 > sum(law.values())}
        counts = [drawn[told] for told in likely]
        expected = [3000 * share for share in likely.values()]
        return float(chisquare([*counts, 3000 - sum(counts)], [*expected, 3000 - sum(expected)]).pvalue)

    assert p_value(points) > 1e-6 > p_value(Multiset.of([1, 3, 3], 2))


@pytest.mark.parametrize(("bits", "records"), [(16, 270), (32, 490), (64, 930), (128, 1820), (256, 3590)])
def test_records_for_point_counts(bits: int, records: int) -> None:
    """In closed form; telling only the 64 largest strangers saves up to 20, since what is not told counts 0 and no noise is negative."""
    assert least_multiple(lambda m: per_cell_success(bits, 1.0, m, 0.1), 0.1) == records


@pytest.mark.parametrize(("bits", "records"), [(16, 250), (64, 920), (256, 3580)])
def test_records_for_the_counts_that_are_told(bits: int, records: int) -> None:
    """In the worst of all databases, what is not told included."""
    noise = PerCellHistogram(bits, 1.0).noise
    assert least_multiple(lambda m: told_cells_success(bits, noise, m, 0.1), 0.1) == records


@pytest.mark.parametrize("bits", [64, 65, 65536])
def test_a_domain_beyond_reach(bits: int) -> None:
    """About 64 strangers are told, within six standard deviations, all distinct and without records; who is heavy is told too."""
    cells, top = PerCellHistogram(bits, 1.0), (1 << bits) - 1
    points = Multiset.of([top] * 3 + [7], bits)
    heavy = Multiset(bits, points.values, np.array([1, 10**7]))
    told = cells.release(heavy, Draws(KeyedNoise(1)))
    strangers = [value for value in told.values.tolist() if value not in (7, top)]
    assert 64 / np.exp(0.5) - 6 * 8 < len(strangers) < 64 + 6 * 8
    assert len(set(strangers)) == len(strangers)
    assert told.values.tolist() == sorted(told.values.tolist())
    assert abs(int(told.at(np.array([top], dtype=object))[0]) - 10**7) < 100
    assert told.counts.min() >= cells.noise.least


def test_absent_points_are_counted_in_order() -> None:
    """The points without records, one by one, below, between and above those that occur."""
    for values in (np.array([0, 1, 4, 7], dtype=np.uint64), np.array([0, 1, 4, 7], dtype=object)):
        assert absent(values, range(4)) == [2, 3, 5, 6]
    assert absent(np.array([(1 << 64) - 1], dtype=np.uint64), [(1 << 64) - 2]) == [(1 << 64) - 2]
    assert absent(np.zeros(0, dtype=np.uint64), [5]) == [5]


def test_bad_input_gets_a_line() -> None:
    with pytest.raises(InputError, match="one domain"):
        CELLS.release(Multiset.of([1], 3), Draws(KeyedNoise(0)))
    with pytest.raises(InputError, match="bits is 0"):
        PerCellHistogram(0, 1.0)
    with pytest.raises(InputError, match="epsilon is -1"):
        PerCellHistogram(4, -1.0)
    with pytest.raises(InputError, match="2\\^40 cells"):
        PerCellHistogram(40, 1.0).law(Multiset.of([1], 40))
