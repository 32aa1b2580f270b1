"""Likelihoods of reports as statistical queries, and the rejection step of KLNRS Lemmas 4.4 and
4.5.

The query is the likelihood ratio Pr[R(u) = w] / Pr[R(u0) = w] of the record u, for a fixed
reference u0: a RealQuery over the local query's own domain, or over the product of several. So the
randomizer must be transparent (KLNRS Definition 4.7). Candidates have the law q of R(u0), and p is
that of R(u); both lie within a factor E = e^eps. The oracle gives the mean of (R(w|u)/q(w) - cosh
eps) / sinh eps, which fills [-1, 1]; the paper's query (R/q - 1)/(E - 1/E) uses half of that range,
and so needs twice the accuracy (limits 6, L4).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.domains import Domain
from local_dp.errors import InputError, RefusedError
from local_dp.oracles.statistical.oracles import RealQuery
from local_dp.queries.query import Query
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import Records

MAX_JOINT = 1 << 20


def transparent(randomizer: Randomizer) -> FiniteChannel:
    """The randomizer, if Pr[report | value] can be computed for each of its reports (KLNRS
    Definition 4.7). Raises InputError."""
    if not isinstance(randomizer, FiniteChannel):
        raise InputError(
            f"randomizer {randomizer.name!r} is not a finite channel: to simulate it by "
            "statistical queries, its table of weights is needed"
        )
    return randomizer


def density(randomizer: FiniteChannel, reports: Ints, values: Ints, cell: int) -> Floats:
    """2^word_bits Pr[report | value, cell], elementwise under broadcasting."""
    return randomizer.weight(reports, values, np.array([cell])).astype(np.float64)


@dataclass(frozen=True)
class Joint(Query):
    """Several queries to one record at once, as one symbol of the product of their domains."""

    name = "joint"
    queries: tuple[Query, ...]

    def check(self) -> None:
        if self.domain.size > MAX_JOINT:
            raise InputError(
                f"{len(self.queries)} queries to one client have {self.domain.size} joint values; "
                f"{MAX_JOINT} is the most"
            )

    @property
    def domain(self) -> Domain:
        return Domain("joint", 0, math.prod(query.domain.size for query in self.queries) - 1)

    def __call__(self, records: Records) -> Ints:
        value: Ints = np.zeros(len(records), dtype=np.int64)
        for query in self.queries:
            value = (
                value * query.domain.size
                + np.rint(query.values(records)).astype(np.int64)
                - query.domain.low
            )
        return value


@dataclass(frozen=True)
class Observed:
    """What one client was asked, in which public-coin cell, and what it reported."""

    query: Query
    randomizer: FiniteChannel
    cell: int
    report: int

    def ratios(self) -> Floats:
        """Pr[report | value] over that of the lowest value, for each value. Raises
        RefusedError("unverifiable") above e^eps."""
        weights = density(
            self.randomizer, np.array([self.report]), self.randomizer.domain.values(), self.cell
        )
        growth = math.exp(self.randomizer.epsilon)
        if weights.max() > growth * weights.min() * (1 + 1e-9):
            raise RefusedError(
                "unverifiable",
                f"{self.randomizer.name} claims epsilon {self.randomizer.epsilon:g}, but its "
                "density varies by more",
            )
        return np.asarray(weights / weights[0])


def spent(replies: tuple[Observed, ...]) -> float:
    return math.fsum(reply.randomizer.epsilon for reply in replies)


@lru_cache(maxsize=64)
def likelihood_query(replies: tuple[Observed, ...], tolerance: float) -> RealQuery:
    """The statistical query for the mean of the product of the replies' likelihood ratios, centred
    and scaled to [-1, 1] (`query_value`).

    Queries that were asked several times count once in the joint domain.
    `mean_ratio(answer, e^spent)` recovers the mean.
    """
    ratios: dict[Query, Floats] = {}
    for reply in replies:
        ratios[reply.query] = ratios.get(reply.query, np.ones(1)) * reply.ratios()
    product = np.ones(1)
    for factor in ratios.values():
        product = np.multiply.outer(product, factor).ravel()
    total = spent(replies)
    values = np.clip((product - math.cosh(total)) / math.sinh(total), -1.0, 1.0)
    (only, *others) = ratios
    return RealQuery(Joint(tuple(ratios)) if others else only, tolerance, tuple(values.tolist()))


Num = TypeVar("Num", float, Fraction)


def query_value(ratio: Num, growth: Num) -> Num:
    """The centred query at a value whose likelihood ratio is `ratio`, with growth = e^eps; in [-1,
    1]."""
    return (2 * ratio - growth - 1 / growth) / (growth - 1 / growth)


def mean_ratio(answer: Num, growth: Num) -> Num:
    """The mean likelihood ratio p~(w)/q(w) behind an answer, moved into [1/growth, growth], where
    the true one lies: that only brings it nearer."""
    ratio = (growth + 1 / growth + answer * (growth - 1 / growth)) / 2
    return min(max(ratio, 1 / growth), growth)


def acceptance(ratio: Num, ceiling: Num) -> Num:
    """The probability of accepting a candidate of this (estimated) ratio p~(w)/q(w): ratio /
    ceiling, never above 1."""
    return min(ratio / ceiling, ceiling / ceiling)


def ceiling_after(growth: Num, error: Num, earlier_error: Num) -> Num:
    """growth (1 + tau'_k)/(1 - tau'_{k-1}), growth = e^{eps_k}: no estimate of Pr[w | earlier
    replies]/q(w) exceeds it (limits 6, L7)."""
    return growth * (1 + error) / (1 - earlier_error)


def accepted_law(q: Sequence[Num], accept: Sequence[Num]) -> list[Num]:
    """The law of the accepted candidate: q(w) accept(w), normalised."""
    weights = [a * b for a, b in zip(q, accept, strict=True)]
    total = sum(weights[1:], weights[0])
    return [weight / total for weight in weights]


def truncated_law(q: Sequence[Num], accept: Sequence[Num], trials: int) -> list[Num]:
    """The law of the output when the last of `trials` candidates is kept although none was
    accepted: within the miss probability of `accepted_law`."""
    weights = [a * b for a, b in zip(q, accept, strict=True)]
    mass = sum(weights[1:], weights[0])
    one = mass / mass
    miss = (one - mass) ** (trials - 1)
    hit = (one - miss * (one - mass)) / mass
    return [
        weight * hit + miss * (candidate - weight)
        for weight, candidate in zip(weights, q, strict=True)
    ]


def total_variation(p: Sequence[Num], q: Sequence[Num]) -> Num:
    gaps = [abs(a - b) for a, b in zip(p, q, strict=True)]
    return sum(gaps[1:], gaps[0]) / 2
