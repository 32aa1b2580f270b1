"""Questions whose answers are numbers: the mean between public bounds, the count of any interval,
and the triangles of a graph."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from local_dp.api.curating.values import NO_VALUE
from local_dp.api.declare import option, policy
from local_dp.api.release_text import DRAWN
from local_dp.api.tables import Bounds, ends_of
from local_dp.api.trusted import ByMechanism, Offer, Question, Task, measured
from local_dp.arrays import Counts, Floats
from local_dp.checks import check_built, check_whole
from local_dp.curator.account import Account
from local_dp.curator.clipped import HasNumber, NoisyMean, SumAndNumber
from local_dp.curator.intervals import (
    MAX_BITS,
    CountTree,
    IntervalCounts,
    PrefixFactorization,
    best_branching,
)
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.curator.sensitivity.triangles import LadderTriangles, LocalOfTriangles, Triangles
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import NANO, Loss, nano_epsilon
from local_dp.populations.finite import Changed, Population
from local_dp.populations.graphs import MAX_NODES, Graph
from local_dp.protocols.local_protocol import PlainData
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.cells import equal_edges
from local_dp.queries.tables import Bounded, labels_of
from local_dp.records import Records, absent
from local_dp.tallies import Z95, Possible

D = TypeVar("D")
R = TypeVar("R")
_SHOWN = 16  # intervals in a summary
_OF_MEAN = "The interval is conservative: it holds the mean with probability 95 % or more."
_OF_COUNTS = "The intervals are conservative: they hold the number with probability 95 % or more."


@dataclass(frozen=True)
class BetweenBounds(ByMechanism[D, R]):
    """A question about numbers between public bounds."""

    column: str = option(brief="The column of numbers", metavar="NAME")
    _: KW_ONLY
    bounds: Bounds = option(
        brief="The public bounds",
        metavar="X",
        unit="of the column",
        ends=("Public lower bound", "Public upper bound"),
    )
    outside: str = policy(
        "numbers beyond the bounds", clip="it counts as the nearer bound", exclude="it is left out"
    )
    missing: str = "refuse"

    def task(self, table: Launch) -> Task[D, R]:
        """Raises InputError for text and wrong bounds, and unless policies cover missing numbers
        and those beyond the bounds."""
        check_built(self.bounded)
        table.types.numbers(self.column)
        table.refuse_missing(self.missing, self.column, self.choices("missing"))
        table.refuse_outside(
            self.outside,
            self.column,
            *ends_of(self.bounds),
            f"{self.choices('outside')}, or wider bounds",
        )
        return self

    @property
    def excludes(self) -> bool:
        return "exclude" in (self.missing, self.outside)

    def kept(self, records: Records) -> Records:
        """The column alone; a number that is left out is missing there, and no other one. No
        record's number depends on another record."""
        numbers, (low, high) = records.numbers(self.column), ends_of(self.bounds)
        if self.missing == "middle":
            numbers = np.where(np.isnan(numbers), low / 2 + high / 2, numbers)
        if self.outside == "exclude":
            numbers = np.where((numbers < low) | (numbers > high), np.nan, numbers)
        return Records({self.column: numbers})

    @property
    def bounded(self) -> Bounded:
        return Bounded(self.column, *ends_of(self.bounds))


@dataclass(frozen=True)
class Mean(BetweenBounds[Records | Population, SumAndNumber]):
    """Releases the mean of a column of numbers between public bounds."""

    missing: str = policy(
        NO_VALUE,
        middle="it counts as the middle of the bounds",
        exclude="the mean of those present",
    )
    name = "mean"
    summary = "Releases the mean of a column between public bounds"
    example = "mean --records fair.csv --column age --low 15 --high 45"

    def mechanism(self) -> NoisyMean:
        return NoisyMean(
            self.bounded, HasNumber(self.column) if self.excludes else None, self.epsilon
        )

    def database(self, records: Records) -> Population:
        return Changed(records, self.kept)

    def to_data(self, result: SumAndNumber, records: Records) -> PlainData:
        mean = self.mechanism().mean(result, len(records))
        value, low, high = (
            float(self.bounded.in_units(np.asarray(share)))
            for share in (mean.value, mean.low, mean.high)
        )
        error = mean.standard_error * (self.bounded.high - self.bounded.low)
        possible = Possible(*ends_of(self.bounds))
        return {
            "columns": ["column", "mean"],
            "rows": [[self.column, value]],
            "explanation": (
                "The noise hides one replaced record; its effect on the mean falls with the number "
                "of records. The release is pure, also with a delta."
            ),
            "drawn": {"axis": f"mean of {self.column}", "rows": ""},
            **measured(value, error, possible=possible, ends=(low, high)),
            "error": _OF_MEAN if self.excludes else None,
        }

    def truth(self, result: SumAndNumber, records: Records) -> PlainData:
        shares = list(map(self._shares, records.parts()))
        if not (number := sum(number for number, _ in shares)):
            return {}
        mean = float(self.bounded.in_units(np.asarray(sum(total for _, total in shares) / number)))
        return {
            "mean": mean,
            "error": abs(self.to_data(result, records)["value"] - mean),
            DRAWN: [mean],
        }

    def _shares(self, records: Records) -> tuple[int, float]:
        """How many records have a share of the range, and the sum of the shares."""
        column = self.kept(records)
        shares = self.bounded.share(column)[~absent(column[self.column])]
        return len(shares), float(shares.sum())


