"""The base of every local protocol: its parameters, its algorithm, a synthetic population, and a
result beside the truth; and every protocol by name."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import repeat
from typing import (
    Any,
    ClassVar,
    Generic,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim
from local_dp.checks import (
    check_choices,
    check_share,
    convert_fields,
    real_number,
    treatment,
    whole_number,
)
from local_dp.errors import InputError, unknown
from local_dp.interaction import Adaptive, Nonadaptive, R, Repeated
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Local, LocalAlgorithm, ask_all
from local_dp.populations.finite import Population
from local_dp.protocols import BUILT_IN
from local_dp.protocols.needs import Need
from local_dp.protocols.surveys.policies import Columns, Launch
from local_dp.queries.cells import Crossed
from local_dp.queries.grammar import names_in, parts_of
from local_dp.queries.query import Query
from local_dp.randomizers.randomizer import Randomizer
from local_dp.registry import Registry, is_place
from local_dp.tallies import ANY, Estimate, Possible, Tally, Within

T = TypeVar("T")
BETA = 0.05  # the default client count succeeds with probability 1 - BETA
MODELS = {
    "LNI": "non-interactive local",
    "LI": "interactive local",
    "FI": "fully interactive local",
}
PlainData: TypeAlias = dict[str, Any]


def parameter(
    default: T,
    brief: str,
    *,
    help: str = "",
    choices: tuple[str, ...] = (),
    unit: str = "",
    alias: str = "",
    of_table: bool = False,
) -> T:
    """A protocol's parameter: default, a brief of at most 56 characters without a formula, more
    `help` for `--help-all`, the words it may have, unit, an `alias` of the option; `of_table`: it
    must be given where there is a table."""
    return field(default=default, metadata=dict(locals()))


def target_error(default: float, unit: str = "share") -> float:
    """The parameter that sets the default number of clients."""
    brief = "Error in 95 % of runs; sets the default client number"
    return parameter(default, brief, unit=unit)


def policy(of: str, **meanings: str) -> str:
    """A parameter that decides about some records: they are refused, or treated by one of the
    words, each with its meaning."""
    return parameter("refuse", **treatment(of, meanings))


@dataclass(frozen=True)
class LocalProtocol(ABC, Generic[R]):
    """A local protocol. Its dataclass fields are its parameters, each made by `parameter`; its
    model, LNI, LI or FI, is the return type of `algorithm`."""

    name: ClassVar[str]
    source: ClassVar[str]
    summary: ClassVar[str] = ""  # at most 60 characters, for lists: a verb first, no formula
    example: ClassVar[str] = ""  # the options of a run on a table, for the help
    rate: ClassVar[float] = 0.5  # the error falls with this power of the number of clients
    uncovered: ClassVar[str] = ""  # why `conform_protocol` leaves out the intervals of its estimate
    figureless: ClassVar[str] = (
        ""  # what it learns, if that has no figure: its result is described as a `hypothesis`
    )
    asks: ClassVar[tuple[str, ...]] = ()  # randomizers that it takes itself, and no others
    error_unit: ClassVar[str] = (
        ""  # what the true error measures, where it is not a distance of estimates from the truth
    )

    def __post_init__(self) -> None:
        convert_fields(self)
        if self.tolerance_unit.startswith("share"):
            check_share("tolerance", vars(self)["tolerance"])
        check_choices(self)
        self.check()

    def check(self) -> None:
        """Checks the parameters; choices and a `tolerance` that is a share are checked before.
        Raises InputError."""
        return

    def check_without_table(self, settings: str, value: object) -> None:
        """Raises InputError if these settings, which are about a table, have a value without
        one."""
        if value:
            raise InputError(
                f"{self.name}: {settings} are about the columns of a table; add --records, or "
                "leave them out"
            )

    @property
    def tolerance_unit(self) -> str:
        """The unit of the parameter `tolerance`; empty without one."""
        parameter = self.__dataclass_fields__.get("tolerance")
        return parameter.metadata.get("unit", "") if parameter else ""

    @abstractmethod
    def clients(self, epsilon: float) -> int:
        """The number of clients for 95 % success, by `local_dp.bounds`."""

    @abstractmethod
    def algorithm(self, epsilon: float, clients: int) -> LocalAlgorithm[R]:
        """The protocol for clients 0..clients-1, each with a budget of epsilon. It may be played
        several times."""

    @abstractmethod
    def synthetic(self, clients: int, seed: int) -> Population:
        """A population whose truth is known."""

    def truth(self, population: Population) -> Floats | R | None:
        """The right answer, in the distribution that the clients are drawn from: numbers or a
        result. None, as here, where neither form fits: `true_error` then compares."""
        return None

    def truth_of(self, result: R, population: Population) -> Floats | R | None:
        """The right answer to the question that this result is about: `truth`, unless a run decides
        it, as by bounds that it finds."""
        return self.truth(population)

    def for_table(self, table: Launch) -> Self:
        """The protocol for a real table. Raises InputError where the table, or a private run's, may
        hold values that no policy covers."""
        raise InputError(f"{self.name} draws its own population; leave out --records")

    @property
    def reads(self) -> frozenset[str] | None:
        """The names of the columns that its queries may be about; a table's other columns are not
        read. None: any column.

        Here, all names in the texts of its parameters but labels, if one of these is `of_table`.
        """
        if not any(each.metadata.get("of_table") for each in fields(self)):
            return None
        names = {each.name for each in fields(self)} - {"labels"}
        return names_in(*(getattr(self, name) for name in names))

    def describe(self, result: R) -> PlainData:
        """The result as plain data: an estimate with its interval, of several numbers with
        `labels`; or a `hypothesis` by its parts. Here, its estimate."""
        estimate: Estimate = getattr(result, "estimate", cast(Any, result))
        if estimate.value.ndim == 0:
            return describe_estimate(estimate)
        labels = list(map(str, range(len(estimate.value))))
        return {"labels": labels, **describe_estimate(estimate)}

    def values(self, result: R) -> Floats:
        """The numbers of the result that stand beside `truth`: here, those of its estimate."""
        return np.asarray(getattr(result, "estimate", cast(Any, result)).value)

    def possible(self, result: R) -> Possible | list[Possible]:
        """What the numbers of the result may be, or those of each of its estimates: here, any."""
        return ANY

    @property
    def guess(self) -> tuple[float, float] | None:
        """The best constant guess of each number and its root mean square error, if every possible
        answer is equally likely; None, as here, where numbers are so one by one."""
        return None

    def true_error(self, result: R, population: Population) -> float:
        """The distance of the result from the truth: here, the largest of any number."""
        truth = self.truth_of(result, population)
        assert isinstance(truth, np.ndarray), (
            f"the truth of {self.name} is a {type(truth).__name__}; give an array, such as "
            "np.asarray(0.5)"
        )
        return largest_error(self.values(result), truth)

    @property
    def need(self) -> Need | None:
        """What its parameter `randomizer` must be able to do; None without that parameter."""
        return None

    def aim(self) -> Aim | None:
        """Which mean over clients the answer is, by the values of its one query; None where it is
        none."""
        return None

    def explain(self, result: R) -> str:
        """One sentence that explains a hypothesis; empty for numeric results."""
        return ""

    def reason(self, epsilon: float) -> str:
        """Why a run takes its randomizer, in one sentence; empty where there is no choice."""
        return ""

    def compared(self, result: R, population: Population) -> PlainData:
        """Further comparisons with the truth, in a simulation: by default none."""
        return {}

    def notice(self, epsilon: float, clients: int) -> str | None:
        """A warning before a run with too few clients for the stated accuracy; None if there are
        enough."""
        enough = self.clients(epsilon)
        if clients >= enough:
            return None
        goal = getattr(self, "tolerance", None)
        if not isinstance(goal, float):
            return (
                f"You have {clients:,} clients; {self.name} at epsilon {epsilon:g} needs "
                f"{enough:,} to succeed in 95 % of runs."
            )
        unit = self.tolerance_unit
        of = f" {unit.removeprefix('share').strip()}".rstrip()
        near = goal * (enough / clients) ** self.rate
        expected = f"about +-{near:.2g}{of}"
        if near >= 0.5 and unit.startswith("share"):
            expected = "nothing better than a guess"
        return (
            f"You have {clients:,} clients; +-{goal:g}{of} at epsilon {epsilon:g} needs "
            f"{enough:,}. Expect {expected}."
        )

    @classmethod
    def model(cls) -> str:
        """LNI, LI or FI, read off the type of `algorithm`. Raises InputError if its return
        annotation does not say which."""
        try:
            kind = get_type_hints(cls.algorithm).get("return")
        except NameError as error:
            raise InputError(
                f"the annotations of its algorithm cannot be read: {error}; import the names that "
                "they use"
            ) from error
        models: dict[Any, str] = {Nonadaptive: "LNI", Adaptive: "LI", Repeated: "FI"}
        origin = get_origin(kind)
        if origin not in models:
            raise InputError(
                f"its algorithm returns {kind}; annotate it as Nonadaptive, Adaptive or "
                "Repeated[LocalQuery, Tally, ...]"
            )
        return models[origin]

    @classmethod
    def from_settings(cls, settings: Mapping[str, str | tuple[str, ...]]) -> Self:
        """The protocol with these parameters, given as text, or labels as a tuple. Raises
        InputError on an unknown name or a value that does not parse."""
        hints = get_type_hints(cls)
        kinds = {each.name: hints[each.name] for each in fields(cls)}
        values = {}
        for key, text in settings.items():
            if key not in kinds:
                raise InputError(unknown(f"{cls.name} has no parameter", key, kinds))
            values[key] = _parse(key, text, kinds[key]) if isinstance(text, str) else tuple(text)
        return replace(cls(), **values)


@dataclass(frozen=True)
class MeanProtocol(LocalProtocol[Estimate]):
    """The mean over all clients of one query's value. A subclass gives `query`, `randomizer_for`
    and `clients`; the query has two values, or levels."""

    @property
    @abstractmethod
    def query(self) -> Query:
        """The question to every client."""

    @abstractmethod
    def randomizer_for(self, epsilon: float) -> Randomizer:
        """The randomizer of its value."""

    @property
    def scale(self) -> tuple[float, float]:
        """What the lowest and the highest value of the query count as."""
        return 0.0, 1.0

    def possible(self, result: Estimate) -> Possible:
        return Possible(*self.scale)

    def algorithm(self, epsilon: float, clients: int) -> Local[Estimate]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        randomizer = self.randomizer_for(epsilon)

        def read(tally: Tally) -> Estimate:
            return self.read(randomizer, tally).on_scale(*self.scale)

        return ask_all(self.query_for(randomizer), randomizer, clients, read)

    def query_for(self, randomizer: Randomizer) -> Query:
        """The question in the values that the randomizer takes."""
        return self.query

    def read(self, randomizer: Randomizer, tally: Tally) -> Estimate:
        """The estimate on the scale from 0 to 1."""
        estimate: Estimate = randomizer.estimate(tally)
        # some estimate the share of zeros beside that of ones
        return estimate.at(1) if estimate.value.ndim else estimate

    def aim(self) -> Aim | None:
        if self.query.domain.kind == "symbols":
            return Aim.share_of_ones()
        return Aim.mean(self.query.domain.size - 1)

    def truth(self, population: Population) -> Floats:
        """The mean in the distribution that the clients are drawn from, shape ()."""
        return self.mean(population.law(self.query))

    def mean(self, law: Floats) -> Floats:
        """The mean of values of this law, shape ()."""
        low, high = self.scale
        return np.asarray(low + (high - low) * (law @ np.arange(len(law)) / (len(law) - 1)))


class OfColumns(LocalProtocol[R]):
    """A protocol about the combinations of `columns`, which have public labels or are yes/no
    questions. Subclasses are dataclasses with these fields."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    labels_from_data: bool | None = None  # the protocol has no such parameter
    k: int
    missing: str
    other: str
    choices = "missing=category (a label of its own)"

    @property
    def parts(self) -> Columns:
        return Columns(self.columns, self.labels, self.k, self.missing, self.other)

    @property
    def query(self) -> Crossed:
        """The combination of all columns."""
        return self.parts.query

    def for_table(self, table: Launch) -> Self:
        labels = self.parts.labels_of_table(table, self.labels_from_data, self.choices)
        settings: dict[str, Any] = {"labels": labels}
        return replace(self, **settings)


