"""Databases of points in a domain of any size."""

import numpy as np
import pytest

from local_dp.curator.multisets import MAX_BITS, LabelledMultiset, Multiset, naturals
from local_dp.errors import InputError


@pytest.mark.parametrize("bits", [3, 63, 64, 65, 200, MAX_BITS])
def test_points_are_sorted_and_counted(bits: int) -> None:
    """Whole numbers of any size, in any order; 64 bits fit a machine word, more do not and are not cut."""
    top = (1 << bits) - 1
    held = Multiset.of([top, 0, 5, top, top - 1], bits)
    assert [int(value) for value in held.values] == [0, 5, top - 1, top]
    assert held.counts.tolist() == [1, 1, 1, 2]
    assert held.size == 5
    assert held.values.dtype == (np.uint64 if bits <= 64 else object)


def test_labels_are_counted_apart() -> None:
    held = LabelledMultiset.of_pairs([(7, 1), (2, 0), (7, 0), (7, 1)], 3)
    assert (held.values.tolist(), held.zeros.tolist(), held.ones.tolist(), held.size) == ([2, 7], [1, 1], [0, 2], 4)
    assert (held.labelled(1).values.tolist(), held.labelled(0).values.tolist(), held.labelled(0).size) == ([7], [2, 7], 2)


def test_nobody_is_a_database_too() -> None:
    assert Multiset.of([], 70).size == LabelledMultiset.of_pairs([], 8).size == 0


@pytest.mark.parametrize(
    ("points", "bits", "said"),
    [
        ([8], 3, "of 4 bits"),
        ([-1], 3, "-1"),
        ([1 << 64], 64, "65 bits"),
        ([0.5], 3, "whole"),
        ([np.nan], 3, "whole"),
        ([True], 3, "whole"),
        (["a"], 3, "whole"),
        ([1], 0, "bits is 0"),
        ([1], MAX_BITS + 1, "bits"),
    ],
)
def test_what_is_no_point_is_refused(points: list[int], bits: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        naturals(points, bits)


@pytest.mark.parametrize("labels", [[0], [0, 2], [0, np.nan]])
def test_what_is_no_label_is_refused(labels: list[int]) -> None:
    with pytest.raises(InputError, match="label of 0 or 1"):
        LabelledMultiset.of([1, 2], labels, 3)
