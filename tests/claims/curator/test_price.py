"""`price` is shown as it stands; wrong noise, prices and baselines in its place are not."""

import math
from fractions import Fraction
from typing import Any

from local_dp.accounting import rules
from local_dp.accounting.rules import delta
from local_dp.curator import counts
from local_dp.curator.counts import (
    ComposedLaplaceCounts,
    GaussianCounts,
    KNormCounts,
    LaplaceCounts,
    NoCounts,
    NoisyCounts,
)
from local_dp.curator.inversion import least_variance, rounded_normals
from local_dp.experiments.claims.curator.price import (
    COMPOSED,
    EXPERIMENT,
    GAUSSIAN,
    K_NORM,
    LAPLACE,
    NOTHING,
    Errors,
    Normal,
    Rules,
    Transcripts,
)
from tests.support.runs.quick import Quick, Twin

QUICK, STEP, RADIUS = Quick(EXPERIMENT), ComposedLaplaceCounts.step, counts._radius


def square(of: Any) -> dict[str, Any]:
    """Gaussian noise for another squared sensitivity."""
    return {"variance": property(lambda counts: least_variance(of(counts.k), counts.loss))}


CUBE = {"_radius": lambda k, nano: RADIUS(k, 2 * nano)}
NARROW = {"_radius": lambda k, nano: RADIUS(k, nano * 10 // 11)}
EACH = {"noise": lambda counts, draws: LaplaceCounts(counts.k, counts.epsilon).noise(draws)}
WIDE = {
    "noise": lambda counts, draws: rounded_normals(draws, counts.variance * 121 // 100, counts.k)
}
FOR_ONE = {"step": property(lambda counts: Fraction(counts.loss.nano))}
TRIPLE = {"step": property(lambda counts: 3 * STEP.__get__(counts))}
LAW = ("has the mean", "closed forms that often")
TWINS = [
    Twin(
        "adding up for the exact price",
        rules.RULES,
        {"exact": rules.RULES["basic"]},
        (Rules,),
        "sqrt(k), where adding up",
    ),
    Twin(
        "99 % of the delta",
        rules,
        {"delta": lambda losses, epsilon: 0.99 * delta(losses, epsilon)},
        (Transcripts,),
        "no price is lower",
    ),
    Twin(
        "half the noise of the cube: another law, less error than is possible",
        counts,
        CUBE,
        (K_NORM,),
        *LAW,
    ),
    Twin(
        "noise on each count for the cube: far above the bound", KNormCounts, EACH, (K_NORM,), *LAW
    ),
    Twin("a tenth more noise of the cube", counts, NARROW, (K_NORM,), *LAW[:1]),
    Twin("a tenth more normal noise", GaussianCounts, WIDE, (GAUSSIAN,), *LAW[:1]),
    Twin(
        "noise for one count on each",
        LaplaceCounts,
        FOR_ONE,
        (LAPLACE,),
        "keeps to its loss",
        "noise on each count no less",
    ),
    Twin(
        "three times the optimal step",
        ComposedLaplaceCounts,
        TRIPLE,
        (COMPOSED,),
        "keeps to its loss",
        "less than half of Laplace noise",
    ),
    Twin(
        "one count that moves",
        GaussianCounts,
        square(lambda k: 1),
        (GAUSSIAN, Normal),
        "Gaussian noise keeps to delta",
        "for a few counts",
    ),
    Twin(
        "a larger sensitivity",
        GaussianCounts,
        square(lambda k: k * math.isqrt(k)),
        (GAUSSIAN, Normal),
        "grow as k",
        "than any",
    ),
    Twin(
        "no error",
        NoCounts,
        {"release": lambda nothing, database, draws: NoisyCounts(database.counts)},
        (NOTHING,),
        "answering half of them",
    ),
]
DEAR = ("a larger sensitivity", "three times the optimal step")
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS, Errors, slow=DEAR)
