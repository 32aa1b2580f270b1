"""Binary tables and workloads of marginals."""

from itertools import combinations

import numpy as np
import pytest

from local_dp.curator.marginals.base import BinaryTable, Errors, Marginals
from local_dp.errors import InputError

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


@pytest.mark.parametrize("size", [1, 7, 400])
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


def test_words_and_columns() -> None:
    """Packing and unpacking are inverse, up to 64 columns."""
    bits = np.random.default_rng(2).integers(0, 2, (20, 64))
    assert np.array_equal(BinaryTable.of(bits).bits, bits)
    assert BinaryTable.of(bits[:, :3]).rows.max() < 8


def test_errors_are_shares() -> None:
    """Of the records: the largest cell's and the mean over all cells."""
    found = Errors.of(np.array([5.0, 1.0]), np.array([4.0, 4.0]), 10)
    assert [found.largest, found.mean] == pytest.approx([0.3, 0.2])


def test_bad_input_gets_a_line() -> None:
    """Values other than 0 and 1, rows beyond the columns, workloads of other or too many columns, no histogram of 2^23 rows."""
    for wrong in (np.array([[0, 2]]), np.zeros(3), np.zeros((2, 65))):
        with pytest.raises(InputError, match="0 and 1"):
            BinaryTable.of(wrong.astype(np.int64))
    with pytest.raises(InputError, match="no word of 2 bits"):
        BinaryTable(2, np.array([4], dtype=np.uint64))
    with pytest.raises(InputError, match="one number for both"):
        Marginals.ways(3, 2).answers(BinaryTable(2, np.array([1], dtype=np.uint64)))
    with pytest.raises(InputError, match="0 marginals"):
        Marginals(3, ())
    with pytest.raises(InputError, match="t is 4"):
        Marginals.ways(3, 4)
    with pytest.raises(InputError, match="up to 22"):
        BinaryTable(23, np.array([4], dtype=np.uint64)).histogram  # noqa: B018
