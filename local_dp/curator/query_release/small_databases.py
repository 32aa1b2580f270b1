"""BLR: the exponential mechanism over all small databases, which answers all queries at once and is pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from local_dp.arrays import Counts, Naturals
from local_dp.checks import check_share, check_whole
from local_dp.curator.laws import whole_weights
from local_dp.curator.mechanism import Law
from local_dp.curator.query_release.counting import CountingQueries
from local_dp.curator.selection.exponential import ByScore, ExponentialChoice
from local_dp.curator.selection.groups import Groups
from local_dp.errors import InputError

MAX_DATABASES = 1 << 20


@dataclass(frozen=True, eq=False)
class Multisets(Groups[tuple[int, ...]]):
    """All multisets of m rows, shape (M, N) as counts of the points; the size of each is its number of orders, m! / prod c_i!."""

    counts: Counts
    scores: Counts
    sizes: Naturals

    def member(self, group: int, place: int) -> tuple[int, ...]:
        """The counts, whatever the order."""
        return tuple(self.counts[group].tolist())


@dataclass(frozen=True, eq=False)
class SmallDatabase(ByScore[Counts, tuple[int, ...]]):
    """A database of m rows y that answers k queries as one of n rows does: each sequence of rows has weight e^(-eps n max_q |q(y) - q(x)| / 2).

    The result is the count of each of the N points. Sequences, not multisets, have equal weights: multisets with many orders look like a sample.
    Privacy: epsilon, pure. The score -max |n q(y) - m q(x)|, of counts, is whole; a replaced record moves it by at most m, half of the notes' figure.
    Utility: 2 alpha for m = ln(2 k) / (2 alpha^2) once alpha eps n > 4 m ln N: some m rows of x are within alpha of it.
    Cost: all C(m + N - 1, m) multisets. A noisy histogram errs less wherever these can be listed.
    Source: Blum, Ligett, Roth 2008; lecture notes 3.1.1 with errata.
    """

    queries: CountingQueries
    rows: int
    epsilon: float

    def __post_init__(self) -> None:
        check_whole("rows", self.rows, 1, 64)
        if math.comb(self.rows + self.queries.points - 1, self.rows) > MAX_DATABASES or self.queries.points**self.rows >= 1 << 63:
            raise InputError(f"there are too many databases of {self.rows} rows of {self.queries.points} points; give fewer rows, for at most 2^20 of them")
        super().__post_init__()

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.epsilon, self.rows)

    def candidates(self, database: Counts) -> Multisets:
        size, true = self.queries.size_of(database), self.queries.counts(database)
        counts, sizes, answers = self._listed
        worst = np.zeros(len(counts), dtype=np.int64)
        for query, count in enumerate(true.tolist()):  # a query at a time: no matrix of all their errors
            np.maximum(worst, np.abs(size * answers[query] - self.rows * count), out=worst)
        return Multisets(counts, -worst, sizes)

    def law(self, database: Counts) -> Law[tuple[int, ...]]:
        """Of the multisets. Raises InputError above 2^10 of them."""
        groups = self.candidates(database)
        if len(groups.counts) > 1 << 10:
            raise InputError(f"there are {len(groups.counts)} databases; a law is listed up to 1,024")
        alone = np.eye(len(groups.counts), dtype=np.uint64)
        shares = [self.choice.share(groups, groups.sizes * alone[group]) for group in range(len(groups.counts))]
        return whole_weights({groups.member(group, 0): share for group, share in enumerate(shares)})

    @cached_property
    def _listed(self) -> tuple[Counts, Naturals, Counts]:
        """All multisets as counts, their numbers of orders, and the rows that each query counts in each, shape (k, M)."""
        counts = np.array(list(_compositions(self.rows, self.queries.points)), dtype=np.int64)
        factorials = np.array([math.factorial(row) for row in range(self.rows + 1)], dtype=object)
        orders = factorials[self.rows] // np.multiply.reduce(factorials[counts], axis=1)
        answers = self.queries.values.astype(np.float64) @ counts.T.astype(np.float64)
        return counts, orders.astype(np.uint64), answers.astype(np.int64)


def rows_for(queries: int, alpha: float) -> int:
    """m = ln(2 k) / (2 alpha^2): among this many rows of any database, some are within alpha of it on k queries (Hoeffding)."""
    check_whole("queries", queries, 1, 1 << 40)
    check_share("alpha", alpha)
    return math.ceil(math.log(2 * queries) / (2 * alpha**2))


def _compositions(total: int, parts: int) -> Iterator[list[int]]:
    """All ways to write `total` as an ordered sum of `parts` numbers from 0 on: by the places of bars among stars."""
    for bars in combinations(range(total + parts - 1), parts - 1):
        ends = [-1, *bars, total + parts - 1]
        yield [after - before - 1 for before, after in pairwise(ends)]
