"""Examples for privacy of labels alone, and for public points: by VC dimension (Beimel, Nissim, Stemmer 2013, Theorem 6.2; erratum E4)."""

import math

from local_dp.checks import check_positive, check_share, check_whole
from local_dp.optimise import least_clients


def label_examples_printed(dimension: int, epsilon: float, alpha: float, beta: float) -> int:
    """m >= (768 / (alpha^2 eps)) (VC ln(64 / alpha) + 2 ln(8 / beta)): Theorem 6.2."""
    _check(dimension, epsilon, alpha, beta)
    return math.ceil(768 / (alpha**2 * epsilon) * (dimension * math.log(64 / alpha) + 2 * math.log(8 / beta)))


def public_points(dimension: int, alpha: float, beta: float) -> int:
    """n >= (64 / alpha)(VC ln(128 / alpha) + ln(8 / beta)): a concept that agrees with the target on n points errs by alpha / 8, but for beta / 4.

    Theorem 2.13 at alpha / 8, as the proof of 6.2 needs it; the printed n has alpha / 4 (erratum E4).
    """
    _check(dimension, 1.0, alpha, beta)
    return math.ceil(64 / alpha * (dimension * math.log(128 / alpha) + math.log(8 / beta)))


def log_dichotomies(dimension: int, points: int) -> float:
    """ln of sum over i <= VC of C(points, i): at most so many dichotomies (Sauer)."""
    return math.log(sum(math.comb(points, i) for i in range(min(dimension, points) + 1)))


def semi_private_examples(dimension: int, epsilon: float, alpha: float, beta: float) -> int:
    """Private examples beside `public_points` n: max((24 / alpha) ln(4 / beta), (8 / (alpha min(1, eps))) (ln |H| + ln(4 / beta))), |H| by Sauer for n."""
    _check(dimension, epsilon, alpha, beta)
    size = log_dichotomies(dimension, public_points(dimension, alpha, beta))
    tail = math.log(4 / beta)
    return math.ceil(max(24 / alpha * tail, 8 / (alpha * min(1, epsilon)) * (size + tail)))


def label_examples(dimension: int, epsilon: float, alpha: float, beta: float) -> int:
    """The least m with 4 Pi(2m) e^(-alpha m / 16) + Pi(m) e^(-eps alpha m / 4) <= beta, Pi(n) = sum over i <= VC of C(n, i): all m list and choose.

    Proof: some candidate errs on no example, so one that errs on more than alpha m / 2 is chosen with probability at most Pi(m) e^(-eps alpha m / 4) (Sauer);
    and some concept errs on at most alpha m / 2 of them and by more than alpha with at most 4 Pi(2m) e^(-alpha m / 16) (Vapnik's relative deviations).
    1,910 for thresholds at alpha = beta = .1 and eps 1, where the printed size is 1.2e6; in the worst distribution that was tried 80 are enough.
    """
    _check(dimension, epsilon, alpha, beta)

    def is_enough(m: int) -> bool:
        strays = math.log(4) + log_dichotomies(dimension, 2 * m) - alpha * m / 16
        chosen = log_dichotomies(dimension, m) - epsilon * alpha * m / 4
        return max(strays, chosen) < 0 and math.exp(strays) + math.exp(chosen) <= beta

    return least_clients(is_enough, least=dimension)


def _check(dimension: int, epsilon: float, alpha: float, beta: float) -> None:
    check_whole("the VC dimension", dimension, 1, 1 << 20)
    check_positive("epsilon", epsilon)
    check_share("alpha", alpha)
    check_share("beta", beta)
