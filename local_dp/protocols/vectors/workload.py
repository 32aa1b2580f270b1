"""Linear queries of columns from one report a client: all prefix sums, or any workload, by name or
written out, by the best of two strategies."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import combinations, product
from typing import Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import (
    Certificate,
    check_workload,
    factorize,
    known_totals,
    local_variance_bound,
    prefix_clients,
    prefix_gamma,
)
from local_dp.bounds.response import response_gain
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_built, check_share
from local_dp.errors import InputError, unknown
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    OfColumns,
    PlainData,
    check_different,
    describe_estimate,
    numbers_in,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.tables import Category
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.signs.prefix_signs import (
    PrefixSigns,
    SignRows,
    excess,
    rows_text,
    sylvester,
)
from local_dp.records import Records
from local_dp.tallies import Estimate, Possible, Steadied, Tally, steadied

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
        return [
            columns
            for size in range(1, min(most, len(self.columns)) + 1)
            for columns in combinations(range(len(self.columns)), size)
        ]


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
    names = symbols.names
    place = np.arange(symbols.k)
    for low in range(symbols.k):
        for high in range(low, symbols.k - (low == 0)):
            row = (place >= low) & (place <= high)
            yield f"{names[low]}..{names[high]}", row.astype(np.float64)


def _parities(symbols: Symbols) -> Queries:
    """The mean of (-1)^(sum of the columns in s) for every nonempty set s of columns of two labels
    each."""
    if set(symbols.shape) != {2}:
        raise InputError("parities are of columns with two labels each")
    signs = 1.0 - 2.0 * symbols.places
    for columns in symbols.sets(len(symbols.columns)):
        name = " + ".join(symbols.columns[column] for column in columns)
        yield name, signs[list(columns)].prod(axis=0)


def _marginals(symbols: Symbols, most: int) -> Queries:
    """The share of every combination of labels of every set of at most `most` columns."""
    places = symbols.places
    for columns in symbols.sets(most):
        for cell in product(*(range(symbols.shape[column]) for column in columns)):
            name = ", ".join(
                f"{symbols.columns[column]} = {symbols.labels[column][place]}"
                for column, place in zip(columns, cell, strict=True)
            )
            row = np.all(places[list(columns)] == np.array(cell)[:, None], axis=0)
            yield name, row.astype(np.float64)


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
    """The names of the queries of one name, or of rows of k numbers each, separated by spaces, and
    their matrix, shape (m, k). Raises InputError."""
    make = NAMED.get(queries[0]) if len(queries) == 1 else None
    pairs = list(make(symbols) if make else _rows(queries, symbols))
    if not 1 <= len(pairs) <= MAX_QUERIES:
        raise InputError(
            f"the workload has {len(pairs)} queries; from 1 to {MAX_QUERIES} can be asked"
        )
    workload = np.array([row for _, row in pairs])
    check_workload(workload)
    return [name for name, _ in pairs], workload


def _rows(queries: tuple[str, ...], symbols: Symbols) -> Queries:
    if not queries or not queries[0].lstrip().startswith(tuple("+-.0123456789")):
        raise InputError(
            unknown("there is no workload named", queries[0] if queries else "", NAMED)
        )
    for query in queries:
        row = numbers_in("a number of a query", query.split())
        if len(row) != symbols.k:
            raise InputError(
                f"a query has a number for each of the {symbols.k} symbols, and one here has "
                f"{len(row)}"
            )
        yield query, row


ROWS_PER_SYMBOL = 8
MAX_SYMBOLS = 256
MAX_ENTRIES = 1 << 23  # of a workload
_SHARPER = (1.0, 1.2, 1.5)  # powers of the ideal spectrum: taking signs flattens it again
_ROUNDS = 100
_OFFSETS = 8  # at which weights are rounded
_SEED = 8  # of a design, which is public


@dataclass(frozen=True)
class Design:
    """Public sign rows, int8 +1/-1, shape (a power of two, k), some of them repeated; `excess` v:
    C^2 v / n bounds every variance; `certificate` bounds any design from below."""

    rows: np.ndarray
    excess: float
    certificate: Certificate


def query_excess(rows: np.ndarray, workload: Floats) -> Floats:
    """(w - c) G^-1 (w - c)^T for each query w and its best constant c, G = S^T S / rows; infinite
    where the rows do not determine w. Shape (m,)."""
    signs = rows.astype(np.float64)
    gram = signs.T @ signs / len(signs)
    weights = workload @ known_totals(gram)
    centred = workload - workload.mean(axis=1, keepdims=True)
    answers = weights @ gram
    answers -= answers.mean(axis=1, keepdims=True)
    unclear = np.abs(answers - centred).max(axis=1) > 1e-6 * np.abs(centred).max()
    return np.where(unclear, np.inf, np.einsum("ij,ij->i", weights, workload))


def design_signs(workload: Floats) -> Design:
    """Sylvester's rows and signs of normal vectors of the ideal covariance, more or less sharpened:
    the best set of them alone, or of all together as often as their weights say, rounded.

    Rows in the order of their signs: neighbours differ little, so their rounding errors cancel.
    Source: Edmonds, Nikolov, Ullman 2020.
    """
    m, k = workload.shape
    if k > MAX_SYMBOLS or m * k > MAX_ENTRIES:
        raise InputError(
            f"the workload has {m} queries of {k} symbols; a design takes at most {MAX_SYMBOLS} "
            f"symbols and {MAX_ENTRIES} entries"
        )
    ideal = factorize(workload)
    count = 1 << (ROWS_PER_SYMBOL * k - 1).bit_length()
    values, vectors = np.linalg.eigh(ideal.gram)
    values = np.maximum(values, 0.0)
    frames = _frames(count, k)
    candidates = [sylvester(k)]
    for power in _SHARPER:
        root = (vectors * values ** (power / 2)) @ vectors.T
        candidates.append(np.where(frames @ root >= 0, 1, -1).astype(np.int8))
    # a row and its opposite show the same
    rows = np.unique(np.concatenate([each * each[:, :1] for each in candidates]), axis=0)
    ends = np.cumsum(_weights(rows, workload))
    for offset in range(_OFFSETS):
        places = (np.arange(count) + (offset + 0.5) / _OFFSETS) / count
        candidates.append(rows[np.searchsorted(ends, places * ends[-1])])
    excess = [float(query_excess(rows, workload).max()) for rows in candidates]
    best = int(np.argmin(excess))
    return Design(candidates[best], excess[best], ideal.certificate)


def _weights(rows: np.ndarray, workload: Floats) -> Floats:
    """How often to ask each row, so that the greatest variance is near its least: each weight is
    multiplied by its part in the variances, each query's by its variance. Shape (rows,).

    Source: Silvey, Titterington, Torsney 1978.
    """
    signs = rows.astype(np.float64)
    weights = np.full(len(rows), 1 / len(rows))
    queries = np.full(len(workload), 1 / len(workload))
    for _ in range(_ROUNDS):
        answers = workload @ known_totals(signs.T @ (weights[:, None] * signs))
        gains = np.einsum("ij,ij->i", signs @ (answers.T @ (queries[:, None] * answers)), signs)
        weights *= np.maximum(gains, 0.0)
        weights /= weights.sum()
        queries *= np.einsum("ij,ij->i", answers, workload)
        queries /= queries.sum()
    return weights


def _frames(count: int, k: int) -> Floats:
    """Normal directions in orthogonal sets of k, which spread more evenly than independent ones;
    shape (count, k)."""
    generator = np.random.default_rng(_SEED)
    sets = [np.linalg.qr(generator.normal(size=(k, k)))[0] for _ in range(-(-count // k))]
    return np.concatenate(sets)[:count]


@dataclass(frozen=True)
class PrefixSums(LocalProtocol[Estimate]):
    """Estimates Pr[column <= t] for every t = 0..k-1; whole numbers outside stop the run. Without a
    table, of a rounded bell curve.

    Privacy: every report is epsilon-locally private. Utility: variance C^2 v / n for each, v of
    order (ln k)^2 / pi^2, within 13 % of the factorization bound for sums less 1/2 (`workload` has
    better constants: at k = 256 v falls by 10 %). At k = 256, one random threshold a client takes
    11.6 times as many. `tolerance` sets the default number of clients: all sums within it with
    probability 95 %. Cost: one bit a client, one round.
    """

    name = "prefix-sums"
    summary = "Estimates the share of numbers up to each whole number"
    source = "factorization mechanism: Edmonds, Nikolov, Ullman 2020"
    column: str = parameter("value", "Column of whole numbers", of_table=True)
    k: int = parameter(256, "Number of values, from 0 on; others count as 0")
    tolerance: float = target_error(0.02)

    def check(self) -> None:
        PrefixSigns(1.0, k=self.k)

    @property
    def category(self) -> Category:
        return Category(self.column, tuple(map(str, range(self.k))))

    def possible(self, result: Estimate) -> Possible:
        return Possible(0.0, 1.0)

    def clients(self, epsilon: float) -> int:
        size = PrefixSigns(epsilon, k=self.k).size
        return prefix_clients(
            epsilon, self.k, self.tolerance, BETA, excess(size) / prefix_gamma(size) ** 2
        )

    def algorithm(self, epsilon: float, clients: int) -> Local[Estimate]:
        randomizer = PrefixSigns(epsilon, k=self.k)
        return ask_all(self.category, randomizer, clients, randomizer.estimate)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Normal around 0.4 k with standard deviation 0.15 k, on the points 0..k-1."""
        place = np.arange(self.k)
        bell = np.exp(-(((place / self.k - 0.4) / 0.15) ** 2) / 2)
        return Finite(Records({self.column: place}), bell, clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.whole(self.column)
        table.refuse(
            "refuse",
            lambda part: (part[self.column] < 0) | (part[self.column] >= self.k),
            f"{self.column!r} is not among 0..{self.k - 1}",
            "another k, or quantiles with bounds",
        )
        return self

    def describe(self, result: Estimate) -> PlainData:
        return {
            "column": self.column,
            "labels": [f"<= {label}" for label in self.category.labels],
            **describe_estimate(result),
        }

    def truth(self, population: Population) -> Floats:
        """The distribution function that the clients are drawn from, shape (k,)."""
        return np.cumsum(population.law(self.category))


@dataclass(frozen=True)
class Variances:
    """n times the worst variance of a query, by strategy (shares by k-ary response or Hadamard);
    `lower_bound` holds for every local protocol."""

    sign_rows: float
    shares_first: float
    one_query: float
    lower_bound: float

    @property
    def best(self) -> float:
        return self.shares_first if self.by_shares else self.sign_rows

    @property
    def by_shares(self) -> bool:
        """True if k-ary response is better by more than rounding: one-bit Hadamard's rows are among
        the sign rows tried."""
        return self.shares_first < 0.999 * self.sign_rows


@dataclass(frozen=True)
class Answers:
    """The answers to all queries, and the variances by which the strategy was chosen."""

    estimate: Estimate
    variances: Variances


@lru_cache(maxsize=16)
def _design(queries: tuple[str, ...], symbols: Symbols) -> Design:
    return design_signs(workload_of(queries, symbols)[1])


def shares_first_variance(epsilon: float, workload: Floats) -> float:
    """n times a bound on the variance of any query of estimated shares: C^2 |w - mean|^2 by one-bit
    Hadamard, or that of k-ary response where it is less.

    The latter is (q |w - c|^2 + (p - q) max (w - c)^2) / (p - q)^2 for any constant c; here the
    best of nine from the mean of w to the middle of its range.
    """
    k = workload.shape[1]
    growth = math.exp(epsilon)
    q = 1 / (growth + k - 1)
    gap = (growth - 1) * q
    mean = workload.mean(axis=1)
    middle = (workload.max(axis=1) + workload.min(axis=1)) / 2
    bounds = []
    for part in np.linspace(0, 1, 9):
        squares = (workload - (mean + part * (middle - mean))[:, None]) ** 2
        bounds.append((q * squares.sum(axis=1) + gap * squares.max(axis=1)) / gap**2)
    square = float(((workload - mean[:, None]) ** 2).sum(axis=1).max())
    return min(square * response_gain(epsilon) ** 2, float(np.min(bounds, axis=0).max()))


def one_query_variance(epsilon: float, workload: Floats) -> float:
    """n times the bound on the variance of m queries if each client answers a random one: m C^2
    (half the width of the widest)^2."""
    reach = float((workload.max(axis=1) - workload.min(axis=1)).max()) / 2
    return len(workload) * (response_gain(epsilon) * reach) ** 2


@dataclass(frozen=True)
class Workload(OfColumns[Answers]):
    """Estimates many linear queries of the law of `columns`' labels together; without a table, of k
    labels a column, the first columns' ones rarer.

    Privacy: every report is epsilon-locally private. Utility: unbiased; variance at most C^2 v / n
    for sign rows, v near the factorization norm squared, or that of k-ary response where less.
    `tolerance` sets the default number of clients: all answers within it in 95 % of runs. Cost: 1
    or log2 k bits, one round.
    """

    name = "workload"
    summary = "Estimates many linear queries about columns together"
    source = "factorization mechanism: Edmonds, Nikolov, Ullman 2020"
    example = (
        "--records fair.csv --columns 'religious;occupation' --labels '1|2|3|4;1|2|3|4|5|6' "
        "--queries marginals-1"
    )
    columns: tuple[str, ...] = parameter(("value",), "Columns or yes/no questions", of_table=True)
    labels: tuple[str, ...] = parameter(
        (),
        "Public labels of each column that is no question",
        help="In a shell '|' separates labels, and ';' columns",
    )
    queries: tuple[str, ...] = parameter(
        ("prefixes",),
        "Named workloads, or rows of weights of the cells",
        help=(
            "identity, prefixes, ranges, parities, marginals-1, -2 or -3; or rows of numbers, one "
            "for each combination of labels"
        ),
    )
    missing: str = policy(
        "missing values", category="a label of its own, the last one, in every column"
    )
    other: str = policy(
        "values that are not listed", category="a label of its own, after the others"
    )
    k: int = parameter(32, "Without a table: number of labels of each column")
    tolerance: float = target_error(0.02, "")

    def check(self) -> None:
        check_share("tolerance", self.tolerance)
        check_different("the columns", self.columns)
        check_built(self.workload)

    @cached_property
    def symbols(self) -> Symbols:
        """The combinations of labels that the queries are about."""
        return Symbols(self.columns, tuple(map(tuple, self.parts.sides)))

    @cached_property
    def workload(self) -> tuple[list[str], Floats]:
        return workload_of(self.queries, self.symbols)

    @property
    def matrix(self) -> Floats:
        return self.workload[1]

    @property
    def design(self) -> Design:
        """The sign rows and what bounds them."""
        return _design(self.queries, self.symbols)

    def possible(self, result: Answers) -> Possible:
        return Possible(self.matrix.min(axis=1), self.matrix.max(axis=1))

    def variances(self, epsilon: float) -> Variances:
        return Variances(
            response_gain(epsilon) ** 2 * self.design.excess,
            shares_first_variance(epsilon, self.matrix),
            one_query_variance(epsilon, self.matrix),
            local_variance_bound(epsilon, self.matrix, self.design.certificate),
        )

    def clients(self, epsilon: float) -> int:
        z = normal_quantile(BETA / (2 * len(self.matrix)))
        return math.ceil(self.variances(epsilon).best * (z / self.tolerance) ** 2)

    def algorithm(self, epsilon: float, clients: int) -> Local[Answers]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        variances = self.variances(epsilon)
        if variances.by_shares:
            shares = GRR(epsilon, k=self.symbols.k)
            return ask_all(
                self.query,
                shares,
                clients,
                lambda tally: Answers(_from_shares(shares, tally, self.matrix), variances),
            )
        rows = self.design.rows.astype(np.float64)
        weights = self.matrix @ known_totals(rows.T @ rows / len(rows))
        signs = SignRows(epsilon, k=rows.shape[1], signs=rows_text(rows))
        return ask_all(
            self.query,
            signs,
            clients,
            lambda tally: Answers(signs.answers(tally, self.matrix, weights), variances),
        )

    def synthetic(self, clients: int, seed: int) -> Finite:
        """Each combination of labels with a share proportional to its place, from 1."""
        columns = zip(self.columns, self.symbols.labels, self.symbols.places, strict=True)
        kinds = Records({name: np.array(labels)[places] for name, labels, places in columns})
        return Finite(kinds, range(1, self.symbols.k + 1), clients, seed)

    def describe(self, result: Answers) -> PlainData:
        strategy = "shares first" if result.variances.by_shares else "sign rows"
        return {
            "labels": self.workload[0],
            "strategy": strategy,
            "variances": asdict(result.variances),
            **describe_estimate(result.estimate),
        }

    def truth(self, population: Population) -> Floats:
        return self.matrix @ population.law(self.query)


def _from_shares(oracle: GRR, tally: Tally, workload: Floats) -> Estimate:
    """The queries of the estimated shares; each variance is estimated from the reports."""
    p = oracle.truth / oracle.total
    q = oracle.other / oracle.total
    n = tally.answered
    law = tally.counts.sum(axis=0) / tally.answered
    centred = (workload - q * workload.sum(axis=1, keepdims=True)) / (p - q)
    mean = centred @ law
    square = (centred**2) @ law
    steady = steadied(mean, square, (centred.min(axis=1), centred.max(axis=1)), n)
    return Steadied.of(mean, (square - mean**2) / n, n, steady)
