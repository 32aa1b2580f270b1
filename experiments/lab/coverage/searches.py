"""Searches for a least number of clients on success curves whose answer is known, for measuring how often their intervals hold it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from local_dp.bounds.tails import normal_quantile, normal_tail
from local_dp.experiments.lab.claim import Scale
from local_dp.experiments.lab.coverage.stated import Stated
from local_dp.experiments.lab.minimal_clients import minimal_clients

DECISIONS, SLOPES = (1, 5, 20, 65), (3.0, 10.0)  # success curves from flat to steep: masked parity at d = 64 takes 65 decisions
SEARCHES: dict[Scale, tuple[int, ...]] = {"quick": (300, 3000), "full": (1000, 12_000)}  # runs of a search, about the fewest and the most that there are
TARGET = 0.9
SCALE, COUNT = 500.0, 12_345.0  # of the curves: where they lie does not matter


@dataclass(frozen=True)
class SuccessCurve:
    """A success probability that grows with n from flat (few decisions) to steep, and `truth`, where it reaches 90 %."""

    what: str
    truth: float
    chance: Callable[[int], float]

    def drawn(self, generator: np.random.Generator) -> Callable[[int, int], int]:
        """For `minimal_clients`: successes among fresh runs."""
        return lambda n, runs: int(generator.binomial(runs, self.chance(n)))


def all_right(decisions: int) -> SuccessCurve:
    """Success when so many threshold decisions are all right, each with probability Phi(sqrt(n / 500))."""
    truth = SCALE * normal_quantile(1 - TARGET ** (1 / decisions)) ** 2
    return SuccessCurve(f"{decisions} decision{'s' if decisions > 1 else ''}", truth, lambda n: (1 - normal_tail(math.sqrt(n / SCALE))) ** decisions)


def steep(slope: float) -> SuccessCurve:
    """A probit curve that rises through 90 % at 12,345: with slope 30 from .5 to .99 within 8 % of the clients."""
    start = normal_quantile(1 - TARGET)
    return SuccessCurve(f"slope {slope:g}", COUNT, lambda n: 1 - normal_tail(start + slope * 2 * (math.sqrt(n / COUNT) - 1)))


def least_count_cases(scale: Scale) -> list[Stated]:
    """Searches for a least number of clients, on curves from flat to steep, with the fewest and the most runs at this scale."""
    curves = [*map(all_right, DECISIONS), *map(steep, SLOPES)]
    return [Stated("least-counts", curve.what, trials, curve.truth, _search(curve, trials), dear=2) for curve in curves for trials in SEARCHES[scale]]


def _search(curve: SuccessCurve, trials: int) -> Callable[[np.random.Generator], tuple[float, float]]:
    def make(generator: np.random.Generator) -> tuple[float, float]:
        found = minimal_clients(curve.drawn(generator), round(0.7 * curve.truth), target=TARGET, trials=trials)
        return found.low, found.high

    return make
