"""The least number of clients for which a protocol succeeds with a given probability, measured: a search with a confidence interval."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.normal import normal_quantile, normal_tail
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.protocols.base import Protocol

Z95 = 1.959963984540054
_WINDOW = 2.25  # points further than this factor from the answer do not enter the fit
_SPREAD = (-0.4, -0.2, 0.0, 0.2, 0.4)  # where to put runs, in probits from the target
_REACH = 0.6  # but no further than this in x = 2 (sqrt(n / answer) - 1): from half the answer to 1.7 times it


@dataclass(frozen=True)
class Trials:
    """`successes` out of `trials` runs with n clients."""

    n: int
    trials: int
    successes: int

    @property
    def share(self) -> float:
        return self.successes / self.trials


@dataclass(frozen=True)
class MinimalClients:
    """The least n with success probability `target`, its 95 % confidence interval, and the runs behind it."""

    n: int
    low: int
    high: int
    target: float
    points: tuple[Trials, ...]

    @property
    def trials(self) -> int:
        """How many runs were made in all."""
        return sum(point.trials for point in self.points)


def minimal_clients(success: Callable[[int, int], int], guess: int, *, target: float = 0.9, trials: int = 3000, least: int = 2) -> MinimalClients:
    """The n at which `success(n, runs)`, a count of successes among fresh independent runs, reaches the share `target`.

    A bracket is found from `guess` by steps of 1.5, then about `trials` runs are spread around the answer and a probit curve in sqrt(n) is fitted to
    all points within a factor 2.25: success curves of threshold decoders are straight there, and every run counts. `least` is the smallest n allowed.
    Raises InputError if success does not grow with n.
    """
    if not 0 < target < 1 or guess < least:
        raise InputError(f"target is {target} and guess {guess}; give a share between 0 and 1 and a guess of at least {least}")
    points = _bracket(success, guess, target, max(60, trials // 25), least)
    centre = math.sqrt(points[-1].n * points[-2].n)
    for part in (trials // 3, trials - trials // 3):
        fit = _fit(points, centre)
        centre = fit.solve(target)
        for probits in _SPREAD:
            x = min(max(probits / max(fit.slope, 1e-3), -_REACH), _REACH)
            points.append(_runs(success, max(least, round(centre * (1 + x / 2) ** 2)), max(1, part // len(_SPREAD))))
    fit = _fit(points, centre)
    if fit.slope <= 0:
        raise InputError(f"success does not grow with n near n = {centre:.0f}; give more trials or another protocol")
    margin = Z95 * fit.error(target)
    low, high = fit.solve(target, -margin), fit.solve(target, margin)
    return MinimalClients(round(fit.solve(target)), math.floor(low), math.ceil(high), target, tuple(points))


def exact_recovery(protocol: Protocol[Any], epsilon: float, seed: int) -> Callable[[int, int], int]:
    """For `minimal_clients`: how often the protocol finds its hidden concept exactly, each run with a fresh concept and tallies drawn from their law."""
    generator = np.random.default_rng([seed])

    def successes(n: int, runs: int) -> int:
        algorithm = protocol.algorithm(epsilon, n)
        found = 0
        for concept_seed in generator.integers(1 << 62, size=runs).tolist():
            population = protocol.synthetic(n, concept_seed)
            result = run(algorithm, AggregateOracle(population, generator, epsilon))
            found += protocol.true_error(result, population) == 0
        return found

    return successes


def _runs(success: Callable[[int, int], int], n: int, runs: int) -> Trials:
    return Trials(n, runs, success(n, runs))


def _bracket(success: Callable[[int, int], int], guess: int, target: float, runs: int, least: int) -> list[Trials]:
    """Points at steps of 1.5 from the guess, until the target lies between two of them."""
    points = [_runs(success, guess, runs)]
    up = points[0].share < target
    for _ in range(60):
        n = max(least, round(points[-1].n * (1.5 if up else 1 / 1.5)))
        if n == points[-1].n:  # already at `least`, or 1.5 n rounds to n
            n += up
        points.append(_runs(success, n, runs))
        if (points[-1].share >= target) == up or n == least:
            return points
    raise InputError(f"success stays at {points[-1].share:.2f} from n = {guess} to {points[-1].n}; it does not reach {target} with more clients")


@dataclass(frozen=True)
class _Fit:
    """Pr[success] = Phi(level + slope x), x = 2 (sqrt(n / centre) - 1), with the covariance of (level, slope)."""

    centre: float
    level: float
    slope: float
    covariance: Floats

    def solve(self, target: float, shift: float = 0.0) -> float:
        """The n at which the target is reached, `shift` added to its x."""
        x = (-normal_quantile(target) - self.level) / self.slope + shift if self.slope > 0 else shift
        return self.centre * (1 + min(max(x, -1.5), 3.0) / 2) ** 2

    def error(self, target: float) -> float:
        """The standard error of that x (delta method)."""
        x = (-normal_quantile(target) - self.level) / self.slope
        gradient = np.array([-1.0, -x]) / self.slope
        return math.sqrt(float(gradient @ self.covariance @ gradient))


def _fit(points: list[Trials], centre: float) -> _Fit:
    """The probit fit by Fisher scoring."""
    near = [point for point in points if 1 / _WINDOW <= point.n / centre <= _WINDOW]
    x = 2 * (np.sqrt([point.n / centre for point in near]) - 1)
    runs = np.array([point.trials for point in near], dtype=np.float64)
    share = np.array([(point.successes + 0.25) / (point.trials + 0.5) for point in near])  # a quarter success each way keeps 0 and 1 finite
    design = np.stack([np.ones(len(near)), x], axis=1)
    beta, covariance = _solve(design, runs, np.array([-normal_quantile(float(p)) for p in share]))
    for _ in range(25):
        eta = np.clip(design @ beta, -5, 5)
        fitted = np.array([normal_tail(-float(e)) for e in eta])
        density = np.exp(-(eta**2) / 2) / math.sqrt(2 * math.pi)
        beta, covariance = _solve(design, runs * density**2 / (fitted * (1 - fitted)), eta + (share - fitted) / density)
    return _Fit(centre, float(beta[0]), float(beta[1]), covariance)


def _solve(design: Floats, weights: Floats, response: Floats) -> tuple[Floats, Floats]:
    """Weighted least squares with a slope that is N(1, 1) beforehand, worth some tens of runs: coefficients and their covariance."""
    precision = design.T @ (weights[:, None] * design) + np.diag([0.0, 1.0])
    covariance = np.linalg.inv(precision).astype(np.float64)
    return covariance @ (design.T @ (weights * response) + np.array([0.0, 1.0])), covariance
