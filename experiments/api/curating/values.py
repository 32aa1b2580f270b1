"""Questions about the values of a column: the count of each value, quantiles, the median, and where a label is 1."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np

from local_dp.arrays import Bools, Floats, Ints, Words
from local_dp.curator.clipped import laplace_error
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
from local_dp.experiments.api.trusted import DRAWN, ByMechanism, Task, measured
from local_dp.loss import Loss, nano_epsilon
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.queries.grammar import parse
from local_dp.queries.questions import answers_of
from local_dp.queries.tables import Question as Asked
from local_dp.records import Records, absent

MISSING = "(missing)"


def missing_option(allowed: Sequence[str], meaning: str) -> Any:
    """The policy for missing values."""
    return option("refuse", f"A row without a value: {' or '.join(allowed)} ({meaning})", metavar="HOW")


@dataclass(frozen=True)
class Yes:
    """Where a column of 0 and 1 is 1, or a question is answered yes; where a value is neither, and where it is missing."""

    yes: Bools
    other: Bools
    missing: Bools

    @classmethod
    def of(cls, records: Records, label: str) -> "Yes":
        """Raises InputError for an unknown column, or one of the wrong type."""
        if label not in records.columns:
            answers = answers_of(parse(label), records)
            return cls(answers.yes, np.zeros(len(records), dtype=np.bool_), answers.unknown)
        numbers = records.numbers(label)
        missing = np.isnan(numbers)
        return cls(numbers == 1, ~missing & (numbers != 0) & (numbers != 1), missing)


def check_label(table: Launch, label: str, missing: str, missing_choices: str, other: str, other_choices: str) -> None:
    """Raises InputError unless the policies cover every value of a label."""
    if label not in table.records.columns:
        table.refuse_open(missing, Asked(label), missing_choices)
        return
    table.records.numbers(label)
    choices = f"{other_choices}, or a question about it, such as '{label} > 0'"
    table.refuse(other, lambda: Yes.of(table.records, label).other, f"{label!r} has a value other than 0 and 1", choices)
    table.refuse_missing(missing, label, missing_choices)


@dataclass(frozen=True)
class Coded:
    """A column as points of 2^64: numbers in order, texts by their place among the texts in the table."""

    points: Words
    value: Callable[[int], Any]


def plain(point: int) -> float | int | None:
    """The number of a point, an int if it is whole and its digits are; None beyond all numbers."""
    value = value_of(point)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


_WHOLE = 2.0**53  # a larger float stands for several whole numbers
_BEYOND = " An unknown one lies beyond all numbers: the noise decides among so few records; take more, or a larger epsilon."
_NOTHING = (1 << BITS) - 1  # the point of a missing number: no number has it


def coded(records: Records, column: str) -> Coded:
    values = records[column]
    if values.dtype.kind != "U":
        missing = absent(values)
        points = points_of(np.where(missing, 0.0, records.numbers(column)))
        return Coded(np.where(missing, np.uint64(_NOTHING), points), lambda point: MISSING if point == _NOTHING else plain(point))
    texts, places = np.unique(values, return_inverse=True)
    return Coded(places.astype(np.uint64), lambda place: str(texts[place]) or MISSING)


D = TypeVar("D")
R = TypeVar("R")
NO_BOUNDS = "No bounds were declared, and none were read from the data."


def check_domain(delta: float | None, table: Launch, column: str) -> None:
    """Raises InputError for texts without a delta: their domain is infinite."""
    if delta is None and table.records[column].dtype.kind == "U":
        raise InputError(f"column {column!r} is text, whose domain is infinite, so there is no pure form; give a delta")


@dataclass(frozen=True)
class Histogram(ByMechanism[Multiset, NoisyCounts]):
    """Releases how often each value of a column occurs, without a list of its values. Rare values are withheld."""

    column: str = option(help="The column: numbers or texts", metavar="NAME")
    _: KW_ONLY
    missing: str = missing_option(("refuse", "category"), "a value of its own, as it always is among texts")
    name: ClassVar[str] = "histogram"
    example: ClassVar[str] = "histogram --records fair.csv --column occupation"

    def task(self, table: Launch) -> Task[Multiset, NoisyCounts]:
        check_policy("missing", self.missing, ("refuse", "category"))
        if table.records[self.column].dtype.kind != "U":
            table.refuse_missing(self.missing, self.column, "missing=category (a value of its own)")
        check_domain(self.delta, table, self.column)
        return self

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
            **measured([row[1] for row in rows], *laplace_error(Fraction(nano_epsilon(self.epsilon), 2)), (0, result.size)),
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
    _: KW_ONLY
    missing: str = missing_option(("refuse", "low", "high"), "below or above every number")

    def task(self, table: Launch) -> Task[Multiset, R]:
        check_policy("missing", self.missing, ("refuse", "low", "high"))
        table.records.numbers(self.column)
        table.refuse_missing(self.missing, self.column, "missing=low (it counts as below every number) or missing=high")
        return self

    def numbers(self, records: Records) -> Floats:
        numbers = records.numbers(self.column)
        return np.where(np.isnan(numbers), -np.inf if self.missing == "low" else np.inf, numbers)

    def database(self, records: Records) -> Multiset:
        return Multiset.of(points_of(self.numbers(records)), BITS)


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
        values = [plain(result.quantile(share) - 1) for share in self.shares]
        return {
            "columns": ["share at most", self.column],
            "rows": [[share, value] for share, value in zip(self.shares, values, strict=True)],
            "explanation": f"{NO_BOUNDS}{_BEYOND if None in values else ''}",
            **measured(values),
            "drawn": {"axis": self.column, "rows": "share of the records at most"},
        }

    def truth(self, result: Steps, records: Records) -> dict[str, Any]:
        true = np.quantile(self.numbers(records), self.shares, method="inverted_cdf").tolist()
        return {"largest_error_of_a_share": result.error(self.database(records)), DRAWN: true}


@dataclass(frozen=True)
class Median(OfNumbers[int]):
    """Releases the median of a column of numbers, without declared bounds. An even number of records has the lower median."""

    name: ClassVar[str] = "median"
    example: ClassVar[str] = "median --records fair.csv --column affairs"

    def mechanism(self) -> Mechanism[Multiset, int, Loss]:
        return ExponentialMedian(self.epsilon)

    def to_data(self, result: int, records: Records) -> dict[str, Any]:
        explanation = f"{NO_BOUNDS} The release is pure, also with a delta.{_BEYOND if plain(result) is None else ''}"
        return {
            "columns": ["column", "median"],
            "rows": [[self.column, plain(result)]],
            "explanation": explanation,
            "drawn": {"axis": self.column, "rows": ""},
            **measured(plain(result)),
        }

    def truth(self, result: int, records: Records) -> dict[str, Any]:
        numbers, median = np.sort(self.numbers(records)), value_of(result)
        middle, below = (len(numbers) - 1) // 2, int(np.searchsorted(numbers, median))
        through = int(np.searchsorted(numbers, median, "right"))
        return {"median": numbers[middle].item(), "records_between": max(0, below - middle - 1, middle - through)}


LABEL = "A column of 0 and 1, or a yes/no question such as 'affairs > 0'"
ALPHA = "The share of errors to stay within"


@dataclass(frozen=True, kw_only=True)
class LabelPolicies(ByMechanism[D, R]):
    """What a label may lack."""

    figureless = "a rule"
    missing: str = missing_option(("refuse", "exclude"), "it counts as a row that every answer predicts right")
    other: str = option("refuse", "A label other than 0 and 1: refuse or no (it counts as 0)", metavar="HOW")


class Labelled(LabelPolicies[D, R]):
    """A question about a label and the values of some columns. A row that lacks one counts as label 0 of a point below every number."""

    column: str
    label: str
    texts: ClassVar[bool] = False

    @property
    def of(self) -> Sequence[str]:
        """The columns."""
        return (self.column,)

    def task(self, table: Launch) -> Task[D, R]:
        check_policy("missing", self.missing, ("refuse", "exclude"))
        check_policy("other", self.other, ("refuse", "no"))
        for column in self.of:
            if not self.texts:
                table.records.numbers(column)
            if table.records[column].dtype.kind != "U":
                table.refuse_missing(self.missing, column, _EXCLUDE)
        check_label(table, self.label, self.missing, _EXCLUDE, self.other, "other=no (it counts as 0)")
        return self

    def labelled(self, records: Records) -> tuple[list[Words], Ints]:
        """The points of each column, and the labels."""
        label, lost = Yes.of(records, self.label), np.zeros(len(records), dtype=np.bool_)
        for column in self.of:
            lost |= absent(records[column]) & (records[column].dtype.kind != "U")
        lost |= label.missing
        points = [np.where(lost, np.uint64(0), coded(records, column).points) for column in self.of]
        return points, np.where(lost, 0, label.yes).astype(np.int64)


_EXCLUDE = "missing=exclude (every answer predicts it right)"


@dataclass(frozen=True)
class Threshold(Labelled[LabelledMultiset, int]):
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
        (points,), labels = self.labelled(records)
        return LabelledMultiset.of(points, labels, BITS)

    def to_data(self, result: int, records: Records) -> dict[str, Any]:
        start = plain(result)
        rule = f"Predict {int(value_of(result) < 0)} everywhere." if start is None else f"Predict 1 where {self.column} is {start} or more, else 0."
        return {"columns": [f"{self.column} from", "label"], "rows": [[start, 1]], "explanation": rule, **measured(start)}

    def truth(self, result: int, records: Records) -> dict[str, Any]:
        database = self.database(records)
        errors = errors_by_gap(database)
        below = int(np.sum(database.values < np.uint64(min(result, (1 << BITS) - 1))))
        return {"errors": int(errors[below]), "errors_of_the_best": int(errors.min())}


@dataclass(frozen=True)
class Point(Labelled[LabelledMultiset, int | None]):
    """Releases the one value at which a label is 1 most often, if it is far enough ahead of the others."""

    column: str = option(help="The column: numbers or texts", metavar="NAME")
    label: str = option(help=LABEL, metavar="Y")
    texts: ClassVar[bool] = True
    name: ClassVar[str] = "point"
    example: ClassVar[str] = "point --records fair.csv --column occupation --label 'affairs > 0'"

    def mechanism(self) -> Mechanism[LabelledMultiset, int | None, Loss]:
        return ProperPointLearner(self.epsilon) if self.delta is None else PointLearner(self.epsilon, self.delta)

    def task(self, table: Launch) -> Task[LabelledMultiset, int | None]:
        check_domain(self.delta, table, self.column)
        return super().task(table)

    def database(self, records: Records) -> LabelledMultiset:
        (points,), labels = self.labelled(records)
        return LabelledMultiset.of(points, labels, BITS)

    def to_data(self, result: int | None, records: Records) -> dict[str, Any]:
        value = None if result is None else coded(records, self.column).value(result)
        rule = "No value is far enough ahead: predict 0 everywhere." if result is None else f"Predict 1 where {self.column} is {value}, else 0."
        return {"columns": [self.column, "label"], "rows": [] if result is None else [[value, 1]], "explanation": rule, **measured(value)}

    def truth(self, result: int | None, records: Records) -> dict[str, Any]:
        database = self.database(records)
        leading = int(database.ones.max(initial=0))
        count = {} if result is None else {"records_of_it": int(database.ones[database.values == np.uint64(result)].sum())}
        return {**count, "records_of_the_most_frequent": leading}


@dataclass(frozen=True)
class Rectangles(Labelled[LabelledPoints, Rectangle]):
    """Releases bounds of one or more columns of numbers between which a label is 1."""

    columns: Sequence[str] = option(help="A column of numbers; may be repeated", name="--column --columns", metavar="NAME")
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

    @property
    def of(self) -> Sequence[str]:
        return self.columns

    def database(self, records: Records) -> LabelledPoints:
        points, labels = self.labelled(records)
        return LabelledPoints(BITS, np.stack(points, axis=1), labels)

    def to_data(self, result: Rectangle, records: Records) -> dict[str, Any]:
        rows = [[column, plain(low), plain(high)] for column, (low, high) in zip(self.columns, result, strict=False)]
        rule = "Predict 1 where every column lies between its bounds, else 0."
        nothing = "There is no answer: predict 0 everywhere; use more records or a larger epsilon."
        return {"columns": ["column", "from", "to"], "rows": rows, "explanation": rule if rows else nothing, **measured([row[1:] for row in rows])}

    def truth(self, result: Rectangle, records: Records) -> dict[str, Any]:
        database = self.database(records)
        errors = int(np.sum(inside(result, database.points) != (database.labels == 1)))
        return {"errors": errors, "records_labelled_1": int(database.labels.sum())}