@dataclass(frozen=True)
class Intervals(BetweenBounds[Multiset, IntervalCounts]):
    """Releases the number of records in every interval between public bounds."""

    _: KW_ONLY
    bins: int = option(1024, "Number of equal intervals between the bounds", metavar="N")
    missing: str = policy(NO_VALUE, exclude="it is in no interval")
    name = "intervals"
    summary = "Releases the number of records in every interval"
    example = "intervals --records fair.csv --column age --low 15 --high 45 --bins 64"

    def check(self) -> None:
        check_whole("bins", self.bins, 2, 1 << MAX_BITS)

    @property
    def bits(self) -> int:
        return (self.bins - (not self.excludes)).bit_length()

    def mechanism(self) -> CountTree | PrefixFactorization:
        tree = CountTree(self.bits, self.epsilon, best_branching(self.bits, self.epsilon))
        if self.delta is None:
            return tree
        factors = PrefixFactorization(self.bits, self.epsilon, self.delta)
        # an interval is a difference of two
        return (
            tree if tree.deviation <= math.sqrt(2) * float(factors.deviations().max()) else factors
        )

    @property
    def _error(self) -> tuple[float, float]:
        """A bound on the standard error of every interval, and the standard errors that its noise
        stays within with probability 95 %.

        The noise of the factorization is normal. That of the tree has one peak: by Gauss's
        inequality 2 / (3 sqrt(.05)) of them suffice.
        """
        mechanism = self.mechanism()
        if isinstance(mechanism, CountTree):
            return mechanism.deviation, 2 / (3 * math.sqrt(0.05))
        return math.sqrt(2) * float(mechanism.deviations().max()), Z95

    def database(self, records: Records) -> Multiset:
        return Multiset.of_parts(
            (self._cells(part).astype(np.uint64) for part in records.parts()), self.bits
        )

    def _cells(self, records: Records) -> Counts:
        """The cell of each number: its lower edge belongs to it, and the upper bound to the last.
        Numbers that are left out are in one more cell."""
        column = self.kept(records)
        numbers, last = column.numbers(self.column), self.bins - 1
        cells = np.clip(np.searchsorted(self._edges, numbers, side="right") - 1, 0, last)
        return np.where(absent(column[self.column]), self.bins, cells)

    @cached_property
    def _edges(self) -> Floats:
        return equal_edges(*ends_of(self.bounds), self.bins)

    def to_data(self, result: IntervalCounts, records: Records) -> PlainData:
        edges = np.unique(
            np.linspace(0, self.bins, min(_SHOWN, self.bins) + 1).round().astype(np.int64)
        )
        counts = result.count(edges[:-1], edges[1:]).tolist()
        ends = self._edges[edges].tolist()
        deviation, quantile = self._error
        possible = Possible(0.0, len(records), ())
        numbers = measured(counts, deviation, quantile * deviation, possible=possible, raw=self.raw)
        below = result.below[: self.bins + 1]
        rows = [*map(list, zip(ends[:-1], ends[1:], numbers["value"], strict=True))]
        return {
            "columns": [f"{self.column} from", "to", "records"],
            "rows": rows,
            "drawn": {"axis": "records", "rows": self.column, "labels": 2},
            **numbers,
            "error": _OF_COUNTS if isinstance(self.mechanism(), CountTree) else None,
            "explanation": (
                f"The counts of all intervals of {self.bins:,} equal bins are published; --json "
                "prints the count below each bin. A number at the edge of two bins counts in the "
                "upper one."
            ),
            "below": (below if self.raw else np.clip(below, 0, len(records))).tolist(),
        }

    def truth(self, result: IntervalCounts, records: Records) -> PlainData:
        counts = sum(
            np.bincount(self._cells(part), minlength=self.bins)[: self.bins]
            for part in records.parts()
        )
        below = np.append(0, np.cumsum(counts))
        return {
            "largest_error_of_an_interval": float(np.ptp(result.below[: self.bins + 1] - below))
        }


