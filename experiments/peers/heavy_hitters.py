"""Two published ways to find frequent strings, by our oracles, which `compare heavy-hitters`
measures beside ours. They are simulated only."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import Domain, bit_strings
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.protocols.search.heavy_hitters import (
    Found,
    FrequentStrings,
    HeavyHitters,
    Level,
    Search,
    counted,
)
from local_dp.queries.query import Query
from local_dp.queries.strings import HashedPrefix, Prefix, chunks_of, ends_of, strings_of
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.frequencies.local_hashing import CountMeanSketch
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import Records
from local_dp.tallies import Tally

WIDTH = 12  # bits of a hash: 4,096 symbols


class Published(FrequentStrings):
    """Half of the clients report parts of their strings, in equal groups; the others report the
    whole one, hashed by four functions, for the count of the candidates."""

    def clients(self, epsilon: float) -> int:
        return HeavyHitters(
            **{each.name: getattr(self, each.name) for each in fields(self)}
        ).clients(epsilon)

    @abstractmethod
    def parts(self) -> list[Query]:
        """What each group reports."""

    @abstractmethod
    def oracle(self, epsilon: float, size: int) -> Randomizer:
        """The randomizer of so many symbols."""

    @abstractmethod
    def candidates(self, queries: Sequence[LocalQuery], tallies: Sequence[Tally]) -> Words:
        """The strings to count."""

    def hashed(self, length: int, place: int) -> Prefix:
        """A prefix of this length, hashed where it is long."""
        if length <= WIDTH:
            return Prefix(self.column, self.size, length)
        (word,) = philox_words(stream_key("published", length), place, place + 1).tolist()
        return HashedPrefix(self.column, self.size, length, WIDTH, word >> 2)

    def algorithm(self, epsilon: float, clients: int) -> Local[Found]:
        parts = self.parts()
        count = [self.hashed(self.size, place) for place in range(4)]
        if clients < 2 * len(parts) + len(count):
            raise InputError(f"{clients} clients are too few for {len(parts)} groups; ask more")
        cuts = np.append(
            np.linspace(0, clients // 2, len(parts) + 1)[:-1],
            np.linspace(clients // 2, clients, len(count) + 1),
        )
        queries = tuple(
            LocalQuery(query, self.oracle(epsilon, query.domain.size), Cohort(*cohort))
            for query, cohort in zip(
                [*parts, *count], pairwise(cuts.astype(int).tolist()), strict=True
            )
        )

        def decode(tallies: tuple[Tally, ...]) -> Found:
            strings = self.candidates(queries[: len(parts)], tallies[: len(parts)])
            search = Search(self.size, self.text, self.size, strings)
            level = Level.of(self.size, queries[len(parts) :], iter(tallies[len(parts) :]))
            return counted(search, level, self.share / 2)

        return Nonadaptive(queries, decode)


@dataclass(frozen=True)
class TreeHistogram(Published):
    """Follows the frequent prefixes down a binary tree, one bit a level, by one Hadamard sign a
    client; at each level it keeps the 2 / `share` best."""

    name = "tree-histogram"
    source = "Bassily, Nissim, Stemmer, Thakurta 2017 (TreeHist)"

    def parts(self) -> list[Query]:
        return [self.hashed(length, 0) for length in range(min(8, self.size), self.size + 1)]

    def oracle(self, epsilon: float, size: int) -> Randomizer:
        return Hadamard(epsilon, k=size)

    def candidates(self, queries: Sequence[LocalQuery], tallies: Sequence[Tally]) -> Words:
        strings, before = chunks_of([0], 1, self.size), 0
        for query, tally in zip(queries, tallies, strict=True):
            assert isinstance(query.query, Prefix)
            length = query.query.length
            ends = ends_of(before, length - before, self.size)
            level = Level.of(length, [query], iter([tally]))
            best = np.argsort(-level.shares(strings, ends), kind="stable")[: int(2 / self.share)]
            strings = strings[best // len(ends)] | ends[best % len(ends)]
            before = length
        return strings


@dataclass(frozen=True)
class Fragment(Query):
    """An eight-bit hash of a string, followed by four of its bits: a piece of a puzzle."""

    name = "fragment"
    column: str
    size: int
    place: int

    @property
    def domain(self) -> Domain:
        return bit_strings(WIDTH)

    def __call__(self, records: Records) -> Ints:
        strings = strings_of(records[self.column], self.size)
        key = HashedPrefix(self.column, self.size, self.size, 8, 0x9E3779B97F).of(strings)
        word, shift = divmod(self.place, 32)
        bits = strings[:, word] >> np.uint64(28 - shift) & np.uint64(15)
        return (key.astype(np.int64) << 4) | bits.astype(np.int64)


@dataclass(frozen=True)
class SketchedFragments(Published):
    """Joins the likeliest fragments of each place that have the same hash to a candidate, by
    count-mean sketches: one candidate for each of 256 hashes."""

    name = "count-mean-sketch"
    source = "Apple's Differential Privacy Team 2017 (CMS and its sequence fragment puzzle)"

    def parts(self) -> list[Query]:
        return [Fragment(self.column, self.size, place) for place in range(0, self.size, 4)]

    def oracle(self, epsilon: float, size: int) -> Randomizer:
        return CountMeanSketch(epsilon, k=size)

    def candidates(self, queries: Sequence[LocalQuery], tallies: Sequence[Tally]) -> Words:
        pairs = zip(queries, tallies, strict=True)
        shares = [query.randomizer.estimate(tally).value for query, tally in pairs]
        best = np.array([each.reshape(256, 16).argmax(axis=1) for each in shares])
        numbers = [int("".join(f"{part:x}" for part in row), 16) for row in best.T.tolist()]
        return chunks_of(sorted(set(numbers)), self.size, self.size)


PUBLISHED = (TreeHistogram, SketchedFragments)
