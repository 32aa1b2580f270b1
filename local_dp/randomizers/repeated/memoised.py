"""Reports in two steps, a permanent answer and a fresh report of it in each round; and reports of
clients that speak in one of many rounds."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.checks import check_share, check_whole
from local_dp.domains import bit_or_silence, symbols
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon, split_epsilon
from local_dp.noise import Draw, Noise
from local_dp.optimise import least_whole
from local_dp.randomizers.finite import OneThreshold, ceil_fraction, too_narrow
from local_dp.randomizers.frequencies.grr import GRR, offsets
from local_dp.randomizers.frequencies.local_hashing import (
    MAX_CELLS,
    LinearHash,
    LocalHashing,
    length_of,
)
from local_dp.randomizers.frequencies.unary import OUE, SUE, UnaryEncoding
from local_dp.randomizers.randomizer import NO_COIN, Randomizer
from local_dp.tallies import Estimate, Tally

Odds = tuple[float, float]


@dataclass(frozen=True)
class Repeated(Randomizer):
    """A lasting outcome, by the leading half of each word, and a fresh report of it, by the other
    half."""

    work = "repeated surveys"

    def _fits(self, bits: int) -> bool:
        return False  # each step has half of a word

    def draw(self, noise: Noise, which: Draw, start: int, stop: int) -> Words:
        """Under a label of a simulation, the leading half of each word is the label's. The rest is
        drawn for this ask of this round."""
        if not which.label:
            return super().draw(noise, which, start, stop)
        half, each = self.word_bits // 2, self.words
        halves = (
            noise.words(draw, start * each, stop * each, 32).astype(f"<u{self.width // 8}")
            for draw in (which, Draw(which.round, which.ask))
        )
        lasting, fresh = (words >> words.dtype.type(32 - half) for words in halves)
        words: Words = (lasting << lasting.dtype.type(half)) | fresh
        return words if each == 1 else words.reshape(stop - start, each)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return self.again(self.lasting(values, words, cells), words, cells)


@dataclass(frozen=True, kw_only=True)
class TwoSteps(Repeated):
    """A lasting outcome and a fresh report of it; one report alone loses `first` times epsilon."""

    first: float = 0.5

    @property
    def part(self) -> int:
        """The weight of certainty in one step."""
        return 1 << (self.word_bits // 2)

    def first_growth(self) -> Fraction:
        """e to the share `first` of epsilon. Raises InputError for a share or words that two steps
        cannot have."""
        if type(self.first) is not float:
            raise InputError(f"first is {self.first!r}; give a number between 0 and 1")
        check_share("first", self.first)
        if self.word_bits % 2:
            raise InputError(
                f"word_bits is {self.word_bits}; each step has half of a word, so give an even "
                "number"
            )
        return exp_epsilon(max(1, int(Fraction(repr(self.first)) * self.nano)))


@dataclass(frozen=True, kw_only=True)
class MemoisedGRR(TwoSteps, GRR):
    """Randomizes one of k symbols by k-ary randomized response, for good, and that symbol by
    another such response for each report (L-GRR).

    Under a label (`Memoised`) a client keeps the symbol of the first step, and reports that
    one for ever: the first record counts. Privacy: `epsilon` for life, paid once, whatever the
    record becomes; one report alone `first` times epsilon, enumerated, and m of them
    `loss_after(m)`. Utility: l (1 - l) / (n (p1 - q1)^2 (p2 - q2)^2) with l = q + f (p - q) in one
    round, and for the average of m rounds `memoised_variance`, never below the first step's. Cost:
    log2 k bits; a word, half for each step. 2 <= k <= 4096, 0 < first < 1.
    """

    name = "memoised-grr"
    summary = "Randomizes a symbol for good, and again for each report"
    source = (
        "Erlingsson, Pihur, Korolova 2014 (two steps); Arcolezi, Couchot, Al Bouna, Xiao 2021 "
        "(L-GRR)"
    )

    def prepare(self) -> None:
        if self.part <= self.k * self.others[1]:
            raise too_narrow(self)

    @property
    def kinds(self) -> int:
        """The number of lasting halves of a word that make a difference."""
        return self.part

    @cached_property
    def others(self) -> tuple[int, int]:
        """The weight of each symbol but the true one, in the first step and in the second."""
        growth = self.first_growth()
        grain = self.part // self.kinds
        permanent = grain * ceil_fraction(self.kinds / (exp_epsilon(self.nano) + self.k - 1))
        if self.part <= self.k * permanent:
            raise too_narrow(self)

        def keeps(second: int) -> bool:
            own, other = _both(self.k, self.part, permanent, second)
            return own <= growth * other

        return permanent, least_whole(0, self.part // self.k, keeps)  # the most reveals nothing

    @cached_property
    def other(self) -> int:
        return _both(self.k, self.part, *self.others)[1]

    @property
    def odds(self) -> tuple[Odds, Odds]:
        """The probabilities (p, q) of the true symbol and of each other one, in the first step and
        in the second."""
        first, second = (
            (1 - (self.k - 1) * other / self.part, other / self.part) for other in self.others
        )
        return first, second

    def lasting(self, values: Ints, words: Words, cells: Words) -> Words:
        return self._step(values, words >> words.dtype.type(self.word_bits // 2), self.others[0])

    def again(self, outcomes: Words, words: Words, cells: Words) -> Words:
        return self._step(outcomes, words & words.dtype.type(self.part - 1), self.others[1])

    def _step(self, values: Ints, words: Words, other: int) -> Words:
        return self.moved(values, offsets(words, other, self.k).astype(np.uint16))

    def loss_after(self, reports: int) -> float:
        """The loss of so many reports under one label, in nats; the worst are alike: p1 p2^m + (k -
        1) q1 q2^m against q1 p2^m + (p1 + (k - 2) q1) q2^m."""
        (p1, q1), (p2, q2) = self.odds
        rest = (q2 / p2) ** reports
        return float(
            np.log((p1 + (self.k - 1) * q1 * rest) / (q1 + (p1 + (self.k - 2) * q1) * rest))
        )


def _both(k: int, part: int, permanent: int, second: int) -> tuple[int, int]:
    """The weights of the true symbol and of each other one after both steps, out of part^2."""
    keep, again = part - (k - 1) * permanent, part - (k - 1) * second
    return keep * again + (k - 1) * permanent * second, keep * second + permanent * again + (
        k - 2
    ) * permanent * second


def memoised_variance(odds: tuple[Odds, Odds], share: float, rounds: int = 1) -> float:
    """n times the variance of a frequency estimated as the average over rounds of the same clients,
    for a symbol of this share.

    (l (1 - l) / m + (1 - 1 / m) (a p2^2 + (1 - a) q2^2 - l^2)) / ((p1 - q1) (p2 - q2))^2, a = q1 +
    f (p1 - q1), l = q2 + a (p2 - q2): two reports of one client are independent given the outcome
    of its first step. For m = 1 this is the closed form of L-GRR.
    """
    (p1, q1), (p2, q2) = odds
    lasting = q1 + share * (p1 - q1)
    chance = q2 + lasting * (p2 - q2)
    together = lasting * p2**2 + (1 - lasting) * q2**2 - chance**2
    return (chance * (1 - chance) / rounds + (1 - 1 / rounds) * together) / (
        (p1 - q1) * (p2 - q2)
    ) ** 2


PERMANENT: dict[str, type[OUE] | type[SUE]] = {"oue": OUE, "sue": SUE}


@dataclass(frozen=True, kw_only=True)
class MemoisedRAPPOR(TwoSteps, UnaryEncoding):
    """Randomizes a bit for each of k symbols for good, by unary encoding `permanent`, and flips
    each lasting bit with probability f for each report.

    `permanent` is "oue" (L-OSUE) or "sue" (L-SUE, basic RAPPOR). Under a label (`Memoised`)
    a client keeps the lasting bits: the first record counts. Privacy: `epsilon` for life, paid
    once, whatever the record becomes; one report alone `first` times epsilon, enumerated, and m of
    them `loss_after(m)`. Utility: l (1 - l) / (n (p - q)^2), l = q + f (p - q), for the chances p,
    q of a 1 after both steps (`bounds.longitudinal.rappor_variance`), and of m rounds
    `memoised_variance` of `odds`. Cost: k bits, k words. 2 <= k <= 4096, 0 < first < 1.
    """

    name = "memoised-rappor"
    summary = "Randomizes bits for good, and again for each report"
    source = (
        "Erlingsson, Pihur, Korolova 2014 (RAPPOR); Arcolezi, Couchot, Al Bouna, Xiao 2021 "
        "(L-SUE, L-OSUE)"
    )
    permanent: str = "oue"

    def check(self) -> None:
        if self.permanent not in PERMANENT:
            raise InputError(f"permanent is {self.permanent!r}; choose from {', '.join(PERMANENT)}")
        super().check()

    @cached_property
    def flip(self) -> int:
        """The weight of a lasting bit that is flipped in a report."""
        growth, (other, own) = self.first_growth(), self.permanent_step.ones

        def keeps(flip: int) -> bool:
            low, high = (_twice(weight, flip, self.part) for weight in (other, own))
            return high * (self.total - low) <= growth * low * (self.total - high)

        return least_whole(0, self.part // 2, keeps)

    @cached_property
    def permanent_step(self) -> UnaryEncoding:
        """The first step alone: the most that all reports of a life reveal."""
        return PERMANENT[self.permanent](self.epsilon, word_bits=self.word_bits // 2, k=self.k)

    def _weights(self, bits: int) -> tuple[int, int]:
        other, own = (_twice(weight, self.flip, self.part) for weight in self.permanent_step.ones)
        return other, own

    @property
    def odds(self) -> tuple[Odds, Odds]:
        """The probabilities (p, q) of a 1: after the first step at the client's place and at
        another; in a report for a lasting bit 1 and 0."""
        (other, own), flip = self.permanent_step.ones, self.flip / self.part
        return (own / self.part, other / self.part), (1 - flip, flip)

    def lasting(self, values: Ints, words: Words, cells: Words) -> Words:
        return self.permanent_step.respond(
            values, words >> words.dtype.type(self.word_bits // 2), cells
        )

    def again(self, outcomes: Words, words: Words, cells: Words) -> Words:
        flips = (words & words.dtype.type(self.part - 1)) < words.dtype.type(self.flip)
        return outcomes ^ np.packbits(flips, axis=1, bitorder="little")

    def loss_after(self, reports: int) -> float:
        """The loss of so many reports under one label, in nats; the worst are all 1 at one value's
        place and all 0 at the other's."""
        (p, q), (keep, flip) = self.odds
        rest = (flip / keep) ** reports
        ones = (p + (1 - p) * rest) / (q + (1 - q) * rest)
        zeros = (1 - q + q * rest) / (1 - p + p * rest)
        return float(np.log(ones * zeros))


