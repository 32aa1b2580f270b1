"""The least number of clients for which a protocol succeeds with a given probability, measured: a search with a confidence interval."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.bounds import normal_quantile, normal_tail
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.oracles.local import AggregateOracle
from local_dp.protocols.base import Protocol

Z95 = 1.959963984540054
_WINDOW = 1.5  # points further than this factor from the answer do not enter the fit
_SPREAD = (0.8, 0.9, 1.0, 1.11, 1.25)


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

    A bracket is found from `guess` by steps of 1.5, then about `trials` runs are spread over n within 25 % of the answer and a probit curve in ln n is
    fitted to all points within a factor 1.5: success curves of threshold decoders are straight there, and every run counts. `least` is the smallest n
    allowed. Raises InputError if success does not grow with n.
    """
    if not 0 < target < 1 or guess < least:
        raise InputError(f"target is {target} and guess {guess}; give a share between 0 and 1 and a guess of at least {least}")
    points = _bracket(success, guess, target, max(60, trials // 25), least)
    answer = _fit(points, target)
    for part in (trials // 3, trials - trials // 3):
        for factor in _SPREAD:
            points.append(_runs(success, max(least, round(answer.n * factor)), max(1, part // len(_SPREAD))))
        answer = _fit(points, target, answer.n)
    return answer


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


def _fit(points: list[Trials], target: float, centre: int | None = None) -> MinimalClients:
    """The probit fit Pr[success] = Phi(a + b ln(n / centre)) by Fisher scoring, solved for the target, with a delta-method interval."""
    middle = math.sqrt(points[-1].n * points[-2].n) if centre is None else float(centre)
    near = [point for point in points if 1 / _WINDOW <= point.n / middle <= _WINDOW]
    x = np.log([point.n / middle for point in near])
    runs = np.array([point.trials for point in near], dtype=np.float64)
    share = np.array([(point.successes + 0.25) / (point.trials + 0.5) for point in near])  # a quarter success each way keeps 0 and 1 finite
    design = np.stack([np.ones(len(near)), x], axis=1)
    weights = runs
    score = np.array([-normal_quantile(float(p)) for p in share])
    beta = _solve(design, weights, score)[0]
    for _ in range(25):
        eta = np.clip(design @ beta, -5, 5)
        fitted = np.array([normal_tail(-float(e)) for e in eta])
        density = np.exp(-(eta**2) / 2) / math.sqrt(2 * math.pi)
        weights = runs * density**2 / (fitted * (1 - fitted))
        beta, covariance = _solve(design, weights, eta + (share - fitted) / density)
    if not beta[1] > 0:
        raise InputError(f"success does not grow with n near n = {middle:.0f}: shares {[round(point.share, 3) for point in near]}")
    offset = (-normal_quantile(target) - beta[0]) / beta[1]
    gradient = np.array([-1.0, -offset]) / beta[1]
    margin = Z95 * math.sqrt(float(gradient @ covariance @ gradient))
    low, answer, high = (middle * math.exp(min(max(value, -3.0), 3.0)) for value in (offset - margin, offset, offset + margin))
    return MinimalClients(round(answer), math.floor(low), math.ceil(high), target, tuple(points))


def _solve(design: Any, weights: Any, response: Any) -> tuple[Any, Any]:
    """Weighted least squares with a slope that is N(1, 1) beforehand, worth some tens of runs: coefficients and their covariance."""
    covariance = np.linalg.inv(design.T @ (weights[:, None] * design) + np.diag([0.0, 1.0]))
    return covariance @ (design.T @ (weights * response) + np.array([0.0, 1.0])), covariance
