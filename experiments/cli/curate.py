"""`local-dp curate`: what a trusted curator tells of a table. Other trust than `run`, and other algorithms: not a tier."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from experiments.cli.fields import Kinds, option
from experiments.cli.screen import SCREEN
from experiments.text.layout import screen_width
from local_dp.errors import InputError

if TYPE_CHECKING:
    from experiments.door.trusted import Task  # imported where it is used: help needs none of it


@dataclass(frozen=True, kw_only=True)
class Curating(ABC):
    """What every question to the curator is told."""

    example: ClassVar[str]
    records: Path = option(help="A CSV or Parquet table, which the curator sees", metavar="FILE")
    epsilon: float = option(1.0, "What the release may lose", metavar="E", unit="nats")
    delta: float = option(1e-6, "With which probability it may lose more; below 1 over the number of records", metavar="D")
    pure: bool = option(False, "No delta: pure privacy, where there is such a form")
    seed: int | None = option(None, "Repeats a simulation; without it, one is drawn and shown", metavar="S")
    private: bool = option(False, "Operating-system entropy; takes no seed, and no truth is computed")
    plot: Path | None = option(None, "A figure of the result: .png, .svg or .pdf", metavar="FILE")
    as_json: bool = option(False, "Print the release as JSON, alone on standard output", name="--json")

    def __call__(self) -> None:
        if self.plot is not None:
            from experiments.door.picture import check_picture

            check_picture(self.plot)
        from experiments.door.tables import read_records
        from experiments.door.trusted import Trust, release, shown

        trust = Trust(epsilon=self.epsilon, delta=None if self.pure else self.delta, seed=self.seed, private=self.private)
        SCREEN.working(f"reading {self.records.name}")
        table = read_records(self.records)
        SCREEN.working("releasing")
        released = release(self.task(), table, trust)
        if self.plot is not None:
            released.plot(self.plot)
        SCREEN.tell(json.dumps(released.data) if self.as_json else shown(released.data, screen_width()))

    @abstractmethod
    def task(self) -> "Task[Any, Any]":
        """What is asked."""


@dataclass(frozen=True, kw_only=True)
class CurateHistogram(Curating):
    """Tells how often each value of a column occurs, where that is safe to tell; nobody need say which values there are."""

    example: ClassVar[str] = "histogram --records fair.csv --column occupation"
    column: str = option(help="The column: numbers or texts", metavar="NAME")

    def task(self) -> "Task[Any, Any]":
        from experiments.door.curate import Histogram

        return Histogram(self.column)


@dataclass(frozen=True, kw_only=True)
class CurateQuantiles(Curating):
    """Tells quantiles of a column of numbers; no bounds are declared."""

    example: ClassVar[str] = "quantiles --records fair.csv --column affairs --levels 3"
    column: str = option(help="The column of numbers", metavar="NAME")
    levels: int = option(3, "Quantiles at multiples of 2^-L: 1 is the median, 3 are octiles", metavar="L")

    def task(self) -> "Task[Any, Any]":
        from experiments.door.curate import Quantiles

        return Quantiles(self.column, self.levels)


@dataclass(frozen=True, kw_only=True)
class CurateThreshold(Curating):
    """Tells from which number on a label is 1."""

    example: ClassVar[str] = "threshold --records fair.csv --column age --label 'yrs_married > 5'"
    column: str = option(help="The column of numbers", metavar="NAME")
    label: str = option(help="A column of 0 and 1, or a yes/no question such as 'affairs > 0'", metavar="Y")
    alpha: float = option(0.1, "The share of errors that it aims to stay within", metavar="A")

    def task(self) -> "Task[Any, Any]":
        from experiments.door.curate import Threshold

        return Threshold(self.column, self.label, self.alpha)


@dataclass(frozen=True, kw_only=True)
class CuratePoint(Curating):
    """Tells the one value at which a label is 1, if it is ahead of all others by enough."""

    example: ClassVar[str] = "point --records fair.csv --column occupation --label 'affairs > 0'"
    column: str = option(help="The column: numbers or texts", metavar="NAME")
    label: str = option(help="A column of 0 and 1, or a yes/no question", metavar="Y")

    def task(self) -> "Task[Any, Any]":
        from experiments.door.curate import Point

        return Point(self.column, self.label)


@dataclass(frozen=True, kw_only=True)
class CurateRectangle(Curating):
    """Tells bounds of one or more columns of numbers between which a label is 1."""

    example: ClassVar[str] = "rectangle --records fair.csv --column age --column yrs_married --label 'age > 25 and yrs_married > 5'"
    column: tuple[str, ...] = option(help="A column of numbers; may be repeated", metavar="NAME")
    label: str = option(help="A column of 0 and 1, or a yes/no question", metavar="Y")
    alpha: float = option(0.1, "The share of errors that it aims to stay within", metavar="A")

    def task(self) -> "Task[Any, Any]":
        from experiments.door.curate import Rectangles

        if not self.column:
            raise InputError("a rectangle needs at least one --column")
        return Rectangles(self.column, self.label, self.alpha)


KINDS: dict[str, type[Curating]] = {
    "histogram": CurateHistogram,
    "quantiles": CurateQuantiles,
    "threshold": CurateThreshold,
    "point": CuratePoint,
    "rectangle": CurateRectangle,
}


CURATE = Kinds(
    "curate",
    KINDS,
    "Asks a trusted curator of a table: histogram, quantiles, threshold, point or rectangle.\n\nOther trust than `run`: the curator sees the records.",
)
