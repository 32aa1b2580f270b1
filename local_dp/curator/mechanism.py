"""The trusted curator: a mechanism is to its database what a randomizer is to a client's value."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from itertools import product
from pkgutil import walk_packages
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from local_dp import curator
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate, Concentrated, Loss, Pure, approximate, nano_epsilon

D = TypeVar("D")
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


def whole_weights(probabilities: Mapping[R, Fraction]) -> Law[R]:
    """Probabilities as whole weights, by their common denominator. Raises InputError unless they sum to 1: otherwise an outcome is missing or wrong."""
    total = math.lcm(*(share.denominator for share in probabilities.values()))
    law = {outcome: int(share * total) for outcome, share in probabilities.items()}
    if missing := total - sum(law.values()):
        raise InputError(f"the probabilities of {len(law)} outcomes miss 1 by {float(Fraction(missing, total)):.3g}; list every outcome once")
    return law


def probabilities(law: Law[R]) -> dict[R, Fraction]:
    """The probability of each outcome of a law."""
    total = sum(law.values())
    return {outcome: Fraction(weight, total) for outcome, weight in law.items()}


def independent(laws: Sequence[Law[R]]) -> Iterator[tuple[tuple[R, ...], int]]:
    """The law of independent outcomes, one of each law."""
    for outcomes in product(*(law.items() for law in laws)):
        yield tuple(outcome for outcome, _ in outcomes), math.prod(weight for _, weight in outcomes)


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


_KINDS: dict[Any, str] = {Pure: "pure", Approximate: "approximate", Concentrated: "concentrated"}


def mechanisms() -> list[type[Mechanism[Any, Any, Any]]]:
    """Every mechanism that the curator's modules define, sorted by the name of its class."""
    for module in walk_packages(curator.__path__, f"{curator.__name__}."):
        import_module(module.name)
    kinds = [kind for kind in _below(Mechanism) if not kind.__abstractmethods__ and kind.__module__.startswith(curator.__name__)]
    return sorted(kinds, key=lambda kind: kind.__name__)


def _below(kind: type[Any]) -> set[type[Any]]:
    return {each for child in kind.__subclasses__() for each in (child, *_below(child))}


def privacy_in(kind: type[Mechanism[Any, Any, Any]]) -> str:
    """Pure, approximate or concentrated, by the type of its loss; "that of its parts" where another mechanism decides it."""
    declared = vars(next(each for each in kind.__mro__ if "loss" in vars(each)))["loss"]
    loss = get_type_hints(declared.fget)["return"]
    if loss in _KINDS:
        return _KINDS[loss]
    kinds = get_args(loss)
    return "that of its parts" if not kinds else " or ".join(_KINDS[each] for each in kinds)
