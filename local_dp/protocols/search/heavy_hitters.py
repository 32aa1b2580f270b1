"""Heavy hitters: the frequent strings of a domain too large to list, found prefix by prefix in one round."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Words
from local_dp.bounds.frequencies import FREQUENT, KEPT, NARROW, Schedule, best_schedule, heavy_hitters_clients, level_lengths, noise_height
from local_dp.checks import check_share, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.finite import Strings
from local_dp.populations.population import Population
from local_dp.populations.table import Rows
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, parameter, plain
from local_dp.protocols.search.prefix_search import Level, Search
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.queries.strings import MAX_BITS, HashedPrefix, KeptPrefix, Prefix, strings_of
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True)
class Found:
    """The strings that were found, the most frequent first, and their shares."""

    strings: Words
    estimate: Estimate


@dataclass(frozen=True)
class FrequentStrings(LocalProtocol[Found]):
    """What the protocols have in common that find the frequent strings of `column` among all 2^`bits`; without a table, of ten that `share` hold each.

    A number counts by its last `bits` bits, a text by its first `bits` / 8 bytes; `text` says which it is, and is read off a table.
    """

    source: ClassVar[str] = "Bassily, Smith 2015; Bassily, Nissim, Stemmer, Thakurta 2017 (prefixes)"
    example: ClassVar[str] = "--records words.csv --column word"
    column: str = parameter("string", "the column of strings or whole numbers", of_table=True)
    bits: int = parameter(32, "the length of a string", unit="bits")
    text: bool = parameter(False, "show strings as text")
    missing: str = parameter("refuse", "a missing value: refuse, or category (a string of its own, all zeros)")
    share: float = parameter(0.02, "the default number of clients finds every string that so many hold", unit="share")

    def check(self) -> None:
        check_whole("bits", self.bits, 8, MAX_BITS)
        if self.text and self.bits % 8:
            raise InputError(f"bits is {self.bits}; give whole bytes of text, a multiple of 8")
        check_share("share", self.share)
        check_policy("missing", self.missing, ("refuse", "category"))

    @property
    def tolerance(self) -> float:
        """How far a share may be off without the string being lost: half of it."""
        return self.share / 2

    def synthetic(self, clients: int, seed: int) -> Population:
        """Ten strings of `share` each, or as many as take nine tenths of all; the rest uniform."""
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
        """Each string as a person reads it: text, or a whole number in hexadecimal digits."""
        if not self.text:
            return [f"0x{string:0{-(-self.bits // 4)}x}" for string in strings.tolist()]
        octets = [string.to_bytes(self.bits // 8, "big").rstrip(b"\0") for string in strings.tolist()]
        return [part.decode("utf-8", "backslashreplace") if part else "(missing)" for part in octets]

    def describe(self, result: Found) -> PlainData:
        low, high = result.estimate.interval()
        return {
            "column": self.column,
            "labels": self.shown(result.strings),
            "estimate": plain(result.estimate.value),
            "standard_error": plain(result.estimate.standard_error),
            "interval": plain(np.stack([low, high], axis=-1)),
            "n": result.estimate.n,
        }

    def frequent(self, population: Population) -> dict[int, float]:
        """The strings that at least half of `share` hold in the distribution that the clients are drawn from, with their shares."""
        if isinstance(population, Strings):
            return dict(zip(population.frequent.tolist(), population.shares.tolist(), strict=True))
        assert isinstance(population, Rows)
        strings, counts = np.unique(strings_of(population.whole[self.column], self.bits), return_counts=True)
        shares = counts / counts.sum()
        return dict(zip(strings[shares >= self.share / 2].tolist(), shares[shares >= self.share / 2].tolist(), strict=True))

    def true_error(self, result: Found, population: Population) -> float:
        """The largest error of a share: of one found, or of one with at least `share` that was not."""
        truth = self.frequent(population)
        estimated = dict(zip(result.strings.tolist(), result.estimate.value.tolist(), strict=True))
        missed = [share for string, share in truth.items() if share >= self.share and string not in estimated]
        return max([abs(share - truth.get(string, 0.0)) for string, share in estimated.items()] + missed, default=0.0)


def level_of(length: int, queries: tuple[LocalQuery, ...], tallies: Iterator[Tally]) -> Level:
    """What the clients who were asked these told of the prefixes of so many bits."""
    codings = tuple(query.query for query in queries if isinstance(query.query, HashedPrefix | KeptPrefix))
    return Level(length, codings, tuple(query.randomizer.estimate(next(tallies)) for query in queries))


WIDTH, HASHES = 18, 8  # bits of a hashed prefix, and hash functions a level


@dataclass(frozen=True)
class HeavyHitters(FrequentStrings):
    """Finds the frequent strings of `column` among all 2^`bits`, without a list of them; without a table, of ten that `share` hold each among uniform ones.

    The clients are split over levels: those of the first tell of the first 20 bits, those of each further one of 12 bits more, hashed to 18 bits by one of
    eight hash functions, all by local hashing. The server follows the 512 best prefixes from level to level, and then takes the best string, subtracts it
    from all levels, and so on, as long as its mean over the levels stands higher than noise does anywhere among 2^`bits` strings with probability 1 %.
    A number counts by its last `bits` bits, a text by its first `bits` / 8 bytes; `text` says which it is, and is read off a table.
    Privacy: each client answers once, epsilon-locally private. Utility: a string of share s is found if s is above about 9.5 standard errors of one frequency
    oracle over all clients (`bounds.frequencies`). `share` sets the default number of clients: all strings that have it are found in 95 % of runs, if there
    are ten. Cost: at most 3 bits a client, one round; the server O(n + 2^21) a level.
    """

    name: ClassVar[str] = "heavy-hitters"

    @property
    def lengths(self) -> tuple[int, ...]:
        """The bits of the prefix at each level."""
        return level_lengths(self.bits)

    def clients(self, epsilon: float) -> int:
        return heavy_hitters_clients(epsilon, self.bits, self.share, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[Found]:
        levels = self._levels(epsilon, clients)
        queries = tuple(query for level in levels for query in level)

        def decode(answers: tuple[Tally, ...]) -> Found:
            tallies = iter(answers)
            search = Search(KEPT)
            for length, level in zip(self.lengths, levels, strict=True):
                search = search.deeper(level_of(length, level, tallies), noise_height(self.bits))
            return Found(*search.found())

        return Nonadaptive(queries, decode)

    def _levels(self, epsilon: float, clients: int) -> list[tuple[LocalQuery, ...]]:
        """The queries of each level: one to all clients of the first, one to each of the eight parts of the clients of each further one."""
        parts = 1 + HASHES * (len(self.lengths) - 1)
        if clients < parts:
            raise InputError(
                f"{clients} clients are too few for strings of {self.bits} bits: give at least {parts}, and {self.clients(epsilon):,} for a result"
            )
        ends = np.linspace(0, clients, len(self.lengths) + 1).astype(int).tolist()
        first = Prefix(self.column, self.bits, self.lengths[0])
        levels: list[tuple[LocalQuery, ...]] = [(LocalQuery(first, WideHashing(epsilon, length=first.length), Cohort(0, ends[1])),)]
        hashed = WideHashing(epsilon, length=WIDTH)
        for level, (start, stop) in enumerate(pairwise(ends[1:]), 1):
            cuts = np.linspace(start, stop, HASHES + 1).astype(int).tolist()
            asked = [HashedPrefix(self.column, self.bits, self.lengths[level], WIDTH, seed) for seed in _seeds(level)]
            cohorts = [Cohort(*part) for part in pairwise(cuts)]
            levels.append(tuple(LocalQuery(query, hashed, cohort) for query, cohort in zip(asked, cohorts, strict=True)))
        return levels


def _seeds(level: int) -> list[int]:
    """The multipliers of a level's hash functions: public, and the same in every run."""
    return [word >> 2 for word in map(int, philox_words(stream_key("hashed prefixes", level), 0, HASHES))]


