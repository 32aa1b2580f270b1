"""The mean of a numeric column whose bounds nobody knows: a first part of the clients finds them, the others are averaged within."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import frequency_variance, grouped_clients
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_positive, check_share
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.populations.table import Rows
from local_dp.postprocessing.shapes import ascending
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.protocols.vectors.mean import upper_ends
from local_dp.protocols.vectors.ranges import EDGES, Range
from local_dp.queries.cells import Cell, Grouped
from local_dp.randomizers.numbers.rounded import rounded_randomizer
from local_dp.randomizers.signs.prefix_signs import PrefixSigns
from local_dp.records import Records
from local_dp.tallies import Z95, Estimate

HEAVY = 1e-3  # the chance that noise alone makes any magnitude look held
CUT = 0.05  # at most this share is left out at an end before the width is added
MARGIN = 1.0  # of the width that is left, added at each end: for a bell curve 4.9 standard deviations


@dataclass(frozen=True)
class FoundMean:
    """The mean of the numbers clipped to the bounds that were found, and the bounds."""

    estimate: Estimate
    bounds: Range


@dataclass(frozen=True)
class MeanFound(LocalProtocol[FoundMean]):
    """Estimates the mean of `column` without public bounds; without a table, of a bell curve far from 0.

    The first part `finding` of the clients says privately of which sign and magnitude the numbers are, and then where in that range they lie; the others are
    averaged between the bounds that are found, which are narrowed only where few numbers can be lost by it. The estimate and its interval are of the numbers
    clipped to them: for a bell curve that is no difference, for heavy tails give bounds to `mean`. Missing numbers are left out. Privacy: every client answers
    once, epsilon-locally private. Utility: that of `mean` in the range found; `tolerance` is a share of it. Cost: one bit or two a client, three rounds.
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
        check_share("tolerance", self.tolerance)
        check_policy("missing", self.missing, ("refuse", "exclude"))

    def clients(self, epsilon: float) -> int:
        found = 2 * self.finding_clients(epsilon)
        averaged = grouped_clients(epsilon, 1, self.tolerance, BETA / 2)
        return max(int(found / self.finding), int(averaged / (1 - self.finding))) + 1

    def finding_clients(self, epsilon: float) -> int:
        """Clients in whose reports a magnitude with the share `resolved` is seen, in half of all runs, and in nearly all with half as much again."""
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
            wide = held(oracle.estimate(tally))
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
        if isinstance(population, Finite):
            numbers, shares = population.kinds.numbers(self.column), population.shares
        else:
            assert isinstance(population, Rows)
            numbers, shares = population.whole.numbers(self.column), np.ones(len(population.whole))
        present = ~np.isnan(numbers)
        return np.asarray((numbers * shares)[present].sum() / shares[present].sum())

    def true_error(self, result: FoundMean, population: Population) -> float:
        return abs(float(result.estimate.value) - float(self.truth(population)))


def held(magnitudes: Estimate) -> Range:
    """The range of all magnitudes that are seen to be held (of the largest share, if none is), and more for what noise hides.

    One magnitude more at each end, and at least a quarter of the farther end on the other side of 0.
    """
    shares = magnitudes.value[:-1]  # the last symbol is for what is missing
    seen = shares > normal_quantile(HEAVY / len(shares)) * magnitudes.standard_error[:-1]
    seen[int(shares.argmax())] = True
    places = np.flatnonzero(seen)
    low, high = EDGES[max(int(places[0]) - 2, 0)], EDGES[min(int(places[-1]) + 1, len(EDGES) - 1)]
    return Range(min(low, -high / 4), max(high, -low / 4))


def narrowed(parts: Cell, prefixes: Estimate) -> Range:
    """The range, cut at each end as far as surely no more than the share CUT lies beyond, and then wider by the margin; never beyond where it was."""
    below, doubt = ascending(prefixes.value[:-1]), Z95 * prefixes.standard_error[:-1]
    present = below[-1]
    first = int(np.count_nonzero(below + doubt <= CUT * present))  # so many edges have surely no more than that below them
    last = len(parts.edges) - int(np.count_nonzero(below[:-1] - doubt[:-1] >= (1 - CUT) * present))
    if first >= last:
        return Range(parts.edges[0], parts.edges[-1])
    low, high = parts.edges[max(first - 1, 0)], parts.edges[min(last, len(parts.edges) - 1)]
    margin = MARGIN * (high - low)
    return Range(max(low - margin, parts.edges[0]), min(high + margin, parts.edges[-1]))
