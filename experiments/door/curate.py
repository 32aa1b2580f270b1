"""What a trusted curator tells of a table, each in a line: `import local_dp as ldp; ldp.curate.histogram(table, "occupation", epsilon=1, delta=1e-6)`.

The other trust: the records are shown to the curator, and only what it releases is private. No domain, bounds or labels need be declared. Every function
takes epsilon (1 nat), delta (1e-6; None for pure privacy, where there is such a form), seed or private; a table is a path, a mapping of columns or a frame.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np

from experiments.door.tables import Table, records_of
from experiments.door.trusted import DRAWN, Release, Task, Trust, release
from local_dp.arrays import Floats, Ints, Words
from local_dp.curator.base import Mechanism
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.points.learner import PointLearner
from local_dp.curator.points.proper import ProperPointLearner
from local_dp.curator.sanitizers.cells import NoisyCounts, look_up
from local_dp.curator.sanitizers.floats import BITS, points_of, value_of
from local_dp.curator.sanitizers.histogram import ThresholdedHistogram
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.per_cell import PerCellHistogram
from local_dp.curator.sanitizers.sparse_medians import SparseMedians
from local_dp.curator.sanitizers.steps import Steps
from local_dp.curator.thresholds.base import errors_by_gap
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.pure import PureThresholds
from local_dp.curator.thresholds.rectangles import LabelledPoints, RankRectangles, Rectangle, inside
from local_dp.errors import InputError
from local_dp.loss import Loss
from local_dp.queries.questions import answers_of, parse
from local_dp.records import Records

MISSING = "(missing)"


class How(TypedDict, total=False):
    """How the curator is to release."""

    epsilon: float
    delta: float | None
    seed: int | None
    private: bool


def histogram(table: Table, column: str, **how: Unpack[How]) -> Release:
    """How often each value of a column occurs, where that is told; nobody need say which values there are."""
    return release(Histogram(column), records_of(table), Trust(**how))


def quantiles(table: Table, column: str, *, levels: int = 3, **how: Unpack[How]) -> Release:
    """The quantiles 1/2^levels, 2/2^levels, ... of a column of numbers, without bounds: 3 levels are octiles."""
    return release(Quantiles(column, levels), records_of(table), Trust(**how))


def threshold(table: Table, column: str, label: str, *, alpha: float = 0.1, **how: Unpack[How]) -> Release:
    """The number from which on the label is 1: a column of 0 and 1, or a yes/no question such as "affairs > 0"."""
    return release(Threshold(column, label, alpha), records_of(table), Trust(**how))


def point(table: Table, column: str, label: str, **how: Unpack[How]) -> Release:
    """The one value at which the label is 1 most often, if it is ahead by enough."""
    return release(Point(column, label), records_of(table), Trust(**how))


def rectangle(table: Table, columns: Sequence[str], label: str, *, alpha: float = 0.1, **how: Unpack[How]) -> Release:
    """Bounds of several columns of numbers between which the label is 1."""
    return release(Rectangles(tuple(columns), label, alpha), records_of(table), Trust(**how))


def _numbers(records: Records, column: str) -> Floats:
    """A column without missing values. Raises InputError."""
    numbers = records.numbers(column)
    missing = int(np.isnan(numbers).sum())
    if missing:
        raise InputError(f"column {column!r} has {missing} missing numbers; leave those rows out of the table: how many there are is then public")
    return numbers


def _labels(records: Records, label: str) -> Ints:
    """A column of 0 and 1, or the answers to a question. Raises InputError for anything else."""
    if label not in records.columns:
        answers = answers_of(parse(label), records)
        if np.any(answers.unknown):
            raise InputError(f"{label!r} has no answer for {int(answers.unknown.sum())} records, where something is missing; leave those rows out of the table")
        return answers.yes.astype(np.int64)
    numbers = records.numbers(label)
    if not np.all((numbers == 0) | (numbers == 1)):
        raise InputError(f"column {label!r} has values other than 0 and 1; give a question about it, such as '{label} > 0'")
    return numbers.astype(np.int64)


@dataclass(frozen=True)
class Coded:
    """A column as points of 2^64: numbers in their order, texts by their place among those that occur."""

    points: Words
    value: Callable[[int], Any]


def _plain(point: int) -> float | int:
    """The number of a point, whole where it is."""
    value = value_of(point)
    return int(value) if value.is_integer() else value


def _coded(records: Records, column: str) -> Coded:
    values = records[column]
    if values.dtype.kind != "U":
        return Coded(points_of(_numbers(records, column)), _plain)
    texts, places = np.unique(values, return_inverse=True)
    return Coded(places.astype(np.uint64), lambda place: str(texts[place]) or MISSING)


class _OfValues:
    """A task about the values of one column, which may be texts."""

    column: str

    def check_pure(self, records: Records) -> None:
        """Raises InputError for texts: their domain has no end."""
        if records[self.column].dtype.kind == "U":
            raise InputError(f"column {self.column!r} is text, whose domain is endless, so there is no pure form; give a delta")


@dataclass(frozen=True)
class Histogram(_OfValues, Task[Multiset, NoisyCounts]):
    """The counts of a column's values."""

    column: str
    name = "histogram"

    def mechanism(self, trust: Trust) -> Mechanism[Multiset, NoisyCounts, Loss]:
        return PerCellHistogram(BITS, trust.epsilon, strangers=1) if trust.delta is None else ThresholdedHistogram(trust.epsilon, trust.delta)

    def database(self, records: Records) -> Multiset:
        return Multiset.of(_coded(records, self.column).points, BITS)

    def told(self, result: NoisyCounts, records: Records) -> dict[str, Any]:
        value = _coded(records, self.column).value
        pairs = zip(result.values.tolist(), result.counts.tolist(), strict=True)
        rows = sorted(([value(point), count, count / result.size] for point, count in pairs), key=lambda row: -row[1])  # ties as they come
        return {
            "columns": [self.column, "count", "share"],
            "rows": rows,
            "explanation": f"{len(rows):,} values of {self.column} are told; what is rare is not, and no list of values was needed.",
            "drawn": {"axis": "records", "rows": self.column},
        }

    def truth(self, result: NoisyCounts, records: Records) -> dict[str, Any]:
        held = self.database(records)
        order = np.argsort(-result.counts, kind="stable")
        true = look_up(held.values, held.counts, result.values)[order].tolist()
        return {"largest_error": result.worst_error(held), "values_that_occur": len(held.values), DRAWN: true}


