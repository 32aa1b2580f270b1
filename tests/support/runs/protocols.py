"""One run of a protocol over a whole population: client by client, or by the law of its tallies."""

import numpy as np

from local_dp.interaction import R, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import LocalProtocol

LEAST = 0.94


def least_coverage(runs: int) -> float:
    """What a coverage of LEAST is measured as in so many runs, or lower once in 300,000."""
    return float(LEAST - 4.5 * np.sqrt(LEAST * (1 - LEAST) / runs))


def by_client(protocol: LocalProtocol[R], population: Population, epsilon: float, seed: int) -> R:
    oracle = PopulationOracle(population, KeyedNoise(seed), seed, epsilon)
    return run(protocol.algorithm(epsilon, population.size), oracle)


def by_law(
    protocol: LocalProtocol[R],
    population: Population,
    epsilon: float,
    seed: int | np.random.Generator,
) -> R:
    oracle = AggregateOracle(population, np.random.default_rng(seed), epsilon)
    return run(protocol.algorithm(epsilon, population.size), oracle)
