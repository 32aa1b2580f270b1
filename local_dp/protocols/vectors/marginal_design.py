"""The sets of columns to ask about for all marginals of t columns, chosen by closed form; and the unbiased estimates of the marginals."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import contrast_factors
from local_dp.bounds.response import response_gain
from local_dp.checks import check_whole
from local_dp.domains import MAX_SYMBOLS
from local_dp.errors import InputError
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.randomizers.frequencies.best import NEAR, best_choice
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Estimate, Tally

MAX_SETS = 4096  # as many questions as one request of a round holds
MAX_CELLS = 1 << 16
Set = tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """All marginals of `ways` columns with so many symbols each."""

    shape: tuple[int, ...]
    ways: int

    def __post_init__(self) -> None:
        check_whole("ways", self.ways, 1, len(self.shape))
        count = math.comb(len(self.shape), self.ways)
        if count > MAX_SETS or sum(map(self.cells, self.sets)) > MAX_CELLS:
            raise InputError(f"there are {count:,} marginals; {MAX_SETS:,} of {MAX_CELLS:,} cells in all are the most: ask for fewer ways or columns")
        if (most := max(map(self.cells, self.sets))) > MAX_SYMBOLS:
            raise InputError(f"a marginal has {most:,} cells; {MAX_SYMBOLS:,} are the most: ask for fewer ways, or merge labels")

    @cached_property
    def sets(self) -> tuple[Set, ...]:
        """The marginals' columns."""
        return tuple(combinations(range(len(self.shape)), self.ways))

    @cached_property
    def parts(self) -> tuple[Set, ...]:
        """The nonempty sets of at most `ways` columns: those whose interactions make up the marginals."""
        return tuple(columns for size in range(1, self.ways + 1) for columns in combinations(range(len(self.shape)), size))

    def cells(self, columns: Set) -> int:
        """The number of combinations of symbols of some columns."""
        return math.prod(self.shape[column] for column in columns)

    def height(self, columns: Set) -> float:
        """The largest interaction of some columns at a cell, of one client's indicator: the product of 1 - 1/k."""
        return math.prod(1 - 1 / self.shape[column] for column in columns)

    @property
    def binary(self) -> bool:
        """Whether every column has two symbols."""
        return set(self.shape) == {2}


@dataclass(frozen=True)
class Design:
    """Each client has one of `sets`, with probability `shares`, and reports its combination of these columns; with `characters` its parity alone.

    `variance` is n times a bound on the variance of the estimate of any cell of any marginal, whatever the law (`contrast_factors` says how far proven).
    """

    name: str
    sets: tuple[Set, ...]
    shares: tuple[float, ...]
    characters: bool
    variance: float


def designs(task: Task, epsilon: float) -> list[Design]:
    """Every design: one-bit characters where all columns are binary, then covers of all marginals by sets of t columns or more."""
    known = [_characters(task, epsilon)] if task.binary and len(task.parts) <= MAX_SETS else []
    for size in range(task.ways, len(task.shape) + 1):
        covering = covering_sets(task, size)
        if size > task.ways and max(map(len, covering)) < size:
            break  # no larger set has few enough cells
        known.append(_sets(task, epsilon, covering, f"sets of {size}"))
    return known


@lru_cache(maxsize=64)
def best_design(task: Task, epsilon: float) -> tuple[Design, tuple[tuple[str, float], ...]]:
    """The first of `designs` whose variance is within 1 % of the least, and the variance of each."""
    known = designs(task, epsilon)
    least = min(design.variance for design in known)
    return next(design for design in known if design.variance <= float(NEAR) * least), tuple((design.name, design.variance) for design in known)


def _characters(task: Task, epsilon: float) -> Design:
    """Every parity of at most t columns, in the best shares by the number j of columns.

    A cell is 2^-t sum_A +-chi_A: with shares w_j its variance is at most C^2 4^-t sum_j C(t, j) / w_j, least for w_j ~ (C(t, j) / C(d, j))^(1/2).
    """
    d, t = len(task.shape), task.ways
    weights = [math.sqrt(math.comb(t, size) / math.comb(d, size)) for size in range(1, t + 1)]
    whole = sum(math.comb(d, size) * weight for size, weight in enumerate(weights, 1))
    shares = tuple(weights[len(part) - 1] / whole for part in task.parts)
    variance = response_gain(epsilon) ** 2 / 4**t * sum(math.comb(t, size) * whole / weight for size, weight in enumerate(weights, 1))
    return Design("characters", task.parts, shares, True, variance)


