"""Which sets of columns the clients are asked about, so that all marginals of t columns can be told: by closed form, the best of several ways."""

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
        return tuple(chosen for size in range(1, self.ways + 1) for chosen in combinations(range(len(self.shape)), size))

    def cells(self, chosen: Set) -> int:
        """How many combinations of symbols some columns have."""
        return math.prod(self.shape[column] for column in chosen)

    def height(self, chosen: Set) -> float:
        """What the interaction of some columns is at most at one cell, of a client's own indicator: the product of 1 - 1/k."""
        return math.prod(1 - 1 / self.shape[column] for column in chosen)

    @property
    def binary(self) -> bool:
        """Whether every column has two symbols."""
        return set(self.shape) == {2}


@dataclass(frozen=True)
class Design:
    """Each client is dealt one of `sets`, with probability `shares`, and tells its combination of these columns; with `characters` its parity alone.

    `variance` is n times a bound on the variance of the estimate of any cell of any marginal, whatever the law (`contrast_factors` says how far proven).
    """

    name: str
    sets: tuple[Set, ...]
    shares: tuple[float, ...]
    characters: bool
    variance: float


def designs(task: Task, epsilon: float) -> list[Design]:
    """Every way there is: one-bit characters where all columns are binary, then sets of t columns and more, as many as cover all marginals."""
    found = [_characters(task, epsilon)] if task.binary and len(task.parts) <= MAX_SETS else []
    for size in range(task.ways, len(task.shape) + 1):
        covering = covering_sets(task, size)
        if size > task.ways and max(map(len, covering)) < size:
            break  # no larger set has few enough cells
        found.append(_sets(task, epsilon, covering, f"sets of {size}"))
    return found


@lru_cache(maxsize=64)
def best_design(task: Task, epsilon: float) -> tuple[Design, tuple[tuple[str, float], ...]]:
    """The first of `designs` whose variance is within 1 % of the least, and the variance of each."""
    known = designs(task, epsilon)
    least = min(design.variance for design in known)
    return next(design for design in known if design.variance <= float(NEAR) * least), tuple((design.name, design.variance) for design in known)


def _characters(task: Task, epsilon: float) -> Design:
    """Every parity of at most t columns, in the best shares: as many of j columns as their number in a marginal and in all asks for.

    A cell is 2^-t sum_A +-chi_A: with shares w_j its variance is at most C^2 4^-t sum_j C(t, j) / w_j, least for w_j ~ (C(t, j) / C(d, j))^(1/2).
    """
    d, t = len(task.shape), task.ways
    weights = [math.sqrt(math.comb(t, size) / math.comb(d, size)) for size in range(1, t + 1)]
    whole = sum(math.comb(d, size) * weight for size, weight in enumerate(weights, 1))
    shares = tuple(weights[len(part) - 1] / whole for part in task.parts)
    variance = response_gain(epsilon) ** 2 / 4**t * sum(math.comb(t, size) * whole / weight for size, weight in enumerate(weights, 1))
    return Design("characters", task.parts, shares, True, variance)


def _sets(task: Task, epsilon: float, covering: tuple[Set, ...], name: str) -> Design:
    """Sets by the best frequency oracle for each: more clients for those with more cells, as each one's own variance asks for."""
    factors = np.array([_factors(epsilon, task.cells(chosen)) for chosen in covering])
    cells = np.array([task.cells(chosen) for chosen in covering], dtype=np.float64)
    rarest = 1 / np.array([math.prod(sorted(task.shape[column] for column in chosen)[: task.ways]) for chosen in covering])
    alone = factors[:, 0] * cells * rarest * (1 - rarest) + factors[:, 1] * (1 - rarest) ** 2
    shares = alone / alone.sum()
    return Design(name, covering, tuple(shares.tolist()), False, _worst_cell(task, covering, shares, factors * np.stack([cells, np.ones_like(cells)], axis=1)))


@lru_cache(maxsize=4096)
def _factors(epsilon: float, k: int) -> tuple[float, float]:
    best = best_choice(epsilon, k, joint=True)
    return contrast_factors(epsilon, best.order, best.w)


def _worst_cell(task: Task, covering: tuple[Set, ...], shares: Floats, factors: Floats) -> float:
    """n times the largest bound of a cell, where each interaction is averaged over all sets that hold it, by their clients.

    With S_A the share of clients whose set holds A, h_A = prod_A (1 - 1/k) / K_{S - A}, and (a, b) of a set as by `contrast_factors`, a times its cells:
    sum_A h_A^2 / prod_A (k - 1) sum_T a_T s_T / S_A^2 + sum_T b_T s_T (sum_A h_A / S_A)^2, A the sets inside T and the marginal S.
    """
    member = np.zeros((len(covering), len(task.shape)), dtype=np.bool_)
    for row, chosen in zip(member, covering, strict=True):
        row[list(chosen)] = True
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
        chosen = first
        while len(chosen) < size and (found := _next(task, chosen, left, used)) is not None:
            chosen = tuple(sorted((*chosen, found)))
        left.difference_update(combinations(chosen, task.ways))
        for column in chosen:
            used[column] += 1
        yield chosen


