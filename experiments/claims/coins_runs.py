"""What the experiment `coins` measures at one point."""

import numpy as np

from experiments.lab.claim import Measurement, Point
from local_dp.arrays import Floats
from local_dp.bounds.identity import ROWS, chi_square_quantile, private_coin_clients, public_coin_clients
from local_dp.bounds.response import response_gain
from local_dp.cube import walsh_hadamard
from local_dp.protocols.identity import row_statistic

EPSILON, ALPHA, BETA = 1.0, 0.25, 0.05
PUBLIC, PRIVATE, FIXED = "public coins", "private coins", "rows known beforehand"
FACTORS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)  # of the predicted number of clients


def predicted(coins: str, k: int) -> int:
    """The closed form."""
    return (private_coin_clients if coins == PRIVATE else public_coin_clients)(EPSILON, k, ALPHA, BETA)


def measure(point: Point, seed: int) -> Measurement:
    """How often uniform is rejected, when it is the law and when a law alpha away is, at each number of clients."""
    generator, coins, k, trials = np.random.default_rng(seed), point["coins"], point["k"], point["trials"]
    degrees = k - 1 if coins == PRIVATE else ROWS
    threshold, n = chi_square_quantile(BETA, degrees), predicted(coins, k)
    counts = [round(factor * n) for factor in FACTORS]
    rejected = {}
    for name, alpha in (("uniform", 0.0), ("away", ALPHA)):
        rates = []
        for clients in counts:
            means, expected = moments(coins, k, alpha, trials, generator)
            rates.append(float((statistics(means, expected, clients, generator) > threshold).mean()))
        rejected[name] = rates
    return {"clients": counts, "predicted": n, **rejected}


def moments(coins: str, k: int, alpha: float, trials: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """The mean sign of each row under a law alpha away and under the uniform one, for each trial: shape (trials, rows).

    Random rows: what a row adds up over the more frequent half of the symbols, and over the other, are two binomials. Sylvester's rows but the first: a
    transform of a random half. Rows known beforehand: an adversary makes a half more frequent that all of them split evenly.
    """
    if coins == PUBLIC:
        halves = 2.0 * generator.binomial(k // 2, 0.5, size=(2, trials, ROWS)) - k // 2
        expected = halves.sum(axis=0) / k
        return expected + 2 * alpha * (halves[0] - halves[1]) / k, expected
    if coins == FIXED:
        return np.zeros((trials, ROWS)), np.zeros((trials, ROWS))
    half = np.tile(np.repeat([1.0, -1.0], k // 2), (trials, 1))
    moved: Floats = walsh_hadamard(generator.permuted(half, axis=1).T).T[:, 1:]
    return 2 * alpha * moved / k, np.zeros((trials, k - 1))


def statistics(means: Floats, expected: Floats, clients: int, generator: np.random.Generator) -> Floats:
    """The test's statistic in each trial: the reports of each row are binomial."""
    gain, size = response_gain(EPSILON), max(1, clients // means.shape[1])
    plus = generator.binomial(size, (1 + means / gain) / 2)
    return row_statistic(2.0 * plus - size, np.full(means.shape, float(size)), expected, gain)
