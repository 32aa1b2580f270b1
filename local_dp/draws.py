"""Exact random draws from uniform words: whole numbers, biased coins, two-sided geometric and
Cauchy noise. No float touches a random choice."""

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from local_dp.arrays import Counts, Ints, Words
from local_dp.errors import InputError
from local_dp.noise import Draw, KeyedNoise, Noise

WORD_BITS = 64
_WORD = np.dtype("<u8")
_BLOCK = 256  # words fetched at a time: a call for one word costs as much
_ONE = Fraction(1)


class Draws:
    """The random source of a trusted curator: the 64-bit words of one round of `noise`, read in
    order, each used once.

    `KeyedNoise` makes it reproducible and therefore not private; `SystemNoise` is private. Give
    each curator its own round.
    """

    def __init__(self, noise: Noise, round: int = 0) -> None:
        self._noise = noise
        self._round = round
        self._at = 0
        self._ready = np.zeros(0, dtype=np.uint64)

    @property
    def private(self) -> bool:
        """True if the words are secret."""
        return not isinstance(self._noise, KeyedNoise)

    def words(self, count: int) -> Words:
        """The next `count` uniform 64-bit words."""
        missing = count - len(self._ready)
        if missing > 0:
            start = self._at
            self._at = self._at + max(missing, _BLOCK)
            words = self._noise.words(Draw(self._round), start, self._at, WORD_BITS)
            self._ready = np.concatenate([self._ready, words])
        head = self._ready[:count]
        self._ready = self._ready[count:]
        return head

    def below(self, limit: int) -> int:
        """A uniform whole number from 0 to limit - 1, by rejection: fewer than two tries on
        average."""
        if limit < 1:
            raise InputError(f"cannot draw a whole number below {limit}; give 1 or more")
        bits = (limit - 1).bit_length()
        while True:
            words = self.words(-(-bits // WORD_BITS))
            number = int.from_bytes(words.astype(_WORD, copy=False).tobytes(), "little") & (
                (1 << bits) - 1
            )
            if number < limit:
                return number

    def many_below(self, limit: int, count: int) -> Counts:
        """`count` independent uniform whole numbers from 0 to limit - 1, limit at most 2^63: words
        beyond a multiple of the limit are drawn again."""
        if not 1 <= limit <= 1 << 63:
            raise InputError(f"cannot draw many whole numbers below {limit}; give 1 to 2^63")
        # of the words whose remainders are uniform
        last = np.uint64((1 << WORD_BITS) // limit * limit - 1)
        numbers = self.words(count).astype(np.uint64)
        while len(again := np.flatnonzero(numbers > last)):
            numbers[again] = self.words(len(again))
        return (numbers % np.uint64(limit)).astype(np.int64)

    def among(self, shares: Sequence[int]) -> int:
        """The index of one of the shares, each with probability exactly its part of their sum."""
        return bisect_right(list(accumulate(shares)), self.below(sum(shares)))

    def order(self, count: int) -> Ints:
        """A uniform order of 0 .. count - 1: that of distinct random words, drawn again where two
        are equal."""
        while True:
            words = self.words(count)
            order = np.argsort(words)
            if np.all(words[order[1:]] != words[order[:-1]]):
                return order

    def coin(self, probability: Fraction) -> bool:
        """True with exactly this probability."""
        return self.below(probability.denominator) < probability.numerator

    def coin_exp(self, gamma: Fraction) -> bool:
        """True with probability exactly e^-gamma, for 0 <= gamma <= 1: by the parity of the length
        of a run of coins of bias gamma / k."""
        failed_at = 1
        while self.coin(gamma / failed_at):
            failed_at += 1
        return failed_at % 2 == 1

    def discrete_laplace(self, epsilon: Fraction) -> int:
        """Y with Pr[Y = y] = tanh(eps / 2) e^(-eps |y|) exactly, unbounded. Adding it to a count of
        sensitivity 1 is eps-differentially private.

        Source: Ghosh, Roughgarden, Sundararajan 2009; the sampler of Canonne, Kamath, Steinke 2020,
        Algorithm 2. About 50 us.
        """
        if epsilon <= 0:
            raise InputError(f"epsilon is {float(epsilon):g}; give a positive number of nats")
        s, t = epsilon.numerator, epsilon.denominator
        while True:
            low = self.below(t)
            if not self.coin_exp(Fraction(low, t)):
                continue
            high = 0
            while self.coin_exp(_ONE):
                high += 1
            size = (low + t * high) // s
            negative = self.coin(Fraction(1, 2))
            if size or not negative:
                return -size if negative else size

    def discrete_cauchy(self, scale: int) -> int:
        """Y with Pr[Y = y] proportional to 1 / (y^2 + scale^2) exactly, unbounded and without a
        mean; half of it within the scale. About 30 us.

        By rejection under a staircase: 1 / scale^2 below the scale, then 1 / (scale 2^i)^2 on each
        scale 2^i <= |y| < scale 2^(i + 1). Source: the staircase is of the blocks of equal mass
        ratio 1 : 1 : 1/2 : 1/4 ...; 52 % of the tries are kept.
        """
        if type(scale) is not int or scale < 1:
            raise InputError(f"the scale is {scale!r}; give a positive whole number")
        while True:
            low, width = 0, scale
            if self.below(3):
                while self.below(2):
                    width *= 2
                low = width
            size = low + self.below(width)
            accept = self.below(size * size + scale * scale) < width * width
            negative = self.coin(Fraction(1, 2))
            if accept and (size or not negative):
                return -size if negative else size
