"""Exact draws by inversion, many at once: a table to 64 bits decides nearly all of them, and more digits the rest, as many as it takes.

For laws whose probabilities are no fractions, such as powers of e^-eps: no float touches a draw, and nothing is rounded. A uniform u of [0, 1) is endless
bits, and K = #{k: F(k) <= u} has the law F exactly. A draw reads the first bits of u and answers only if every u that begins with them has the same K: each
F(k) is known within 10^-digits, so it lies between two whole numbers of that many bits, and the bits lie below the one or not below the other. Otherwise it
reads more bits and computes more digits, and ends with probability 1. What is answered is K itself, so its law is not near F but F.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Counts, Words
from local_dp.draws import WORD_BITS, Draws

Cumulative: TypeAlias = Callable[[int], list[Decimal]]
"""Pr[K <= 0], Pr[K <= 1], ... of a law on 0, 1, 2, ..., each within 10^-digits, as far as what is beyond is below 10^-digits."""

_DIGITS = 25  # of the table: beyond 64 bits by five
_GUARD = 20  # digits that rounding may eat
_WORD = 1 << WORD_BITS
_MOST = 1 << 18  # rows of a table
_CHUNK = 1 << 18  # draws at a time: what they need stays in the cache, and memory flat
_GUIDED = 1 << 12  # draws from which on a guide is worth its making
_GUIDE_BITS = 16


@dataclass(frozen=True, eq=False)
class Table:
    """Of each cumulative probability, a word such that all below it have surely not reached it, and one such that it and all above surely have."""

    low: Words
    high: Words

    def known(self, words: Words) -> tuple[Counts, Counts]:
        """How many probabilities each word has surely reached, and may have reached."""
        return np.searchsorted(self.high, words, side="right"), np.searchsorted(self.low, words, side="right")

    @cached_property
    def guide(self) -> Counts:
        """By a word's first 16 bits, the draw if they decide it, -1 if not: for all but one in some hundreds of them no search is needed."""
        rest = np.uint64(WORD_BITS - _GUIDE_BITS)
        first = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << rest
        sure, possible = self.known(first)[0], self.known(first | ((np.uint64(1) << rest) - np.uint64(1)))[1]
        return np.where(sure == possible, sure, -1)


def invert(cumulative: Cumulative, draws: Draws, count: int) -> Counts:
    """`count` independent draws from the law, exactly: K is how many of its cumulative probabilities a uniform u reaches; u has as many bits as that takes."""
    words, table = draws.words(count), _table(cumulative)
    drawn: Counts = table.guide[words >> np.uint64(WORD_BITS - _GUIDE_BITS)] if count >= _GUIDED else np.full(count, -1, dtype=np.int64)
    left = np.flatnonzero(drawn < 0)
    drawn[left], possible = table.known(words[left])
    for place in left[possible > drawn[left]].tolist():
        drawn[place] = _refined(cumulative, int(words[place]), draws)
    return drawn


@lru_cache(maxsize=16)
def _table(cumulative: Cumulative) -> Table:
    """`_bounds` for words of 64 bits; of what no such word has surely reached, only the first."""
    low, high = _bounds(cumulative(_DIGITS), _DIGITS, WORD_BITS)
    inside = [number for number in high if number < _WORD]
    return Table(np.array([min(number, _WORD - 1) for number in low[: len(inside) + 1]], dtype=np.uint64), np.array(inside, dtype=np.uint64))


def _bounds(table: list[Decimal], digits: int, bits: int) -> tuple[list[int], list[int]]:
    """For each probability a number of `bits` bits such that all below it, and one such that it and all above, have surely not reached it, have reached it."""
    with localcontext() as context:
        context.prec = digits + 2 * _GUARD
        unit = 10**digits
        whole = [int(share * unit) for share in table]  # the probability is more than number - 1 and less than number + 2 units
    return [max(0, ((number - 1) << bits) // unit) for number in whole], [-((-(number + 2) << bits) // unit) for number in whole]


def _refined(cumulative: Cumulative, held: int, draws: Draws) -> int:
    """The draw whose first 64 bits are `held`."""
    bits, digits = WORD_BITS, _DIGITS
    while True:
        bits, digits, held = 2 * bits, 2 * digits, held << bits | draws.below(1 << bits)
        low, high = _bounds(cumulative(digits), digits, bits)
        reached = sum(number <= held for number in high)
        if reached < len(low) and held < low[reached]:
            return reached


def discrete_laplaces(draws: Draws, epsilon: Fraction, count: int) -> Counts:
    """`count` independent Y with Pr[Y = y] = tanh(eps / 2) e^(-eps |y|), as `Draws.discrete_laplace` draws one: 10^7 in a third of a second.

    Below epsilon 2e-4 the table would be too long, and they are drawn one by one.
    """
    if epsilon * _MOST < _DIGITS * 2:
        return np.array([draws.discrete_laplace(epsilon) for _ in range(count)], dtype=np.int64)

    return signed(_laplace_sizes(epsilon), draws, count)


def signed(sizes: Cumulative, draws: Draws, count: int) -> Counts:
    """`count` independent draws from a law that is symmetric about 0, by that of their sizes: each gets a sign."""
    drawn = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        part = drawn[start : start + _CHUNK]
        part[:] = invert(sizes, draws, len(part))
        part *= 1 - 2 * (draws.words(len(part)) & np.uint64(1)).astype(np.int64)
    return drawn


@lru_cache(maxsize=16)
def _laplace_sizes(epsilon: Fraction) -> Cumulative:
    """Of |Y|."""

    def sizes(digits: int) -> list[Decimal]:
        with localcontext() as context:
            context.prec = digits + _GUARD
            decay = exp_minus(epsilon)
            beyond, found = 2 * decay / (1 + decay), list[Decimal]()
            while not found or found[-1] <= 1 - Decimal(10) ** -digits:
                found.append(1 - beyond)
                beyond *= decay
            return found

    return sizes


def exp_minus(gamma: Fraction) -> Decimal:
    """e^-gamma to the precision of the current decimal context."""
    return (-Decimal(gamma.numerator) / gamma.denominator).exp()


def binomial(draws: Draws, trials: int, share: Callable[[], Decimal]) -> int:
    """How many of `trials` succeed, each with the probability that `share` computes to the precision of the current decimal context; trials may be 2^65536.

    O(trials times share), which is small and public.
    """

    def successes(digits: int) -> list[Decimal]:
        with localcontext() as context:
            context.prec = digits + _GUARD
            each, some = share(), +Decimal(trials)
            chance = (some * _log_without(each)).exp()
            found = [chance]
            while len(found) <= trials and found[-1] <= 1 - Decimal(10) ** -digits:
                chance *= (some - len(found) + 1) / len(found) * each / (1 - each)
                found.append(found[-1] + chance)
            return found

    return int(invert(successes, draws, 1)[0])


def _log_without(share: Decimal) -> Decimal:
    """ln(1 - share), right to the context's precision relative to itself: from 1 - share nothing would be left of a share of 10^-19728."""
    least, power, total, number = share * Decimal(10) ** -getcontext().prec, share, Decimal(0), 1
    while power > least:
        total, power, number = total - power / number, power * share, number + 1
    return total
