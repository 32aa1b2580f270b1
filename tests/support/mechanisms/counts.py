"""Cases of `local_dp/curator/counts.py` and `local_dp/curator/intervals.py`."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from local_dp.curator.counts import ColumnCounts, ComposedLaplaceCounts, KNormCounts, LaplaceCounts, NoisyCounts
from local_dp.curator.intervals import Level, LevelCounts
from local_dp.curator.multisets import Multiset
from tests.support.mechanisms.case import Case, Twin, bits, columns, points


def cut(release: NoisyCounts, database: ColumnCounts) -> NoisyCounts:
    return NoisyCounts(np.clip(release.counts, 0, database.size))


def cut_level(release: LevelCounts, database: Multiset) -> LevelCounts:
    return LevelCounts(np.clip(release.counts, 0, database.size))


@dataclass(frozen=True)
class Bold(ComposedLaplaceCounts):
    """Each count costs 1 % more than its share."""

    @property
    def step(self) -> Fraction:
        return super().step * Fraction(101, 100)


def pure(k: int, *n: int) -> tuple[Case, ...]:
    """Noise in the shape of the cube, and noise on each count; a wrong twin has noise made for one count."""
    alone = () if k == 1 else (Twin(LaplaceCounts(k, 0.5 * k), 0.05),)
    return (
        Case(KNormCounts(k, 0.5), bits(k), columns, n, tight=1, listed=cut, steep=4.0),
        Case(LaplaceCounts(k, 0.5), bits(k), columns, n, alone, tight=1, listed=cut),
    )


def composed(k: int, *n: int) -> Case:
    return Case(ComposedLaplaceCounts(k, 0.5, 1e-2), bits(k), columns, n, (Twin(Bold(k, 0.5, 1e-2), n=(1,)),), tight=0.999, listed=cut)


def level(width: int) -> Case:
    return Case(Level(2, width, 1.5), [(0,), (1,), (2,), (3,)], points(2), (1, width + 1), tight=1, listed=cut_level)


CASES = (*pure(1, 1, 3), *pure(2, 1, 3), *pure(3, 1), composed(2, 1, 3), composed(3, 1, 2), level(1), level(2))
ELSEWHERE = {
    "CountTree": "tests/curator/intervals/test_trees.py",
    "DiscreteGaussianCounts": "tests/curator/counts/test_counts.py",
    "GaussianCounts": "tests/curator/counts/test_counts.py",
    "NoCounts": "tests/curator/counts/test_counts.py",
    "PrefixFactorization": "tests/curator/intervals/test_trees.py",
}
