"""Binary tables and workloads of marginals."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest

from local_dp.curator.marginals.base import BinaryTable, Marginals
from tests.support.inputs.refusals import refuse

WORKLOADS = {
    "all pairs of five": Marginals.ways(5, 2),
    "all of five": Marginals.ways(5, 5),
    "of many sizes": Marginals.of(6, [(3, 0), (), (5,), (0, 2, 4), (3, 0)]),
}


def counted(table: BinaryTable, workload: Marginals) -> list[int]:
    """Record by record."""
    cells = []
    for mask in workload.masks:
        columns = [c for c in range(workload.d) if mask >> c & 1]
        counts = [0] * (1 << len(columns))
        for row in table.bits.tolist():
            counts[sum(row[c] << k for k, c in enumerate(columns))] += 1
        cells += counts
    return cells


@pytest.mark.parametrize("size", [1, 400])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_answers_are_counts(workload: Marginals, size: int) -> None:
    """By characters of the rows, by a transform of the histogram, and counted record by record: the same whole numbers."""
    table = BinaryTable.of(np.random.default_rng(size).integers(0, 2, (size, workload.d)))
    expected = counted(table, workload)
    assert workload.answers(table).tolist() == expected == workload.of_histogram(table.histogram).tolist()
    assert workload.cells == len(expected) == workload.starts[-1]


def test_characters_of_rows_and_of_histograms_agree() -> None:
    """Few of many columns, where no histogram is made, against the same columns alone."""
    bits = np.random.default_rng(0).integers(0, 2, (300, 40))
    wide, narrow = BinaryTable.of(bits), BinaryTable.of(bits[:, 30:40])
    pairs = list(combinations(range(10), 2))
    far = Marginals.of(40, [(i + 30, j + 30) for i, j in pairs])
    assert far.answers(wide).tolist() == Marginals.of(10, pairs).answers(narrow).tolist()


def test_rows_fall_into_their_cells() -> None:
    """A marginal is what the histogram adds up to in the cells that its rows fall into."""
    workload = Marginals.of(6, [(1,), (5, 0, 3)])
    table = BinaryTable.of(np.random.default_rng(1).integers(0, 2, (50, 6)))
    summed = [np.bincount(workload.cells_of(k), weights=table.histogram) for k in range(2)]
    assert np.concatenate(summed).tolist() == workload.answers(table).tolist()


def test_bad_input() -> None:
    """Values other than 0 and 1, rows beyond the columns, workloads of other or too many columns, no histogram of 2^23 rows."""
    refuse(
        *(("0 and 1", partial(BinaryTable.of, wrong)) for wrong in (np.array([[0, 2]]), np.zeros(3, dtype=int), np.zeros((2, 65), dtype=int))),
        ("no word of 2 bits", lambda: BinaryTable(2, np.array([4], dtype=np.uint64))),
        ("one number for both", lambda: Marginals.ways(3, 2).answers(BinaryTable(2, np.array([1], dtype=np.uint64)))),
        ("0 marginals", lambda: Marginals(3, ())),
        ("t is 4", lambda: Marginals.ways(3, 4)),
        ("up to 22", lambda: BinaryTable(23, np.array([4], dtype=np.uint64)).histogram),
    )
