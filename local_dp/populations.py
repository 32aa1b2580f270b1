"""Populations: the individuals of a run, handed out by client index. A synthetic one is drawn a chunk at a time, so it may be larger than memory."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.noise import philox_words, stream_key
from local_dp.queries.base import Query
from local_dp.randomizers.base import Randomizer
from local_dp.records import Records


class Population(ABC):
    """`size` individuals; client i's record never depends on which others are asked for."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise InputError(f"clients is {size}; give 1 or more")
        self.size = size

    @abstractmethod
    def batch(self, start: int, stop: int) -> Records:
        """The records of clients start..stop."""

    @abstractmethod
    def law(self, query: Query) -> Floats:
        """The probability of each value of the query's domain under the distribution the clients are drawn from, shape (domain size,)."""

    def tally_law(self, query: Query, randomizer: Randomizer) -> Floats | None:
        """Pr[cell, report] of a client drawn at random, shape (cells, alphabet), where the population has it in closed form; else None."""
        return None

    def value_counts(self, query: Query, start: int, stop: int, generator: np.random.Generator) -> dict[int, int]:
        """How many of the clients start..stop hold each value: here drawn from the multinomial of `law`."""
        law = self.law(query)
        drawn = generator.multinomial(stop - start, law / law.sum())  # a sum of shares may pass 1 by a rounding error
        held = np.flatnonzero(drawn)
        return dict(zip((held + query.domain.low).tolist(), drawn[held].tolist(), strict=True))


class Table(Population):
    """Rows held in memory: client i holds row i. Its law is that of the whole table the rows were sampled from, if that is given."""

    def __init__(self, records: Records, sampled_from: Records | None = None) -> None:
        super().__init__(len(records))
        self.records = records
        self.whole = records if sampled_from is None else sampled_from

    def batch(self, start: int, stop: int) -> Records:
        return self.records.take(slice(start, stop))

    def law(self, query: Query) -> Floats:
        return _counts(query, self.whole) / len(self.whole)

    def value_counts(self, query: Query, start: int, stop: int, generator: np.random.Generator) -> dict[int, int]:
        """Counted."""
        counts = _counts(query, self.batch(start, stop))
        held = np.flatnonzero(counts)
        return dict(zip((held + query.domain.low).tolist(), counts[held].astype(int).tolist(), strict=True))


class Finite(Population):
    """Clients drawn independently from finitely many kinds of record: `kinds` holds one of each, `shares` are their probabilities."""

    def __init__(self, kinds: Records, shares: Sequence[float], size: int, seed: int) -> None:
        super().__init__(size)
        self.kinds = kinds
        self.shares: Floats = np.asarray(shares, dtype=np.float64) / np.sum(shares)
        self._ends = np.array([min(int(end * 2.0**64), 2**64 - 1) for end in np.cumsum(self.shares)[:-1]], dtype=np.uint64)
        self._key = stream_key("population", seed)

    def batch(self, start: int, stop: int) -> Records:
        words = philox_words(self._key, start, stop)
        if len(self._ends) == 1:
            return self.kinds.take((words >= self._ends[0]).view(np.uint8))
        return self.kinds.take(np.searchsorted(self._ends, words, side="right"))

    def law(self, query: Query) -> Floats:
        return _counts(query, self.kinds, self.shares)


def bernoulli(column: str, share: float, size: int, seed: int) -> Finite:
    """One 0/1 column that is 1 with probability `share`."""
    return Finite(Records({column: np.array([0, 1], dtype=np.uint8)}), [1 - share, share], size, seed)


def _counts(query: Query, records: Records, weights: Floats | None = None) -> Floats:
    values = query.values(records).astype(np.int64) - query.domain.low
    return np.bincount(values, weights=weights, minlength=query.domain.size).astype(np.float64)
