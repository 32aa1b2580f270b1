"""Heavy hitters: the frequent strings of a domain too large to list, found prefix by prefix in one round or in several."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.bounds.frequencies import FREQUENT, KEPT, NARROW, Schedule, best_schedule, heavy_hitters_clients, level_lengths, noise_height
from local_dp.checks import check_share, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.finite import Population, Rows, Strings
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.subsets import MAX_BITS, HashedPrefix, KeptPrefix, Prefix, strings_of
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.tallies import Ends, Estimate, Tally


@dataclass(frozen=True)
class Level:
    """The estimates of one level: the shares of the codes of all prefixes of `length` bits under each of some queries."""

    length: int
    codings: tuple[Prefix, ...]
    tables: tuple[Estimate, ...]

    @property
    def n(self) -> int:
        return sum(table.n for table in self.tables)

    def codes(self, prefixes: Words) -> list[Ints]:
        """The report of each part of the level's clients for each prefix: the prefix, or its hash."""
        return [query.of(prefixes) for query in self.codings]

    def shares(self, codes: Sequence[Ints]) -> Floats:
        """The estimated share of prefixes with these codes; of a hash, less the expected part of all others."""
        shares: Floats = sum((table.n / self.n * table.value[code] for table, code in zip(self.tables, codes, strict=True)), np.zeros(1))
        size = len(self.tables[0].value)
        collide = any(isinstance(query, HashedPrefix) for query in self.codings)
        return (shares * size - 1) / (size - 1) if collide else shares

    def alike(self, codes: Sequence[Ints], place: int) -> Floats:
        """The part of the level's clients whose report is the same for each prefix as for the one at `place`."""
        parts = (table.n / self.n * (code == code[place]) for table, code in zip(self.tables, codes, strict=True))
        return sum(parts, np.zeros(1))


@dataclass(frozen=True)
class Beam:
    """The kept prefixes of a level and the mean of each one's estimated shares so far; the first `taken` stand out of the noise."""

    strings: Words
    scores: Floats
    taken: int


@dataclass(frozen=True)
class Search:
    """The search level by level: `kept` prefixes are followed, and those taken whose score reaches the height of noise.

    At each level every kept prefix is continued in all ways, and the score of a string is the mean over the clients so far. The best is taken, and its share
    subtracted from all others by the weight of the clients whose reports mix them; then the next best, and so on. The best of the rest are kept too.
    """

    kept: int
    floor: float = 0.0  # no share below it is taken: at a large epsilon a single client stands out of the noise
    levels: tuple[Level, ...] = ()
    beam: Beam = Beam(np.zeros(1, dtype=np.uint64), np.zeros(1), 0)

    @property
    def n(self) -> int:
        return sum(level.n for level in self.levels)

    def deeper(self, level: Level, height: float) -> "Search":
        """The search one level further; `height` in standard errors of noise."""
        least = max(self.floor, height * float(Estimate.between(_ends(level), 0.0, self.n + level.n).standard_error))
        return replace(self, levels=(*self.levels, level), beam=_continued(self.beam, self.levels, level, (least, self.kept)))

    def found(self) -> tuple[Words, Estimate]:
        """The strings taken, the most frequent first, and their shares."""
        strings, shares = self.beam.strings[: self.beam.taken], self.beam.scores[: self.beam.taken]
        order = np.argsort(-shares, kind="stable")
        return strings[order], Estimate.between(_ends(self.levels[0]), shares[order], self.n)


def _ends(level: Level) -> Ends:
    ends = level.tables[0].ends
    assert ends is not None
    return ends


