"""Client counts and lower bounds of the parity learners (limits 3 and 4). Normal approximations unless a line says "proven"; epsilon in nats."""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds import best_split, gain, least_clients, masked_parity_clients, normal_tail
from local_dp.errors import InputError

LIST_SHARE = 0.75  # measured: list decoding needs 0.57 to 0.72 of the clients of one-round hashing for d = 4..64 at epsilon 1


def _two_round_clients(success: Callable[[int, int], float], beta: float) -> int:
    def enough(n: int) -> bool:
        first = best_split(success, n)
        return success(first, n - first) >= 1 - beta

    return least_clients(enough, least=2)


def masked_parity_literal_success(d: int, epsilon: float, first: int, second: int) -> float:
    """Pr[(r, a) exact] of the paper's protocol, first / d clients on each g_j, `second` on g_d, noise Lap(2 / eps) (limits 3.2, P0)."""
    bit = normal_tail(math.sqrt(first / d / (8 / epsilon**2 + 1 / (4 * d))) / (4 * d))
    mask = normal_tail(math.sqrt(second / (8 / epsilon**2 + 1 / 4)) / 4)
    return (1 - bit) ** d * (1 - mask)


def masked_parity_literal_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which the paper's protocol succeeds with probability 1 - beta: d z_{beta_r/d}^2 (8/eps^2 + 1/4d) 16 d^2 + 16 z_{beta_a}^2 (8/eps^2 + 1/4)."""
    return _two_round_clients(lambda first, second: masked_parity_literal_success(d, epsilon, first, second), beta)


def masked_parity_fresh_success(d: int, epsilon: float, first: int, second: int) -> float:
    """Pr[(r, a) exact] of the signed queries with fresh clients and randomized response, first / d clients on each (limits 3.2, P1)."""
    bit = normal_tail(math.sqrt(first / d) / (2 * d * gain(epsilon)))
    mask = normal_tail(math.sqrt(second) / (2 * gain(epsilon)))
    return (1 - bit) ** d * (1 - mask)


def masked_parity_fresh_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which they succeed with probability 1 - beta: 4 d^3 C^2 z_{beta_r/d}^2 + 4 C^2 z_{beta_a}^2 (limits 3.2, P1)."""
    return _two_round_clients(lambda first, second: masked_parity_fresh_success(d, epsilon, first, second), beta)


def masked_parity_list_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which list decoding succeeds with probability 1 - beta: LIST_SHARE of one-round hashing's, a measured share (limits 3.2, P4).

    For d < 4 the list saves little, and hashing's own count is given.
    """
    return math.ceil((LIST_SHARE if d >= 4 else 1.0) * masked_parity_clients(d, epsilon, beta))


def masked_parity_one_round_success(d: int, epsilon: float, n: int) -> float:
    """Pr[(r, a) exact] of the non-interactive protocol: r as by hashing, a from a correlation of 2^(-d/2), every report of variance C^2 (limits 3.3)."""
    bit = normal_tail(math.sqrt(n) / (2 * d * gain(epsilon)))
    mask = normal_tail(math.sqrt(n) * 2.0 ** (-d / 2) / (2 * gain(epsilon)))
    return (1 - bit) ** d * (1 - mask)


def masked_parity_one_round_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which it succeeds with probability 1 - beta, about max(4 z_beta^2 2^d, 4 d^2 z_{beta/d}^2) C^2 (limits 3.3)."""
    return least_clients(lambda n: masked_parity_one_round_success(d, epsilon, n) >= 1 - beta, least=2)


def masked_parity_one_round_bound(d: int, epsilon: float, success: float) -> float:
    """Proven: fewer clients than this cannot learn masked parity non-interactively with probability `success` > 1/2, whatever the protocol (limits 3.3).

    2^d ln(1 / (1 - (2 p - 1)^2)) / (-2 ln(1 - h)). Here 2^-d h bounds the squared Hellinger distance between one report's laws under a = 0 and a = 1, on
    average over r (Parseval), and h bounds it for any one r: h = I_up (1 - sqrt(1 - t^2)) / (4 t^2), I_up = (E - 1)(K - 1) / (K (K + 1)),
    K = min((E + 1) / 2, 1 + sqrt 2), t = (E - 1) / (E + 3). 14.1 2^d at epsilon 1 and 90 %.
    """
    _check_success(success, 0.5)
    growth = math.exp(epsilon)
    most = min((growth + 1) / 2, 1 + math.sqrt(2))
    information = (growth - 1) * (most - 1) / (most * (most + 1))
    apart = (growth - 1) / (growth + 3)
    hellinger = information * (1 - math.sqrt(1 - apart**2)) / (4 * apart**2)
    return -math.log1p(-((2 * success - 1) ** 2)) / (-2 * math.log1p(-hellinger)) * 2.0**d


def masked_parity_capacity(epsilon: float) -> float:
    """I*: the most that one report of any epsilon-local randomizer tells of both halves of masked parity (limits 3.2), a linear programme over channels.

    Solved by its dual, min p + q with p a0 + q a1 >= f (E - 1)^2 / (2 (a0 + a1)) over the extremal columns (f, g, h); 0.2266 at epsilon 1.
    """
    rise = math.exp(epsilon) - 1
    f, high, h = np.meshgrid(np.linspace(0, 1, 401), [0.0, 1.0], np.linspace(0, 1, 41), indexing="ij")
    a0, a1 = 1 + rise * (f / 2 + high * (1 - f)), 1 + rise * h
    worth = f * rise**2 / (2 * (a0 + a1))

    def total(p: float) -> float:
        return p + float(((worth - p * a0) / a1).max())

    low, high_p = -2 * float(worth.max()), 2 * float(worth.max())
    for _ in range(80):  # convex in p, which has no sign: the constraints are equations
        left, right = low + (high_p - low) / 3, high_p - (high_p - low) / 3
        low, high_p = (low, right) if total(left) < total(right) else (left, high_p)
    return total(low)


def masked_parity_interactive_bound(d: int, epsilon: float) -> float:
    """8 ln 2 d^2 / I*: the clients that carry the d ln 2 nats of r; proven for one round on r, heuristic for fully adaptive protocols (limits 3.4)."""
    return 8 * math.log(2) * d**2 / masked_parity_capacity(epsilon)


def masked_parity_curator_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which a curator's exponential mechanism is exact except with probability about beta (limits 0).

    Failure odds e^(-eps n / 4) + 2 e^(-eps n / 8) (1 + e^(-eps n / 4 d))^d at most beta / (1 - beta).
    """

    def odds(n: int) -> float:
        return math.exp(-epsilon * n / 4) + 2 * math.exp(d * math.log1p(math.exp(-epsilon * n / (4 * d))) - epsilon * n / 8)

    return least_clients(lambda n: odds(n) <= beta / (1 - beta), least=2)


