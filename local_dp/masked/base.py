"""What every masked-parity learner shares."""

from dataclasses import dataclass

from local_dp.arrays import Floats
from local_dp.cube import places_of
from local_dp.errors import InputError
from local_dp.masked.concept import Concept
from local_dp.masked.population import MaskedParityPopulation
from local_dp.masked.queries import MaskedIndex, MaskedParity
from local_dp.noise import philox_words, stream_key
from local_dp.populations.base import Population
from local_dp.protocols.base import Protocol, Result, parameter
from local_dp.protocols.parity import in_words


@dataclass(frozen=True)
class MaskedParityProtocol(Protocol[Concept]):
    """What every masked-parity learner shares: the concept class over {0,1}^d, its examples and its error. Without `r` and `a` they are drawn at random."""

    d: int = parameter(4, "the dimension: x is a vector of so many bits", unit="bits")
    r: int | None = parameter(None, "the hidden vector, a whole number below 2^d; without it, drawn at random")
    a: int | None = parameter(None, "whether the label is masked, 0 or 1; without it, drawn at random")

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

    def truth(self, population: Population) -> Concept:
        assert isinstance(population, MaskedParityPopulation)
        return population.concept

    def explain(self, result: Concept) -> str:
        places = ", ".join(map(str, places_of(result.r)))
        read = f"-1 where i is one of {places}, else +1" if places else "always +1"
        return f"The learned rule predicts the label of a record (x, i, b): with b = 1 it is {read}; with b = 0 it is {in_words(result.r, result.a)}."

    def true_error(self, result: Concept, population: Population) -> float:
        assert isinstance(population, MaskedParityPopulation)
        return result.error(population.concept)


def vector_of(signs: Floats) -> int:
    """The number whose bit j is 1 where signs[j] is negative."""
    return sum(1 << place for place, sign in enumerate(signs.tolist()) if sign < 0)
