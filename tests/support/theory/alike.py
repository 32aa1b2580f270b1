"""Whether a protocol succeeds client by client as often as when its tallies are drawn from their
law."""

import math
from typing import Any

from local_dp.experiments.lab.parts import exact_recovery
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.protocols.local_protocol import LocalProtocol

Z_TAIL = 4.9  # the deviations that chance exceeds with probability 1e-6


def user_level(protocol: LocalProtocol[Any], n: int, runs: int) -> int:
    """In how many of these runs it finds its hidden concept exactly, every record put through its
    query and its randomizer."""
    algorithm, successes = protocol.algorithm(1.0, n), 0
    for seed in range(runs):
        population = protocol.synthetic(n, seed)
        successes += (
            protocol.true_error(
                run(algorithm, PopulationOracle(population, KeyedNoise(seed), seed, 1.0)),
                population,
            )
            == 0
        )
    return successes


def check_alike(protocol: LocalProtocol[Any], n: int, few: int, many: int) -> None:
    """Success in `few` runs client by client and `many` from the law differs by less than 4.9
    deviations; with a third of the clients in the latter by more."""
    users = user_level(protocol, n, few)

    def deviations(successes: int) -> float:
        mean = (users + successes) / (few + many)
        variance = mean * (1 - mean) * (1 / few + 1 / many)
        return (users / few - successes / many) / math.sqrt(variance)

    assert abs(deviations(exact_recovery(protocol, 1.0, 1)(n, many))) < Z_TAIL
    assert deviations(exact_recovery(protocol, 1.0, 2)(n // 3, many)) > Z_TAIL