def check_different(what: str, names: tuple[str, ...], least: int = 1) -> None:
    """Raises InputError for fewer names than these, or one that comes twice."""
    if len(names) < least or len(set(names)) < len(names):
        raise InputError(
            f"{what} are {';'.join(names)!r}; give {least} or more different ones, separated by ';'"
        )


def numbers_in(name: str, texts: Iterable[str]) -> Floats:
    """The numbers of a list that is typed as texts, shape (n,). Raises InputError."""
    return np.array([real_number(name, text) for text in texts])


def _parse(key: str, text: str, kind: Any) -> int | float | str | tuple[str, ...] | None:
    if kind is bool:
        if text not in ("true", "false"):
            raise InputError(f"{key} is {text!r}; give true or false")
        return text == "true"
    if kind is int or int in get_args(kind):
        return whole_number(key, text)
    if kind is float or float in get_args(kind):
        return real_number(key, text)
    if get_origin(kind) is not tuple:
        return text
    if key == "labels":
        return tuple(part.strip() for part in text.split(";") if part.strip())
    return parts_of(text, ";")


_ESTIMATES = {"estimate", "estimates"}  # fields of results


def possible_result(protocol: LocalProtocol[R], result: Any) -> Any:
    """The result with each number moved to the nearest possible value, and each interval cut there:
    what a person reads, unless raw numbers are asked for."""
    return result if protocol.figureless else _to_possible(result, protocol.possible(result))


