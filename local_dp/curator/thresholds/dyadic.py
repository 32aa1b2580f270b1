"""Thresholds from dyadic intervals: as many records as the logarithm of the number of bits, not the bits (the warm-up of Section 3.2, completed)."""

import math
from dataclasses import dataclass
from fractions import Fraction

from local_dp.checks import check_share
from local_dp.curator.mechanism import Law
from local_dp.curator.multisets import LabelledMultiset, Multiset, check_bits
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.curator.thresholds.candidates import Middles, middles, spare, surely_within
from local_dp.curator.thresholds.learner import ThresholdLearner, errors_by_gap
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, Pure, nano_epsilon

_FORGOTTEN = 1e-4


@dataclass(frozen=True)
class DyadicThresholds(ThresholdLearner[Approximate]):
    """A threshold t with weight e^(eps min(s, H - errors(t)) / 2), s the number of records in the dyadic interval whose middle is t.

    Candidates have s >= 1; the constants 0 and 2^bits always are candidates, of score H - errors. No answer: 2^(bits - 1).
    H = alpha m + 1 + (2 / eps) ln(1 / delta), rounded down; `agnostic`: plus the least number of errors, found with a tenth of epsilon.
    Privacy: (eps, delta) on every sample: a record lies in `bits` intervals, one of each height, and the largest holds whoever replaces it, so that one
    replacement makes at most `bits` - 1 candidates leave, of score 1 or less, and moves a score by 1 at most.
    Utility: `dyadic_records`. Of the intervals around both target - 1 and target, the lowest with s >= c has a half of fewer than c records that holds both,
    or the target in its middle: its middle errs less than c. Cost: O(m log m), whatever the bits.
    Source: completes the informal Section 3.2 of Beimel, Nissim, Stemmer 2013, where an interval counts the smaller number of its zeros and ones: as private,
    as well proven, but at 64 bits twice as many records.
    """

    bits: int
    alpha: float
    epsilon: float
    delta: float
    agnostic: bool = False

    def __post_init__(self) -> None:
        check_bits(self.bits)
        check_share("alpha", self.alpha)
        self.choice.loss  # noqa: B018 - refuses what the choice refuses

    @property
    def choice(self) -> SparseChoice:
        """The choice among the candidates."""
        epsilon = (nano_epsilon(self.epsilon) - self.optimum.nano) / NANO
        return SparseChoice(epsilon, self.delta, max(1, self.bits - 1))

    @property
    def optimum(self) -> Pure:
        """What is spent on the least number of errors."""
        return Pure(nano_epsilon(self.epsilon) // 10 if self.agnostic else 0)

    @property
    def loss(self) -> Approximate:
        return self.optimum + self.choice.loss

    def candidates(self, sample: LabelledMultiset, optimum: int) -> Middles:
        """With their scores, if the best threshold is taken to err on `optimum` records."""
        if sample.bits != self.bits:
            raise InputError(f"the sample is of points of {sample.bits} bits, the learner of {self.bits}")
        height = optimum + math.floor(self.alpha * sample.size + spare(self.choice.epsilon, self.delta))
        return middles(Multiset(sample.bits, sample.values, sample.zeros + sample.ones), height - errors_by_gap(sample))

    def release(self, database: LabelledMultiset, draws: Draws) -> int:
        optimum = int(errors_by_gap(database).min()) + draws.discrete_laplace(self._rate) if self.agnostic else 0
        chosen = self.choice.choose(self.candidates(database, optimum), draws)
        return 1 << (self.bits - 1) if chosen is None else chosen

    def law(self, database: LabelledMultiset) -> Law[int]:
        """Exactly; not of an agnostic learner."""
        if self.agnostic:
            raise InputError("the least number of errors may be found as any whole number: the law is not listed; ask for `chance`")
        law = dict(self.choice.law(self.candidates(database, 0)))
        none = law.pop(None)
        found: dict[int, int] = {answer: weight for answer, weight in law.items() if answer is not None}
        return {**found, 1 << (self.bits - 1): found.get(1 << (self.bits - 1), 0) + none}

    def chance(self, sample: LabelledMultiset, low: int, high: int) -> float:
        fallback, total, inside = 1 << (self.bits - 1), 0.0, self.candidates(sample, 0).within(low, high)
        for optimum, share in self._optima(sample):
            told, none = self.choice.share(self.candidates(sample, optimum), inside)
            total += share * float(told + (none if low <= fallback <= high else 0))
        return total

    @property
    def _rate(self) -> Fraction:
        return Fraction(self.optimum.nano, NANO)

    def _optima(self, sample: LabelledMultiset) -> list[tuple[int, float]]:
        """What the least number of errors may be found as, and how likely that is."""
        if not self.agnostic:
            return [(0, 1.0)]
        least, rate = int(errors_by_gap(sample).min()), float(self._rate)
        most = math.ceil(-math.log(_FORGOTTEN) / rate)
        return [(least + moved, math.tanh(rate / 2) * math.exp(-rate * abs(moved))) for moved in range(-most, most + 1)]


def dyadic_records(bits: int, alpha: float, epsilon: float, delta: float, beta: float = 0.1) -> int:
    """m with alpha m >= `surely_within`(bits, ...): then it errs on at most alpha m of m records that some threshold fits, except with probability beta.

    597, 652 and 763 records at 16, 64 and 1,024 bits for alpha .1, epsilon 1, delta 1e-6, beta .1.
    """
    return math.ceil(surely_within(bits, epsilon, delta, beta) / alpha)
