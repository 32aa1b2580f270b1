"""The trusted curator's part of the masked-parity experiment: the exponential mechanism over all concepts, its success measured."""

from collections.abc import Callable

import numpy as np

from local_dp.arrays import Ints
from local_dp.curator.selection.exponential import log_probabilities
from local_dp.curator.selection.occam import Labelled, MaskedParityClass, OccamLearner
from local_dp.draws import Draws
from local_dp.experiments.lab.claim import Measurement
from local_dp.masked.population import Concept, MaskedParityPopulation
from local_dp.noise import KeyedNoise


def curator_recovery(d: int, epsilon: float, seed: int) -> Callable[[int, int], int]:
    """For `minimal_clients`: how often the exponential mechanism chooses the true one of 2^(d+1) concepts, drawn from its exact law given n fresh examples."""
    concepts, generator = MaskedParityClass(d), np.random.default_rng([seed])

    def successes(n: int, runs: int) -> int:
        found = 0
        for drawn in generator.integers(1 << 62, size=runs).tolist():
            truth = int(generator.integers(concepts.size))
            x, y = _examples(concepts, truth, n, drawn)
            found += bool(np.log(generator.random()) < log_probabilities(-concepts.errors(x, y), epsilon)[truth])
        return found

    return successes


def curator_cross_check(d: int, epsilon: float, n: int, seed: int, runs: int = 400) -> Measurement:
    """The mechanism itself on the examples, sampled in whole numbers, beside its law: what `cross_check_shown` reads."""
    concepts, generator = MaskedParityClass(d), np.random.default_rng([seed, 1])
    found = 0
    for drawn in generator.integers(1 << 62, size=runs).tolist():
        truth = int(generator.integers(concepts.size))
        x, y = _examples(concepts, truth, n, drawn)
        found += OccamLearner(concepts, epsilon).release(Labelled(x, y), Draws(KeyedNoise(drawn))) == truth
    return {"clients": n, "users": [found, runs], "law": [curator_recovery(d, epsilon, seed)(n, 4 * runs), 4 * runs]}


def _examples(concepts: MaskedParityClass, truth: int, n: int, seed: int) -> tuple[Ints, Ints]:
    population = MaskedParityPopulation(Concept(concepts.d, truth >> 1, truth & 1), n, seed)
    return concepts.encoded(population.batch(0, n))