def _to_possible(result: Any, possible: Any) -> Any:
    if isinstance(result, tuple):
        each = possible if isinstance(possible, list) else repeat(possible)
        return tuple(map(_to_possible, result, each))
    if isinstance(result, Estimate):
        return result.within(possible)
    names = vars(result).keys() & _ESTIMATES
    return replace(result, **{name: _to_possible(vars(result)[name], possible) for name in names})


def was_moved(result: Any) -> bool:
    """True if an estimate of `possible_result` is another than the raw one."""
    if isinstance(result, Within):
        return not np.array_equal(result.value, result.raw.value, equal_nan=True)
    if not isinstance(result, tuple):
        result = [getattr(result, name, ()) for name in _ESTIMATES]
    return any(map(was_moved, result))


def guess_of_shares(k: int) -> tuple[float, float]:
    """1/k as the guess of each of k shares, and its root mean square error, if every law is equally
    likely (uniform on the simplex)."""
    return 1 / k, ((k - 1) / (k + 1)) ** 0.5 / k


def largest_error(value: Floats, truth: Floats) -> float:
    """The largest distance from the truth among the numbers that have both."""
    away = np.abs(np.asarray(value) - truth)
    return float(np.nanmax(away)) if np.any(~np.isnan(away)) else 0.0


def plain(numbers: Floats) -> Any:
    """Numbers as plain data; NaN and infinity become None, for JSON has neither."""
    floats = np.asarray(numbers, dtype=np.float64)
    return np.where(np.isfinite(floats), floats.astype(object), np.array(None)).tolist()


