"""Unary encoding: a bit or a noisy count for each of k symbols, 1 at the client's and 0 elsewhere,
each randomized by itself."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.loss import NANO, exp_epsilon
from local_dp.noise import Draw, KeyedNoise, ties
from local_dp.randomizers.finite import (
    ceil_fraction,
    flip_weight,
    loses_little,
    of_moments,
    too_narrow,
)
from local_dp.randomizers.frequencies.base import (
    FrequencyOracle,
    OfSymbols,
    Supporting,
    joint_of_places,
    steady_estimate,
)
from local_dp.randomizers.places import BitVector, PlaceVector
from local_dp.randomizers.table import Law, TableChannel
from local_dp.tallies import Estimate, Joint, Tally

_ROOT_BITS = 128  # of a square root, far beyond a word's


@dataclass(frozen=True)
class OwnPlace(BitVector, Supporting, FrequencyOracle):
    """Reports 1 at the client's own place, if it has one, with probability p = P / 2^m, and at each
    other place with probability q = Q / 2^m.

    Privacy: two values differ at two places, so the loss is ln(p (1 - q) / (q (1 - p))).
    """

    def prepare(self) -> None:
        if self.ones[1] <= self.ones[0]:
            raise too_narrow(self)

    @cached_property
    def ones(self) -> tuple[int, int]:
        return self._weights(self.word_bits)

    @abstractmethod
    def _weights(self, bits: int) -> tuple[int, int]:
        """Q and P: the weights of a reported 1, out of 2^bits, at another symbol's place and at the
        client's, rounded towards privacy."""

    @property
    def chances(self) -> tuple[float, float]:
        return self.ones[1] / self.total, self.ones[0] / self.total

    def _moments(self, tally: Tally) -> tuple[Floats, Floats]:
        """The mean and the mean square of a report's estimate at each place, (b - q) / (p - q)."""
        rates, (p, q) = tally.counts / tally.answered, self.chances
        mean, square = rates - q, rates * (1 - q) ** 2 + (1 - rates) * q**2
        return mean / (p - q), square / (p - q) ** 2

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        """Its `ends` are of reports of one place, or of none."""
        p, q = self.chances
        blind = q * weights.sum(axis=1, keepdims=True)
        each = (np.pad(weights, ((0, 0), (0, 1))) - blind) / (p - q)
        return joint_of_places(
            tally.answered, weights, *self._moments(tally), (each.min(axis=1), each.max(axis=1))
        )


