"""What the experiment `coins` measures at one point: how often a test of uniformity errs, over the number of clients."""

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.interaction import (
    ROWS,
    chi_square_quantile,
    half_stretch,
    half_threshold,
    private_coin_clients,
    public_coin_clients,
    shared_half_clients,
)
from local_dp.bounds.response import response_gain
from local_dp.cube import walsh_hadamard
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.protocols.surveys.identity import row_statistic

EPSILON, ALPHA = 1.0, 0.25
BETA, MEAN = 0.05, 0.1  # both errors at the threshold of `identity`; the mean of both at the best threshold of the run
HALVES = {"10 shared halves": 10, "40 shared halves": 40}  # one public random half of the symbols for each of so many groups
PUBLIC, PRIVATE, FIXED = f"{ROWS} shared rows", "own rows", "rows known beforehand"
FACTORS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.35, 2.0)  # of the predicted number of clients


def predicted(design: str, k: int) -> int:
    """The closed form: with halves for a mean error of .1, else for both errors of .05."""
    if design in HALVES:
        return shared_half_clients(EPSILON, k, ALPHA, MEAN, HALVES[design])
    return (private_coin_clients if design == PRIVATE else public_coin_clients)(EPSILON, k, ALPHA, BETA)


def threshold(design: str, k: int, clients: int) -> float:
    """Above it the uniform law is rejected: with halves half of what a law alpha away adds, else what the uniform law exceeds with probability .05."""
    if design in HALVES:
        return half_threshold(half_stretch(EPSILON, k, ALPHA, clients, HALVES[design]), HALVES[design])
    return chi_square_quantile(BETA, k - 1 if design == PRIVATE else ROWS)


def measure(point: Point, seed: int) -> Measurement:
    """At each number of clients: false alarms and misses at the stated threshold, and the least mean of both at any."""
    generator, design, k, trials = np.random.default_rng(seed), point["design"], point["k"], point["trials"]
    told = predicted(design, k)
    clients = [round(factor * told) for factor in FACTORS]
    alarms, misses, least = [], [], []
    for n in clients:
        means, expected = moments(design, k, trials, generator)
        uniform, away = (statistics(each, expected, n, generator) for each in (expected, means))
        limit = threshold(design, k, n)
        alarms.append(float((uniform > limit).mean()))
        misses.append(float((away <= limit).mean()))
        least.append(least_error(uniform, away))
    return {"clients": clients, "predicted": told, "alarms": alarms, "misses": misses, "least": least}


def moments(design: str, k: int, trials: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """The mean sign of each row under a law alpha away and under the uniform one, for each trial: shape (trials, rows).

    Halves: how many of the more frequent symbols are in each is hypergeometric. Random rows: what a row adds up over the more frequent symbols, and over
    the others, are two binomials. Own rows, Sylvester's but the first: a transform of a random half. Rows known beforehand: an adversary makes a half more
    frequent that all of them split evenly.
    """
    half = k // 2
    if design in HALVES:
        inside = generator.hypergeometric(half, half, half, size=(trials, HALVES[design]))
        return 4 * ALPHA * (2 * inside - half) / k, np.zeros(inside.shape)
    if design == PUBLIC:
        signs = 2.0 * generator.binomial(half, 0.5, size=(2, trials, ROWS)) - half
        expected = signs.sum(axis=0) / k
        return expected + 2 * ALPHA * (signs[0] - signs[1]) / k, expected
    if design == FIXED:
        return np.zeros((trials, ROWS)), np.zeros((trials, ROWS))
    law = np.tile(np.repeat([1.0, -1.0], half), (trials, 1))
    moved: Floats = walsh_hadamard(generator.permuted(law, axis=1).T).T[:, 1:]
    return 2 * ALPHA * moved / k, np.zeros(moved.shape)


def statistics(means: Floats, expected: Floats, clients: int, generator: np.random.Generator) -> Floats:
    """The test's statistic in each trial: the reports of each row are binomial."""
    gain, size = response_gain(EPSILON), max(1, clients // means.shape[1])
    plus = generator.binomial(size, (1 + means / gain) / 2)
    return row_statistic(2.0 * plus - size, np.full(means.shape, float(size)), expected, gain)


def least_error(uniform: Floats, away: Floats) -> float:
    """The mean of both errors at the best threshold of the run."""
    both = np.concatenate([uniform, away])
    order = np.argsort(both, kind="stable")
    rejected = np.concatenate([np.zeros(len(uniform)), np.ones(len(away))])[order]
    wrong = len(uniform) + np.concatenate([[0.0], np.cumsum(2 * rejected - 1)])  # uniform sums above the threshold and others below it
    return float(wrong.min() / len(both))