def _twice(weight: int, flip: int, part: int) -> int:
    """The weight of a 1 in a report, out of part^2, where the lasting bit is 1 with this weight."""
    return weight * (part - flip) + (part - weight) * flip


MAX_CODES = 4  # which share the lasting half of a word


@dataclass(frozen=True, kw_only=True)
class OneCode(MemoisedGRR):
    """The two steps of one code. Each code has its own k-th part of the lasting half of a word, so
    the outcomes of two codes are independent."""

    name = "loloha-code"

    @property
    def own_bits(self) -> int:
        """The bits that each code has for its lasting answer."""
        return self.word_bits // 2 // self.k

    @property
    def kinds(self) -> int:
        return 1 << self.own_bits

    def lasting(self, values: Ints, words: Words, cells: Words) -> Words:
        """Moves the part of the client's code to the front."""
        word, half = words.dtype.type, self.word_bits // 2
        codes = values.astype(words.dtype)
        below = word(half) - word(self.own_bits) * (codes + word(1))
        own = ((words >> word(half)) >> below) & word(self.kinds - 1)
        return super().lasting(values, own << word(2 * half - self.own_bits), cells)


@dataclass(frozen=True, kw_only=True)
class LOLOHA(Repeated, LocalHashing):
    """Hashes the symbol to one of `g` codes by a public row that a label keeps. Two steps of k-ary
    response report the code.

    A client keeps the lasting code of its first record, of epsilon / g; the second step is fresh.
    Privacy: under one label epsilon / g for life, whatever the record becomes, of which `epsilon`
    is charged; `first` times that for one report. Published LOLOHA has a lasting answer for each
    code, so that later values count: `epsilon` against lives that change at the same times, but
    between others T reports lose `bounds.longitudinal.changing_loss`, which exceeds epsilon for
    large T. Utility: that of `OLH` with g codes at `first` epsilon / g: variance l (1 - l) / (n (p
    - q)^2). Cost: log2 g bits, one word. 2 <= g <= 4, and g <= k.
    """

    name = "loloha"
    summary = "Hashes a symbol for good, and randomizes each report"
    source = "Arcolezi, Pinzon, Palamidessi, Gambs 2023; second step and hashes exact"
    g: int = 2
    first: float = 0.5

    @cached_property
    def hash(self) -> LinearHash:
        k = symbols(self.k).size
        check_whole("g", self.g, 2, MAX_CODES)
        if self.g == k:
            return LinearHash(k, k, 1)
        if self.g > k:
            raise InputError(f"g is {self.g}; give at most k = {k} codes")
        family = LinearHash(k, self.g, length_of(k, self.g))
        if family.rows * self.g > MAX_CELLS:
            raise InputError(f"{k} symbols are too many for hashes to {self.g}")
        return family

    @cached_property
    def inner(self) -> OneCode:
        return OneCode(
            split_epsilon(self.epsilon, self.hash.g),
            word_bits=self.word_bits,
            k=self.hash.g,
            first=self.first,
        )

    def lasting(self, values: Ints, words: Words, cells: Words) -> Words:
        return self.inner.lasting(self.encode(values, cells), words, NO_COIN)

    def again(self, outcomes: Words, words: Words, cells: Words) -> Words:
        return self.inner.again(outcomes, words, NO_COIN)


