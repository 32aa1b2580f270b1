"""How a hypothesis does on a record that it has not seen: it travels as data, and each client judges it by its own record."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from local_dp.arrays import Bools, Floats, Ints
from local_dp.checks import check_built
from local_dp.domains import Domain, levels, symbols
from local_dp.errors import InputError
from local_dp.learners.fourier import Polynomial
from local_dp.learners.halfspaces import Halfspace
from local_dp.learners.k_means import Centres
from local_dp.learners.linear_regression import LinearModel
from local_dp.learners.naive_bayes import BayesRule
from local_dp.learners.rules import AllOf, RuleList, Stump, Tree
from local_dp.learners.thresholds import AtLeast
from local_dp.queries.numbers import STEPS
from local_dp.queries.query import Query
from local_dp.records import Records

HYPOTHESES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (AllOf, Stump, AtLeast, BayesRule, Polynomial, RuleList, Halfspace, Tree, LinearModel, Centres)
}


@cache
def _form(kind: str) -> TypeAdapter[Any]:
    if kind not in HYPOTHESES:
        raise InputError(f"no hypothesis is a {kind!r}; there are {', '.join(HYPOTHESES)}")
    return TypeAdapter(HYPOTHESES[kind])


@dataclass(frozen=True)
class Verdict(Query):
    """Of a classifier: 1 where it gives the +1/-1 label y, else 0. Of a linear model: ((prediction - y) / 2)^2, the prediction clipped to [-1, 1].

    Of k centres: the square distance to the nearest one as a share of the largest there can be, 4 d. The latter two on a lattice of 2^16 steps.
    """

    name: ClassVar[str] = "verdict"
    kind: str
    hypothesis: str

    def check(self) -> None:
        check_built(self.judged)  # read now, so that a wrong text fails where it is written

    @cached_property
    def judged(self) -> Any:
        """The hypothesis."""
        try:
            return _form(self.kind).validate_json(self.hypothesis, strict=True)
        except (ValidationError, RecursionError):
            raise InputError(f"{self.hypothesis!r:.80} is not a {self.kind} in JSON") from None

    @property
    def classifies(self) -> bool:
        """Whether it says right or wrong."""
        return self.kind not in ("LinearModel", "Centres")

    @property
    def domain(self) -> Domain:
        return symbols(2) if self.classifies else levels(STEPS)

    def __call__(self, records: Records) -> Ints:
        if self.classifies:
            right: Bools = self.judged.predict(records) == np.sign(records.numbers("y"))
            return right.view(np.uint8)
        return np.rint(np.clip(np.nan_to_num(self._share(records), nan=1.0), 0.0, 1.0) * STEPS).astype(np.int64)

    def _share(self, records: Records) -> Floats:
        judged = self.judged
        if isinstance(judged, Centres):
            distance: Floats = judged.square_distance(records)
            return distance / (4 * len(judged.points[0]))
        share: Floats = ((np.clip(judged.predict(records), -1.0, 1.0) - records.numbers("y")) / 2) ** 2
        return share


def verdict(hypothesis: Any) -> Verdict:
    """The query that judges the hypothesis."""
    kind = type(hypothesis).__name__
    return Verdict(kind, _form(kind).dump_json(hypothesis).decode())
