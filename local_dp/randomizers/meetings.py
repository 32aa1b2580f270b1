"""How the symbols of a code meet between any two of its rows: all that the loss of a product of randomizers depends on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Ints
from local_dp.errors import RefusedError

MAX_ENTRIES = 1 << 28  # of a code, or pairs of its rows
MAX_TOGETHER = 1 << 22  # pairs of rows that share a place, listed at most
MAX_KINDS = 64  # rows with other counts of symbols, where pairs are not listed one by one


@dataclass(frozen=True)
class Meeting:
    """A way in which two rows meet: how many places hold each pair of symbols, and two rows that meet so."""

    counts: tuple[int, ...]
    rows: tuple[int, int]


def meetings(code: Ints, pairs: Sequence[tuple[int, int]]) -> Iterator[Meeting]:
    """Every way in which two different rows of a code of shape (rows, places) meet, by the places with symbol a in one and b in the other, (a, b) of `pairs`.

    Most codes are nearly all of one symbol. Rows that hold nothing else at a common place meet as their own counts of symbols say, so only rows that do are
    looked at pair by pair. O(code) for unary encoding. Raises RefusedError("unverifiable") if the code is too large.
    """
    if max(code.size, len(code) ** 2) > MAX_ENTRIES:
        raise RefusedError("unverifiable", f"a code of {code.shape[0]} values at {code.shape[1]} places is too large to enumerate")
    symbols = 1 + max(max(pair) for pair in pairs)
    background = int(np.argmax([np.count_nonzero(code == symbol) for symbol in range(symbols)]))
    rows, places = np.nonzero(code != background)
    crowd = np.bincount(places, minlength=code.shape[1])
    if int((crowd**2).sum()) > MAX_TOGETHER:
        return _of_all(code, pairs)
    sparse = _Sparse(len(code), symbols, background, rows, places, code[rows, places].astype(np.int64))
    return sparse.meetings(pairs) if len(sparse.kinds) <= MAX_KINDS else _of_all(code, pairs)


class _Sparse:
    """A code by what is not background in it: the symbol `held` at each of these rows and places, in the order of rows."""

    def __init__(self, size: int, symbols: int, background: int, rows: Ints, places: Ints, held: Ints) -> None:
        self.size, self.symbols, self.background = size, symbols, background
        own = np.bincount(rows * symbols + held, minlength=size * symbols).reshape(size, symbols)
        self.kinds, kind = np.unique(own, axis=0, return_inverse=True)
        self.kind = kind.ravel()  # of each row
        self.keys, self.shared = self._together(rows, places, held)

    def _together(self, rows: Ints, places: Ints, held: Ints) -> tuple[Ints, Counts]:
        """The pairs of rows that share a place, as first * size + second, and how often each pair of symbols meets there."""
        order = np.argsort(places, kind="stable")
        rows, places, held = rows[order], places[order], held[order]
        keys, met = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for step in range(1, int(np.bincount(places).max(initial=0))):
            same = np.flatnonzero(places[step:] == places[:-step])
            for one, other in ((same, same + step), (same + step, same)):
                keys.append(rows[one] * self.size + rows[other])
                met.append(held[one] * self.symbols + held[other])
        found, which = np.unique(np.concatenate(keys), return_inverse=True)
        counts = np.bincount(which.ravel() * self.symbols**2 + np.concatenate(met), minlength=len(found) * self.symbols**2)
        return found, counts.reshape(len(found), self.symbols, self.symbols)

    def meetings(self, pairs: Sequence[tuple[int, int]]) -> Iterator[Meeting]:
        """Of rows that share a place, each way once; then of rows that share none, for each pair of kinds that has such rows."""
        first, second = np.divmod(self.keys, self.size)
        ways = np.column_stack([self.kind[first], self.kind[second], self.shared.reshape(len(self.keys), self.symbols**2)])
        for place in np.unique(ways, axis=0, return_index=True)[1].tolist():
            one, other = int(first[place]), int(second[place])
            yield Meeting(self._counts(self.kind[one], self.kind[other], self.shared[place], pairs), (one, other))
        nothing = np.zeros((self.symbols, self.symbols), dtype=np.int64)
        for one in range(len(self.kinds)):
            for other in range(len(self.kinds)):
                if (rows := self._apart(one, other)) is not None:
                    yield Meeting(self._counts(one, other, nothing, pairs), rows)

    def _counts(self, one: int, other: int, shared: Counts, pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        counts = shared.copy()
        counts[:, self.background] = self.kinds[one] - shared.sum(axis=1)
        counts[self.background, :] = self.kinds[other] - shared.sum(axis=0)
        return tuple(int(counts[pair]) for pair in pairs)

    def _apart(self, one: int, other: int) -> tuple[int, int] | None:
        """Two rows of these kinds that share no place; None if there are none."""
        others = np.flatnonzero(self.kind == other)
        for row in np.flatnonzero(self.kind == one).tolist():
            near = self.keys[np.searchsorted(self.keys, row * self.size) : np.searchsorted(self.keys, (row + 1) * self.size)] - row * self.size
            free = np.setdiff1d(others, np.append(near, row), assume_unique=True)
            if len(free):
                return row, int(free[0])
        return None


def _of_all(code: Ints, pairs: Sequence[tuple[int, int]]) -> Iterator[Meeting]:
    """By a product of matrices for each pair of symbols; the counts of a pair of rows are the digits of one number."""
    base = code.shape[1] + 1
    if base ** len(pairs) >= 1 << 62 or base > 1 << 23:
        raise RefusedError("unverifiable", f"{len(pairs)} pairs of symbols at {code.shape[1]} places are too many to enumerate")
    holds = {symbol: (code == symbol).astype(np.float32) for pair in pairs for symbol in pair}
    met = np.zeros((len(code), len(code)), dtype=np.int64)
    for a, b in pairs:
        met = met * base + (holds[a] @ holds[b].T).astype(np.int64)  # whole numbers below 2^24: exact
    found, places = np.unique(met.ravel(), return_index=True)
    for key, place in zip(found.tolist(), places.tolist(), strict=True):
        counts = []
        for _ in pairs:
            key, times = divmod(key, base)
            counts.append(times)
        yield Meeting(tuple(reversed(counts)), divmod(place, len(code)))
