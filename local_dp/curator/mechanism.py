"""The trusted curator's side: a mechanism is to its database what a randomizer is to a client's value."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar

from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate, Concentrated, Loss, approximate

R = TypeVar("R")
D_contra = TypeVar("D_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
L_co = TypeVar("L_co", bound=Loss | Concentrated, covariant=True)

Neighbours: TypeAlias = Literal["replace", "add-remove", "edge", "labels"]
"""Which databases a loss compares: one record replaced, one added or removed, one edge of a graph flipped, one label (the last entry of a record) replaced."""

Law: TypeAlias = Mapping[R, int]
"""Pr[each outcome] as whole weights; the total may depend on the database.

Whole weights and not Fractions: they are what a sampler draws below, a normaliser costs nothing, and two laws are compared by cross-multiplying whole numbers.
"""


@dataclass(frozen=True)
class Mechanism(ABC, Generic[D_contra, R_co, L_co]):
    """A private function of a database D with result R; its loss L (Pure, Approximate, Concentrated) is in its type.

    Which privacy an algorithm has is thereby its type, and a curator's algorithm is a `Nonadaptive` or an `Adaptive` over mechanisms: it sees no record.
    """

    neighbours: ClassVar[Neighbours] = "replace"

    @property
    @abstractmethod
    def loss(self) -> L_co:
        """What a release costs: computed from the parameters, never declared."""

    @abstractmethod
    def release(self, database: D_contra, draws: Draws) -> R_co:
        """The private result; the order of the records does not matter to its law."""

    def law(self, database: D_contra) -> Law[R_co]:
        """The law of `release`, where the outcomes are few enough to list. Raises InputError where they are not."""
        raise InputError(f"{type(self).__name__} has too many outcomes to list")


class WithinDelta(Mechanism[D_contra, R_co, Approximate]):
    """A mechanism that is given the (eps, delta) to keep to, and makes its noise by them. Its subclasses are dataclasses with an `epsilon` and a `delta`."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        self.loss  # noqa: B018 - refuses a wrong epsilon or delta

    @property
    def loss(self) -> Approximate:
        return approximate(self.epsilon, self.delta)
