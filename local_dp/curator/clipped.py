"""Discrete Laplace noise on an answer in 0..last, clipped to that range: few outcomes, and a law in
whole weights."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from local_dp.arrays import Ints
from local_dp.curator.mechanism import D_contra, Law, WithinEpsilon, check_listed, independent
from local_dp.domains import Domain, symbols
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, exp_epsilon, nano_epsilon
from local_dp.optimise import least_clients
from local_dp.populations.finite import Population, Rows
from local_dp.queries.query import Query
from local_dp.records import PART, Records, absent, chunks

LISTED = 1 << 10  # outcomes
PARTS = 24  # bits of the parts of a step


@dataclass(frozen=True)
class ClippedLaplace:
    """Noise of ratio e^(-`nano` / 1e9 / `sensitivity`) on 0..`last`: it hides a shift of
    `sensitivity` at `nano` nano-nats. No noise at sensitivity 0."""

    nano: int
    sensitivity: int
    last: int

    def add(self, value: int, draws: Draws) -> int:
        return min(self.last, max(0, value + self.noise(draws)))

    def noise(self, draws: Draws) -> int:
        return draws.discrete_laplace(self._step / NANO) if self.sensitivity else 0

    def law(self, value: int) -> Law[int]:
        """With e^(eps / sensitivity) replaced by a fraction just below it (relative gap 1e-50).
        Raises InputError above 1,025 outcomes."""
        check_listed(f"answers of 0..{self.last}", self.last, LISTED)
        if not self.sensitivity or not self.last:
            return {value: 1}
        growth, most = exp_epsilon(self._step), self.last
        less, more = growth.denominator, growth.numerator

        def weight(y: int) -> int:
            away = abs(y - value)
            tail = more if y in (0, most) else more - less
            return int(less**away * more ** (most - away) * tail)

        return {y: weight(y) for y in (0, most, *range(1, most))}

    @property
    def _step(self) -> Fraction:
        """The cost of moving the value by one, in nano-nats."""
        return Fraction(self.nano, self.sensitivity)


class ClippedAnswer(WithinEpsilon[D_contra, int]):
    """A whole number with clipped discrete Laplace noise."""

    @abstractmethod
    def noisy(self, database: D_contra) -> tuple[int, ClippedLaplace]:
        """The exact answer and its noise, which is the same on neighbours."""

    def release(self, database: D_contra, draws: Draws) -> int:
        value, noise = self.noisy(database)
        return noise.add(value, draws)

    def law(self, database: D_contra) -> Law[int]:
        value, noise = self.noisy(database)
        return noise.law(value)


@lru_cache(maxsize=4096)
def laplace_tail(nano: int | Fraction, least: int) -> Fraction:
    """Pr[Y >= least] of discrete Laplace noise Y at `nano` nano-nats. e^eps is replaced by a
    fraction just below it, so a small tail is not too small."""
    growth = exp_epsilon(nano)
    return growth ** (1 - least) / (growth + 1) if least > 0 else 1 - growth**least / (growth + 1)


def least_tail(nano: int | Fraction, share: Fraction) -> int:
    """The least whole y >= 1 with Pr[Y >= y] <= `share`, for noise as in `laplace_tail`: about 1 +
    ln(1 / (2 share)) / eps."""
    ratio = 1 / (share * (exp_epsilon(nano) + 1))
    return least_clients(lambda y: exp_epsilon(nano * (y - 1)) >= ratio)


@lru_cache(maxsize=256)
def laplace_error(nano: int | Fraction, misses: Fraction = Fraction(1, 20)) -> tuple[float, int]:
    """The standard deviation of discrete Laplace noise at `nano` nano-nats, and the least y that it
    misses with this probability at most."""
    step = float(nano) / NANO
    return 1 / (math.sqrt(2) * math.sinh(step / 2)), least_tail(nano, misses / 2) - 1


@dataclass(frozen=True)
class NoisySum(ClippedAnswer[Records | Population]):
    """The sum over n records of a query's values, each counted as 0..m, plus discrete Laplace noise
    of ratio e^(-eps / m), clipped to 0..n m.

    Privacy: epsilon, exactly, since replacing one record moves the sum by at most m; n is public.
    Utility: standard error sqrt(2) m / eps. Cost: one pass.
    """

    summary = "Releases a sum of bounded values with noise"
    query: Query
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.query.domain.kind != "levels" and self.query.domain.size != 2:
            raise InputError(
                f"query {self.query.name!r} has values in {self.query.domain}; give a query with "
                "levels, or with two values"
            )

    @property
    def sensitivity(self) -> int:
        """m: the most that one record can add."""
        return self.query.domain.size - 1

    def noisy(self, database: Records | Population) -> tuple[int, ClippedLaplace]:
        (total,), size = sums_of(database, self.query)
        m = self.sensitivity
        return total, ClippedLaplace(nano_epsilon(self.epsilon), m, m * size)


def sums_of(database: Records | Population, *queries: Query) -> tuple[list[int], int]:
    """The sums of the values of some queries, each counted from 0 on, rounded to whole numbers once
    at the end; and the number of records. Sums of parts of a step are exact, so a record that moves
    one by at most m moves it by at most m after rounding too."""
    population = Rows(database) if isinstance(database, Records) else database
    totals = [0] * len(queries)
    for start, stop in chunks(0, population.size, PART):
        batch = population.batch(start, stop)
        for place, query in enumerate(queries):
            values = query.values(batch) - query.domain.low
            whole = np.floor(values)
            parts = np.rint((values - whole) * 2.0**PARTS)
            totals[place] += (int(whole.sum()) << PARTS) + int(parts.sum())  # exact below 2^53
    return [total + (1 << PARTS >> 1) >> PARTS for total in totals], population.size


def rounding_error(size: int) -> float:
    """The most by which `sums_of` so many records is off."""
    return 0.5 + size / 2.0 ** (PARTS + 1)


@dataclass(frozen=True)
class HasNumber(Query):
    """1 where the column has a number, 0 where it is missing."""

    name: ClassVar[str] = "has-number"
    domain: ClassVar[Domain] = symbols(2)
    column: str

    def __call__(self, records: Records) -> Ints:
        return (~absent(records[self.column])).astype(np.int8)


class SumAndNumber(NamedTuple):
    """A noisy sum over all records, and the number of records that have a value, noisy unless it is
    public."""

    sum: int
    number: int


class MeanWithin(NamedTuple):
    """A mean of values in 0..1, its standard error to first order, and the ends of its 95 %
    interval."""

    value: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class NoisyMean(WithinEpsilon[Records | Population, SumAndNumber]):
    """The sum of a query's values 0..m, m even, and the number of records that have one (`present`
    is 1), with clipped discrete Laplace noise.

    A record without a value counts as m / 2 in the sum. Without `present` every record counts, and
    the number is public. Privacy: epsilon, exactly. The noise of the sum has ratio e^(-eps / m),
    that of the number e^(-eps / 2). A replaced value moves the sum by m at most, at the cost of
    eps. A value that appears or disappears moves it by m / 2 at most and the number by 1: eps / 2
    each. So the sum is as exact as one over all records. Utility: see `mean`. Cost: one pass.
    """

    summary = "Releases a sum and the number of present values"
    query: Query
    present: Query | None
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.query.domain.kind != "levels" or self.steps % 2:
            raise InputError(
                f"query {self.query.name!r} has values in {self.query.domain}; give a query with "
                "levels whose middle is a level"
            )

    @property
    def steps(self) -> int:
        """m: the most that one record can add."""
        return self.query.domain.size - 1

    @property
    def _nano(self) -> tuple[int, int]:
        """The noise of the sum and of the number."""
        nano = nano_epsilon(self.epsilon)
        return nano, nano // 2

    def noisy(
        self, database: Records | Population
    ) -> tuple[SumAndNumber, tuple[ClippedLaplace, ClippedLaplace]]:
        """The exact numbers and their noise, which is the same on neighbours."""
        sums, size = sums_of(database, *filter(None, (self.query, self.present)))
        of_sum, of_number = self._nano
        noise = (
            ClippedLaplace(of_sum, self.steps, self.steps * size),
            ClippedLaplace(of_number, int(self.present is not None), size),
        )
        return SumAndNumber(sums[0], sums[1] if self.present else size), noise

    def release(self, database: Records | Population, draws: Draws) -> SumAndNumber:
        exact, noise = self.noisy(database)
        return SumAndNumber(noise[0].add(exact.sum, draws), noise[1].add(exact.number, draws))

    def law(self, database: Records | Population) -> Law[SumAndNumber]:
        exact, noise = self.noisy(database)
        laws = [each.law(value) for each, value in zip(noise, exact, strict=True)]
        return {SumAndNumber(*pair): weight for pair, weight in independent(laws)}

    def mean(self, release: SumAndNumber, size: int) -> MeanWithin:
        """The mean of the present values over m, from a release about `size` records.

        The interval holds it with probability 95 % or more on every database. It allows for the sum
        that was rounded. With `present`, sum and number each miss
        with probability 2.5 % at most, and the interval has the quotients of all pairs within.
        """
        misses = Fraction(1, 20) if self.present is None else Fraction(1, 40)
        spread, reach = laplace_error(Fraction(self._nano[0], self.steps), misses)
        wide, far = (0.0, 0) if self.present is None else laplace_error(self._nano[1], misses)
        centred = (release.sum - size * self.steps / 2) / self.steps
        slack = (reach + rounding_error(size)) / self.steps
        number = max(1, release.number)
        numbers = release.number - far, min(size, release.number + far)
        ends = [(centred + side) / max(1, each) for side in (-slack, slack) for each in numbers]
        figures = centred / number, min(ends), max(ends)
        value, low, high = (0.5 + min(0.5, max(-0.5, each)) for each in figures)
        error = math.hypot(spread / self.steps, (value - 0.5) * wide) / number
        return MeanWithin(value, error, low, high)
