"""Masked parity: clients of the two-round learner, and what one round cannot do."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from local_dp.bounds.posterior import posterior_budget
from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.bounds.tails import normal_tail
from local_dp.checks import check_success
from local_dp.optimise import best_split, least_clients, lowest


def one_bit_variance(epsilon: float, null: float) -> float:
    """n times the variance of a mean near 0 by one hashed bit, `null` the share without a symbol:
    C^2 - null^2; 1 / I_det at 1/2 (limits 3.2)."""
    return response_gain(epsilon) ** 2 - null**2


def blocks_variance(epsilon: float, k: int, size: int, share: float) -> float:
    """n times the variance of a mean near 0 by blocks of `size` of k symbols, each held by `share`
    of the clients.

    (2 q + (p - q) size share) / (p - q)^2, p = E q = E / (E + 2 ceil(k / size)): noise of both
    signs of the block itself, and what the others in it send.
    """
    check_positive_epsilon(epsilon)
    growth = math.exp(epsilon)
    q = 1 / (growth + 2 * math.ceil(k / size))
    gap = (growth - 1) * q
    return (2 * q + gap * min(size, k) * share) / gap**2


@lru_cache(maxsize=4096)
def best_size(epsilon: float, k: int, share: float, null: float) -> tuple[int, float]:
    """The symbols of a block whose variance is least, or 0 where one hashed bit has less; and that
    variance."""
    sizes = [1 << power for power in range((2 * k - 1).bit_length())]
    blocks = [(blocks_variance(epsilon, k, size, share), size) for size in sizes]
    variance, size = min([(one_bit_variance(epsilon, null), 0), *blocks])
    return size, variance


def _exact(d: int, first: float, second: float) -> float:
    """Pr[(r, a) exact], normal approximation: each bit of r from a mean of 1 / (2 d) of variance 1
    / first, a from one of 1 / 2 of variance 1 / second."""
    bit = 1 - normal_tail(math.sqrt(first) / (2 * d))
    mask = 1 - normal_tail(math.sqrt(second) / 2)
    return bit**d * mask


def masked_parity_success(d: int, epsilon: float, first: int, second: int) -> float:
    """Pr[(r, a) exact] of hashing with `first` clients and the parity query with `second`, each by
    one hashed bit or blocks: normal (limits 3.2, P2)."""
    index = best_size(epsilon, d, 1 / (2 * d), 1 / 2)
    mask = best_size(epsilon, 1, 1 / 2, 1 / 2)
    return _exact(d, first / index[1], second / mask[1])


def masked_parity_split(d: int, epsilon: float, n: int) -> int:
    """How many of n clients to ask in round one, so that `masked_parity_success` is largest."""
    return best_split(partial(masked_parity_success, d, epsilon), n)


def _two_round_clients(success: Callable[[int, int], float], beta: float) -> int:
    def enough(n: int) -> bool:
        first = best_split(success, n)
        return success(first, n - first) >= 1 - beta

    return least_clients(enough, least=2)


def masked_parity_clients(d: int, epsilon: float, beta: float) -> int:
    """The least n for which the two rounds recover (r, a) with probability at least 1 - beta
    (limits 3.2, P2)."""
    return _two_round_clients(partial(masked_parity_success, d, epsilon), beta)


def masked_parity_literal_success(d: int, epsilon: float, first: int, second: int) -> float:
    """Pr[(r, a) exact] of the paper's protocol, first / d clients on each g_j, `second` on g_d,
    noise Lap(2 / eps) (limits 3.2, P0)."""
    noise = 8 / epsilon**2
    return _exact(d, first / (4 * d * (noise + 1 / (4 * d))), second / (4 * (noise + 1 / 4)))


def masked_parity_literal_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which the paper's protocol succeeds with probability 1 - beta: d z_{beta_r/d}^2
    (8/eps^2 + 1/4d) 16 d^2 + 16 z_{beta_a}^2 (8/eps^2 + 1/4)."""
    return _two_round_clients(partial(masked_parity_literal_success, d, epsilon), beta)


