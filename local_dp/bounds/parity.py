"""Parities without a mask: lower bounds by rounds, and the clients of the protocols that run."""

import math
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate, pairwise

import numpy as np
from scipy import special

from local_dp.arrays import Counts, Floats
from local_dp.bounds.channels import best_channel, report_squares
from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.bounds.tails import add_normal, normal_tail
from local_dp.checks import check_dimension, check_success
from local_dp.cube import parity
from local_dp.errors import InputError
from local_dp.optimise import least_clients


def parity_one_round_success(d: int, epsilon: float, n: int) -> float:
    """Pr[the right one of 2^d independent scores is the largest], its mean sqrt(n / 2^d) / C
    deviations above the others' (limits 4.2)."""
    shift = math.sqrt(n / 2.0**d) / response_gain(epsilon)
    grid = np.linspace(-8, 8, 4001)
    below = np.array([1 - normal_tail(float(z + shift)) for z in grid])
    density = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    return float((density * below ** (2**d - 1)).sum() * (grid[1] - grid[0]))


def parity_one_round_clients(d: int, epsilon: float, beta: float) -> int:
    """n for random masks and the largest plain sum, about (sqrt(2 d ln 2) + z)^2 C^2 2^d: normal
    approximation (limits 4.2)."""
    return least_clients(lambda n: parity_one_round_success(d, epsilon, n) >= 1 - beta, least=2)


def parity_masks_bound(d: int, epsilon: float, success: float) -> float:
    """Proven where clients randomize one bit of a random parity, in one round: ((1 - beta) d ln 2 -
    h(beta)) 2^d / (ln 2 - h(E / (E + 1))) (limits 4.2)."""
    check_success(success, 0.0)
    check_positive_epsilon(epsilon)
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    information = success * d * math.log(2) - entropy(1 - success)
    return max(0.0, information) * 2.0**d / (math.log(2) - entropy(truth))


