"""The exponential mechanism in rho: a quarter of what its epsilon alone would say."""

from dataclasses import dataclass
from typing import TypeVar

from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.selection.exponential import ByScore, ExponentialChoice
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Concentrated

D = TypeVar("D")
R = TypeVar("R")


@dataclass(frozen=True)
class BoundedRange(Mechanism[D, R, Concentrated]):
    """An exponential mechanism of epsilon e as a concentrated one, to be added to Gaussian noise.

    Privacy: rho = e^2 / 8, where e^2 / 2 holds for every pure e: its losses on two databases lie in an interval of length e, since the weight of each candidate
    moves by e^+-(e / 2) and the normaliser is common to all. That holds for the weights that are drawn from, too. Permute-and-flip has no such range.
    Source: Cesar, Rogers 2021, Corollary 4.2; Dong, Durfee, Rogers 2020.
    """

    chosen: ByScore[D, R]

    def __post_init__(self) -> None:
        if type(self.chosen.choice) is not ExponentialChoice:
            raise InputError(f"{type(self.chosen.choice).__name__} has no bounded range; choose by the exponential mechanism")

    @property
    def loss(self) -> Concentrated:
        return Concentrated(-(-(self.chosen.loss.nano**2) // 8))  # nano-nats squared are units of 1e-18

    def release(self, database: D, draws: Draws) -> R:
        return self.chosen.release(database, draws)

    def law(self, database: D) -> Law[R]:
        return self.chosen.law(database)
