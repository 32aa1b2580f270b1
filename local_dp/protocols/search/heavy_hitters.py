"""Heavy hitters: the frequent strings of a domain too large to list: a search prefix by prefix,
then a count of the candidates by other clients."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from math import ceil
from typing import Self

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.bounds.frequencies import (
    FREQUENT,
    NARROW,
    NOISE,
    ONE_ROUND,
    Schedule,
    best_schedule,
    heavy_hitters_clients,
    listed,
)
from local_dp.bounds.tails import normal_quantile, normal_tail
from local_dp.checks import check_share, check_whole
from local_dp.domains import Domain, bit_strings
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.finite import Finite, Population, Strings, weighted_records
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    PlainData,
    describe_estimate,
    parameter,
    policy,
)
from local_dp.protocols.needs import Need
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.strings import (
    CUT,
    MAX_BITS,
    HashedPrefix,
    KeptPrefix,
    Prefix,
    chunks_of,
    ends_of,
    numbers_of,
    readable,
    shown_text,
    strings_of,
)
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import Records
from local_dp.tallies import Z95, Estimate, Possible, Tally, exact_interval


def read(query: LocalQuery, tally: Tally) -> Estimate:
    """The shares of the codes of a query, by its randomizer."""
    reader = Need(query.query.domain).reader(query.randomizer)
    estimate: Estimate = reader.estimate(tally)
    return estimate


@dataclass(frozen=True)
class Level:
    """The estimates of one level: the shares of the codes of all prefixes of `length` bits under
    each of some queries."""

    length: int
    codings: tuple[Prefix, ...]
    tables: tuple[Estimate, ...]

    @classmethod
    def of(cls, length: int, queries: Sequence[LocalQuery], tallies: Iterator[Tally]) -> Self:
        """From the tallies of these queries."""
        codings = tuple(query.query for query in queries if isinstance(query.query, Prefix))
        return cls(length, codings, tuple(read(query, next(tallies)) for query in queries))

    @property
    def n(self) -> int:
        return sum(table.n for table in self.tables)

    def mean_of(self, codes: Sequence[Ints]) -> Floats:
        """The mean over clients of the shares of these codes, one array for each query."""
        shares: Floats = np.zeros(1)
        for table, own in zip(self.tables, codes, strict=True):
            shares = shares + table.n / self.n * table.value[own]
        return shares

    def errors_of(self, codes: Sequence[Ints]) -> Floats:
        """The standard error of `mean_of`."""
        pairs = zip(self.tables, codes, strict=True)
        squares = [(table.n / self.n * table.standard_error[own]) ** 2 for table, own in pairs]
        return np.asarray(np.sqrt(np.sum(squares, axis=0)))

    def shares(self, prefixes: Words, ends: Words) -> Floats:
        """The estimated share of each prefix with each end; of a hash, less the expected part of
        all others."""
        shares = self.mean_of([query.of_each(prefixes, ends) for query in self.codings])
        if not isinstance(self.codings[0], HashedPrefix):
            return shares
        size = len(self.tables[0].value)
        return (shares * size - 1) / (size - 1)

    def apart(self, strings: Words) -> tuple["Level", Words]:
        """The level without the queries that give two of these strings the same code; if none is
        left, one query, and the strings that it distinguishes."""
        pairs = [
            (query, table)
            for query, table in zip(self.codings, self.tables, strict=True)
            if len(np.unique(query.of(strings))) == len(strings)
        ]
        if pairs:
            return Level(self.length, *zip(*pairs, strict=True)), strings
        first = np.sort(np.unique(self.codings[0].of(strings), return_index=True)[1])
        return Level(self.length, self.codings[:1], self.tables[:1]), strings[first]


# by how many levels the divisor of a mean is less: the last level alone only competes with other
# ends of the same prefixes
RECENT = 0.5
LOOKED_AT = 32  # so many times the kept prefixes are looked through for readable ones


@dataclass(frozen=True)
class Search:
    """The search of strings of `bits` bits level by level, of text if `text`: the best prefixes of
    `length` bits so far, the best first.

    At each level every kept prefix is continued in all ways. The share of a prefix never grows with
    its length. So the score is the least over m = 1, 2, ... of the sum of n times the shares at the
    last m levels, divided by m - 1/2 levels. Then a frequent prefix lends nothing to its wrong
    continuations. `sums` holds these sums for each kept prefix, shape (prefixes, levels), and
    `sizes` their numbers of clients.
    """

    bits: int
    text: bool
    length: int = 0
    strings: Words = field(default_factory=lambda: np.zeros((1, 1), dtype=np.uint64))
    sums: Floats = field(default_factory=lambda: np.zeros((1, 0)))
    sizes: tuple[int, ...] = ()

    def deeper(self, level: Level, count: int) -> "Search":
        """The search one level further, with the `count` best prefixes; of text those that some
        text starts with."""
        step = level.length - self.length
        parents = self.strings if self.length else chunks_of([0], 1, self.bits)
        ends = ends_of(self.length, step, self.bits)
        gains = level.n * level.shares(parents, ends)
        scores = gains / ((1 - RECENT) * level.n)
        for sums, n in zip(self.sums.T, self.sizes, strict=True):
            longer = (np.repeat(sums, 1 << step) + gains) / (n + (1 - RECENT) * level.n)
            np.minimum(scores, longer, out=scores)
        best = np.arange(len(scores))
        if len(scores) > LOOKED_AT * count:
            best = np.argpartition(-scores, LOOKED_AT * count)[: LOOKED_AT * count]
        best = best[np.argsort(-scores[best], kind="stable")]
        strings = parents[best >> step] | ends[best & (1 << step) - 1]
        # where none is, one goes on that is never listed
        first = np.array(list(islice(self._readable(strings, level.length), count)) or [0])
        places = best[first]
        sums = np.column_stack([self.sums[places >> step] + gains[places, None], gains[places]])
        return replace(
            self,
            length=level.length,
            strings=strings[first],
            sums=sums,
            sizes=(*(n + level.n for n in self.sizes), level.n),
        )

    def _readable(self, strings: Words, length: int) -> Iterator[int]:
        """The places of those that may be listed."""
        if not self.text:
            return iter(range(len(strings)))
        return (
            place
            for place, number in enumerate(numbers_of(strings, length))
            if readable(number, length, self.bits // 8)
        )


def joint_interval(estimate: Estimate, z: float) -> tuple[Floats, Floats]:
    """The exact interval of two-valued reports; of others the normal one."""
    if estimate.ends is not None:
        return exact_interval(estimate.value, estimate.ends, estimate.n, z)
    away = z * estimate.standard_error
    return estimate.value - away, estimate.value + away


@dataclass(frozen=True)
class Chosen(Estimate):
    """Estimates that were chosen by their size among those of `candidates` strings: their intervals
    hold the truths all at once."""

    candidates: int = 1

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        """Simultaneous intervals, by a union bound over all candidates: each side fails with
        probability normal_tail(z) / `candidates` at most."""
        return joint_interval(self, normal_quantile(normal_tail(z) / self.candidates))


@dataclass(frozen=True)
class Found:
    """The frequent strings as numbers, the most frequent first, and their shares; out of how many
    candidates."""

    strings: tuple[int, ...]
    estimate: Estimate
    candidates: int


def counted(search: Search, level: Level, least: float) -> Found:
    """The candidates of a search that stand out in the count of a level of other clients, with at
    least the share `least`.

    A string is listed if its interval, of a failure probability of 1 % for all candidates together,
    lies above 0. No client of the search is counted.
    """
    level, strings = level.apart(search.strings)
    ends = level.tables[0].ends
    if ends is not None and np.ndim(ends[0]):
        ends = None  # each symbol has ends of its own
    codes = [query.of(strings) for query in level.codings]
    shares = level.mean_of(codes)
    counts = Estimate(shares, level.errors_of(codes), level.n, ends)
    above = joint_interval(counts, normal_quantile(NOISE / len(strings)))[0] > 0
    numbers = numbers_of(strings, search.bits)
    order = [
        place
        for place in np.argsort(-shares, kind="stable").tolist()
        if above[place] and shares[place] >= least
    ]
    if search.text:
        order = [
            place for place in order if readable(numbers[place], search.bits, search.bits // 8)
        ]
    places = np.array(order, dtype=np.int64)
    if ends is not None:
        estimate = Chosen.between(ends, shares[places], level.n)
    else:
        estimate = Chosen(shares[places], counts.standard_error[places], level.n)
    estimate = replace(estimate, candidates=len(strings))
    return Found(tuple(numbers[place] for place in order), estimate, len(strings))


@dataclass(frozen=True)
class FrequentStrings(LocalProtocol[Found]):
    """The common part of protocols that find the frequent strings of `column` among all; without a
    table, ten strings have the share `share` each.

    A number counts by its last `bits` bits, a text by its first `text_bytes` bytes; a table sets
    `text`.
    """

    source = "Bassily, Smith 2015; Bassily, Nissim, Stemmer, Thakurta 2017 (prefixes)"
    example = "--records words.csv --column word"
    error_unit = "the largest error of a share, of a string found or missed"
    column: str = parameter("string", "Column of strings or whole numbers", of_table=True)
    bits: int = parameter(
        32,
        "Length of a whole number, at most 64",
        help="A longer number counts by its last bits",
        unit="bits",
    )
    text_bytes: int = parameter(16, "Length of a text; longer ones are cut", unit="bytes")
    text: bool = parameter(False, "Whether the strings are text")
    missing: str = policy("missing values", category="a string of its own, all zeros")
    randomizer: str = parameter(
        "best",
        "Randomizer of symbols; best: local hashing",
        help="In one round of 2^20 symbols; round by round of 4096",
    )
    share: float = parameter(
        0.02,
        "Share to find; sets the default number of clients",
        help="In 95 % of runs every string with this share is found",
        unit="share",
    )

    def check(self) -> None:
        check_whole("bits", self.bits, 8, 64)
        check_whole("text_bytes", self.text_bytes, 1, MAX_BITS // 8)
        if self.text and self.bits != type(self).bits:
            raise InputError(
                f"bits is {self.bits}, and the strings are text; leave bits out, and give "
                "text_bytes, the length of a text in bytes"
            )
        check_share("share", self.share)

    @property
    def size(self) -> int:
        """The bits of a string."""
        return 8 * self.text_bytes if self.text else self.bits

    @property
    def tolerance(self) -> float:
        """The error of a share with which its string is still found: half of it."""
        return self.share / 2

    def synthetic(self, clients: int, seed: int) -> Population:
        """Ten strings of `share` each, or fewer that make up nine tenths; the rest uniform, of
        texts among 16,384 random ones."""
        count = max(1, min(FREQUENT, int(0.9 / self.share)))
        key = stream_key("frequent strings", seed)
        if self.text:
            letters = philox_words(key, 0, (RARE + FREQUENT) * self.text_bytes) % np.uint64(26)
            letters = letters.astype(np.uint32) + ord("a")
            words = np.unique(letters.view(f"U{self.text_bytes}"))
            words = words[np.argsort(philox_words(key, 0, len(words)), kind="stable")]
            count = min(count, len(words) - 1)
            shares = np.full(len(words), (1 - count * self.share) / (len(words) - count))
            shares[:count] = self.share
            return Finite(Records({self.column: words}), shares, clients, seed)
        numbers = philox_words(key, 0, 8 * FREQUENT) >> np.uint64(64 - self.bits)
        frequent = list(dict.fromkeys(numbers.tolist()))[:count]
        return Strings(
            self.column, self.bits, frequent, [self.share] * len(frequent), clients, seed
        )

    def for_table(self, table: Launch) -> Self:
        is_text = table.types[self.column].dtype.kind == "U"
        if not is_text:
            table.whole(self.column)
        table.refuse_missing(self.missing, self.column, "missing=category (a string of its own)")
        return replace(self, text=is_text)

    def possible(self, result: Found) -> Possible:
        return Possible(0.0, 1.0, ())

    def shown(self, strings: Sequence[int]) -> list[str]:
        """Each string as text, with an ellipsis where it was cut, or as a whole number in
        hexadecimal digits."""
        if self.text:
            return [shown_text(string, self.text_bytes) for string in strings]
        return [f"0x{string:0{-(-self.bits // 4)}x}" for string in strings]

    def describe(self, result: Found) -> PlainData:
        explanation = (
            "All intervals hold together in 95 % of runs: they allow for the choice among "
            f"{result.candidates} candidates."
        )
        text: PlainData = {}
        if self.text:
            cut = [CUT in string.to_bytes(self.text_bytes, "big") for string in result.strings]
            text = {"text_bytes": self.text_bytes, "cut": cut}
            explanation += f" Texts of at most {self.text_bytes} bytes are whole."
            if any(cut):
                explanation += (
                    f" A longer one was cut to its first {self.text_bytes - 1} bytes or a little "
                    "less, and ends in \u2026: all that start so count together."
                )
        if len(result.strings) == 0:
            explanation = (
                "No string stands out of the noise. Ask more people, give more epsilon, or look "
                "for a larger share."
            )
        return {
            "column": self.column,
            "labels": self.shown(result.strings),
            **text,
            "choice": {"explanation": explanation},
            **describe_estimate(result.estimate),
        }

    def truth_of(self, result: Found, population: Population) -> Floats:
        """The share of each string found, shape (strings,)."""
        shares = self.shares(population)
        return np.array([shares.get(string, 0.0) for string in result.strings])

    def shares(self, population: Population) -> dict[int, float]:
        """The share of each string in the distribution that the clients are drawn from; without a
        table, of the frequent ones."""
        if isinstance(population, Strings):
            return dict(zip(population.frequent.tolist(), population.shares.tolist(), strict=True))
        records, weights = weighted_records(population)
        strings, places = np.unique(
            strings_of(records[self.column], self.size), axis=0, return_inverse=True
        )
        shares = np.bincount(places.ravel(), weights) / weights.sum()
        return dict(zip(numbers_of(strings, self.size), shares.tolist(), strict=True))

    def true_error(self, result: Found, population: Population) -> float:
        """The largest error of a share: of a string found, or of a missed one with at least
        `share`."""
        truth = self.shares(population)
        estimates = dict(zip(result.strings, result.estimate.value.tolist(), strict=True))
        errors = [abs(share - truth.get(string, 0.0)) for string, share in estimates.items()]
        for string, share in truth.items():
            if share >= self.share and string not in estimates:
                errors.append(share)
        return max(errors, default=0.0)

    def ends(self, schedule: Schedule, clients: int, least: Sequence[int]) -> list[int]:
        """Where each level's clients end, by its need, and at last those of the count: at least so
        many each."""
        needs = np.array(schedule.needs(self.size, self.share, BETA))
        more = np.floor(np.cumsum(needs / needs.sum()) * (clients - sum(least)) + 1e-6)
        ends: list[int] = (more.astype(int) + np.cumsum(least)).tolist()
        return ends


RARE = 1 << 14  # other texts of a population without a table
WIDTH, HASHES = 18, 8  # bits of a hashed prefix, and hash functions a level
COUNT_WIDTH, COUNT_HASHES = 21, 4  # of the count at the end


@dataclass(frozen=True)
class HeavyHitters(FrequentStrings):
    """Finds the frequent strings of `column` without a list of them; without a table, of ten that
    `share` hold each among uniform ones.

    The clients are split over levels and a count, by need. The first level reports 20 bits, each
    further level 12 bits more, hashed to 18 bits by one of eight functions. The last clients report
    a hash of the whole string to 21 bits. All use local hashing. The server follows the 512 best
    prefixes from level to level, of text only those of readable texts. At the end 2 / `share`
    candidates are left, at most 512. The count alone estimates their shares, so the choice of
    candidates biases nothing. It lists the candidates that stand above noise; a string that nobody
    holds does so with probability 1 %, all together. A number counts by its last `bits` bits, a
    text of up to `text_bytes` bytes as it is; a table sets `text`. A longer text is cut to its
    first `text_bytes` - 1 bytes, or less for whole characters, and shown with an ellipsis. Privacy:
    each client answers once, epsilon-locally private. Utility: all listed intervals hold the truth
    together in 95 % of runs. The bias is at most 2^-20 on average over hash functions, by other
    strings of the same hash. `share` sets the default number of clients: all of ten such strings
    are found in 95 % of runs (`bounds.frequencies.Schedule`). Cost: at most 10 bits a client, one
    round; the server O(e^eps n + 2^21) a level.
    """

    name = "heavy-hitters"
    summary = "Finds the frequent strings of a column in one round"

    @property
    def need(self) -> Need:
        return Need(bit_strings(COUNT_WIDTH))

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length of the prefix at each level."""
        return ONE_ROUND.lengths(self.size)

    def clients(self, epsilon: float) -> int:
        return heavy_hitters_clients(epsilon, self.size, self.share, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[Found]:
        levels = self._levels(epsilon, clients)
        queries = tuple(query for level in levels for query in level)

        def decode(tallies: tuple[Tally, ...]) -> Found:
            left = iter(tallies)
            search = Search(self.size, self.text)
            for length, level in zip(self.lengths, levels, strict=False):
                search = search.deeper(
                    Level.of(length, level, left),
                    listed(self.share, ONE_ROUND) if length == self.size else ONE_ROUND.beam,
                )
            return counted(search, Level.of(self.size, levels[-1], left), 0.0)

        return Nonadaptive(queries, decode)

    def _hashes(self, level: int, width: int, hashes: int) -> list[Prefix]:
        """The queries of one level: prefixes as they are in the first one, then hashes by seeds
        that are public, and the same in every run."""
        length = (*self.lengths, self.size)[level]
        if level == 0:
            return [Prefix(self.column, self.size, length)]
        words = philox_words(stream_key("hashed prefixes", level), 0, hashes).tolist()
        return [HashedPrefix(self.column, self.size, length, width, word >> 2) for word in words]

    def _levels(self, epsilon: float, clients: int) -> list[tuple[LocalQuery, ...]]:
        """The queries of each level: one for the first, eight for each further one, four for the
        count, each to an equal part of its clients."""
        widths = [
            (self.lengths[0], 1),
            *((WIDTH, HASHES) for _ in self.lengths[1:]),
            (COUNT_WIDTH, COUNT_HASHES),
        ]
        parts = [hashes for _, hashes in widths]
        if clients < sum(parts):
            raise InputError(
                f"{clients} clients are too few for {self.size} bits: give at least {sum(parts)}, "
                f"and {self.clients(epsilon):,} for a result"
            )
        levels: list[tuple[LocalQuery, ...]] = []
        cohorts = pairwise([0, *self.ends(ONE_ROUND, clients, parts)])
        for level, (cohort, (width, hashes)) in enumerate(zip(cohorts, widths, strict=True)):
            cuts = np.linspace(*cohort, hashes + 1).astype(int).tolist()
            oracle: Randomizer = WideHashing(epsilon, length=width)
            if self.randomizer != "best":
                need = Need(oracle.domain)
                oracle = need.randomizer(self.randomizer, epsilon, self.name)
            queries = self._hashes(level, width, hashes)
            levels.append(
                tuple(
                    LocalQuery(query, oracle, Cohort(*part))
                    for query, part in zip(queries, pairwise(cuts), strict=True)
                )
            )
        return levels


def _best_oracle(epsilon: float, domain: Domain, plain: bool) -> Randomizer:
    if plain:
        return frequency_randomizer(epsilon, domain.size)
    return WideHashing(epsilon, length=domain.size.bit_length() - 1)


@dataclass(frozen=True)
class HeavyHittersAsked(FrequentStrings):
    """Finds the frequent strings of `column` round by round; without a table, of ten that `share`
    hold each among uniform ones.

    The first clients report 20 bits by local hashing. Each further round reports which of the 511
    best prefixes continues, and the next 12 bits. For up to 12 bits, or by another randomizer, the
    steps are 12 bits, 31 prefixes and 7 bits, by oracles for 4,096 symbols. The last round asks
    other clients which of the 2 / `share` best strings they hold, at most 511 or 31, and estimates
    their shares. Scores, lengths of text and intervals are those of `heavy-hitters`; nothing below
    half of `share` is listed. By default it needs as many clients as `heavy-hitters`: the rounds
    gain nothing. Privacy: each client answers once, epsilon-locally private. Utility: the
    estimates of the last round are unbiased, and all listed intervals hold the truth together in 95
    % of runs. `share` sets the default number of clients: all of ten strings with this share are
    found in 95 % of runs (`bounds.frequencies.Schedule`). Cost: at most 12 bits a client, three
    rounds for 32 bits, or five.
    """

    name = "heavy-hitters-asked"
    summary = "Finds the frequent strings of a column round by round"

    def schedule(self, epsilon: float) -> Schedule:
        """The length of the prefixes of each round, and the number kept."""
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        if self.randomizer not in ("best", WideHashing.name):
            return NARROW  # any randomizer has so few symbols
        return best_schedule(epsilon, self.size, self.share, BETA)

    @property
    def need(self) -> Need:
        return Need(bit_strings(NARROW.width))

    def _oracle(self, epsilon: float, domain: Domain, plain: bool) -> Randomizer:
        if self.randomizer != "best":
            return Need(domain).randomizer(self.randomizer, epsilon, self.name)
        return _best_oracle(epsilon, domain, plain)

    def clients(self, epsilon: float) -> int:
        schedule, need = self.schedule(epsilon), self.need
        usual = _best_oracle(epsilon, need.domain, schedule is NARROW)
        times = need.times(self.randomizer, usual, self.name)
        return ceil(times * schedule.clients(epsilon, self.size, self.share, BETA))

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Found]:
        schedule = self.schedule(epsilon)
        lengths = schedule.lengths(self.size)
        most = listed(self.share, schedule)
        if clients <= len(lengths):
            raise InputError(
                f"{clients} clients are too few for {len(lengths) + 1} rounds: give "
                f"{self.clients(epsilon):,} for a result"
            )
        ends = [0, *self.ends(schedule, clients, [1] * (len(lengths) + 1))]

        def play() -> LocalPlay[Found]:
            search = Search(self.size, self.text)
            for length, cohort in zip((*lengths, self.size), pairwise(ends), strict=True):
                query = self._query(length, search, schedule)
                plain = schedule is NARROW or search.length == self.size
                oracle = self._oracle(epsilon, query.domain, plain)
                queries = (LocalQuery(query, oracle, Cohort(*cohort)),)
                level = Level.of(length, queries, iter((yield queries)))
                if search.length == self.size:
                    return counted(search, level, self.tolerance)
                search = search.deeper(level, most if length == self.size else schedule.beam)
            raise AssertionError("the last round counts")

        return Adaptive(play)

    def _query(self, length: int, search: Search, schedule: Schedule) -> Prefix:
        if not search.length:
            return Prefix(self.column, self.size, length)
        numbers = sorted(numbers_of(search.strings, search.length))
        prefixes = tuple(f"{prefix:x}" for prefix in numbers)
        width = schedule.width if length > search.length else len(prefixes).bit_length()
        step = length - search.length
        return KeptPrefix(self.column, self.size, length, step, width, prefixes)
