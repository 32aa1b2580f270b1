"""`pairs` is shown as it stands; wrong noise and wrong projections in its place are not."""

from local_dp.curator.inversion import rounded_normals
from local_dp.curator.marginals import pairs as release
from local_dp.curator.marginals.pairs import PairGaussian, onto_elliptope
from local_dp.experiments.claims.curator import pairs
from local_dp.experiments.claims.curator.pairs import EXPERIMENT
from tests.support.runs.quick import Quick, Twin

QUICK = Quick(EXPERIMENT)
SMALLEST = tuple(point for point in QUICK.points if point.d <= 50)
TWINS = [
    Twin(
        "the price of an added record",
        PairGaussian,
        {"square": property(lambda release: release.d * (release.d - 1) // 2)},
        SMALLEST,
        "pays for",
    ),
    Twin(
        "a fifth more variance",
        release,
        {"rounded_normals": lambda draws, v, count: rounded_normals(draws, v * 6 // 5, count)},
        SMALLEST,
        "variance",
    ),
    Twin(
        "half as far again elsewhere",
        pairs,
        {"onto_elliptope": lambda means: 1.5 * means - 0.5 * onto_elliptope(means)},
        SMALLEST,
        "farther",
    ),
    Twin(
        "three quarters",
        pairs,
        {"onto_elliptope": lambda means: 0.25 * means + 0.75 * onto_elliptope(means)},
        SMALLEST,
        "times less than raw",
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS)
