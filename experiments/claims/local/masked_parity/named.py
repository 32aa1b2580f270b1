"""Masked parity in one round by named masks, drawn from its law at a cost independent of 2^d."""

import math
from collections.abc import Callable

import numpy as np
from numpy.random import default_rng


def named_recovery(d: int, epsilon: float, seed: int) -> Callable[[int, int], int]:
    """For `minimal_clients`: one round by named masks, bit by bit from its law: the clients by b
    and i, and those that agree with r so far. O(d^2) a run, where a tally has 2^(d + 1) counts."""
    generator, truth = default_rng([seed]), 1 / (1 + math.exp(-epsilon))

    def successes(n: int, runs: int) -> int:
        clients = generator.multinomial(n, [1 / (2 * d)] * d + [1 / 2], runs)
        naming, right = clients.copy(), np.ones(runs, dtype=np.bool_)
        for place in range(d):
            # a label with b = 1 contradicts the named mask at i
            chance = np.where(np.arange(d + 1) == place, truth, 1 / 2)
            wrong = generator.binomial(naming, chance)
            right &= 2 * (wrong + generator.binomial(clients - naming, chance)).sum(axis=1) > n
            naming -= wrong
        signs = generator.binomial(naming, [1 / 2] * d + [truth]).sum(axis=1)
        return int(
            (right & (2 * signs + generator.integers(2, size=runs) > naming.sum(axis=1))).sum()
        )

    return successes
