"""Examples drawn from a masked-parity concept, with the exact law of every query that the learners
ask."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats
from local_dp.cube import bent_dual, parity, places_of
from local_dp.errors import InputError
from local_dp.masked.pairs import MaskPairs
from local_dp.masked.queries import (
    MaskedBent,
    MaskedDisagreement,
    MaskedIndex,
    MaskedIndicator,
    MaskedList,
    MaskedParity,
    MaskedSign,
)
from local_dp.noise import philox_words, stream_key
from local_dp.populations.concepts import masked_parity
from local_dp.populations.finite import Population
from local_dp.queries.query import Query
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import Records

# of the examples, without information on the bit of a round: D is uniform, so this is known
NULL_SHARE = 0.5


@dataclass(frozen=True)
class Concept:
    """The concept c_{r,a}: y = (-1)^(<r,x> + a) where b = 0 and (-1)^(r_i) where b = 1; bit i of
    the number r is r_i."""

    d: int
    r: int
    a: int

    def error(self, other: "Concept") -> float:
        """Pr[the two concepts differ] under the uniform distribution."""
        apart = (self.r ^ other.r).bit_count()
        masked = 0.5 if apart else float(self.a != other.a)
        return (masked + apart / self.d) / 2

    def bit(self, place: int) -> int:
        """r_i at i = `place`."""
        return self.r >> place & 1

    def disagreement(self, r: int) -> float:
        """Pr[y differs from (-1)^<r, x>] where b = 0: a for the right r; a wrong one leaves a
        uniform sign."""
        return float(self.a) if r == self.r else 0.5


MAX_ENUMERATED = 12  # 2^d d 2 examples


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
        number = (coin & np.uint32(0x7FFFFFFF)).astype(np.uint64)
        i = ((number * np.uint64(d)) >> np.uint64(31)).astype(np.uint8)
        bit = ((np.uint64(r) >> i.astype(np.uint64)) & np.uint64(1)).astype(np.uint8)
        mask = np.uint8(self.concept.a)
        odd = np.where(b == 1, bit, parity(x & np.uint64(r)) ^ mask)
        sign = np.int8(2) * odd.astype(np.int8)
        return Records({"x": x, "i": i, "b": b, "y": np.int8(1) - sign})

    def law(self, query: Query) -> Floats:
        """The law of a query: in closed form for the masked-parity queries, by enumeration of a
        small domain for any other."""
        law = np.zeros(query.domain.size)
        for value, share in _shares(self.concept, query).items():
            law[value - query.domain.low] += share
        return law

    def tally_law(self, query: Query, randomizer: Randomizer) -> Floats | None:
        """Of named masks."""
        concept = self.concept
        return randomizer.law(concept.r, concept.a) if isinstance(randomizer, MaskPairs) else None


def _shares(concept: Concept, query: Query) -> dict[int, float]:
    """The probability of each value that can occur."""
    d = concept.d
    match query:
        case MaskedIndex():
            shares = {0: NULL_SHARE} | _positions(concept, 0, range(concept.d))
        case MaskedParity(_, r):
            shares = {0: NULL_SHARE} | _both_signs(0, concept.disagreement(r), 1 - NULL_SHARE)
        case MaskedIndicator(_, j):
            shares = _yes(query, concept.bit(j) / (2 * d))
        case MaskedDisagreement(_, r):
            shares = _yes(query, concept.disagreement(r) / 2)
        case MaskedSign():
            shares = _yes(query, (1 + query.mean(concept.r, concept.a)) / 2)
        case MaskedList():
            shares = _list_law(concept, query)
        case MaskedBent():
            shares = _bent(concept, query)
        case _:
            shares = _enumerate(concept, query)
    return shares


def _enumerate(concept: Concept, query: Query) -> dict[int, float]:
    if concept.d > MAX_ENUMERATED:
        raise InputError(
            f"the law of {query.name!r} is summed over all examples, so d is at most "
            f"{MAX_ENUMERATED}; it is {concept.d}"
        )
    law = masked_parity(concept.d).population(2 * concept.r + concept.a, 1, 0).law(query)
    return dict(zip(query.domain.values().tolist(), law.tolist(), strict=True))


def _yes(query: Query, share: float) -> dict[int, float]:
    """A 0/1 query: 1 is the top of its domain, 0 the bottom, or the middle of a lattice of [-1,
    1]."""
    top = query.domain.high
    return {top // 2 if query.domain.kind == "levels" else 0: 1 - share, top: share}


def _positions(concept: Concept, start: int, places: Sequence[int]) -> dict[int, float]:
    """The half of the examples with b = 1: symbol start + (place of i in `places`) with sign
    (-1)^(r_i)."""
    share = (1 - NULL_SHARE) / concept.d
    return {
        (-1 if concept.bit(i) else 1) * (start + place + 1): share for place, i in enumerate(places)
    }


def _list_law(concept: Concept, query: MaskedList) -> dict[int, float]:
    apart = concept.r ^ query.r
    places = places_of(query.free)
    inside = [bit for bit, place in enumerate(places) if apart >> place & 1]
    # otherwise no parity on the list is the right one, and every sign is uniform
    right = apart & ~query.free == 0
    rest = 1 - query.positions / concept.d
    law = {0: (1 - NULL_SHARE) * rest} | _positions(concept, query.listed, places_of(query.asked))
    for symbol in range(query.listed):
        odd = (concept.a + sum(symbol >> bit & 1 for bit in inside)) % 2
        minus = float(odd) if right else 0.5
        law |= _both_signs(symbol, minus, NULL_SHARE / query.listed)
    return law


def _bent(concept: Concept, query: MaskedBent) -> dict[int, float]:
    bent = concept.d - query.told
    law = _positions(concept, query.listed, range(concept.d))
    for symbol in range(query.listed):
        odd = (
            concept.a + bent_dual(bent, concept.r) + (symbol & concept.r >> bent).bit_count()
        ) % 2
        minus = (1 - (1 - 2 * odd) * 2.0 ** -(bent // 2)) / 2
        law |= _both_signs(symbol, minus, NULL_SHARE / query.listed)
    return law


def _both_signs(symbol: int, minus: float, share: float) -> dict[int, float]:
    return {symbol + 1: share * (1 - minus), -symbol - 1: share * minus}
