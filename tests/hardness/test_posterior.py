"""The program on the posterior: what its tables bound, and that false tables are refused."""

import json
import math
from copy import deepcopy
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.bounds.posterior import posterior_curves
from local_dp.hardness.certificates import posterior_certificate, verify_certificate
from local_dp.hardness.posterior import TABLES, Search, search_table
from local_dp.hardness.supersolution import Cells, Supersolution
from tests.support.inputs.refusals import refuse
from tests.support.wrong import wrong

CELLS = Cells(0.3, 10, 64)
COST = 0.03
EVERY = [jump for jump in np.arange(-6, 6.1, 0.25) if jump]


@lru_cache
def small_table() -> dict[str, Any]:
    """Budgets to .3 in steps of 12 %."""
    search = Search(CELLS, COST, 2.0)
    search.run(0.3, 0.12)
    return posterior_certificate(search.table)


def test_a_table_is_accepted_and_says_what_it_proves() -> None:
    """Success .6 takes .03 of budget; Hellinger's distance alone gives .02."""
    verdict = verify_certificate(small_table())
    assert verdict.valid
    assert 0.025 < verdict.figures["0.6"] < 0.04
    assert "|u| up to 0.3" in verdict.statement


@wrong(
    "local_dp.hardness.supersolution:Supersolution._proof",
    "not self.small_hold(last, row).all()",
    "False",
    "small replies are not checked",
    at="4",
)
@wrong(
    "local_dp.hardness.supersolution:Supersolution._proof",
    "line is None",
    "False",
    "large replies are not checked",
    at="4",
)
@wrong(
    "local_dp.hardness.supersolution:Supersolution._proof",
    "row.certain < self.cells.least_certain(row.density)",
    "False",
    "the first row is not checked",
    at="4",
)
@pytest.mark.parametrize("count", [4, pytest.param(60, marks=pytest.mark.long)])
def test_false_tables_are_refused(count: int) -> None:
    """Rows that are lower at a point, budgets that last longer, larger replies, and a start below
    a guess: `count` of each kind, drawn with seed 53."""
    draw = np.random.default_rng(53)
    data = small_table()
    for _ in range(count):
        rows = len(data["rows"])
        lower, longer, wider = (deepcopy(data) for _ in range(3))
        row, place = int(draw.integers(1, rows)), int(draw.integers(0, 30))
        lower["rows"][row][place] += int(2e6 / CELLS.width * draw.uniform(1e-3, 0.1))
        step = int(draw.integers(1, rows - 1))
        more = int(draw.uniform(0.1, 1) * (data["budgets"][step] - data["budgets"][step - 1]))
        longer["budgets"] = [
            budget + more * (place >= step) for place, budget in enumerate(data["budgets"])
        ]
        wider["reach"] *= draw.uniform(1.02, 2)
        small = longer | {"cost": 1e-4}
        for each in (lower, longer, wider, small):
            assert not verify_certificate(each).valid
    start = deepcopy(data)
    start["certain"][0] -= 10**6
    dear = data | {"cost": 0.09}
    assert not verify_certificate(start).valid
    assert not verify_certificate(dear).valid
    refuse(
        ("malformed", lambda: verify_certificate(data | {"rows": [[0.5] * 97] * rows})),
        ("malformed", lambda: verify_certificate(data | {"budgets": data["budgets"][:-1]})),
        ("malformed", lambda: verify_certificate(data | {"reach": 1.0})),
        ("wide", lambda: verify_certificate(data | {"reach": 1e-9})),
        ("wide", lambda: verify_certificate(data | {"reach": 0.9})),
    )


