"""The standard deviation and the variance of a number between public bounds, from one report."""

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_built, check_number
from local_dp.errors import InputError
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.populations.finite import Finite, Population, weighted_records
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    PlainData,
    describe_estimate,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.surveys.policies import Launch, ends_of
from local_dp.queries.cells import Grouped
from local_dp.queries.tables import Bounded
from local_dp.randomizers.numbers.twice import TwiceRounded
from local_dp.records import Records
from local_dp.tallies import Z95, Estimate, Possible, Tally
from local_dp.text.layout import number

_GRID = 32  # standard deviations, and means on either side of the estimate, that are tested
_HALVINGS = 30
_NUISANCE = 1.3  # how many standard errors more the mean may be off: 3.3 in 99.9 % of runs


@dataclass(frozen=True)
class Deviation(Estimate):
    """The standard deviation of numbers in [0, 1] times `width`, from the `shares` of the symbols
    of `randomizer`.

    The interval has every standard deviation s that is plausible with some mean m. These determine
    the law of a report, and so the standard errors of (x - m)^2 - s^2 and of x - m: the first mean
    lies within z of them from 0, the second within z + 1.3, with half a report more. Nothing is
    linear here, so it covers 0, and s at either end. Only the share of missing numbers is
    estimated. Source: Wilson 1927 (score interval); Berger, Boos 1994 (the other parameter).
    """

    shares: Floats = field(kw_only=True)
    randomizer: TwiceRounded = field(kw_only=True)
    width: float = field(kw_only=True)

    @classmethod
    def of(cls, tally: Tally, randomizer: TwiceRounded, width: float) -> Self:
        """The standard error is that of a normal estimate with this interval."""
        shares = randomizer.estimate(tally).value
        present = shares[:3].sum()
        value = np.asarray(np.nan)
        if present > 0:
            mean = (shares[2] + shares[1] / 2) / present
            spread = np.clip(shares[2] / present - mean**2, 0.0, 0.25)
            value = np.asarray(width * np.sqrt(spread))
        n, none = tally.answered, np.asarray(0.0)
        estimate = cls(value, none, n, shares=shares, randomizer=randomizer, width=width)
        low, high = estimate.interval()
        return replace(estimate, standard_error=(high - low) / (2 * Z95))

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        """On a grid and at the estimate, then halved to full precision."""
        own = np.nan_to_num(self.value) / self.width
        grid = np.append(np.linspace(0.0, 0.5, _GRID + 1), own)
        away = self._away(grid, z)
        reach = z if away.min() <= z else away.min() + z
        inside = grid[away <= reach]
        within = np.array([inside.min(), inside.max()])
        outside = np.clip(within + np.array([-0.5, 0.5]) / _GRID, 0.0, 0.5)
        for _ in range(_HALVINGS):
            middle = (within + outside) / 2
            near = self._away(middle, z) <= reach
            within = np.where(near, middle, within)
            outside = np.where(near, outside, middle)
        low, high = self.width * within
        return np.asarray(low), np.asarray(high)

    def variance(self) -> tuple[float, float, float]:
        """The variance, and its interval."""
        low, high = self.interval()
        return float(self.value**2), float(low**2), float(high**2)

    def _away(self, deviations: Floats, z: float) -> Floats:
        """How many standard errors the reports are from each deviation with the best mean."""
        present = float(np.clip(self.shares[:3].sum(), 1e-9, 1.0))
        centre = (self.shares[2] + self.shares[1] / 2) / present
        reach = (z + _NUISANCE) * math.sqrt(worst_square(self.randomizer, 1) / self.n) / present
        near = np.clip(centre, 0.0, 1.0) + np.linspace(-1.0, 1.0, 2 * _GRID + 1) * min(1.0, reach)
        means = np.clip(np.append(near, np.linspace(0.0, 1.0, _GRID + 1)), 0.0, 1.0)
        rows = means[:, None]
        square, mean = tests(rows, deviations)
        law = symbol_law(rows, deviations, present)
        scales = (1.0, z / (z + _NUISANCE))
        parts = zip((square, mean), scales, strict=True)
        scores = [scale * self._score(test, law) for test, scale in parts]
        return np.asarray(np.maximum(*scores).min(axis=0))

    def _score(self, test: Floats, law: Floats) -> Floats:
        """The distance from 0 of the mean of a test, in its standard errors under the law."""
        p, q = self.randomizer.chances
        count = len(self.shares)
        gap = np.abs(np.tensordot(self.shares[:3], test, 1))
        # half a report: the largest difference that one makes
        step = np.maximum(test.max(axis=0), 0) - np.minimum(test.min(axis=0), 0)
        spread = squares(self.randomizer, test, law[:count])
        error = np.sqrt(np.maximum(spread, 1e-300) / self.n)
        return np.asarray((gap - step / (2 * self.n * (p - q))) / error)


