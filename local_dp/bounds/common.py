"""The L bits that everybody shares: how many people it takes to name them, by a curator and
locally, with a delta and without; and published records."""

import math
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from scipy import stats

from local_dp.bounds.channels import report_capacity
from local_dp.bounds.parity import entropy
from local_dp.bounds.posterior import DIGITS, ROUNDING, decimal
from local_dp.bounds.response import check_positive_epsilon
from local_dp.checks import check_shares, check_success, check_whole
from local_dp.optimise import least_clients

LN2 = math.log(2)
_STEPS = 400


def common_pure_least(bits: int, epsilon: float, success: float) -> int:
    """Proven: no epsilon-private curator names the L bits that all n records share, with this
    probability, from fewer: `common_approximate_least` without a delta."""
    return common_approximate_least(bits, epsilon, 0.0, success)


def common_approximate_least(bits: int, epsilon: float, delta: float, success: float) -> int:
    """Proven: the same of (eps, delta)-private curators, by n steps of x -> min(e^eps x + delta, 1
    - e^-eps (1 - x - delta)) from (1 - p) / (2^L - 1), in closed form.

    With c = delta / (e^eps - 1), x + c grows by e^eps up to x = (1 - delta) / (e^eps + 1); from
    there on 1 - x + c falls by it.
    """
    check_whole("bits", bits, 1, 1 << 20)
    check_positive_epsilon(epsilon)
    check_success(success, 0.0)
    with localcontext(prec=DIGITS):
        eps, leak, p = map(decimal, (epsilon, delta, success))
        turn = (1 - leak) / (eps.exp() + 1)
        leak /= eps.exp() - 1
        start = (1 - p) / (Decimal(2) ** bits - 1) + leak
        rise = max(0, math.ceil(((min(turn, p) + leak) / start).ln() / eps - ROUNDING))
        rest = 1 + 2 * leak - start * (rise * eps).exp()  # 1 - x + c
        return rise + max(0, math.ceil((rest / (1 - p + leak)).ln() / eps - ROUNDING))


@lru_cache(maxsize=256)
def approximate_capacity(epsilon: float, delta: float, bits: float) -> float:
    """Proven: the most nats that an (eps, delta)-local report reveals about a record of L bits, for
    every channel and law (limits 12.6).

    The least over t of (I + ln(1 / (1 - t))) / (1 - t) + t / e + (1 + eps + ln 2) delta / t + 2
    delta (1 + L ln 2), I = `report_capacity`.
    """
    pure = report_capacity(epsilon)
    if delta == 0:
        return pure
    t = np.exp(np.linspace(math.log(delta), math.log(0.5), _STEPS))
    pure_part = (pure - np.log1p(-t)) / (1 - t)
    leak = (1 + epsilon + LN2) * delta / t
    capacity = pure_part + t / math.e + leak
    return float(capacity.min()) + 2 * delta * (1 + bits * LN2)


def common_local_least(bits: int, epsilon: float, success: float, delta: float = 0.0) -> int:
    """Proven: the same of (eps, delta)-local protocols, non-interactive or in turn: Fano's (p L ln
    2 - h(p)) / `approximate_capacity`."""
    return math.ceil(
        (success * bits * LN2 - entropy(success)) / approximate_capacity(epsilon, delta, bits)
    )


def common_hashing_success(bits: int, epsilon: float, n: int) -> float:
    """Proven: one public random parity of each client's L bits, by randomized response, and the
    likeliest string: at least this probability of success.

    1 - E min(1, (2^L - 1) (Pr[B > K] + Pr[B = K] / 2)), K and B binomial with n and E / (E + 1),
    1/2: another string agrees with the parities like a coin.
    """
    agreements = np.arange(n + 1)
    law = stats.binom.pmf(agreements, n, 1 / (1 + math.exp(-epsilon)))
    above = stats.binom.logsf(agreements, n, 0.5)
    same = stats.binom.logpmf(agreements, n, 0.5) - LN2
    log_others = bits * LN2
    beaten = np.minimum(0.0, np.logaddexp(above, same) + log_others + math.log1p(-(2.0**-bits)))
    return 1 - float(law @ np.exp(beaten))


def common_hashing_clients(bits: int, epsilon: float, success: float) -> int:
    """The least n from which on `common_hashing_success` is at least `success`, up to whole
    counts."""
    return least_clients(lambda n: common_hashing_success(bits, epsilon, n) >= success)


def published_parity_clients(d: int, delta: float, success: float) -> int:
    """Clients that find a parity of d bits if each publishes its example with probability delta,
    which is (0, delta)-private: d independent ones are needed."""
    check_shares(delta=delta, success=success)
    examples = np.arange(d, 8 * d + 200)
    full = np.array([math.prod(1 - 2.0 ** (i - int(m)) for i in range(d)) for m in examples])
    return least_clients(
        lambda n: (
            float(
                stats.binom.pmf(examples, n, delta) @ full + stats.binom.sf(examples[-1], n, delta)
            )
            >= success
        )
    )