def parity_rounds(d: int, n: int) -> list[int]:
    """The clients of each of the d rounds of halving: n in proportion to the survivors 2^(d - k),
    so that every survivor is asked about equally often."""
    if n < d:
        raise InputError(f"halving 2^{d} parities takes {d} rounds; {n} clients are too few")
    survivors = [1 << (d - k) for k in range(d)]
    total = sum(survivors)
    ends = [k + (n - d) * done // total for k, done in enumerate(accumulate(survivors), start=1)]
    return [stop - start for start, stop in pairwise([0, *ends])]


def parity_halving_success(d: int, epsilon: float, n: int) -> float:
    """Pr[r survives d halvings], the scores of the others followed as independent draws from one
    density (limits 4.2)."""
    sizes = parity_rounds(d, n)
    unit = sizes[0] / 2.0**d  # scores are in deviations of one parity's first-round score
    signal = math.sqrt(unit) / response_gain(epsilon)
    width = 6 * math.sqrt(d)
    grid = np.linspace(-6 * math.sqrt(d), width + signal * d, 1025)
    null = np.zeros(len(grid))
    right = np.zeros(len(grid))
    start = int(np.searchsorted(grid, 0.0))
    null[start] = right[start] = 1.0
    for k, size in enumerate(sizes):
        survivors = 2 ** (d - k)
        share = size / survivors / unit
        null = add_normal(null, grid, 0.0, share)
        right = add_normal(right, grid, signal * share, share)
        stays = survival(null, survivors // 2, survivors)
        null, right = null * stays, right * stays
    return float(right.sum())


@lru_cache
def parity_halving_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which adaptive halving finds r with probability 1 - beta: about 5.7 C^2 2^d for beta =
    .1, without a factor d (limits 4.2)."""
    return least_clients(lambda n: parity_halving_success(d, epsilon, n) >= 1 - beta, least=2 * d)


def parity_elimination_clients(d: int, epsilon: float, fall: float, step: float) -> float:
    """About the MEAN clients of elimination for a large d: (fall + what is fallen too far) C^2 2^d
    / c, by Wald's identity; the last survivors take more.

    A survivor is dropped once its log likelihood ratio has fallen by `fall`; a round asks `step`
    clients for each (limits 12.3).
    """
    shrink = 1 / response_gain(epsilon)
    beyond = (shrink * step - math.log1p(-shrink)) / 2
    return 2.0**d * (fall + beyond) / (-math.log1p(-shrink) - shrink)


def parity_elimination_limit(epsilon: float, fall: float) -> tuple[float, float]:
    """Proven up to epsilon ln 3, as d grows and rounds shrink: the clients of elimination in units
    of C^2 2^d, and Pr[it drops the hidden parity].

    Let s = 1 / C, a = -ln(1 - s), rho = (1 - s) a / s, and G the renewal measure of steps of
    density (1 - s) / s on [0, a]: s int_[0, fall] e^x dG(x) and 1 - (1 - rho) G([0, fall]) (limits
    12.3).
    """
    check_positive_epsilon(epsilon)
    shrink = 1 / response_gain(epsilon)
    jump = -math.log1p(-shrink)
    slope = (1 - shrink) / shrink

    def renewals(level: float) -> float:
        return sum(
            (-y) ** k * math.exp(y) / math.factorial(k)
            for k in range(int(level / jump) + 1)
            for y in [slope * (level - k * jump)]
        )

    ends = np.append(np.arange(0, fall, jump), fall)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = np.diff(ends)[:, None] / 2
    places = ends[:-1, None] + half * (1 + nodes)
    smooth = np.exp(places) * np.vectorize(renewals)(places)
    cost = math.exp(fall) * renewals(fall) - float((half * weights * smooth).sum())
    return shrink * cost, 1 - (1 - slope * jump) * renewals(fall)


def survival(null: Floats, keep: int, of: int) -> Floats:
    """For each score, Pr[it is among the `keep` largest of so many], the others' drawn from
    `null`, a density up to a factor."""
    total = max(float(null.sum()), 1e-300)
    beaten = np.clip(1 - np.cumsum(null) / total + null / (2 * total), 0.0, 1.0)
    return at_most(keep - 1, of - 1, beaten)


def at_most(k: int, n: int, p: Floats) -> Floats:
    """Pr[Binomial(n, p) <= k]; a normal approximation above n = 64."""
    if n > 64:
        from scipy.special import ndtr

        deviation = np.sqrt(np.maximum(n * p * (1 - p), 1e-12))
        return np.asarray(ndtr(np.clip((k + 0.5 - n * p) / deviation, -8, 8)))
    terms: Floats = np.array([math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1)])
    return np.asarray(terms.sum(axis=0), dtype=np.float64)


def parities_told(tolerance: float) -> int:
    """Proven: one query of this tolerance distinguishes at most ceil(1 / tau^2) - 1 parities from
    random labels (Parseval), exactly."""
    return math.ceil(1 / Fraction(tolerance) ** 2) - 1


def parity_sq_success(d: int, queries: int, tolerance: float) -> Fraction:
    """Proven: q queries of tolerance tau find a uniform r with probability at most (q (ceil(1 /
    tau^2) - 1) + 1) / 2^d, adaptive or not (limits 4.2).

    So q / tau^2 > p 2^d - 1. At q = 2^(d/3) and tau = 2^(-d/3), the values of Blum et al. 1994
    (KLNRS Corollary 4.6), it is below 1.
    """
    return min(Fraction(1), Fraction(queries * parities_told(tolerance) + 1, 1 << d))


def parity_sq_queries(d: int, tolerance: float) -> int:
    """Proven: the least number of queries that find every parity, (2^d - 1) / (ceil(1 / tau^2) - 1)
    rounded up."""
    count = parities_told(tolerance)
    return -((1 - (1 << d)) // count)


def entropy(p: float) -> float:
    """The entropy of a coin of bias p, in nats."""
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


MOST = 3  # d: 2^16 columns


def parity_information(d: int, columns: Floats) -> Floats:
    """The information of each report about a uniform parity: sum_w 2^-d P_w ln(P_w / P), P_w its
    probability under w and P the mean of these. Shape (reports,).

    A column holds a report's probability for each value 2 x + 1(y = -1): shape (reports, 2^(d +
    1)). The channel's information is the sum.
    """
    x = np.arange(1 << d)
    examples = 2 * x + parity(
        (x & x[:, None]).astype(np.uint64)
    )  # row w: the examples of the parity w
    chances = columns[:, examples].mean(axis=2)
    mean = chances.mean(axis=1, keepdims=True)
    return np.asarray((chances * np.log(chances / mean)).mean(axis=1))


@lru_cache
def best_parity_information(d: int, epsilon: float) -> float:
    """The most information of one epsilon-local report about a uniform parity of d bits, over ALL
    channels. Cost: 2 s at d = 3. 1 <= d <= 3."""
    check_dimension(d, MOST)
    return best_channel(epsilon, 2 << d, partial(parity_information, d)).value


def random_channel(d: int, epsilon: float, reports: int, generator: np.random.Generator) -> Floats:
    """A channel whose ratio is E: random columns of ones and E's, as large as the last one allows,
    which makes the rows sum to 1.

    Shape (at most reports, 2^(d + 1)). The last column is 1 - t S, S the sum of the others, with
    the t for which its own ratio is E.
    """
    growth = float(np.exp(epsilon))
    columns = np.where(
        generator.random((reports - 1, 2 << d)) < generator.random((reports - 1, 1)), growth, 1.0
    ) * generator.random((reports - 1, 1))
    sums = columns.sum(axis=0)
    columns *= (growth - 1) / (growth * sums.max() - sums.min())
    whole = np.vstack([columns, 1 - columns.sum(axis=0)])
    # the last one is nothing where the others sum to a constant
    return np.asarray(whole[whole.max(axis=1) > 1e-9])


_FINE = 100  # steps of a count's deviation that are distinguished


def report_curvature(epsilon: float) -> float:
    """Proven: kappa, the largest ((1 + t) ln(1 + t) - t) / t^2 over the relative changes |t| <= 1 /
    C that a report's probability can have: that at -1 / C."""
    least = -1 / response_gain(epsilon)
    return ((1 + least) * math.log1p(least) - least) / least**2


