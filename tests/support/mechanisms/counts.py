"""Cases of `local_dp/curator/counts.py` and `local_dp/curator/intervals.py`."""

from fractions import Fraction

from local_dp.curator.counts import ComposedLaplaceCounts, KNormCounts, LaplaceCounts
from local_dp.curator.intervals import Level
from tests.support.mechanisms.case import Case, Twin, bits, columns, cut, points, twin_of

Bold = twin_of(ComposedLaplaceCounts, step=lambda own, right: right * Fraction(101, 100))
"""Each count costs 1 % more than its share."""


def pure(k: int, *n: int) -> tuple[Case, ...]:
    """Noise in the shape of the cube, and noise on each count; a wrong twin has noise made for one
    count."""
    alone = () if k == 1 else (Twin(LaplaceCounts(k, 0.5 * k), 0.05),)
    return (
        Case(KNormCounts(k, 0.5), bits(k), columns, n, tight=1, name_of=cut, steep=4.0),
        Case(LaplaceCounts(k, 0.5), bits(k), columns, n, alone, tight=1, name_of=cut),
    )


def composed(k: int, *n: int) -> Case:
    return Case(
        ComposedLaplaceCounts(k, 0.5, 1e-2),
        bits(k),
        columns,
        n,
        (Twin(Bold(k, 0.5, 1e-2), n=(1,)),),
        tight=0.999,
        name_of=cut,
    )


def level(width: int) -> Case:
    return Case(
        Level(2, width, 1.5),
        [(0,), (1,), (2,), (3,)],
        points(2),
        (1, width + 1),
        tight=1,
        name_of=cut,
    )


CASES = (*pure(1, 1, 3), *pure(2, 1, 3), *pure(3, 1), composed(2, 1, 3), level(1), level(2))
