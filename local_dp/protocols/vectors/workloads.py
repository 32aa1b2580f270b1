"""Workloads: matrices of queries by symbols, by name or written out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import Certificate, check_workload, factorize, known_totals
from local_dp.errors import InputError, unknown
from local_dp.randomizers.signs.prefix_signs import sylvester

MAX_QUERIES = 1 << 16


@dataclass(frozen=True)
class Symbols:
    """The combinations of the columns' public labels, the last column running fastest."""

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.labels))

    @property
    def k(self) -> int:
        return int(np.prod(self.shape))

    @property
    def places(self) -> np.ndarray:
        """The place of each symbol's label in each column, shape (columns, k)."""
        return np.indices(self.shape).reshape(len(self.columns), -1)

    @property
    def names(self) -> list[str]:
        return [" / ".join(labels) for labels in product(*self.labels)]

    def sets(self, most: int) -> list[tuple[int, ...]]:
        """The nonempty sets of at most `most` columns."""
        return [columns for size in range(1, min(most, len(self.columns)) + 1) for columns in combinations(range(len(self.columns)), size)]


Queries = Iterator[tuple[str, Floats]]  # each query's name and row


def _identity(symbols: Symbols) -> Queries:
    """The share of every symbol."""
    yield from zip(symbols.names, np.eye(symbols.k), strict=True)


def _prefixes(symbols: Symbols) -> Queries:
    """Pr[value <= t] for all t but the last, which is certain."""
    for place, name in enumerate(symbols.names[:-1]):
        yield f"<= {name}", (np.arange(symbols.k) <= place).astype(np.float64)


def _ranges(symbols: Symbols) -> Queries:
    """Pr[a <= value <= b] for all a <= b but the whole range."""
    names, place = symbols.names, np.arange(symbols.k)
    for low in range(symbols.k):
        for high in range(low, symbols.k - (low == 0)):
            yield f"{names[low]}..{names[high]}", ((place >= low) & (place <= high)).astype(np.float64)


def _parities(symbols: Symbols) -> Queries:
    """The mean of (-1)^(sum of the columns in s) for every nonempty set s of columns of two labels each."""
    if set(symbols.shape) != {2}:
        raise InputError("parities are of columns with two labels each")
    signs = 1.0 - 2.0 * symbols.places
    for columns in symbols.sets(len(symbols.columns)):
        yield " + ".join(symbols.columns[column] for column in columns), signs[list(columns)].prod(axis=0)


def _marginals(symbols: Symbols, most: int) -> Queries:
    """The share of every combination of labels of every set of at most `most` columns."""
    places = symbols.places
    for columns in symbols.sets(most):
        for cell in product(*(range(symbols.shape[column]) for column in columns)):
            name = ", ".join(f"{symbols.columns[column]} = {symbols.labels[column][place]}" for column, place in zip(columns, cell, strict=True))
            yield name, np.all(places[list(columns)] == np.array(cell)[:, None], axis=0).astype(np.float64)


NAMED: Mapping[str, Callable[[Symbols], Queries]] = {
    "identity": _identity,
    "prefixes": _prefixes,
    "ranges": _ranges,
    "parities": _parities,
    "marginals-1": lambda symbols: _marginals(symbols, 1),
    "marginals-2": lambda symbols: _marginals(symbols, 2),
    "marginals-3": lambda symbols: _marginals(symbols, 3),
}


def workload_of(queries: tuple[str, ...], symbols: Symbols) -> tuple[list[str], Floats]:
    """The names of the queries of one name, or of rows of k numbers each, separated by spaces, and their matrix, shape (m, k). Raises InputError."""
    named = NAMED.get(queries[0]) if len(queries) == 1 else None
    listed = list(named(symbols) if named else _written(queries, symbols))
    if not 1 <= len(listed) <= MAX_QUERIES:
        raise InputError(f"the workload has {len(listed)} queries; from 1 to {MAX_QUERIES} can be asked")
    workload = np.array([row for _, row in listed])
    check_workload(workload)
    return [name for name, _ in listed], workload


def _written(queries: tuple[str, ...], symbols: Symbols) -> Queries:
    if not queries or not queries[0].lstrip().startswith(tuple("+-.0123456789")):
        raise InputError(unknown("there is no workload named", queries[0] if queries else "", NAMED))
    for query in queries:
        try:
            row = np.array([float(number) for number in query.split()])
        except ValueError:
            raise InputError("a query is a row of numbers, separated by spaces") from None
        if len(row) != symbols.k:
            raise InputError(f"a query has a number for each of the {symbols.k} symbols, and one here has {len(row)}")
        yield query, row


ROWS_PER_SYMBOL = 8
MAX_SYMBOLS = 256
MAX_ENTRIES = 1 << 23  # of a workload
_SHARPER = (1.0, 1.1, 1.2, 1.35, 1.5, 1.75)  # powers of the ideal spectrum: taking signs flattens it again
_SEED = 8  # of a design, which is public


@dataclass(frozen=True)
class Design:
    """Public sign rows, int8 +1/-1, shape (a power of two, k); `excess` v: C^2 v / n bounds every variance; `certificate` bounds any design from below."""

    rows: np.ndarray
    excess: float
    certificate: Certificate


def query_excess(rows: np.ndarray, workload: Floats) -> Floats:
    """(w - c) G^-1 (w - c)^T for each query w and its best constant c, G = S^T S / rows; infinite where the rows do not determine w. Shape (m,)."""
    signs = rows.astype(np.float64)
    middle = known_totals(signs.T @ signs / len(signs))
    solved = workload @ middle
    centred = workload - workload.mean(axis=1, keepdims=True)
    known = solved @ (signs.T @ signs / len(signs))
    known -= known.mean(axis=1, keepdims=True)
    lost = np.abs(known - centred).max(axis=1) > 1e-6 * np.abs(centred).max()
    return np.where(lost, np.inf, np.einsum("ij,ij->i", solved, workload))


def design_signs(workload: Floats) -> Design:
    """Signs of normal vectors whose covariance is the ideal one, more or less sharpened, or Sylvester's matrix: the best of seven.

    Source: Edmonds, Nikolov, Ullman 2020, with the rounding of Grothendieck's inequality: at most pi / 2 above the bound for many rows, mostly far less.
    """
    m, k = workload.shape
    if k > MAX_SYMBOLS or m * k > MAX_ENTRIES:
        raise InputError(f"the workload has {m} queries of {k} symbols; a design takes at most {MAX_SYMBOLS} symbols and {MAX_ENTRIES} entries")
    ideal = factorize(workload)
    count = 1 << (ROWS_PER_SYMBOL * k - 1).bit_length()
    values, vectors = np.linalg.eigh(ideal.gram)
    values = np.maximum(values, 0.0)
    frames = _frames(count, k)
    tried = [sylvester(k), *(_signs(frames, (vectors * values ** (power / 2)) @ vectors.T) for power in _SHARPER)]
    excess = [float(query_excess(rows, workload).max()) for rows in tried]
    best = int(np.argmin(excess))
    return Design(tried[best], excess[best], ideal.certificate)


def _frames(count: int, k: int) -> Floats:
    """Normal directions in orthogonal sets of k, which spread more evenly than independent ones; shape (count, k)."""
    generator = np.random.default_rng(_SEED)
    sets = [np.linalg.qr(generator.normal(size=(k, k)))[0] for _ in range(-(-count // k))]
    return np.concatenate(sets)[:count]


def _signs(frames: Floats, root: Floats) -> np.ndarray:
    return np.where(frames @ root >= 0, 1, -1).astype(np.int8)
