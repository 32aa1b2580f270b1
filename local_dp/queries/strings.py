"""Queries of long strings: prefixes of whole numbers and of texts, as they are, hashed, or by their
place in a list."""

from codecs import getincrementaldecoder
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from unicodedata import category

import numpy as np

from local_dp.arrays import Column, Ints, Words
from local_dp.checks import check_whole
from local_dp.domains import Domain, bit_strings
from local_dp.errors import InputError
from local_dp.queries.query import Query
from local_dp.records import Records, absent, letters

MAX_BITS = 256
CHUNK = 32  # bits of a string that stand in one word
CUT = 0xFF  # the byte at the end of a text that was too long: it occurs in no UTF-8


def chunks_of(numbers: Sequence[int], length: int, bits: int) -> Words:
    """Numbers of `length` bits as prefixes of strings of `bits` bits: a row of words of 32 bits
    each, the first bits first, filled up with zeros."""
    size = -(-bits // CHUNK) * CHUNK
    octets = b"".join((number << (size - length)).to_bytes(size // 8, "big") for number in numbers)
    return np.frombuffer(octets, dtype=">u4").reshape(len(numbers), size // CHUNK).astype(np.uint64)


def numbers_of(chunks: Words, length: int) -> list[int]:
    """The first `length` bits of each row of words, as a number."""
    return [
        int.from_bytes(row.tobytes(), "big") >> (CHUNK * len(row) - length)
        for row in chunks.astype(">u4")
    ]


def first_bits(chunks: Words, length: int) -> Words:
    """The strings with zeros from bit `length` on."""
    counts = np.clip(length - CHUNK * np.arange(chunks.shape[1]), 0, CHUNK).astype(np.uint64)
    return chunks & ((np.uint64(1) << counts) - np.uint64(1)) << (np.uint64(CHUNK) - counts)


def _texts(values: Column, size: int) -> Column:
    """The first `size` bytes of each text in UTF-8, shape (n, size); a longer text ends in the byte
    255 and holds whole characters before it."""
    octets, ends = _utf8(letters(values)[:, :size], size)
    longer = (ends > size) | (np.bitwise_or.reduce(letters(values)[:, size:], axis=1) != 0)
    end = np.full(len(values), size - 1)
    rows = np.arange(len(values))
    for _ in range(3):  # a character has at most three bytes after its first
        end -= octets[rows, end] >> 6 == 2
    places, end = np.arange(size), end[:, None]
    after = np.where(places == end, np.uint8(CUT), np.uint8(0))
    cut = np.where(places < end, octets, after)
    return np.where(longer[:, None], cut, octets)


def _utf8(points: Words, size: int) -> tuple[Words, Ints]:
    """The first `size` bytes of texts of so many letters, and where each text ends; a lone
    surrogate is a question mark. All texts take the same work."""
    points = np.where((points >= 0xD800) & (points < 0xE000), ord("?"), points)
    # bytes after the first one
    more = (points > 0x7F).astype(np.uint8) + (points > 0x7FF) + (points > 0xFFFF)
    ends = np.cumsum(more + 1, axis=1, dtype=np.int32)
    # one place more, for what is cut off
    octets = np.zeros((len(points), size + 1), dtype=np.uint8)
    rows = (size + 1) * np.arange(len(points))[:, None]
    for place in range(4):
        part = points >> np.uint8(6) * (np.maximum(more, place) - np.uint8(place))
        part = (
            part & 0x3F | 0x80
            if place
            else part | np.array([0, 0xC0, 0xE0, 0xF0], dtype=np.uint32)[more]
        )
        octets.ravel()[
            rows + np.where(place <= more, np.minimum(ends - 1 - more + place, size), size)
        ] = part.astype(np.uint8)
    return octets[:, :size], np.where(points != 0, ends, 0).max(axis=1)


def strings_of(values: Column, bits: int) -> Words:
    """Each value as a string of `bits` bits: words of 32 bits, shape (n, bits / 32 rounded up),
    filled up with zeros.

    A whole number is its last `bits` bits. Text is its UTF-8 form in `bits` / 8 bytes, filled up
    with zeros, so that no text is all zeros; a longer one is cut, and ends in the byte 255.
    """
    words = -(-bits // CHUNK)
    if values.dtype.kind == "U":
        if bits < 8:
            raise InputError(f"{bits} bits hold no byte of a text; ask for 8 or more")
        octets = np.zeros((len(values), words * CHUNK // 8), dtype=np.uint8)
        octets[:, : bits // 8] = _texts(values, bits // 8)
        return octets.view(">u4").astype(np.uint64)
    if values.dtype.kind == "M":
        raise InputError("dates are no strings; ask for text or whole numbers")
    whole = np.where(absent(values), 0, values) if values.dtype.kind == "f" else values
    left = whole.astype(np.int64).astype(np.uint64) << np.uint64(64 - min(bits, 64))
    chunks = np.zeros((len(values), max(2, words)), dtype=np.uint64)
    chunks[:, 0], chunks[:, 1] = left >> np.uint64(CHUNK), left & np.uint64((1 << CHUNK) - 1)
    return chunks[:, :words]


def readable(prefix: int, length: int, size: int) -> bool:
    """True if some text, as a string of `size` bytes, starts with these `length` bits.

    It is UTF-8 without control characters, followed by zeros or nothing; where it was too long, by
    the byte 255 among the last four.
    """
    if missing := -length % 8:
        return any(
            readable(prefix << missing | tail, length + missing, size)
            for tail in range(1 << missing)
        )
    octets = prefix.to_bytes(length // 8, "big").rstrip(b"\0")
    body = octets.removesuffix(bytes([CUT]))
    ends = length // 8 == size or len(body) < length // 8
    try:
        text = getincrementaldecoder("utf-8")().decode(body, final=ends)
    except UnicodeDecodeError:
        return False
    return (body == octets or len(body) >= size - 4) and all(
        category(character) != "Cc" for character in text
    )


def shown_text(string: int, size: int) -> str:
    """A readable string of `size` bytes as text: an ellipsis stands where it was cut."""
    octets = string.to_bytes(size, "big").rstrip(b"\0")
    if not octets:
        return "(missing)"
    whole = octets.removesuffix(bytes([CUT]))
    ellipsis = "\u2026" if len(whole) < len(octets) else ""
    return whole.decode("utf-8", "backslashreplace") + ellipsis


def ends_of(length: int, step: int, bits: int) -> Words:
    """Each choice of the `step` bits, at most 32, that follow the first `length` of `bits` bits;
    the other bits are zeros."""
    place, offset = divmod(length, CHUNK)
    window = np.arange(1 << step, dtype=np.uint64) << np.uint64(2 * CHUNK - offset - step)
    ends = np.zeros((1 << step, -(-bits // CHUNK) + 1), dtype=np.uint64)
    ends[:, place], ends[:, place + 1] = (
        window >> np.uint64(CHUNK),
        window & np.uint64((1 << CHUNK) - 1),
    )
    return ends[:, :-1]


@dataclass(frozen=True)
class Prefix(Query):
    """The first `length` of the `bits` bits of a record's string, at most 32; a subclass encodes
    more of them."""

    name = "prefix"
    summary = "Gives the first bits of a string"
    column: str
    bits: int
    length: int

    def check(self) -> None:
        check_whole("bits", self.bits, 1, MAX_BITS)
        check_whole("length", self.length, 1, self.bits)

    @property
    def domain(self) -> Domain:
        return bit_strings(self.length)

    def of(self, prefixes: Words) -> Ints:
        """The value of each prefix of `length` bits, given as a row of words: shape (n,)."""
        return (prefixes[:, 0] >> np.uint64(CHUNK - self.length)).astype(np.int64)

    def of_each(self, prefixes: Words, ends: Words) -> Ints:
        """The value of each prefix with each end: those of the first prefix, then of the next."""
        return self.of((prefixes[:, None] | ends).reshape(-1, prefixes.shape[1]))

    def __call__(self, records: Records) -> Ints:
        return self.of(first_bits(strings_of(records[self.column], self.bits), self.length))


@dataclass(frozen=True)
class HashedPrefix(Prefix):
    """A hash to `width` bits of the first `length` of the `bits` bits of a record's string: two
    prefixes collide with probability at most 2^(1 - width).

    The hash is the first bits of the sum of the prefix's words of 32 bits, each times a multiplier
    of its own, modulo 2^64 (multiply-shift: Dietzfelbinger 1996). The multipliers are the outputs
    of SplitMix64 from `seed`, which travels with the question.
    """

    name = "hashed-prefix"
    summary = "Hashes the first bits of a string"
    width: int
    seed: int

    def check(self) -> None:
        super().check()
        check_whole("seed", self.seed, 0, 2**62 - 1)

    @property
    def domain(self) -> Domain:
        return bit_strings(self.width)

    @cached_property
    def _multipliers(self) -> Words:
        return np.array(
            [split_mix(self.seed, place) for place in range(-(-self.bits // CHUNK))],
            dtype=np.uint64,
        )

    def of(self, prefixes: Words) -> Ints:
        return (self._mixed(prefixes) >> np.uint64(64 - self.width)).astype(np.int64)

    def of_each(self, prefixes: Words, ends: Words) -> Ints:
        """The sums add up where no bit is in both."""
        return (
            np.add.outer(self._mixed(prefixes), self._mixed(ends)).ravel()
            >> np.uint64(64 - self.width)
        ).astype(np.int64)

    def _mixed(self, prefixes: Words) -> Words:
        mixed: Words = (prefixes * self._multipliers).sum(axis=1, dtype=np.uint64)
        return mixed


def split_mix(seed: int, place: int) -> int:
    """Output `place` of the generator SplitMix64 from `seed` (Steele, Lea, Flood 2014)."""
    word = (seed + (place + 1) * 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


@dataclass(frozen=True)
class KeptPrefix(Prefix):
    """Which of the `kept` prefixes a record's string begins with, and the `step` bits that follow:
    place * 2^step + these bits, or 2^width - 1 for none.

    `kept` are prefixes of `length` - `step` bits as ascending hexadecimal numbers, fewer than
    2^(width - step). With a `step` of 0 it names whole prefixes.
    """

    name = "kept-prefix"
    summary = "Gives the listed prefix of a string, and its next bits"
    looked_up = "kept"
    step: int
    width: int
    kept: tuple[str, ...]

    def check(self) -> None:
        super().check()
        check_whole("step", self.step, 0, min(CHUNK, self.length - 1))
        if not 1 <= len(self.kept) << self.step < 1 << self.width:
            raise InputError(
                f"there are {len(self.kept)} prefixes, followed by {self.step} bits, for codes of "
                f"{self.width} bits; give 1 or more, and fewer"
            )
        try:
            numbers = [int(text, 16) for text in self.kept]
        except (TypeError, ValueError):
            raise InputError("a prefix is not made of hexadecimal digits") from None
        if (
            numbers[0] < 0
            or numbers[-1] >> (self.length - self.step)
            or any(low >= high for low, high in pairwise(numbers))
        ):
            raise InputError(
                f"the prefixes are not different numbers of {self.length - self.step} bits, "
                "ascending"
            )

    @cached_property
    def _sorted_prefixes(self) -> Column:
        return _sortable(
            chunks_of([int(text, 16) for text in self.kept], self.length - self.step, self.bits)
        )

    @property
    def domain(self) -> Domain:
        return bit_strings(self.width)

    def of(self, prefixes: Words) -> Ints:
        parents = _sortable(first_bits(prefixes, self.length - self.step))
        place = np.minimum(
            np.searchsorted(self._sorted_prefixes, parents), len(self._sorted_prefixes) - 1
        )
        codes = (place << self.step) + self._following(prefixes)
        return np.where(self._sorted_prefixes[place] == parents, codes, (1 << self.width) - 1)

    def of_each(self, prefixes: Words, ends: Words) -> Ints:
        """Prefixes of `length` - `step` bits are looked up once, before their ends are added."""
        first = self.of(prefixes)
        none = (1 << self.width) - 1
        return np.where(
            first[:, None] == none, none, first[:, None] + self._following(ends)
        ).ravel()

    def _following(self, prefixes: Words) -> Ints:
        """The last `step` bits."""
        if not self.step:
            return np.zeros(len(prefixes), dtype=np.int64)
        place, offset = divmod(self.length - self.step, CHUNK)
        window = np.pad(prefixes[:, place : place + 2], ((0, 0), (0, 2)))
        both = window[:, 0] << np.uint64(CHUNK) | window[:, 1]
        return (both << np.uint64(offset) >> np.uint64(2 * CHUNK - self.step)).astype(np.int64)


def _sortable(chunks: Words) -> Column:
    """The rows as texts of bytes, whose order is that of the numbers."""
    return np.ascontiguousarray(chunks.astype(">u4")).view(f"S{chunks.shape[1] * CHUNK // 8}")[:, 0]
