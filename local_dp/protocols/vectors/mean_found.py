"""The mean of a numeric column without public bounds: some clients find the bounds privately, the others are averaged within."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import frequency_variance, grouped_clients
from local_dp.bounds.quantiles import prefix_clients, prefix_gamma
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_positive, check_share
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.populations.table import weighted_records
from local_dp.postprocessing.steps import ascending
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import Launch
from local_dp.protocols.vectors.mean_vector import upper_ends
from local_dp.queries.cells import Cell, Grouped
from local_dp.randomizers.numbers.rounded import rounded_randomizer
from local_dp.randomizers.signs.prefix_signs import PrefixSigns, excess
from local_dp.records import Records
from local_dp.tallies import Z95, Estimate, Tally

ROUNDS = 3  # magnitudes, then two finer grids
PARTS = 60  # of a finer grid
MAGNITUDES = tuple(float(sign * 2.0**power) for sign, powers in ((-1, range(44, -17, -1)), (1, range(-16, 45))) for power in powers)
EDGES = tuple(sorted((*MAGNITUDES, 0.0)))


@dataclass(frozen=True)
class Search:
    """The accuracy of a range: the share `cut` of the values is left out at each end; then `margin` times the width is added at each end.

    `within` bounds the error of the shares below all edges: noise misplaces no end if it is at most `cut`.
    """

    cut: float = 0.1
    within: float = 0.1
    margin: float = 0.25


SEARCH = Search()


@dataclass(frozen=True)
class Range:
    """Public bounds of a column."""

    low: float
    high: float

    def widened(self, margin: float) -> "Range":
        """The range with `margin` of its width more at each end."""
        more = margin * (self.high - self.low)
        return Range(self.low - more, self.high + more)

    def parts(self) -> tuple[float, ...]:
        """The edges of a finer grid."""
        return tuple(np.linspace(self.low, self.high, PARTS + 1).tolist())


def range_clients(epsilon: float, beta: float, search: Search = SEARCH) -> int:
    """Clients for one column's range: in all three rounds the shares below all edges are within `search.within`, with probability 1 - beta."""
    k = len(EDGES) + 2
    size = PrefixSigns(epsilon, k=k).size
    return ROUNDS * prefix_clients(epsilon, k, search.within, beta / ROUNDS, excess(size) / prefix_gamma(size) ** 2)


