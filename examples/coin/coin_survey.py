"""A query and a protocol of one's own: how many numbers of a column are whole multiples of
something, asked with a coin."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from coin_rr import CoinRR

from local_dp.arrays import Ints
from local_dp.bounds.response import rr_clients
from local_dp.checks import check_built, check_share, check_whole
from local_dp.domains import Domain, symbols
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import (
    BETA,
    MeanProtocol,
    PlainData,
    describe_estimate,
    parameter,
)
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.query import Query
from local_dp.records import Records
from local_dp.tallies import Estimate


@dataclass(frozen=True)
class Multiple(Query):
    """1 where a whole number is a multiple of `of`, else 0."""

    name: ClassVar[str] = "multiple"
    summary: ClassVar[str] = "Asks whether a number is a multiple"
    column: str
    of: int

    def __post_init__(self) -> None:
        check_whole("of", self.of, 1, 1_000_000)

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def __call__(self, records: Records) -> Ints:
        return (records.whole(self.column) % self.of == 0).view(np.uint8)


@dataclass(frozen=True)
class CoinMultiples(MeanProtocol):
    """Estimates the share of whole numbers in `column` that are multiples of `of`, by coin
    randomized response; without a table, of dice.

    Privacy: every report is epsilon-locally private. `tolerance` sets the default number of
    clients: within it with probability 95 %. Cost: one bit a client.
    """

    name: ClassVar[str] = "coin-multiples"
    source: ClassVar[str] = "Warner 1965"
    summary: ClassVar[str] = "Estimates the share of multiples of a number"
    column: str = parameter("die", "Column of whole numbers", of_table=True)
    of: int = parameter(3, "Multiples of this are counted")
    tolerance: float = parameter(
        0.05, "Error in 95 % of runs; sets the default client number", unit="share"
    )

    def __post_init__(self) -> None:
        check_share("tolerance", self.tolerance)
        check_built(self.query)  # checks `of`

    @property
    def query(self) -> Multiple:
        """The query that is put to every client."""
        return Multiple(self.column, self.of)

    def randomizer_for(self, epsilon: float) -> CoinRR:
        return CoinRR(epsilon)

    def clients(self, epsilon: float) -> int:
        return rr_clients(epsilon, 2 * self.tolerance, BETA)

    def synthetic(self, clients: int, seed: int) -> Population:
        return Finite(Records({self.column: np.arange(1, 7)}), [1.0] * 6, clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.types.whole(self.column)
        return self

    def describe(self, result: Estimate) -> PlainData:
        return {"column": self.column, **describe_estimate(result)}
