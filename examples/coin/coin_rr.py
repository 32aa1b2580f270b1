"""A randomizer of one's own: the coin that Warner's survey is explained with in class."""

from dataclasses import dataclass
from typing import ClassVar

from local_dp.domains import Domain, symbols
from local_dp.randomizers.table import Law, TableChannel


@dataclass(frozen=True)
class CoinRR(TableChannel):
    """Answers truthfully with some probability, and otherwise what a fair coin says: Warner's
    survey as it is explained in class."""

    name: ClassVar[str] = "coin-rr"
    source: ClassVar[str] = "Warner 1965"
    summary: ClassVar[str] = "Reports a bit, or what a coin says"

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def law(self) -> Law:
        lie = 1 / (1 + self.growth)  # half of the times that the coin decides
        return [[1 - lie, lie], [lie, 1 - lie]]
