"""The rejection step behind KLNRS Lemmas 4.4 and 4.5: from an approximate mean of a likelihood to a draw, exact in whatever numbers it is given.

q is the law R(u0) of the candidates, u0 any reference value; p is the law of R(u) for u from the distribution. Both lie within a factor E = e^eps of
each other. The SQ oracle is asked for the mean of the centred likelihood ratio (R(w|u)/q(w) - cosh eps) / sinh eps, which fills [-1, 1]: the paper's
query (R/q - 1)/(E - 1/E) uses half of that range, and so needs twice the accuracy (limits 6, L4).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

Num = TypeVar("Num", float, Fraction)


def query_value(ratio: Num, growth: Num) -> Num:
    """The centred query at a value whose likelihood ratio is `ratio`, with growth = e^eps; in [-1, 1]."""
    return (2 * ratio - growth - 1 / growth) / (growth - 1 / growth)


def mean_ratio(answer: Num, growth: Num) -> Num:
    """The mean likelihood ratio p~(w)/q(w) behind an answer, moved into [1/growth, growth], where the true one lies: that only brings it nearer."""
    ratio = (growth + 1 / growth + answer * (growth - 1 / growth)) / 2
    return min(max(ratio, 1 / growth), growth)


def acceptance(ratio: Num, ceiling: Num) -> Num:
    """The probability of accepting a candidate of this (estimated) ratio p~(w)/q(w): ratio / ceiling, never above 1."""
    return min(ratio / ceiling, ceiling / ceiling)


def ceiling_after(growth: Num, error: Num, earlier_error: Num) -> Num:
    """E_k (1 + tau'_k)/(1 - tau'_{k-1}): no estimate of Pr[w | earlier replies]/q(w) exceeds it, whatever the oracle does (limits 6, L7).

    `growth` is e^{eps_k} of this reply alone; the errors are relative, of the means of the two products of likelihoods. Clipping would make the
    constant error of the denominator matter.
    """
    return growth * (1 + error) / (1 - earlier_error)


def accepted_law(q: Sequence[Num], accept: Sequence[Num]) -> list[Num]:
    """The law of the accepted candidate: q(w) accept(w), normalised."""
    weights = [a * b for a, b in zip(q, accept, strict=True)]
    total = sum(weights[1:], weights[0])
    return [weight / total for weight in weights]


def truncated_law(q: Sequence[Num], accept: Sequence[Num], trials: int) -> list[Num]:
    """The law of the output when the last of `trials` candidates is kept although none was accepted: within the miss probability of `accepted_law`."""
    weights = [a * b for a, b in zip(q, accept, strict=True)]
    accepted = sum(weights[1:], weights[0])
    one = accepted / accepted
    missed = (one - accepted) ** (trials - 1)
    hit = (one - missed * (one - accepted)) / accepted
    return [weight * hit + missed * (candidate - weight) for weight, candidate in zip(weights, q, strict=True)]


def total_variation(p: Sequence[Num], q: Sequence[Num]) -> Num:
    gaps = [abs(a - b) for a, b in zip(p, q, strict=True)]
    return sum(gaps[1:], gaps[0]) / 2
