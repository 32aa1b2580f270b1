"""Pure, improper and flat: points learned as buckets of a few public hashes."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from local_dp.arrays import Bools, Counts, Ints, Naturals
from local_dp.checks import check_whole
from local_dp.curator.multisets import LabelledMultiset, check_bits
from local_dp.curator.selection.exponential import ByScore, numbered
from local_dp.curator.selection.groups import Groups
from local_dp.draws import Draws
from local_dp.errors import InputError


@dataclass(frozen=True)
class BucketClass:
    """The hypotheses [h_i(x) = b] for public hashes h_0, h_1, ... into 2^width buckets, and the zero function, number 0.

    `masks[i]` holds `width` masks r of `bits` bits: h_i(x) is the bits <r, x>. Uniform masks make h_i(x) xor h_i(y) uniform for x != y, so two points meet in
    a bucket with probability 2^-width exactly; a shift would make the hashes pairwise independent and change no hypothesis but its number.
    As a probabilistic representation: a point has a hypothesis within alpha except with probability (2^-width / alpha)^hashes at most (Markov), .023 for 8
    hashes of 16 buckets at alpha .1: ln 129 bounds the representation dimension, in a domain of any size.
    Source: Beimel, Nissim, Stemmer 2013b (characterizing pure learners); for thresholds that dimension grows with the bits (Feldman, Xiao 2014).
    """

    bits: int
    masks: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        check_bits(self.bits)
        if not self.masks or not self.masks[0] or len({len(masks) for masks in self.masks}) > 1 or self.width > 10:
            raise InputError("the hashes have no masks, different numbers of them, or more than 10; give as many for each, 1 to 10")
        if any(type(mask) is not int or not 0 <= mask < 1 << self.bits for masks in self.masks for mask in masks):
            raise InputError(f"a mask is no whole number of {self.bits} bits")

    @classmethod
    def drawn(cls, bits: int, coins: Draws, hashes: int = 8, width: int = 4) -> Self:
        """With masks from public coins."""
        check_bits(bits)
        check_whole("hashes", hashes, 1, 1 << 10)
        check_whole("width", width, 1, 10)
        return cls(bits, tuple(tuple(coins.below(1 << bits) for _ in range(width)) for _ in range(hashes)))

    @property
    def width(self) -> int:
        """Bits of a hash."""
        return len(self.masks[0])

    @property
    def size(self) -> int:
        """How many hypotheses there are."""
        return 1 + (len(self.masks) << self.width)

    @property
    def log_size(self) -> float:
        """ln of it: what the representation dimension is at most."""
        return math.log(self.size)

    def hash(self, number: int, points: Naturals) -> Ints:
        """The bucket of each point under one hash."""
        found = np.zeros(len(points), dtype=np.int64)
        for bit, mask in enumerate(self.masks[number]):
            found |= parities(points, mask) << bit
        return found

    def predict(self, hypothesis: int, points: Naturals) -> Bools:
        """Where the hypothesis is 1."""
        if not hypothesis:
            return np.zeros(len(points), dtype=bool)
        number, bucket = divmod(hypothesis - 1, 1 << self.width)
        inside: Bools = self.hash(number, points) == bucket
        return inside

    def errors(self, examples: LabelledMultiset) -> Counts:
        """How many examples each hypothesis gets wrong, shape (size,). O(hashes s) and a table."""
        if examples.bits != self.bits:
            raise InputError(f"the points are of 0..2^{examples.bits} - 1, the hashes of 0..2^{self.bits} - 1; give one domain for both")
        gain, positive = examples.zeros - examples.ones, int(examples.ones.sum())
        errors = [np.array([positive])]
        for number in range(len(self.masks)):
            change = np.zeros(1 << self.width, dtype=np.int64)
            np.add.at(change, self.hash(number, examples.values), gain)
            errors.append(positive + change)
        return np.concatenate(errors)


def parities(points: Naturals, mask: int) -> Counts:
    """<mask, x> mod 2 for each point x."""
    if points.dtype == object:
        return np.array([(mask & point).bit_count() & 1 for point in points.tolist()], dtype=np.int64)
    odd: Counts = (np.bitwise_count(points & np.uint64(mask)) & 1).astype(np.int64)
    return odd


@dataclass(frozen=True)
class BucketPointLearner(ByScore[LabelledMultiset, int]):
    """A hypothesis of a bucket class, by its number, with probability proportional to e^(-eps (errors) / 2): private Occam on a representation of points.

    Privacy: eps. Utility: a point is learned within alpha .1 from 140 examples at eps 1, at any number of bits: for points the separation of pure from
    approximate privacy is about being proper. Cost: O(hashes s). Source: KLNRS 2008, Theorem 3.7, on `BucketClass`.
    """

    hypotheses: BucketClass
    epsilon: float

    def candidates(self, database: LabelledMultiset) -> Groups[int]:
        """A replaced example moves the errors of a hypothesis by at most 1."""
        return numbered(-self.hypotheses.errors(database))