def parity_report_bound(d: int, epsilon: float) -> float:
    """Proven: no epsilon-local report of an example has more than kappa G 2^-d nats about a uniform
    parity of d bits (limits 12.2)."""
    return report_curvature(epsilon) * report_squares(epsilon) / 2.0**d


def parity_one_round_bound(d: int, epsilon: float, success: float) -> float:
    """Proven for every NON-INTERACTIVE protocol, public coins too: ((1 - beta) d ln 2 - h(beta))
    2^d / (kappa G), beta = 1 - success (limits 12.2)."""
    check_success(success, 0.0)
    information = success * d * math.log(2) - entropy(1 - success)
    return max(0.0, information) / parity_report_bound(d, epsilon)


def deny_information(d: int, epsilon: float) -> float:
    """The exact information, in nats, of one report of `Deny` about a uniform parity. Up to ln 3 it
    tends to `parity_report_bound` as d grows."""
    return _named_information(d, 1 / response_gain(epsilon))


def support_information(d: int, epsilon: float) -> float:
    """The same of the randomizer that more often names a parity that agrees with the example:
    less."""
    return _named_information(d, -1 / response_gain(epsilon))


def _named_information(d: int, shrink: float) -> float:
    right, other = _chances(d, shrink)
    count = 2.0**d
    return right * math.log(right * count) + (count - 1) * other * math.log(other * count)


def _chances(d: int, shrink: float) -> tuple[float, float]:
    """Pr[a report names the hidden parity] and Pr[it names this other one]."""
    other = (1 + shrink / 2.0**d) / 2.0**d
    return other - shrink / 2.0**d, other


def named_score(d: int, epsilon: float) -> float:
    """What one more report that names a parity adds to its log likelihood of being the hidden one:
    less than 0."""
    right, other = _chances(d, 1 / response_gain(epsilon))
    return math.log(right / other)


def named_counts(d: int, epsilon: float, n: int) -> tuple[Counts, Floats, Floats]:
    """How often `Deny` names a parity, in n reports: counts in equal steps, and their law for one
    that is not hidden and for the hidden one (Poisson)."""
    from scipy.special import pdtr

    means = [n * chance for chance in _chances(d, 1 / response_gain(epsilon))]
    reach = 10 * math.sqrt(means[1]) + 30
    step = 1 + int(math.sqrt(means[1]) / _FINE)
    first = max(0, int(means[0] - reach))
    last = int(means[1] + reach)
    counts = np.arange(first, last, step)
    edges = np.append(counts - 1, counts[-1] + step - 1).astype(np.float64)
    below = [np.where(edges < 0, 0.0, pdtr(np.maximum(edges, 0), mean)) for mean in means]
    return counts, np.diff(below[1]), np.diff(below[0])


def parity_deny_success(d: int, epsilon: float, n: int) -> float:
    """Pr[the hidden parity is named least, ties broken at random], the counts taken for independent
    Poisson variables."""
    _, other, right = named_counts(d, epsilon, n)
    above = np.clip(1 - np.cumsum(other), 0.0, 1.0)
    total = 2.0**d
    least = np.maximum(other, 1e-9)
    ties = np.where(
        other > 1e-9,
        ((above + other) ** total - above**total) / (total * least),
        above ** (total - 1),
    )
    return float((right * ties).sum())


@lru_cache
def parity_deny_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which `Deny` finds the parity with probability 1 - beta: 1.65 times
    `parity_one_round_bound` at d = 12, and ever less beyond (limits 12.2)."""
    return least_clients(lambda n: parity_deny_success(d, epsilon, n) >= 1 - beta, least=2)


def parity_cells_success(d: int, variance: float, n: int) -> float:
    """Pr[a parity of n uniform examples has the largest score], by counts of all 2^(d + 1) cells
    (x, y) with independent noise of this variance.

    The right score is n, a wrong one a sum of n signs; the noise of each has variance 2^(d + 1)
    times a cell's. Normal approximation.
    """
    noise = 2.0 ** (d + 1) * variance
    places = np.linspace(-8, 8, 4001)
    below = special.log_ndtr((n + places * math.sqrt(noise)) / math.sqrt(noise + n))
    logs = -(places**2) / 2 + (2.0**d - 1) * below
    density = np.exp(logs) / math.sqrt(2 * math.pi)
    return float(density.sum() * (places[1] - places[0]))


@lru_cache
def parity_cells_clients(d: int, variance: float, beta: float) -> int:
    """n for success 1 - beta from such counts: about (sqrt(2 d ln 2) + z) sqrt(2^(d + 1) variance),
    so the square root of what clients alone need.

    Every robust shuffle protocol needs of the order 2^(d / 2) (cited: Cheu, Ullman 2021 for
    agnostic learners; Yan 2021 for any law of examples).
    """
    return least_clients(lambda n: parity_cells_success(d, variance, n) >= 1 - beta, least=2)
