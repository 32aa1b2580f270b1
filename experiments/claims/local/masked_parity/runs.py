"""The points of the experiment `masked-parity`: searches and cross-checks, with two baselines that are no protocols.

The baselines are the paper's protocol with ideal Laplace noise, which no private run may use, and a trusted curator's exponential mechanism.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.arrays import Ints
from local_dp.bounds.masked_parity import (
    masked_parity_clients,
    masked_parity_curator_clients,
    masked_parity_fresh_clients,
    masked_parity_list_clients,
    masked_parity_literal_clients,
    masked_parity_literal_success,
    masked_parity_one_round_clients,
)
from local_dp.curator.selection.exponential import Labelled, MaskedParityClass, OccamLearner, log_probabilities
from local_dp.draws import Draws
from local_dp.experiments.lab.claim import Scale
from local_dp.experiments.lab.cross_check import CrossCheck, Crossing, cross_check, exact_trial
from local_dp.experiments.lab.minimal_clients import Search, exact_recovery, measured_clients
from local_dp.masked.population import Concept, MaskedParityPopulation
from local_dp.masked.queries import MaskedDisagreement, MaskedIndicator
from local_dp.noise import KeyedNoise, stream_key
from local_dp.optimise import best_split
from local_dp.protocols.local_protocol import LocalProtocol, find_protocol

EPSILON, TARGET = 1.0, 0.9
LITERAL = "paper's Laplace"  # the literal protocol with ideal noise Lap(2 / epsilon), in law only: real numbers leak in floating point
CLAMPED, FRESH, HASHED, LISTED, ONE_ROUND = "masked-parity-literal", "masked-parity-fresh", "masked-parity", "masked-parity-list", "masked-parity-one-round"
CURATOR = "curator"
INTERACTIVE = (LITERAL, FRESH, HASHED, LISTED)
LABELS = {
    LITERAL: "two rounds, as printed (P0)",
    CLAMPED: "two rounds, as printed, noise on a lattice and clamped",
    FRESH: "two rounds, randomized response (P1)",
    HASHED: "two rounds, hashing (P2)",
    LISTED: "two rounds, list decoding (P4)",
    ONE_ROUND: "one round",
    CURATOR: "trusted curator (exponential mechanism)",
}
CLIENTS: dict[str, Callable[[int, float, float], int]] = {
    LITERAL: masked_parity_literal_clients,
    CLAMPED: masked_parity_literal_clients,
    FRESH: masked_parity_fresh_clients,
    HASHED: masked_parity_clients,
    LISTED: masked_parity_list_clients,
    ONE_ROUND: masked_parity_one_round_clients,
    CURATOR: masked_parity_curator_clients,
}


@dataclass(frozen=True)
class Count:
    """The least number of clients that learn every bit in 90 % of the runs."""

    protocol: str
    d: int
    trials: int

    def __str__(self) -> str:
        return f"{LABELS[self.protocol]}, d = {self.d}"

    def measure(self, seed: int) -> Search:
        own_seed = int.from_bytes(stream_key(f"masked-parity {self.protocol}", seed, self.d)[:8], "little")
        guess = CLIENTS[self.protocol](self.d, EPSILON, 1 - TARGET)
        return measured_clients(_recovery(self.protocol, self.d, own_seed), guess, target=TARGET, trials=self.trials, least=2 * self.d + 2)


@dataclass(frozen=True)
class Users:
    """The formula's count, client by client and from the law: a protocol, the paper's with ideal noise, or the curator's mechanism itself."""

    protocol: str
    d: int

    def __str__(self) -> str:
        return f"{LABELS[self.protocol]}, d = {self.d}"

    def measure(self, seed: int) -> Crossing:
        name, d, n = self.protocol, self.d, CLIENTS[self.protocol](self.d, EPSILON, 1 - TARGET)
        if name == CURATOR:
            return curator_cross_check(d, EPSILON, n, seed)
        users, laws = (150, 1200) if name in (LITERAL, CLAMPED) else (400, 1600)  # tens of thousands of clients each
        if name == LITERAL:
            right = sum(literal_by_clients(d, EPSILON, n, run) for run in range(seed * users, (seed + 1) * users))
            return CrossCheck(n, (right, users), (literal_recovery(d, EPSILON, seed)(n, laws), laws))
        return cross_check(lambda: exact_trial(_protocol(name, d), EPSILON, n), seed, users=users, laws=laws)


def count(protocol: str, d: int, scale: Scale) -> Count:
    """A search with more runs if they are cheap, or if success grows slowly with n."""
    if protocol == LITERAL:
        return Count(protocol, d, 20_000)
    if scale == "quick":
        return Count(protocol, d, 4000 if d >= 10 else 2500 if protocol in (CLAMPED, FRESH, LISTED) else 1500)
    if protocol in (CLAMPED, CURATOR):
        return Count(protocol, d, 3000 if d <= 12 else 2000)
    return Count(protocol, d, 12_000 if protocol == ONE_ROUND else 6000 if d <= 16 else 3000)


def _protocol(name: str, d: int) -> LocalProtocol[Any]:
    return find_protocol(name).from_settings({"d": str(d)})


def _recovery(protocol: str, d: int, seed: int) -> Callable[[int, int], int]:
    if protocol == LITERAL:
        return literal_recovery(d, EPSILON, seed)
    return curator_recovery(d, EPSILON, seed) if protocol == CURATOR else exact_recovery(_protocol(protocol, d), EPSILON, seed)


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


def curator_recovery(d: int, epsilon: float, seed: int) -> Callable[[int, int], int]:
    """For `minimal_clients`: how often the exponential mechanism chooses the true one of 2^(d+1) concepts, drawn from its exact law given n fresh examples."""
    concepts, generator = MaskedParityClass(d), np.random.default_rng([seed])

    def successes(n: int, runs: int) -> int:
        right = 0
        for drawn in generator.integers(1 << 62, size=runs).tolist():
            truth = int(generator.integers(concepts.size))
            x, y = _examples(concepts, truth, n, drawn)
            right += bool(np.log(generator.random()) < log_probabilities(-concepts.errors(x, y), epsilon)[truth])
        return right

    return successes


def curator_cross_check(d: int, epsilon: float, n: int, seed: int, runs: int = 400) -> CrossCheck:
    """The mechanism itself on the examples, sampled in whole numbers, beside its law."""
    concepts, generator = MaskedParityClass(d), np.random.default_rng([seed, 1])
    successes = 0
    for drawn in generator.integers(1 << 62, size=runs).tolist():
        truth = int(generator.integers(concepts.size))
        x, y = _examples(concepts, truth, n, drawn)
        successes += OccamLearner(concepts, epsilon).release(Labelled(x, y), Draws(KeyedNoise(drawn))) == truth
    return CrossCheck(n, (successes, runs), (curator_recovery(d, epsilon, seed)(n, 4 * runs), 4 * runs))


def _examples(concepts: MaskedParityClass, truth: int, n: int, seed: int) -> tuple[Ints, Ints]:
    population = MaskedParityPopulation(Concept(concepts.d, truth >> 1, truth & 1), n, seed)
    return concepts.encoded(population.batch(0, n))
