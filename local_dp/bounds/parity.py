"""Client counts and lower bounds for parity (limits 4). Normal approximations unless a line says "proven"; epsilon in nats."""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.in_turn import asked_in_turn_bound
from local_dp.bounds.normal import add_normal, normal_tail
from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.checks import check_success
from local_dp.errors import InputError
from local_dp.optimise import least_clients


def parity_one_round_success(d: int, epsilon: float, n: int) -> float:
    """Pr[the right one of 2^d independent scores is the largest], its mean sqrt(n / 2^d) / C deviations above the others' (limits 4.2)."""
    shift = math.sqrt(n / 2.0**d) / response_gain(epsilon)
    grid = np.linspace(-8, 8, 4001)
    below = np.array([1 - normal_tail(float(z + shift)) for z in grid])
    density = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    return float((density * below ** (2**d - 1)).sum() * (grid[1] - grid[0]))


def parity_one_round_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which random masks and an argmax find r with probability 1 - beta, about (sqrt(2 d ln 2) + z)^2 C^2 2^d (limits 4.2)."""
    return least_clients(lambda n: parity_one_round_success(d, epsilon, n) >= 1 - beta, least=2)


def parity_masks_bound(d: int, epsilon: float, success: float) -> float:
    """Proven for NON-INTERACTIVE protocols in which each client gives one randomized response to a random parity, at every epsilon; not for other randomizers.

    ((1 - beta) d ln 2 - h(beta)) 2^d / (ln 2 - h(p)), p = E / (E + 1) (Fano, limits 4.2).
    """
    check_success(success, 0.0)
    check_positive_epsilon(epsilon)
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    needed = success * d * math.log(2) - entropy(1 - success)
    return max(0.0, needed) * 2.0**d / (math.log(2) - entropy(truth))


def parity_interactive_bound(d: int, epsilon: float, success: float) -> float:
    """Proven for every SEQUENTIALLY INTERACTIVE protocol (each client is asked in one round only), non-interactive ones among them, at every epsilon.

    ln(1 / (1 - (p - 2^-d)^2)) 2^d / (c G) (limits 4.2): 2.25 C^2 2^d at p = .9 and epsilon 1. Fully interactive protocols, which ask a client again, are
    not covered: `cut_and_paste.parity_asked_again_bound`.
    """
    check_success(success, 2.0**-d)
    return asked_in_turn_bound(2.0**d, epsilon, success, 2.0**-d)


def parity_rounds(d: int, n: int) -> list[int]:
    """The clients of each of the d rounds of halving: n in proportion to the survivors 2^(d - k), so that every survivor is asked about equally often."""
    if n < d:
        raise InputError(f"halving 2^{d} parities takes {d} rounds; {n} clients are too few")
    survivors = [1 << (d - k) for k in range(d)]
    ends = [k + (n - d) * done // sum(survivors) for k, done in enumerate(accumulate(survivors), start=1)]
    return [stop - start for start, stop in pairwise([0, *ends])]


def parity_halving_success(d: int, epsilon: float, n: int) -> float:
    """Pr[r survives d halvings], the scores of the others followed as independent draws from one density (limits 4.2)."""
    sizes = parity_rounds(d, n)
    unit = sizes[0] / 2.0**d  # scores are in deviations of one parity's first-round score
    signal = math.sqrt(unit) / response_gain(epsilon)
    grid = np.linspace(-6 * math.sqrt(d), 6 * math.sqrt(d) + signal * d, 1025)
    null, right = np.zeros(len(grid)), np.zeros(len(grid))
    start = int(np.searchsorted(grid, 0.0))
    null[start] = right[start] = 1.0
    for k, size in enumerate(sizes):
        survivors = 2 ** (d - k)
        share = size / survivors / unit
        null, right = add_normal(null, grid, 0.0, share), add_normal(right, grid, signal * share, share)
        beaten_by = np.clip(1 - np.cumsum(null) / null.sum() + null / (2 * null.sum()), 0.0, 1.0)
        kept = at_most(survivors // 2 - 1, survivors - 1, beaten_by)
        null, right = null * kept, right * kept
    return float(right.sum())


@lru_cache
def parity_halving_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which adaptive halving finds r with probability 1 - beta: about 5.7 C^2 2^d for beta = .1, without a factor d (limits 4.2)."""
    return least_clients(lambda n: parity_halving_success(d, epsilon, n) >= 1 - beta, least=2 * d)


def at_most(k: int, n: int, p: Floats) -> Floats:
    """Pr[Binomial(n, p) <= k]; a normal approximation above n = 64."""
    if n > 64:
        from scipy.special import ndtr

        deviation = np.sqrt(np.maximum(n * p * (1 - p), 1e-12))
        return np.asarray(ndtr(np.clip((k + 0.5 - n * p) / deviation, -8, 8)))
    terms: Floats = np.array([math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1)])
    return np.asarray(terms.sum(axis=0), dtype=np.float64)


def parities_told(tolerance: float) -> int:
    """The most parities that one statistical query of this tolerance can tell from random labels: ceil(1 / tau^2) - 1, exactly.

    Proven: the expectations under the parities differ from the one under random labels by Walsh coefficients, whose squares sum to at most 1 (Parseval).
    """
    return math.ceil(1 / Fraction(tolerance) ** 2) - 1


def parity_sq_success(d: int, queries: int, tolerance: float) -> Fraction:
    """Proven: q queries of tolerance tau find a uniform r with probability at most (q (ceil(1 / tau^2) - 1) + 1) / 2^d, adaptive or not (limits 4.2).

    So q / tau^2 > p 2^d - 1. At q = 2^(d/3) and tau = 2^(-d/3), the values of Blum et al. 1994 (KLNRS Corollary 4.6), it is below 1.
    """
    return min(Fraction(1), Fraction(queries * parities_told(tolerance) + 1, 1 << d))


def parity_sq_queries(d: int, tolerance: float) -> int:
    """Proven: the least number of queries that find every parity, (2^d - 1) / (ceil(1 / tau^2) - 1) rounded up."""
    told = parities_told(tolerance)
    return -((1 - (1 << d)) // told)


def entropy(p: float) -> float:
    """The entropy of a coin of bias p, in nats."""
    return -p * math.log(p) - (1 - p) * math.log(1 - p)
