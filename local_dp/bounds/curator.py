"""The curator's learners: examples by Occam, for parity, and by oracles for optimisation."""

import math
from collections.abc import Iterator

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.tails import normal_tail
from local_dp.checks import check_positive, check_share, check_shares, check_whole
from local_dp.curator.parity.learner import ParityLearner, paper_runs
from local_dp.errors import InputError

_MUCH = (
    20  # deviations of a sample in units of the noise, from which on the noise is as good as normal
)
_MILLS = 30  # deviations beyond which a normal tail is its first term


def recovery(d: int, p: float) -> Iterator[float]:
    """For n = 0, 1, ...: Pr[a uniform solution of the equations kept with probability p is r],
    exact, by the Markov chain of their rank."""
    redundant = 2.0 ** (np.arange(d + 1) - d)
    grows = p * (1 - redundant)
    rank = np.zeros(d + 1)
    rank[0] = 1
    while True:
        yield float(rank @ redundant)
        flow = rank * grows
        rank -= flow
        rank[1:] += flow[:-1]


def parity_success(learner: ParityLearner, d: int, n: int) -> float:
    """Pr[the learner returns r] on n examples with uniform x: exact, (1 - s^runs) times
    `recovery`."""
    chances = recovery(d, float(learner.p))
    for _ in range(n):
        next(chances)
    return (1 - learner.silence) * next(chances)


def parity_examples(learner: ParityLearner, d: int, success: float) -> int:
    """The least n with `parity_success` at least `success`. Raises InputError if the learner is
    silent too often for any n."""
    if learner.silence >= 1 - success:
        raise InputError(
            f"the learner gives no answer with probability {learner.silence:.3g}; a success of "
            f"{success} is out of its reach"
        )
    for n, chance in enumerate(recovery(d, float(learner.p))):
        if (1 - learner.silence) * chance >= success:
            return n
    raise AssertionError("the chances of recovery never end")


def plain_parity_examples(d: int, success: float) -> int:
    """The least n for which Gaussian elimination, without privacy, returns r: about d + 3 at 90
    %."""
    check_share("success", success)
    return next(n for n, chance in enumerate(recovery(d, 1.0)) if chance >= success)


def paper_parity_examples(
    d: int, epsilon: float, alpha: float, beta: float, whole_runs: bool = True
) -> int:
    """n >= (8 / (eps' alpha)) (d ln 2 + ln(2 / beta)), eps' = eps / runs (KLNRS Theorem 3.8); runs
    = log2(2 / beta) as printed, or whole."""
    check_shares(alpha=alpha, beta=beta)
    runs = paper_runs(beta) if whole_runs else math.log2(2 / beta)
    size = d * math.log(2) + math.log(2 / beta)
    return math.ceil(8 * runs / (epsilon * alpha) * size)


def exponential_parity_examples(d: int, epsilon: float, success: float) -> int:
    """The exponential mechanism over 2^d parities, wrong ones at score n / 2: (4 / eps) ln((2^d -
    1) success / (1 - success)); a little low (limits 4.1)."""
    check_share("success", success)
    log_odds = math.log(success / (1 - success))
    return math.ceil(4 / epsilon * (math.log(2**d - 1) + log_odds))


def packing_parity_examples(d: int, epsilon: float, success: float) -> int:
    """No eps-differentially private learner returns r with fewer: (2 / eps) (d ln 2 + ln success),
    to first order in the label changes n / 2 (limits 4.1).

    Two parities differ on about n / 2 of the labels, so Pr[answer r' | data of r] >= success
    e^(-eps n / 2) for each of the 2^d parities r'.
    """
    check_share("success", success)
    return math.ceil(2 / epsilon * (d * math.log(2) + math.log(success)))


def occam_examples(size: int, epsilon: float, alpha: float, beta: float) -> int:
    """Enough for the exponential mechanism over `size` hypotheses to be within alpha of the best,
    under ANY distribution, except with probability beta.

    n >= ln(size / beta) / -ln(cosh t - alpha sinh t), t = min(eps / 2, artanh alpha). Proof: let h*
    be the best and D = [h errs] - [h* errs] on one example, E D >= alpha. Pr[h is chosen] <= min(1,
    e^(-eps (errors of h - errors of h*) / 2)) <= e^(-t (sum of D)), whose mean is at most (cosh t -
    alpha sinh t)^n because e^(-tD) lies below its chord on [-1, 1]; add up over the hypotheses.
    This is below KLNRS Theorem 3.7's printed n, whose proof covers a perfect hypothesis only: the
    printed size is right after all. Two to three times less than by uniform convergence (limits
    4.1).
    """
    check_shares(alpha=alpha, beta=beta)
    t = min(epsilon / 2, math.atanh(alpha))
    # a class may have 10^400 labellings
    log_size = math.log(size) - math.log(beta)
    rate = math.cosh(t) - alpha * math.sinh(t)
    return math.ceil(log_size / -math.log(rate))