def tests(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """What each symbol adds to (x - mean)^2 - deviation^2 and to x - mean, shape (3, means,
    deviations)."""
    ends = np.array([0.0, 0.5, 1.0])[:, None, None] - mean + 0 * deviation
    squares = np.array([0.0, 0.0, 1.0])[:, None, None]
    return squares - 2 * mean * (ends + mean) + mean**2 - deviation**2, ends


def symbol_law(mean: Floats, deviation: Floats, present: float = 1.0) -> Floats:
    """The shares of 0, 1 and 2 upper ends and of missing numbers, shape (4, means, deviations)."""
    square = mean**2 + deviation**2
    parts = [1 - 2 * mean + square, 2 * (mean - square), square]
    return np.stack([*(present * part for part in parts), np.full_like(square, 1 - present)])


def squares(randomizer: TwiceRounded, test: Floats, law: Floats) -> Floats:
    """The mean square of what one report adds to a test, whose mean is 0."""
    p, q = randomizer.chances
    rest = np.zeros((len(law) - 3, *test.shape[1:]))
    each = (np.concatenate([test, rest]) - q * test.sum(axis=0)) / (p - q)
    # no numbers have a negative share: then more means are plausible, never fewer
    return np.asarray((np.maximum(q + (p - q) * law, 0.0) * each**2).sum(axis=0))


def worst_square(randomizer: TwiceRounded, test: int) -> float:
    """The largest variance of a report in a test of `tests`, at any mean and deviation."""
    mean = np.linspace(0.0, 1.0, 65)[:, None]
    deviation = np.sqrt(mean * (1 - mean)) * np.linspace(0.0, 1.0, 17)
    law = symbol_law(mean, deviation)[: randomizer.shares]
    return float(squares(randomizer, tests(mean, deviation)[test], law).max())


@dataclass(frozen=True)
class Std(LocalProtocol[Deviation]):
    """Estimates the standard deviation of `column` between the public bounds [`low`, `high`], and
    its variance; without a table, of two values `spread` away from the middle of [0, 1].

    A number is rounded at random to a bound, twice, and randomized response reports how often it
    was the upper one: both moments from one report. The bounds are not read from the data. A number
    beyond them stops the run or is clipped; a missing one stops it or is left out. Privacy: every
    report is epsilon-locally private. Utility: n times the variance of the estimated variance, in
    units of half the range to the power 4, is at most 307, 20.2, 1.20 and 1.00 at epsilon .3, 1, 4
    and 8. Compared by the same worst case: half of the clients report the square instead (381,
    37.6, 6.90, 6.26), the piecewise mechanism's report and its square (275, 20.5, 1.40, 1.04),
    Laplace noise (39,900, 352, 3.50, 1.34), and 4 symbols of a finer rounding (417, 26.5, 1.22,
    1.00). Finer rounding has less error for nearly constant columns alone, from epsilon 4 on. The
    interval covers every law, constant columns too. `tolerance` sets the default number of clients;
    the error falls with its fourth root there. Cost: 2 bits a client, one round.
    """

    name = "std"
    asks = ("twice-rounded",)
    summary = "Estimates the standard deviation between public bounds"
    source = "Duchi, Jordan, Wainwright 2013 (rounding); Berger, Boos 1994 (interval)"
    example = "--records fair.csv --column age --low 15 --high 45"
    rate = 0.25
    column: str = parameter("value", "Column whose spread is estimated", of_table=True)
    low: float | None = parameter(None, "Public lower bound; needed with a table")
    high: float | None = parameter(None, "Public upper bound; needed with a table")
    outside: str = policy("numbers beyond the bounds", clip="they count as the nearer bound")
    missing: str = policy("missing numbers", exclude="the deviation of those present")
    spread: float = parameter(0.3, "Without a table: standard deviation, up to 0.5")
    tolerance: float = target_error(0.1, "share of the range")

    def check(self) -> None:
        check_number("spread", self.spread)
        if not 0 <= self.spread <= 0.5:
            raise InputError(f"spread is {self.spread!r}; give a number from 0 to 0.5")
        check_built(self.bounded)

    @property
    def bounded(self) -> Bounded:
        return Bounded(self.column, *ends_of(self.low, self.high))

    @property
    def query(self) -> Bounded | Grouped:
        own = self.bounded
        return own if self.missing != "exclude" else Grouped(own.column, own.low, own.high)

    def possible(self, result: Deviation) -> Possible:
        return Possible(0.0, (self.bounded.high - self.bounded.low) / 2)

    def randomizer_for(self, epsilon: float) -> TwiceRounded:
        return TwiceRounded(epsilon, none=int(self.missing == "exclude"))

    def clients(self, epsilon: float) -> int:
        # deviations differ by at most the root of the difference of variances
        far = normal_quantile(BETA / 2) / self.tolerance**2
        return math.ceil(worst_square(self.randomizer_for(epsilon), 0) * far**2)

    def algorithm(self, epsilon: float, clients: int) -> Local[Deviation]:
        randomizer = self.randomizer_for(epsilon)
        width = self.bounded.high - self.bounded.low
        return ask_all(
            self.query, randomizer, clients, lambda tally: Deviation.of(tally, randomizer, width)
        )

    def synthetic(self, clients: int, seed: int) -> Population:
        numbers = self.bounded.in_units(0.5 + self.spread * np.array([-1.0, 1.0]))
        return Finite(Records({self.column: numbers}), np.ones(2), clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.bounded(self.column, self.low, self.high, "the standard deviation")
        table.refuse_missing(
            self.missing, self.column, "missing=exclude (the deviation of those present)"
        )
        choices = "outside=clip (the deviation of the clipped numbers), or wider bounds"
        table.refuse_outside(
            self.outside, self.column, self.bounded.low, self.bounded.high, choices
        )
        return self

    def describe(self, result: Estimate) -> PlainData:
        data = describe_estimate(result)
        own = self.bounded
        return {"column": own.column, "low": own.low, "high": own.high, **data}

    def explain(self, result: Deviation) -> str:
        value, low, high = map(number, result.variance())
        return f"Variance {value}, 95 % interval {low} .. {high}."

    def truth(self, population: Population) -> Floats:
        """The standard deviation in the distribution that the clients are drawn from, of those
        present, clipped to the bounds; shape ()."""
        records, weights = weighted_records(population)
        present = ~np.isnan(records.numbers(self.column))
        shares = self.bounded.share(records)[present]
        if not len(shares):
            return np.asarray(np.nan)
        weights = weights[present]
        square = np.average((shares - np.average(shares, weights=weights)) ** 2, weights=weights)
        return np.asarray((self.bounded.high - self.bounded.low) * math.sqrt(square))
