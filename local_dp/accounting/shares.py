"""The price of each of many equal pure parts of a budget, and of a group of records; always rounded against the claim.

Source: Dwork, Rothblum, Vadhan 2010 in the form of Beimel, Nissim, Stemmer 2013, Theorem 2.5; Kairouz, Oh, Viswanath 2015, Theorem 3.3.
"""

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from local_dp.accounting.laws import MAX_PARTS, binomial_curve
from local_dp.checks import check_whole
from local_dp.errors import InputError
from local_dp.loss import ATTO, NANO, Approximate, Concentrated, Pure, exp_epsilon

_TO_THE_DIGIT = 1 << 12  # parts; beyond, the log-domain curve, rounded up by a billionth
_DIGITS = 60  # every term is right to nearly as many: rounding is paid for by 1e-40


@lru_cache(maxsize=256)
def optimal_delta(part: Pure, parts: int, whole: Pure) -> int:
    """The least delta, in units of 1e-18 rounded up, with which `parts` adaptively chosen mechanisms of pure loss e = `part` are (eps, delta) together.

    delta = sum over l of C(k, l) max(0, e^(l e) - e^(eps + (k - l) e)) / (1 + e^e)^k, k = `parts`, eps = `whole`: exact (Kairouz, Oh, Viswanath 2015), and
    reached by k randomized responses. Deltas of the parts themselves are added to this.
    """
    check_whole("parts", parts, 1, MAX_PARTS)
    if parts > _TO_THE_DIGIT:
        return math.ceil(binomial_curve(part, parts).delta(whole.epsilon) * ATTO)
    with localcontext() as context:
        context.prec = _DIGITS
        step, most = (Decimal(part.nano) / NANO).exp(), (Decimal(whole.nano) / NANO).exp()
        least = max(0, math.ceil((whole.nano + parts * part.nano) / (2 * part.nano)))  # below it the difference is negative
        ways, ahead, behind, total = Decimal(math.comb(parts, min(least, parts))), step**least, step ** (parts - least), Decimal(0)
        for likes in range(least, parts + 1):
            total += ways * max(Decimal(0), ahead - most * behind)
            ways, ahead, behind = ways * (parts - likes) / (likes + 1), ahead * step, behind / step
        share = total / (1 + step) ** parts * (1 + Decimal(10) ** -40)
        return int((share * ATTO).to_integral_value(rounding=ROUND_CEILING))


def optimal_part(budget: Approximate, parts: int) -> Pure:
    """The largest pure loss of each of `parts` mechanisms within the budget, by optimal composition; by adding up where that allows more (k < 3).

    With 824 parts and (1, 1e-6): .00826 nats, where Theorem 2.5 allows .00621. With 10^4: .00237, 23.7 times the basic share.
    """
    check_whole("parts", parts, 1, MAX_PARTS)
    low, high = budget.nano // parts, budget.nano + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = optimal_delta(Pure(middle), parts, Pure(budget.nano)) <= budget.atto
        low, high = (middle, high) if fits else (low, middle)
    return _some(low, budget, parts)


def advanced_part(budget: Approximate, parts: int) -> Pure:
    """The largest pure loss e with sqrt(2 k ln(1 / delta)) e + 2 k e^2 <= eps, k = `parts`: Theorem 2.5. Below k = 32 at (1, 1e-6) it is less than eps / k."""
    check_whole("parts", parts, 1, MAX_PARTS)
    spread = math.sqrt(2 * parts * math.log(ATTO / budget.atto))
    root = 2 * budget.epsilon / (spread + math.sqrt(spread**2 + 8 * parts * budget.epsilon))
    return _some(math.floor(root * (1 - 1e-12) * NANO), budget, parts)


def printed_part(budget: Approximate, parts: int) -> Pure:
    """eps / sqrt(8 k ln(1 / delta)): the simple split that the text solves Theorem 2.5 by, private for eps <= 2 ln(1 / delta)."""
    check_whole("parts", parts, 1, MAX_PARTS)
    return _some(math.floor(budget.nano / math.sqrt(8 * parts * math.log(ATTO / budget.atto)) * (1 - 1e-12)), budget, parts)


def _some(nano: int, budget: Approximate, parts: int) -> Pure:
    if nano < 1:
        raise InputError(f"{budget} in {parts} parts leaves less than 1e-9 nats for each; give a larger budget or fewer parts")
    return Pure(nano)


L = TypeVar("L", Pure, Approximate, Concentrated)
_UP = 1 + Fraction(1, 10**45)  # more than what `exp_epsilon` is below


def group_loss(loss: L, records: int) -> L:
    """The loss against `records` = k records at once: k eps, delta (e^(k eps) - 1) / (e^eps - 1), rounded up to 1e-18; k^2 rho.

    Exact: a coin with Pr[heads] = e^eps Pr[heads of its neighbour] + delta reaches it. The often printed e^(k eps) delta is too little for eps < ln 2. Source:
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
