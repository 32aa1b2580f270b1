"""Statistical queries from local reports and back: distances of the simulated laws; and remarks on
them."""

import math

from local_dp.bounds.curator import occam_examples
from local_dp.checks import check_share, check_shares
from local_dp.errors import InputError


def density_error(epsilon: float, tau: float, *, centred: bool = True) -> float:
    """The most that p~(w)/q(w) is off for answers within tau: sinh(eps) tau; not centred, as in
    KLNRS Lemma 4.4, twice as much (limits 6, L4)."""
    return math.sinh(epsilon) * tau * (1 if centred else 2)


def relative_error(epsilon: float, tau: float, *, centred: bool = True) -> float:
    """tau' with (1 - tau') p <= p~ <= (1 + tau') p: e^eps times `density_error`, because p >= q
    e^-eps. The paper's query: (e^{2 eps} - 1) tau."""
    return math.exp(epsilon) * density_error(epsilon, tau, centred=centred)


def _half_angle(error: float) -> float:
    return error / (1 + math.sqrt(1 - error**2)) if error <= 1 else 1.0


def draw_distance(epsilon: float, tau: float, *, centred: bool = True) -> float:
    """Total variation between one simulated draw and R(z), z from the distribution: at most
    min(tau'/(1 + sqrt(1 - tau'^2)), density error) (limits 6, L4)."""
    return min(
        _half_angle(relative_error(epsilon, tau, centred=centred)),
        density_error(epsilon, tau, centred=centred),
        1.0,
    )


def conditional_draw_distance(epsilon: float, tau: float) -> float:
    """The same for a draw conditional on earlier replies: tau'/(1 + sqrt(1 - tau'^2)), where
    `epsilon` counts the earlier replies and this one (limits 6, L7)."""
    return _half_angle(relative_error(epsilon, tau))


def miss_probability(epsilon: float, trials: int, error: float = 0.0) -> float:
    """The most Pr[no candidate of one draw is accepted]: (1 - (1 - error) e^-eps)^trials, `error`
    being `density_error` (limits 6, L1)."""
    return (1 - max(0.0, 1 - error) * math.exp(-epsilon)) ** trials


def enough_trials(epsilon: float, draws: int, miss: float, error: float = 0.0) -> int:
    """How many candidates a draw needs so that any of `draws` draws misses with probability at most
    `miss`: ln(draws/miss) / -ln(1 - (1 - error) e^-eps)."""
    if draws < 1 or not 0 < miss < 1 or not 0 <= error < 1:
        raise InputError(
            f"{draws} draws, miss {miss}, error {error}; give 1 or more draws, a miss in (0, 1) "
            "and an error in [0, 1)"
        )
    return math.ceil(math.log(draws / miss) / -math.log(miss_probability(epsilon, 1, error)))


def growth(dimension: int, points: int) -> int:
    """The most labellings of `points` points that a class of that VC dimension has: sum over i <=
    dimension of binom(points, i) (Sauer's lemma)."""
    if dimension < 0 or points < 1:
        raise InputError(
            f"the VC dimension is {dimension} and there are {points} points; give at least 0 and 1"
        )
    return sum(math.comb(points, i) for i in range(min(dimension, points) + 1))


def vc_examples(dimension: int, points: int, epsilon: float, alpha: float, beta: float) -> int:
    """Enough records for a curator to learn any class of that VC dimension over `points` points,
    agnostically, except with probability beta.

    `occam_examples` of at most `growth` labellings: about 2 (dimension ln points + ln(1/beta))
    max(1 / (eps alpha), 1 / alpha^2). Purely private learners cannot lose the factor ln points
    (Feldman, Xiao 2014). Source: KLNRS 2008, remark after Theorem 3.7, by counting.
    """
    return occam_examples(growth(dimension, points), epsilon, alpha, beta)


def chosen_examples(candidates: int, epsilon: float, alpha: float, beta: float) -> int:
    """Enough test records to choose, privately, one of error at most alpha among `candidates`
    hypotheses if some error is at most alpha / 2.

    n >= ln(candidates / beta) / -ln(1 - alpha (e^t - 1)(e^-t - 1/2)), t = min(eps / 2, ln sqrt 2),
    by the exponential mechanism. Proof: on one record a bad h errs alone with probability p, the
    good one alone with q <= alpha / 2, and p - q >= alpha / 2. Pr[h is chosen] <= e^(-t (errors of
    h - errors of the good one)), of mean (1 - p (1 - e^-t) + q (e^t - 1))^n, which is largest at q
    = alpha / 2, p = alpha; add up over the candidates.
    """
    check_shares(alpha=alpha, beta=beta)
    t = min(epsilon / 2, math.log(2) / 2)
    rate = -alpha * math.expm1(t) * (math.exp(-t) - 0.5)
    return math.ceil(math.log(candidates / beta) / -math.log1p(rate))


def verified_parity_examples(d: int, epsilon: float, alpha: float, beta: float) -> int:
    """Records that parity needs with a test set: ln(1 / beta) to the first power where KLNRS
    Theorem 3.8 has its square.

    k = ceil(ln(2 / beta) / ln(4/3)) runs of A on one part, eps / k each. By Lemma 3.1 each is good
    (error alpha / 2 <= 1/4) with probability 1/4. On the other part `chosen_examples` for one of
    the k. In all (16 k / (eps alpha)) (d ln 2 + ln 4) and `chosen_examples`. Privacy: the parts are
    disjoint, so epsilon in all. Source: KLNRS 2008, remark after Theorem 3.8. It pays only for tiny
    beta: below about 1e-7 at d = 4, 1e-11 at d = 8 and 1e-21 at d = 16.
    """
    check_share("beta", beta)
    if not 0 < alpha <= 0.5:
        raise InputError(f"alpha is {alpha}; give a number above 0 and at most 1/2")
    runs = math.ceil(math.log(2 / beta) / math.log(4 / 3))
    size = d * math.log(2) + math.log(4)
    learning = math.ceil(16 * runs / (epsilon * alpha) * size)
    return learning + chosen_examples(runs, epsilon, alpha, beta / 2)
