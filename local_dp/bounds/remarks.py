"""The two remarks of KLNRS on sizes: VC classes under a curator (after Theorem 3.7), and a test set for parity (after Theorem 3.8)."""

import math

from local_dp.bounds.curator import occam_examples
from local_dp.checks import check_share
from local_dp.errors import InputError


def growth(dimension: int, points: int) -> int:
    """The most labellings of `points` points that a class of that VC dimension has: sum over i <= dimension of binom(points, i) (Sauer's lemma)."""
    if dimension < 0 or points < 1:
        raise InputError(f"the VC dimension is {dimension} and there are {points} points; give at least 0 and 1")
    return sum(math.comb(points, i) for i in range(min(dimension, points) + 1))


def vc_examples(dimension: int, points: int, epsilon: float, alpha: float, beta: float) -> int:
    """Enough records for a curator to learn any class of that VC dimension over `points` points, agnostically, except with probability beta.

    The exponential mechanism over one hypothesis for each labelling: `occam_examples` of at most `growth`, so about
    2 (dimension ln points + ln(1/beta)) max(1 / (eps alpha), 1 / alpha^2). Without privacy the factor ln points is not needed; a purely private learner,
    of thresholds for one, cannot lose it (recalled: Feldman, Xiao 2014). Source: KLNRS 2008, remark after Theorem 3.7, by counting in place of Blum,
    Ligett, Roth 2008.
    """
    return occam_examples(growth(dimension, points), epsilon, alpha, beta)


def chosen_examples(candidates: int, epsilon: float, alpha: float, beta: float) -> int:
    """Enough test records to choose, privately, one of error at most alpha among `candidates` hypotheses if some error is at most alpha / 2.

    n >= ln(candidates / beta) / -ln(1 - alpha (e^t - 1)(e^-t - 1/2)), t = min(eps / 2, ln sqrt 2), by the exponential mechanism. Proof: on one record a bad h
    errs alone with probability p, the good one alone with q <= alpha / 2, and p - q >= alpha / 2. Pr[h is chosen] <= e^(-t (errors of h - errors of the good
    one)), of mean (1 - p (1 - e^-t) + q (e^t - 1))^n, which is largest at q = alpha / 2, p = alpha; add up over the candidates.
    """
    check_share("alpha", alpha)
    check_share("beta", beta)
    t = min(epsilon / 2, math.log(2) / 2)
    return math.ceil(math.log(candidates / beta) / -math.log1p(-alpha * math.expm1(t) * (math.exp(-t) - 0.5)))


def verified_parity_examples(d: int, epsilon: float, alpha: float, beta: float) -> int:
    """Records that parity needs with a test set: ln(1 / beta) to the first power where KLNRS Theorem 3.8 has its square.

    k = ceil(ln(2 / beta) / ln(4/3)) runs of A on one part, eps / k each, each good (error alpha / 2 <= 1/4) with probability 1/4 = 1/2 - beta' by Lemma 3.1,
    and `chosen_examples` for one of the k on the other part: (16 k / (eps alpha)) (d ln 2 + ln 4) and that. Privacy: the parts are disjoint, so epsilon in
    all. Source: KLNRS 2008, remark after Theorem 3.8. It pays only for tiny beta: below about 1e-7 at d = 4, 1e-11 at d = 8 and 1e-21 at d = 16.
    """
    check_share("beta", beta)
    if not 0 < alpha <= 0.5:
        raise InputError(f"alpha is {alpha}; give a number above 0 and at most 1/2")
    runs = math.ceil(math.log(2 / beta) / math.log(4 / 3))
    learning = math.ceil(16 * runs / (epsilon * alpha) * (d * math.log(2) + math.log(4)))
    return learning + chosen_examples(runs, epsilon, alpha, beta / 2)
