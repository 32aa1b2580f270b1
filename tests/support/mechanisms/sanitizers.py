"""Cases of `local_dp/curator/sanitizers`."""

from dataclasses import replace
from fractions import Fraction

from local_dp.curator.sanitizers.medians import Medians, SparseMedians
from local_dp.curator.sanitizers.point_counts import (
    CellNoise,
    KPointSanitizer,
    PerCellHistogram,
    ThresholdedHistogram,
)
from local_dp.loss import Pure
from tests.support.mechanisms.case import (
    LOST,
    POINTS,
    Case,
    Judged,
    Twin,
    numbered,
    points,
    present,
    twin_of,
)

ALL = [(0,), (1,), (2,), (3,)]


LowThreshold = twin_of(ThresholdedHistogram, threshold=lambda own, right: right - 1)
"""Counts are released from one less."""
WholeEpsilon = twin_of(ThresholdedHistogram, _nano=lambda own, right: 2 * right)
"""Noise for one count that moves, though a replacement moves two."""
WholeEpsilonCells = twin_of(PerCellHistogram, noise=lambda own, right: CellNoise(2 * right.nano, 1))
PastEpsilon = twin_of(ThresholdedHistogram, _nano=lambda own, right: right * Fraction(101, 100))
"""Noise 1 % beyond the loss: caught where both counts are far above the threshold."""
LightGrowth = twin_of(
    SparseMedians, choice=lambda own, right: lambda bits: replace(right(bits), growth=1)
)
"""A record is taken to lie in one dyadic interval."""


def histogram(epsilon: float, delta: float, tight: float, *twins: Twin) -> Case:
    low = Twin(LowThreshold(epsilon, delta), n=(2,))
    return Case(
        ThresholdedHistogram(epsilon, delta),
        POINTS,
        points(2),
        (1, 2, 4, 6),
        (low, *twins),
        tight,
        factor=0,
    )


def medians(levels: int, low: int, tight: float, *n: int) -> Case:
    return Case(Medians(1.0, levels, low), ALL, points(2), n, tight=tight)


def sparse(*n: int) -> tuple[Case, Case]:
    """Against a replaced record, and at half the loss against one more or less."""
    mechanism = SparseMedians(2.0, 1, 0, 1e-2)
    add_remove = Judged(mechanism, "add-remove", mechanism.removed)
    steep = replace(mechanism, epsilon=24.0)
    twins = Twin(steep, n=(5,)), Twin(replace(add_remove, of=steep), n=(5,))
    first = Case(mechanism, ALL, points(2), n, twins[:1], factor=0)
    return first, Case(add_remove, ALL, points(2), n, twins[1:])


LOW = ThresholdedHistogram(2.0, 0.05)
SPARSE = SparseMedians(2.0, 1, 0, 1e-2)
HALF = Judged(Medians(1.0, 2, 0), "add-remove", Pure(500_000_000))
CASES = (
    histogram(2.0, 0.05, 0.5, Twin(WholeEpsilon(2.0, 0.05), 0.2, (6,))),
    histogram(3.0, 0.01, 0.2),
    Case(
        ThresholdedHistogram(8.0, 1.2e-7),
        [(0,), (1,)],
        points(2),
        (1, 12),
        (Twin(PastEpsilon(8.0, 1.2e-7), 1e-3),),
        0.5,
        factor=0,
    ),
    Case(
        KPointSanitizer(2, LOW),
        POINTS,
        points(2),
        (2, 4),
        (Twin(KPointSanitizer(2, LowThreshold(2.0, 0.05))),),
        tight=0.5,
    ),
    Case(
        PerCellHistogram(2, 1.5, strangers=1),
        POINTS,
        points(2),
        (1, 2, 3),
        (Twin(WholeEpsilonCells(2, 1.5), 0.1),),
        steep=10.0,
    ),
    medians(1, 0, 0.95, 14),
    medians(2, 0, 0.3, 3, 5),
    medians(2, 1, 0.3, 2),
    Case(HALF, ALL, points(2), (1, 2, 3), (Twin(replace(HALF, of=Medians(2.5, 2, 0))),), tight=0.4),
    *sparse(1, 2, 5),
    Case(
        Medians(1.0, 2, 0),
        [LOST, *ALL],
        present(2),
        (1, 2, 3),
        (Twin(numbered(Medians)(1.0, 2, 0)),),
        tight=0.3,
        factor=4,
    ),
    Case(
        SPARSE,
        [LOST, *ALL],
        present(2),
        (1, 2, 5),
        (Twin(numbered(SparseMedians)(2.0, 1, 0, 1e-2)),),
        factor=0,
    ),
)
