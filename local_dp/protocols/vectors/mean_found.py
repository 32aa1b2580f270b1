"""The mean of a numeric column without public bounds: some clients find the bounds privately, the
others are averaged within."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise, starmap
from typing import Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from local_dp.arrays import Bools, Floats
from local_dp.bounds.frequencies import frequency_variance, grouped_clients
from local_dp.bounds.response import response_gain
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_positive, check_share
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.finite import Finite, Population, weighted_records
from local_dp.postprocessing.steps import ascending
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    PlainData,
    describe_estimate,
    parameter,
    plain,
    target_error,
)
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import Launch
from local_dp.protocols.surveys.survey import Survey
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.queries.cells import Cell
from local_dp.queries.labels import apart
from local_dp.randomizers.signs.prefix_signs import PrefixSigns, excess
from local_dp.records import Records
from local_dp.tallies import Z95, Estimate, Possible

PARTS = 60  # of a finer grid
MAGNITUDES = tuple(
    float(sign * 2.0**power)
    for sign, powers in ((-1, range(44, -17, -1)), (1, range(-16, 45)))
    for power in powers
)
EDGES = tuple(sorted((*MAGNITUDES, 0.0)))


@dataclass(frozen=True)
class Range:
    """Public bounds of a column."""

    low: float
    high: float

    def edges(self) -> tuple[float, ...]:
        """The edges of a finer grid, and all magnitudes: one that noise alone put here is left out
        by the next round."""
        return tuple(sorted({*EDGES, *np.linspace(self.low, self.high, PARTS + 1).tolist()}))


HEAVY = 1e-3  # the probability that noise alone makes any magnitude stand out
LEARNING = 3  # rounds in which a learner finds bounds: two grids, for ranges far from 0
# so many of those who do not find the bounds report whether their number is outside of them
CHECKING = 0.15
WINDOW = 4  # neighbouring magnitudes that may stand out together
CUT = 0.1  # at most this share is left out at an end before the width is added
# of the remaining width, added at each end: for a bell curve 3.8 standard deviations from the
# middle
MARGIN = 1.0


ZERO = EDGES.index(0.0) + 1  # the magnitude of 0 itself
RESOLVED = 0.15  # a magnitude that so many numbers have must be seen


def finding_clients(epsilon: float, share: float = RESOLVED) -> int:
    """Clients for the range of one column: a magnitude of this share stands out in half of
    all runs; with 1.5 times that share in nearly all."""
    k = len(EDGES) + 2
    z = normal_quantile(HEAVY / k)
    return 2 * math.ceil(frequency_variance(epsilon, k, 0.0) * (z / share) ** 2)


def range_clients(epsilon: float) -> int:
    """Clients for the range of one column in LEARNING rounds: enough to cut it where few values
    lie, for the shares below all edges are known to 0.45 CUT."""
    clear = excess(2 * len(MAGNITUDES)) * (response_gain(epsilon) * Z95 / (0.45 * CUT)) ** 2
    return max(2 * finding_clients(epsilon), LEARNING * math.ceil(clear))


def locate(
    columns: Sequence[str], epsilon: float, clients: Cohort, rounds: int = 2
) -> LocalPlay[tuple[Range, ...]]:
    """A range for each column that leaves out few of its values; missing values do not count.

    The first round counts signs and magnitudes: 0 or +-2^m, -16 <= m <= 44. The others count places
    in the range found before. Fresh clients for every column and round. Privacy: epsilon. Utility:
    `finding_clients`, `range_clients`. Source: dyadic ranges, by factorised prefix sums.
    """
    parts = rounds * len(columns)
    ends = [clients.start + len(clients) * part // parts for part in range(parts + 1)]
    cohorts = starmap(Cohort, pairwise(ends))
    oracle = frequency_randomizer(epsilon, len(EDGES) + 2)
    tallies = yield tuple(
        LocalQuery(Cell(column, EDGES), oracle, cohort)
        for column, cohort in zip(columns, islice(cohorts, len(columns)), strict=True)
    )
    clear = [seen(oracle.estimate(tally)) for tally in tallies]
    ranges = list(map(widest, clear))
    for _ in range(1, rounds):
        cells = [Cell(column, each.edges()) for column, each in zip(columns, ranges, strict=True)]
        signs = [PrefixSigns(epsilon, k=cell.domain.size) for cell in cells]
        tallies = yield tuple(map(LocalQuery, cells, signs, islice(cohorts, len(columns))))
        ranges = [
            adjusted(wide, cell, sign.estimate(tally))
            for wide, cell, sign, tally in zip(ranges, cells, signs, tallies, strict=True)
        ]
    # zeros have no scale: a column with many of them is a count, or yes and no
    return tuple(
        Range(min(each.low, 0.0), max(each.high, 1.0)) if some[ZERO] else each
        for each, some in zip(ranges, clear, strict=True)
    )


@dataclass(frozen=True)
class FoundMean:
    """The mean of the numbers clipped to the estimated bounds, these bounds, and the share of the
    numbers outside of them."""

    estimate: Estimate
    bounds: Range
    outside: Estimate

    @property
    def most_outside(self) -> float:
        """The upper end of the interval of the share outside: at most so many, with confidence 97.5
        %."""
        return float(self.outside.interval()[1])


@dataclass(frozen=True)
class MeanFound(LocalProtocol[FoundMean]):
    """Estimates the mean of `column`, clipped to bounds found privately; without a table, of a bell
    curve far from 0.

    The first part `finding` of the clients reports the sign and magnitude of the numbers, and then
    their place in that range. Of the others, 85 % are averaged between these bounds [a, b] and 15 %
    report whether they lie outside. The answer is the mean of the numbers clipped to [a, b], and
    the largest share that may lie outside. Nobody can bound the mean of the column itself: one
    number beyond b may be of any size. Missing numbers are left out. Privacy: every client answers
    once, epsilon-locally private. Utility: that of `mean` in the estimated range; `tolerance` is a
    share of it. Cost: one bit or two a client, three rounds.
    """

    name = "mean-found"
    summary = "Estimates a mean between bounds that clients find privately"
    source = "Duchi, Jordan, Wainwright 2013 (mean); dyadic ranges by factorised prefix sums"
    example = "--records fair.csv --column age"
    column: str = parameter("value", "Column that is averaged", of_table=True)
    missing: str = parameter(
        "exclude",
        "Treatment of missing numbers",
        help="exclude: the mean of those present",
        choices=("refuse", "exclude"),
    )
    finding: float = parameter(0.3, "Share of the clients that find the bounds", unit="share")
    resolved: float = parameter(
        RESOLVED,
        "Share of numbers whose magnitude must be found",
        help="A run with too few clients for this is refused",
        unit="share",
    )
    tolerance: float = target_error(0.05, "share of the range found")

    def check(self) -> None:
        check_share("finding", self.finding)
        check_positive("resolved", self.resolved)

    def clients(self, epsilon: float) -> int:
        first = finding_clients(epsilon, self.resolved)
        others = grouped_clients(epsilon, 1, self.tolerance, BETA / 2)
        return max(int(first / self.finding), int(others / (1 - self.finding) / (1 - CHECKING))) + 1

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[FoundMean]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        finders = int(clients * self.finding)
        if finders < (enough := max(finding_clients(epsilon, self.resolved), 2)):
            least = math.ceil(enough / self.finding)
            few = (
                f"{clients:,} clients are too few to find the bounds of {self.column!r} at "
                f"epsilon {epsilon:g}"
            )
            raise InputError(f"{few}: ask for mean with bounds=(low, high), or {least:,} clients")

        def play() -> LocalPlay[FoundMean]:
            (bounds,) = yield from locate((self.column,), epsilon, Cohort(0, finders))
            mean = self.clipped(bounds).algorithm(epsilon, clients)
            outside = self.beyond(bounds).algorithm(epsilon, clients)
            # who reports whether its number is outside
            first = clients - max(1, int(CHECKING * (clients - finders)))
            tallies = yield (
                mean.queries[0].restricted(finders, first),
                outside.queries[0].restricted(first, clients),
            )
            return FoundMean(mean.decode(tallies[:1]), bounds, outside.decode(tallies[1:]))

        return Adaptive(play)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Normal with mean 1,000 and standard deviation 20, in steps of 1/2."""
        place = np.arange(-200, 201) / 2
        kinds = Records({self.column: 1000.0 + place})
        return Finite(kinds, np.exp(-((place / 20) ** 2) / 2), clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.types.numbers(self.column)
        table.refuse_missing(
            self.missing, self.column, "missing=exclude (the mean of those present)"
        )
        return self

    def clipped(self, bounds: Range) -> Mean:
        """The protocol that averages the numbers clipped to the bounds."""
        return Mean(
            column=self.column, low=bounds.low, high=bounds.high, outside="clip", missing="exclude"
        )

    def beyond(self, bounds: Range) -> Survey:
        """The protocol that estimates the share of the numbers outside of the bounds."""
        return Survey(
            question=f"`{self.column}` < {bounds.low!r} or `{self.column}` > {bounds.high!r}",
            missing="exclude",
        )

    def possible(self, result: FoundMean) -> Possible:
        return Possible(result.bounds.low, result.bounds.high)

    def describe(self, result: FoundMean) -> PlainData:
        bounds = {**asdict(result.bounds), "most_outside": result.most_outside}
        return {"column": self.column, **bounds, **describe_estimate(result.estimate)}

    def explain(self, result: FoundMean) -> str:
        low, high = apart((result.bounds.low, result.bounds.high))
        return (
            f"mean of the values clipped to [{low}, {high}]; at most "
            f"{100 * result.most_outside:.2g} % lie outside"
        )

    def truth_of(self, result: FoundMean, population: Population) -> Floats:
        """The mean of those present, clipped to the bounds found, in the distribution that the
        clients are drawn from, shape ()."""
        return self.clipped(result.bounds).truth(population)

    def compared(self, result: FoundMean, population: Population) -> PlainData:
        return {
            "true_outside": plain(self.beyond(result.bounds).truth(population)),
            "mean_of_column": plain(self.column_mean(population)),
        }

    def column_mean(self, population: Population) -> Floats:
        """The mean of those present, not clipped, shape ()."""
        records, shares = weighted_records(population)
        numbers = records.numbers(self.column)
        present = ~np.isnan(numbers)
        return np.asarray((numbers * shares)[present].sum() / shares[present].sum())


def seen(magnitudes: Estimate) -> Bools:
    """Which magnitudes stand out of the noise, alone or with their neighbours; if none does, the
    one of the largest share."""
    # the last symbol is for missing numbers
    shares = magnitudes.value[:-1]
    errors = magnitudes.standard_error[:-1]
    far = normal_quantile(HEAVY / len(shares))
    clear = shares > far * errors
    # one that stands out alone does not point to its neighbours
    rest = np.where(clear, 0.0, shares)
    variances = sliding_window_view(errors**2, WINDOW).sum(axis=1)
    together = sliding_window_view(rest, WINDOW).sum(axis=1) > far * np.sqrt(variances)
    clear |= (np.convolve(together, np.ones(WINDOW)) > 0) & (rest > errors)
    clear[int(shares.argmax())] = True
    return clear


def widest(clear: Bools) -> Range:
    """The range of these magnitudes and a margin: one magnitude at each end, and at least a quarter
    of the farther end on the other side of 0."""
    places = np.flatnonzero(clear)
    low = EDGES[max(int(places[0]) - 2, 0)]
    high = EDGES[min(int(places[-1]) + 1, len(EDGES) - 1)]
    return Range(min(low, -high / 4), max(high, -low / 4))


def adjusted(wide: Range, cell: Cell, prefixes: Estimate) -> Range:
    """The range cut at each end where at most the share CUT lies beyond with confidence, and
    nothing is seen; then widened by the margin, in `wide`."""
    edges = np.array(cell.edges)
    error = prefixes.standard_error[:-1]
    below = ascending(prefixes.value[:-1])
    present = below[-1]
    far = normal_quantile(HEAVY / len(edges))

    def steps(share: Floats, outside: Bools) -> int:
        """How many edges, from the outermost on, have too little beyond them; those outside of
        `wide` count anyway."""
        few = int(np.count_nonzero(share + Z95 * error[:-1] <= CUT * present))
        clear = int(np.count_nonzero(share <= far * error[:-1]))
        return min(max(few, int(np.count_nonzero(outside))), clear)

    first = steps(below[:-1], edges <= wide.low)
    last = len(edges) - steps(present - below[:-1], edges >= wide.high)
    if first > last:  # equal where one cell holds nearly all
        return wide
    low = float(edges[max(first - 1, 0)])
    high = float(edges[min(last, len(edges) - 1)])
    margin = MARGIN * (high - low)
    return Range(min(low, max(low - margin, wide.low)), max(high, min(high + margin, wide.high)))
