"""Binary randomized response (Warner 1965; KLNRS Section 4, [40])."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.domains import symbols
from local_dp.randomizers.finite import BYTE, OneBit
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class BinaryRR(OneBit):
    """Reports the true bit with probability e^eps / (e^eps + 1), rounded towards privacy.

    Privacy: Pr[w | u] / Pr[w | u'] = (2^m - F) / F <= e^eps. Utility: the estimate of Pr[bit = 1]
    has variance (C^2 - (2p - 1)^2) / 4n with C = (e^eps + 1) / (e^eps - 1), which is first-order
    minimax for the mean of a [-1, 1] query (limits 1, Theorem 1). Cost: 1 bit.
    """

    name = "binary-rr"
    summary = "Reports a bit, flipped at random"
    source = "Warner 1965; KLNRS 2008, Section 4"
    domain = symbols(2)

    def encode(self, values: Ints, cells: Ints) -> Words:
        return values.astype(BYTE, copy=False)

    def truths(self, values: Ints) -> Floats:
        return np.asarray(values[:, None], dtype=np.float64)

    def variance(self, values: Ints, law: Floats) -> Floats:
        return np.asarray(self.gain**2 - (1 - 2 * law @ self.truths(values)) ** 2) / 4

    def estimate(self, tally: Tally) -> Estimate:
        n = tally.answered
        balance = 1 - 2 * float(tally.counts[0, 1]) / n
        return Estimate.between(
            ((1 - self.gain) / 2, (1 + self.gain) / 2), (1 - self.gain * balance) / 2, n
        )