def locate(columns: Sequence[str], epsilon: float, clients: Cohort, search: Search = SEARCH) -> LocalPlay[tuple[Range, ...]]:
    """The range of each column without about a tenth of its values at each end, widened by a quarter; missing values do not count.

    The first round counts signs and magnitudes: the ends are 0 or +-2^m, -16 <= m <= 44. Two more divide the remaining range into 60 parts, for ranges far from
    0. Fresh clients for every column and round. Privacy: epsilon for each client. Utility, with `range_clients` and no missing values: with probability
    1 - beta at most the share `cut` + `within` lies beyond an end before the margin, and values reach the outermost parts. Source: dyadic ranges, by factorised
    prefix sums.
    """
    ranges = tuple(Range(EDGES[0], EDGES[-1]) for _ in columns)
    if len(clients) < (parts := ROUNDS * len(columns)):
        raise InputError(f"finding bounds takes {parts} cohorts, and there are {len(clients)} clients for it; use more clients, or give the bounds")
    ends = [clients.start + len(clients) * part // parts for part in range(parts + 1)]
    for round in range(ROUNDS):
        queries = []
        for place, column in enumerate(columns):
            cell = Cell(column, EDGES if round == 0 else ranges[place].parts())
            part = round * len(columns) + place
            queries.append(LocalQuery(cell, PrefixSigns(epsilon, k=cell.domain.size), Cohort(ends[part], ends[part + 1])))
        tallies = yield tuple(queries)
        ranges = tuple(_narrowed(query, tally, search.cut) for query, tally in zip(queries, tallies, strict=True))
    return tuple(bounds.widened(search.margin) for bounds in ranges)


def _narrowed(query: LocalQuery, tally: Tally, cut: float) -> Range:
    """The range from the first to the last cell with more than the share `cut` of the present values in or beyond it."""
    cell, randomizer = query.query, query.randomizer
    assert isinstance(cell, Cell)
    below = ascending(randomizer.estimate(tally).value[:-1])  # the last symbol is for missing numbers
    share = below / max(float(below[-1]), 1e-9)
    first = min(int((share > cut).argmax()), len(cell.edges) - 1)
    last = max(int((share >= 1 - cut).argmax()), first, 1)
    low, high = cell.ends(first)[0], cell.ends(last)[1]
    return Range(max(low, cell.edges[0]), min(high, cell.edges[-1]))


HEAVY = 1e-3  # the probability that noise alone makes any magnitude stand out
CUT = 0.05  # at most this share is left out at an end before the width is added
MARGIN = 1.0  # of the remaining width, added at each end: for a bell curve 4.9 standard deviations


@dataclass(frozen=True)
class FoundMean:
    """The mean of the numbers clipped to the estimated bounds, and these bounds."""

    estimate: Estimate
    bounds: Range


@dataclass(frozen=True)
class MeanFound(LocalProtocol[FoundMean]):
    """Estimates the mean of `column` without public bounds; without a table, of a bell curve far from 0.

    The first part `finding` of the clients reports the sign and magnitude of the numbers, and then their place in that range. The others are averaged between
    the estimated bounds, which are narrowed only where few numbers can lie beyond. The mean is that of the numbers clipped to these bounds: the same for a
    bell curve; for heavy tails give bounds to `mean`. Missing numbers are left out. Privacy: every client answers once, epsilon-locally private. Utility: that
    of `mean` in the estimated range; `tolerance` is a share of it. Cost: one bit or two a client, three rounds.
    """

    name: ClassVar[str] = "mean-found"
    source: ClassVar[str] = "Duchi, Jordan, Wainwright 2013 (mean); dyadic ranges by factorised prefix sums"
    example: ClassVar[str] = "--records fair.csv --column age"
    column: str = parameter("value", "the column that is averaged", of_table=True)
    missing: str = parameter("exclude", "a missing number: exclude (the mean of those present), or refuse")
    finding: float = parameter(0.3, "how many of the clients find the bounds", unit="share")
    resolved: float = parameter(0.15, "a magnitude that so many numbers have must be seen: fewer clients than that takes are refused", unit="share")
    tolerance: float = parameter(0.05, "error in 95 % of runs; sets the default number of clients", unit="share of the range found")

    def check(self) -> None:
        check_share("finding", self.finding)
        check_positive("resolved", self.resolved)
        self.check_choices(missing=("refuse", "exclude"))

    def clients(self, epsilon: float) -> int:
        first, others = 2 * self.finding_clients(epsilon), grouped_clients(epsilon, 1, self.tolerance, BETA / 2)
        return max(int(first / self.finding), int(others / (1 - self.finding))) + 1

    def finding_clients(self, epsilon: float) -> int:
        """Clients with which a magnitude of share `resolved` stands out in half of all runs; with 1.5 times that share in nearly all."""
        k = len(EDGES) + 2
        return math.ceil(frequency_variance(epsilon, k, 0.0) * (normal_quantile(HEAVY / k) / self.resolved) ** 2)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[FoundMean]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        finders = int(clients * self.finding)
        enough = self.finding_clients(epsilon)
        if finders // 2 < max(enough, 1):
            least = math.ceil(2 * enough / self.finding)
            raise InputError(f"{clients} clients are too few to find the bounds of {self.column!r} at epsilon {epsilon:g}: give bounds, or {least:,} clients")

        def play() -> LocalPlay[FoundMean]:
            magnitudes = Cell(self.column, EDGES)
            oracle = frequency_randomizer(epsilon, magnitudes.domain.size)
            (tally,) = yield (LocalQuery(magnitudes, oracle, Cohort(0, finders // 2)),)
            wide = widest(oracle.estimate(tally))
            parts = Cell(self.column, wide.parts())
            prefixes = PrefixSigns(epsilon, k=parts.domain.size)
            (tally,) = yield (LocalQuery(parts, prefixes, Cohort(finders // 2, finders)),)
            bounds = narrowed(parts, prefixes.estimate(tally))
            query = Grouped(self.column, bounds.low, bounds.high)
            rounded = rounded_randomizer(epsilon, query.groups, query.steps)
            (tally,) = yield (LocalQuery(query, rounded, Cohort(finders, clients)),)
            return FoundMean(upper_ends(1).estimate(rounded, tally).on_scale(bounds.low, bounds.high).at(0), bounds)

        return Adaptive(play)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Normal with mean 1,000 and standard deviation 20, in steps of 1/2."""
        place = np.arange(-200, 201) / 2
        return Finite(Records({self.column: 1000.0 + place}), np.exp(-((place / 20) ** 2) / 2).tolist(), clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.records.numbers(self.column)
        table.refuse_missing(self.missing, self.column, "missing=exclude (the mean of those present)")
        return self

    def describe(self, result: FoundMean) -> PlainData:
        return {"column": self.column, "low": result.bounds.low, "high": result.bounds.high, **describe_estimate(result.estimate)}

    def truth(self, population: Population) -> Floats:
        """The mean of those present in the distribution that the clients are drawn from, not clipped, shape ()."""
        records, shares = weighted_records(population)
        numbers = records.numbers(self.column)
        present = ~np.isnan(numbers)
        return np.asarray((numbers * shares)[present].sum() / shares[present].sum())


def widest(magnitudes: Estimate) -> Range:
    """The range of all magnitudes whose share stands out of the noise (of the largest share, if none does), and a margin.

    The margin is one magnitude at each end, and at least a quarter of the farther end on the other side of 0.
    """
    shares = magnitudes.value[:-1]  # the last symbol is for missing numbers
    clear = shares > normal_quantile(HEAVY / len(shares)) * magnitudes.standard_error[:-1]
    clear[int(shares.argmax())] = True
    places = np.flatnonzero(clear)
    low, high = EDGES[max(int(places[0]) - 2, 0)], EDGES[min(int(places[-1]) + 1, len(EDGES) - 1)]
    return Range(min(low, -high / 4), max(high, -low / 4))


def narrowed(parts: Cell, prefixes: Estimate) -> Range:
    """The range, cut at each end where at most the share CUT lies beyond with confidence, then widened by the margin within the old range."""
    below, doubt = ascending(prefixes.value[:-1]), Z95 * prefixes.standard_error[:-1]
    present = below[-1]
    first = int(np.count_nonzero(below + doubt <= CUT * present))  # edges with at most that share below them
    last = len(parts.edges) - int(np.count_nonzero(below[:-1] - doubt[:-1] >= (1 - CUT) * present))
    if first >= last:
        return Range(parts.edges[0], parts.edges[-1])
    low, high = parts.edges[max(first - 1, 0)], parts.edges[min(last, len(parts.edges) - 1)]
    margin = MARGIN * (high - low)
    return Range(max(low - margin, parts.edges[0]), min(high + margin, parts.edges[-1]))
