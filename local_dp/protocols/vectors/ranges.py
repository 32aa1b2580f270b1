"""Private bounds of a number column: the first rounds of protocols that need bounds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from local_dp.bounds.quantiles import prefix_clients, prefix_gamma
from local_dp.errors import InputError
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery
from local_dp.postprocessing.shapes import ascending
from local_dp.queries.cells import Cell
from local_dp.randomizers.signs.prefix_signs import PrefixSigns, excess
from local_dp.tallies import Tally

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
    0. Fresh clients for every column and round. Privacy: epsilon for each client. Utility: with `range_clients`, no missing values and probability 1 - beta,
    at most the share `cut` + `within` lies beyond an end before the margin, and values reach the outermost parts. Source: dyadic ranges, by factorised
    prefix sums.
    """
    ranges = tuple(Range(EDGES[0], EDGES[-1]) for _ in columns)
    ends = _deal(clients, ROUNDS * len(columns))
    for round in range(ROUNDS):
        queries = []
        for place, column in enumerate(columns):
            cell = Cell(column, EDGES if round == 0 else ranges[place].parts())
            part = round * len(columns) + place
            queries.append(LocalQuery(cell, PrefixSigns(epsilon, k=cell.domain.size), Cohort(ends[part], ends[part + 1])))
        tallies = yield tuple(queries)
        ranges = tuple(_narrowed(query, tally, search.cut) for query, tally in zip(queries, tallies, strict=True))
    return tuple(bounds.widened(search.margin) for bounds in ranges)


def _deal(clients: Cohort, parts: int) -> list[int]:
    if len(clients) < parts:
        raise InputError(f"finding bounds takes {parts} cohorts, and there are {len(clients)} clients for it; use more clients, or give the bounds")
    return [clients.start + len(clients) * part // parts for part in range(parts + 1)]


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
