"""Checks that a table bounds what replies of a limited budget can tell of two hypotheses: a
supersolution of the program on the posterior (docs/theory/posterior.md).

x is half the log odds. A reply of likelihoods 1 + u and 1 - u moves x by artanh u. The value of
a posterior is phi(x) / (2 cosh x), and one reply makes E[phi(x + artanh u) / cosh artanh u] of it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from local_dp.arrays import Bools, Counts, Floats
from local_dp.errors import InputError

UNIT = 1e-6  # of budgets and densities
FINE = 10**9
PARTS = 3  # odd
# sums of 3 MAX_CELLS terms below 4 MOST cosh(MAX_ODDS) err by less than half of ROOM
MIN_WIDTH, MAX_CELLS, MAX_ODDS, MAX_ROWS, MOST = 1e-3, 1_000, 6.5, 2_000, 1.1
HALVINGS = 10  # of the range of slopes that is searched
ROOM = 1e-9  # of every inequality


@dataclass(frozen=True)
class Cells:
    """Cells of x, as wide as artanh(reach) / jumps, with weight in -cells .. cells; all functions
    are even, and given at x >= 0.

    A function has two forms: `sharp`, with its weight at the centres, which is exact between them
    by translation; and `smooth`, its mean over a cell's width, whose weight has a density.
    Tables state densities on cells; `fine` thirds of these are checked.
    """

    reach: float
    jumps: int
    cells: int

    @property
    def width(self) -> float:
        return math.atanh(self.reach) / self.jumps

    @cached_property
    def fine(self) -> "Cells":
        """Thirds of these cells."""
        return Cells(self.reach, PARTS * self.jumps, PARTS * self.cells + PARTS // 2)

    @property
    def size(self) -> int:
        """How many cells from 0 on a reply can move to the weight, or from it."""
        return self.cells + self.jumps + 1

    @cached_property
    def moves(self) -> tuple[Floats, Floats]:
        """u and cosh of jumps by 1, 2, ... cells."""
        steps = np.arange(1, self.jumps + 1) * self.width
        return np.tanh(steps), np.cosh(steps)

    @cached_property
    def blur(self) -> float:
        """The most by which a reply's cost grows if each outcome moves at random to a whole cell
        beside it."""
        return float(self.moves[0][0]) ** 2 / 4

    @cached_property
    def sag(self) -> float:
        """How far above 0 a function must be at both edges to be so between them, if it falls as
        one of density 1 does: cosh(width / 2) - 1, without cancellation."""
        return 2 * math.sinh(self.width / 4) ** 2

    def both_sides(self, density: Floats, spare: int) -> Floats:
        """Both sides, with spare cells without weight at each end."""
        return np.pad(np.concatenate([density[:0:-1], density]), spare)

    def sharp(self, density: Floats, certain: float) -> Floats:
        """phi at the centres of cells, and of `jumps` further ones."""
        line, weights = self._sharp
        return np.asarray(certain * line - weights @ density)

    @cached_property
    def _sharp(self) -> tuple[Floats, Floats]:
        """2 cosh x, and what density 1 around +-y takes from it: e^-|x - y|, and e^-(x + y)."""
        x = np.arange(self.size + self.jumps + 1) * self.width
        y = x[: self.cells + 1]
        other = np.where(y > 0, np.exp(-(x[:, None] + y)), 0.0)
        return 2 * np.cosh(x), (np.exp(-np.abs(x[:, None] - y)) + other) * self.width / 2

    def smooth(self, sharp: Floats) -> Floats:
        """phi at 0 and at the edges of cells, from the sharp one, which has no weight between the
        centres."""
        width, quarter = self.width, self.width / 4
        here, beside = (4 * math.sinh(k * quarter) * math.sinh(quarter) for k in (3, 1))
        middle = (here * sharp[0] + beside * sharp[1]) / (width * math.sinh(width))
        edges = (sharp[: self.size] + sharp[1 : self.size + 1]) * (math.tanh(width / 2) / width)
        return np.append(middle, edges)

    def least_certain(self, density: Floats) -> float:
        """The least `certain` for which the smooth phi is at least e^|x|."""
        centres = np.arange(-self.cells, self.cells + 1) * self.width
        weight = self.both_sides(density, 0) @ np.exp(centres) * math.sinh(self.width / 2)
        return max(1.0, float(weight)) * (self.width / 2 / math.sinh(self.width / 2)) + ROOM

    @cached_property
    def _growth(self) -> Floats:
        """What density 1 in the l-th cell on the way adds to a jump, over u^2: (l, jump)."""
        u, cosh = self.moves
        half = self.width / 2  # cosh(s w) - cosh((s - 1) w), without cancellation
        rise = 2 * np.sinh((2 * np.arange(self.jumps) + 1) * half) * math.sinh(half)
        later = np.arange(self.jumps) - np.arange(self.jumps)[:, None]
        return np.where(later >= 0, rise[np.maximum(later, 0)], 0.0) / (cosh * u**2)

    def rate(self, density: Floats) -> Floats:
        """An upper bound, at the edges, of what replies add to the smooth phi per unit of budget,
        in the limit of small costs; sound between edges beside `slack`.

        Jumps below three eighths of all are bounded by the greatest densities on the way, further
        ones by those of whole cells: a convex function between them lies below its chord.
        """
        near = max(1, 3 * self.jumps // 8)
        spare = 2 * self.jumps + 2
        both = self.both_sides(density, spare)
        edges = self.cells + spare + np.arange(self.size)
        ways = np.lib.stride_tricks.sliding_window_view(both, self.jumps)
        out, back = ways[edges + 1], ways[edges - self.jumps + 1][:, ::-1]
        jumps = np.maximum(out @ self._growth, back @ self._growth)[:, near - 1 :].max(axis=1)
        u = self.moves[0][near - 1 :]
        chord = 1 + np.max((u[1:] - u[:-1]) ** 2 / (4 * u[1:] * u[:-1]), initial=0.0)
        beside = np.maximum(both[edges], both[edges + 1])
        far = chord * (jumps + beside * self.sag / u[0] ** 2)
        small = (1 + math.tanh(near * self.width / 2) ** 2) / 2 * math.cosh(self.width / 2)
        return np.asarray(np.maximum(far, small * _greatest_means(both, edges, near)))

    def slack(self, change: Floats) -> Floats:
        """How much more a difference of two smooth phi must have at the edges, its density being
        `change`, so that it holds between them."""
        beside = np.pad(np.maximum(change, 0), (0, self.jumps + 1))
        return np.asarray(np.maximum(beside[:-1], beside[1:]) * self.sag)

    def line_excess(
        self, start: Floats, at: Counts, level: Floats, slope: Floats
    ) -> tuple[Floats, Floats]:
        """At most 0 at the centres `at` where no reply of any cost c makes more of the sharp phi
        `start` than level + slope c. And the sizes |u| of the two outcomes that are the nearest to
        more, shape (2, centres).

        A reply of mean 0 gains at most the line if some line in u and slope u^2 together lie above
        all its outcomes; by their convexity those of whole cells are enough, with a slack.
        """
        u, cosh = (each[:, None] for each in self.moves)
        base = level - slope * self.blur - ROOM / 2
        both = np.concatenate([start[self.jumps : 0 : -1], start])
        step = np.arange(1, self.jumps + 1)[:, None]
        parabola = base + slope * u**2
        ways = np.array([both[self.jumps + at + step], both[self.jumps + at - step]])
        tilts = (ways / cosh - parabola) / u  # of the line in u that lies above each outcome
        excess = tilts.max(axis=1).sum(axis=0) + ROOM
        outcomes = self.moves[0][tilts.argmax(axis=1)]
        return np.where((slope < 0) | (start[at] > base), np.inf, excess), outcomes


@dataclass
class Row:
    """A value function: its density, the value of certainty, both forms of phi, and a bound of its
    rate."""

    budget: float
    density: Floats
    certain: float
    smooth: Floats
    sharp: Floats
    rate: Floats
    line: Floats  # above all replies: level, and slope over the cost, at each centre


@dataclass
class Supersolution:
    """Rows in the order of their budgets. One reply of any cost c up to `cost` makes of a row no
    more than the rows around its budget + c, by interpolation."""

    cells: Cells
    cost: float
    rows: list[Row] = field(default_factory=list)

    @classmethod
    def check(cls, data: Mapping[str, Any]) -> "Supersolution":
        """The table of a certificate's data: every row is checked. Raises InputError where one does
        not hold, and LookupError, TypeError or ValueError on data of another shape.

        Numbers are whole, in units of 1e-6; of the value of certainty, 1e-9.
        """
        budgets, certain, densities = (_whole(data[key]) for key in ("budgets", "certain", "rows"))
        reach, cost, jumps = float(data["reach"]), float(data["cost"]), int(data["jumps"])
        count, cells = densities.shape
        if (
            not (0 < reach < 1 and 0 < cost <= 1)
            or not (2 <= count <= MAX_ROWS and 1 <= jumps < cells <= MAX_CELLS)
            or not budgets.shape == certain.shape == (count,)
            or certain.max() > MOST * FINE
        ):
            raise ValueError("its table is too large or has no shape")
        table = cls(Cells(reach, jumps, cells - 1).fine, cost)
        width = table.cells.width
        if not MIN_WIDTH <= width <= MAX_ODDS / table.cells.size:
            raise ValueError(f"its cells are {width} wide")
        rows = zip(budgets * UNIT, densities * UNIT, certain / FINE, strict=True)
        for budget, density, value in rows:
            table.add(table.row(float(budget), thirds(density), float(value)))
        return table

    def data(self) -> dict[str, Any]:
        """The table as JSON data for `check`."""
        return {
            "reach": self.cells.reach,
            "cost": self.cost,
            "jumps": self.cells.jumps // PARTS,
            "budgets": [round(row.budget / UNIT) for row in self.rows],
            "certain": [round(row.certain * FINE) for row in self.rows],
            "rows": [
                np.rint(row.density[::PARTS] / UNIT).astype(int).tolist() for row in self.rows
            ],
        }

    def row(self, budget: float, density: Floats, certain: float) -> Row:
        """A row that is not in the table yet."""
        sharp = self.cells.sharp(density, certain)
        rate = self.cells.rate(density)
        nothing = np.full((2, self.cells.size), math.inf)
        return Row(budget, density, certain, self.cells.smooth(sharp), sharp, rate, nothing)

    def add(self, row: Row) -> None:
        """Puts the row at the end. Raises InputError if some reply gains more than it allows."""
        try:
            lines = self._proof(row)
        except ValueError as error:
            raise InputError(f"the row of budget {row.budget:g} is too low: {error}") from None
        for earlier, line in lines:
            earlier.line = line
        self.rows.append(row)

    def _proof(self, row: Row) -> list[tuple[Row, Floats]]:
        """Lines of all earlier rows from which a reply leads past the last one. Raises ValueError
        with the reason why the row may not be the next one."""
        if not self.rows:
            if row.budget or row.certain < self.cells.least_certain(row.density):
                raise ValueError("a guess has more")
            return []
        last = self.rows[-1]
        rises = row.budget > last.budget and row.certain >= last.certain
        if not rises or (row.sharp < last.sharp).any():
            raise ValueError("the values fall")
        if not self.small_hold(last, row).all():
            raise ValueError("small replies gain more")
        lines = []
        for earlier in reversed(self.rows[:-1]):
            cost = last.budget - earlier.budget
            if cost >= self.cost:
                break
            line = self._line(earlier, row)
            if line is None:
                raise ValueError(f"replies of cost {cost:.3g} gain more")
            lines.append((earlier, line))
        return lines

    def small_hold(self, earlier: Row, later: Row) -> Bools:
        """In which cells the rate of the earlier row, kept up to the later one, stays below it."""
        need = (later.budget - earlier.budget) * earlier.rate + ROOM
        need += self.cells.slack(later.density - earlier.density)
        edges = need <= (later.smooth - earlier.smooth)[1:]
        return np.asarray(edges & np.append(edges[0], edges[:-1]))

    def _line(self, earlier: Row, row: Row) -> Floats | None:
        """Lines above all replies to the earlier row. For costs from the last row's budget to this
        one's they lie below the chord of both, wherever its rate does not suffice.

        Those for smaller costs are tried first. None if there are none.
        """
        last = self.rows[-1]
        small = self.small_hold(earlier, last) & self.small_hold(earlier, row)
        at = np.flatnonzero(~_around(small))
        here, low, high = (each.sharp[at] for each in (earlier, last, row))
        cost, step = last.budget - earlier.budget, row.budget - last.budget
        chord = (high - low) / step
        blur = self.cells.blur + cost
        ray = np.minimum((low - here - ROOM) / blur, (high - here - ROOM) / (blur + step))
        line = earlier.line.copy()
        level, slope = line[:, at]
        fits = (level + slope * cost <= low - ROOM) & (level + slope * (cost + step) <= high - ROOM)
        # where the values bend upwards the slope is below both
        flat, steep = 0.9 * np.minimum(chord, ray), np.maximum(chord, ray)
        for _ in range(HALVINGS):
            rest = np.flatnonzero(~fits)
            slope = (flat + steep)[rest] / 2
            above = slope > chord[rest]
            further = np.where(above, cost + step, cost)
            end = np.where(above, high[rest], low[rest])
            level = end - slope * further - 2 * ROOM
            excess, outcomes = self.cells.line_excess(earlier.sharp, at[rest], level, slope)
            fits[rest] = excess <= 0
            line[:, at[rest]] = level, slope
            # the excess is convex in the slope: above its least the slope has to fall
            rising = ((self.cells.blur + further) / outcomes - outcomes).sum(axis=0) > 0
            turns = rising | np.isinf(excess)
            steep[rest], flat[rest] = np.where(turns, (slope, flat[rest]), (steep[rest], slope))
        return line if fits.all() else None

    def curve(self) -> list[tuple[float, float]]:
        """Corners (budget, success) of the least concave function above all rows: with budget B in
        the mean nobody names the right hypothesis more often. It is 1 from the last budget on."""
        points = [(row.budget, float(row.smooth[0]) / 2 + ROOM) for row in self.rows]
        corners: list[tuple[float, float]] = []
        for point in [*points[:-1], (points[-1][0], 1.0)]:
            while len(corners) > 1 and not _bends(corners[-2], corners[-1], point):
                corners.pop()
            corners.append(point)
        return corners


def _greatest_means(both: Floats, edges: Counts, near: int) -> Floats:
    """Upper bounds, for both cells at an edge, of the mean density on a jump of up to `near` cells,
    with weights that fall linearly: a shorter jump has less of the greatest density so far."""
    ways = np.lib.stride_tricks.sliding_window_view(both, near + 2)
    falling = (2 * np.arange(near, 0, -1) - 1) / near**2
    out, back = (
        np.maximum.accumulate(way, axis=1)[:, 2:] @ falling
        for way in (ways[edges], ways[edges - near][:, ::-1])
    )
    return np.maximum(out, back)


def thirds(density: Floats) -> Floats:
    """The density in thirds of cells."""
    return np.repeat(density, PARTS)[PARTS // 2 :]


def _whole(values: Any) -> Counts:
    """Whole numbers from 0 to 2^53."""
    array = np.array(values)
    if array.dtype != np.int64 or array.size == 0 or array.min() < 0 or array.max() >= 1 << 53:
        raise ValueError("its table has numbers that are not whole, or not from 0 to 2^53")
    return array


def _around(centres: Bools) -> Bools:
    """Where a centre and both next to it are true."""
    return np.asarray(centres & np.append(centres[1:], True) & np.append(centres[1], centres[:-1]))


def _bends(
    first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]
) -> bool:
    rise = (middle[1] - first[1]) * (last[0] - middle[0])
    return rise > (last[1] - middle[1]) * (middle[0] - first[0])
