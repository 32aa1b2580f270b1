"""The shape of an experiment: a claim, points to measure, and findings computed from the
measurements alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from itertools import combinations
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, Union, cast, get_args

from pydantic import TypeAdapter, ValidationError

from local_dp.experiments.lab.chapters import Chapter

Data: TypeAlias = dict[str, Any]  # a point or a measurement as plain JSON data
Scale: TypeAlias = Literal["quick", "full"]


# the chance of one check to fail where its claim is true: with 500 checks, 1 % for all together
ALPHA = 2e-5
Style: TypeAlias = Literal["measured", "theory", "bound", "bars"]


@dataclass(frozen=True)
class Table:
    """A table of results."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def table(title: str, rows: Iterable[Mapping[str, Any]]) -> Table:
    """A table whose rows map headings to values."""
    rows = list(rows)
    return Table(title, tuple(rows[0]) if rows else (), [tuple(row.values()) for row in rows])


@dataclass(frozen=True)
class Curve:
    """One curve of a figure; `low` and `high`, where given, are its confidence band."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: Style = "measured"
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    # of its series; by default its label without the role: "X, measured" and "X, predicted" are one
    # series
    group: str = ""


def curve(
    label: str, points: Iterable[Sequence[float]], style: Style = "measured", group: str = ""
) -> Curve:
    """A curve through points (x, y) or (x, y, low, high), in the order of x."""
    x, y, *band = [*zip(*sorted(points, key=lambda point: point[0]), strict=True)] or [(), ()]
    low, high = band or (None, None)
    return Curve(label, x, y, style, low, high, group)


@dataclass(frozen=True)
class Figure:
    """A figure: curves over common axes, `bars` side by side. `x_ticks` names the positions 0, 1,
    ... of a categorical axis.

    `model` is the model of computation, as in `style.PALETTE`, of the curves whose names state
    none: their colour.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    curves: list[Curve]
    model: str = "curator"
    log_x: bool = False
    log_y: bool = False
    x_ticks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Region:
    """A region of a diagram and what was placed in it: pairs of a name and a few words of
    evidence."""

    title: str
    subtitle: str
    placed: list[tuple[str, str]]


@dataclass(frozen=True)
class Regions:
    """A diagram of nested regions, the innermost first; what belongs to an inner region belongs to
    all that enclose it."""

    name: str
    title: str
    regions: list[Region]


@dataclass(frozen=True)
class Check:
    """One statement of the claim, whether the run showed it, and the figures that decide.
    `lab/checks.py` makes the common ones."""

    statement: str
    shown: bool
    evidence: str
    chance: float = (
        0.0  # at most, that it fails where the statement is true; 0 where nothing random decides
    )
    # the smallest wrong figure that makes it fail with probability 0.99; any wrong one where
    # nothing random decides
    catches: str = ""


@dataclass(frozen=True)
class Finding:
    """What an experiment found: its verdict is "shown" if every check was shown, else "not shown".

    `headline` is one sentence for a reader in a hurry, with this run's own figure in it; where
    nothing could be measured it says so.
    """

    checks: list[Check]
    tables: list[Table] = field(default_factory=list)
    figures: Sequence[Figure | Regions] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # by file name: what `local-dp certify` checks
    certificates: dict[str, dict[str, Any]] = field(default_factory=dict)
    headline: str = field(kw_only=True)

    @property
    def verdict(self) -> str:
        return "shown" if self.checks and all(check.shown for check in self.checks) else "not shown"


P = TypeVar("P")  # a point: what to measure
M = TypeVar("M")  # a measurement: what was measured there


class Experiment(ABC, Generic[P, M]):
    """One claim of the theory, made to run.

    `P` and `M` are frozen dataclasses, or unions of several. A store keeps them as JSON and reads
    them by their field names. Two classes of one union with equal field names need a tag, a field
    `kind: Literal["error"] = "error"`. `points` lists independent pieces of work, so a run can
    stop, resume and use every core. `measure` does one of them; its result depends on the point and
    the seed alone. `conclude` gets every point with its measurement and computes tables, figures
    and checks from them, and from nothing else.
    """

    name: ClassVar[str]
    chapter: ClassVar[Chapter]
    title: ClassVar[str]
    claim: ClassVar[str]  # for a reader who does not know the paper
    source: ClassVar[str]

    @abstractmethod
    def points(self, scale: Scale) -> list[P]: ...

    def measure(self, point: P, seed: int) -> M:
        """Measures one point, by the method `measure(seed)` of its class unless an experiment says
        otherwise."""
        return cast(M, cast(Any, point).measure(seed))

    @abstractmethod
    def conclude(self, measurements: list[tuple[P, M]], scale: Scale) -> Finding: ...

    @classmethod
    def read(cls, point: Any, measurement: Any) -> tuple[P, M]:
        """A point and its measurement from plain JSON data."""
        return cls.read_point(point), _read(cls._types()[1], measurement)

    @classmethod
    def read_point(cls, point: Any) -> P:
        """A point from plain JSON data."""
        return cast(P, _read(cls._types()[0], point))

    @classmethod
    def _types(cls) -> tuple[Any, Any]:
        """P and M of the class, as it was derived."""
        bases = (base for kind in cls.__mro__ for base in getattr(kind, "__orig_bases__", ()))
        return next(arguments for base in bases if len(arguments := get_args(base)) == 2)


def of_kind(measurements: Iterable[tuple[Any, Any]], kind: type[P]) -> list[tuple[P, Any]]:
    """The points of one class, each with its measurement."""
    return [(point, measurement) for point, measurement in measurements if isinstance(point, kind)]


@cache
def _adapters(kind: Any) -> dict[frozenset[str], TypeAdapter[Any]]:
    """By the names of their fields, the dataclasses of `kind`; none where it is plain data. Tags
    distinguish those with equal names."""
    kinds = [
        each
        for each in (get_args(kind) or (kind,))
        if isinstance(each, type) and is_dataclass(each)
    ]
    names = {each: frozenset(field.name for field in fields(each)) for each in kinds}
    for one, other in combinations(kinds, 2):
        if names[one] == names[other] and "kind" not in names[one]:
            raise TypeError(
                f"{one.__name__} and {other.__name__} have the same fields; give each a tag, "
                "as "
                'in kind: Literal["error"] = "error"'
            )
    unions: dict[frozenset[str], Any] = {
        own: Union[tuple(each for each in kinds if names[each] == own)]  # noqa: UP007
        for own in names.values()
    }
    return {own: TypeAdapter(union) for own, union in unions.items()}


def _read(kind: Any, data: Any) -> Any:
    adapters = _adapters(kind)
    if not adapters:
        return data
    if (own := frozenset(data)) not in adapters:
        known = " or ".join(sorted(", ".join(sorted(names)) for names in adapters))
        raise ValueError(
            f"the fields are {', '.join(sorted(map(str, own))) or 'none'}, and not {known}"
        )
    try:
        return adapters[own].validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
