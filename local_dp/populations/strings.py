"""Strings of many bits, of which a few are frequent."""

from collections.abc import Sequence

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.noise import philox_words, stream_key
from local_dp.populations.population import Population, weights_of_values
from local_dp.queries.query import Query
from local_dp.records import Records

MAX_ENUMERATED = 20  # bits of strings that a law is summed over


class Strings(Population):
    """One column of whole numbers below 2^bits: the k-th of `frequent` with probability `shares[k]`, and else uniform."""

    def __init__(self, column: str, bits: int, frequent: Sequence[int], shares: Sequence[float], size: int, seed: int) -> None:
        super().__init__(size)
        self.column, self.bits = column, bits
        self.frequent = np.array(frequent, dtype=np.uint64)
        self.shares: Floats = np.asarray(shares, dtype=np.float64)
        self._ends = np.array([int(end * 2.0**64) for end in np.cumsum(self.shares)], dtype=np.uint64)
        self._kinds, self._rest = stream_key("population", seed), stream_key("strings", seed)

    def batch(self, start: int, stop: int) -> Records:
        kind = np.searchsorted(self._ends, philox_words(self._kinds, start, stop), side="right")
        drawn = philox_words(self._rest, start, stop) >> np.uint64(64 - self.bits)
        held = np.concatenate([self.frequent, np.zeros(1, dtype=np.uint64)])[kind]
        return Records({self.column: np.where(kind < len(self.frequent), held, drawn)})

    def law(self, query: Query) -> Floats:
        """Summed over all strings, of which there may be 2^20."""
        if self.bits > MAX_ENUMERATED:
            raise InputError(f"the law of {query.name!r} over 2^{self.bits} strings is too long to write down; use --tier population")
        strings = np.arange(1 << self.bits, dtype=np.uint64)
        shares = np.full(len(strings), (1 - self.shares.sum()) / len(strings))
        np.add.at(shares, self.frequent.astype(np.int64), self.shares)
        return weights_of_values(query, Records({self.column: strings}), shares)
