"""Cases of `local_dp/curator/marginals`."""

import numpy as np

from local_dp.curator.intervals import LevelCounts
from local_dp.curator.marginals.base import BinaryTable
from local_dp.curator.marginals.baselines import DependentPair, OneMarginal
from tests.support.mechanisms.case import Case


def table(records: tuple[tuple[int], ...]) -> BinaryTable:
    return BinaryTable(3, np.array([row for (row,) in records], dtype=np.uint64))


def cut(release: LevelCounts, database: BinaryTable) -> LevelCounts:
    return LevelCounts(np.clip(release.counts, 0, database.size))


ROWS = [(0,), (1,), (6,)]
CASES = (
    Case(DependentPair(((0, 1), (0, 2), (1, 2)), (0, 1, -1), 1.0), ROWS, table, factor=3),
    Case(OneMarginal(3, 5, 1.0), ROWS, table, listed=cut),
)
ELSEWHERE = {
    "CharacterSums": "tests/curator/marginals/test_fourier.py",
    "FourierGaussian": "tests/curator/marginals/test_fourier.py",
    "PairGaussian": "tests/curator/marginals/test_pairs.py",
    "PlainGaussian": "tests/curator/marginals/test_fourier.py",
    "PlainLaplace": "tests/curator/marginals/test_fourier.py",
    "SpanningTree": "tests/curator/marginals/test_fourier.py",
    "WeightedMonomials": "tests/curator/marginals/test_pairs.py",
}