def strategies(reach: float, cost: float) -> list[tuple[float, float]]:
    """(budget, success) of a majority of equal replies of the greatest square, and of replies that
    tell all they may, or nothing."""
    points = []
    for n in (1, 3, 7, 15, 31, 63):
        u = min(reach, math.sqrt(cost))
        points.append((n * u**2, float(stats.binom.sf(n // 2, n, (1 + u) / 2))))
        bits = np.arange(n + 1)
        ahead = stats.binom.pmf(bits, n, u**2 / reach**2)
        right = [
            stats.binom.sf(k / 2, k, (1 + reach) / 2)
            + stats.binom.pmf(k / 2, k, (1 + reach) / 2) / 2
            for k in bits
        ]
        points.append((n * u**2, float(ahead @ right)))
    return points


@wrong(
    "local_dp.hardness.supersolution:Supersolution.curve",
    "float(row.smooth[0]) / 2 + ROOM",
    "float(row.smooth[0]) / 2.1 + ROOM",
    "successes are 5 % too low",
)
def test_no_strategy_beats_a_table() -> None:
    """The small table, and all curves of the package."""
    table = Supersolution.check(small_table())
    budgets, successes = np.array(table.curve()).T
    rows = [(row.budget, row.smooth[0] / 2 + 9e-10) for row in table.rows]
    assert all(least <= np.interp(budget, budgets, successes) for budget, least in rows)
    assert (np.diff(np.diff(successes) / np.diff(budgets)) < 0).all()  # concave
    curves = [(0.3, COST, budgets, successes), *posterior_curves()]
    for reach, cost, budgets, successes in curves:
        for budget, success in strategies(reach, cost):
            assert success <= np.interp(budget, budgets, successes) + 1e-12


def gain(cells: Cells, density: Floats, x: float, jump: float) -> float:
    """The integral of sinh(jump - y) times the density at x + y, over cosh(jump) tanh(jump)^2."""
    edges = (np.arange(-cells.cells, cells.cells + 2) - 0.5) * cells.width - x
    way = np.clip(edges * math.copysign(1, jump), 0, abs(jump))
    parts = np.abs(np.diff(np.cosh(abs(jump) - way)))
    return float(parts @ cells.both_sides(density, 0)) / (math.cosh(jump) * math.tanh(jump) ** 2)


def bound_at(cells: Cells, rate: Floats, x: float) -> float:
    """Between the bounds at both edges of the cell of x."""
    place = x / cells.width + 0.5
    cell = math.floor(place)
    away = (place - cell) * cells.width
    before, after = rate[max(cell - 1, 0)], rate[cell]
    both = math.sinh(cells.width - away) * before + math.sinh(away) * after
    return float(both / math.sinh(cells.width))


@wrong(
    "local_dp.hardness.supersolution:_greatest_means",
    "axis=1)[:, 2:]",
    "axis=1)[:, :-2]",
    "only the cells at an edge count on the way",
)
@wrong(
    "local_dp.hardness.supersolution:Cells.rate",
    "1 + np.max",
    "1 + 0 * np.max",
    "jumps between whole cells are left out",
)
def test_the_rate_bounds_small_replies() -> None:
    """At 13,000 places and jumps of any size, over rough random densities, over single cells and
    equal ones, what a reply adds per u^2 is at most the interpolated bound, and comes within .1 %
    of it. The slack is that of -1 + a cosh x, which is 0 in the middle for a = 1."""
    draw = np.random.default_rng(5)
    rough = [draw.exponential(size=13) * (draw.random(13) < 0.5) for _ in range(40)]
    places = product(np.arange(0, 8, 0.25), EVERY)
    points = np.array([*draw.uniform((0, -6), (12, 6), (100, 2)), *places])
    shares = []
    for reach, jumps in ((0.5, 2), (0.5, 12), (0.05, 24)):
        cells = Cells(reach, jumps, 12)
        points[:, 1] *= jumps / np.abs(points[:, 1]).max()
        for place, density in enumerate([*np.eye(13)[3:6], np.ones(13), *rough]):
            rate = cells.rate(density)
            for x, jump in points[: 100 if place > 3 else None] * cells.width:
                most = bound_at(cells, rate, x)
                shares.append((gain(cells, density, x, jump) - 1e-12) / max(most, 1e-9))
        slack = math.cosh(cells.width / 2) - 1
        assert cells.slack(np.eye(13)[3])[1:5] == pytest.approx([0, slack, slack, 0])
    assert 0.999 < max(shares) <= 1


def test_what_is_asked_of_a_row() -> None:
    """A guess, e^|x|, may start a table, with room for the error of sums. The next row has to rise
    by the rate of small replies, and by what is lost between edges."""
    cells = Cells(0.5, 6, 12)
    guess = np.eye(13)[0] / math.sinh(cells.width / 2)
    table = Supersolution(cells, COST)
    row = table.row(0.0, guess, cells.least_certain(guess))
    above = row.smooth[1:] - np.exp((np.arange(cells.size) + 0.5) * cells.width)
    assert 5e-10 < above.min() <= above.max() < 1e-8
    later = table.row(0.1, 2 * guess, 2.0)
    need = row.smooth[1:] + 0.1 * row.rate + cells.slack(guess)
    for room in (0.0, 2e-9):
        later.smooth = np.append(0.0, need + room)
        assert (table.small_hold(row, later) == (room > 0)).all()


def between(cells: Cells, sharp: Floats, x: Floats) -> Floats:
    """The sharp function at any place, by translation between the centres."""
    place = np.abs(x) / cells.width
    cell = np.floor(place).astype(int)
    away = (place - cell) * cells.width
    both = np.sinh(cells.width - away) * sharp[cell] + np.sinh(away) * sharp[cell + 1]
    return np.asarray(both / math.sinh(cells.width))


@wrong(
    "local_dp.hardness.supersolution:Cells.line_excess",
    "[self.jumps + at - step]",
    "[self.jumps + at + step]",
    "only outcomes to the right count",
)
def test_a_line_bounds_replies_of_all_costs() -> None:
    """At nine centres of rough random functions, the lowest accepted line of a slope, 0 at one, is
    above 4,000 replies of two outcomes each by the error of sums, and within .02 of some."""
    draw = np.random.default_rng(7)
    cells, near = Cells(0.5, 6, 12), []
    at, up, down = np.arange(9), *draw.uniform(0, 0.5, (2, 4000, 1))
    up[:99], down[:99] = cells.moves[0][draw.integers(0, 6, (2, 99, 1))]
    for _ in range(20):
        density = draw.exponential(size=13) * (draw.random(13) < 0.5)
        sharp = cells.sharp(density, cells.least_certain(density))
        slope, low, high = draw.uniform(0, 2, 9) * (at > 0), sharp[at], sharp[at] + 2
        for _ in range(40):
            level = (low + high) / 2
            holds = cells.line_excess(sharp, at, level, slope)[0] <= 0
            low, high = np.where(holds, low, level), np.where(holds, level, high)
        x, both = at * cells.width, up + down
        right = down * np.sqrt(1 - up**2) * between(cells, sharp, x + np.arctanh(up))
        left = up * np.sqrt(1 - down**2) * between(cells, sharp, x - np.arctanh(down))
        near.append(((right + left) / both - high - slope * up * down).max(axis=0))
    assert np.max(near) <= -6e-10
    assert np.median(near) > -0.02


@pytest.mark.slow
@pytest.mark.parametrize("reach", [reach for reach, *_ in TABLES])
def test_the_curves_of_the_package_are_those_of_accepted_tables(reach: float) -> None:
    """A table that is searched again is accepted, and proves as much for every success; .02 % of
    the budget is left for the rounding of another machine."""
    search = search_table(reach)
    table = Supersolution.check(json.loads(json.dumps(search.table.data())))
    proven = np.array(table.curve()).T
    (curve,) = (each for each in posterior_curves() if each[:2] == (reach, table.cost))
    for success in np.linspace(0.55, 0.999, 200):
        assert np.interp(success, *proven[::-1]) >= np.interp(success, *curve[:1:-1])
