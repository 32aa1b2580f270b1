"""Computes tables for `supersolution`: how well replies of a limited budget tell two hypotheses
apart. Nothing here is trusted: the check has to accept every row.

The best strategies are followed in small steps, over cells of half the log odds. Their values, made
a little smoother and faster, are a supersolution.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.errors import InputError
from local_dp.hardness.supersolution import FINE, UNIT, Cells, Row, Supersolution, thirds

# of the package's tables: reach, cost, jumps, blur in cells, share of the spent budget in a step,
# and the haste of the strategies, for which more was proven of 0 and .5
TABLES = (
    (0.0315, 0.00095, 7, 4.0, 0.006, 0.5),
    (0.0663, 0.00413, 12, 4.0, 0.006, 0.5),
    (0.0792, 0.0063, 12, 4.0, 0.006, 0.5),
    (0.1396, 0.01709, 20, 4.0, 0.006, 0.0),
    (0.2422, 0.0587, 28, 4.0, 0.006, 0.0),
    (0.24492, 0.06, 28, 4.0, 0.006, 0.0),
    (0.3005, 0.0695, 36, 5.0, 0.006, 0.0),
    (0.46212, 0.21356, 48, 5.0, 0.006, 0.5),
    (0.615, 0.27405, 56, 4.5, 0.01, 0.5),
    (0.7616, 0.5801, 60, 4.5, 0.01, 0.5),
    (0.8268, 0.6836, 64, 4.5, 0.01, 0.5),
    (0.9312, 0.8672, 72, 4.5, 0.01, 0.5),
)
WIDEST = 4.4  # half the log odds beyond which a table has no weight
LAST_BUDGET = 3.4
_COSTS = 300  # at which replies of a finite cost are tried
_FOLLOWED = 0.002  # steps of the strategies that bound a table
_FASTEST = 4.0  # times as much budget
_START = 1e-3  # of the strategies' budget, where the first row is
_SPARE = 3e-5  # of the value of certainty, per unit of budget


@dataclass(frozen=True)
class Splits:
    """Replies with two outcomes, so many cells to the right and to the left."""

    cells: Cells
    right: Counts
    left: Counts

    @cached_property
    def _weights(self) -> Floats:
        """Of phi at both outcomes and here, per unit of cost, shape (3, splits, 1)."""
        u, cosh = self.cells.moves
        up, down = u[self.right - 1], u[self.left - 1]
        weights = down / (up + down) / cosh[self.right - 1], up / (up + down) / cosh[self.left - 1]
        return np.array([*weights, np.ones_like(up)])[:, :, None] / self.costs[:, None]

    @cached_property
    def costs(self) -> Floats:
        u, _ = self.cells.moves
        return u[self.right - 1] * u[self.left - 1]

    def gains(self, values: Floats) -> Floats:
        """Per unit of cost, shape (splits, centres)."""
        windows = np.lib.stride_tricks.sliding_window_view(self._both_sides(values), len(values))
        zero = len(values) - 1 + self.cells.jumps
        right, left, here = self._weights
        out = right * windows[zero + self.right] + left * windows[zero - self.left]
        return np.asarray(out - here * values)

    def _both_sides(self, values: Floats) -> Floats:
        """Both sides, and `jumps` centres further, where certainty is 1."""
        far = np.arange(len(values) - 1, len(values) + self.cells.jumps) * self.cells.width
        falling = (values[-1] - math.exp(far[0])) * math.exp(far[0])
        half = np.concatenate([values, np.exp(far[1:]) + falling * np.exp(-far[1:])])
        return np.concatenate([half[:0:-1], half])


def _small_splits(cells: Cells) -> Splits:
    """One cell one way, any number the other."""
    each, one = np.arange(1, cells.jumps + 1), np.ones(cells.jumps, dtype=np.int64)
    return Splits(cells, np.append(each, one), np.append(one, each))


def _all_splits(cells: Cells) -> Splits:
    """All pairs, in the order of their costs."""
    steps = np.arange(1, cells.jumps + 1)
    right, left = (each.ravel() for each in np.meshgrid(steps, steps))
    order = np.argsort(Splits(cells, right, left).costs, kind="stable")
    return Splits(cells, right[order], left[order])


class Strategies:
    """What two-outcome replies reach: lower bounds of the value of a budget.

    With `haste` they only come near to it. A reply moves one whole cell one way, and so gains less
    for its cost than in smaller cells; `haste` makes up for that, and bounds nothing.
    """

    def __init__(self, cells: Cells, cost: float, haste: float = 0.0) -> None:
        self.small = _small_splits(cells)
        self.haste = 1 + haste * self.small.costs[:, None] / cells.reach**2
        self.all = _all_splits(cells)
        self.cost = cost
        self.costs = np.append(0.0, np.geomspace(self.all.costs[0], cost, _COSTS))
        self.values = np.exp(np.arange(cells.cells + 2) * cells.width)
        self.budget = 0.0
        self.earlier: list[tuple[float, Floats, Floats]] = []
        self._keep()

    def _keep(self) -> None:
        """The values of now, and what replies of given costs and more add to them."""
        gains = self.all.gains(self.values)
        places = np.minimum(np.searchsorted(self.all.costs, self.costs), len(gains) - 1)
        best = np.maximum.reduceat(gains, places, axis=0)[::-1]
        best = np.maximum.accumulate(np.maximum(best, 0), axis=0)[::-1]
        self.earlier.append((self.budget, self.values, best))

    def spend(self, budget: float) -> Floats:
        """The values once `budget` has been spent in all."""
        step = float(self.small.costs.min()) * 0.95
        while self.budget < budget - 1e-12:
            part = min(step, budget - self.budget)
            gain = (self.haste * self.small.gains(self.values)).max(axis=0)
            self.values = self.values + part * np.maximum(gain, 0)
            self.budget += part
        self.earlier = [each for each in self.earlier if budget - each[0] <= self.cost]
        for start, values, best in self.earlier:
            place = min(int(np.searchsorted(self.costs, budget - start)), _COSTS)
            value = values + (budget - start) * best[place]
            self.values = np.maximum(self.values, value)
        self._keep()
        return np.asarray(self.values)


def budgets(end: float, share: float, least: float, most: float) -> Iterator[float]:
    """From 0 to `end` in steps of a share of what is spent, between `least` and `most`."""
    spent = 0.0
    while spent < end:
        yield spent
        spent = round(spent + min(max(share * spent, least), most), 6)
    yield spent


class Search:
    """Looks for the slowest rows that the check accepts."""

    def __init__(self, cells: Cells, cost: float, blur: float, haste: float = 0.0) -> None:
        self.cells = cells
        self.blur = blur  # of the strategies' values, in cells
        self.haste = haste
        self.table = Supersolution(cells.fine, cost)
        self.time, self.speed = _START, 1.1

    def run(self, end: float, share: float) -> None:
        """Fills the table up to budget `end`, in steps of a share of what is spent. Raises
        InputError where no row is in reach."""
        self._follow(end * 1.1)
        density = self._density(self.time)
        certain = math.ceil(self.table.cells.least_certain(density) * FINE) / FINE
        self.table.add(self.table.row(0.0, density, certain))
        for spent, budget in pairwise(budgets(end, share, 1e-3, 0.02)):
            self._extend(budget, budget - spent)

    def reach(self, success: float) -> float:
        """A budget with which the strategies have this success: no table proves a larger one."""
        strategies = Strategies(self.cells, self.table.cost)
        while strategies.values[0] < 2 * success:
            strategies.spend(strategies.budget + _FOLLOWED)
        return strategies.budget

    def _follow(self, end: float) -> None:
        """The strategies' densities, blurred: translations and their mixtures keep all bounds."""
        times = list(budgets(end, 0.01, 5e-4, 0.01))
        strategies = Strategies(self.cells, self.table.cost, self.haste)
        values = np.array([strategies.values, *map(strategies.spend, times[1:])])
        self.times = np.array(times)
        width, spread = self.cells.width, math.ceil(4 * self.blur)
        both = np.concatenate([values[:, 1:2], values], axis=1)
        weight = both[:, 2:] + both[:, :-2] - 2 * math.cosh(width) * both[:, 1:-1]
        density = np.maximum(weight / (math.sinh(width) * width), 0)
        shifts = np.arange(-spread, spread + 1)
        law = np.exp(-((shifts / self.blur) ** 2) / 2)
        law /= law @ np.cosh(shifts * width)
        self.densities = np.array(
            [np.convolve(self.cells.both_sides(row, spread), law, "valid") for row in density]
        )[:, self.cells.cells :]

    def _density(self, time: float) -> Floats:
        place = min(max(int(np.searchsorted(self.times, time)), 1), len(self.times) - 1)
        start, end = self.times[place - 1 : place + 1]
        part = (time - start) / (end - start)
        row = (1 - part) * self.densities[place - 1] + part * self.densities[place]
        return thirds(np.rint(row / UNIT) * UNIT)

    def _extend(self, budget: float, step: float) -> None:
        """The next row, at the least speed: small replies first, then those of all costs."""
        last = self.table.rows[-1]
        certain = math.ceil((last.certain + _SPARE * step) * FINE) / FINE

        def offer(speed: float) -> Row:
            density = self._density(self.time + speed * step)
            return self.table.row(round(budget / UNIT) * UNIT, density, certain)

        slow, fast = self.speed - 0.1, self.speed
        while not self.table.small_hold(last, offer(fast)).all():
            slow, fast = fast, fast * 1.05
            if fast > _FASTEST:
                raise InputError(f"no row follows budget {last.budget:g}; give smaller cells")
        while fast - slow > 5e-4:
            middle = (slow + fast) / 2
            holds = self.table.small_hold(last, offer(middle)).all()
            slow, fast = (slow, middle) if holds else (middle, fast)
        while self.table.rows[-1] is last:
            try:
                self.table.add(offer(fast))
                self.time, self.speed = self.time + fast * step, fast
            except InputError:
                if fast > _FASTEST:
                    raise
                fast += 1e-3


def search_table(reach: float, coarser: int = 1) -> Search:
    """The search that has the package's table for this reach: minutes; in seconds, and looser, with
    cells and steps that are `coarser`."""
    cost, jumps, blur, share, haste = next(each[1:] for each in TABLES if each[0] == reach)
    jumps //= coarser
    cells = Cells(reach, jumps, int(WIDEST * jumps / math.atanh(reach)))
    search = Search(cells, cost, blur / coarser, haste)
    search.run(LAST_BUDGET, share * coarser**2)
    return search