def masked_parity_fresh_success(d: int, epsilon: float, first: int, second: int) -> float:
    """Pr[(r, a) exact] of the signed queries with fresh clients and randomized response, first / d
    clients on each (limits 3.2, P1)."""
    return _exact(d, first / d / response_gain(epsilon) ** 2, second / response_gain(epsilon) ** 2)


def masked_parity_fresh_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which they succeed with probability 1 - beta: 4 d^3 C^2 z_{beta_r/d}^2 + 4 C^2
    z_{beta_a}^2 (limits 3.2, P1)."""
    return _two_round_clients(partial(masked_parity_fresh_success, d, epsilon), beta)


MEASURED_AT = 4  # d from which list decoding was measured


def masked_parity_list_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which list decoding succeeds with probability about 1 - beta: .55 + .5 / d times
    hashing's. Measured, not derived (limits 3.2, P4).

    95 % intervals of the share at beta = .05 and epsilon 1: .65 to .70, .58 to .63, .55 to .60, .54
    to .59 for d = 4, 8, 16, 32; the same within them at epsilon .25 to 2. At 90 % success it is
    about 5 % greater. For d < 4 the list saves little, and hashing's own count is given.
    """
    return math.ceil(
        (0.55 + 0.5 / d if d >= MEASURED_AT else 1.0) * masked_parity_clients(d, epsilon, beta)
    )


MOST_TOLD = 8  # reported bits of x beside a bent function of the others


@dataclass(frozen=True)
class OneRound:
    """A one-round question: the number of reported bits of x beside one bent function of the
    others, and in blocks of how many symbols (0: one hashed bit)."""

    bits: int
    size: int

    def variance(self, d: int, epsilon: float, share: float) -> float:
        """n times the variance of the mean of one of its symbols, which `share` of the clients
        have."""
        return (
            blocks_variance(epsilon, 2**self.bits + d, self.size, share)
            if self.size
            else response_gain(epsilon) ** 2
        )

    def success(self, d: int, epsilon: float, n: int) -> float:
        """Pr[(r, a) exact], normal approximation: r as by hashing, a from a correlation of 2^(-d/2)
        over all bits of x (limits 3.3)."""
        position = self.variance(d, epsilon, 1 / (2 * d))
        symbol = self.variance(d, epsilon, 2.0 ** -(self.bits + 1))
        return _exact(d, n / position, n / symbol / 2.0**d)

    def clients(self, d: int, epsilon: float, beta: float) -> int:
        """n for which `success` is at least 1 - beta."""
        return least_clients(lambda n: self.success(d, epsilon, n) >= 1 - beta, least=2)


MOST_NAMED = 20  # bits of a named mask: 2^21 counts


class NamedMasks(OneRound):
    """A one-round question: one of two complementary masks, and a sign."""

    def success(self, d: int, epsilon: float, n: int) -> float:
        """The same; I = 2 (E - 1)^2 / ((E + 1) (E + 3)) 2^-d: I_up up to epsilon 1.34."""
        shrink = 1 / response_gain(epsilon)
        information = 2 * shrink * math.expm1(epsilon) / (math.exp(epsilon) + 3)
        return _exact(d, n * shrink**2, n * information / 2.0**d)


@lru_cache(maxsize=1024)
def best_one_round(d: int, epsilon: float, beta: float) -> OneRound:
    """The simplest one-round question among those with the fewest clients, to 1 %: named masks, the
    fewest reported bits; one hashed bit before blocks."""
    bits = range(d % 2, min(d, MOST_TOLD) + 1, 2)
    choices = [NamedMasks(0, 0)] * (d <= MOST_NAMED) + [
        OneRound(plain, size)
        for plain in bits
        for size in (
            0,
            *(1 << power for power in range((2 ** (plain + 1) + 2 * d - 1).bit_length())),
        )
    ]
    clients = [choice.clients(d, epsilon, beta) for choice in choices]
    return next(
        choice
        for choice, count in zip(choices, clients, strict=True)
        if count <= 1.01 * min(clients)
    )


