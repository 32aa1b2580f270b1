"""What a curator tells of the values of one column: how often each occurs, quantiles, the median."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import BITS, Multiset, points_of
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.point_counts import NoisyCounts, PerCellHistogram, ThresholdedHistogram, look_up
from local_dp.curator.sanitizers.sparse_medians import SparseMedians
from local_dp.curator.sanitizers.steps import Steps
from local_dp.curator.sensitivity.medians import ExponentialMedian
from local_dp.errors import InputError
from local_dp.experiments.api.curating.columns import coded, numbers_of, plain
from local_dp.experiments.api.trusted import DRAWN, ByMechanism, Trust
from local_dp.loss import Loss
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records


class OfValues:
    """A task about the values of one column, which may be texts."""

    column: str

    def for_table(self, launch: Launch, trust: Trust) -> Self:
        """Raises InputError for texts without a delta: their domain has no end."""
        if trust.delta is None and launch.records[self.column].dtype.kind == "U":
            raise InputError(f"column {self.column!r} is text, whose domain is endless, so there is no pure form; give a delta")
        return self


@dataclass(frozen=True)
class Histogram(OfValues, ByMechanism[Multiset, NoisyCounts]):
    """The counts of a column's values."""

    column: str
    name = "histogram"

    def mechanism(self, trust: Trust) -> Mechanism[Multiset, NoisyCounts, Loss]:
        return PerCellHistogram(BITS, trust.epsilon, strangers=1) if trust.delta is None else ThresholdedHistogram(trust.epsilon, trust.delta)

    def database(self, records: Records) -> Multiset:
        return Multiset.of(coded(records, self.column).points, BITS)

    def to_data(self, result: NoisyCounts, records: Records) -> dict[str, Any]:
        value = coded(records, self.column).value
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
class Quantiles(ByMechanism[Multiset, Steps]):
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
        return Multiset.of(points_of(numbers_of(records, self.column)), BITS)

    def to_data(self, result: Steps, records: Records) -> dict[str, Any]:
        return {
            "columns": ["share at most", self.column],
            "rows": [[share, plain(result.quantile(share) - 1)] for share in self.shares],
            "explanation": "No bounds were declared, and none were read from the data.",
            "drawn": {"axis": self.column, "rows": "share of the records at most"},
        }

    def truth(self, result: Steps, records: Records) -> dict[str, Any]:
        true = np.quantile(numbers_of(records, self.column), self.shares, method="inverted_cdf").tolist()
        return {"largest_error_of_a_share": result.error(self.database(records)), DRAWN: true}


@dataclass(frozen=True)
class Median(ByMechanism[Multiset, int]):
    """The median of a column of numbers; of an even number of them, the lower one."""

    column: str
    name = "median"

    def mechanism(self, trust: Trust) -> Mechanism[Multiset, int, Loss]:
        return ExponentialMedian(trust.epsilon)

    def database(self, records: Records) -> Multiset:
        return Multiset.of(points_of(numbers_of(records, self.column)), BITS)

    def to_data(self, result: int, records: Records) -> dict[str, Any]:
        said = "No bounds were declared, and none were read from the data; this is pure, whatever delta is allowed."
        return {"columns": ["column", "median"], "rows": [[self.column, plain(result)]], "explanation": said}

    def truth(self, result: int, records: Records) -> dict[str, Any]:
        numbers, found = np.sort(numbers_of(records, self.column)), plain(result)
        middle, below = (len(numbers) - 1) // 2, int(np.searchsorted(numbers, found))
        through = int(np.searchsorted(numbers, found, "right"))
        return {"median": numbers[middle].item(), "records_between": max(0, below - middle - 1, middle - through)}
