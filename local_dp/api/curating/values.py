"""Questions about the values of a column: the count of each value, quantiles, the median, and where
a label is 1."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

import numpy as np

from local_dp.api.declare import option, policy
from local_dp.api.release_text import DRAWN
from local_dp.api.trusted import ByMechanism, Task, bounded, measured
from local_dp.arrays import Floats, Words
from local_dp.curator.clipped import laplace_error, least_tail
from local_dp.curator.multisets import BITS, Multiset, points_of, value_of
from local_dp.curator.sanitizers.medians import Medians, Steps
from local_dp.curator.sanitizers.point_counts import (
    NoisyCounts,
    PerCellHistogram,
    ThresholdedHistogram,
    look_up,
)
from local_dp.curator.sensitivity.mechanisms import ExponentialMedian
from local_dp.errors import InputError
from local_dp.loss import nano_epsilon
from local_dp.protocols.local_protocol import PlainData
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records, absent, is_truth, is_whole_type
from local_dp.tallies import Possible

MISSING = "(missing)"


NO_VALUE = "rows without a value"


_NOTHING = (1 << BITS) - 1  # the point of a missing number: no number has it


@dataclass(frozen=True)
class Coded:
    """A column as points of 2^64: of some records, numbers in order, texts by their place among the
    texts in the table; and the point of a missing one."""

    points: Callable[[Records], Words]
    value: Callable[[int], Any]
    nothing: int = _NOTHING


def plain(point: int) -> float | int | None:
    """The number of a point, an int if it is whole and its digits are; None beyond all numbers."""
    value = value_of(point)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


_WHOLE = 2.0**53  # a larger float stands for several whole numbers
_BEYOND = (
    " An unknown one lies beyond all numbers: the noise decides among so few records; take more, "
    "or a larger epsilon."
)


def coded(records: Records, column: str) -> Coded:
    of_type = records.schema()[column].dtype
    kind = of_type.kind
    names: dict[Any, str] = {0: "False", 1: "True"} if is_truth(of_type) else {}
    if kind in "iu":  # exact, and in order: doubles would merge large ones
        shift = 1 << BITS - 1 if kind == "i" else 0
        return Coded(
            lambda part: part.words(column) ^ np.uint64(shift), lambda point: point - shift, -1
        )
    if kind != "U":
        return Coded(
            lambda part: of_numbers(part, column),
            lambda point: MISSING if point == _NOTHING else names.get(each := plain(point), each),
        )
    texts = np.unique(np.concatenate([np.unique(part[column]) for part in records.parts()]))
    return Coded(
        lambda part: np.searchsorted(texts, part[column]).astype(np.uint64),
        lambda place: str(texts[place]) or MISSING,
        0 if texts[:1] == "" else _NOTHING,
    )


def of_numbers(records: Records, column: str) -> Words:
    missing = absent(records[column])
    return np.where(
        missing, np.uint64(_NOTHING), points_of(np.where(missing, 0.0, records.numbers(column)))
    )


D = TypeVar("D")
R = TypeVar("R")
_PURE = (
    "No bounds were declared, and none were read from the data. The release is pure, also with a "
    "delta."
)


def check_domain(delta: float | None, table: Launch, column: str) -> None:
    """Raises InputError for texts without a delta: their domain is infinite."""
    if delta is None and table.types[column].dtype.kind == "U":
        raise InputError(
            f"column {column!r} is text, whose domain is infinite, so there is no pure form; give "
            "a delta"
        )


@dataclass(frozen=True)
class Histogram(ByMechanism[Multiset, NoisyCounts]):
    """Releases how often each value of a column occurs, without a list of its values. Rare values
    are withheld."""

    column: str = option(brief="The column: numbers or texts", metavar="NAME")
    _: KW_ONLY
    missing: str = policy(
        NO_VALUE, category="a value of its own", exclude="shares among those present"
    )
    name = "histogram"
    summary = "Releases how often each value occurs; withholds rare ones"
    example = "histogram --records fair.csv --column occupation"

    def task(self, table: Launch) -> Task[Multiset, NoisyCounts]:
        table.refuse_missing(self.missing, self.column, self.choices("missing"))
        check_domain(self.delta, table, self.column)
        return self

    def mechanism(self) -> PerCellHistogram | ThresholdedHistogram:
        return (
            PerCellHistogram(BITS, self.epsilon, strangers=1)
            if self.delta is None
            else ThresholdedHistogram(self.epsilon, self.delta)
        )

    def database(self, records: Records) -> Multiset:
        return Multiset.of_parts(map(coded(records, self.column).points, records.parts()), BITS)

    def to_data(self, result: NoisyCounts, records: Records) -> PlainData:
        column, size = coded(records, self.column), result.size
        noise = Fraction(nano_epsilon(self.epsilon), 2)
        counts = dict(zip(result.values.tolist(), result.counts.tolist(), strict=True))
        absentees = counts.pop(column.nothing, 0) if self.missing == "exclude" else 0
        cells = self.mechanism()
        rare = cells.noise.least + least_tail(noise, Fraction(1, 20)) - 2
        ordered = sorted(counts.items(), key=lambda row: -row[1])  # ties as they come
        interval = cache(cells.noise.interval)
        numbers = measured(
            [count for _, count in ordered],
            laplace_error(noise)[0],
            possible=Possible(0, size, ()),
            ends=np.array([interval(count, size) for _, count in ordered]).reshape(-1, 2).T,
            raw=self.raw,
        )
        # an estimate: their number is protected too; they are all that are listed or more
        present = max(1, size - absentees, sum(numbers["value"]))
        rows = [
            [column.value(point), count, count / present]
            for (point, _), count in zip(ordered, numbers["value"], strict=True)
        ]
        strangers = ""
        if isinstance(cells, PerCellHistogram):
            strangers = f" Noise alone lists {cells.nobodys:.2g} values on average that nobody has."
        return {
            "columns": [self.column, "count", "share"],
            "rows": rows,
            "explanation": (
                f"{len(rows):,} values of {self.column} are published; rare ones are "
                f"withheld.{strangers}"
            ),
            **bounded(rare, f"a withheld value has at most {rare:,} records."),
            "drawn": {"axis": "records", "rows": self.column},
            **numbers,
        }

    def truth(self, result: NoisyCounts, records: Records) -> PlainData:
        database = self.database(records)
        if self.missing == "exclude":
            nothing = coded(records, self.column).nothing
            real, present = result.values != nothing, database.values != nothing
            result = replace(result, values=result.values[real], counts=result.counts[real])
            database = replace(
                database, values=database.values[present], counts=database.counts[present]
            )
        order = np.argsort(-result.counts, kind="stable")
        true = look_up(database.values, database.counts, result.values)[order].tolist()
        return {
            "largest_error": result.worst_error(database),
            "values_that_occur": len(database.values),
            DRAWN: true,
        }


@dataclass(frozen=True)
class OfNumbers(ByMechanism[Multiset, R]):
    """A question about the numbers of a column; its mechanism protects a number that is replaced,
    added or removed, so missing ones are left out."""

    column: str = option(brief="The column of numbers", metavar="NAME")
    _: KW_ONLY
    missing: str = policy(NO_VALUE, exclude="the answer is about those present")

    def task(self, table: Launch) -> Task[Multiset, R]:
        table.types.numbers(self.column)
        table.refuse_missing(self.missing, self.column, self.choices("missing"))
        return self

    def numbers(self, records: Records) -> Floats:
        """The numbers that there are."""
        numbers = records.numbers(self.column)
        return numbers[~np.isnan(numbers)]

    def database(self, records: Records) -> Multiset:
        return Multiset.of_parts((points_of(self.numbers(part)) for part in records.parts()), BITS)

    def answer(self, point: int, records: Records) -> float | int | None:
        """The number of a point. In a column of whole numbers it is rounded down: as many records
        are at most that."""
        value, of_type = plain(point), records.schema()[self.column].dtype
        return (
            math.floor(value)
            if is_whole_type(of_type) and value is not None and abs(value) < _WHOLE
            else value
        )


@dataclass(frozen=True)
class Quantiles(OfNumbers[Steps]):
    """Releases quantiles of a column of numbers, without declared bounds."""

    levels: int = option(3, "Number of halvings: 1 gives the median, 3 the octiles", metavar="L")
    name = "quantiles"
    summary = "Releases quantiles of a column, without bounds"
    example = "quantiles --records fair.csv --column affairs --levels 3"

    @property
    def shares(self) -> list[float]:
        return [place / (1 << self.levels) for place in range(1, 1 << self.levels)]

    def mechanism(self) -> Medians:
        """Pure, also with a delta: on 2^64 points that takes no more records than a choice with a
        delta."""
        return Medians(self.epsilon, self.levels)

    def to_data(self, result: Steps, records: Records) -> PlainData:
        values = [self.answer(result.quantile(share) - 1, records) for share in self.shares]
        size = len(records)
        most = self.mechanism().rank_error(BITS, size)
        # shares of an unknown number have no known places
        ends = None if self.missing == "exclude" else self._between(values, most / size)
        text = (
            f"at most {most:,} records lie between any of these answers and the true quantile, for "
            "any table."
        )
        return {
            "columns": ["share at most", self.column],
            "rows": [[share, value] for share, value in zip(self.shares, values, strict=True)],
            "explanation": f"{_PURE}{_BEYOND if None in values else ''}",
            **measured(values),
            "interval": ends,
            **bounded(most if most < size // 2 else None, text),
            "drawn": {"axis": self.column, "rows": "share of the records at most"},
        }

    def _between(
        self, values: Sequence[float | None], error: float
    ) -> list[list[float | None]] | None:
        """The interval of each true quantile: the released ones whose shares are known to lie on
        either side of its own; None is an open end.

        None where every interval would be open on both sides.
        """
        # so many released quantiles further, the share differs by more than the error
        apart = math.ceil(error * (1 << self.levels) + 1e-9)
        if apart >= len(values):
            return None
        ends = [*[None] * apart, *values, *[None] * apart]
        return [[ends[place], ends[place + 2 * apart]] for place in range(len(values))]

    def truth(self, result: Steps, records: Records) -> PlainData:
        database = self.database(records)
        places = np.ceil(database.size * np.array(self.shares)) - 1
        points = database.ranked(places).tolist() if database.size else []
        true = [value_of(point) for point in points] or None
        return {"largest_error_of_a_share": result.error(database), DRAWN: true}


@dataclass(frozen=True)
class Median(OfNumbers[int]):
    """Releases the median of a column of numbers, without declared bounds. An even number of
    records has the lower median."""

    name = "median"
    summary = "Releases the median of a column, without bounds"
    example = "median --records fair.csv --column affairs"

    def mechanism(self) -> ExponentialMedian:
        return ExponentialMedian(self.epsilon)

    def to_data(self, result: int, records: Records) -> PlainData:
        most = self.mechanism().choice.shortfall(1 << BITS)
        value = self.answer(result, records)
        text = (
            f"at most {most:,} records lie between this answer and the true median, for any table."
        )
        return {
            "columns": ["column", "median"],
            "rows": [[self.column, value]],
            "explanation": f"{_PURE}{_BEYOND if value is None else ''}",
            "drawn": {"axis": self.column, "rows": ""},
            **measured(value),
            **bounded(most if most < len(records) // 2 else None, text),
        }

    def truth(self, result: int, records: Records) -> PlainData:
        database, value = self.database(records), self.answer(result, records)
        if not database.size:
            return {}
        point = np.uint64(result) if value is None else points_of([value])[0]
        median = np.uint64(database.ranked(np.array((database.size - 1) // 2)))
        between = (database.values > min(point, median)) & (database.values < max(point, median))
        return {
            "median": value_of(int(median)),
            "records_between": int(database.counts[between].sum()),
        }
