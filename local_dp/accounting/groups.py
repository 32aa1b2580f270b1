"""Group privacy: what a loss means for databases that differ in several records."""

from fractions import Fraction
from typing import overload

from local_dp.checks import check_whole
from local_dp.loss import ATTO, Approximate, Concentrated, Pure, exp_epsilon

_UP = 1 + Fraction(1, 10**45)  # more than what `exp_epsilon` is below


@overload
def group_loss(loss: Pure, records: int) -> Pure: ...
@overload
def group_loss(loss: Approximate, records: int) -> Approximate: ...
@overload
def group_loss(loss: Concentrated, records: int) -> Concentrated: ...
def group_loss(loss: Pure | Approximate | Concentrated, records: int) -> Pure | Approximate | Concentrated:
    """The loss against `records` = k records at once: k eps, delta (e^(k eps) - 1) / (e^eps - 1), rounded up to 1e-18; k^2 rho.

    Exact: a coin with Pr[heads] = e^eps Pr[heads next door] + delta reaches it. The often printed e^(k eps) delta is too little for eps < ln 2. Source:
    Dwork, Roth 2014, Theorem 2.2, with the constants of the chain; Bun, Steinke 2016, Proposition 1.9.
    """
    check_whole("records", records, 1, 10**6)
    if isinstance(loss, Concentrated):
        return Concentrated(records**2 * loss.atto_rho)
    if isinstance(loss, Pure):
        return Pure(records * loss.nano)
    step = exp_epsilon(loss.nano)
    chain = (exp_epsilon(records * loss.nano) * _UP - 1) / (step - 1) if step > 1 else Fraction(records)
    return Approximate(records * loss.nano, min(ATTO, -int(-loss.atto * chain // 1)))
