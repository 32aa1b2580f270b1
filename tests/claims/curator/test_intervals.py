"""`intervals` is shown as it stands; wrong noise, trees and factorizations in its place are not."""

from dataclasses import replace
from fractions import Fraction

from local_dp.curator import intervals
from local_dp.curator.intervals import Level
from local_dp.curator.inversion import rounded_normals
from local_dp.experiments.claims.curator.intervals import (
    CONSISTENT,
    EXPERIMENT,
    FLAT,
    ROOT,
    Errors,
    Local,
    Privacy,
)
from tests.support.runs.quick import Quick, Twin

QUICK, MEASURE = Quick(EXPERIMENT), Local.measure


def growing(local: Local, seed: int) -> Errors:
    """Errors that do not fall with more clients."""
    errors = MEASURE(replace(local, n=10_000), seed)
    kinds = (errors.intervals, errors.thresholds)
    intervals, thresholds = ([error * local.n / 10_000 for error in each] for each in kinds)
    return Errors(intervals, thresholds, [])


HALF = {"noise": property(lambda level: Fraction(level.loss.nano))}
LESS = {
    "rounded_normals": lambda draws, variance, count: rounded_normals(
        draws, 3 * variance // 4, count
    )
}
LEAVES = {
    "local_dp.curator.intervals.consistent": lambda levels, shape, total: levels[-1].astype(float)
}
TWINS = [
    Twin(
        "a level that pays half of its stated loss",
        Level,
        HALF,
        (Privacy, FLAT),
        "pure at its epsilon",
        "agree with closed forms",
    ),
    Twin(
        "a factorization with three quarters of the variance",
        intervals,
        LESS,
        (ROOT,),
        "agree with closed forms",
    ),
    Twin(
        "leaves as counted, in a consistent tree",
        None,
        LEAVES,
        (CONSISTENT,),
        "agree with closed forms",
    ),
    Twin("clients that err by n", Local, {"measure": growing}, (Local,), "sqrt(n)"),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS)