def _continued(kept: Beam, before: Sequence[Level], level: Level, limits: tuple[float, int]) -> Beam:
    """The beam of one more level: `limits` are the least score taken and the most strings kept."""
    least, most = limits
    step = level.length - (before[-1].length if before else 0)
    strings = (kept.strings[:, None] << np.uint64(step) | np.arange(1 << step, dtype=np.uint64)).ravel()
    codes = level.codes(strings)
    earlier = [(each, each.codes(kept.strings >> np.uint64(before[-1].length - each.length))) for each in before]
    part = level.n / (level.n + sum(each.n for each in before))
    scores = (1 - part) * np.repeat(kept.scores, 1 << step) + part * level.shares(codes)
    first: list[int] = []
    shares: list[float] = []
    while len(first) < most and scores[best := int(np.argmax(scores))] >= least:
        first.append(best)
        shares.append(float(scores[best]))
        parents = sum((each.n / level.n * each.alike(code, best >> step) for each, code in earlier), np.zeros(len(kept.strings)))
        scores -= part * shares[-1] * (level.alike(codes, best).reshape(len(kept.strings), -1) + parents[:, None]).ravel()
    rest = np.delete(np.arange(len(scores)), first)
    if len(rest) > most - len(first):
        rest = rest[np.argpartition(-scores[rest], most - len(first))[: most - len(first)]]
    places = np.concatenate([np.array(first, dtype=np.int64), rest])
    return Beam(strings[places], np.concatenate([shares, scores[rest]]), len(first))


@dataclass(frozen=True)
class Found:
    """The frequent strings, the most frequent first, and their shares."""

    strings: Words
    estimate: Estimate