def _sets(task: Task, epsilon: float, covering: tuple[Set, ...], name: str) -> Design:
    """Sets by the best frequency oracle for each, with clients in proportion to each set's own variance."""
    factors = np.array([_factors(epsilon, task.cells(columns)) for columns in covering])
    cells = np.array([task.cells(columns) for columns in covering], dtype=np.float64)
    rarest = 1 / np.array([math.prod(sorted(task.shape[column] for column in columns)[: task.ways]) for columns in covering])
    alone = factors[:, 0] * cells * rarest * (1 - rarest) + factors[:, 1] * (1 - rarest) ** 2
    shares = alone / alone.sum()
    return Design(name, covering, tuple(shares.tolist()), False, _worst_cell(task, covering, shares, factors * np.stack([cells, np.ones_like(cells)], axis=1)))


@lru_cache(maxsize=4096)
def _factors(epsilon: float, k: int) -> tuple[float, float]:
    best = best_choice(epsilon, k, joint=True)
    return contrast_factors(epsilon, best.order, best.w)


def _worst_cell(task: Task, covering: tuple[Set, ...], shares: Floats, factors: Floats) -> float:
    """n times the largest bound of a cell, where each interaction is averaged over all sets that contain it, by their clients.

    With S_A the share of clients whose set contains A, h_A = prod_A (1 - 1/k) / K_{S - A}, and (a, b) of a set as by `contrast_factors`, a times its cells:
    sum_A h_A^2 / prod_A (k - 1) sum_T a_T s_T / S_A^2 + sum_T b_T s_T (sum_A h_A / S_A)^2, A the sets inside T and the marginal S.
    """
    member = np.zeros((len(covering), len(task.shape)), dtype=np.bool_)
    for row, columns in zip(member, covering, strict=True):
        row[list(columns)] = True
    holds = {part: member[:, list(part)].all(axis=1) for part in task.parts}
    asked = {part: float(shares @ holds[part]) for part in task.parts}
    spread = {part: float((factors[:, 0] * shares) @ holds[part]) / asked[part] ** 2 for part in task.parts}
    peak, worst = factors[:, 1] * shares, 0.0
    for marginal in task.sets:
        inside = [part for size in range(1, task.ways + 1) for part in combinations(marginal, size)]
        heights = [task.height(part) * task.cells(part) / task.cells(marginal) for part in inside]
        flat = sum(height**2 / math.prod(task.shape[column] - 1 for column in part) * spread[part] for height, part in zip(heights, inside, strict=True))
        sums = sum((height / asked[part] * holds[part] for height, part in zip(heights, inside, strict=True)), np.zeros(len(covering)))
        worst = max(worst, flat + float(peak @ sums**2))
    return worst


@lru_cache(maxsize=256)
def covering_sets(task: Task, size: int) -> tuple[Set, ...]:
    """Sets of at most `size` columns that hold every set of t columns, none of more than 4,096 cells: greedy, hence not always the fewest."""
    if size == task.ways:
        return task.sets
    left, used = set(task.sets), [0] * len(task.shape)
    return tuple(_covering(task, size, left, used))


def _covering(task: Task, size: int, left: set[Set], used: list[int]) -> Iterator[Set]:
    for first in task.sets:
        if first not in left:
            continue
        columns = first
        while len(columns) < size and (further := _next(task, columns, left, used)) is not None:
            columns = tuple(sorted((*columns, further)))
        left.difference_update(combinations(columns, task.ways))
        for column in columns:
            used[column] += 1
        yield columns


def _next(task: Task, columns: Set, left: set[Set], used: list[int]) -> int | None:
    """The column that completes most marginals not yet covered, ties to the least used; None where none completes any."""
    best: tuple[int, int, int] | None = None
    for column in range(len(task.shape)):
        if column in columns or task.cells(columns) * task.shape[column] > MAX_SYMBOLS:
            continue
        gained = sum(tuple(sorted((*rest, column))) in left for rest in combinations(columns, task.ways - 1))
        if gained and (best is None or (-gained, used[column], column) < best):
            best = -gained, used[column], column
    return None if best is None else best[2]


Added = tuple[Floats, Floats]  # the term of a cohort in the cells of some columns, and its variance