@dataclass(frozen=True)
class Quantiles(Task[Multiset, Steps]):
    """The quantiles of a column of numbers at multiples of 2^-levels."""

    column: str
    levels: int = 3
    name = "quantiles"

    @property
    def shares(self) -> list[float]:
        """Which quantiles."""
        return [place / (1 << self.levels) for place in range(1, 1 << self.levels)]

    def mechanism(self, trust: Trust) -> Mechanism[Multiset, Steps, Loss]:
        return Medians(trust.epsilon, self.levels) if trust.delta is None else SparseMedians(trust.epsilon, self.levels, delta=trust.delta)

    def database(self, records: Records) -> Multiset:
        return Multiset.of(points_of(_numbers(records, self.column)), BITS)

    def told(self, result: Steps, records: Records) -> dict[str, Any]:
        return {
            "columns": ["share at most", self.column],
            "rows": [[share, _plain(result.quantile(share) - 1)] for share in self.shares],
            "explanation": "No bounds were declared, and none were read from the data.",
            "drawn": {"axis": self.column, "rows": "share of the records at most"},
        }

    def truth(self, result: Steps, records: Records) -> dict[str, Any]:
        true = np.quantile(_numbers(records, self.column), self.shares, method="inverted_cdf").tolist()
        return {"largest_error_of_a_share": result.error(self.database(records)), DRAWN: true}


