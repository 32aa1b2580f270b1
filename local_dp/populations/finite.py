"""Populations, handed out by client index: of finitely many kinds of record, of strings with a few
frequent ones, and of the rows of a table."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial, reduce
from operator import add

import numpy as np

from local_dp.arrays import Column, Counts, Floats, Ints, Words
from local_dp.errors import InputError
from local_dp.noise import leading_words, philox_words, stream_key, ties
from local_dp.populations.dealing import Dealing
from local_dp.queries.query import Query
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import PART, Records, chunks


class Population(ABC):
    """`size` individuals; client i's record never depends on which others are asked for."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise InputError(f"clients is {size}; give 1 or more")
        self.size = size
        # of clients that were drawn as counts: the query, and the share of each value
        self.latest: tuple[Query | None, Floats] = None, np.zeros(0)

    @property
    def remembers(self) -> bool:
        """True if a client asked twice has the same record both times when tallies are drawn from
        their law: the rows of a table do."""
        return False

    @abstractmethod
    def batch(self, start: int, stop: int) -> Records:
        """The records of clients start..stop."""

    def values(self, query: Query, start: int, stop: int) -> Ints:
        """The raw values of the clients start..stop for a query, not randomized, shape (n,)."""
        return query.values(self.batch(start, stop))

    @abstractmethod
    def law(self, query: Query) -> Floats:
        """The probability of each value of the query's domain under the distribution the clients
        are drawn from, shape (domain size,)."""

    def own_law(self, query: Query) -> Floats:
        """The share of the clients themselves that hold each value of the query's domain, shape
        (domain size,); of clients that were drawn as counts, by these."""
        if self.latest[0] == query:
            return self.latest[1]
        counts = (
            counts_of_values(query, self.batch(start, stop))
            for start, stop in chunks(0, self.size, PART)
        )
        return reduce(add, counts) / self.size

    def tally_law(self, query: Query, randomizer: Randomizer) -> Floats | None:
        """Pr[cell, report] of a client drawn at random, shape (cells, alphabet), where the
        population has it in closed form; else None."""
        return None

    def value_counts(
        self, query: Query, start: int, stop: int, generator: np.random.Generator
    ) -> dict[int, int]:
        """How many of the clients start..stop hold each value: here drawn from the multinomial of
        `law`."""
        law = self.law(query)
        # a sum of shares may pass 1 by a rounding error
        counts = generator.multinomial(stop - start, law / law.sum())
        if stop - start == self.size:
            self.latest = query, counts / self.size
        return by_value(query, np.arange(len(counts)), counts)


def by_value(query: Query, values: Counts, counts: Column) -> dict[int, int]:
    """How many there are of each value, from values counted from 0 on."""
    sums = np.bincount(values.ravel(), counts.ravel()).astype(np.int64)
    places = np.flatnonzero(sums)
    return dict(zip((places + query.domain.low).tolist(), sums[places].tolist(), strict=True))


def counted(query: Query, values: Ints) -> Floats:
    """How many are each value of a small domain, shape (domain size,); in some bytes a value less
    than by `np.bincount`."""
    return np.array(
        [
            np.count_nonzero(values == query.domain.low + place)
            for place in range(query.domain.size)
        ],
        dtype=np.float64,
    )


def rounding_law(query: Query, records: Records) -> tuple[Counts, Floats]:
    """The values that each record may be rounded to, from 0 on, and their probabilities; both of
    shape (n, values)."""
    places = query.values(records)
    turns = 1 - np.atleast_2d(places.T).T % 1
    cuts = np.sort(np.pad(turns, ((0, 0), (1, 1)), constant_values=(0, 1)), axis=1)
    values = [query.discretize(places, random) for random in ((cuts[:, 1:] + cuts[:, :-1]) / 2).T]
    return np.stack(values, axis=-1).astype(np.int64) - query.domain.low, np.diff(cuts)


