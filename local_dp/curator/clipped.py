"""Discrete Laplace noise on an answer in 0..last, clipped to that range: few outcomes, and a law in whole weights."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from local_dp.curator.mechanism import D_contra, Law, WithinEpsilon, check_listed
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, exp_epsilon, nano_epsilon
from local_dp.optimise import least_clients
from local_dp.populations.finite import Population, Rows
from local_dp.queries.query import Query
from local_dp.records import Records, chunks

LISTED = 1 << 10  # outcomes


@dataclass(frozen=True)
class ClippedLaplace:
    """Noise of ratio e^(-`nano` / 1e9 / `sensitivity`) on 0..`last`: it hides a shift of `sensitivity` at `nano` nano-nats. No noise at sensitivity 0."""

    nano: int
    sensitivity: int
    last: int

    def add(self, value: int, draws: Draws) -> int:
        return min(self.last, max(0, value + self.noise(draws)))

    def noise(self, draws: Draws) -> int:
        return draws.discrete_laplace(self._step / NANO) if self.sensitivity else 0

    def law(self, value: int) -> Law[int]:
        """With e^(eps / sensitivity) replaced by a fraction just below it (relative gap 1e-50). Raises InputError above 1,025 outcomes."""
        check_listed(f"answers of 0..{self.last}", self.last, LISTED)
        if not self.sensitivity or not self.last:
            return {value: 1}
        growth, most = exp_epsilon(self._step), self.last
        less, more = growth.denominator, growth.numerator
        ends = {y: less ** abs(y - value) * more ** (most + 1 - abs(y - value)) for y in (0, most)}
        inside = {y: less ** abs(y - value) * more ** (most - abs(y - value)) * (more - less) for y in range(1, most)}
        return {**ends, **inside}

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
    """Pr[Y >= least] of discrete Laplace noise Y at `nano` nano-nats. e^eps is replaced by a fraction just below it, so a small tail is not too small."""
    growth = exp_epsilon(nano)
    return growth ** (1 - least) / (growth + 1) if least > 0 else 1 - growth**least / (growth + 1)


def least_tail(nano: int | Fraction, share: Fraction) -> int:
    """The least whole y >= 1 with Pr[Y >= y] <= `share`, for noise as in `laplace_tail`: about 1 + ln(1 / (2 share)) / eps."""
    ratio = 1 / (share * (exp_epsilon(nano) + 1))
    return least_clients(lambda y: exp_epsilon(nano * (y - 1)) >= ratio)


def laplace_error(nano: int | Fraction) -> tuple[float, int]:
    """The standard deviation of discrete Laplace noise at `nano` nano-nats, and the least y that it stays within with probability 95 %."""
    step = float(nano) / NANO
    return 1 / (math.sqrt(2) * math.sinh(step / 2)), least_tail(nano, Fraction(1, 40)) - 1


_CHUNK = 1 << 16


@dataclass(frozen=True)
class NoisySum(ClippedAnswer[Records | Population]):
    """The sum over n records of a query's values, each counted as 0..m, plus discrete Laplace noise of ratio e^(-eps / m), clipped to 0..n m.

    Privacy: epsilon, exactly, since replacing one record moves the sum by at most m; n is public. Utility: standard error sqrt(2) m / eps. Cost: one pass.
    """

    query: Query
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.query.domain.kind != "levels" and self.query.domain.size != 2:
            raise InputError(f"query {self.query.name!r} has values in {self.query.domain}; give a query with levels, or with two values")

    @property
    def sensitivity(self) -> int:
        """m: the most that one record can add."""
        return self.query.domain.size - 1

    def noisy(self, database: Records | Population) -> tuple[int, ClippedLaplace]:
        population = Rows(database) if isinstance(database, Records) else database
        total, low = 0, self.query.domain.low
        for start, stop in chunks(0, population.size, _CHUNK):
            values = self.query.values(population.batch(start, stop))
            total += int(values.astype(np.int64).sum()) - low * (stop - start)
        return total, ClippedLaplace(nano_epsilon(self.epsilon), self.sensitivity, self.sensitivity * population.size)
