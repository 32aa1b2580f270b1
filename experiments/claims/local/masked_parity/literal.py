"""The paper's masked-parity protocol with ideal Laplace noise, in law and record by record: a baseline that no private run may use."""

from collections.abc import Callable
from typing import Any

import numpy as np

from local_dp.bounds.masked_parity import masked_parity_literal_success
from local_dp.masked.population import Concept, MaskedParityPopulation
from local_dp.masked.queries import MaskedDisagreement, MaskedIndicator
from local_dp.optimise import best_split


def literal_recovery(d: int, epsilon: float, seed: int) -> Callable[[int, int], int]:
    """For `minimal_clients`: the paper's protocol with ideal Lap(2 / epsilon) noise, drawn from its law: a binomial count plus a difference of gammas."""
    generator = np.random.default_rng([seed])
    scale = 2 / epsilon

    def mean(clients: int, share: Any) -> Any:
        noise = scale * (generator.standard_gamma(clients, share.shape) - generator.standard_gamma(clients, share.shape))
        return (generator.binomial(clients, share) + noise) / clients

    def successes(n: int, runs: int) -> int:
        first = _literal_split(d, epsilon, n)
        bits = generator.integers(2, size=(runs, d))
        mask = generator.integers(2, size=runs)
        r_right = ((mean(first // d, bits / (2 * d)) > 1 / (4 * d)) == bits).all(axis=1)
        a_right = (mean(n - first, mask / 2) > 1 / 4) == mask  # counted only where r is right, so its law given a wrong r does not matter
        return int((r_right & a_right).sum())

    return successes


def _literal_split(d: int, epsilon: float, n: int) -> int:
    return best_split(lambda one, two: masked_parity_literal_success(d, epsilon, one, two), n)


def literal_by_clients(d: int, epsilon: float, n: int, seed: int) -> bool:
    """One run of the same, record by record: every client evaluates its query and adds its own Lap(2 / epsilon)."""
    generator = np.random.default_rng([seed, n])
    truth = Concept(d, int(generator.integers(1 << d)), int(generator.integers(2)))
    population, first = MaskedParityPopulation(truth, n, seed), _literal_split(d, epsilon, n)

    def mean(query: MaskedIndicator | MaskedDisagreement, start: int, stop: int) -> float:
        values = (query.values(population.batch(start, stop)) > query.domain.high // 2).astype(np.float64)
        return float(np.mean(values + generator.laplace(scale=2 / epsilon, size=stop - start)))

    each = first // d
    r = sum(1 << j for j in range(d) if mean(MaskedIndicator(d, j), j * each, (j + 1) * each) > 1 / (4 * d))
    return Concept(d, r, int(mean(MaskedDisagreement(d, r), first, n) > 1 / 4)) == truth