def weights_of_values(query: Query, records: Records, weights: Floats | None = None) -> Floats:
    size = query.domain.size
    if weights is None and size <= FEW and not query.domain.has_places:
        return counted(query, query.values(records))
    values, chances = rounding_law(query, records)
    own = chances * (1.0 if weights is None else weights[:, None])
    return np.asarray(np.bincount(values.ravel(), own.ravel(), minlength=size), np.float64)


def counts_of_values(query: Query, records: Records) -> Floats:
    """How many records have each value of the query's domain, shape (domain size,); on all cores,
    in memory that does not grow with them."""

    def count(part: Records) -> Floats:
        counts = weights_of_values(query, part)
        part.note()
        return counts

    if len(records) <= PART:
        return count(records)
    with ThreadPoolExecutor() as pool:
        return reduce(add, pool.map(count, records.parts()))


MANY = 256
FEW_ROWS = 1 << 20
FEW = 16  # ends of shares that a first byte is compared with one by one


class Finite(Population):
    """Clients drawn independently from finitely many kinds of record: `kinds` holds one of each,
    `shares` are their probabilities."""

    def __init__(
        self, kinds: Records, shares: Sequence[float] | Floats, size: int, seed: int
    ) -> None:
        super().__init__(size)
        self.kinds = kinds
        self.shares: Floats = np.asarray(shares, dtype=np.float64) / np.sum(shares)
        self._keys = stream_key("population", seed), partial(stream_key, "population tied", seed)
        # the last query, and its value of each kind
        self._last: tuple[Query | None, Ints, bool] = (
            None,
            np.zeros(0, dtype=np.uint8),
            False,
        )
        self._laws: dict[Query, Floats] = {}

    @cached_property
    def _ends(self) -> Words:
        """Up to which word each kind but the last is drawn."""
        return np.array(
            [min(int(end * 2.0**64), 2**64 - 1) for end in np.cumsum(self.shares)[:-1]],
            dtype=np.uint64,
        )

    def _kinds_of(self, start: int, stop: int) -> Ints:
        """Which kind each of the clients start..stop is of, shape (n,)."""
        if not 0 < len(self._ends) <= FEW:
            return np.searchsorted(
                self._ends, philox_words(self._keys[0], start, stop), side="right"
            )
        ends = self._ends.tolist()
        words = leading_words(self._keys, start, stop, 8, ties(ends))
        # an end of one byte alone is reached by that byte
        places: Ints = reduce(add, ((words.first >= -(-end >> 56)).view(np.uint8) for end in ends))
        places[words.places] = np.searchsorted(self._ends, words.whole, side="right")
        return places

    def batch(self, start: int, stop: int) -> Records:
        places = self._kinds_of(start, stop)
        # thrice as fast as by an index
        return Records(
            {name: values.take(places, mode="clip") for name, values in self.kinds.columns.items()}
        )

    def values(self, query: Query, start: int, stop: int) -> Ints:
        if len(self.kinds) > stop - start:
            return super().values(query, start, stop)
        last, values, same = self._last
        if last != query:
            values = query.values(self.kinds)
            same = len(values) <= FEW and values.tolist() == list(range(len(values)))
            self._last = query, values, same
        places = self._kinds_of(start, stop)
        return places if same else values.take(places, axis=0)

    def own_law(self, query: Query) -> Floats:
        if self.latest[0] == query:
            return self.latest[1]

        def count(span: tuple[int, int]) -> Counts:
            return np.bincount(self._kinds_of(*span), minlength=len(self.shares))

        with ThreadPoolExecutor() as pool:
            counts = reduce(add, pool.map(count, chunks(0, self.size, PART)))
        return weights_of_values(query, self.kinds, counts / self.size)

    def law(self, query: Query) -> Floats:
        if query.domain.size > MANY:
            return weights_of_values(query, self.kinds, self.shares)
        if query not in self._laws:  # a search asks the same few questions thousands of times
            if len(self._laws) == MANY:
                self._laws.clear()
            self._laws[query] = weights_of_values(query, self.kinds, self.shares)
            self._laws[query].flags.writeable = False
        return self._laws[query]

    def value_counts(
        self, query: Query, start: int, stop: int, generator: np.random.Generator
    ) -> dict[int, int]:
        values, chances = rounding_law(query, self.kinds)
        if not np.any(chances % 1):
            return super().value_counts(query, start, stop, generator)
        people = generator.multinomial(stop - start, self.shares)
        if stop - start == self.size:
            self.latest = query, weights_of_values(query, self.kinds, people / self.size)
        return by_value(query, values, generator.multinomial(people, chances))

    def tally_law(self, query: Query, randomizer: Randomizer) -> Floats | None:
        """Where both kinds and values are many: drawn value by value, a tally would cost more than
        its law."""
        if (
            min(len(self.kinds), query.domain.size) < MANY
            or not isinstance(randomizer, FiniteChannel)
            or randomizer.cells > 1
        ):
            return None
        values, chances = rounding_law(query, self.kinds)
        first = np.zeros(1, dtype=np.int64)
        weights = [
            randomizer.weight(np.array([report]), values.ravel(), first).astype(np.float64)
            for report in range(randomizer.alphabet)
        ]
        shares = (self.shares[:, None] * chances).ravel()
        law: Floats = (np.stack(weights) @ shares / randomizer.total)[None, :]
        return law / float(law.sum())