def describe_estimate(estimate: Estimate) -> PlainData:
    """An estimate with its 95 % interval as plain data; scalars for a scalar, lists for a
    vector."""
    return {
        "estimate": plain(estimate.value),
        "standard_error": plain(estimate.standard_error),
        "interval": plain(np.stack(estimate.interval(), axis=-1)),
        "n": estimate.n,
    }


def describe_estimates(estimates: Sequence[Estimate]) -> PlainData:
    """Several estimates as one list of each; `n` is the least."""
    values = [np.atleast_1d(each.value) for each in estimates]
    errors = [np.atleast_1d(each.standard_error) for each in estimates]
    ends = [np.stack(each.interval(), axis=-1).reshape(-1, 2) for each in estimates]
    return {
        "estimate": plain(np.concatenate(values)),
        "standard_error": plain(np.concatenate(errors)),
        "interval": plain(np.concatenate(ends)),
        "n": min(each.n for each in estimates),
    }


PROTOCOLS: Registry[LocalProtocol[Any]] = Registry(
    "protocol", "local_dp.protocols", LocalProtocol, BUILT_IN, check=lambda kind: kind.model()
)


MEANT = {
    "median": "quantiles",
    "average": "mean",
    "count": "frequency",
    "counts": "frequency",
    "share": "survey",
    "proportion": "survey",
}


def find_protocol(name: str | type[LocalProtocol[Any]]) -> type[LocalProtocol[Any]]:
    """The protocol of this name, at a place, or given itself. Raises InputError."""
    if not isinstance(name, str) or is_place(name):
        kind, settings = PROTOCOLS.resolve(name)
        if settings:
            raise InputError(f"{name!r} has parameters; give them by name beside the protocol")
        return kind
    if name in MEANT:
        raise InputError(f"no protocol named {name!r}; did you mean {MEANT[name]!r}?")
    if name not in PROTOCOLS:
        raise InputError(unknown("no protocol named", name, PROTOCOLS, "local-dp protocols"))
    return PROTOCOLS[name]
