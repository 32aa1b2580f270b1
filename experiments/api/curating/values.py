"""Questions about the values of a column: the count of each value, quantiles, the median, and where a label is 1."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import BITS, LabelledMultiset, Multiset, points_of, value_of
from local_dp.curator.points.learner import PointLearner, ProperPointLearner
from local_dp.curator.sanitizers.medians import Medians, SparseMedians, Steps
from local_dp.curator.sanitizers.point_counts import NoisyCounts, PerCellHistogram, ThresholdedHistogram, look_up
from local_dp.curator.sensitivity.mechanisms import ExponentialMedian
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.learner import PureThresholds, errors_by_gap
from local_dp.curator.thresholds.rectangles import LabelledPoints, RankRectangles, Rectangle, inside
from local_dp.errors import InputError
from local_dp.experiments.api.declare import option
from local_dp.experiments.api.trusted import DRAWN, ByMechanism, Task
from local_dp.loss import Loss
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.questions import answers_of, parse
from local_dp.records import Records

MISSING = "(missing)"


def numbers_of(records: Records, column: str) -> Floats:
    """A column without missing values. Raises InputError."""
    numbers = records.numbers(column)
    missing = int(np.isnan(numbers).sum())
    if missing:
        raise InputError(f"column {column!r} has {missing} missing numbers; remove those rows from the table; their number is then public")
    return numbers


def labels_in(records: Records, label: str) -> Ints:
    """A column of 0 and 1, or the answers to a question. Raises InputError for anything else."""
    if label not in records.columns:
        answers = answers_of(parse(label), records)
        if np.any(answers.unknown):
            raise InputError(f"{label!r} has no answer for {int(answers.unknown.sum())} records with missing values; remove those rows from the table")
        return answers.yes.astype(np.int64)
    numbers = records.numbers(label)
    if not np.all((numbers == 0) | (numbers == 1)):
        raise InputError(f"column {label!r} has values other than 0 and 1; give a question about it, such as '{label} > 0'")
    return numbers.astype(np.int64)


@dataclass(frozen=True)
class Coded:
    """A column as points of 2^64: numbers in order, texts by their place among the texts in the table."""

    points: Words
    value: Callable[[int], Any]


def plain(point: int) -> float | int:
    """The number of a point; an int if it is whole."""
    value = value_of(point)
    return int(value) if value.is_integer() else value


def coded(records: Records, column: str) -> Coded:
    values = records[column]
    if values.dtype.kind != "U":
        return Coded(points_of(numbers_of(records, column)), plain)
    texts, places = np.unique(values, return_inverse=True)
    return Coded(places.astype(np.uint64), lambda place: str(texts[place]) or MISSING)


D = TypeVar("D")
R = TypeVar("R")
NO_BOUNDS = "No bounds were declared, and none were read from the data."


class OfValues(ByMechanism[D, R]):
    """A question about the values of one column, which may be texts."""

    column: str

    def task(self, table: Launch) -> Task[D, R]:
        """Raises InputError for texts without a delta: their domain is infinite."""
        if self.delta is None and table.records[self.column].dtype.kind == "U":
            raise InputError(f"column {self.column!r} is text, whose domain is infinite, so there is no pure form; give a delta")
        return self


@dataclass(frozen=True)
class Histogram(OfValues[Multiset, NoisyCounts]):
    """Releases how often each value of a column occurs, without a list of its values. Rare values are withheld."""

    column: str = option(help="The column: numbers or texts", metavar="NAME")
    name: ClassVar[str] = "histogram"
    example: ClassVar[str] = "histogram --records fair.csv --column occupation"

    def mechanism(self) -> Mechanism[Multiset, NoisyCounts, Loss]:
        return PerCellHistogram(BITS, self.epsilon, strangers=1) if self.delta is None else ThresholdedHistogram(self.epsilon, self.delta)

    def database(self, records: Records) -> Multiset:
        return Multiset.of(coded(records, self.column).points, BITS)

    def to_data(self, result: NoisyCounts, records: Records) -> dict[str, Any]:
        value = coded(records, self.column).value
        pairs = zip(result.values.tolist(), result.counts.tolist(), strict=True)
        rows = sorted(([value(point), count, count / result.size] for point, count in pairs), key=lambda row: -row[1])  # ties as they come
        return {
            "columns": [self.column, "count", "share"],
            "rows": rows,
            "explanation": f"{len(rows):,} values of {self.column} are published; rare ones are withheld.",
            "drawn": {"axis": "records", "rows": self.column},
        }

    def truth(self, result: NoisyCounts, records: Records) -> dict[str, Any]:
        database = self.database(records)
        order = np.argsort(-result.counts, kind="stable")
        true = look_up(database.values, database.counts, result.values)[order].tolist()
        return {"largest_error": result.worst_error(database), "values_that_occur": len(database.values), DRAWN: true}


@dataclass(frozen=True)
class OfNumbers(ByMechanism[Multiset, R]):
    """A question about a column of numbers."""

    column: str = option(help="The column of numbers", metavar="NAME")

    def database(self, records: Records) -> Multiset:
        return Multiset.of(points_of(numbers_of(records, self.column)), BITS)


@dataclass(frozen=True)
class Quantiles(OfNumbers[Steps]):
    """Releases quantiles of a column of numbers, without declared bounds."""

    levels: int = option(3, "Quantiles at multiples of 2^-L: 1 gives the median, 3 the octiles", metavar="L")
    name: ClassVar[str] = "quantiles"
    example: ClassVar[str] = "quantiles --records fair.csv --column affairs --levels 3"

    @property
    def shares(self) -> list[float]:
        return [place / (1 << self.levels) for place in range(1, 1 << self.levels)]

    def mechanism(self) -> Mechanism[Multiset, Steps, Loss]:
        return Medians(self.epsilon, self.levels) if self.delta is None else SparseMedians(self.epsilon, self.levels, delta=self.delta)

    def to_data(self, result: Steps, records: Records) -> dict[str, Any]:
        return {
            "columns": ["share at most", self.column],
            "rows": [[share, plain(result.quantile(share) - 1)] for share in self.shares],
            "explanation": NO_BOUNDS,
            "drawn": {"axis": self.column, "rows": "share of the records at most"},
        }

    def truth(self, result: Steps, records: Records) -> dict[str, Any]:
        true = np.quantile(numbers_of(records, self.column), self.shares, method="inverted_cdf").tolist()
        return {"largest_error_of_a_share": result.error(self.database(records)), DRAWN: true}


@dataclass(frozen=True)
class Median(OfNumbers[int]):
    """Releases the median of a column of numbers, without declared bounds. An even number of records has the lower median."""

    name: ClassVar[str] = "median"
    example: ClassVar[str] = "median --records fair.csv --column affairs"

    def mechanism(self) -> Mechanism[Multiset, int, Loss]:
        return ExponentialMedian(self.epsilon)

    def to_data(self, result: int, records: Records) -> dict[str, Any]:
        explanation = f"{NO_BOUNDS} The release is pure, also with a delta."
        return {"columns": ["column", "median"], "rows": [[self.column, plain(result)]], "explanation": explanation}

    def truth(self, result: int, records: Records) -> dict[str, Any]:
        numbers, median = np.sort(numbers_of(records, self.column)), plain(result)
        middle, below = (len(numbers) - 1) // 2, int(np.searchsorted(numbers, median))
        through = int(np.searchsorted(numbers, median, "right"))
        return {"median": numbers[middle].item(), "records_between": max(0, below - middle - 1, middle - through)}


LABEL = "A column of 0 and 1, or a yes/no question such as 'affairs > 0'"
ALPHA = "The share of errors to stay within"


@dataclass(frozen=True)
class Threshold(ByMechanism[LabelledMultiset, int]):
    """Releases the number from which on a label is 1."""

    column: str = option(help="The column of numbers", metavar="NAME")
    label: str = option(help=LABEL, metavar="Y")
    _: KW_ONLY
    alpha: float = option(0.1, ALPHA, metavar="A")
    name: ClassVar[str] = "threshold"
    example: ClassVar[str] = "threshold --records fair.csv --column age --label 'yrs_married > 5'"

    def mechanism(self) -> Mechanism[LabelledMultiset, int, Loss]:
        if self.delta is None:
            return PureThresholds(self.epsilon)
        return DyadicThresholds(BITS, self.alpha, self.epsilon, self.delta, agnostic=True)

    def database(self, records: Records) -> LabelledMultiset:
        return LabelledMultiset.of(points_of(numbers_of(records, self.column)), labels_in(records, self.label), BITS)

    def to_data(self, result: int, records: Records) -> dict[str, Any]:
        start = plain(result)
        return {"columns": [f"{self.column} from", "label"], "rows": [[start, 1]], "explanation": f"Predict 1 where {self.column} is {start} or more, else 0."}

    def truth(self, result: int, records: Records) -> dict[str, Any]:
        database = self.database(records)
        errors = errors_by_gap(database)
        below = int(np.sum(database.values < np.uint64(min(result, (1 << BITS) - 1))))
        return {"errors": int(errors[below]), "errors_of_the_best": int(errors.min())}


@dataclass(frozen=True)
class Point(OfValues[LabelledMultiset, int | None]):
    """Releases the one value at which a label is 1 most often, if it is far enough ahead of the others."""

    column: str = option(help="The column: numbers or texts", metavar="NAME")
    label: str = option(help=LABEL, metavar="Y")
    name: ClassVar[str] = "point"
    example: ClassVar[str] = "point --records fair.csv --column occupation --label 'affairs > 0'"

    def mechanism(self) -> Mechanism[LabelledMultiset, int | None, Loss]:
        return ProperPointLearner(self.epsilon) if self.delta is None else PointLearner(self.epsilon, self.delta)

    def database(self, records: Records) -> LabelledMultiset:
        return LabelledMultiset.of(coded(records, self.column).points, labels_in(records, self.label), BITS)

    def to_data(self, result: int | None, records: Records) -> dict[str, Any]:
        value = None if result is None else coded(records, self.column).value(result)
        rule = "No value is far enough ahead: predict 0 everywhere." if result is None else f"Predict 1 where {self.column} is {value}, else 0."
        return {"columns": [self.column, "label"], "rows": [] if result is None else [[value, 1]], "explanation": rule}

    def truth(self, result: int | None, records: Records) -> dict[str, Any]:
        database = self.database(records)
        leading = int(database.ones.max(initial=0))
        count = {} if result is None else {"records_of_it": int(database.ones[database.values == np.uint64(result)].sum())}
        return {**count, "records_of_the_most_frequent": leading}


@dataclass(frozen=True)
class Rectangles(ByMechanism[LabelledPoints, Rectangle]):
    """Releases bounds of one or more columns of numbers between which a label is 1."""

    columns: Sequence[str] = option(help="A column of numbers; may be repeated", name="--column", metavar="NAME")
    label: str = option(help=LABEL, metavar="Y")
    _: KW_ONLY
    alpha: float = option(0.1, ALPHA, metavar="A")
    name: ClassVar[str] = "rectangle"
    example: ClassVar[str] = "rectangle --records fair.csv --column age --column yrs_married --label 'age > 25 and yrs_married > 5'"

    def check(self) -> None:
        if not self.columns:
            raise InputError("a rectangle needs at least one column")

    def mechanism(self) -> Mechanism[LabelledPoints, Rectangle, Loss]:
        if self.delta is None:
            raise InputError("a rectangle has no pure form here; give a delta")
        return RankRectangles(BITS, len(self.columns), self.alpha, self.epsilon, self.delta)

    def database(self, records: Records) -> LabelledPoints:
        points = np.stack([points_of(numbers_of(records, column)) for column in self.columns], axis=1)
        return LabelledPoints(BITS, points, labels_in(records, self.label))

    def to_data(self, result: Rectangle, records: Records) -> dict[str, Any]:
        rows = [[column, plain(low), plain(high)] for column, (low, high) in zip(self.columns, result, strict=False)]
        rule = "Predict 1 where every column lies between its bounds, else 0."
        nothing = "There is no answer: predict 0 everywhere; use more records or a larger epsilon."
        return {"columns": ["column", "from", "to"], "rows": rows, "explanation": rule if rows else nothing}

    def truth(self, result: Rectangle, records: Records) -> dict[str, Any]:
        database = self.database(records)
        errors = int(np.sum(inside(result, database.points) != (database.labels == 1)))
        return {"errors": errors, "records_labelled_1": int(database.labels.sum())}
