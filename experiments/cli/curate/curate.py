"""`local-dp curate`: what a trusted curator tells of a table. Other trust than `run`, and other algorithms: not a tier."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from local_dp.errors import InputError
from local_dp.experiments.cli.fields import Kinds, option
from local_dp.experiments.text.layout import screen_width
from local_dp.experiments.text.screen import SCREEN

if TYPE_CHECKING:
    from local_dp.experiments.api.curating.attributes import Attributes
    from local_dp.experiments.api.trusted import Task  # imported where it is used: help needs none of it


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
    budget: Path | None = option(None, "The budget that pays, first: a file that `local-dp budget` made", metavar="FILE")
    out: Path | None = option(None, "All rows of the release, as CSV", metavar="FILE")
    plot: Path | None = option(None, "A figure of the result: .png, .svg or .pdf", metavar="FILE")
    as_json: bool = option(False, "Print the release as JSON, alone on standard output", name="--json")

    def __call__(self) -> None:
        if self.plot is not None:
            from local_dp.experiments.api.picture import check_picture

            check_picture(self.plot)
        from local_dp.experiments.api.tables import read_records
        from local_dp.experiments.api.trusted import Trust, release

        delta = None if self.pure else self.delta
        trust = Trust(epsilon=self.epsilon, delta=delta, seed=self.seed, private=self.private, budget=self.budget)
        SCREEN.working(f"reading {self.records.name}")
        table = read_records(self.records)
        SCREEN.working("releasing")
        released = release(self.task(), table, trust)
        SCREEN.tell(json.dumps(released.data) if self.as_json else released.text(screen_width()))  # first: it is paid for
        if self.out is not None:
            released.write(self.out)
        if self.plot is not None:
            released.plot(self.plot)

    @abstractmethod
    def task(self) -> "Task[Any, Any]":
        """What is asked."""


@dataclass(frozen=True, kw_only=True)
class CurateMedian(Curating):
    """Tells the median of a column of numbers; no bounds are declared."""

    example: ClassVar[str] = "median --records fair.csv --column affairs"
    column: str = option(help="The column of numbers", metavar="NAME")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.values import Median

        return Median(self.column)


@dataclass(frozen=True, kw_only=True)
class CurateHistogram(Curating):
    """Tells how often each value of a column occurs, where that is safe to tell; nobody need say which values there are."""

    example: ClassVar[str] = "histogram --records fair.csv --column occupation"
    column: str = option(help="The column: numbers or texts", metavar="NAME")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.values import Histogram

        return Histogram(self.column)


@dataclass(frozen=True, kw_only=True)
class CurateQuantiles(Curating):
    """Tells quantiles of a column of numbers; no bounds are declared."""

    example: ClassVar[str] = "quantiles --records fair.csv --column affairs --levels 3"
    column: str = option(help="The column of numbers", metavar="NAME")
    levels: int = option(3, "Quantiles at multiples of 2^-L: 1 is the median, 3 are octiles", metavar="L")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.values import Quantiles

        return Quantiles(self.column, self.levels)


@dataclass(frozen=True, kw_only=True)
class CurateMean(Curating):
    """Tells the mean of a column of numbers between public bounds."""

    example: ClassVar[str] = "mean --records fair.csv --column age --low 15 --high 45"
    column: str = option(help="The column of numbers", metavar="NAME")
    low: float = option(help="The least value, public", metavar="X", unit="of the column")
    high: float = option(help="The greatest value, public", metavar="X", unit="of the column")
    outside: str = option("refuse", "A number beyond the bounds: refuse, or clip (it counts as the nearer bound)", metavar="HOW")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.numbers import Mean

        return Mean(self.column, self.low, self.high, self.outside)


@dataclass(frozen=True, kw_only=True)
class CurateIntervals(CurateMean):
    """Tells how many numbers of a column lie in any interval between public bounds."""

    example: ClassVar[str] = "intervals --records fair.csv --column age --low 15 --high 45 --cells 64"
    cells: int = option(1024, "Equal parts that the bounds are cut into", metavar="N")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.numbers import Intervals

        return Intervals(self.column, self.low, self.high, self.cells, self.outside)


@dataclass(frozen=True, kw_only=True)
class CurateThreshold(Curating):
    """Tells from which number on a label is 1."""

    example: ClassVar[str] = "threshold --records fair.csv --column age --label 'yrs_married > 5'"
    column: str = option(help="The column of numbers", metavar="NAME")
    label: str = option(help="A column of 0 and 1, or a yes/no question such as 'affairs > 0'", metavar="Y")
    alpha: float = option(0.1, "The share of errors that it aims to stay within", metavar="A")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.labels import Threshold

        return Threshold(self.column, self.label, self.alpha)


@dataclass(frozen=True, kw_only=True)
class CuratePoint(Curating):
    """Tells the one value at which a label is 1, if it is ahead of all others by enough."""

    example: ClassVar[str] = "point --records fair.csv --column occupation --label 'affairs > 0'"
    column: str = option(help="The column: numbers or texts", metavar="NAME")
    label: str = option(help="A column of 0 and 1, or a yes/no question", metavar="Y")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.labels import Point

        return Point(self.column, self.label)


@dataclass(frozen=True, kw_only=True)
class CurateRectangle(Curating):
    """Tells bounds of one or more columns of numbers between which a label is 1."""

    example: ClassVar[str] = "rectangle --records fair.csv --column age --column yrs_married --label 'age > 25 and yrs_married > 5'"
    column: tuple[str, ...] = option(help="A column of numbers; may be repeated", metavar="NAME")
    label: str = option(help="A column of 0 and 1, or a yes/no question", metavar="Y")
    alpha: float = option(0.1, "The share of errors that it aims to stay within", metavar="A")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.labels import Rectangles

        if not self.column:
            raise InputError("a rectangle needs at least one --column")
        return Rectangles(self.column, self.label, self.alpha)


@dataclass(frozen=True, kw_only=True)
class CurateMarginals(Curating):
    """Tells how many records have each combination of values, for every two or more of some columns."""

    example: ClassVar[str] = "marginals --records fair.csv --column 'affairs > 0' --cuts age=27;32 --cuts yrs_married=6"
    column: tuple[str, ...] = option((), "A yes/no question, or a column of 0 and 1; may be repeated", metavar="X")
    cuts: tuple[str, ...] = option((), "A column of numbers and where it is cut, such as age=27;32; may be repeated", metavar="X=A;B;...")
    labels: tuple[str, ...] = option((), "A column and its labels, such as job=baker;smith; all else is one value more; may be repeated", metavar="X=A;B;...")
    ways: int = option(2, "How many columns to a marginal", metavar="T")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.tables import MarginalCounts

        return MarginalCounts(self.attributes(), self.ways)

    def attributes(self) -> "Attributes":
        """The columns, as they were typed."""
        from local_dp.experiments.api.curating.attributes import Attribute, Attributes, read_cuts, read_labels

        return Attributes((*map(Attribute, self.column), *map(read_cuts, self.cuts), *map(read_labels, self.labels)))


@dataclass(frozen=True, kw_only=True)
class CurateSynthetic(CurateMarginals):
    """Tells records that no one gave, which have nearly the same marginals."""

    example: ClassVar[str] = "synthetic --records fair.csv --column 'affairs > 0' --cuts age=27;32 --out synthetic.csv"

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.tables import SyntheticRecords

        return SyntheticRecords(self.attributes(), self.ways)


@dataclass(frozen=True, kw_only=True)
class CurateTriangles(Curating):
    """Tells how many triangles a graph has, whose edges are the rows; one edge more or less is hidden."""

    example: ClassVar[str] = "triangles --records edges.csv --source from --target to --nodes 500"
    source: str = option(help="The column of one node of each edge", metavar="NAME")
    target: str = option(help="The column of the other", metavar="NAME")
    nodes: int = option(help="How many nodes there are, public, those without an edge too", metavar="N")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.graphs import CountTriangles

        return CountTriangles(self.source, self.target, self.nodes)


@dataclass(frozen=True, kw_only=True)
class CurateLearn(Curating):
    """Tells a rule that predicts a label, by any of the learners of `run learn`."""

    example: ClassVar[str] = (
        "learn --records fair.csv --label 'affairs > 0' --feature age --feature rate_marriage --bound age=15..45 --bound rate_marriage=1..5"
    )
    learner: str = option("logistic-regression", "One of those that `local-dp describe learn` lists", metavar="NAME")
    label: str = option("", "A column, or a yes/no question such as 'affairs > 0'", metavar="Y")
    feature: tuple[str, ...] = option((), "A number column or a yes/no question; may be repeated; every other number column if left out", metavar="X")
    bound: tuple[str, ...] = option((), "Public bounds of a number column, such as age=17..60; may be repeated", metavar="COLUMN=LOW..HIGH")
    setting: tuple[str, ...] = option((), "A parameter of the learner, such as depth=2; may be repeated", metavar="NAME=VALUE")
    missing: str = option("refuse", "Rows that lack a feature or the label: refuse, or exclude (they are left out)", metavar="HOW")

    def task(self) -> "Task[Any, Any]":
        from local_dp.experiments.api.curating.learned import Learned
        from local_dp.protocols.learning.learn import Learn

        learn = Learn(learner=self.learner, label=self.label, missing=self.missing, features=self.feature, bounds=self.bound, parameters=self.setting)
        return Learned(learn)


KINDS: dict[str, type[Curating]] = {
    "median": CurateMedian,
    "quantiles": CurateQuantiles,
    "mean": CurateMean,
    "histogram": CurateHistogram,
    "intervals": CurateIntervals,
    "marginals": CurateMarginals,
    "synthetic": CurateSynthetic,
    "triangles": CurateTriangles,
    "threshold": CurateThreshold,
    "point": CuratePoint,
    "rectangle": CurateRectangle,
    "learn": CurateLearn,
}


CURATE = Kinds(
    "curate",
    KINDS,
    "Asks a trusted curator of a table: median, mean, histogram, intervals, marginals, synthetic, learn and more.\n\n"
    "Other trust than `run`: the curator sees the records.",
)
