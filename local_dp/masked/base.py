"""What every masked-parity learner shares."""

from dataclasses import dataclass

from local_dp.arrays import Floats
from local_dp.cube import places_of
from local_dp.errors import InputError
from local_dp.masked.concept import Concept
from local_dp.masked.population import MaskedParityPopulation
from local_dp.masked.queries import MaskedIndex, MaskedParity
from local_dp.noise import philox_words, stream_key
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import LocalProtocol, PlainData, parameter
from local_dp.protocols.parity.one_round_and_halving import listed


@dataclass(frozen=True)
class MaskedParityProtocol(LocalProtocol[Concept]):
    """What every masked-parity learner shares: the concept class over {0,1}^d, its examples and its error. Without `r` and `a` they are drawn at random."""

    d: int = parameter(4, "the dimension: x is a vector of so many bits", unit="bits")
    r: int | None = parameter(None, "the hidden vector, a whole number below 2^d; without it, drawn at random")
    a: int | None = parameter(None, "whether the label is masked, 0 or 1; without it, drawn at random")

    def check(self) -> None:
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

    def describe(self, result: Concept) -> PlainData:
        return {"hypothesis": {"d": result.d, "r": f"{result.r:#x}", "a": result.a}}

    def truth(self, population: Population) -> Concept:
        assert isinstance(population, MaskedParityPopulation)
        return population.concept

    def explain(self, result: Concept) -> str:
        places = places_of(result.r)
        named = listed(places, "bit ", "bits ")
        if not places:
            return f"The learned rule: no bit matters; a record (x, i, b) has the label +1{' if b = 1, and -1 if b = 0' * result.a}."
        if len(places) == 1:
            asked, counted = f"i = {places[0]}", f"it is {1 - result.a}"
        else:
            asked, counted = "i is one of them", f"an {'even' if result.a else 'odd'} number of them are 1"
        return (
            f"The learned rule: of the {result.d} bits of x only {named} {'matter' if len(places) > 1 else 'matters'}; a record (x, i, b) has the label -1 "
            f"if b = 1 and {asked}, or if b = 0 and {counted}, and else the label +1."
        )

    def true_error(self, result: Concept, population: Population) -> float:
        assert isinstance(population, MaskedParityPopulation)
        return result.error(population.concept)


def vector_of(signs: Floats) -> int:
    """The number whose bit j is 1 where signs[j] is negative."""
    return sum(1 << place for place, sign in enumerate(signs.tolist()) if sign < 0)