def occam_examples_realizable(size: int, epsilon: float, alpha: float, beta: float) -> int:
    """The same where some hypothesis is always right: n >= ln(size / beta) / -ln(1 - alpha (1 -
    e^(-eps/2))), about 2 ln(size / beta) / (eps alpha).

    Proof: Pr[h is chosen] <= e^(-eps (errors of h) / 2), whose mean is (1 - error (1 -
    e^(-eps/2)))^n; add up over the hypotheses of error above alpha.
    """
    check_shares(alpha=alpha, beta=beta)
    rate = alpha * math.expm1(-epsilon / 2)
    return math.ceil(math.log(size / beta) / -math.log1p(rate))


def occam_examples_printed(size: int, epsilon: float, alpha: float, beta: float) -> int:
    """n >= (ln size + ln(2 / beta)) max(4 / (eps alpha), 2 / alpha^2), as printed in KLNRS Theorem
    3.7."""
    check_shares(alpha=alpha, beta=beta)
    log_size = math.log(2 * size / beta)
    return math.ceil(log_size * max(4 / (epsilon * alpha), 2 / alpha**2))


def occam_examples_uniform(size: int, epsilon: float, alpha: float, beta: float) -> int:
    """Agnostic, by uniform convergence within alpha / 3: n >= max((9 / (2 alpha^2)) ln(4 size /
    beta), (6 / (eps alpha)) ln(2 size / beta)) (limits 4.1)."""
    check_shares(alpha=alpha, beta=beta)
    sampling = 4.5 / alpha**2 * math.log(4 * size / beta)
    choosing = 6 / (epsilon * alpha) * math.log(2 * size / beta)
    return math.ceil(max(sampling, choosing))


def enough_records(queries: int, epsilon: float, tau: float, beta: float) -> int:
    """n for which `queries` answers, epsilon / queries each, are all within tau of the expectation
    except with probability beta.

    n >= max(8 ln(4t / beta) / tau^2, 4t ln(4t / beta) / (eps tau)): half of tau for sampling, half
    for noise. Privacy is free once tau < eps / t.
    """
    check_shares(tau=tau, beta=beta)
    if queries < 1:
        raise InputError(f"there are {queries} queries; give at least one query")
    tail = math.log(4 * queries / beta)
    sampling = 8 * tail / tau**2
    noise = 4 * queries * tail / (epsilon * tau)
    return math.ceil(max(sampling, noise))


def noisy_tail(tau: float, deviation: float, scale: float) -> float:
    """Pr[|X + Y| > tau], X normal of this deviation and Y Laplace of this scale; below a twentieth
    of the deviation Y counts as normal."""
    if scale < deviation / _MUCH:
        return 2 * normal_tail(tau / math.sqrt(deviation**2 + 2 * scale**2)) if deviation else 0.0
    if deviation == 0:
        return math.exp(-tau / scale)
    z, ratio = tau / deviation, deviation / scale
    near = math.exp(ratio**2 / 2 - z * ratio) * normal_tail(ratio - z)
    if z + ratio < _MILLS:
        far = math.exp(ratio**2 / 2 + z * ratio) * normal_tail(ratio + z)
    else:
        slope = math.sqrt(2 * math.pi)
        far = math.exp(-(z**2) / 2) / (slope * (z + ratio))
    return 2 * normal_tail(z) + near - far


def noisy_means_failure(n: int, variance: Floats, noise: float, tau: float) -> float:
    """Pr[some mean over n records is beyond tau], at most: a union, for these variances of one
    record and Laplace noise of scale `noise` / n."""
    alike, counts = np.unique(variance, return_counts=True)
    tails: list[float] = [
        count * noisy_tail(tau, math.sqrt(each / n), noise / n)
        for each, count in zip(alike.tolist(), counts.tolist(), strict=True)
    ]
    return sum(tails)


def perturbed_excess(separators: int, shift: int, epsilon: float, beta: float) -> float:
    """(m shift / eps) ln(2 m / beta): how many errors more than the best RSPM makes at most, except
    with probability beta; m shift / eps on average.

    m separators, noise of ratio e^(-eps / shift). Source: sharpens Theorem 6, 4 m^2 ln(m / beta) /
    eps, by E|eta_i| < shift / eps.
    """
    check_whole("shift", shift, 1, 2 * separators)
    check_positive("epsilon", epsilon)
    check_share("beta", beta)
    return shift * separators / epsilon * math.log(2 * separators / beta)


