"""What a curator tells of a label: where a column of numbers, a value, or several columns make it 1."""

from dataclasses import dataclass
from typing import Any

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
from local_dp.experiments.api.trusted import ByMechanism, Trust
from local_dp.loss import Loss
from local_dp.records import Records


@dataclass(frozen=True)
class Threshold(ByMechanism[LabelledMultiset, int]):
    """From which number on a label is 1."""

    column: str
    label: str
    alpha: float = 0.1
    name = "threshold"

    def mechanism(self, trust: Trust) -> Mechanism[LabelledMultiset, int, Loss]:
        return PureThresholds(trust.epsilon) if trust.delta is None else DyadicThresholds(BITS, self.alpha, trust.epsilon, trust.delta, agnostic=True)

    def database(self, records: Records) -> LabelledMultiset:
        return LabelledMultiset.of(points_of(numbers_of(records, self.column)), labels_in(records, self.label), BITS)

    def to_data(self, result: int, records: Records) -> dict[str, Any]:
        found = plain(result)
        return {"columns": [f"{self.column} from", "label"], "rows": [[found, 1]], "explanation": f"Say 1 where {self.column} is {found} or more, else 0."}

    def truth(self, result: int, records: Records) -> dict[str, Any]:
        held = self.database(records)
        errors = errors_by_gap(held)
        below = int(np.sum(held.values < np.uint64(min(result, (1 << BITS) - 1))))
        return {"errors": int(errors[below]), "errors_of_the_best": int(errors.min())}


@dataclass(frozen=True)
class Point(OfValues, ByMechanism[LabelledMultiset, int | None]):
    """At which value a label is 1."""

    column: str
    label: str
    name = "point"

    def mechanism(self, trust: Trust) -> Mechanism[LabelledMultiset, int | None, Loss]:
        return ProperPointLearner(trust.epsilon) if trust.delta is None else PointLearner(trust.epsilon, trust.delta)

    def database(self, records: Records) -> LabelledMultiset:
        return LabelledMultiset.of(coded(records, self.column).points, labels_in(records, self.label), BITS)

    def to_data(self, result: int | None, records: Records) -> dict[str, Any]:
        value = None if result is None else coded(records, self.column).value(result)
        said = "No value is ahead by enough to be told: say 0 everywhere." if result is None else f"Say 1 where {self.column} is {value}, else 0."
        return {"columns": [self.column, "label"], "rows": [] if result is None else [[value, 1]], "explanation": said}

    def truth(self, result: int | None, records: Records) -> dict[str, Any]:
        held = self.database(records)
        leading = int(held.ones.max(initial=0))
        found = {} if result is None else {"records_of_it": int(held.ones[held.values == np.uint64(result)].sum())}
        return {**found, "records_of_the_most_frequent": leading}


@dataclass(frozen=True)
class Rectangles(ByMechanism[LabelledPoints, Rectangle]):
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
        points = np.stack([points_of(numbers_of(records, column)) for column in self.columns], axis=1)
        return LabelledPoints(BITS, points, labels_in(records, self.label))

    def to_data(self, result: Rectangle, records: Records) -> dict[str, Any]:
        rows = [[column, plain(low), plain(high)] for column, (low, high) in zip(self.columns, result, strict=False)]
        said = (
            "Say 1 where every column lies between its bounds, else 0."
            if rows
            else "There is no answer: say 0 everywhere; use more records or a larger epsilon."
        )
        return {"columns": ["column", "from", "to"], "rows": rows, "explanation": said}

    def truth(self, result: Rectangle, records: Records) -> dict[str, Any]:
        held = self.database(records)
        return {"errors": int(np.sum(inside(result, held.points) != (held.labels == 1))), "records_labelled_1": int(held.labels.sum())}