class Counted(NamedTuple):
    """A number of triangles, and the local sensitivity of it."""

    triangles: int
    local: int


_OF_LOCAL = 0.01  # the probability that the local sensitivity is larger than its bound


@dataclass(frozen=True)
class CountTriangles(Question[Graph | Triangles, Counted], Task[Graph | Triangles, Counted]):
    """Releases the number of triangles of a graph whose edges are the rows, with an interval. The
    number of nodes is public; neighbours differ in one edge."""

    source: str = option(brief="The column of one node of each edge", metavar="NAME")
    target: str = option(brief="The column of the other node", metavar="NAME")
    _: KW_ONLY
    nodes: int = option(brief="Public number of nodes, with and without an edge", metavar="N")
    other: str = policy(
        "rows that are no new edge of two nodes",
        exclude="nodes are then whole numbers from 0 to below their number",
    )
    name = "triangles"
    summary = "Releases the number of triangles of a graph"
    example = "triangles --records edges.csv --source from --target to --nodes 500"

    def check(self) -> None:
        check_whole("nodes", self.nodes, 1, MAX_NODES)

    def task(self, table: Launch) -> Task[Graph | Triangles, Counted]:
        """Raises InputError in private unless the table numbers the nodes: no rule of one row could
        leave out names beyond the declared number."""
        if table.private and self.other == "refuse":
            raise InputError(
                "a private run does not look at edges: number the nodes from 0 to "
                f"{self.nodes - 1}, and declare other=exclude for all other rows"
            )
        for column in (self.source, self.target):
            table.types.whole(column) if self.other == "exclude" else table.types[column]
        return self

    def offer(self, size: int) -> Offer[Graph | Triangles, Counted]:
        """The count by four fifths of epsilon; the fifth is for the local sensitivity, which its
        interval follows from."""
        ladder, local = self._parts
        counts = Nonadaptive[Mechanism[Graph | Triangles, int, Loss], int, Counted](
            (ladder, local), lambda answers: Counted(*answers)
        )
        return Offer("LadderTriangles", counts, Account(ladder.loss + local.loss, "edge"))

    @property
    def _parts(self) -> tuple[LadderTriangles, LocalOfTriangles]:
        nano = nano_epsilon(self.epsilon)
        return LadderTriangles((nano - nano // 5) / NANO), LocalOfTriangles(nano // 5 / NANO)

    def size(self, records: Records) -> int:
        """The number of nodes: the number of edges is protected."""
        return self.nodes

    def database(self, records: Records) -> Triangles:
        if self.other == "exclude":
            return Triangles(self._graph(records))
        ends = [labels_of(records, column) for column in (self.source, self.target)]
        if any(absent(records[column]).any() for column in (self.source, self.target)):
            raise InputError("some edge lacks a node; remove such rows from the table")
        names, places = np.unique(np.concatenate(ends), return_inverse=True)
        if len(names) > self.nodes:
            raise InputError(
                f"the edges name more than the {self.nodes:,} nodes that are declared; declare "
                "all nodes, also those without an edge"
            )
        return Triangles(Graph.of(places.reshape(2, -1).T, self.nodes))

    def _graph(self, records: Records) -> Graph:
        """The edges among the rows, each once: of two different nodes below the declared number."""
        ends = np.stack([records.whole(column) for column in (self.source, self.target)], axis=1)
        valid = np.all((ends >= 0) & (ends < self.nodes), axis=1) & (ends[:, 0] != ends[:, 1])
        return Graph.of(
            np.unique(np.sort(ends[valid].astype(np.int64), axis=1), axis=0), self.nodes
        )

    def to_data(self, result: Counted, records: Records) -> PlainData:
        ladder, local = self._parts
        reach = ladder.reach(self.nodes, local.at_most(result.local, _OF_LOCAL), 0.05 - _OF_LOCAL)
        possible = Possible(0, math.comb(self.nodes, 3))
        return {
            "columns": ["", "triangles"],
            "rows": [["graph", result.triangles]],
            "drawn": {"axis": "triangles", "rows": ""},
            "explanation": (
                "One edge more or less is hidden; the number of nodes is public. The release is "
                "pure, also with a delta."
            ),
            **measured(result.triangles, reach=reach, possible=possible),
        }

    def truth(self, result: Counted, records: Records) -> PlainData:
        triangles = self.database(records)
        return {
            DRAWN: [triangles.value],
            "triangles": triangles.value,
            "error": abs(result.triangles - triangles.value),
            "edges": len(records),
        }