def _next(task: Task, chosen: Set, left: set[Set], used: list[int]) -> int | None:
    """The column that completes most marginals not yet covered, of those used least; None where none completes any."""
    best: tuple[int, int, int] | None = None
    for column in range(len(task.shape)):
        if column in chosen or task.cells(chosen) * task.shape[column] > MAX_SYMBOLS:
            continue
        gained = sum(tuple(sorted((*rest, column))) in left for rest in combinations(chosen, task.ways - 1))
        if gained and (best is None or (-gained, used[column], column) < best):
            best = -gained, used[column], column
    return None if best is None else best[2]


Added = tuple[Floats, Floats]  # what a cohort adds to the cells of some columns, and its variance


@dataclass(frozen=True)
class Dealt:
    """A design with so many clients in each cohort.

    A marginal is the sum of the interactions of its parts A: of what the shares of A's cells say beyond those of fewer columns. Each is averaged over all
    cohorts whose set holds A, by their clients. That is linear, hence without bias, and the same in every marginal that holds A, so that they agree.
    """

    task: Task
    design: Design
    clients: tuple[int, ...]

    @cached_property
    def asked(self) -> Mapping[Set, int]:
        """How many clients tell of each part."""
        asked = dict.fromkeys(self.task.parts, 0)
        for chosen, count in zip(self.design.sets, self.clients, strict=True):
            for part in [chosen] if self.design.characters else self._parts(chosen):
                asked[part] += count
        return asked

    def _parts(self, chosen: Set) -> Iterator[Set]:
        return (part for size in range(1, self.task.ways + 1) for part in combinations(chosen, size))

    def estimate(self, randomizers: Sequence[Randomizer], tallies: Sequence[Tally]) -> Estimate:
        """All cells of all marginals, shape (cells,), the last column of each running fastest. Raises InputError where nobody of a cohort answered."""
        told = [self._added(place, *one) for place, one in enumerate(zip(randomizers, tallies, strict=True))]
        masks = np.array([sum(1 << column for column in chosen) for chosen in self.design.sets], dtype=np.uint64)
        values, variances = zip(*(self._marginal(marginal, masks, told) for marginal in self.task.sets), strict=True)
        return Estimate(np.concatenate(values), np.sqrt(np.concatenate(variances)), sum(tally.n for tally in tallies))

    def _marginal(self, marginal: Set, masks: np.ndarray, told: Sequence[Mapping[Set, Added]]) -> Added:
        own = np.uint64(sum(1 << column for column in marginal))
        whole = self.task.cells(marginal)
        value, variance = np.full(whole, 1 / whole), np.zeros(whole)
        for place in np.flatnonzero(masks & ~own == 0 if self.design.characters else masks & own != 0).tolist():
            met = tuple(column for column in self.design.sets[place] if column in marginal)
            more, its = told[place][met]
            rest = whole // self.task.cells(met)
            value += self._spread(more, met, marginal) / rest
            variance += self._spread(its, met, marginal) / rest**2
        return value, variance

    def _spread(self, values: Floats, met: Set, marginal: Set) -> Floats:
        """Of each cell of the marginal the entry of `values`, which are of some of its columns."""
        shape = [self.task.shape[column] if column in met else 1 for column in marginal]
        return np.broadcast_to(values.reshape(shape), [self.task.shape[column] for column in marginal]).reshape(-1)

    def _added(self, place: int, randomizer: Randomizer, tally: Tally) -> dict[Set, Added]:
        """What one cohort adds to every marginal that meets its set in some columns, by these."""
        chosen = self.design.sets[place]
        if self.design.characters:
            odd = randomizer.estimate(tally)
            signs = _product([np.array([1.0, -1.0])] * len(chosen))
            size = len(signs)
            return {chosen: (signs * (1 - 2 * float(odd.value)) / size, np.full(size, (2 * float(odd.standard_error) / size) ** 2))}
        if not isinstance(randomizer, FrequencyOracle):
            raise InputError(f"marginals need an oracle that knows the covariance of its shares, and {randomizer.name} does not")
        parts = list(self._parts(chosen))
        rows = [self._rows(chosen, part, self.clients[place]) for part in parts]
        joint = randomizer.joint(tally, np.concatenate(rows))
        ends = np.cumsum([len(each) for each in rows])[:-1]
        return dict(zip(parts, zip(np.split(joint.value, ends), np.split(np.diagonal(joint.covariance), ends), strict=True), strict=True))

    def _rows(self, chosen: Set, met: Set, clients: int) -> Floats:
        """The weights of a cohort's cells in what it adds to the cells of `met`, some of its columns: shape (cells of met, cells of chosen)."""
        total = np.zeros((self.task.cells(met), self.task.cells(chosen)))
        for part in self._parts(met):
            total += clients / self.asked[part] * _product([_factor(self.task.shape[each], each in met, each in part) for each in chosen])
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
