"""Masked parity: what two rounds can learn from few clients and one round cannot (KLNRS Section 5)."""

from dataclasses import dataclass
from typing import ClassVar

from local_dp import bounds
from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local import Cohort, LocalQuery
from local_dp.populations import Population
from local_dp.protocols.base import BETA, Protocol, Result
from local_dp.protocols.masked_population import NULL_SHARE, Concept, MaskedParityPopulation
from local_dp.queries.masked_rounds import MaskedIndex, MaskedParity
from local_dp.randomizers.base import Tally
from local_dp.randomizers.hadamard import SignedHadamard


@dataclass(frozen=True)
class MaskedParityProtocol(Protocol[Concept]):
    """What every masked-parity learner shares: the concept class over {0,1}^d, its examples and its error. Without `r` and `a` they are drawn at random."""

    d: int = 4
    r: int | None = None
    a: int | None = None

    def __post_init__(self) -> None:
        MaskedIndex(self.d)
        if self.r is not None:
            MaskedParity(self.d, self.r)
        if self.a not in (None, 0, 1):
            raise InputError(f"a is {self.a!r}; give 0 or 1")

    def synthetic(self, clients: int, seed: int) -> MaskedParityPopulation:
        drawn = philox_words(stream_key("concept", seed), 0, 2)
        r = int(drawn[0]) >> (64 - self.d) if self.r is None else self.r
        a = int(drawn[1]) & 1 if self.a is None else self.a
        return MaskedParityPopulation(Concept(self.d, r, a), clients, seed)

    def describe(self, result: Concept) -> Result:
        return {"hypothesis": {"d": result.d, "r": f"{result.r:#x}", "a": result.a}}

    def true_error(self, result: Concept, population: Population) -> float:
        assert isinstance(population, MaskedParityPopulation)
        return result.error(population.concept)


def vector_of(signs: Floats) -> int:
    """The number whose bit j is 1 where signs[j] is negative."""
    return sum(1 << place for place, sign in enumerate(signs.tolist()) if sign < 0)


@dataclass(frozen=True)
class MaskedParityLearner(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d exactly in two rounds: all of r by one-round hashing, then the mask a by the parity query of r.

    Privacy: each client answers once, epsilon-locally private. Utility: with `bounds.masked_parity_clients`,
    about (4 d^2 z_{beta/d}^2 + 4 z_beta^2) / I, exact with probability 1 - beta; one round would need about 29 * 2^d at epsilon 1.
    For the uniform distribution over examples only: learning under every distribution would contain parity. Cost: one bit a client, two rounds.
    """

    name: ClassVar[str] = "masked-parity"
    source: ClassVar[str] = "KLNRS 2008, Section 5.1, by one-round hashing (limits 3.2, P2)"

    def clients(self, epsilon: float) -> int:
        return bounds.masked_parity_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Adaptive[LocalQuery, Tally, Concept]:
        first = bounds.masked_parity_split(self.d, epsilon, clients)

        def play() -> Play[LocalQuery, Tally, Concept]:
            index = SignedHadamard(epsilon, k=self.d)
            (tally,) = yield (LocalQuery(MaskedIndex(self.d), index, Cohort(0, first)),)
            r = vector_of(index.estimate(tally, NULL_SHARE).value)
            mask = SignedHadamard(epsilon, k=1)
            (tally,) = yield (LocalQuery(MaskedParity(self.d, r), mask, Cohort(first, clients)),)
            return Concept(self.d, r, int(mask.estimate(tally, NULL_SHARE).value[0] < 0))

        return Adaptive(play)


__all__ = ["NULL_SHARE", "Concept", "MaskedParityLearner", "MaskedParityPopulation", "MaskedParityProtocol", "vector_of"]