def parity_one_round_success(d: int, epsilon: float, n: int) -> float:
    """Pr[the right one of 2^d independent scores is the largest], its mean sqrt(n / 2^d) / C deviations above the others' (limits 4.2)."""
    shift = math.sqrt(n / 2.0**d) / gain(epsilon)
    grid = np.linspace(-8, 8, 4001)
    below = np.array([1 - normal_tail(float(z + shift)) for z in grid])
    density = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    return float((density * below ** (2**d - 1)).sum() * (grid[1] - grid[0]))


def parity_one_round_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which random masks and an argmax find r with probability 1 - beta, about (sqrt(2 d ln 2) + z)^2 C^2 2^d (limits 4.2)."""
    return least_clients(lambda n: parity_one_round_success(d, epsilon, n) >= 1 - beta, least=2)


def parity_one_round_bound(d: int, epsilon: float, success: float) -> float:
    """Proven for one randomized response to a random mask each: ((1 - beta) d ln 2 - h(beta)) 2^d / (ln 2 - h(p)), p = E / (E + 1) (Fano, limits 4.2)."""
    _check_success(success, 0.0)
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    needed = success * d * math.log(2) - _entropy(1 - success)
    return max(0.0, needed) * 2.0**d / (math.log(2) - _entropy(truth))


def parity_interactive_bound(d: int, epsilon: float, success: float) -> float:
    """Proven for every sequentially interactive protocol, epsilon <= ln 3: (1 / c) ln(1 / (1 - (p - 2^-d)^2)) C^2 2^d (limits 4.2).

    c = (-ln(1 - 1/C) - 1/C) C^2; 2.25 C^2 2^d at p = .9 and epsilon 1.
    """
    if epsilon > math.log(3):
        raise InputError(f"epsilon is {epsilon}; the bound for parity is proven up to ln 3")
    _check_success(success, 2.0**-d)
    shrink = 1 / gain(epsilon)
    c = (-math.log1p(-shrink) - shrink) / shrink**2
    return -math.log1p(-((success - 2.0**-d) ** 2)) / c / shrink**2 * 2.0**d


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
    signal = math.sqrt(unit) / gain(epsilon)
    grid = np.linspace(-6 * math.sqrt(d), 6 * math.sqrt(d) + signal * d, 1025)
    null, right = np.zeros(len(grid)), np.zeros(len(grid))
    start = int(np.searchsorted(grid, 0.0))
    null[start] = right[start] = 1.0
    for k, size in enumerate(sizes):
        survivors = 2 ** (d - k)
        share = size / survivors / unit
        null, right = _add_normal(null, grid, 0.0, share), _add_normal(right, grid, signal * share, share)
        beaten_by = np.clip(1 - np.cumsum(null) / null.sum() + null / (2 * null.sum()), 0.0, 1.0)
        kept = _at_most(survivors // 2 - 1, survivors - 1, beaten_by)
        null, right = null * kept, right * kept
    return float(right.sum())


@lru_cache
def parity_halving_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which adaptive halving finds r with probability 1 - beta: about 5.7 C^2 2^d for beta = .1, without a factor d (limits 4.2)."""
    return least_clients(lambda n: parity_halving_success(d, epsilon, n) >= 1 - beta, least=2 * d)


def _add_normal(mass: Floats, grid: Floats, mean: float, variance: float) -> Floats:
    """The law of the sum of a draw from `mass` on the grid and a normal variable."""
    reach = grid[-1] - grid[0]
    away = np.linspace(-reach, reach, 2 * len(grid) - 1)
    kernel = np.exp(-((away - mean) ** 2) / (2 * variance))
    length = 4 * len(grid)
    summed = np.fft.irfft(np.fft.rfft(mass, length) * np.fft.rfft(kernel / kernel.sum(), length), length)
    spread: Floats = np.maximum(summed[len(grid) - 1 : 2 * len(grid) - 1], 0.0)
    return spread


def _at_most(k: int, n: int, p: Floats) -> Floats:
    """Pr[Binomial(n, p) <= k]; a normal approximation above n = 64."""
    if n > 64:
        deviation = np.sqrt(np.maximum(n * p * (1 - p), 1e-12))
        return np.array([normal_tail(float(z)) for z in np.clip((n * p - k - 0.5) / deviation, -8, 8)])
    terms: Floats = np.array([math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1)])
    return np.asarray(terms.sum(axis=0), dtype=np.float64)


def _entropy(p: float) -> float:
    """The entropy of a coin of bias p, in nats."""
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def _check_success(success: float, least: float) -> None:
    if not least < success < 1:
        raise InputError(f"the probability of success is {success}; give a number strictly between {least:g} and 1")
