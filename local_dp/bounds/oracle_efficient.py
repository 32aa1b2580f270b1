"""What RSPM's noise costs in utility, and Gaussian noise in its place: a negative result (Neel, Roth, Wu 2019, Theorems 6 and 7)."""

import math

from local_dp.bounds.normal import normal_tail
from local_dp.checks import check_positive, check_share, check_whole
from local_dp.errors import InputError


def perturbed_excess(separators: int, shift: int, epsilon: float, beta: float) -> float:
    """(m shift / eps) ln(2 m / beta): how many errors more than the best RSPM makes at most, except with probability beta; m shift / eps on average.

    m separators, noise of ratio e^(-eps / shift). Two totals are off by the sum of the |eta_i| at most against each other, and E|eta_i| < shift / eps.
    Source: sharpens Theorem 6, 4 m^2 ln(m / beta) / eps.
    """
    check_whole("shift", shift, 1, 2 * separators)
    check_positive("epsilon", epsilon)
    check_share("beta", beta)
    return shift * separators / epsilon * math.log(2 * separators / beta)


def printed_sigma(separators: int, epsilon: float, delta: float) -> float:
    """3.5 sqrt(m ln(1 / delta)) / eps: the scale of Gaussian noise in Theorem 7. NOT private for parities (`parity_delta`); for contrast alone."""
    _check(separators, epsilon, delta)
    return 3.5 * math.sqrt(separators * math.log(1 / delta)) / epsilon


def safe_sigma(separators: int, epsilon: float, delta: float) -> float:
    """The sigma with 2 (m sqrt(2 / pi) + sqrt(2 m ln(1 / delta))) / sigma + 2 m / sigma^2 = eps: RSPM is (eps, delta)-private with such Gaussian noise.

    Proof: moving every coordinate by 2 changes the log density by at most (2 |eta|_1 + 2 m) / sigma^2, and |eta|_1 / sigma exceeds its mean m sqrt(2 / pi) by
    sqrt(2 m ln(1 / delta)) with probability delta at most. About 1.6 m / eps, where the pure noise has a standard deviation of 2.83 m / eps.
    """
    _check(separators, epsilon, delta)
    first = 2 * (separators * math.sqrt(2 / math.pi) + math.sqrt(2 * separators * math.log(1 / delta)))
    return (first + math.sqrt(first**2 + 8 * separators * epsilon)) / (2 * epsilon)


def pure_deviation(separators: int, epsilon: float) -> float:
    """The standard deviation of the whole noise of ratio e^(-eps / (2 m)): 1 / (sqrt(2) sinh(eps / (4 m)))."""
    check_whole("separators", separators, 1, 1 << 40)
    check_positive("epsilon", epsilon)
    return 1 / (math.sqrt(2) * math.sinh(epsilon / (4 * separators)))


def parity_odd(separators: int, sigma: float) -> float:
    """Pr[RSPM with N(0, sigma^2) noise answers a parity of oddly many of m bits] on the one example (1...1, 0); on (1...1, 1) it is 1 minus this.

    The noise alone prefers the bits where it is negative, oddly many of them half the time; one error is then avoided by the flip of a bit of |eta_i| < 1. So
    it is Pr[|N(0, 1)| > 1 / sigma]^m / 2.
    """
    check_whole("separators", separators, 1, 1 << 40)
    check_positive("sigma", sigma)
    return (2 * normal_tail(1 / sigma)) ** separators / 2


def parity_delta(separators: int, sigma: float, epsilon: float) -> float:
    """A delta that RSPM with N(0, sigma^2) noise cannot do without for parities at this epsilon: 1 - p - e^eps p, p = `parity_odd`."""
    odd = parity_odd(separators, sigma)
    return max(0.0, 1 - odd - math.exp(epsilon) * odd)


def _check(separators: int, epsilon: float, delta: float) -> None:
    check_whole("separators", separators, 1, 1 << 40)
    check_positive("epsilon", epsilon)
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta}; it must lie between 0 and 1, both excluded")
