"""A randomizer by its law: some clients shrug, whatever their answer is.

local-dp audit examples/plugins/shrug.py
local-dp run survey --randomizer 'examples/plugins/shrug.py(share=0.1)'
"""

from dataclasses import dataclass
from fractions import Fraction

from local_dp.checks import check_share
from local_dp.domains import Domain, symbols
from local_dp.randomizers.table import Law, TableChannel


@dataclass(frozen=True)
class Shrug(TableChannel):
    """Randomized response with no answer in a `share` of the reports."""

    name = "shrug"
    source = "the tutorial on randomizers"
    summary = "Reports a bit, or shrugs"
    share: float = 0.25

    def check(self) -> None:
        check_share("share", self.share)
        super().check()

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def law(self) -> Law:
        shrug = Fraction(self.share)
        lie = (1 - shrug) / (1 + self.growth)
        truth = 1 - shrug - lie
        return [[truth, lie, shrug], [lie, truth, shrug]]  # a row a value