@dataclass(frozen=True)
class HeavyHittersAsked(FrequentStrings):
    """Finds the frequent strings of `column` among all 2^`bits` round by round; without a table, of ten that `share` hold each among uniform ones.

    The first clients tell the first 20 bits, those of each further round which of the 511 best prefixes so far their string begins with and the next 12 bits,
    by local hashing; or, at a large epsilon, 12 bits, 31 prefixes and 7 bits, by the best oracle for 4,096 symbols: whichever needs fewer clients. Scores,
    subtraction and the height of noise are those of `heavy-hitters`, which asks everybody at once, and nothing below half of `share` is taken. Up to epsilon
    4 this one needs about as many clients, beyond that fewer.
    Privacy: each client answers once, epsilon-locally private. Utility: `bounds.frequencies.Schedule`; `share` sets the default number of clients: all
    strings that have it are found in 95 % of runs, if there are ten. Cost: at most 12 bits a client, two rounds for 32 bits, or four.
    """

    name: ClassVar[str] = "heavy-hitters-asked"

    def schedule(self, epsilon: float) -> Schedule:
        """How long the prefixes of each round are, and how many are kept."""
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
                asked = LocalQuery(query, _oracle(epsilon, query, schedule), Cohort(*cohort))
                tallies = yield (asked,)
                search = search.deeper(level_of(length, (asked,), iter(tallies)), schedule.height(length, self.bits))
            return Found(*search.found())

        return Adaptive(play)

    def _query(self, length: int, search: Search, schedule: Schedule) -> Prefix | KeptPrefix:
        if not search.levels:
            return Prefix(self.column, self.bits, length)
        kept = tuple(f"{prefix:x}" for prefix in np.sort(search.beam.strings).tolist())
        return KeptPrefix(self.column, self.bits, length, length - search.levels[-1].length, schedule.width, kept)


def _oracle(epsilon: float, query: Prefix | KeptPrefix, schedule: Schedule) -> Randomizer:
    if schedule is NARROW:
        return frequency_randomizer(epsilon, query.domain.size)
    return WideHashing(epsilon, length=query.width if isinstance(query, KeptPrefix) else query.length)
