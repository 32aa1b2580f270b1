"""k-ary randomized response in two steps: a permanent one, and one of its outcome that is made anew for every report."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import symbols
from local_dp.loss import exp_epsilon
from local_dp.noise import Draw, Noise
from local_dp.randomizers.finite import ceil_fraction, too_narrow
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.randomizer import Work
from local_dp.randomizers.repeated.two_steps import Odds, first_growth, least_weight, two_step_words


@dataclass(frozen=True, kw_only=True)
class MemoisedGRR(GRR):
    """Randomizes one of k symbols by k-ary randomized response, for good, and that symbol by another such response for each report (L-GRR).

    Asked under a label (`LocalQuery.once`) the first step has the same words in every round and the second has fresh ones: whoever reads the reports sees
    other symbols from round to round, and all of them together, for ever, tell no more than the first step. Privacy: `epsilon` for life, paid once; one
    report alone `first` times epsilon, enumerated, and m of them `loss_after(m)`. A value that changes is another question and needs another label.
    Utility: l (1 - l) / (n (p1 - q1)^2 (p2 - q2)^2) with l = q + f (p - q) in one round, and of the average of m rounds `memoised_variance`, which does not
    fall below the first step's. Cost: log2 k bits; a word, of which each step has half. 2 <= k <= 4096, 0 < first < 1.
    """

    name: ClassVar[str] = "memoised-grr"
    source: ClassVar[str] = "Erlingsson, Pihur, Korolova 2014 (two steps); Arcolezi, Couchot, Al Bouna, Xiao 2021 (L-GRR)"
    work: ClassVar[Work] = "repeated surveys"
    first: float = 0.5

    def _fits(self, bits: int) -> bool:
        return False  # each step has half of a word

    def prepare(self) -> None:
        symbols(self.k)
        if self.part <= self.k * self.others[1]:
            raise too_narrow(self)

    @property
    def part(self) -> int:
        """The weight of certainty in one step."""
        return 1 << (self.word_bits // 2)

    @property
    def kinds(self) -> int:
        """How many lasting halves of a word are told apart."""
        return self.part

    @cached_property
    def others(self) -> tuple[int, int]:
        """The weight of each symbol that is not the true one, in the first step and in the second."""
        growth = first_growth(self, self.first)
        grain = self.part // self.kinds
        permanent = grain * ceil_fraction(self.kinds / (exp_epsilon(self.nano) + self.k - 1))
        if self.part <= self.k * permanent:
            raise too_narrow(self)

        def keeps(second: int) -> bool:
            own, other = _both(self.k, self.part, permanent, second)
            return own <= growth * other

        return permanent, least_weight(self.part // self.k, keeps)

    @cached_property
    def other(self) -> int:
        return _both(self.k, self.part, *self.others)[1]

    @property
    def odds(self) -> tuple[Odds, Odds]:
        """The probabilities (p, q) of the true symbol and of each other one, in the first step and in the second."""
        first, second = ((1 - (self.k - 1) * other / self.part, other / self.part) for other in self.others)
        return first, second

    def draw(self, noise: Noise, which: Draw, start: int, stop: int) -> Words:
        """Under a label the leading half of a word is that of the label, and the rest is of this ask of this round."""
        if not which.once:
            return super().draw(noise, which, start, stop)
        return two_step_words(self, noise, which, start, stop)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        word = words.dtype.type
        lasting = self._step(values.astype(np.int64), words >> word(self.word_bits // 2), self.others[0])
        return self._step(lasting, words & word(self.part - 1), self.others[1]).astype(self.report_dtype)

    def _step(self, values: Ints, words: Words, other: int) -> Ints:
        """Splits the words into k - 1 equal steps, one for each other symbol, and a last one for the true one."""
        offset = np.minimum(words // words.dtype.type(other), words.dtype.type(self.k - 1)).astype(np.int64)
        reports: Ints = (values + offset + 1) % self.k
        return reports

    def loss_after(self, reports: int) -> float:
        """What so many reports under one label tell together, in nats: `first` epsilon for one, and towards epsilon for many.

        The worst reports are all the same: p1 p2^m + (k - 1) q1 q2^m against q1 p2^m + (p1 + (k - 2) q1) q2^m.
        """
        (p1, q1), (p2, q2) = self.odds
        rest = (q2 / p2) ** reports
        return float(np.log((p1 + (self.k - 1) * q1 * rest) / (q1 + (p1 + (self.k - 2) * q1) * rest)))


def _both(k: int, part: int, permanent: int, second: int) -> tuple[int, int]:
    """The weights of the true symbol and of each other one after both steps, out of part^2."""
    kept, again = part - (k - 1) * permanent, part - (k - 1) * second
    return kept * again + (k - 1) * permanent * second, kept * second + permanent * again + (k - 2) * permanent * second


def memoised_variance(odds: tuple[Odds, Odds], share: float, rounds: int = 1) -> float:
    """n times the variance of a frequency estimated as the average over rounds of the same clients, with a symbol that `share` of them hold.

    (l (1 - l) / m + (1 - 1 / m) (a p2^2 + (1 - a) q2^2 - l^2)) / ((p1 - q1) (p2 - q2))^2, a = q1 + f (p1 - q1), l = q2 + a (p2 - q2): two reports of one
    client are independent given the outcome of its first step. For m = 1 this is the closed form of L-GRR.
    """
    (p1, q1), (p2, q2) = odds
    lasting = q1 + share * (p1 - q1)
    seen = q2 + lasting * (p2 - q2)
    together = lasting * p2**2 + (1 - lasting) * q2**2 - seen**2
    return (seen * (1 - seen) / rounds + (1 - 1 / rounds) * together) / ((p1 - q1) * (p2 - q2)) ** 2
