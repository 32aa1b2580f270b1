"""A protocol of two rounds: the second question depends on the first answer.

local-dp run examples/plugins/two_rounds.py --clients 4000 --seed 1
"""

from dataclasses import dataclass

import numpy as np

from local_dp.bounds.response import rr_clients
from local_dp.interaction import Adaptive
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, parameter
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records


@dataclass(frozen=True)
class MedianQuarter(LocalProtocol[int]):
    """Finds which quarter of the numbers 0..4 `width` - 1 has their median: one half of the clients
    chooses a half of the numbers, and the other half of the clients a quarter in it."""

    name, source = "median-quarter", "examples/plugins"
    summary, figureless = "Finds the quarter that has the median", "a quarter"
    error_unit = "quarters"
    width: int = parameter(3, "Numbers in a quarter")

    def clients(self, epsilon: float) -> int:
        return 2 * rr_clients(epsilon, 0.25, BETA / 2)

    def question(self, quarter: int) -> Question:
        return Question(f"number >= {self.width * quarter}")

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[int]:
        def play() -> LocalPlay[int]:
            quarter, randomizer, middle = 0, BinaryRR(epsilon), clients // 2
            for step, cohort in (2, Cohort(0, middle)), (1, Cohort(middle, clients)):
                (tally,) = yield (LocalQuery(self.question(quarter + step), randomizer, cohort),)
                quarter += step * int(randomizer.estimate(tally).value > 1 / 2)
            return quarter

        return Adaptive(play)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Each number one and a half times as likely as the one before."""
        numbers = np.arange(4 * self.width)
        return Finite(Records({"number": numbers}), (1.5**numbers).tolist(), clients, seed)

    def describe(self, result: int) -> PlainData:
        return {"hypothesis": {"quarter": result}}

    def truth(self, population: Population) -> int:
        shares = [population.law(self.question(step))[1] for step in (1, 2, 3)]
        return sum(1 for share in shares if share > 1 / 2)

    def true_error(self, result: int, population: Population) -> float:
        return abs(result - self.truth(population))
