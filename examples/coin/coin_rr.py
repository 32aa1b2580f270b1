"""A randomizer of one's own: the coin that Warner's survey is told with in class."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import Domain, symbols
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.one_bit import flip_weight
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True)
class CoinRR(FiniteChannel):
    """Answers truthfully with some probability, and otherwise what a fair coin says: Warner's survey as it is told in class."""

    name: ClassVar[str] = "coin-rr"
    source: ClassVar[str] = "Warner 1965"

    def prepare(self) -> None:
        """Nothing but epsilon to check."""

    @property
    def lie(self) -> int:
        """The weight of an answer that is not true: half of the times that the coin is asked."""
        return flip_weight(self.nano, self.word_bits)

    @property
    def domain(self) -> Domain:
        return symbols(2)

    @property
    def alphabet(self) -> int:
        return 2

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        asks_coin = words < words.dtype.type(2 * self.lie)
        coin = (words & words.dtype.type(1)).astype(np.uint8)  # 2 * lie is even, so the coin is fair given that it is asked
        answers: Words = np.where(asks_coin, coin, values.astype(np.uint8))
        return answers

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        weights: Words = np.where(reports == values, np.uint64(self.total - self.lie), np.uint64(self.lie))
        return weights

    def estimate(self, tally: Tally) -> Estimate:
        n, asked = tally.answered, 2 * self.lie / self.total
        share = (tally.counts[0, 1] / n - asked / 2) / (1 - asked)
        seen = tally.counts[0, 1] / n
        return Estimate(np.asarray(share), np.asarray(np.sqrt(seen * (1 - seen) / n) / (1 - asked)), n)
