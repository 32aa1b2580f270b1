"""Likelihoods of reports as statistical queries: what a simulation of local randomizers asks for (KLNRS Lemmas 4.4 and 4.5).

The query is a real function of the record, the likelihood ratio Pr[R(u) = w] / Pr[R(u0) = w] for a fixed reference u0. It travels as a RealQuery
over the local query's own domain with one real value for each element of that domain; over the product of the domains where a client answered several
different queries. So the randomizer's density must be computable: it must be transparent, KLNRS Definition 4.7.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

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
    """The randomizer, if Pr[report | value] can be computed for each of its reports (KLNRS Definition 4.7). Raises InputError."""
    if not isinstance(randomizer, FiniteChannel):
        raise InputError(f"randomizer {randomizer.name!r} is not a finite channel: to simulate it by statistical queries, its table of weights is needed")
    return randomizer


def density(randomizer: FiniteChannel, reports: Ints, values: Ints, cell: int) -> Floats:
    """2^word_bits Pr[report | value, cell], elementwise under broadcasting."""
    return randomizer.weight(reports, values, np.array([cell])).astype(np.float64)


@dataclass(frozen=True)
class Joint(Query):
    """Several queries to one record at once, as one symbol of the product of their domains."""

    name: ClassVar[str] = "joint"
    queries: tuple[Query, ...]

    def check(self) -> None:
        if self.domain.size > MAX_JOINT:
            raise InputError(f"{len(self.queries)} queries to one client have {self.domain.size} joint values; {MAX_JOINT} is the most")

    @property
    def domain(self) -> Domain:
        return Domain("joint", 0, math.prod(query.domain.size for query in self.queries) - 1)

    def __call__(self, records: Records) -> Ints:
        value: Ints = np.zeros(len(records), dtype=np.int64)
        for query in self.queries:
            value = value * query.domain.size + query.values(records).astype(np.int64) - query.domain.low
        return value


@dataclass(frozen=True)
class Observed:
    """What one client was asked, in which public-coin cell, and what it reported."""

    query: Query
    randomizer: FiniteChannel
    cell: int
    report: int

    def ratios(self) -> Floats:
        """Pr[report | value] / Pr[report | reference] for each value of the domain; the reference is the lowest value.

        Raises RefusedError("unverifiable") if a ratio exceeds e^eps.
        """
        weights = density(self.randomizer, np.array([self.report]), self.randomizer.domain.values(), self.cell)
        growth = math.exp(self.randomizer.epsilon)
        if weights.max() > growth * weights.min() * (1 + 1e-9):
            raise RefusedError("unverifiable", f"{self.randomizer.name} claims epsilon {self.randomizer.epsilon:g}, but its density varies by more")
        return np.asarray(weights / weights[0])


def spent(replies: tuple[Observed, ...]) -> float:
    return math.fsum(reply.randomizer.epsilon for reply in replies)


@lru_cache(maxsize=64)
def likelihood_query(replies: tuple[Observed, ...], tolerance: float) -> RealQuery:
    """The statistical query for the mean of the product of the replies' likelihood ratios, centred and scaled to [-1, 1] (`rejection.query_value`).

    Queries that were asked several times count once in the joint domain. `mean_ratio(answer, e^spent)` recovers the mean.
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