def bernoulli(column: str, share: float, size: int, seed: int) -> Finite:
    """One 0/1 column that is 1 with probability `share`."""
    return Finite(
        Records({column: np.array([0, 1], dtype=np.uint8)}), [1 - share, share], size, seed
    )


MAX_ENUMERATED = 20  # bits of strings that a law is summed over


class Strings(Population):
    """One column of whole numbers below 2^bits: the k-th of `frequent` with probability
    `shares[k]`, and else uniform."""

    def __init__(
        self,
        column: str,
        bits: int,
        frequent: Sequence[int],
        shares: Sequence[float],
        size: int,
        seed: int,
    ) -> None:
        super().__init__(size)
        self.column, self.bits = column, bits
        self.frequent = np.array(frequent, dtype=np.uint64)
        self.shares: Floats = np.asarray(shares, dtype=np.float64)
        self._ends = np.array(
            [int(end * 2.0**64) for end in np.cumsum(self.shares)], dtype=np.uint64
        )
        self._kinds = stream_key("population", seed)
        self._rest = stream_key("strings", seed)

    def batch(self, start: int, stop: int) -> Records:
        kind = np.searchsorted(self._ends, philox_words(self._kinds, start, stop), side="right")
        rest = philox_words(self._rest, start, stop) >> np.uint64(64 - self.bits)
        values = np.concatenate([self.frequent, np.zeros(1, dtype=np.uint64)])[kind]
        return Records({self.column: np.where(kind < len(self.frequent), values, rest)})

    def law(self, query: Query) -> Floats:
        """Summed over all strings, of which there may be 2^20."""
        if self.bits > MAX_ENUMERATED:
            raise InputError(
                f"the law of {query.name!r} over 2^{self.bits} strings is too long to write down; "
                "use --tier population"
            )
        strings = np.arange(1 << self.bits, dtype=np.uint64)
        shares = np.full(len(strings), (1 - self.shares.sum()) / len(strings))
        np.add.at(shares, self.frequent.astype(np.int64), self.shares)
        return weights_of_values(query, Records({self.column: strings}), shares)


class Resampled(Finite):
    """As many clients as are wanted, each with a row of the table drawn with replacement: the
    distribution is the table itself. Memory does not grow with n."""

    def __init__(self, records: Records, size: int, seed: int) -> None:
        super().__init__(records, [1.0] * len(records), size, seed)

    @property
    def whole(self) -> Records:
        return self.kinds


