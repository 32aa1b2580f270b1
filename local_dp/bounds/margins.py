"""How many clients one round takes to learn a class of margin complexity MC barely, whatever the law of x (limits 12.4). Proven; epsilon in nats."""

import math
from fractions import Fraction

from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.checks import check_positive
from local_dp.errors import InputError

ROUNDING = Fraction(1, 10**12)  # more than floating point errs by in the constant; taken off, so that a bound is never rounded up


def check_success(success: float) -> None:
    if not 0.5 < success < 1:
        raise InputError(f"success is {success}; a coin learns barely with probability 1/2, so give a number strictly between 1/2 and 1")


def margin_constant(epsilon: float, success: float = 0.9) -> float:
    """K with n >= K MC^2 for every one-round protocol: 2 ln(1 / (2 sqrt(p (1 - p)))) / ((e^eps + 1) ln cosh(eps / 2)); 2.2875 at p = .9 and epsilon 1."""
    check_positive_epsilon(epsilon)
    check_success(success)
    half = math.sinh(epsilon / 4) ** 2  # cosh(eps / 2) = 1 + 2 sinh^2(eps / 4), without cancellation
    return -math.log(4 * success * (1 - success)) / ((math.exp(epsilon) + 1) * math.log1p(2 * half))


def margin_clients(squared: Fraction | float, epsilon: float, success: float = 0.9) -> int:
    """The least n with n >= K MC^2, `squared` being MC^2: no NON-INTERACTIVE eps-local protocol, public coins or not, does with fewer clients what follows.

    For every concept of a class closed under negation and every law of x, to be right more often than wrong (error below 1/2, the prediction's own coins
    counted) with probability `success`. Nothing is said of protocols with rounds. Exact but for K, which is rounded down.
    """
    check_positive("the squared margin complexity", float(squared))
    return math.ceil(Fraction(margin_constant(epsilon, success)) * (1 - ROUNDING) * Fraction(squared))


def vote_clients(squared: Fraction | float, epsilon: float, success: float = 0.9) -> int:
    """n >= C^2 MC^2 p / (1 - p), enough in one round to be right more often than wrong, for every concept of a class of blocks and every law of x.

    Each client is named a random character and says by randomized response whether it agrees with their label; whoever predicts draws a client and takes its
    word (Cantelli's inequality, limits 12.4): 42.1 MC^2 at p = .9 and epsilon 1.
    """
    return _enough(1.0, squared, epsilon, success)


def direction_clients(squared: Fraction | float, epsilon: float, success: float = 0.9) -> int:
    """n >= (pi / 2) C^2 MC^2 p / (1 - p), the same for every class that has vectors of margin 1 / MC: clients are named random halfspaces (limits 12.4)."""
    return _enough(math.pi / 2, squared, epsilon, success)


def _enough(factor: float, squared: Fraction | float, epsilon: float, success: float) -> int:
    check_success(success)
    check_positive("the squared margin complexity", float(squared))
    return math.ceil(factor * response_gain(epsilon) ** 2 * float(squared) * success / (1 - success))
