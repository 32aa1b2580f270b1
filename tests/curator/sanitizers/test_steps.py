"""Releases of all thresholds, the finer points that break ties, and floats in order."""

import numpy as np
import pytest

from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.floats import BITS, points_of, value_of
from local_dp.curator.sanitizers.spread import Spread
from local_dp.curator.sanitizers.steps import Steps, ranks
from local_dp.errors import InputError


def fine(held: Spread) -> list[int]:
    """Every record's finer point, in order."""
    points, below = held.between(0, held.points.size)
    return np.repeat(points, np.diff([*below, held.points.size])).tolist()


def test_ranks_and_errors_are_those_of_the_records() -> None:
    """Against counting one by one, at every threshold of a small domain."""
    records = [0, 0, 3, 5, 5, 5, 7]
    points, release = Multiset.of(records, 3), Steps.of(3, [(1, 0.4), (4, 0.2), (6, 1.7)])
    truth = [sum(record < threshold for record in records) for threshold in range(9)]
    assert ranks(points, range(9)).tolist() == truth
    assert [release.share(t) for t in (0, 1, 3, 4, 6, 8)] == [0.0, 0.4, 0.4, 0.2, 1.0, 1.0]
    assert release.error(points) == pytest.approx(max(abs(rank / 7 - release.share(t)) for t, rank in enumerate(truth)))
    assert release.quantile(0.5) == 6


@pytest.mark.parametrize("bits", [64, 70])
def test_the_last_threshold_is_beyond_the_last_point(bits: int) -> None:
    """2^bits itself, which may not fit a machine word."""
    assert ranks(Multiset.of([0, (1 << bits) - 1], bits), [0, 1, (1 << bits) - 1, 1 << bits]).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("low", [0, 1, 3])
def test_an_added_record_adds_one_finer_point_and_moves_none(low: int) -> None:
    """For every database of up to 12 records of two values: ties are broken, neighbours stay neighbours."""
    for n in range(1, 13):
        for larger, smaller in SmallDatabases([(0,), (1,)], n, list).pairs("add-remove"):
            if len(larger) > len(smaller):
                left = fine(Spread(Multiset.of([x for (x,) in larger], 1), low))
                for point in fine(Spread(Multiset.of([x for (x,) in smaller], 1), low)):
                    left.remove(point)
                assert len(left) == 1


@pytest.mark.parametrize("bits", [8, 64, 100])
def test_finer_points_are_even_and_ranked(bits: int) -> None:
    """A value's records are spread within one of even; ranks, cells and parts of the order agree with the list of all finer points."""
    records = [5] * 37 + [6] + [200] * 8 + [255] * 3
    held = Spread(Multiset.of(records, bits), 3)
    every = fine(held)
    assert [point >> 3 for point in every] == records
    assert set(np.bincount([point & 7 for point in every[:37]])) == {4, 5}
    for threshold in [0, 40, 41, 47, 48, 1600, 1603, 2047, 2048]:
        assert held.rank(threshold) == sum(point < threshold for point in every)
    assert held.rank(1 << held.bits) == 49
    assert (held.cell(0), held.cell(40)) == (5, 2)
    points, below = held.between(10, 40)
    assert points.tolist() == sorted(set(every[10:40]))
    assert below.tolist() == [held.rank(int(point)) for point in points]


def test_floats_keep_their_order() -> None:
    """Through infinities, both zeros, subnormals and back; a float's point is one more than that of the float before it."""
    values = [-np.inf, -1e300, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.0 + 2**-52, 1e300, np.inf]
    points = [int(point) for point in points_of(values)]
    assert points == sorted(points)
    assert points[4] == points[5]
    assert points[8] - points[7] == points[6] - points[5] == 1
    assert [value_of(point) for point in points] == values
    assert (value_of(0), value_of((1 << BITS) - 1)) == (-np.inf, np.inf)


def test_what_is_no_number_has_no_place() -> None:
    with pytest.raises(InputError, match="not a number"):
        points_of([1.0, float("nan")])
