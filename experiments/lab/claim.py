"""The shape of an experiment: a claim, points to measure, and a finding computed from the measured
rows alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, ClassVar, TypeVar, dataclass_transform, get_type_hints

from pydantic import TypeAdapter, ValidationError

from local_dp.draws import Draws
from local_dp.experiments.lab.chapters import Chapter
from local_dp.experiments.lab.shapes import ALPHA, Check, Finding, Scale
from local_dp.noise import KeyedNoise

P = TypeVar("P")
M = TypeVar("M")
Rows = list[tuple[P, M]]
Points = list[Any]


@dataclass_transform(frozen_default=True)
class Row:
    """A point, or what was measured there: each class of rows is a frozen dataclass, whose fields
    are columns of tables."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Deltas(Row):
    at: float  # the worst delta over all pairs of neighbours, at the stated loss
    below: float  # at a smaller epsilon, or with less noise


def seeded(seed: int, own: int = 0) -> Draws:
    """Draws that a seed decides, and what distinguishes them from others of this seed."""
    return Draws(KeyedNoise(seed), own)


def grid(kind: Callable[..., Any], *axes: Iterable[Any]) -> Points:
    """A point of this class for every choice of a value of each axis, the last axis first."""
    return [kind(*values) for values in product(*axes)]


@dataclass(frozen=True)
class Sheet:
    """All rows of a claim: each point with its measurement. The runner guarantees that none is
    missing."""

    rows: Rows[Any, Any]
    scale: Scale

    def __getitem__(self, kind: type[P]) -> Rows[P, Any]:
        """The points of one class, each with its measurement."""
        return [row for row in self.rows if isinstance(row[0], kind)]


def reached_check(searches: Sized, failures: Sequence[str] = ()) -> Check:
    """Whether every search found a least number of clients; a finding is made of nothing else if
    one failed."""
    evidence = "; ".join(failures) or f"{len(searches)} searches"
    return Check(
        "Every search for a least number of clients finds one",
        not failures,
        evidence,
        ALPHA,
        "a success that is never reached",
    )


class Experiment(ABC):
    """One claim of the theory, made to run.

    `points` lists independent pieces of work, so a run can stop, resume and use every core.
    `measure` does one of them; its result depends on the point and the seed alone. `finding` gets
    every point with its measurement and computes tables, figures and checks from them, and from
    nothing else. A store keeps points and measurements as JSON, each point under the name of its
    class.
    """

    name: ClassVar[str]
    chapter: ClassVar[Chapter]
    title: ClassVar[str]
    claim: ClassVar[str]  # for a reader who does not know the paper
    source: ClassVar[str]

    @abstractmethod
    def points(self, scale: Scale) -> Points: ...

    def measure(self, point: Any, seed: int) -> Any:
        """Measures one point, by the method `measure(seed)` of its class unless an experiment says
        otherwise."""
        return point.measure(seed)

    @abstractmethod
    def finding(self, sheet: Sheet) -> Finding: ...

    def conclude(self, rows: Iterable[tuple[Any, Any]], scale: Scale) -> Finding:
        """The finding, or which searches for a least number of clients failed."""
        sheet = Sheet(list(rows), scale)
        failures = []
        for point, row in sheet.rows:
            whys = (getattr(each, "failed", "") for each in (row, *vars(row).values()))
            failures += [f"{point}: {why}" for why in whys if why]
        if failures:
            return Finding(
                [reached_check(sheet.rows, failures)],
                headline="A search did not find a least number of clients.",
            )
        return self.finding(sheet)

    def read(self, point: Any, measurement: Any) -> Any:
        """A point's measurement from plain JSON data. Raises ValueError."""
        measure = getattr(point, "measure", self.measure)
        try:
            return _adapter(get_type_hints(measure)["return"]).validate_python(measurement)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
