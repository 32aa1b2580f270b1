"""SanPoints and SanThresholds, as printed and rebuilt."""

from itertools import chain

import numpy as np
import pytest

from local_dp.accounting.rules import optimal_delta
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers import san_thresholds
from local_dp.curator.sanitizers.san_points import PointShares, PrintedSanPoints, SanPoints
from local_dp.curator.sanitizers.san_thresholds import (
    BlockByBlock,
    PrintedSanThresholds,
    SanThresholds,
)
from local_dp.curator.selection.sparse import Goals
from local_dp.errors import InputError
from local_dp.loss import ATTO, Pure
from local_dp.populations.parity import SHAPES, shaped
from tests.support.long import short
from tests.support.mechanisms.case import twin_of
from tests.support.runs.scripted import seeded

POINTS = SanPoints(1.0, 1e-6, Goals(0.1, 0.1))
THRESHOLDS = SanThresholds(1.0, 1e-6, Goals(0.1, 0.1))


def database(shape: str, m: int, bits: int, seed: int, each: int = 50) -> Multiset:
    """m records of a shape, `each` at every point drawn."""
    points = Multiset.of(shaped(shape, m // each, bits, seed), bits)
    return Multiset(bits, points.values, points.counts * each)


@pytest.mark.parametrize("bits", [5, 64, 70])
def test_blocks_and_windows_are_those_of_the_records(bits: int) -> None:
    """Against counting the records one by one, in a range that starts anywhere, in words and
    beyond."""
    records, (low, high) = np.random.default_rng(bits).integers(3, 29, 60), (2, 30)
    points = san_thresholds.inside(Multiset.of([*records, 0, 31], bits), (low, high))
    assert points.size == 60
    for z in range(7):
        length, expected = 1 << z, dict[tuple[int, int], int]()
        starts = [range(start, high + 1, 2 * length) for start in (low, low + length)]
        for first in chain(*starts):
            last = min(first + 2 * length - 1, high) if z else first
            expected[first, last] = int(((records >= first) & (records <= last)).sum())
        result = san_thresholds.blocks(points, (low, high), z)
        blocks = {member: result.scores[group] for group, member in result.members()}
        assert blocks == {interval: count for interval, count in expected.items() if count}
        assert san_thresholds.fullest_blocks(points, 7)[z] == max(expected.values())
        windows = [((records >= first) & (records < first + length)).sum() for first in range(32)]
        assert san_thresholds.fullest_windows(points, 7)[z] == max(windows)


def test_a_record_lies_in_two_blocks() -> None:
    """The growth that the choice of a block pays for: one point more, and two intervals occur; one
    if they are points."""
    for z in range(6):
        growth = [
            len(san_thresholds.blocks(Multiset.of([point], 6), (0, 63), z).scores)
            for point in range(64)
        ]
        assert max(growth) == (2 if z else 1)


def test_losses_count_their_parts() -> None:
    """Optimal composition of 2,052 and 40 equal parts takes half of delta, the choices the other
    half; one part more is too much, and so is a unit of delta less than 4 parts need."""
    for mechanism, parts in ((THRESHOLDS, 4 * 513), (POINTS, 2 * 20)):
        half = ATTO // 2_000_000
        assert mechanism.loss.nano == 10**9
        assert 0.999999 < mechanism.loss.atto / 10**12 <= 1
        part = mechanism.part.nano
        less, more = (optimal_delta(Pure(each), parts, Pure(10**9)) for each in (part, part + 1))
        assert less <= half < more
    need = optimal_delta(Pure(250_000_001), 4, Pure(10**9))
    assert SanPoints(1.0, 2 * (need - 1) / ATTO, Goals(1.0, 0.1)).part == Pure(250_000_000)
    assert THRESHOLDS.repetitions == 513
    assert SanPoints(1.0, 1e-6, Goals(0.3, 0.1)).repetitions == 7
    assert THRESHOLDS.aim(10**7, 63).least == 125_000  # alpha m / 8
    coarse = SanThresholds(1.0, 1e-6, Goals(0.25, 0.1)).part
    assert coarse.epsilon == pytest.approx(0.00826 * 0.97, rel=0.03)


def test_printed_sizes() -> None:
    """7.6e5 records for points at alpha .1, 7.2e7 for thresholds at alpha .25; below, the printed
    mechanisms refuse and tell how many."""
    points = PrintedSanPoints(1.0, 1e-6, Goals(0.1, 0.1))
    thresholds = PrintedSanThresholds(1.0, 1e-6, Goals(0.25, 0.1))
    assert points.least == pytest.approx(7.6e5, rel=0.01)
    # a fifth of delta for 40 parts, two fifths for 20 choices
    assert points.loss.atto == pytest.approx(6 * 10**11)
    assert thresholds.least == pytest.approx(7.2e7, rel=0.01)
    few = Multiset(16, np.array([5], dtype=np.uint64), np.array([points.least - 1]))
    for mechanism in (points, thresholds):
        with pytest.raises(InputError, match=f"private only from {mechanism.least} on"):
            mechanism.release(few, seeded(0))


PART = Pure(20 * 10**9)
NOISELESS = (
    twin_of(
        PrintedSanThresholds,
        part=lambda own, right: PART,
        length=lambda own, right: lambda bits: PART,
    ),
    twin_of(SanThresholds, part=lambda own, right: PART),
)
"""As printed and rebuilt, with next to no noise."""


@pytest.mark.parametrize("shape", short(SHAPES, lambda shape: shape in ("nested", "uniform")))
@pytest.mark.parametrize("kind", NOISELESS)
def test_without_noise(shape: str, kind: type[BlockByBlock]) -> None:
    """Within 9 alpha / 32 = .281 alpha of every threshold, in no more calls than 1 + 51.2 /
    alpha."""
    for alpha in (0.25, 0.1):
        points = database(shape, 40_000, 60, 0, 20)
        steps, calls = kind(1.0, 1e-6, Goals(alpha, 0.1)).run(points, seeded(0))
        assert steps.error(points) <= 0.281 * alpha
        assert calls <= 1 + 51.2 / alpha


def test_the_error_of_points_is_the_largest() -> None:
    points = Multiset.of([1, 1, 1, 1, 2], 2)
    assert PointShares({1: 0.5}).error(points) == pytest.approx(0.3)


def test_rebuilt_points() -> None:
    """11,000 records, alpha .1, where 758,535 are printed; at 5,000 no point is released."""
    for m, most in ((11_000, 0.1), (5_000, 0.2)):
        points = Multiset(64, np.arange(9, dtype=np.uint64), np.full(9, m // 9))
        errors = [POINTS.release(points, seeded(seed)).error(points) for seed in range(4)]
        assert (max(errors) <= 0.1) == (m == 11_000)
        assert max(errors) < most
