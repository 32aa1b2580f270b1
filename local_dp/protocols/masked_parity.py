"""Masked parity: what two rounds can learn from few clients and one round cannot (KLNRS Section 5)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp import bounds
from local_dp.arrays import Floats
from local_dp.concepts import masked_parity
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play
from local_dp.masked_queries import MaskedSign
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local import Cohort, LocalQuery
from local_dp.populations import Population
from local_dp.protocols.base import BETA, Protocol, Result
from local_dp.queries import MaskedIndex, MaskedParity
from local_dp.query import Query
from local_dp.randomizers.base import Tally
from local_dp.randomizers.hadamard import SignedHadamard
from local_dp.randomizers.one_bit import parity
from local_dp.records import Records

NULL_SHARE = 0.5  # half of the examples say nothing about the bit a round asks for: D is uniform, so this is known
MAX_ENUMERATED = 12  # 2^d d 2 examples


@dataclass(frozen=True)
class Concept:
    """The concept c_{r,a}: y = (-1)^(<r,x> + a) where b = 0 and (-1)^(r_i) where b = 1; bit i of the number r is r_i."""

    d: int
    r: int
    a: int

    def error(self, other: "Concept") -> float:
        """Pr[the two concepts differ] under the uniform distribution."""
        apart = (self.r ^ other.r).bit_count()
        masked = 0.5 if apart else float(self.a != other.a)
        return (masked + apart / self.d) / 2


class MaskedParityPopulation(Population):
    """Examples ((x, i, b), c(x, i, b)) of a concept, (x, i, b) uniform."""

    def __init__(self, concept: Concept, size: int, seed: int) -> None:
        super().__init__(size)
        self.concept = concept
        self._x_key = stream_key("population", seed)
        self._mask_key = stream_key("masks", seed)

    def batch(self, start: int, stop: int) -> Records:
        d, r = self.concept.d, self.concept.r
        x = philox_words(self._x_key, start, stop) >> np.uint64(64 - d)
        coin = philox_words(self._mask_key, start, stop, 32)
        b = (coin >> np.uint32(31)).astype(np.uint8)
        i = (((coin & np.uint32(0x7FFFFFFF)).astype(np.uint64) * np.uint64(d)) >> np.uint64(31)).astype(np.uint8)
        bit = ((np.uint64(r) >> i.astype(np.uint64)) & np.uint64(1)).astype(np.uint8)
        odd = np.where(b == 1, bit, parity(x & np.uint64(r)) ^ np.uint8(self.concept.a))
        return Records({"x": x, "i": i, "b": b, "y": np.int8(1) - np.int8(2) * odd.astype(np.int8)})

    def law(self, query: Query) -> Floats:
        """The law of a query: in closed form for the masked-parity queries, summed over all examples of a small domain for any other."""
        concept, law = self.concept, np.zeros(query.domain.size)
        if isinstance(query, MaskedSign):
            mean = query.mean(concept.r, concept.a)
            return np.array([(1 - mean) / 2, (1 + mean) / 2])
        law[-query.domain.low] = NULL_SHARE
        if isinstance(query, MaskedIndex):
            for place in range(concept.d):
                value = -(place + 1) if concept.r >> place & 1 else place + 1
                law[value - query.domain.low] = (1 - NULL_SHARE) / concept.d
        elif isinstance(query, MaskedParity):
            plus = 1.0 - concept.a if query.r == concept.r else 0.5  # a wrong r leaves a uniform sign
            law[1 - query.domain.low], law[-1 - query.domain.low] = (1 - NULL_SHARE) * plus, (1 - NULL_SHARE) * (1 - plus)
        else:
            return self._enumerated(query)
        return law

    def _enumerated(self, query: Query) -> Floats:
        if self.concept.d > MAX_ENUMERATED:
            raise InputError(f"the law of {query.name!r} is summed over all examples, so d is at most {MAX_ENUMERATED}; it is {self.concept.d}")
        everything = masked_parity(self.concept.d)
        return everything.population(2 * self.concept.r + self.concept.a, 1, 0).law(query)


@dataclass(frozen=True)
class MaskedParityLearner(Protocol[Concept]):
    """Learns c_{r,a} over {0,1}^d exactly in two rounds: all of r by one-round hashing, then the mask a by the parity query of r.

    Without `r` and `a` they are drawn at random. Privacy: each client answers once, epsilon-locally private. Utility: with `bounds.masked_parity_clients`,
    about (4 d^2 z_{beta/d}^2 + 4 z_beta^2) / I, exact with probability 1 - beta; one round would need about 29 * 2^d at epsilon 1.
    For the uniform distribution over examples only: learning under every distribution would contain parity. Cost: one bit a client, two rounds.
    """

    name: ClassVar[str] = "masked-parity"
    source: ClassVar[str] = "KLNRS 2008, Section 5.1, by one-round hashing (limits 3.2, P2)"
    d: int = 4
    r: int | None = None
    a: int | None = None

    def __post_init__(self) -> None:
        MaskedIndex(self.d)
        if self.r is not None:
            MaskedParity(self.d, self.r)
        if self.a not in (None, 0, 1):
            raise InputError(f"a is {self.a!r}; give 0 or 1")

    def clients(self, epsilon: float) -> int:
        return bounds.masked_parity_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Adaptive[LocalQuery, Tally, Concept]:
        first = bounds.masked_parity_split(self.d, epsilon, clients)

        def play() -> Play[LocalQuery, Tally, Concept]:
            index = SignedHadamard(epsilon, k=self.d)
            (tally,) = yield (LocalQuery(MaskedIndex(self.d), index, Cohort(0, first)),)
            means = index.estimate(tally, NULL_SHARE).value
            r = sum(1 << place for place in range(self.d) if means[place] < 0)
            mask = SignedHadamard(epsilon, k=1)
            (tally,) = yield (LocalQuery(MaskedParity(self.d, r), mask, Cohort(first, clients)),)
            return Concept(self.d, r, int(mask.estimate(tally, NULL_SHARE).value[0] < 0))

        return Adaptive(play)

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