class Rows(Population):
    """The rows of a table: client i holds row i, or the i-th row that `dealing` names, one of all
    rows. Its law is that of the whole table."""

    remembers = True

    def __init__(
        self, records: Records, clients: int | None = None, dealing: Dealing | None = None
    ) -> None:
        super().__init__(len(records) if clients is None else clients)
        self.whole, self.dealing = records, dealing
        self._law: tuple[Query | None, Floats] = None, np.zeros(0)  # of the last query
        # the counts of values of each range of clients asked
        self._range_counts: dict[Query, dict[tuple[int, int], Floats]] | None = {}

    def __getstate__(self) -> dict[str, object]:
        """A worker sees some of the clients only, so it counts none."""
        return {**self.__dict__, "_range_counts": None}

    @cached_property
    def _few(self) -> Records | None:
        """The clients' records in their order, where they are so few that a protocol of many rounds
        is spared dealing them in each."""
        return (
            None
            if self.dealing is None or self.size > FEW_ROWS
            else self.whole.take(self.dealing.rows(0, self.size))
        )

    def batch(self, start: int, stop: int) -> Records:
        if self.dealing is None:
            return self.whole.take(slice(start, stop))
        return (
            self.whole.take(self.dealing.rows(start, stop))
            if self._few is None
            else self._few.take(slice(start, stop))
        )

    def in_order(self) -> "Rows":
        """The same clients in the order of the table, where all rows are dealt."""
        return Rows(self.whole) if self.size == len(self.whole) else self

    def values(self, query: Query, start: int, stop: int) -> Ints:
        """The values. They are counted here too, so that a large table need not be read again for
        its law."""
        records = self.batch(start, stop)
        values = query.values(records)
        few = query.domain.size <= FEW and not query.domain.has_places
        if self._range_counts is not None and few:
            if len(self._range_counts) == MANY and query not in self._range_counts:
                self._range_counts.clear()
            self._range_counts.setdefault(query, {})[start, stop] = counted(query, values)
            records.note()
        return values

    def own_law(self, query: Query) -> Floats:
        return self.law(query) if self.size == len(self.whole) else super().own_law(query)

    def law(self, query: Query) -> Floats:
        if self._law[0] != query:
            self._law = query, self._counts(query) / len(self.whole)
        return self._law[1]

    def _counts(self, query: Query) -> Floats:
        parts = (self._range_counts or {}).get(query, {})
        starts, stops = zip(*sorted(parts), strict=True) if parts else ((), ())
        asked_all = (*starts, self.size) == (0, *stops) and self.size == len(self.whole)
        return reduce(add, parts.values()) if asked_all else counts_of_values(query, self.whole)

    def value_counts(
        self, query: Query, start: int, stop: int, generator: np.random.Generator
    ) -> dict[int, int]:
        if not query.domain.has_places:
            counts = counts_of_values(query, self.batch(start, stop))
        else:
            counts = np.zeros(query.domain.size)
            for first, last in chunks(start, stop, PART):
                values, chances = rounding_law(query, self.batch(first, last))
                rounded = generator.multinomial(1, chances)
                counts += np.bincount(values.ravel(), rounded.ravel(), minlength=len(counts))
        return by_value(query, np.arange(len(counts)), counts)


class Changed(Rows):
    """The rows of a table in their order, each as a function of some rows makes it."""

    def __init__(self, records: Records, change: Callable[[Records], Records]) -> None:
        super().__init__(records)
        self.change = change

    def batch(self, start: int, stop: int) -> Records:
        return self.change(super().batch(start, stop))


def weighted_records(population: Population) -> tuple[Records, Floats]:
    """The records of which the distribution of a `Finite` population or of a table is made, and
    their weights, shape (n,)."""
    if isinstance(population, Finite):
        return population.kinds, population.shares
    assert isinstance(population, Rows)
    return population.whole, np.ones(len(population.whole))