def masked_parity_one_round_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which the best one-round question succeeds with probability 1 - beta: about max(4
    z_beta^2 2^d / I, 4 d^2 z_{beta/d}^2 C^2), I by `NamedMasks` (limits 3.3)."""
    return best_one_round(d, epsilon, beta).clients(d, epsilon, beta)


def masked_parity_one_round_bound(d: int, epsilon: float, success: float) -> float:
    """Proven for every NON-INTERACTIVE protocol, public coins allowed, at every epsilon: fewer
    clients learn masked parity with probability below `success`.

    2^d 4 B / I_up, I_up = (E - 1)(K - 1) / (K (K + 1)), K = min((E + 1)/2, 1 + sqrt 2): 2^-d I_up
    / 4 is the mean square by which a report separates the two masks, I_up / 4 the most for any r. B
    is the `posterior_budget` for this and for likelihoods of 1 +- (E - 1) / (E + 3). 20.6 2^d at
    epsilon 1 and 90 % (limits 3.3, 13). Raises InputError unless 1/2 < success < 1.
    """
    check_positive_epsilon(epsilon)
    growth = math.exp(epsilon)
    most = min((growth + 1) / 2, 1 + math.sqrt(2))
    square = (growth - 1) * (most - 1) / (most * (most + 1)) / 4
    reach = (growth - 1) / (growth + 3)
    return posterior_budget(reach, min(square, reach**2), success) / square * 2.0**d


@lru_cache(maxsize=1024)
def masked_parity_capacity(epsilon: float) -> float:
    """I*: the most information of one epsilon-local report about both halves of masked parity
    (limits 3.2), a linear programme over channels.

    Solved by its dual, min p + q with p a0 + q a1 >= f (E - 1)^2 / (2 (a0 + a1)) over the extremal
    columns (f, g, h); 0.2266 at epsilon 1.
    """
    rise = math.exp(epsilon) - 1
    f, high, h = np.meshgrid(
        np.linspace(0, 1, 401), [0.0, 1.0], np.linspace(0, 1, 41), indexing="ij"
    )
    a0 = 1 + rise * (f / 2 + high * (1 - f))
    a1 = 1 + rise * h
    worth = f * rise**2 / (2 * (a0 + a1))

    def total(p: float) -> float:
        return p + float(((worth - p * a0) / a1).max())

    most = 2 * float(worth.max())
    # convex in p, which has no sign: the constraints are equations
    return total(lowest(-most, most, total, 80))


def masked_parity_interactive_bound(d: int, epsilon: float) -> float:
    """8 ln 2 d^2 / I* (limits 3.4): proven to leading order for NON-INTERACTIVE protocols that
    learn r; a heuristic for interactive ones."""
    return 8 * math.log(2) * d**2 / masked_parity_capacity(epsilon)


def masked_parity_curator_clients(d: int, epsilon: float, beta: float) -> int:
    """Proven: with this many uniform examples a curator's exponential mechanism over all 2^(d+1)
    concepts is exact except with probability beta.

    (1 - q/2)^n + 2 sum_{k=1..d} C(d, k) (1 - q (1/4 + k / 2d))^n <= beta, q = 1 - e^(-eps/2).
    Proof: h is chosen with probability at most e^(-eps (errors of h) / 2), whose mean is (1 - q
    error(h))^n; add up over h, which errs on half of D if only its mask is wrong and on 1/4 + k /
    2d if k bits are. 75 at d = 16, epsilon 1, beta .1 (measured: about 74).
    """
    check_positive_epsilon(epsilon)
    check_success(1 - beta, 0.0)
    q = -math.expm1(-epsilon / 2)

    def enough(n: int) -> bool:
        return (1 - q / 2) ** n + 2 * sum(
            math.comb(d, k) * (1 - q * (1 / 4 + k / (2 * d))) ** n for k in range(1, d + 1)
        ) <= beta

    return least_clients(enough)


def success_bound(d: int, queries: float, tolerance: float) -> float:
    """Pr[error < 1/4] <= 1/2 + q / (8 tau^2 2^d) for every non-adaptive learner: Theorem 5.1
    corrected, and tight (limits 3.1, E5)."""
    return min(1.0, 0.5 + queries / (8 * tolerance**2 * 2.0**d))


def coset_tolerance(k: int) -> float:
    """2^(-k/2 - 1): a query that is bent on k variables reveals the mask exactly at the tolerances
    below this."""
    return float(2.0 ** (-k / 2 - 1))
