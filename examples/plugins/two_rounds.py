"""A protocol of two rounds, and its query: the second question depends on the first answer.

local-dp run examples/plugins/two_rounds.py --clients 4000 --seed 1
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.bounds.response import rr_clients
from local_dp.domains import Domain, symbols
from local_dp.interaction import Adaptive
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, parameter
from local_dp.queries.query import Query
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records


@dataclass(frozen=True)
class AtLeast(Query):
    """1 where a number is at least `least`, else 0."""

    name: ClassVar[str] = "at-least"
    column: str
    least: int

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def __call__(self, records: Records) -> Ints:
        return (records.whole(self.column) >= self.least).view(np.uint8)


@dataclass(frozen=True)
class MedianQuarter(LocalProtocol[int]):
    """Finds which quarter of the numbers 0..4 `width` - 1 has their median: one half of the clients
    chooses a half of the numbers, and the other half of the clients a quarter in it."""

    name: ClassVar[str] = "median-quarter"
    source: ClassVar[str] = "examples/plugins"
    summary: ClassVar[str] = "Finds the quarter that has the median"
    figureless: ClassVar[str] = "a quarter"
    error_unit: ClassVar[str] = "quarters"
    width: int = parameter(3, "Numbers in a quarter")

    def clients(self, epsilon: float) -> int:
        return 2 * rr_clients(epsilon, 0.25, BETA / 2)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[int]:
        randomizer, middle = BinaryRR(epsilon), clients // 2

        def play() -> LocalPlay[int]:
            quarter = 0
            for step, cohort in ((2, Cohort(0, middle)), (1, Cohort(middle, clients))):
                query = AtLeast("number", self.width * (quarter + step))
                (tally,) = yield (LocalQuery(query, randomizer, cohort),)
                if randomizer.estimate(tally).value > 1 / 2:
                    quarter += step
            return quarter

        return Adaptive(play)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Each number one and a half times as likely as the one before."""
        numbers = np.arange(4 * self.width)
        return Finite(Records({"number": numbers}), (1.5**numbers).tolist(), clients, seed)

    def describe(self, result: int) -> PlainData:
        return {"hypothesis": {"quarter": result}}

    def explain(self, result: int) -> str:
        return f"Half of the clients have a number of quarter {result} or below."

    def truth(self, population: Population) -> int:
        shares = [population.law(AtLeast("number", self.width * step))[1] for step in (1, 2, 3)]
        return sum(1 for share in shares if share > 1 / 2)

    def true_error(self, result: int, population: Population) -> float:
        return abs(result - self.truth(population))
