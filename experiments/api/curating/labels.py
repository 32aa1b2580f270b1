"""Questions about a label: the threshold, the value or the rectangle where it is 1."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import BITS, LabelledMultiset, points_of
from local_dp.curator.points.learner import PointLearner, ProperPointLearner
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.learner import PureThresholds, errors_by_gap
from local_dp.curator.thresholds.rectangles import LabelledPoints, RankRectangles, Rectangle, inside
from local_dp.errors import InputError
from local_dp.experiments.api.curating.columns import coded, labels_in, numbers_of, plain
from local_dp.experiments.api.curating.values import OfValues
from local_dp.experiments.api.declare import option
from local_dp.experiments.api.trusted import ByMechanism
from local_dp.loss import Loss
from local_dp.records import Records

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
