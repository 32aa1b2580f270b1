"""Questions about a label of 0 and 1: the threshold, the point and the rectangle where it is 1; and
where a column or a question says yes."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol, TypeVar

import numpy as np

from local_dp.api.curating.values import NO_VALUE, check_domain, coded, of_numbers, plain
from local_dp.api.declare import option, policy
from local_dp.api.trusted import ByMechanism, Task, bounded, measured
from local_dp.arrays import Bools, Ints, Words
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import BITS, LabelledMultiset, value_of
from local_dp.curator.points.learner import PointLearner, ProperPointLearner
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.learner import PureThresholds, errors_by_gap
from local_dp.curator.thresholds.rectangles import LabelledPoints, RankRectangles, Rectangle, inside
from local_dp.errors import InputError
from local_dp.loss import Loss
from local_dp.protocols.local_protocol import PlainData
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.grammar import parse
from local_dp.queries.questions import answers_of
from local_dp.queries.tables import Question as Asked
from local_dp.records import Records, absent

D = TypeVar("D")
R = TypeVar("R")


@dataclass(frozen=True)
class Yes:
    """Where a column of 0 and 1 is 1, or a question is answered yes; where a value is neither, and
    where it is missing."""

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


class Policies(Protocol):
    """A question with policies for missing and for other values."""

    @property
    def missing(self) -> str: ...

    @property
    def other(self) -> str: ...

    def choices(self, name: str) -> str: ...


def check_label(table: Launch, label: str, asking: Policies) -> None:
    """Raises InputError unless the policies cover every value of a label."""
    if label not in table.types.columns:
        table.refuse_open(asking.missing, Asked(label), asking.choices("missing"))
        return
    table.types.numbers(label)
    choices = f"{asking.choices('other')}, or a question about it, such as '{label} > 0'"
    table.refuse(
        asking.other,
        lambda part: Yes.of(part, label).other,
        f"{label!r} has a value other than 0 and 1",
        choices,
    )
    table.refuse_missing(asking.missing, label, asking.choices("missing"))


LABEL = "Column of 0 and 1, or a yes/no question"
ALPHA = "Share of errors to stay within"
RIGHT = "every answer predicts it right"


@dataclass(frozen=True, kw_only=True)
class LabelPolicies(ByMechanism[D, R]):
    """What a label may lack."""

    figureless = "a rule"
    missing: str = policy(NO_VALUE, exclude=RIGHT)
    other: str = policy("labels other than 0 and 1", exclude=RIGHT)


class Labelled(LabelPolicies[D, R]):
    """A question about a label and the values of some columns. A row that lacks one counts as label
    0 of a point below every number."""

    column: str
    label: str
    texts = False

    @property
    def of(self) -> Sequence[str]:
        """The columns."""
        return (self.column,)

    def task(self, table: Launch) -> Task[D, R]:
        for column in self.of:
            if not self.texts:
                table.types.numbers(column)
            table.refuse_missing(self.missing, column, self.choices("missing"))
        check_label(table, self.label, self)
        return self

    def labelled(self, records: Records) -> tuple[list[Words], Ints]:
        """The points of each column, and the labels."""
        label = Yes.of(records, self.label)
        gaps = np.logical_or.reduce(
            [label.missing, label.other, *(absent(records[column]) for column in self.of)]
        )
        codes = (
            coded(records, column).points(records) if self.texts else of_numbers(records, column)
            for column in self.of
        )
        points = [np.where(gaps, np.uint64(0), each) for each in codes]
        return points, np.where(gaps, 0, label.yes).astype(np.int64)


class OfOneColumn(Labelled[LabelledMultiset, R]):
    """A question about a label and the values of one column."""

    def database(self, records: Records) -> LabelledMultiset:
        (points,), labels = self.labelled(records)
        return LabelledMultiset.of(points, labels, BITS)


@dataclass(frozen=True)
class Threshold(OfOneColumn[int]):
    """Releases the number from which on a label is 1."""

    column: str = option(brief="The column of numbers", metavar="NAME")
    label: str = option(brief=LABEL, metavar="Y")
    _: KW_ONLY
    alpha: float = option(0.1, ALPHA, metavar="A")
    name = "threshold"
    summary = "Learns the number from which on a label is 1"
    example = "threshold --records fair.csv --column age --label 'yrs_married > 5'"

    def mechanism(self) -> PureThresholds | DyadicThresholds:
        if self.delta is None:
            return PureThresholds(self.epsilon)
        return DyadicThresholds(BITS, self.alpha, self.epsilon, self.delta, agnostic=True)

    def _excess(self, size: int) -> int | None:
        learner = self.mechanism()
        if isinstance(learner, DyadicThresholds):
            return learner.excess(size)
        most = learner.choice.shortfall((1 << BITS) + 1)
        return most if most < size // 2 else None

    def to_data(self, result: int, records: Records) -> PlainData:
        start = plain(result)
        rule = (
            f"Predict {int(value_of(result) < 0)} everywhere."
            if start is None
            else f"Predict 1 where {self.column} is {start} or more, else 0."
        )
        most = self._excess(len(records))
        error = bounded(
            most,
            f"the rule errs on at most {most} records more than the best one does, for any table.",
        )
        return {
            "columns": [f"{self.column} from", "label"],
            "rows": [[start, 1]],
            "explanation": rule,
            **measured(start),
            **error,
        }

    def truth(self, result: int, records: Records) -> PlainData:
        database = self.database(records)
        errors = errors_by_gap(database)
        below = int(np.sum(database.values < np.uint64(min(result, (1 << BITS) - 1))))
        return {"errors": int(errors[below]), "errors_of_the_best": int(errors.min())}


@dataclass(frozen=True)
class Point(OfOneColumn[int | None]):
    """Releases the one value at which a label is 1 most often, if it is far enough ahead of the
    others."""

    column: str = option(brief="The column: numbers or texts", metavar="NAME")
    label: str = option(brief=LABEL, metavar="Y")
    texts = True
    name = "point"
    summary = "Learns the one value at which a label is 1 most often"
    example = "point --records fair.csv --column occupation --label 'affairs > 0'"

    def mechanism(self) -> Mechanism[LabelledMultiset, int | None, Loss]:
        return (
            ProperPointLearner(self.epsilon)
            if self.delta is None
            else PointLearner(self.epsilon, self.delta)
        )

    def task(self, table: Launch) -> Task[LabelledMultiset, int | None]:
        check_domain(self.delta, table, self.column)
        return super().task(table)

    def to_data(self, result: int | None, records: Records) -> PlainData:
        value = None if result is None else coded(records, self.column).value(result)
        rule = (
            "No value is far enough ahead: predict 0 everywhere."
            if result is None
            else f"Predict 1 where {self.column} is {value}, else 0."
        )
        return {
            "columns": [self.column, "label"],
            "rows": [] if result is None else [[value, 1]],
            "explanation": rule,
            **measured(value),
            **self._error(result, len(records)),
        }

    def _error(self, result: int | None, size: int) -> PlainData:
        """Of a stable choice: a value that is released is the most frequent one; without one, the
        lead is small, or it would have been released."""
        if self.delta is None:
            most = ProperPointLearner(self.epsilon).choice.shortfall(1 << BITS)
            text = (
                f"the most frequent value has at most {most:,} records of label 1 more than this "
                "one, for any table."
            )
            return bounded(most if most < size // 2 else None, text)
        if result is not None:
            return {
                "bound": 0,
                "error": "No other value has more records of label 1: that is certain.",
            }
        lead = PointLearner(self.epsilon, self.delta).choice.certain() - 1
        return bounded(
            lead, f"the most frequent value has a lead of at most {lead:,} records of label 1."
        )

    def truth(self, result: int | None, records: Records) -> PlainData:
        database = self.database(records)
        leading = int(database.ones.max(initial=0))
        count = (
            {}
            if result is None
            else {"records_of_it": int(database.ones[database.values == np.uint64(result)].sum())}
        )
        return {**count, "records_of_the_most_frequent": leading}


@dataclass(frozen=True)
class Rectangles(Labelled[LabelledPoints, Rectangle]):
    """Releases bounds of one or more columns of numbers between which a label is 1."""

    columns: Sequence[str] = option(
        brief="A column of numbers; may be repeated", name="--column --columns", metavar="NAME"
    )
    label: str = option(brief=LABEL, metavar="Y")
    _: KW_ONLY
    alpha: float = option(0.1, ALPHA, metavar="A")
    name = "rectangle"
    summary = "Learns bounds of columns between which a label is 1"
    example = (
        "rectangle --records fair.csv --column age --column yrs_married --label 'age > 25 and "
        "yrs_married > 5'"
    )

    def check(self) -> None:
        if not self.columns:
            raise InputError("a rectangle needs at least one column")

    def mechanism(self) -> RankRectangles:
        if self.delta is None:
            raise InputError("a rectangle has no pure form here; give a delta")
        return RankRectangles(BITS, len(self.columns), self.alpha, self.epsilon, self.delta)

    @property
    def of(self) -> Sequence[str]:
        return self.columns

    def database(self, records: Records) -> LabelledPoints:
        points, labels = self.labelled(records)
        return LabelledPoints(BITS, np.stack(points, axis=1), labels)

    def to_data(self, result: Rectangle, records: Records) -> PlainData:
        rows = [
            [column, plain(low), plain(high)]
            for column, (low, high) in zip(self.columns, result, strict=False)
        ]
        rule = "Predict 1 where every column lies between its bounds, else 0."
        nothing = "There is no answer: predict 0 everywhere; use more records or a larger epsilon."
        most = self.mechanism().lost(len(records))
        text = (
            f"at most {most} records of label 1 lie outside, for any table; the number of label 0 "
            "inside has no bound."
        )
        error = (
            bounded(most, text)
            if rows
            else {"bound": None, "error": "Without an answer there is no error to bound."}
        )
        return {
            "columns": ["column", "from", "to"],
            "rows": rows,
            "explanation": rule if rows else nothing,
            **measured([row[1:] for row in rows]),
            **error,
        }

    def truth(self, result: Rectangle, records: Records) -> PlainData:
        database = self.database(records)
        errors = int(np.sum(inside(result, database.points) != (database.labels == 1)))
        return {"errors": errors, "records_labelled_1": int(database.labels.sum())}
