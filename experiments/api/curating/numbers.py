"""What a curator tells of a column of numbers between public bounds: their mean, and how many lie in any interval."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from local_dp.arrays import Counts
from local_dp.checks import check_built, check_whole
from local_dp.curator.intervals.factorization import PrefixFactorization
from local_dp.curator.intervals.level import MAX_BITS, IntervalCounts
from local_dp.curator.intervals.tree import CountTree, best_branching
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.curator.sums import NoisySum
from local_dp.experiments.api.curating.columns import numbers_of
from local_dp.experiments.api.trusted import ByMechanism, Trust
from local_dp.loss import Loss
from local_dp.populations.population import Population
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.queries.numbers import STEPS
from local_dp.queries.tables import Bounded
from local_dp.records import Records

OUTSIDE = ("refuse", "clip")
_SHOWN = 16  # intervals in a summary


class BetweenBounds:
    """A task about numbers between the public bounds [`low`, `high`]; one beyond them is refused, or counts as the nearer bound (`outside` "clip")."""

    column: str
    low: float
    high: float
    outside: str

    def for_table(self, launch: Launch, trust: Trust) -> Self:
        """Raises InputError for text, missing numbers, bounds that are none, and numbers beyond them unless they are to be clipped."""
        check_policy("outside", self.outside, OUTSIDE)
        check_built(self.bounded)
        numbers_of(launch.records, self.column)
        launch.refuse_outside(self.outside, self.column, self.low, self.high, "outside=clip (they count as the nearer bound), or wider bounds")
        return self

    @property
    def bounded(self) -> Bounded:
        """The number as a query."""
        return Bounded(self.column, self.low, self.high)


@dataclass(frozen=True)
class Mean(BetweenBounds, ByMechanism[Records | Population, int]):
    """The mean of a column of numbers between public bounds."""

    column: str
    low: float
    high: float
    outside: str = "refuse"
    name = "mean"

    def mechanism(self, trust: Trust) -> Mechanism[Records | Population, int, Loss]:
        return NoisySum(self.bounded, trust.epsilon)

    def database(self, records: Records) -> Records:
        return records

    def to_data(self, result: int, records: Records) -> dict[str, Any]:
        share = np.asarray(result / (STEPS * len(records)))
        said = "The noise is that of one record replaced: its share falls with the number of records. Pure, whatever delta is allowed."
        return {"columns": ["column", "mean"], "rows": [[self.column, float(self.bounded.in_units(share))]], "explanation": said}

    def truth(self, result: int, records: Records) -> dict[str, Any]:
        mean = float(self.bounded.in_units(np.asarray(self.bounded.share(records).mean())))
        return {"mean": mean, "error": abs(self.to_data(result, records)["rows"][0][1] - mean)}


@dataclass(frozen=True)
class Intervals(BetweenBounds, ByMechanism[Multiset, IntervalCounts]):
    """How many records lie in any interval, of a column of numbers in `cells` equal parts of the public bounds."""

    column: str
    low: float
    high: float
    cells: int = 1024
    outside: str = "refuse"
    name = "intervals"

    def __post_init__(self) -> None:
        check_whole("cells", self.cells, 2, 1 << MAX_BITS)

    @property
    def bits(self) -> int:
        """Of the domain that the cells are part of."""
        return (self.cells - 1).bit_length()

    def mechanism(self, trust: Trust) -> Mechanism[Multiset, IntervalCounts, Loss]:
        tree = CountTree(self.bits, trust.epsilon, best_branching(self.bits, trust.epsilon))
        if trust.delta is None:
            return tree
        factors = PrefixFactorization(self.bits, trust.epsilon, trust.delta)
        return tree if tree.deviation <= math.sqrt(2) * float(factors.deviations().max()) else factors  # an interval is a difference of two

    def database(self, records: Records) -> Multiset:
        return Multiset.of(self._cells(records).astype(np.uint64), self.bits)

    def _cells(self, records: Records) -> Counts:
        """The cell of each number: its lower edge belongs to it, and the upper bound to the last."""
        cells = np.floor(self.bounded.share(records) * self.cells).astype(np.int64)
        return np.minimum(cells, self.cells - 1)

    def to_data(self, result: IntervalCounts, records: Records) -> dict[str, Any]:
        edges = np.unique(np.linspace(0, self.cells, min(_SHOWN, self.cells) + 1).round().astype(np.int64))
        counts = result.count(edges[:-1], edges[1:])
        ends = [self._edge(edge) for edge in edges.tolist()]
        rows = [[low, high, float(count)] for low, high, count in zip(ends[:-1], ends[1:], counts, strict=True)]
        return {
            "columns": [f"{self.column} from", "to below", "records"],
            "rows": rows,
            "drawn": {"axis": "records", "rows": self.column},
            "explanation": f"All intervals of {self.cells:,} equal cells are told; --json has how many lie below each cell.",
            "below": result.below[: self.cells + 1].tolist(),
        }

    def _edge(self, cell: int) -> float:
        return self.low + (self.high - self.low) * cell / self.cells

    def truth(self, result: IntervalCounts, records: Records) -> dict[str, Any]:
        below = np.append(0, np.cumsum(np.bincount(self._cells(records), minlength=self.cells)))
        return {"largest_error_of_an_interval": float(np.ptp(result.below[: self.cells + 1] - below))}
