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
    H = alpha m + 1 + (2 / eps) ln(1 / delta), rounded down; `agnostic`: plus the least number of errors, estimated with a tenth of epsilon.
    Privacy: (eps, delta) on every sample: a record lies in `bits` intervals, one of each height, and the largest contains every record.
    So one replacement makes at most `bits` - 1 candidates leave, of score 1 or less, and moves a score by 1 at most.
    Utility: `dyadic_records`. Take the lowest interval around both target - 1 and target with s >= c. Its half with both has fewer than c records,
    or the target is its middle: its middle errs less than c. Cost: O(m log m), whatever the bits.
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
        epsilon = (nano_epsilon(self.epsilon) - self.optimum.nano) / NANO
        return SparseChoice(epsilon, self.delta, max(1, self.bits - 1))

    @property
    def optimum(self) -> Pure:
        """The loss of the least number of errors."""
        return Pure(nano_epsilon(self.epsilon) // 10 if self.agnostic else 0)

    @property
    def loss(self) -> Approximate:
        return self.optimum + self.choice.loss

    def candidates(self, sample: LabelledMultiset, optimum: int) -> Middles:
        """With their scores, if the best threshold errs on `optimum` records."""
        if sample.bits != self.bits:
            raise InputError(f"the points have {sample.bits} bits, the learner is for {self.bits}; give one number for both")
        height = optimum + math.floor(self.alpha * sample.size + spare(self.choice.epsilon, self.delta))
        return middles(Multiset(sample.bits, sample.values, sample.zeros + sample.ones), height - errors_by_gap(sample))

    def release(self, database: LabelledMultiset, draws: Draws) -> int:
        optimum = int(errors_by_gap(database).min()) + draws.discrete_laplace(Fraction(self.optimum.nano, NANO)) if self.agnostic else 0
        threshold = self.choice.choose(self.candidates(database, optimum), draws)
        return 1 << (self.bits - 1) if threshold is None else threshold

    def law(self, database: LabelledMultiset) -> Law[int]:
        """Exact; not for an agnostic learner."""
        if self.agnostic:
            raise InputError("an agnostic law has infinitely many outcomes and is not listed; use `chance`")
        law = dict(self.choice.law(self.candidates(database, 0)))
        none = law.pop(None)
        shares: dict[int, int] = {answer: weight for answer, weight in law.items() if answer is not None}
        return {**shares, 1 << (self.bits - 1): shares.get(1 << (self.bits - 1), 0) + none}

    def chance(self, sample: LabelledMultiset, low: int, high: int) -> float:
        fallback, total, inside = 1 << (self.bits - 1), 0.0, self.candidates(sample, 0).within(low, high)
        for optimum, share in self._optima(sample):
            answered, none = self.choice.share(self.candidates(sample, optimum), inside)
            total += share * float(answered + (none if low <= fallback <= high else 0))
        return total

    def _optima(self, sample: LabelledMultiset) -> list[tuple[int, float]]:
        """The possible estimates of the least number of errors, and their probabilities."""
        if not self.agnostic:
            return [(0, 1.0)]
        least, rate = int(errors_by_gap(sample).min()), self.optimum.epsilon
        most = math.ceil(-math.log(_FORGOTTEN) / rate)
        return [(least + noise, math.tanh(rate / 2) * math.exp(-rate * abs(noise))) for noise in range(-most, most + 1)]


def dyadic_records(bits: int, alpha: float, epsilon: float, delta: float, beta: float = 0.1) -> int:
    """m with alpha m >= `surely_within`(bits, ...): if some threshold fits all m records, it errs on at most alpha m, except with probability beta.

    597, 652 and 763 records at 16, 64 and 1,024 bits for alpha .1, epsilon 1, delta 1e-6, beta .1.
    """
    return math.ceil(surely_within(bits, epsilon, delta, beta) / alpha)
