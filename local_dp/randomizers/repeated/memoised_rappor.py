"""RAPPOR: unary encoding whose bits are flipped twice, once for good and once more for every report."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.noise import Draw, Noise
from local_dp.randomizers.finite import too_narrow
from local_dp.randomizers.frequencies.unary import OUE, SUE, UnaryEncoding
from local_dp.randomizers.randomizer import Work
from local_dp.randomizers.repeated.two_steps import Odds, first_growth, least_weight, two_step_words

PERMANENT: dict[str, type[OUE] | type[SUE]] = {"oue": OUE, "sue": SUE}


@dataclass(frozen=True, kw_only=True)
class MemoisedRAPPOR(UnaryEncoding):
    """Randomizes a bit for each of k symbols for good, by optimised (`permanent` oue: L-OSUE) or symmetric (sue: L-SUE, basic RAPPOR) unary encoding, and
    flips each of these lasting bits with probability f anew for each report.

    Asked under a label (`LocalQuery.once`) the lasting bits have the same words in every round and the flips fresh ones. Privacy: `epsilon` for life, paid
    once, whatever the number of reports; one report alone `first` times epsilon, by its enumerated bits, and m of them `loss_after(m)`. A value that changes
    is another question and needs another label. Utility: l (1 - l) / (n (p - q)^2), l = q + f (p - q), for the chances p, q of a 1 after both steps
    (`bounds.longitudinal.rappor_variance`), and of the average of m rounds `memoised_variance` of `odds`. Cost: k bits, k words. 2 <= k <= 4096, 0 < first < 1.
    """

    name: ClassVar[str] = "memoised-rappor"
    source: ClassVar[str] = "Erlingsson, Pihur, Korolova 2014 (RAPPOR); Arcolezi, Couchot, Al Bouna, Xiao 2021 (L-SUE, L-OSUE)"
    work: ClassVar[Work] = "repeated surveys"
    first: float = 0.5
    permanent: str = "oue"

    def _fits(self, bits: int) -> bool:
        return False  # each step has half of a word

    def prepare(self) -> None:
        symbols(self.k)
        if self.permanent not in PERMANENT:
            raise InputError(f"permanent is {self.permanent!r}; choose from {', '.join(PERMANENT)}")
        if self.ones[1] <= self.ones[0]:
            raise too_narrow(self)

    @property
    def part(self) -> int:
        """The weight of certainty in one step."""
        return 1 << (self.word_bits // 2)

    @cached_property
    def flip(self) -> int:
        """The weight of a lasting bit that is flipped in a report."""
        growth, (other, own) = first_growth(self, self.first), self.lasting.ones

        def keeps(flip: int) -> bool:
            low, high = (_twice(weight, flip, self.part) for weight in (other, own))
            return high * (self.total - low) <= growth * low * (self.total - high)

        return least_weight(self.part // 2, keeps)

    @cached_property
    def lasting(self) -> UnaryEncoding:
        """The first step alone: what all reports of a life together tell at most."""
        return PERMANENT[self.permanent](self.epsilon, word_bits=self.word_bits // 2, k=self.k)

    def _weights(self, bits: int) -> tuple[int, int]:
        other, own = (_twice(weight, self.flip, self.part) for weight in self.lasting.ones)
        return other, own

    @property
    def odds(self) -> tuple[Odds, Odds]:
        """The probabilities (p, q) of a 1: at the own place and at another's after the first step; of a report where the lasting bit is 1 and where it is 0."""
        (other, own), flip = self.lasting.ones, self.flip / self.part
        return (own / self.part, other / self.part), (1 - flip, flip)

    def draw(self, noise: Noise, which: Draw, start: int, stop: int) -> Words:
        """Under a label the leading half of each word is that of the label, and the rest is of this ask of this round."""
        if not which.once:
            return super().draw(noise, which, start, stop)
        return two_step_words(self, noise, which, start, stop).reshape(stop - start, self.words)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        half, word = words.dtype.type(self.word_bits // 2), words.dtype.type
        other, own = (word(weight) for weight in self.lasting.ones)
        leading, held = words >> half, (np.arange(len(values)), values.astype(np.int64))
        bits = leading < other
        bits[held] = leading[held] < own
        bits ^= (words & word(self.part - 1)) < word(self.flip)
        return np.packbits(bits, axis=1, bitorder="little")

    def loss_after(self, reports: int) -> float:
        """What so many reports under one label tell together, in nats: `first` epsilon for one, and towards epsilon for many.

        The worst reports are all 1 at one value's place and all 0 at the other's: at each, the chances of a lasting bit times those of the flips.
        """
        (p, q), (kept, flip) = self.odds
        rest = (flip / kept) ** reports
        ones = (p + (1 - p) * rest) / (q + (1 - q) * rest)
        zeros = (1 - q + q * rest) / (1 - p + p * rest)
        return float(np.log(ones * zeros))


def _twice(weight: int, flip: int, part: int) -> int:
    """The weight of a 1 in a report, out of part^2, where the lasting bit is 1 with this weight."""
    return weight * (part - flip) + (part - weight) * flip