@dataclass(frozen=True)
class UnaryEncoding(OwnPlace, OfSymbols):
    """One place for each of k symbols, 2 <= k <= 4096: each frequency has variance l (1 - l) / (n
    (p - q)^2), l = q + f (p - q). Cost: k bits and words."""

    def _fits(self, bits: int) -> bool:
        (other, own), total = self._weights(bits), 1 << bits
        return loses_little(own * (total - other), other * (total - own), self.nano)

    @cached_property
    def code(self) -> Ints:
        return np.eye(self.k, dtype=np.uint8)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        """As `BitVector.respond`, with one threshold for all places and another for the client's:
        five times as fast as a table."""
        other, own = (words.dtype.type(weight) for weight in self.ones)
        bits = words < other
        own_places = np.arange(len(values)), values.astype(np.int64)
        bits[own_places] = words[own_places] < own
        return np.packbits(bits, axis=1, bitorder="little")

    def simulated(
        self, noise: KeyedNoise, which: Draw, start: int, values: Ints, cells: Words
    ) -> Words:
        """By one byte of each word, and the rest of the few words that this byte does not
        decide."""
        n, k = len(values), self.places
        other, own = (weight << (64 - self.word_bits) for weight in self.ones)
        draws = noise.leading(which, start * k, (start + n) * k, 8, ties((other, own)))
        bits, places = draws.below(other), np.arange(n) * k + values
        bits[places] = draws.below_at(own, places)
        if k % 8:
            return np.packbits(bits.reshape(n, k), axis=1, bitorder="little")
        return np.packbits(bits, bitorder="little").reshape(n, k // 8)  # the same, twice as fast

    def estimate(self, tally: Tally) -> Estimate:
        return self.supported(tally.counts / tally.answered, tally.n)


@dataclass(frozen=True, kw_only=True)
class SUE(UnaryEncoding):
    """Symmetric unary encoding: every bit is flipped with probability q = 1 / (e^(eps / 2) + 1),
    rounded towards privacy.

    Privacy: ((1 - q) / q)^2 <= e^eps. Utility: each frequency has variance (e^(eps / 2) / (e^(eps /
    2) - 1)^2 + f (1 - f)) / n, largest at f = 1/2 (`bounds.frequencies.sue_variance`). Cost: k
    bits.
    """

    name = "sue"
    summary = "Reports a bit for each symbol, all flipped alike"
    source = "Erlingsson, Pihur, Korolova 2014 (basic RAPPOR, one time); Wang, Blocki, Li, Jha 2017"

    def _weights(self, bits: int) -> tuple[int, int]:
        square = exp_epsilon(self.nano)
        product = square.numerator * square.denominator << 2 * _ROOT_BITS
        # at most e^(eps / 2), and within 2^-128 of it
        root = Fraction(math.isqrt(product), square.denominator << _ROOT_BITS)
        flip = ceil_fraction(2**bits / (1 + root))
        return flip, 2**bits - flip


@dataclass(frozen=True, kw_only=True)
class OUE(UnaryEncoding):
    """Optimised unary encoding: the true bit is a fair coin, and each other one is 1 with
    probability q = 1 / (e^eps + 1), rounded towards privacy.

    Privacy: (1 - q) / q <= e^eps. Utility: each frequency has variance (4 e^eps / (e^eps - 1)^2 + f
    (2 - f)) / n, the least of all unary encodings for a rare symbol, and C^2 / n at f = 1
    (`bounds.frequencies.oue_variance`). Cost: k bits.
    """

    name = "oue"
    summary = "Reports a bit for each symbol, with the least variance"
    source = "Wang, Blocki, Li, Jha 2017"

    def _weights(self, bits: int) -> tuple[int, int]:
        return flip_weight(self.nano, bits), 2**bits // 2


STEPS = 128  # of the thresholds between 0 and 1 that are tried


@dataclass(frozen=True, kw_only=True)
class THE(UnaryEncoding):
    """Reports for each symbol whether its count, 1 at the client's and 0 elsewhere, plus Laplace
    noise of scale 2 / eps exceeds a threshold t.

    A report is 1 with probability p = 1 - e^(-(1 - t) eps / 2) / 2 at the client's symbol and q =
    e^(-t eps / 2) / 2 elsewhere; the noise is never drawn. t is the multiple of 1/128 of least
    variance for a rare symbol. Privacy: the noisy counts lose eps, and the bits less: ln(p (1 - q)
    / (q (1 - p))), enumerated, is below eps / 2 + ln 4. So optimised unary encoding, which spends
    all, is never worse, and this is here for comparison. Utility: variance l (1 - l) / (n (p -
    q)^2), l = q + f (p - q). Cost: k bits.
    """

    name = "the"
    summary = "Reports for each symbol whether a noisy count is large"
    source = "Wang, Blocki, Li, Jha 2017"

    def _weights(self, bits: int) -> tuple[int, int]:
        nano = self.nano
        other, miss = _tails(nano, best_threshold(nano))
        return ceil_fraction(2**bits * other), 2**bits - ceil_fraction(2**bits * miss)

    def _fits(self, bits: int) -> bool:
        return self.epsilon <= 16  # beyond, a 1 elsewhere is too rare for 32 bits


def _tails(nano: int, step: int) -> tuple[Fraction, Fraction]:
    """q and 1 - p at the threshold step / STEPS, each rounded up."""

    def tail(part: int) -> Fraction:
        return 1 / (2 * exp_epsilon(Fraction(nano * part, 2 * STEPS)))

    return tail(step), tail(STEPS - step)


@lru_cache(maxsize=1024)
def best_threshold(nano: int) -> int:
    """The step of least q (1 - q) / (p - q)^2: half of them at small epsilon, more and more at
    large."""

    def spread(step: int) -> Fraction:
        other, miss = _tails(nano, step)
        return other * (1 - other) / (1 - miss - other) ** 2

    return min(range(STEPS // 2, STEPS), key=spread)


WIDEST = 127  # the widest window of reported sums, to either side
_TAIL = 32.0  # nats: beyond so many a report is rarer than 2^-46


@dataclass(frozen=True, kw_only=True)
class NoisyBit(TableChannel):
    """A bit plus discrete Laplace noise, Pr[y] = (1 - a) / (1 + a) a^|y|, a = e^-epsilon, clamped
    to -B..B + 1, which are the reports 0..2 B + 1."""

    name = "noisy-bit"
    source = "Ghosh, Roughgarden, Sundararajan 2009"
    domain = symbols(2)

    def law(self) -> Law:
        a, places = (-Decimal(self.nano) / NANO).exp(), range(-self.reach, self.reach + 2)
        scale = [1 / (1 + a) * (1 if y in (places[0], places[-1]) else 1 - a) for y in places]
        return [
            [a ** abs(y - bit) * each for y, each in zip(places, scale, strict=True)]
            for bit in (0, 1)
        ]

    @property
    def reach(self) -> int:
        """B. Sums beyond it are reported as its ends, which loses nothing, because the geometric
        law has no memory."""
        return max(1, min(WIDEST - 1, int(_TAIL / 2 * NANO / self.nano)))

    @cached_property
    def decoded(self) -> Floats:
        """The value of each report: the noisy count, the ends a / (1 - a) further out, scaled to
        means of exactly 0 and 1."""
        beyond = 1 / math.expm1(self.nano / NANO)
        count = np.arange(-self.reach, self.reach + 2, dtype=np.float64)
        count[[0, -1]] += -beyond, beyond
        none, one = self.weights.astype(np.float64) @ count / self.total
        return np.asarray((count - none) / (one - none))

    def estimate(self, tally: Tally) -> Estimate:
        law = tally.counts[0] / tally.answered
        return of_moments(law @ self.decoded, law @ self.decoded**2, tally.n)


@dataclass(frozen=True, kw_only=True)
class SHE(PlaceVector, FrequencyOracle, OfSymbols):
    """Reports for each symbol its count, 1 at the client's and 0 elsewhere, plus discrete Laplace
    noise of scale 2 / eps; the tally adds up.

    Privacy: the two counts that change lose eps / 2 each, enumerated over the window that noise is
    clamped to. Utility: each frequency has variance (2 a / (1
    - a)^2 + f (1 - f)) / n, a = e^(-eps / 2), about 8 / eps^2
      (`bounds.frequencies.summed_variance`), a little less for eps below .2: always more than
    optimised unary encoding, so it is here for comparison. Cost: k bytes.
    """

    name = "she"
    summary = "Reports a noisy count for each symbol"
    source = "Wang, Blocki, Li, Jha 2017; on a lattice Ghosh, Roughgarden, Sundararajan 2009"

    def check(self) -> None:
        if self.nano < 2000:
            raise InputError(f"epsilon is {self.epsilon!r}; {self.name} needs at least 2e-6 nats")
        super().check()

    @cached_property
    def inner(self) -> NoisyBit:
        return NoisyBit(self.nano // 2 / NANO, word_bits=self.word_bits)

    @cached_property
    def code(self) -> Ints:
        return np.eye(self.k, dtype=np.uint8)

    def variance(self, values: Ints, law: Floats) -> Floats:
        """By the mean square of what a place reports for a bit: the mean is the bit."""
        share = law @ self.truths(values)
        none, one = self.inner.weights @ self.inner.decoded**2 / self.inner.total
        return np.asarray(none + share * (one - none) - share**2)

    def _moments(self, tally: Tally) -> tuple[Floats, Floats]:
        """The mean and the mean square of the reported values of each symbol."""
        law = tally.counts / tally.answered
        return law @ self.inner.decoded, law @ self.inner.decoded**2

    def estimate(self, tally: Tally) -> Estimate:
        return steady_estimate(*self._moments(tally), (0.0, 1.0), tally.n)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        return joint_of_places(tally.answered, weights, *self._moments(tally))
