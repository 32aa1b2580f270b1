"""Whole Gaussian noise at the price of normal noise: a normal variable rounded to the nearest whole number, drawn exactly.

For a whole vector f(x), f(x) + round(g) = round(f(x) + g). That is a function of the Gaussian mechanism's answer, so it has its privacy in any dimension.
A discrete Gaussian has the same concentrated loss and, by exact accounting, about the same variance, but no closed price.
"""

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from local_dp.accounting.gaussian import gaussian_delta
from local_dp.arrays import Counts
from local_dp.checks import check_whole
from local_dp.curator.inversion import Cumulative, signed, summed
from local_dp.draws import Draws
from local_dp.loss import Approximate
from local_dp.optimise import least_clients

_SQUARE = 10**12  # a squared sensitivity so large that rounding its least variance up costs hardly anything
_MOST = 1 << 36  # of a variance: its table has a few million rows


def least_variance(square: int, loss: Approximate) -> int:
    """The least whole variance with which a whole vector of squared L2 sensitivity `square` keeps to `loss`. Source: Balle, Wang 2018, Theorem 8."""
    return least_clients(lambda variance: gaussian_delta(math.sqrt(square / variance), loss.epsilon) <= loss.delta)


def mu_squared(loss: Approximate) -> Fraction:
    """mu^2, rounded down: a whole vector with noise of variance V_i on each coordinate keeps to `loss` if its squared moves over V_i sum to at most mu^2."""
    return Fraction(_SQUARE, least_variance(_SQUARE, loss))


def rounded_normals(draws: Draws, variance: int, count: int) -> Counts:
    """`count` independent round(N(0, variance)), exactly. Raises InputError unless 1 <= variance <= 2^36.

    Cost: a table of 11 sqrt(variance) rows, 5 us each, made once for each variance; then 30 ns a draw.
    """
    check_whole("variance", variance, 1, _MOST)
    return signed(rounded_sizes(variance), draws, count)


@lru_cache(maxsize=4)
def rounded_sizes(variance: int) -> Cumulative:
    """The law of |round(N(0, V))|: Pr[0] and twice Pr[k] are summed and divided by their sum, so no normaliser is needed.

    With f(x) = e^(-x^2 / 2V), the integral of f over [k - 1/2, k + 1/2] is f(k) sum_j He_2j(k / sqrt V) / ((2j + 1)! (4 V)^j): Taylor, the odd terms vanish.
    The remainder after J terms is at most 1.1 sqrt((2J)!) / ((2J + 1)! (4 V)^J), since |He_n(x)| <= 1.1 sqrt(n!) e^(x^2 / 4) (Cramer). He_2j is a polynomial
    in k^2 / V, by its three-term recurrence.
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
    """sum_j He_2j(sqrt t) / ((2j + 1)! (4 V)^j) as a function of t, with enough terms for these digits."""
    terms = 1
    while _left(variance, terms) > -(digits + 4) * math.log(10):
        terms += 1
    weights = [1 / (math.factorial(2 * j + 1) * (4 * Decimal(variance)) ** j) for j in range(terms)]

    def each(t: Decimal) -> Decimal:
        before, here, total = Decimal(0), Decimal(1), Decimal(0)
        for j, weight in enumerate(weights):
            total += weight * here
            before, here = here, (t - (4 * j + 1)) * here - 2 * j * (2 * j - 1) * before
        return total

    return each


def _left(variance: int, terms: int) -> float:
    """ln of the remainder after this many terms, where f is 1 at its largest."""
    return math.log(1.1) + math.lgamma(2 * terms + 1) / 2 - math.lgamma(2 * terms + 2) - terms * math.log(4 * variance)
