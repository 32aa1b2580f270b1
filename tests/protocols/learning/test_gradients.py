"""How gradients are reported: the way of least noise by closed form is taken, each way is unbiased with the noise stated, and descent errs less by it."""

import math

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.interaction import run
from local_dp.learners import examples
from local_dp.learners.halfspaces import Halfspace
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.finite import Finite
from local_dp.protocols.learning.sgd import Gradients, LocalSGD, gradients_of

N, RUNS = 400, 200
NORMAL = [1, 2, 1, 1, 3, 1, 1, 2]


def exact(population: Finite, weights: Floats) -> Floats:
    """Minus the gradient of the hinge loss in the population."""
    x, y = np.stack([population.kinds.numbers(f"x{place}") for place in range(len(weights))]), population.kinds.numbers("y")
    mean: Floats = x @ (population.shares * y * (y * (weights @ x) < 1))
    return mean


def told(way: Gradients, seed: int, weights: Floats) -> tuple[Floats, Floats]:
    """The estimate of a round of N clients, and the exact mean."""
    population = examples.halfspace_examples(NORMAL[: way.d], 0.5, N, seed)
    ends = [N * part // way.cohorts for part in range(way.cohorts + 1)]
    tallies = PopulationOracle(population, KeyedNoise(seed), seed, way.epsilon).answer(way.queries(tuple(weights.tolist()), ends))
    return way.read(tallies), exact(population, weights)


@pytest.mark.parametrize("name", ["one-bit-mean", "sampled-signs", "nearest-direction"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_each_way_is_unbiased_with_its_noise(name: str, epsilon: float, scale: float) -> None:
    """Over 200 rounds the mean is the exact gradient within 5 standard errors and 1e-3, n times the squared error at most its moment, and near it."""
    way, weights = gradients_of(epsilon, 4, scale, name), np.array([0.3, -0.2, 0.5, 0.1])
    pairs = [told(way, seed, weights) for seed in range(RUNS)]
    away = np.array([one - truth for one, truth in pairs])
    assert (abs(away.mean(axis=0)) < 5 * away.std(axis=0) / math.sqrt(RUNS) + 1e-3).all()
    squares = N * (away**2).sum(axis=1)
    error = 5 * squares.std() / math.sqrt(RUNS)
    assert 0.95 * way.moment - way.cohorts - error < squares.mean() < way.moment + error


def descended(learner: LocalSGD, epsilon: float, clients: int) -> float:
    """The mean hinge loss of the averaged weights over 6 seeds."""
    losses = []
    for seed in range(6):
        population = examples.halfspace_examples(NORMAL, 0.5, clients, seed)
        rule: Halfspace = run(learner.algorithm(epsilon, clients), PopulationOracle(population, KeyedNoise(seed), seed, epsilon))
        x, y = np.stack([population.kinds.numbers(f"x{place}") for place in range(8)]), population.kinds.numbers("y")
        losses.append(float(population.shares @ np.maximum(0, 1 - y * (np.array(rule.weights) @ x) / learner.gamma)))
    return float(np.mean(losses))


@pytest.mark.parametrize(
    ("epsilon", "bound", "clients", "share"),
    [(4.0, None, 400, 0.75), (8.0, None, 400, 0.5), (1.0, 1.0, 4000, 0.45), (4.0, 1.0, 1000, 0.35)],
)
def test_descent_errs_less(epsilon: float, bound: float | None, clients: int, share: float) -> None:
    """Where the noise counts, the excess hinge loss (the best is 0) is at most this share of that by one bit of one coordinate; the bound is smaller too."""
    before, after = (LocalSGD(d=8, gamma=0.5, rounds=40, bound=bound, told=way) for way in ("one-bit-mean", "best"))
    assert after.expected_error(epsilon, clients) < before.expected_error(epsilon, clients)
    assert descended(after, epsilon, clients) < share * descended(before, epsilon, clients)
