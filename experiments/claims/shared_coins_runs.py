"""What the experiment `shared-coins` measures at one point: the errors of a test of uniformity, over the number of clients."""

import numpy as np

from experiments.claims import coins_runs
from experiments.lab.claim import Measurement, Point
from local_dp.arrays import Floats
from local_dp.bounds.identity import half_stretch, half_threshold
from local_dp.bounds.response import response_gain

EPSILON, ALPHA, BETA = 1.0, 0.25, 0.1
OWN = 0  # groups of the design in which each client draws a row of Hadamard's matrix alone
FACTORS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4)  # of the clients that the issue of this experiment, or a formula, gives
PLENTY = 7.0  # k C^2 / alpha^2, where the formula's threshold is tried


def unit(k: int, groups: int) -> float:
    """C^2 k / alpha^2, and C^2 k^1.5 / alpha^2 for rows drawn alone."""
    return float(response_gain(EPSILON) ** 2 * k ** (1.0 if groups else 1.5) / ALPHA**2)


def means(k: int, groups: int, trials: int, generator: np.random.Generator) -> Floats:
    """The mean signs, before randomized response, of each group's random half of the symbols, or of all rows, if half of the symbols are more frequent."""
    if groups == OWN:
        return coins_runs.moments(coins_runs.PRIVATE, k, ALPHA, trials, generator)[0]
    frequent = generator.hypergeometric(k // 2, k // 2, k // 2, size=(trials, groups))
    moved: Floats = 4 * ALPHA * (2 * frequent - k // 2) / k
    return moved


def sums(moved: Floats, clients: int, generator: np.random.Generator) -> Floats:
    """The sum over groups of their squared standardised sums of reports, for each trial."""
    size = max(1, clients // moved.shape[1])
    plus = generator.binomial(size, (1 + moved / response_gain(EPSILON)) / 2)
    total: Floats = ((2.0 * plus - size) ** 2 / size).sum(axis=1)
    return total


def least_error(uniform: Floats, away: Floats) -> float:
    """The mean of both errors at the best threshold of the run."""
    both = np.concatenate([uniform, away])
    order = np.argsort(both, kind="stable")
    rejected = np.concatenate([np.zeros(len(uniform)), np.ones(len(away))])[order]
    wrong = len(uniform) + np.concatenate([[0.0], np.cumsum(2 * rejected - 1)])  # uniform sums above the threshold and others below it
    return float(wrong.min() / len(both))


def measure(point: Point, seed: int) -> Measurement:
    """The least mean error at each number of clients, and the two errors at the formula's threshold with plenty of them."""
    generator, k, groups, trials = np.random.default_rng(seed), point["k"], point["groups"], point["trials"]
    clients = [round(factor * point["guess"] * unit(k, groups)) for factor in FACTORS]
    errors = []
    for n in clients:
        moved = means(k, groups, trials, generator)
        errors.append(least_error(sums(0 * moved, n, generator), sums(moved, n, generator)))
    found: Measurement = {"clients": clients, "errors": errors}
    if groups != OWN:
        n = round(PLENTY * unit(k, groups))
        moved = means(k, groups, trials, generator)
        threshold = half_threshold(half_stretch(EPSILON, k, ALPHA, n, groups), groups)
        found["alarm"] = float((sums(0 * moved, n, generator) > threshold).mean())
        found["miss"] = float((sums(moved, n, generator) <= threshold).mean())
    return found
