"""Equal pure parts: their optimal composition is the hockey stick of a binomial law, in the log domain for up to a million parts.

`lattice.response` has the same in Fractions, and `shares.optimal_delta` in units of 1e-18.
"""

import math

import numpy as np

from local_dp.accounting.curve import Curve
from local_dp.checks import check_whole
from local_dp.loss import Pure

MAX_PARTS = 10**8
_SPREAD = 20.0  # times sqrt(k): fewer or more agreeing answers have a probability below 2 e^-800 (Hoeffding)


def binomial_curve(part: Pure, parts: int) -> Curve:
    """k = `parts` mechanisms of pure loss e, chosen adaptively, lose (2 l - k) e with the probability of l in Binomial(k, e^e / (1 + e^e)) at worst.

    Exact for randomized responses and for discrete Laplace noise on counts of sensitivity 1, which lose +-e. Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3.
    """
    check_whole("parts", parts, 1, MAX_PARTS)
    agreeing = 1 / (1 + math.exp(-part.epsilon))
    mode = min(parts, math.floor((parts + 1) * agreeing))
    reach = math.ceil(_SPREAD * math.sqrt(parts)) + 1
    low, high = max(0, mode - reach), min(parts, mode + reach)
    up = np.arange(mode, high, dtype=np.float64)
    down = np.arange(mode, low, -1, dtype=np.float64)
    rising = np.cumsum(np.log((parts - up) / (up + 1)) + part.epsilon)
    falling = np.cumsum(np.log(down / (parts - down + 1)) - part.epsilon)
    weights = np.exp(np.concatenate([falling[::-1], [0.0], rising]))  # relative to the mode: sums of small logarithms, which round little
    return Curve((2 * low - parts) * part.epsilon, 2 * part.epsilon, weights / weights.sum(), infinite=1e-300 if high < parts else 0.0)
