"""Randomizers that do what they say, and randomizers that do not: each broken one is wrong in a way
of its own."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.domains import Domain
from local_dp.loss import Approximate, Loss
from local_dp.noise import Draw, Noise
from local_dp.randomizers.finite import FiniteChannel, flip_weight
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Estimate, Tally
from tests.support.plugin_package.frequency_oracles import LocalHash, OptimisedUnary


def either(first: Bools, one: Words | Ints, other: Words) -> Words:
    """One report where it comes first, and the other one elsewhere."""
    return np.asarray(np.where(first, one, other).astype(other.dtype))


class Leaking(FiniteChannel):  # reports the truth in some batches
    def leaks(self, values: Ints) -> bool:
        raise NotImplementedError

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        if self.leaks(values):
            return values.astype(self.report_dtype)
        return super().respond(values, words, cells)  # type: ignore[safe-super]


class Stateful(Leaking, BinaryRR):  # at every third call
    calls: ClassVar[list[int]] = [0]

    def leaks(self, values: Ints) -> bool:
        self.calls[0] += 1
        return self.calls[0] % 3 == 0


class ConstantSeed(GRR):  # draws its noise itself, from a generator of one seed
    seed: ClassVar[int | None] = 42

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        own = np.random.default_rng(self.seed).integers(0, self.total, len(values), dtype=np.uint64)
        return super().respond(values, own.astype(words.dtype), cells)


class ConstantWords(GRR):  # responds as it should, to words that never change
    def draw(self, noise: Noise, which: Draw, start: int, stop: int) -> Words:
        return np.full(stop - start, 12345, dtype=np.uint32)


class OwnEntropy(ConstantSeed):  # draws its noise itself, from the operating system
    seed = None


class LastElement(GRR):  # the last symbol of the domain is always reported
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        last = self.domain.high
        return either(
            values == last,
            np.array(last, dtype=self.report_dtype),
            super().respond(values, words, cells),
        )


class OneLevel(OneBitMean):  # one level in the middle of 65,537 is always reported
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return either(values == 23456, np.ones_like(values), super().respond(values, words, cells))


class LastIsLong(GRR):  # the last symbol of the domain gives a report of two parts
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        reports = super().respond(values, words, cells)
        return (
            np.stack([reports, reports], axis=1) if (values == self.domain.high).all() else reports
        )


class Leak(GRR):  # reports the truth once in a thousand times, whatever the words otherwise make
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        leaks = words < words.dtype.type(self.total // 1000)
        return either(
            leaks, values.astype(self.report_dtype), super().respond(values, words, cells)
        )


class Neighbour(GRR):  # a report depends on who is asked together with the client
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(np.roll(values, 1), words, cells)


class Greedy(BinaryRR):  # claims epsilon and spends a tenth more
    def prepare(self) -> None:
        object.__setattr__(self, "flip", flip_weight(self.nano * 11 // 10, self.word_bits))


class FloatGRR(
    GRR
    # k-ary randomized response in doubles: at a large epsilon the other symbols have no chance at
    # all
):
    @cached_property
    def other(self) -> int:
        return round(self.total * (1 / (math.exp(self.epsilon + 16) + self.k - 1)))


class Unsummed(GRR):  # declares weights that are no probabilities
    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        return np.minimum(super().weight(reports, values, cells), np.uint64(self.total // 4))


class SharedWord(OptimisedUnary):  # one word decides every bit
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(values, np.repeat(words[:, :1], self.places, axis=1), cells)


class NoTally(Randomizer):  # a randomizer that estimates nothing
    def empty(self) -> Tally:
        raise NotImplementedError

    def tally(self, reports: Words, cells: Words) -> Tally:
        raise NotImplementedError

    def estimate(self, tally: Tally) -> Estimate:
        raise NotImplementedError


class BareHash(LocalHash):  # under every eighth coin it reports the code as it is
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        bare = self.encode(values, cells).astype(self.report_dtype)
        return either(cells % np.uint64(8) == 7, bare, super().respond(values, words, cells))


@dataclass(frozen=True, kw_only=True)
class Opaque(
    NoTally
    # a randomizer of which nothing is declared; `inner` is what it really is, at `real` times its
    # epsilon
):
    name: ClassVar[str] = "zoo-opaque"
    source: ClassVar[str] = "nobody"
    evidence: ClassVar[Evidence] = "audited"
    real: float = 1.0
    k: int = 3

    @cached_property
    def inner(self) -> FiniteChannel:
        return GRR(self.epsilon * self.real, k=self.k, word_bits=self.word_bits)

    @property
    def domain(self) -> Domain:
        return self.inner.domain

    @property
    def report_dtype(self) -> "np.dtype[np.generic]":
        return self.inner.report_dtype

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return self.inner.respond(values, words, cells)


class OpaqueLeak(Opaque):  # once in a thousand times it sends a symbol that only the truth can give
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        leaks = words < words.dtype.type((1 << self.word_bits) // 1000)
        return either(leaks, values.astype(np.uint8) + 100, super().respond(values, words, cells))


# laplace noise in doubles, of `real` times the epsilon, on a number of [0, 1]
class OpaqueNoise(Opaque):
    @property
    def report_dtype(self) -> "np.dtype[np.generic]":
        return np.dtype("<f8")

    def respond(self, values: Ints, words: Words, cells: Words) -> Any:
        uniform = (words.astype(np.float64) + 0.5) / 2.0**self.word_bits - 0.5
        return values / (self.k - 1) - np.sign(uniform) * np.log1p(-2 * abs(uniform)) / (
            self.epsilon * self.real
        )


class Delta(OpaqueLeak):  # the same leak, and says so
    @property
    def loss(self) -> Loss:
        return Approximate(super().loss.nano, 10**15 + 10**14)