@dataclass(frozen=True)
class FrequentStrings(LocalProtocol[Found]):
    """The common part of protocols that find the frequent strings of `column` among all 2^`bits`; without a table, ten strings have the share `share` each.

    A number counts by its last `bits` bits, a text by its first `bits` / 8 bytes; a table sets `text`.
    """

    source: ClassVar[str] = "Bassily, Smith 2015; Bassily, Nissim, Stemmer, Thakurta 2017 (prefixes)"
    uncovered: ClassVar[str] = "it estimates what it found, of which chance was a part, for some million clients"
    example: ClassVar[str] = "--records words.csv --column word"
    column: str = parameter("string", "the column of strings or whole numbers", of_table=True)
    bits: int = parameter(32, "the length of a string", unit="bits")
    text: bool = parameter(False, "show strings as text")
    missing: str = parameter("refuse", "a missing value: refuse, or category (a string of its own, all zeros)")
    share: float = parameter(0.02, "the default number of clients finds every string with at least this share", unit="share")

    def check(self) -> None:
        check_whole("bits", self.bits, 8, MAX_BITS)
        if self.text and self.bits % 8:
            raise InputError(f"bits is {self.bits}; give whole bytes of text, a multiple of 8")
        check_share("share", self.share)
        self.check_choices(missing=("refuse", "category"))

    @property
    def tolerance(self) -> float:
        """The error of a share with which its string is still found: half of it."""
        return self.share / 2

    def synthetic(self, clients: int, seed: int) -> Population:
        """Ten strings of `share` each, or fewer that make up nine tenths; the rest uniform."""
        count = max(1, min(FREQUENT, int(0.9 / self.share)))
        drawn = philox_words(stream_key("frequent strings", seed), 0, 8 * FREQUENT) >> np.uint64(64 - self.bits)
        frequent = list(dict.fromkeys(drawn.tolist()))[:count]
        return Strings(self.column, self.bits, frequent, [self.share] * len(frequent), clients, seed)

    def for_table(self, table: Launch) -> Self:
        values = table.records[self.column]
        if values.dtype.kind == "f":
            raise InputError(f"column {self.column!r} has numbers that are not whole; give whole numbers or text")
        table.refuse_missing(self.missing, self.column, "missing=category (a string of its own)")
        return replace(self, text=values.dtype.kind == "U")

    def shown(self, strings: Words) -> list[str]:
        """Each string as text, or as a whole number in hexadecimal digits."""
        if not self.text:
            return [f"0x{string:0{-(-self.bits // 4)}x}" for string in strings.tolist()]
        octets = [string.to_bytes(self.bits // 8, "big").rstrip(b"\0") for string in strings.tolist()]
        return [part.decode("utf-8", "backslashreplace") if part else "(missing)" for part in octets]

    def describe(self, result: Found) -> PlainData:
        return {"column": self.column, "labels": self.shown(result.strings), **describe_estimate(result.estimate)}

    def truth(self, population: Population) -> None:
        """The frequent strings and their shares are compared by `true_error`."""

    def frequent(self, population: Population) -> dict[int, float]:
        """The strings with at least half of `share` in the distribution that the clients are drawn from, with their shares."""
        if isinstance(population, Strings):
            return dict(zip(population.frequent.tolist(), population.shares.tolist(), strict=True))
        assert isinstance(population, Rows)
        strings, counts = np.unique(strings_of(population.whole[self.column], self.bits), return_counts=True)
        shares = counts / counts.sum()
        return dict(zip(strings[shares >= self.share / 2].tolist(), shares[shares >= self.share / 2].tolist(), strict=True))

    def true_error(self, result: Found, population: Population) -> float:
        """The largest error of a share: of a string found, or of a missed one with at least `share`."""
        truth = self.frequent(population)
        estimated = dict(zip(result.strings.tolist(), result.estimate.value.tolist(), strict=True))
        missed = [share for string, share in truth.items() if share >= self.share and string not in estimated]
        return max([abs(share - truth.get(string, 0.0)) for string, share in estimated.items()] + missed, default=0.0)


def level_of(length: int, queries: tuple[LocalQuery, ...], tallies: Iterator[Tally]) -> Level:
    """The estimates of the prefixes of `length` bits, from the tallies of these queries."""
    codings = tuple(query.query for query in queries if isinstance(query.query, Prefix))
    return Level(length, codings, tuple(query.randomizer.estimate(next(tallies)) for query in queries))


WIDTH, HASHES = 18, 8  # bits of a hashed prefix, and hash functions a level


@dataclass(frozen=True)
class HeavyHitters(FrequentStrings):
    """Finds the frequent strings of `column` among all 2^`bits`, without a list of them; without a table, of ten that `share` hold each among uniform ones.

    The clients are split over levels: the first reports 20 bits, each further level 12 bits more, hashed to 18 bits by one of eight functions, all by local
    hashing. The server follows the 512 best prefixes from level to level. Then it takes the best string, subtracts it from all levels, and repeats. It stops at
    a mean over the levels that noise reaches among 2^`bits` strings with probability 1 %.
    A number counts by its last `bits` bits, a text by its first `bits` / 8 bytes; a table sets `text`.
    Privacy: each client answers once, epsilon-locally private. Utility: a string is found if its share is above about 9.5 standard errors of one frequency
    oracle over all clients (`bounds.frequencies`). `share` sets the default number of clients: all of ten such strings are found in 95 % of runs.
    Cost: at most 3 bits a client, one round; the server O(n + 2^21) a level.
    """

    name: ClassVar[str] = "heavy-hitters"

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length of the prefix at each level."""
        return level_lengths(self.bits)

    def clients(self, epsilon: float) -> int:
        return heavy_hitters_clients(epsilon, self.bits, self.share, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[Found]:
        levels = self._levels(epsilon, clients)
        queries = tuple(query for level in levels for query in level)

        def decode(tallies: tuple[Tally, ...]) -> Found:
            left, search = iter(tallies), Search(KEPT)
            for length, level in zip(self.lengths, levels, strict=True):
                search = search.deeper(level_of(length, level, left), noise_height(self.bits))
            return Found(*search.found())

        return Nonadaptive(queries, decode)

    def _levels(self, epsilon: float, clients: int) -> list[tuple[LocalQuery, ...]]:
        """The queries of each level: one for the first, eight for each further one, each to an eighth of the clients."""
        parts = 1 + HASHES * (len(self.lengths) - 1)
        if clients < parts:
            raise InputError(f"{clients} clients are too few for {self.bits} bits: give at least {parts}, and {self.clients(epsilon):,} for a result")
        ends = np.linspace(0, clients, len(self.lengths) + 1).astype(int).tolist()
        first = Prefix(self.column, self.bits, self.lengths[0])
        levels: list[tuple[LocalQuery, ...]] = [(LocalQuery(first, WideHashing(epsilon, length=first.length), Cohort(0, ends[1])),)]
        hashed = WideHashing(epsilon, length=WIDTH)
        for level, (start, stop) in enumerate(pairwise(ends[1:]), 1):
            cuts = np.linspace(start, stop, HASHES + 1).astype(int).tolist()
            seeds = [word >> 2 for word in map(int, philox_words(stream_key("hashed prefixes", level), 0, HASHES))]  # public, and the same in every run
            queries = [HashedPrefix(self.column, self.bits, self.lengths[level], WIDTH, seed) for seed in seeds]
            levels.append(tuple(LocalQuery(query, hashed, Cohort(*part)) for query, part in zip(queries, pairwise(cuts), strict=True)))
        return levels


@dataclass(frozen=True)
class HeavyHittersAsked(FrequentStrings):
    """Finds the frequent strings of `column` among all 2^`bits` round by round; without a table, of ten that `share` hold each among uniform ones.

    The first clients report 20 bits by local hashing. Each further round reports which of the 511 best prefixes continues, and the next 12 bits. At a large
    epsilon the steps are 12 bits, 31 prefixes and 7 bits, by the best oracle for 4,096 symbols, where that needs fewer clients. Scores, subtraction and the
    height of noise are those of `heavy-hitters`; nothing below half of `share` is taken. Beyond epsilon 4 this protocol needs fewer clients.
    Privacy: each client answers once, epsilon-locally private. Utility: `bounds.frequencies.Schedule`; `share` sets the default number of clients: all of
    ten strings with this share are found in 95 % of runs. Cost: at most 12 bits a client, two rounds for 32 bits, or four.
    """

    name: ClassVar[str] = "heavy-hitters-asked"

    def schedule(self, epsilon: float) -> Schedule:
        """The length of the prefixes of each round, and the number kept."""
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        return best_schedule(epsilon, self.bits, self.share, BETA)

    def clients(self, epsilon: float) -> int:
        return self.schedule(epsilon).clients(epsilon, self.bits, self.share, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Found]:
        schedule = self.schedule(epsilon)
        lengths, needs = schedule.lengths(self.bits), np.array(schedule.needs(self.bits, BETA))
        if clients < len(lengths):
            raise InputError(f"{clients} clients are too few for {len(lengths)} rounds: give {self.clients(epsilon):,} for a result")
        ends = [0, *(np.rint(needs / needs[-1] * (clients - len(needs))).astype(int) + np.arange(1, len(needs) + 1)).tolist()]

        def play() -> LocalPlay[Found]:
            search = Search(schedule.kept, self.tolerance)
            for length, cohort in zip(lengths, pairwise(ends), strict=True):
                query = self._query(length, search, schedule)
                size = query.domain.size
                oracle = frequency_randomizer(epsilon, size) if schedule is NARROW else WideHashing(epsilon, length=size.bit_length() - 1)
                queries = (LocalQuery(query, oracle, Cohort(*cohort)),)
                search = search.deeper(level_of(length, queries, iter((yield queries))), schedule.height(length, self.bits))
            return Found(*search.found())

        return Adaptive(play)

    def _query(self, length: int, search: Search, schedule: Schedule) -> Prefix:
        if not search.levels:
            return Prefix(self.column, self.bits, length)
        kept = tuple(f"{prefix:x}" for prefix in np.sort(search.beam.strings).tolist())
        return KeptPrefix(self.column, self.bits, length, length - search.levels[-1].length, schedule.width, kept)
