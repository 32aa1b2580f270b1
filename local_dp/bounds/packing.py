"""Packing: records that any private algorithm needs for points, thresholds, sanitizers and
counts."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from local_dp.accounting.laws import log_sum
from local_dp.arrays import Floats, Ints
from local_dp.bounds.tails import CountLaw
from local_dp.checks import check_positive, check_share, check_whole
from local_dp.curator.counts import MAX_COUNTS
from local_dp.curator.multisets import MAX_BITS
from local_dp.curator.sanitizers.point_counts import CellNoise
from local_dp.curator.selection.stable import UNIT, best_acceptance
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, nano_epsilon
from local_dp.optimise import least_clients

_MOST_DATABASES = 1 << 12  # a table of 2^12 rows takes 24 MB at k = 2


def is_excluded(log_others: float, distance: CountLaw, epsilon: float, beta: float) -> bool:
    """True if no eps-private algorithm is right with probability 1 - beta on each of N kinds of
    databases whose right answers exclude each other.

    `log_others` = ln(N - 1): N may be 2^65536. A database of one kind becomes one of another by
    replacing K records, `distance` the law of K. Excluded if (N - 1) E[e^(-eps K); K above its
    beta-quantile], what kind i's wrong answers have, is above beta. Source: sharpens Beimel,
    Nissim, Stemmer 2013, Lemma 4.15.
    """
    rest = np.minimum(distance.shares, np.maximum(0.0, np.cumsum(distance.shares) - beta))
    above = rest > 0
    logs = np.log(rest[above])
    return log_others + log_sum(logs - epsilon * distance.sizes[above]) > math.log(beta)


def least_not_excluded(
    log_others: float, distance: Callable[[int], CountLaw], epsilon: float, beta: float
) -> int:
    """The least m that is not excluded, `distance` the law of K for m records: every algorithm
    needs at least as many."""
    check_positive("epsilon", epsilon)
    check_share("beta", beta)
    return least_clients(lambda m: not is_excluded(log_others, distance(m), epsilon, beta))


def point_records(bits: int, epsilon: float, alpha: float, beta: float) -> int:
    """For a pure proper learner of points: 155, 278, 520, 993, 1,924 at 16, 32, 64, 128, 256 bits
    (alpha = beta = .1, eps 1).

    The kinds: just over alpha on (x, 1), the rest on (0, 0), for the 2^bits - 1 points x > 0; only
    x itself is within alpha. K ~ Bin(m, alpha).
    """
    return least_not_excluded(
        _log_below(bits, 2), lambda m: CountLaw.binomial(m, _share(alpha)), epsilon, beta
    )


def threshold_records(bits: int, epsilon: float, alpha: float, beta: float) -> int:
    """For a pure proper learner of thresholds: 73, 134, 254, 490, 954 at 16, 32, 64, 128, 256 bits
    (alpha = beta = .1, eps 1).

    The kinds: just over alpha on (t - 1, 0) and on (t, 1), the rest on (0, 0) and (2^bits - 1, 1),
    for the 2^(bits - 1) odd t; only 1 iff x >= t is within alpha. K ~ Bin(m, 2 alpha). All t > 0
    would do, and add as much as one more bit. Not of improper learners: "x is odd" has error 0 on
    all these records.
    """
    return least_not_excluded(
        _log_below(bits - 1, 1), lambda m: CountLaw.binomial(m, 2 * _share(alpha, 2)), epsilon, beta
    )


def k_point_records(bits: int, k: int, epsilon: float, alpha: float, beta: float) -> int:
    """For a pure proper learner of sets of k points, k even: 92, 174, 332, 641 for k = 2, 4, 8, 16
    at 64 bits (alpha = beta = .1, eps 1).

    The kinds: just over 5 alpha / k on each point of A, the rest on 0, so K ~ Bin(m, 5 alpha). The
    sets A meet in fewer than k / 2 points. There are at least ((2^bits - 1) / (4 e^2 k))^(k / 2) of
    them (Beimel, Nissim, Stemmer 2013, Lemma 5.7; erratum E11): a set within alpha has 4 k / 5
    points of A.
    """
    check_whole("k", k, 2, 1 << 20)
    if k % 2:
        raise InputError(
            f"k is {k}; give an even number: the family is of sets that meet in half of their "
            "points"
        )
    log_family = k / 2 * (_log_below(bits, 1) - math.log(4 * math.e**2 * k))
    if log_family <= math.log(2):
        raise InputError(f"there are too few sets of {k} points among 2^{bits}; give more bits")
    log_others = log_family + math.log1p(-math.exp(-log_family))
    return least_not_excluded(
        log_others, lambda m: CountLaw.binomial(m, 5 * _share(alpha, 5)), epsilon, beta
    )


def sanitizer_records(bits: int, epsilon: float, alpha: float, beta: float) -> int:
    """For a pure sanitizer of any class that separates all points (points, thresholds): 65, 120,
    230, 450, 895 at 16, 32, 64, 128, 256 bits.

    The kinds: more than 2 alpha m copies of x_i, the rest of x_1; the answers of one are within
    alpha of no other. K is the least such number, always.
    """
    share = 2 * Fraction(repr(_share(alpha, 2)))
    return least_not_excluded(
        _log_below(bits, 1), lambda m: CountLaw.always(math.floor(share * m) + 1), epsilon, beta
    )


def _log_below(bits: int, less: int) -> float:
    """ln(2^bits - less)."""
    check_whole("bits", bits, 2, MAX_BITS)
    return math.log((1 << bits) - less)


def _share(alpha: float, times: int = 1) -> float:
    """alpha, if so many times alpha is still a share."""
    check_share(f"{times} alpha" if times > 1 else "alpha", times * alpha)
    return alpha


def stable_success(loss: Approximate, m: int, alpha: float) -> float:
    """Pr[the point learner names the target]: its lead is its count, Bin(m, alpha); the domain does
    not matter."""
    law = CountLaw.binomial(m, alpha)
    acceptance = best_acceptance(loss)
    last = len(acceptance) - 1
    answers = np.array([acceptance[min(gap, last)] / UNIT for gap in law.sizes.tolist()])
    return law.mean(answers * (law.sizes > 0))


def uniform_success(bits: int, loss: Approximate, m: int, alpha: float, beta: float) -> float:
    """Pr[the point learner that outputs a uniform point for no answer is within alpha], at least;
    `beta` is what a uniform point may spoil.

    Of a target lighter than alpha by s = 1 / (beta 2^bits) at most beta 2^bits points are heavier
    than s: a uniform one is one of them with probability beta at most. A heavier target must be
    named. So nothing need be halved (erratum E3) where 2^bits is well above 1 / (alpha beta), the
    condition as printed.
    """
    check_share("beta", beta)
    spare = alpha - math.exp(-bits * math.log(2)) / beta
    return min(1 - beta - loss.delta, stable_success(loss, m, spare)) if spare > 0 else 0.0


def pure_success(bits: int, epsilon: float, m: int, alpha: float) -> float:
    """Pr[the exponential mechanism over all points names the target]: e^(eps K / 2) against 2^bits
    - 1, K ~ Bin(m, alpha)."""
    law = CountLaw.binomial(m, alpha)
    against = math.log((1 << bits) - 1) - epsilon * law.sizes / 2
    return law.mean(np.exp(-np.logaddexp(0.0, against)))


def plain_success(m: int, alpha: float) -> float:
    """Pr[the target is seen]: without privacy."""
    return -math.expm1(m * math.log1p(-alpha))


def least_records(success: Callable[[int], float], target: float = 0.9) -> int:
    """The least m with this success, which grows with m."""
    check_share("target", target)
    return least_clients(lambda m: success(m) >= target)


def least_multiple(success: Callable[[int], float], alpha: float, k: int = 1) -> int:
    """The least m with success .9 of counts: between the m at which floor(alpha m / k) grows, it
    falls."""
    sizes = (math.ceil(error * k / Fraction(repr(alpha))) for error in range(1, 1 << 20))
    return next(m for m in sizes if success(m) >= 0.9)


def cell_failures(noise: CellNoise, m: int, error: int) -> Floats:
    """For counts c = 0 .. m the chance that the released count of a cell is off by more than
    `error`, an unreleased one counting 0; shape (m + 1,)."""
    counts = np.arange(m + 1)
    top = max(m, noise.least)
    starts = noise.least - counts
    over = np.where(counts + error < top, _tail(noise, np.maximum(starts, error + 1)), 0.0)
    under = np.where(
        counts > error, 1 - _tail(noise, np.maximum(noise.least - counts, -error)), 0.0
    )
    return np.asarray(np.minimum(over + under, 1 - 1e-15))


def histogram_success(noise: CellNoise, m: int, alpha: float, k: int = 1) -> float:
    """Pr[every count is within alpha m / k], in the worst of all databases of m records: then all
    sums of k counts are within alpha m."""
    error = _error(alpha, m, k)
    return math.exp(-_worst_database(-np.log1p(-cell_failures(noise, m, error)), error))


def per_cell_success(bits: int, epsilon: float, m: int, alpha: float) -> float:
    """(1 - 2 e^(-eps (k + 1) / 2) / (1 + e^(-eps / 2)))^(2^bits), k = floor(alpha m): of noise on
    all cells, every count released."""
    step = nano_epsilon(epsilon) / (2 * NANO)
    # of an error in one cell, on either side
    log_total = math.log1p(math.exp(-step))
    log_chance = math.log(2) - step * (_error(alpha, m) + 1) - log_total
    if log_chance > -30:
        if bits < 1000:
            return math.exp((2.0**bits) * math.log1p(-min(math.exp(log_chance), 1 - 1e-16)))
        return 0.0
    # -ln(1 - x) is x to fifteen digits, and 2^bits may be beyond a float
    exponent = bits * math.log(2) + log_chance
    return math.exp(-math.exp(min(exponent, 700.0)))


def _worst_database(costs: Floats, error: int) -> float:
    """The largest sum of the costs of the counts of a database: `costs[c]` for each point of count
    c, the counts adding up to m, by dynamic programming."""
    m = len(costs) - 1
    # as many as are just too heavy to be left out
    heavy = (m // (error + 1)) * float(costs[min(error + 1, m)])
    if heavy > 0.7:
        return heavy  # a success of less than a half, whatever else there is
    worst = np.zeros(m + 1)
    for count in range(1, m + 1):
        worst[count] = (worst[count - 1 :: -1] + costs[1 : count + 1]).max()
    return float(worst[m])


def _tail(noise: CellNoise, y: Ints) -> Floats:
    """Pr[Y >= y]."""
    step = float(noise.nano) / NANO
    away = np.where(y > 0, y, 1 - y)
    far = np.exp(-step * away) / (1 + math.exp(-step))
    return np.where(y > 0, far, 1 - far)


def _error(alpha: float, m: int, k: int = 1) -> int:
    """floor(alpha m / k)."""
    check_share("alpha", alpha)
    return math.floor(Fraction(repr(alpha)) * m / k)


def packing_error(k: int, epsilon: float) -> int:
    """The least whole t such that the largest of k counts may be off by t or less every second
    time: about k ln 2 / (2 eps); 6, 89, 1,420 at 16, 256, 4,096.

    The kinds: s copies of one of the 2^k records, whose counts are s apart. Source: Hardt, Talwar
    2010; lecture notes, Lemma 4.3.1, exact constant.
    """
    _check(k, epsilon)
    log_others = k * math.log(2) + math.log1p(-(2.0**-k)) if k > 1 else 0.0
    return (
        least_clients(lambda s: not is_excluded(log_others, CountLaw.always(s), epsilon, 0.5)) // 2
    )


def best_within(k: int, epsilon: float, t: int) -> float:
    """The largest probability that a pure mechanism, for counts of any size, errs by at most t in
    all of k whole answers; t is whole.

    It is that of `KNormCounts`, for every t at once: here as the mean over cubes, of weight e^(-eps
    R) (2R + 1)^k, of their share in the cube of t. Proof. Let p_r be the mean probability of an
    error in the shell max |z_i| = r, of n_r points, over all counts. Move a uniform point of the
    shell along its ray to the same quantile of the next shell, and round it. No coordinate moves by
    more than 1: p_r <= e^eps p_(r + 1). So the odds of the cube of t are at most those of the law
    n_r e^(-eps r). A mechanism that sees n records does better at small n (`best_by_records`), and
    no better as n grows. Source: ours; one count: Ghosh, Roughgarden, Sundararajan 2009; Gupte,
    Sundararajan 2010.
    """
    _check(k, epsilon)
    half = np.arange(math.ceil((k + 12 * math.sqrt(k) + 60) / epsilon)) + 0.5
    logs = k * np.log(half / half[-1]) - epsilon * half
    weights = np.exp(logs - logs.max())
    return float(weights @ np.minimum(1.0, (t + 0.5) / half) ** k / weights.sum())


def best_by_records(k: int, n: int, epsilon: float) -> float:
    """No pure mechanism that sees n records of k bits releases all k counts exactly with a larger
    probability, on every database.

    It is 1 / max_D sum_j e^(-eps d(D, j)), d of `least_replaced`; proof in docs/curator.md. Linear
    programs reach it at small n; whether some mechanism reaches it at every n is open. Source:
    ours.
    """
    check_positive("epsilon", epsilon)
    return 1 / float(np.exp(-epsilon * least_replaced(k, n)).sum(axis=1).max())


def least_replaced(k: int, n: int) -> Ints:
    """d(D, j): how many of the n records of D must be replaced for the k counts j; shape
    (databases, (n + 1)^k).

    Databases are histograms of the 2^k kinds of records, all listed. Raises InputError above 2^12
    of them.
    """
    check_whole("k", k, 1, 12)
    check_whole("n", n, 1, 1 << 12)
    kinds = np.array(list(product((0, 1), repeat=k)))
    bars = len(kinds) - 1
    if math.comb(n + bars, bars) > _MOST_DATABASES:
        raise InputError(
            f"there are too many databases of {n} records of {k} bits; give at most "
            f"{_MOST_DATABASES:,}: fewer records"
        )
    cuts = np.array(list(combinations(range(n + bars), bars)))
    histograms = np.diff(cuts, axis=1, prepend=-1, append=n + bars) - 1
    counts = histograms @ kinds @ (n + 1) ** np.arange(k)
    histograms = histograms[np.argsort(counts, kind="stable")]
    starts = np.searchsorted(np.sort(counts), np.arange((n + 1) ** k))
    return np.array(
        [
            np.minimum.reduceat(np.abs(histograms - each).sum(axis=1) // 2, starts)
            for each in histograms
        ]
    )


def least_error(k: int, epsilon: float) -> int:
    """The least whole t that some pure mechanism of whole answers keeps for all k counts every
    second time, about k / eps (packing: .35 k / eps)."""
    return least_clients(lambda above: best_within(k, epsilon, above - 1) >= 0.5) - 1


def _check(k: int, epsilon: float) -> None:
    check_whole("k", k, 1, MAX_COUNTS)
    check_positive("epsilon", epsilon)
