"""Thresholds learned from releases of all thresholds of each label's points: Theorem 5.5, and the same without amplification, by trees of medians."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.reductions.label_sanitizer import ByLabel, P, label_sanitizer
from local_dp.curator.reductions.learners import Processed, amplified, learner_from_sanitizer
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.steps import Steps
from local_dp.draws import Draws
from local_dp.loss import NANO, Pure, nano_epsilon


def best_threshold(released: ByLabel[Steps]) -> int:
    """The t that errs least on what is released, x >= t being labelled 1: the middle of the first best step."""
    starts = sorted({0, *(start for steps in (released.zeros, released.ones) if steps for start in steps.starts)})
    errors = [threshold_error(released, start) for start in starts]
    best = min(range(len(starts)), key=errors.__getitem__)
    last = starts[best + 1] - 1 if best + 1 < len(starts) else starts[best]
    return (starts[best] + last) // 2


def threshold_error(released: ByLabel[Steps], threshold: int) -> float:
    """The estimated share of wrong labels: zeros from the threshold on, ones below it."""
    zeros, ones = released.sizes
    wrong = zeros * (1 - released.zeros.share(threshold)) if released.zeros else 0.0
    return (wrong + (ones * released.ones.share(threshold) if released.ones else 0.0)) / max(1, zeros + ones)


def averaged(releases: Sequence[Steps]) -> Steps:
    """The mean answer to each threshold."""
    starts = sorted({start for steps in releases for start in steps.starts})
    return Steps(releases[0].bits, tuple(starts), tuple(sum(steps.share(start) for steps in releases) / len(releases) for start in starts))


def learner_of_thresholds(sanitizer: Mechanism[Multiset, Steps, P], records: int, epsilon: float) -> Processed[LabelledMultiset, ByLabel[Steps], int, P]:
    """Theorem 5.5: a proper learner from any sanitizer of thresholds on `records` records, `epsilon` for the number of each label's records.

    Privacy: twice the sanitizer's and 2 epsilon. Utility: 15 alpha + 12 beta except with probability 10 beta for an (alpha, beta)-sanitizer, given
    (150 / (alpha^2 beta)) ln(2 / (alpha beta)) (records + 1 / epsilon) examples.
    """
    return learner_from_sanitizer(label_sanitizer(amplified(sanitizer, records, averaged), records, epsilon), best_threshold)


@dataclass(frozen=True)
class MediansByLabel(Mechanism[LabelledMultiset, ByLabel[Steps], Pure]):
    """A tree of medians for the points of each label, and the number of ones with discrete Laplace noise: no amplification is needed.

    Privacy: epsilon, a tenth of it for the number. The label is one more bit at the top of the tree: a changed label removes a record from one tree and adds
    one to the other, at half the loss of a replaced record each (`Medians`).
    """

    epsilon: float
    levels: int
    low: int = 10

    def __post_init__(self) -> None:
        self._medians()

    @property
    def loss(self) -> Pure:
        return self._medians().loss + self._number

    def release(self, database: LabelledMultiset, draws: Draws) -> ByLabel[Steps]:
        zeros, ones = (self._medians().release(database.labelled(label), draws) for label in (0, 1))
        noisy = int(database.ones.sum()) + draws.discrete_laplace(Fraction(self._number.nano, NANO))
        number = min(database.size, max(0, noisy))
        return ByLabel(zeros, ones, (database.size - number, number))

    @property
    def _number(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon) // 10)

    def _medians(self) -> Medians:
        return Medians((nano_epsilon(self.epsilon) - self._number.nano) / NANO, self.levels, self.low)
