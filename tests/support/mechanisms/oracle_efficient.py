"""Cases of `local_dp/curator/oracle_efficient` and `local_dp/curator/reductions`."""

from dataclasses import dataclass
from typing import Any

from local_dp.curator.mechanism import Law
from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.oracle_efficient.perturbed import Perturbation, PerturbedMinimum
from local_dp.curator.oracle_efficient.separated import Conjunctions, Exhaustive
from local_dp.curator.reductions.learners import ByLabel, LabelSanitizer, Processed
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.point_counts import ThresholdedHistogram
from local_dp.curator.selection.exponential import Labelled
from tests.support.mechanisms.case import PAIRS, POINTS, Case, Twin, labelled, points


@dataclass(frozen=True)
class ExactSizes(LabelSanitizer[Any, Any]):
    """Pays for the sizes, and releases them exactly."""

    def law(self, database: LabelledMultiset) -> Law[ByLabel[Any]]:
        sizes = (database.labelled(0).size, database.labelled(1).size)
        return {release: weight for release, weight in super().law(database).items() if release.sizes == sizes}


def perturbed(epsilon: float) -> PerturbedMinimum:
    return PerturbedMinimum(Perturbation(Conjunctions(2), epsilon), Exhaustive(Conjunctions(2)))


def counted(epsilon: float, delta: float) -> Processed[Any, Any, Any, Any]:
    """How many values a histogram releases."""
    return Processed(ThresholdedHistogram(epsilon, delta), lambda release: len(release.values))


SIZES = Twin(LabelSanitizer(Medians(3.0, 1, 2), 1, 3.0)), Twin(ExactSizes(Medians(1.0, 1, 2), 1, 1.0))
CASES = (
    Case(perturbed(1.0), PAIRS, Labelled.of, (1, 2), (Twin(perturbed(2.0)),)),
    Case(
        LabelSanitizer(Medians(1.0, 1, 2), 1, 1.0),
        PAIRS,
        labelled(2),
        (1,),
        SIZES,
        factor=0,
    ),
    Case(counted(1.0, 0.2), POINTS, points(2), (2, 4), (Twin(counted(1.0, 0.6)),)),
)
ELSEWHERE = {
    "Amplified": "tests/curator/reductions/test_reductions.py",
    "MediansByLabel": "tests/curator/reductions/test_reductions.py",
    "RobustRelease": "tests/curator/oracle_efficient/test_robust.py",
}
