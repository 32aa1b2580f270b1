"""Questions about one string of many bits: its first bits, a hash of them, or which of some prefixes it continues and how."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from local_dp.arrays import Column, Ints, Words
from local_dp.checks import check_whole
from local_dp.domains import Domain, bit_strings
from local_dp.errors import InputError
from local_dp.queries.query import Query
from local_dp.records import Records, absent

MAX_BITS = 64


def strings_of(values: Column, bits: int) -> Words:
    """Each value as a string of `bits` bits, read as a number, shape (n,).

    A whole number is its last `bits` bits; text is the first `bits` / 8 bytes of its UTF-8 form, filled up with zeros, so that no text is all zeros.
    """
    if values.dtype.kind == "U":
        held = bits // 8
        if not held:
            raise InputError(f"{bits} bits hold no byte of a text; ask for 8 or more")
        text = np.char.encode(values, "utf-8", "replace").astype(f"S{held}")
        octets = np.zeros((len(values), 8), dtype=np.uint8)
        octets[:, :held] = text.view(np.uint8).reshape(len(values), held)
        return octets.view(">u8")[:, 0].astype(np.uint64) >> np.uint64(64 - bits)
    whole = np.where(absent(values), 0, values) if values.dtype.kind == "f" else values
    return whole.astype(np.int64).astype(np.uint64) & np.uint64((1 << bits) - 1)


@dataclass(frozen=True)
class Prefix(Query):
    """The first `length` of the `bits` bits of a record's string."""

    name: ClassVar[str] = "prefix"
    column: str
    bits: int
    length: int

    def check(self) -> None:
        check_whole("bits", self.bits, 1, MAX_BITS)
        check_whole("length", self.length, 1, self.bits)

    @property
    def domain(self) -> Domain:
        return bit_strings(self.length)

    def __call__(self, records: Records) -> Ints:
        return np.asarray((strings_of(records[self.column], self.bits) >> np.uint64(self.bits - self.length)).astype(np.int64))


@dataclass(frozen=True)
class HashedPrefix(Query):
    """A hash to `width` bits of the first `length` of the `bits` bits of a record's string: two prefixes collide with probability at most 2^(1 - width).

    The hash is multiply-shift with the odd multiplier 2 `seed` + 1 modulo 2^64 (Dietzfelbinger et al. 1997), which travels with the question.
    """

    name: ClassVar[str] = "hashed-prefix"
    column: str
    bits: int
    length: int
    width: int
    seed: int

    def check(self) -> None:
        check_whole("bits", self.bits, 1, MAX_BITS)
        check_whole("length", self.length, 1, self.bits)
        check_whole("seed", self.seed, 0, 2**62 - 1)

    @property
    def domain(self) -> Domain:
        return bit_strings(self.width)

    def of(self, prefixes: Words) -> Ints:
        """The hash of each prefix, shape (n,)."""
        mixed = prefixes * np.uint64(2 * self.seed + 1)
        return (mixed >> np.uint64(64 - self.width)).astype(np.int64)

    def __call__(self, records: Records) -> Ints:
        return self.of(strings_of(records[self.column], self.bits) >> np.uint64(self.bits - self.length))


@dataclass(frozen=True)
class KeptPrefix(Query):
    """Which of the `kept` prefixes a record's string begins with, and the `step` bits that follow: place * 2^step + these bits, or 2^width - 1 for none.

    `kept` are prefixes of `length` - `step` bits as ascending hexadecimal numbers, fewer than 2^(width - step).
    """

    name: ClassVar[str] = "kept-prefix"
    column: str
    bits: int
    length: int
    step: int
    width: int
    kept: tuple[str, ...]

    def check(self) -> None:
        check_whole("bits", self.bits, 1, MAX_BITS)
        check_whole("length", self.length, 2, self.bits)
        check_whole("step", self.step, 1, self.length - 1)
        if not 1 <= len(self.kept) << self.step < 1 << self.width:
            raise InputError(f"there are {len(self.kept)} prefixes, followed by {self.step} bits, for codes of {self.width} bits; give 1 or more, and fewer")
        try:
            numbers = [int(text, 16) for text in self.kept]
        except (TypeError, ValueError):
            raise InputError("a prefix is not made of hexadecimal digits") from None
        if numbers[0] < 0 or numbers[-1] >> (self.length - self.step) or any(low >= high for low, high in pairwise(numbers)):
            raise InputError(f"the prefixes are not different numbers of {self.length - self.step} bits, ascending")

    @cached_property
    def _kept(self) -> Words:
        return np.array([int(text, 16) for text in self.kept], dtype=np.uint64)

    @property
    def domain(self) -> Domain:
        return bit_strings(self.width)

    def of(self, prefixes: Words) -> Ints:
        """The code of each prefix of `length` bits, shape (n,)."""
        parents = prefixes >> np.uint64(self.step)
        place = np.minimum(np.searchsorted(self._kept, parents), len(self._kept) - 1)
        codes = (place.astype(np.uint64) << np.uint64(self.step) | prefixes & np.uint64((1 << self.step) - 1)).astype(np.int64)
        return np.where(self._kept[place] == parents, codes, (1 << self.width) - 1)

    def __call__(self, records: Records) -> Ints:
        return self.of(strings_of(records[self.column], self.bits) >> np.uint64(self.bits - self.length))
