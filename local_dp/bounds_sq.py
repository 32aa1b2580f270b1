"""Bounds for the two simulations between local and statistical-query algorithms: client counts with explicit constants, and what an approximate answer costs.

n counts clients; epsilon is in nats; queries have values in [-b, b] with b = 1 unless a line says otherwise, and tau is on the same scale.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from local_dp.bounds import gain, normal_quantile, normal_tail
from local_dp.errors import InputError

MAX_WALK = 1 << 20


def _check(epsilon: float, tau: float, beta: float) -> None:
    if not epsilon > 0:
        raise InputError(f"epsilon is {epsilon}; give a positive number of nats")
    if not 0 < tau <= 2:
        raise InputError(f"the tolerance is {tau}; give a number above 0 and at most 2")
    if not 0 < beta < 1:
        raise InputError(f"the failure probability is {beta}; give a number strictly between 0 and 1")


def binomial_tail(n: int, k: int, p: float) -> float:
    """Pr[Binomial(n, p) >= k], to about 1e-9 relative: the leading term by the log-gamma function, the others by their ratios."""
    if k <= 0:
        return 1.0
    if k > n:
        return 0.0
    if k < n * p:
        return 1.0 - binomial_tail(n, n - k + 1, 1 - p)
    log_first = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
    terms = np.arange(min(n - k, int(40 * math.sqrt(n * p * (1 - p))) + 50), dtype=np.float64)  # beyond 40 deviations: nothing
    ratios = np.cumprod((n - k - terms) / (k + 1 + terms) * (p / (1 - p)))
    return math.exp(log_first) * (1.0 + float(ratios.sum()))


def rr_failure(n: int, epsilon: float, tau: float, mean: float = 0.0) -> float:
    """Pr[|estimate - mean| > tau] for n clients under randomized response: exact, by the binomial law. A saw-tooth in n, because reports are whole."""
    c = gain(epsilon)
    p = (1 + mean / c) / 2
    above = math.floor(n * (1 + (mean + tau) / c) / 2) + 1
    below = math.ceil(n * (1 + (mean - tau) / c) / 2) - 1
    return min(1.0, binomial_tail(n, above, p) + binomial_tail(n, n - below, 1 - p))


def rr_failure_envelope(n: int, epsilon: float, tau: float) -> float:
    """An upper bound on `rr_failure` at mean 0 that falls as n grows: 2 Pr[N(0, 1) > sqrt(2 n KL)], KL from a fair coin to one report short of the edge.

    Zubkov and Serov 2013: Pr[Binomial(n, p) > k] <= Pr[N(0, 1) > sqrt(2 n KL(k/n || p))] for k >= np.
    """
    bias = min(tau / gain(epsilon), 1.0) - 2 / n
    if bias <= 0:
        return 1.0
    divergence = bias * math.atanh(bias) + math.log1p(-(bias**2)) / 2  # of a coin of that bias from a fair one, without cancellation
    return 2 * normal_tail(math.sqrt(2 * n * divergence))


@lru_cache(maxsize=4096)
def rr_clients_exact(epsilon: float, tau: float, beta: float) -> int:
    """The least n such that n AND all larger numbers of clients keep one [-1, 1] query of mean 0 within tau, except with probability beta.

    Randomized response by the exact binomial law (limits 1). Above the count of the falling envelope nothing fails; below it the saw-tooth is walked
    down to the last number that does. Beyond 2^20 the envelope's count is the answer: sufficient, and at most 0.3 % above.
    Mean 0 is the least favourable one up to the phase of the lattice of reports, which the walk has met.
    """
    _check(epsilon, tau, beta)
    low, high = 1, 2
    while rr_failure_envelope(high, epsilon, tau) > beta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rr_failure_envelope(middle, epsilon, tau) <= beta else (middle, high)
    n = high
    while 1 < n <= MAX_WALK and rr_failure(n - 1, epsilon, tau) <= beta:
        n -= 1
    return n


def laplace_clients(epsilon: float, tau: float, beta: float, variance: float = 1.0) -> int:
    """n for the mean of g + Lap(2/eps), central limit form: z_{beta/2}^2 (8/eps^2 + Var g) / tau^2 (KLNRS Claim 4.1; limits 1)."""
    _check(epsilon, tau, beta)
    return math.ceil(normal_quantile(beta / 2) ** 2 * (8 / epsilon**2 + variance) / tau**2)


def laplace_clients_chernoff(epsilon: float, tau: float, beta: float) -> int:
    """n for the same with a guarantee: ln(2/beta) / max over t of (t tau - t^2/2 + ln(1 - (2t/eps)^2)), sampling and noise together (limits 1)."""
    _check(epsilon, tau, beta)
    low, high = 0.0, epsilon / 2
    for _ in range(200):  # the derivative of the exponent falls from tau to minus infinity
        t = (low + high) / 2
        slope = tau - t - (8 * t / epsilon**2) / (1 - (2 * t / epsilon) ** 2)
        low, high = (t, high) if slope > 0 else (low, t)
    exponent = low * tau - low**2 / 2 + math.log1p(-((2 * low / epsilon) ** 2))
    return math.ceil(math.log(2 / beta) / exponent)


def laplace_clients_closed(epsilon: float, tau: float, beta: float, b: float = 1.0) -> int:
    """n >= 2.069 (8 + eps^2) b^2 ln(2/beta) / (eps tau)^2: KLNRS Lemma 4.3 with its constant. Needs eps tau <= b, which the paper does not say (limits 1)."""
    if epsilon * tau > b:
        raise InputError(f"the closed form needs epsilon * tau <= b, not {epsilon:g} * {tau:g} > {b:g}; use laplace_clients_chernoff")
    return math.ceil(2.069 * (8 + epsilon**2) * b**2 * math.log(2 / beta) / (epsilon * tau) ** 2)


def laplace_tail_exponent(tau: float, t: float | None = None) -> float:
    """c with Pr[|mean of n Lap(1)| >= tau] <= 2 exp(-c n tau^2): c = (t tau + ln(1 - t^2)) / tau^2, at the best t = (sqrt(1 + tau^2) - 1) / tau.

    At least 0.2259 for tau <= 1, and 0.2123 at the simpler t = tau/2; KLNRS Lemma 4.2 prints t = tau, where c < 0 and nothing is claimed (limits 1).
    """
    best = (math.sqrt(1 + tau**2) - 1) / tau if t is None else t
    return (best * tau + math.log1p(-(best**2))) / tau**2


def clipped_laplace_shrinkage(epsilon: float) -> float:
    """m = 1 - (1 - e^-eps) / eps: what clipping g + Lap(2/eps) to [-1, 1] leaves of the mean of g in {-1, 1} (limits 1)."""
    return 1 + math.expm1(-epsilon) / epsilon


def clipped_laplace_variance(epsilon: float) -> float:
    """The variance of one clipped and rescaled Laplace report at mean 0: (1/2 + e^-eps/2 + 1/2 int_0^eps (1 - 2s/eps)^2 e^-s ds) / m^2 (limits 1)."""
    rest, width = math.exp(-epsilon), 2 / epsilon
    moments = (1 - rest, 1 - (1 + epsilon) * rest, 2 - (epsilon**2 + 2 * epsilon + 2) * rest)
    square = (1 + rest + moments[0] - 2 * width * moments[1] + width**2 * moments[2]) / 2
    return square / clipped_laplace_shrinkage(epsilon) ** 2


def split_budget_cost(epsilon: float, t: int) -> float:
    """C(eps/t)^2 / (t C(eps)^2): the variance of splitting epsilon over t queries in units of that of splitting the clients; about t at small epsilon.

    It falls below 1 where sampling, not privacy, is what costs: from epsilon 3.06 for t = 2, 4.25 for t = 4 and 5.88 for t = 8.
    """
    return gain(epsilon / t) ** 2 / (t * gain(epsilon) ** 2)


def density_error(epsilon: float, tau: float, *, centred: bool = True) -> float:
    """The most by which p~(w)/q(w) is off when the mean of (R/q - cosh eps)/sinh eps is known within tau: sinh(eps) tau.

    Not centred, the paper's query (R/q - 1)/(E - 1/E) costs twice as much (KLNRS Lemma 4.4; limits 6, L4).
    """
    return math.sinh(epsilon) * tau * (1 if centred else 2)


def relative_error(epsilon: float, tau: float, *, centred: bool = True) -> float:
    """tau' with (1 - tau') p <= p~ <= (1 + tau') p: e^eps times `density_error`, because p >= q e^-eps. The paper's query: (e^{2 eps} - 1) tau."""
    return math.exp(epsilon) * density_error(epsilon, tau, centred=centred)


def _half_angle(error: float) -> float:
    return error / (1 + math.sqrt(1 - error**2)) if error <= 1 else 1.0


def draw_distance(epsilon: float, tau: float, *, centred: bool = True) -> float:
    """Total variation between one simulated draw and R(z), z from the distribution: at most min(tau'/(1 + sqrt(1 - tau'^2)), density error) (limits 6, L4)."""
    return min(_half_angle(relative_error(epsilon, tau, centred=centred)), density_error(epsilon, tau, centred=centred), 1.0)


def conditional_draw_distance(spent: float, tau: float, *, centred: bool = True) -> float:
    """The same for a draw conditional on earlier replies: tau'/(1 + sqrt(1 - tau'^2)), where `spent` counts the earlier replies and this one (limits 6, L7)."""
    return _half_angle(relative_error(spent, tau, centred=centred))


def simulation_tolerance(epsilon: float, draws: int, beta: float, *, centred: bool = True) -> float:
    """The tau for which all `draws` draws together are within total variation beta: the larger of the two inverses of `draw_distance` at y = beta/draws.

    The first inverse is tau' = 2y/(1 + y^2) exactly. KLNRS Lemma 4.4 asks for about E/2 or E times less (limits 6, L4).
    """
    if draws < 1 or not 0 < beta < 1:
        raise InputError(f"{draws} draws within {beta} of the truth; give 1 or more draws and a distance strictly between 0 and 1")
    y = beta / draws
    return max(2 * y / (1 + y**2) / relative_error(epsilon, 1.0, centred=centred), y / density_error(epsilon, 1.0, centred=centred))


def conditional_tolerance(spent: float, draws: int, beta: float, *, centred: bool = True) -> float:
    """The tau for which all `draws` draws of an interactive simulation are within beta, no client spending more than `spent` (limits 6, L7)."""
    if draws < 1 or not 0 < beta < 1:
        raise InputError(f"{draws} draws within {beta} of the truth; give 1 or more draws and a distance strictly between 0 and 1")
    y = beta / draws
    return 2 * y / (1 + y**2) / relative_error(spent, 1.0, centred=centred)


def miss_probability(epsilon: float, trials: int, error: float = 0.0) -> float:
    """The most Pr[none of `trials` candidates is accepted] for one draw: (1 - (1 - error) e^-eps)^trials (limits 6, L1).

    The estimated law p~ sums to at least 1 - error: `density_error` will do, and the larger tau' of limits 6.
    """
    return (1 - max(0.0, 1 - error) * math.exp(-epsilon)) ** trials


def enough_trials(epsilon: float, draws: int, miss: float, error: float = 0.0) -> int:
    """How many candidates a draw needs so that any of `draws` draws misses with probability at most `miss`: ln(draws/miss) / -ln(1 - (1 - error) e^-eps)."""
    if draws < 1 or not 0 < miss < 1 or not 0 <= error < 1:
        raise InputError(f"{draws} draws, miss {miss}, error {error}; give 1 or more draws, a miss in (0, 1) and an error in [0, 1)")
    return math.ceil(math.log(draws / miss) / -math.log(miss_probability(epsilon, 1, error)))


def expected_queries(epsilon: float, draws: int, error: float = 0.0) -> float:
    """The most SQ queries expected of `draws` draws, one a candidate until one is accepted: draws e^eps / (1 - error) (limits 6, L1)."""
    return draws * math.exp(epsilon) / (1 - error)


@dataclass(frozen=True)
class SimulationPlan:
    """What simulating local randomizers by statistical queries takes: the tolerance to ask with, candidates a draw, and queries in all.

    `queries` counts every candidate of a non-interactive simulation; `expected` is the mean for an interactive one, which stops at the first accepted
    candidate. `miss` bounds the probability that any draw has no accepted candidate.
    """

    tolerance: float
    trials: int
    queries: int
    expected: float
    miss: float


def plan_simulation(epsilon: float, draws: int, beta: float, *, interactive: bool = False) -> SimulationPlan:
    """A plan with the whole transcript within total variation beta: half of it for the answers' errors, half for the misses (limits 6, L1, L4, L7).

    `epsilon` is what one client spends in all. An `interactive` plan also serves clients that answer several times, one draw each time.
    """
    if not interactive:
        tolerance = min(simulation_tolerance(epsilon, draws, beta / 2), 0.999)
        error = density_error(epsilon, tolerance)  # the estimated law sums to at least 1 - error
    else:
        tolerance = min(conditional_tolerance(epsilon, draws, beta / 2), 0.999)
        single = relative_error(epsilon, tolerance)
        error = 1 - ((1 - single) / (1 + single)) ** 2
    trials = enough_trials(epsilon, draws, beta / 2, error)
    return SimulationPlan(tolerance, trials, draws * trials, expected_queries(epsilon, draws, error), draws * miss_probability(epsilon, trials, error))