@dataclass(frozen=True)
class Threshold(Task[LabelledMultiset, int]):
    """From which number on a label is 1."""

    column: str
    label: str
    alpha: float = 0.1
    name = "threshold"

    def mechanism(self, trust: Trust) -> Mechanism[LabelledMultiset, int, Loss]:
        return PureThresholds(trust.epsilon) if trust.delta is None else DyadicThresholds(BITS, self.alpha, trust.epsilon, trust.delta, agnostic=True)

    def database(self, records: Records) -> LabelledMultiset:
        return LabelledMultiset.of(points_of(_numbers(records, self.column)), _labels(records, self.label), BITS)

    def told(self, result: int, records: Records) -> dict[str, Any]:
        found = _plain(result)
        return {"columns": [f"{self.column} from", "label"], "rows": [[found, 1]], "explanation": f"Say 1 where {self.column} is {found} or more, else 0."}

    def truth(self, result: int, records: Records) -> dict[str, Any]:
        held = self.database(records)
        errors = errors_by_gap(held)
        below = int(np.sum(held.values < np.uint64(min(result, (1 << BITS) - 1))))
        return {"errors": int(errors[below]), "errors_of_the_best": int(errors.min())}


@dataclass(frozen=True)
class Point(_OfValues, Task[LabelledMultiset, int | None]):
    """At which value a label is 1."""

    column: str
    label: str
    name = "point"

    def mechanism(self, trust: Trust) -> Mechanism[LabelledMultiset, int | None, Loss]:
        return ProperPointLearner(trust.epsilon) if trust.delta is None else PointLearner(trust.epsilon, trust.delta)

    def database(self, records: Records) -> LabelledMultiset:
        return LabelledMultiset.of(_coded(records, self.column).points, _labels(records, self.label), BITS)

    def told(self, result: int | None, records: Records) -> dict[str, Any]:
        value = None if result is None else _coded(records, self.column).value(result)
        said = "No value is ahead by enough to be told: say 0 everywhere." if result is None else f"Say 1 where {self.column} is {value}, else 0."
        return {"columns": [self.column, "label"], "rows": [] if result is None else [[value, 1]], "explanation": said}

    def truth(self, result: int | None, records: Records) -> dict[str, Any]:
        held = self.database(records)
        leading = int(held.ones.max(initial=0))
        found = {} if result is None else {"records_of_it": int(held.ones[held.values == np.uint64(result)].sum())}
        return {**found, "records_of_the_most_frequent": leading}


@dataclass(frozen=True)
class Rectangles(Task[LabelledPoints, Rectangle]):
    """Between which bounds of several columns a label is 1."""

    columns: tuple[str, ...]
    label: str
    alpha: float = 0.1
    name = "rectangle"

    def mechanism(self, trust: Trust) -> Mechanism[LabelledPoints, Rectangle, Loss]:
        if trust.delta is None:
            raise InputError("a rectangle has no pure form here; give a delta")
        return RankRectangles(BITS, len(self.columns), self.alpha, trust.epsilon, trust.delta)

    def database(self, records: Records) -> LabelledPoints:
        points = np.stack([points_of(_numbers(records, column)) for column in self.columns], axis=1)
        return LabelledPoints(BITS, points, _labels(records, self.label))

    def told(self, result: Rectangle, records: Records) -> dict[str, Any]:
        rows = [[column, _plain(low), _plain(high)] for column, (low, high) in zip(self.columns, result, strict=False)]
        said = (
            "Say 1 where every column lies between its bounds, else 0."
            if rows
            else "There is no answer: say 0 everywhere; use more records or a larger epsilon."
        )
        return {"columns": ["column", "from", "to"], "rows": rows, "explanation": said}

    def truth(self, result: Rectangle, records: Records) -> dict[str, Any]:
        held = self.database(records)
        return {"errors": int(np.sum(inside(result, held.points) != (held.labels == 1))), "records_labelled_1": int(held.labels.sum())}
