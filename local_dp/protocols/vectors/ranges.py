"""Where the values of a number column lie, found privately: a first round for everything that needs bounds."""

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

ROUNDS = 3  # magnitudes, and two looks closer
PARTS = 60  # of a closer look
MAGNITUDES = tuple(float(sign * 2.0**power) for sign, powers in ((-1, range(44, -17, -1)), (1, range(-16, 45))) for power in powers)
EDGES = tuple(sorted((*MAGNITUDES, 0.0)))


@dataclass(frozen=True)
class Search:
    """How a range is looked for: the share `cut` of the values is left out at each end; then `margin` times the width is added at each end.

    `within` is how exactly the shares of values below all edges are to be known: an end is not misplaced by noise if that is at most `cut`.
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
        """With so much of its width more at each end."""
        more = margin * (self.high - self.low)
        return Range(self.low - more, self.high + more)

    def parts(self) -> tuple[float, ...]:
        """The edges of a closer look."""
        return tuple(np.linspace(self.low, self.high, PARTS + 1).tolist())


def range_clients(epsilon: float, beta: float, search: Search = SEARCH) -> int:
    """Clients for one column's range: in each of the three rounds the shares below all edges are known as exactly as asked, but with probability beta."""
    k = len(EDGES) + 2
    size = PrefixSigns(epsilon, k=k).size
    return ROUNDS * prefix_clients(epsilon, k, search.within, beta / ROUNDS, excess(size) / prefix_gamma(size) ** 2)


def locate(columns: Sequence[str], epsilon: float, clients: Cohort, search: Search = SEARCH) -> LocalPlay[tuple[Range, ...]]:
    """The range of each column that holds all but about a tenth of its values at each end, and a quarter of its width more; a missing value is no value.

    The first round counts signs and magnitudes: the ends are 0 or +-2^m, -16 <= m <= 44. Two more look closer, at 60 parts of what is left, so that a range far
    from 0 is found as well. Fresh clients for every column and round. Privacy: epsilon for each client. Utility: with `range_clients` for a column
    without missing values, and probability 1 - beta, at most the share `cut` + `within` lies beyond an end even without the margin, and values reach as far
    as the outermost parts of it. Source: dyadic ranges, by factorised prefix sums.
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
    return tuple(found.widened(search.margin) for found in ranges)


def _deal(clients: Cohort, parts: int) -> list[int]:
    if len(clients) < parts:
        raise InputError(f"finding bounds takes {parts} cohorts, and there are {len(clients)} clients for it; use more clients, or give the bounds")
    return [clients.start + len(clients) * part // parts for part in range(parts + 1)]


def _narrowed(query: LocalQuery, tally: Tally, cut: float) -> Range:
    """The cells from the first to the last that more than the cut's share of the present values lie in or beyond."""
    cell, randomizer = query.query, query.randomizer
    assert isinstance(cell, Cell)
    below = ascending(randomizer.estimate(tally).value[:-1])  # the last symbol is for what is missing
    share = below / max(float(below[-1]), 1e-9)
    first = min(int((share > cut).argmax()), len(cell.edges) - 1)
    last = max(int((share >= 1 - cut).argmax()), first, 1)
    low, high = cell.ends(first)[0], cell.ends(last)[1]
    return Range(max(low, cell.edges[0]), min(high, cell.edges[-1]))
