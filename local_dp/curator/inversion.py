"""Exact draws by inversion, many at once: a table to 64 bits decides nearly all of them, and more
digits decide the rest.

It is for laws whose probabilities are no fractions, such as powers of e^-eps; no float touches a
draw, and nothing is rounded. A uniform u of [0, 1) has endless bits, and K = #{k: F(k) <= u} has
the law F exactly. A draw reads the first bits of u and answers if every u that begins with them has
the same K. Each F(k) is known within 10^-digits, so two whole numbers of that many bits enclose it.
If the bits lie between them, the draw reads more bits and computes more digits; it ends with
probability 1.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, count
from typing import TypeAlias

import numpy as np

from local_dp.accounting.losses import gaussian_delta
from local_dp.arrays import Counts, Words
from local_dp.checks import check_whole
from local_dp.draws import WORD_BITS, Draws
from local_dp.loss import Approximate
from local_dp.optimise import least_clients

Cumulative: TypeAlias = Callable[[int], list[Decimal]]
"""Pr[K <= 0], Pr[K <= 1], ... of a law on 0, 1, 2, ..., each within 10^-digits, until the rest is
below 10^-digits."""

_DIGITS = 25  # of the table: five more than 64 bits have
GUARD = 20  # digits lost to rounding, at most
_WORD = 1 << WORD_BITS
_MOST = 1 << 18  # rows of a table
_CHUNK = 1 << 18  # draws at a time, so that they fit in the cache
_GUIDED = 1 << 12  # number of draws from which a guide pays
_GUIDE_BITS = 16


@dataclass(frozen=True, eq=False)
class Table:
    """For each cumulative probability: words below `low` have surely not reached it, words from
    `high` on surely have."""

    low: Words
    high: Words

    def known(self, words: Words) -> tuple[Counts, Counts]:
        """The numbers of probabilities that each word has surely reached, and may have reached."""
        sure = np.searchsorted(self.high, words, side="right")
        return sure, np.searchsorted(self.low, words, side="right")

    @cached_property
    def guide(self) -> Counts:
        """The draw by a word's first 16 bits, or -1 if they do not decide it. It saves nearly all
        searches."""
        rest = np.uint64(WORD_BITS - _GUIDE_BITS)
        first = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << rest
        last = first | ((np.uint64(1) << rest) - np.uint64(1))
        sure, possible = self.known(first)[0], self.known(last)[1]
        return np.where(sure == possible, sure, -1)


def invert(cumulative: Cumulative, draws: Draws, count: int) -> Counts:
    """`count` independent draws from the law, exactly: K is the number of its cumulative
    probabilities that a uniform u reaches."""
    words, table = draws.words(count), _table(cumulative)
    sample: Counts = np.full(count, -1, dtype=np.int64)
    if count >= _GUIDED:
        sample = table.guide[words >> np.uint64(WORD_BITS - _GUIDE_BITS)]
    left = np.flatnonzero(sample < 0)
    sample[left], possible = table.known(words[left])
    for place in left[possible > sample[left]].tolist():
        sample[place] = _refine(cumulative, int(words[place]), draws)
    return sample


@lru_cache(maxsize=16)
def _table(cumulative: Cumulative) -> Table:
    """`_bounds` for words of 64 bits; of the probabilities that no word has surely reached, only
    the first."""
    low, high = _bounds(cumulative(_DIGITS), _DIGITS, WORD_BITS)
    inside = [number for number in high if number < _WORD]
    unsure = [min(number, _WORD - 1) for number in low[: len(inside) + 1]]
    return Table(np.array(unsure, dtype=np.uint64), np.array(inside, dtype=np.uint64))


def _bounds(table: list[Decimal], digits: int, bits: int) -> tuple[list[int], list[int]]:
    """For each probability two numbers of `bits` bits: all below the first have surely not reached
    it, all from the second on have."""
    with localcontext(prec=digits + 2 * GUARD):
        unit = 10**digits
        # the probability is more than number - 1 and less than number + 2 units
        whole = [int(share * unit) for share in table]
    low = [max(0, ((number - 1) << bits) // unit) for number in whole]
    return low, [-((-(number + 2) << bits) // unit) for number in whole]


def _refine(cumulative: Cumulative, first: int, draws: Draws) -> int:
    bits, digits = WORD_BITS, _DIGITS
    while True:
        bits, digits, first = 2 * bits, 2 * digits, first << bits | draws.below(1 << bits)
        low, high = _bounds(cumulative(digits), digits, bits)
        outcome = sum(number <= first for number in high)
        if outcome < len(low) and first < low[outcome]:
            return outcome


def discrete_laplaces(draws: Draws, epsilon: Fraction, count: int) -> Counts:
    """`count` independent Y with Pr[Y = y] = tanh(eps / 2) e^(-eps |y|), as
    `Draws.discrete_laplace` draws one: 10^7 in a third of a second."""
    if epsilon * _MOST < _DIGITS * 2:
        return np.array([draws.discrete_laplace(epsilon) for _ in range(count)], dtype=np.int64)

    return signed(_laplace_sizes(epsilon), draws, count)


def signed(sizes: Cumulative, draws: Draws, count: int) -> Counts:
    """`count` independent draws from a law symmetric about 0, by the law of their sizes and a
    sign."""
    sample = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        part = sample[start : start + _CHUNK]
        part[:] = invert(sizes, draws, len(part))
        part *= 1 - 2 * (draws.words(len(part)) & np.uint64(1)).astype(np.int64)
    return sample


def summed(weights: Callable[[int], Iterator[Decimal]]) -> Cumulative:
    """The law with these weights, listed until the rest does not matter for so many digits: their
    sums, divided by the total."""

    def cumulative(digits: int) -> list[Decimal]:
        with localcontext(prec=digits + GUARD):
            sums = list(accumulate(weights(digits)))
            return [total / sums[-1] for total in sums]

    return cumulative


@lru_cache(maxsize=16)
def _laplace_sizes(epsilon: Fraction) -> Cumulative:

    def sizes(digits: int) -> list[Decimal]:
        with localcontext(prec=digits + GUARD):
            decay = exp_minus(epsilon)
            beyond, sums = 2 * decay / (1 + decay), list[Decimal]()
            while not sums or sums[-1] <= 1 - Decimal(10) ** -digits:
                sums.append(1 - beyond)
                beyond *= decay
            return sums

    return sizes


def exp_minus(gamma: Fraction) -> Decimal:
    """e^-gamma to the precision of the current decimal context."""
    return (-Decimal(gamma.numerator) / gamma.denominator).exp()


def binomial(draws: Draws, trials: int, share: Callable[[], Decimal]) -> int:
    """The successes in up to 2^65536 `trials`, each of probability `share` to the current decimal
    precision. Cost: O(trials times share), public."""

    def successes(digits: int) -> list[Decimal]:
        with localcontext(prec=digits + GUARD):
            each, some = share(), +Decimal(trials)
            chance = (some * _log_without(each)).exp()
            sums = [chance]
            while len(sums) <= trials and sums[-1] <= 1 - Decimal(10) ** -digits:
                chance *= (some - len(sums) + 1) / len(sums) * each / (1 - each)
                sums.append(sums[-1] + chance)
            return sums

    return int(invert(successes, draws, 1)[0])


def _log_without(share: Decimal) -> Decimal:
    """ln(1 - share), to the context's relative precision: 1 - share would lose a share of
    10^-19728."""
    least, power, total, number = share * Decimal(10) ** -getcontext().prec, share, Decimal(0), 1
    while power > least:
        total, power, number = total - power / number, power * share, number + 1
    return total


# a squared sensitivity so large that rounding its least variance up costs hardly anything
_SQUARE = 10**12
MOST_VARIANCE = 1 << 36  # of a variance: its table has a few million rows


def least_variance(square: int, loss: Approximate) -> int:
    """The least whole variance with which a whole vector of squared L2 sensitivity `square` keeps
    to `loss`. Source: Balle, Wang 2018, Theorem 8."""
    return least_clients(
        lambda variance: gaussian_delta(math.sqrt(square / variance), loss.epsilon) <= loss.delta
    )


def mu_squared(loss: Approximate) -> Fraction:
    """mu^2, rounded down: a whole vector with noise of variance V_i on each coordinate keeps to
    `loss` if its squared moves over V_i sum to at most mu^2."""
    return Fraction(_SQUARE, least_variance(_SQUARE, loss))


def rounded_normals(draws: Draws, variance: int, count: int) -> Counts:
    """`count` independent round(N(0, variance)), exactly. Raises InputError unless 1 <= variance <=
    2^36.

    Privacy: f(x) + round(g) = round(f(x) + g) for a whole vector f(x), a function of the Gaussian
    mechanism's answer: its privacy, in any dimension. Cost: a table of 11 sqrt(variance) rows, 5 us
    each, made once for each variance; then 30 ns a draw.
    """
    check_whole("variance", variance, 1, MOST_VARIANCE)
    return signed(rounded_sizes(variance), draws, count)


@lru_cache(maxsize=4)
def rounded_sizes(variance: int) -> Cumulative:
    """The law of |round(N(0, V))|: Pr[0] and twice Pr[k] are summed and divided by their sum, so no
    normaliser is needed.

    With f(x) = e^(-x^2 / 2V), the integral of f over [k - 1/2, k + 1/2] is f(k) sum_j He_2j(k /
    sqrt V) / ((2j + 1)! (4 V)^j): Taylor, the odd terms vanish. The remainder after J terms is at
    most 1.1 sqrt((2J)!) / ((2J + 1)! (4 V)^J), since |He_n(x)| <= 1.1 sqrt(n!) e^(x^2 / 4)
    (Cramer). He_2j is a polynomial in k^2 / V, by its three-term recurrence.
    """

    def weights(digits: int) -> Iterator[Decimal]:
        each, decay = _taylor(variance, digits), (-1 / (2 * Decimal(variance))).exp()
        density, ratio, least, k = Decimal(1), decay, Decimal(10) ** -(digits + 2), 0
        yield density * each(Decimal(0))
        while density > least:
            k, density, ratio = k + 1, density * ratio, ratio * decay * decay
            yield 2 * density * each(k * k / Decimal(variance))

    return summed(weights)


def _taylor(variance: int, digits: int) -> Callable[[Decimal], Decimal]:
    """sum_j He_2j(sqrt t) / ((2j + 1)! (4 V)^j) as a function of t, with enough terms for these
    digits."""

    def left(terms: int) -> float:
        """ln of the remainder after this many terms, where f is 1 at its largest."""
        root, whole = math.lgamma(2 * terms + 1) / 2, math.lgamma(2 * terms + 2)
        return math.log(1.1) + root - whole - terms * math.log(4 * variance)

    terms = next(terms for terms in count(1) if left(terms) <= -(digits + 4) * math.log(10))
    weights = [1 / (math.factorial(2 * j + 1) * (4 * Decimal(variance)) ** j) for j in range(terms)]

    def each(t: Decimal) -> Decimal:
        before, here, total = Decimal(0), Decimal(1), Decimal(0)
        for j, weight in enumerate(weights):
            total += weight * here
            after = (t - (4 * j + 1)) * here - 2 * j * (2 * j - 1) * before
            before, here = here, after
        return total

    return each
