"""The bound for SEQUENTIALLY INTERACTIVE protocols, which ask each client in one round only, in whatever order (limits 4.2, 5.2). Epsilon in nats."""

import math

from local_dp.bounds.channels import report_squares
from local_dp.bounds.cut_and_paste import asked_again_bound
from local_dp.bounds.response import response_gain


def divergence_curvature(epsilon: float) -> float:
    """Proven: c, the most that (t - ln(1 + t)) / t^2 can be for |t| <= 1 / C: that at -1 / C."""
    shrink = 1 / response_gain(epsilon)
    return (-math.log1p(-shrink) - shrink) / shrink**2


def asked_in_turn_bound(dimension: float, epsilon: float, success: float, guess: float) -> float:
    """Proven for every SEQUENTIALLY INTERACTIVE protocol and every pure randomizer, at every epsilon: the least number of clients.

    ln(1 / (1 - (p - rho)^2)) SDA / (c G), for a class of spectral dimension SDA, success p, and `guess` = rho, the share of the prior that one fixed output
    is good for (limits 5.2): 2.3 times `asked_again_bound` at epsilon 1 and 90 %. That one holds here too, and is taken from about epsilon 6 on, where it
    is the larger. Infinite where p - rho is 1.
    """
    again = asked_again_bound(dimension, epsilon, success, guess)
    advantage = max(0.0, success - guess)
    if advantage == 1:
        return math.inf
    return max(again, -math.log1p(-(advantage**2)) * dimension / (divergence_curvature(epsilon) * report_squares(epsilon)))
