"""The trusted curator: a mechanism is to its database what a randomizer is to a client's value."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar

from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate, Concentrated, Loss, Pure, approximate, nano_epsilon

R = TypeVar("R")
D_contra = TypeVar("D_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
L_co = TypeVar("L_co", bound=Loss | Concentrated, covariant=True)

Neighbours: TypeAlias = Literal["replace", "add-remove", "edge", "labels"]
"""How two neighbours differ: one record replaced, one added or removed, one edge of a graph flipped, or one label (the last entry) replaced."""

Law: TypeAlias = Mapping[R, int]
"""Pr[each outcome] as whole weights; their total may depend on the database.

A sampler draws from whole weights, a common factor costs nothing, and two laws are compared by cross-multiplying whole numbers.
"""


@dataclass(frozen=True)
class Mechanism(ABC, Generic[D_contra, R_co, L_co]):
    """A private function from a database D to a result R. Its type states its loss L: Pure, Approximate or Concentrated.

    A curator's algorithm is a `Nonadaptive` or an `Adaptive` over mechanisms: it sees their results and no record.
    """

    neighbours: ClassVar[Neighbours] = "replace"

    def __post_init__(self) -> None:
        """Checks the parameters; an override calls this one."""

    @property
    @abstractmethod
    def loss(self) -> L_co:
        """The cost of one release, computed from the parameters."""

    @abstractmethod
    def release(self, database: D_contra, draws: Draws) -> R_co:
        """The private result. Its law does not depend on the order of the records."""

    def law(self, database: D_contra) -> Law[R_co]:
        """The law of `release`, where the outcomes are few enough to list. Raises InputError otherwise."""
        raise InputError(f"{type(self).__name__} has too many outcomes to list")


class WithinEpsilon(Mechanism[D_contra, R_co, Pure]):
    """A mechanism that makes its noise for a given `epsilon`, and loses all of it. Its subclasses are dataclasses with that field."""

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        nano_epsilon(self.epsilon)

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))


class WithinDelta(Mechanism[D_contra, R_co, Approximate]):
    """A mechanism that makes its noise for a given (eps, delta). Its subclasses are dataclasses with an `epsilon` and a `delta`."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        approximate(self.epsilon, self.delta)

    @property
    def loss(self) -> Approximate:
        return approximate(self.epsilon, self.delta)