@dataclass(frozen=True)
class Dealt:
    """A design with the number of clients of each cohort.

    A marginal is the sum of the interactions of its parts A: the shares of A's cells beyond those of fewer columns. Each is averaged over all cohorts whose set
    contains A, by their clients. That is linear, hence unbiased, and the same in every marginal that contains A, so they agree.
    """

    task: Task
    design: Design
    clients: tuple[int, ...]

    @cached_property
    def asked(self) -> Mapping[Set, int]:
        """The number of clients that report each part."""
        asked = dict.fromkeys(self.task.parts, 0)
        for columns, count in zip(self.design.sets, self.clients, strict=True):
            for part in [columns] if self.design.characters else self._parts(columns):
                asked[part] += count
        return asked

    def _parts(self, columns: Set) -> Iterator[Set]:
        return (part for size in range(1, self.task.ways + 1) for part in combinations(columns, size))

    def estimate(self, randomizers: Sequence[Randomizer], tallies: Sequence[Tally]) -> Estimate:
        """All cells of all marginals, shape (cells,), the last column of each running fastest. Raises InputError where no client of a cohort answered."""
        terms = [self._added(place, *one) for place, one in enumerate(zip(randomizers, tallies, strict=True))]
        masks = np.array([sum(1 << column for column in columns) for columns in self.design.sets], dtype=np.uint64)
        values, variances = zip(*(self._marginal(marginal, masks, terms) for marginal in self.task.sets), strict=True)
        return Estimate(np.concatenate(values), np.sqrt(np.concatenate(variances)), sum(tally.n for tally in tallies))

    def _marginal(self, marginal: Set, masks: np.ndarray, terms: Sequence[Mapping[Set, Added]]) -> Added:
        own = np.uint64(sum(1 << column for column in marginal))
        whole = self.task.cells(marginal)
        value, variance = np.full(whole, 1 / whole), np.zeros(whole)
        for place in np.flatnonzero(masks & ~own == 0 if self.design.characters else masks & own != 0).tolist():
            met = tuple(column for column in self.design.sets[place] if column in marginal)
            more, its = terms[place][met]
            rest = whole // self.task.cells(met)
            value += self._spread(more, met, marginal) / rest
            variance += self._spread(its, met, marginal) / rest**2
        return value, variance

    def _spread(self, values: Floats, met: Set, marginal: Set) -> Floats:
        """`values`, of some of the marginal's columns, repeated over its cells."""
        shape = [self.task.shape[column] if column in met else 1 for column in marginal]
        return np.broadcast_to(values.reshape(shape), [self.task.shape[column] for column in marginal]).reshape(-1)

    def _added(self, place: int, randomizer: Randomizer, tally: Tally) -> dict[Set, Added]:
        """The terms of one cohort in every marginal, by the columns that its set shares with it."""
        columns = self.design.sets[place]
        if self.design.characters:
            odd = randomizer.estimate(tally)
            signs = _product([np.array([1.0, -1.0])] * len(columns))
            size = len(signs)
            return {columns: (signs * (1 - 2 * float(odd.value)) / size, np.full(size, (2 * float(odd.standard_error) / size) ** 2))}
        if not isinstance(randomizer, FrequencyOracle):
            raise InputError(f"marginals need an oracle that knows the covariance of its shares, and {randomizer.name} does not")
        parts = list(self._parts(columns))
        rows = [self._rows(columns, part, self.clients[place]) for part in parts]
        joint = randomizer.joint(tally, np.concatenate(rows))
        ends = np.cumsum([len(each) for each in rows])[:-1]
        return dict(zip(parts, zip(np.split(joint.value, ends), np.split(np.diagonal(joint.covariance), ends), strict=True), strict=True))

    def _rows(self, columns: Set, met: Set, clients: int) -> Floats:
        """The weights of a cohort's cells in its terms of `met`, some of its columns: shape (cells of met, cells of columns)."""
        total = np.zeros((self.task.cells(met), self.task.cells(columns)))
        for part in self._parts(met):
            total += clients / self.asked[part] * _product([_factor(self.task.shape[each], each in met, each in part) for each in columns])
        return total


def _factor(k: int, met: bool, inside: bool) -> Floats:
    """One column's part in an interaction: of its own deviation from uniform, evenly over its symbols, or summed out."""
    if not met:
        return np.ones((1, k))
    return np.eye(k) - 1 / k if inside else np.full((k, k), 1 / k)


def _product(factors: Sequence[Floats]) -> Floats:
    """The Kronecker product, the last factor running fastest."""
    product: Floats = np.ones(1)
    for factor in factors:
        product = np.kron(product, factor).astype(np.float64, copy=False)
    return product
