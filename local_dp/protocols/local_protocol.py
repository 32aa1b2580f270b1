"""What every protocol offers to the command line: its parameters, its algorithm, a synthetic population, and a result beside the truth."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim
from local_dp.checks import real_number, whole_number
from local_dp.errors import InputError, unknown
from local_dp.interaction import Adaptive, Nonadaptive, Repeated
from local_dp.oracles.local.asked import LocalAlgorithm
from local_dp.populations.population import Population
from local_dp.protocols.surveys.policies import Launch
from local_dp.tallies import Estimate

R = TypeVar("R")
T = TypeVar("T")
BETA = 0.05  # the default client count succeeds with probability 1 - BETA
MODELS = {"LNI": "non-interactive local", "LI": "interactive local", "FI": "fully interactive local"}
PlainData: TypeAlias = dict[str, Any]


def parameter(default: T, help: str, *, unit: str = "", alias: str = "", of_table: bool = False) -> T:
    """A parameter of a protocol, for the field of a dataclass: its default, one line of help, and the unit it is measured in.

    `alias` is a second name for the option on the command line. `of_table`: it says what is asked of a table, and must be given where there is one.
    """
    return field(default=default, metadata={"help": help, "unit": unit, "alias": alias, "of_table": of_table})


@dataclass(frozen=True)
class LocalProtocol(ABC, Generic[R]):
    """A local protocol. Its dataclass fields are its parameters, each made by `parameter`; its model, LNI, LI or FI, is the return type of `algorithm`."""

    name: ClassVar[str]
    source: ClassVar[str]
    example: ClassVar[str] = ""  # the options of a run on a table, for the help

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Checks the parameters. Raises InputError."""
        return

    @abstractmethod
    def clients(self, epsilon: float) -> int:
        """How many clients `local_dp.bounds` asks for 95 % success."""

    @abstractmethod
    def algorithm(self, epsilon: float, clients: int) -> LocalAlgorithm[R]:
        """The protocol for clients 0..clients-1, each with a budget of epsilon."""

    @abstractmethod
    def synthetic(self, clients: int, seed: int) -> Population:
        """A population whose truth is known."""

    def for_table(self, table: Launch) -> Self:
        """The protocol with what it needs to know of a real table filled in and checked. Raises InputError if it draws its own data only.

        Also where the table holds, or in a private run may hold, values that no policy decides about.
        """
        raise InputError(f"{self.name} draws its own population; leave out --records")

    @abstractmethod
    def describe(self, result: R) -> PlainData:
        """The result as plain data."""

    @abstractmethod
    def true_error(self, result: R, population: Population) -> float:
        """How far the result is from the truth of the population the clients were drawn from."""

    def truth(self, population: Population) -> Floats | R | None:
        """What `true_error` compares the result with, as numbers or as a result; None where it is not of either form."""
        return None

    def aim(self) -> Aim | None:
        """What the answer is a mean over clients of, by the values of its one query; None where it is no such mean."""
        return None

    def explain(self, result: R) -> str:
        """What a hypothesis says, in one sentence; empty for numbers, which speak for themselves."""
        return ""

    def compared(self, result: R, population: Population) -> PlainData:
        """What else a simulation can tell of the result, knowing the population: nothing, unless the protocol says more."""
        return {}

    def notice(self, epsilon: float, clients: int) -> str | None:
        """What a person should know before a run with so few clients that the stated accuracy is not promised; None if it is."""
        asked = self.clients(epsilon)
        if clients >= asked:
            return None
        return f"{clients:,} clients, and {self.name} asks for {asked:,} at epsilon {epsilon:g}: its answers will be coarser than promised"

    @classmethod
    def model(cls) -> str:
        """LNI, LI or FI, read off the type of `algorithm`. Raises InputError if its return annotation does not say which."""
        try:
            returned = get_type_hints(cls.algorithm).get("return")
        except NameError as error:
            raise InputError(f"the annotations of its algorithm cannot be read: {error}; import the names that they use") from error
        models: dict[Any, str] = {Nonadaptive: "LNI", Adaptive: "LI", Repeated: "FI"}
        origin = get_origin(returned)
        if origin not in models:
            raise InputError(f"its algorithm returns {returned}; annotate it as Nonadaptive, Adaptive or Repeated[LocalQuery, Tally, ...]")
        return models[origin]

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Self:
        """The protocol with these parameters, given as text. Raises InputError on an unknown name or a value that does not parse."""
        hints = get_type_hints(cls)
        known = {each.name: hints[each.name] for each in fields(cls)}
        values = {}
        for key, text in settings.items():
            if key not in known:
                raise InputError(unknown(f"{cls.name} has no parameter", key, known))
            values[key] = _parse(key, text, known[key])
        return replace(cls(), **values)


def _parse(key: str, text: str, kind: Any) -> int | float | str | tuple[str, ...] | None:
    if kind is bool:
        if text not in ("true", "false"):
            raise InputError(f"{key} is {text!r}; give true or false")
        return text == "true"
    if kind is int or int in get_args(kind):
        return whole_number(key, text)
    if kind is float or float in get_args(kind):
        return real_number(key, text)
    if get_origin(kind) is tuple:
        return tuple(part.strip() for part in text.split(";") if part.strip())
    return text


def plain(numbers: Floats) -> Any:
    """Numbers as plain data; what has no value (NaN) is None, for JSON has no other word for it."""
    if numbers.ndim:
        return [plain(part) for part in numbers]
    return None if np.isnan(numbers) else float(numbers)


def describe_estimate(estimate: Estimate) -> PlainData:
    """An estimate with its 95 % interval as plain data; scalars for a scalar, lists for a vector."""
    return {
        "estimate": plain(estimate.value),
        "standard_error": plain(estimate.standard_error),
        "interval": plain(np.stack(estimate.interval(), axis=-1)),
        "n": estimate.n,
    }
