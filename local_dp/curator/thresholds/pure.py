"""The pure learner of thresholds: the exponential mechanism over all 2^bits + 1 of them."""

from dataclasses import dataclass

from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.selection.exponential import ByScore
from local_dp.curator.selection.runs import Runs
from local_dp.curator.thresholds.base import ThresholdLearner, agreements
from local_dp.loss import Pure


@dataclass(frozen=True)
class PureThresholds(ByScore[LabelledMultiset, int], ThresholdLearner[Pure]):
    """The threshold t with probability proportional to e^(-eps (errors of t) / 2).

    Privacy: epsilon. Utility: within alpha of the best for about (2 / (eps alpha)) ln(2^bits / beta) records: as many as the points have bits, and every pure
    proper learner needs a constant share of that. Cost: O(m log m). Source: KLNRS 2008, Theorem 3.7; Beimel, Nissim, Stemmer 2013, Section 2.5.2.
    """

    epsilon: float

    def candidates(self, database: LabelledMultiset) -> Runs:
        """A replaced example moves the errors of a threshold by at most 1."""
        return agreements(database)

    def chance(self, sample: LabelledMultiset, low: int, high: int) -> float:
        runs = agreements(sample)
        return float(self.choice.share(runs, runs.within(low, high)))