@dataclass(frozen=True, kw_only=True)
class OneOfRounds(OneThreshold):
    """Reports a bit by randomized response, and tosses a fair coin for the value 2, silence.

    Under a label (`Session`) a client may be asked in any number of rounds, and speaks
    in one at most. Privacy: all its reports together are epsilon-locally private, for any server
    (limits 12.1): the chance of any reports is 2^(1 - rounds) times E / (E + 1) or 1 / (E + 1), or
    2^-rounds, which lies between. Utility: the share of ones less that of zeros, of variance at
    most C^2 / n. Cost: one bit a round.
    """

    name = "one-of-rounds"
    summary = "Reports a bit, or tosses a coin while silent"
    source = (
        "Joseph, Mao, Neel, Roth 2019 (fully interactive protocols whose transcripts are "
        "private); limits 12.1"
    )
    estimates = "the share of ones less the share of zeros"
    work = "repeated surveys"
    silence = 2
    domain, alphabet = bit_or_silence(), 2

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        word = words.dtype.type
        flips = words < np.where(values == self.silence, word(self.total // 2), word(self.flip))
        return (values & 1).astype(np.uint8) ^ flips.view(np.uint8)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        truth, half = np.uint64(self.total - self.flip), np.uint64(self.total // 2)
        weights: Words = np.where(
            values == self.silence, half, np.where(reports == values, truth, np.uint64(self.flip))
        )
        return weights + np.zeros(np.shape(cells), dtype=np.uint64)

    def truths(self, values: Ints) -> Floats:
        return np.asarray((values == 1).astype(np.float64) - (values == 0))[:, None]

    def estimate(self, tally: Tally) -> Estimate:
        """The share of ones less that of zeros, unbiased, in [-1, 1]."""
        n = tally.answered
        balance = 2 * float(tally.counts[0, 1]) / n - 1
        return Estimate.between((-self.gain, self.gain), self.gain * balance, n, -1.0)
