"""`data-noise` is shown as it stands; wrong noise in its place is not."""

from fractions import Fraction

from local_dp.curator.sensitivity.mechanisms import CauchyNoise, Proposed
from local_dp.curator.sensitivity.triangles import NoisyLocalTriangles, Triangles
from local_dp.experiments.claims.curator.data_noise import (
    EXPERIMENT,
    Counts,
    Delta,
    LocalNoise,
    Medians,
    Price,
    Small,
)
from tests.support.runs.quick import Quick, Twin

QUICK, EXACT, ADD, LADDER = Quick(EXPERIMENT), CauchyNoise.exact, CauchyNoise.add, Triangles.within


def bold(epsilon: float) -> CauchyNoise:
    """1 % less noise than the exact constants, where they are met."""
    return CauchyNoise(EXACT(epsilon).shift * Fraction(101, 100), EXACT(epsilon).stretch)


LOSS, DELTA = "loss is at most epsilon", "keep to delta"
GAINS = (
    "times smaller than by published ones",
    "errs about as much",
    "the median error of a ladder",
)
LOUD = {"add": lambda noise, value, s, draws: ADD(noise, value, 5 * s // 4, draws)}
TWINS = [
    Twin("local sensitivity for smooth", CauchyNoise, {"scale": LocalNoise.scale}, (Small,), LOSS),
    Twin(
        "a larger shift",
        CauchyNoise,
        {"exact": bold},
        (Price, Small),
        "constants cost epsilon",
        LOSS,
    ),
    Twin("a proposal that nearly always answers", Proposed, {"margin": 0}, (Delta,), DELTA),
    Twin(
        "a noisy sensitivity that is too low half of the time",
        NoisyLocalTriangles,
        {"margin": 0},
        (Delta,),
        DELTA,
    ),
    Twin(
        "rungs that do not widen",
        Triangles,
        {"within": lambda local, distance: LADDER(local, 0)},
        (Delta,),
        "the ladder",
    ),
    Twin("a quarter more noise", CauchyNoise, LOUD, (Medians,), "within their scale"),
    Twin(
        "published constants for exact",
        CauchyNoise,
        {"exact": CauchyNoise.published},
        (Medians, Counts),
        *GAINS,
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(
    TWINS, Medians, slow=("published constants for exact", "a quarter more noise")
)
