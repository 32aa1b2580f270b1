"""Questions about the values of one column: the count of each value, quantiles, the median."""

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import BITS, Multiset, points_of
from local_dp.curator.sanitizers.medians import Medians, SparseMedians
from local_dp.curator.sanitizers.point_counts import NoisyCounts, PerCellHistogram, ThresholdedHistogram, look_up
from local_dp.curator.sanitizers.steps import Steps
from local_dp.curator.sensitivity.medians import ExponentialMedian
from local_dp.errors import InputError
from local_dp.experiments.api.curating.columns import coded, numbers_of, plain
from local_dp.experiments.api.declare import option
from local_dp.experiments.api.trusted import DRAWN, ByMechanism, Task
from local_dp.loss import Loss
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records

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