def leader_regret_bound(rounds: int, epsilon: float, spread: float) -> float:
    """(e^(eps / 2) - 1) T + E[max Z - min Z]: the expected regret over T rounds of the least of
    totals and noise Z, private at eps, run on prefixes.

    Losses lie in [0, 1] and do not depend on the noise. One example more is half of a replaced one,
    so it costs eps / 2. The text's (e^eps - 1) T + 2 B / eps, B = E max |Z| at eps = 1, is larger.
    Source: Neel, Roth, Wu 2019, Section 5; proof: docs/heuristics.md.
    """
    check_whole("rounds", rounds, 1, 1 << 32)
    check_positive("epsilon", epsilon)
    return math.expm1(epsilon / 2) * rounds + spread


def separator_spread(separators: int, shift: int, epsilon: float) -> float:
    """m / sinh(eps / shift) = E sum |eta_i|: the mean of max Z - min Z of RSPM where every pattern
    on the m separators is a query's; of others, the most."""
    check_whole("shift", shift, 1, 2 * separators)
    check_positive("epsilon", epsilon)
    return separators / math.sinh(epsilon / shift)


def gumbel_spread(experts: int, epsilon: float) -> float:
    """The mean of max Z - min Z of N Gumbel variables of scale 2 / eps, the noise of the
    exponential mechanism: about (2 / eps)(ln N + ln ln N)."""
    check_whole("experts", experts, 2, 1 << 24)
    check_positive("epsilon", epsilon)
    places = np.linspace(-10, 60, 70_001)
    below = -np.exp(-places)  # ln Pr[G <= x]
    upper = -np.expm1(experts * below)
    lower = np.exp(experts * np.log(-np.expm1(np.minimum(below, -1e-26))))
    return 2 / epsilon * float(np.trapezoid(upper - lower, places))


def printed_sigma(separators: int, epsilon: float, delta: float) -> float:
    """3.5 sqrt(m ln(1 / delta)) / eps: the scale of Gaussian noise in Theorem 7. NOT private for
    parities (`parity_delta`); for contrast alone."""
    _check(separators, delta, epsilon=epsilon)
    return 3.5 * math.sqrt(separators * math.log(1 / delta)) / epsilon


def safe_sigma(separators: int, epsilon: float, delta: float) -> float:
    """The sigma with 2 (m sqrt(2 / pi) + sqrt(2 m ln(1 / delta))) / sigma + 2 m / sigma^2 = eps:
    RSPM is (eps, delta)-private with such Gaussian noise.

    Proof: moving every coordinate by 2 changes the log density by at most (2 |eta|_1 + 2 m) /
    sigma^2, and |eta|_1 / sigma exceeds its mean m sqrt(2 / pi) by sqrt(2 m ln(1 / delta)) with
    probability delta at most. About 1.6 m / eps, where the pure noise has a standard deviation of
    2.83 m / eps.
    """
    _check(separators, delta, epsilon=epsilon)
    mean = separators * math.sqrt(2 / math.pi)
    excess = math.sqrt(2 * separators * math.log(1 / delta))
    first = 2 * (mean + excess)
    return (first + math.sqrt(first**2 + 8 * separators * epsilon)) / (2 * epsilon)


def parity_odd(separators: int, sigma: float) -> float:
    """Pr[RSPM with N(0, sigma^2) noise answers a parity of oddly many of m bits] on the one example
    (1...1, 0); on (1...1, 1) it is 1 minus this.

    It is Pr[|N(0, 1)| > 1 / sigma]^m / 2: the noise picks its negative bits, and one of |eta_i| < 1
    would be flipped.
    """
    _check(separators, sigma=sigma)
    return (2 * normal_tail(1 / sigma)) ** separators / 2


def parity_delta(separators: int, sigma: float, epsilon: float) -> float:
    """A delta that RSPM with N(0, sigma^2) noise cannot do without for parities at this epsilon: 1
    - p - e^eps p, p = `parity_odd`."""
    odd = parity_odd(separators, sigma)
    return max(0.0, 1 - odd - math.exp(epsilon) * odd)


def _check(separators: int, delta: float = 0.5, **positive: float) -> None:
    check_whole("separators", separators, 1, 1 << 40)
    for name, value in positive.items():
        check_positive(name, value)
    check_share("delta", delta)
