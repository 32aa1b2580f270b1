"""The shape of an experiment: a claim, points to measure, and findings computed from the measurements alone."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from local_dp.experiments.lab.chapters import Chapter
from local_dp.experiments.lab.coverage.stated import Stated

Point: TypeAlias = dict[str, Any]  # plain JSON data: what to measure
Measurement: TypeAlias = dict[str, Any]  # plain JSON data: what was measured
Scale: TypeAlias = Literal["quick", "full"]


@dataclass(frozen=True)
class Table:
    """A table of results."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True)
class Curve:
    """One curve of a figure; `low` and `high`, where given, are its confidence band."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: Literal["measured", "theory", "bound", "bars"] = "measured"
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    group: str = ""  # curves of one group share a colour; by default those whose labels say the same but for the role, as "X, measured" and "X, predicted"


@dataclass(frozen=True)
class Figure:
    """A figure: curves over common axes, `bars` side by side. `x_ticks` names the positions 0, 1, ... of a categorical axis."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: list[Curve]
    log_x: bool = False
    log_y: bool = False
    x_ticks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Region:
    """A region of a diagram and what was placed in it: pairs of a name and a few words of evidence."""

    title: str
    subtitle: str
    placed: list[tuple[str, str]]


@dataclass(frozen=True)
class Regions:
    """A diagram of nested regions, the innermost first; what belongs to an inner region belongs to all that enclose it."""

    name: str
    title: str
    regions: list[Region]


@dataclass(frozen=True)
class Check:
    """One statement of the claim, whether the run showed it, and the figures that decide."""

    statement: str
    shown: bool
    evidence: str


@dataclass(frozen=True)
class Finding:
    """What an experiment found: its verdict is "shown" if every check was shown, else "not shown".

    `headline` is one sentence for a reader in a hurry, with this run's own figure in it; where nothing could be measured it says so.
    """

    checks: list[Check]
    tables: list[Table] = field(default_factory=list)
    figures: Sequence[Figure | Regions] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    certificates: dict[str, dict[str, Any]] = field(default_factory=dict)  # by file name: what `local-dp certify` checks
    headline: str = field(kw_only=True)

    @property
    def verdict(self) -> str:
        return "shown" if self.checks and all(check.shown for check in self.checks) else "not shown"


class Experiment(ABC):
    """One claim of the theory, made to run.

    `points` lists independent pieces of work (so a run can stop, resume and use every core); `measure` does one of them, a function of (point, seed) alone;
    `conclude` computes tables, figures and checks from the measurements. Nothing in a finding may come from anywhere else.
    """

    name: ClassVar[str]
    chapter: ClassVar[Chapter]
    title: ClassVar[str]
    claim: ClassVar[str]  # for a reader who does not know the paper
    source: ClassVar[str]

    @abstractmethod
    def points(self, scale: Scale) -> list[Point]: ...

    @abstractmethod
    def measure(self, point: Point, seed: int) -> Measurement: ...

    @abstractmethod
    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding: ...

    def stated(self, scale: Scale) -> list[Stated]:
        """For `local-dp coverage`: the 95 % intervals that it states of anything but success rates and least counts, with trials as at the scale."""
        return []
