"""All marginals of so many columns: each client reports a set of columns or one parity, by the
least variance in closed form."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, chain, combinations, pairwise, product

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import contrast_factors
from local_dp.bounds.response import response_gain
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_built, check_whole
from local_dp.domains import MAX_SYMBOLS, symbols
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.populations.finite import Finite, Population
from local_dp.postprocessing.steps import AgreeingLaws
from local_dp.protocols.local_protocol import (
    BETA,
    OfColumns,
    PlainData,
    check_different,
    describe_estimate,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.needs import Need
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.queries.cells import Odd
from local_dp.randomizers.frequencies.best import NEAR, best_choice
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Estimate, Joint, Possible, Steadied, Tally

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
            raise InputError(
                f"there are {count:,} marginals; {MAX_SETS:,} of {MAX_CELLS:,} cells in all are "
                "the most: ask for fewer ways or columns"
            )
        if (most := max(map(self.cells, self.sets))) > MAX_SYMBOLS:
            raise InputError(
                f"a marginal has {most:,} cells; {MAX_SYMBOLS:,} are the most: ask for fewer "
                "ways, or merge labels"
            )

    @cached_property
    def sets(self) -> tuple[Set, ...]:
        """The marginals' columns."""
        return tuple(combinations(range(len(self.shape)), self.ways))

    @cached_property
    def parts(self) -> tuple[Set, ...]:
        """The nonempty sets of at most `ways` columns: those whose interactions make up the
        marginals."""
        return tuple(self.inside(range(len(self.shape))))

    def inside(self, columns: Iterable[int]) -> Iterator[Set]:
        """The nonempty sets of at most `ways` of these columns, the smallest first."""
        columns = tuple(columns)
        for size in range(1, self.ways + 1):
            yield from combinations(columns, size)

    def cells(self, columns: Set) -> int:
        """The number of combinations of symbols of some columns."""
        return math.prod(self.shape[column] for column in columns)

    def height(self, columns: Set) -> float:
        """The largest interaction of some columns at a cell, of one client's indicator: the product
        of 1 - 1/k."""
        return math.prod(1 - 1 / self.shape[column] for column in columns)


@dataclass(frozen=True)
class Design:
    """Each client has one of `sets`, with probability `shares`, and reports its combination of
    these columns; with `characters` its parity alone.

    `variance` is n times a bound on the variance of the estimate of any cell of any marginal,
    whatever the law (`contrast_factors` says how far proven).
    """

    name: str
    sets: tuple[Set, ...]
    shares: tuple[float, ...]
    characters: bool
    variance: float


def designs(task: Task, epsilon: float) -> list[Design]:
    """Every design: one-bit characters where all columns are binary, then covers of all marginals
    by sets of t columns or more."""
    every = []
    if set(task.shape) == {2} and len(task.parts) <= MAX_SETS:
        every.append(_characters(task, epsilon))
    for size in range(task.ways, len(task.shape) + 1):
        covering = covering_sets(task, size)
        if size > task.ways and max(map(len, covering)) < size:
            break  # no larger set has few enough cells
        every.append(_sets(task, epsilon, covering, f"sets of {size}"))
    return every


@lru_cache(maxsize=64)
def best_design(
    task: Task, epsilon: float, *, characters: bool = True
) -> tuple[Design, tuple[tuple[str, float], ...]]:
    """The first of `designs` whose variance is within 1 % of the least, and the variance of
    each; without `characters` of sets alone."""
    every = [each for each in designs(task, epsilon) if characters or not each.characters]
    enough = float(NEAR) * min(design.variance for design in every)
    best = next(design for design in every if design.variance <= enough)
    return best, tuple((design.name, design.variance) for design in every)


def _characters(task: Task, epsilon: float) -> Design:
    """Every parity of at most t columns, in the best shares by the number j of columns.

    A cell is 2^-t sum_A +-chi_A: with shares w_j its variance is at most C^2 4^-t sum_j C(t, j) /
    w_j, least for w_j ~ (C(t, j) / C(d, j))^(1/2).
    """
    d, t = len(task.shape), task.ways
    weights = [math.sqrt(math.comb(t, size) / math.comb(d, size)) for size in range(1, t + 1)]
    whole = sum(math.comb(d, size) * weight for size, weight in enumerate(weights, 1))
    shares = tuple(weights[len(part) - 1] / whole for part in task.parts)
    total = sum(math.comb(t, size) * whole / weight for size, weight in enumerate(weights, 1))
    variance = response_gain(epsilon) ** 2 / 4**t * total
    return Design("characters", task.parts, shares, True, variance)


def _sets(task: Task, epsilon: float, covering: tuple[Set, ...], name: str) -> Design:
    """Sets by the best frequency oracle for each, with clients in proportion to each set's own
    variance."""
    cells = [task.cells(columns) for columns in covering]
    flat, peak = np.array([_factors(epsilon, count) for count in cells]).T
    flat = flat * np.array(cells, dtype=np.float64)
    smallest = [sorted(task.shape[column] for column in columns) for columns in covering]
    rarest = 1 / np.array([math.prod(sizes[: task.ways]) for sizes in smallest])
    alone = flat * rarest * (1 - rarest) + peak * (1 - rarest) ** 2
    shares = alone / alone.sum()
    variance = _worst_cell(task, covering, shares, flat, peak)
    return Design(name, covering, tuple(shares.tolist()), False, variance)


@lru_cache(maxsize=4096)
def _factors(epsilon: float, k: int) -> tuple[float, float]:
    best = best_choice(epsilon, k, joint=True)
    return contrast_factors(epsilon, best.order, best.w)


def _worst_cell(
    task: Task, covering: tuple[Set, ...], shares: Floats, flat: Floats, peak: Floats
) -> float:
    """n times the largest bound of a cell, where each interaction is averaged over all sets that
    contain it, by their clients.

    With S_A the share of clients whose set contains A, h_A = prod_A (1 - 1/k) / K_{S - A}, and
    (a, b) = (`flat`, `peak`) of a set as by `contrast_factors`, a times its cells: sum_A h_A^2
    / prod_A (k - 1) sum_T a_T s_T / S_A^2 + sum_T b_T s_T (sum_A h_A / S_A)^2, A the sets inside T
    and the marginal S.
    """
    member = np.zeros((len(covering), len(task.shape)), dtype=np.bool_)
    for row, columns in zip(member, covering, strict=True):
        row[list(columns)] = True
    holds = {part: member[:, list(part)].all(axis=1) for part in task.parts}
    reach = {part: float(shares @ holds[part]) for part in task.parts}
    flat = flat * shares
    peak = peak * shares
    spread = {part: float(flat @ holds[part]) / reach[part] ** 2 for part in task.parts}
    worst = 0.0
    for marginal in task.sets:
        squares, sums = 0.0, np.zeros(len(covering))
        for part in task.inside(marginal):
            height = task.height(part) * task.cells(part) / task.cells(marginal)
            others = math.prod(task.shape[column] - 1 for column in part)
            squares += height**2 / others * spread[part]
            sums = sums + height / reach[part] * holds[part]
        worst = max(worst, squares + float(peak @ sums**2))
    return worst


@lru_cache(maxsize=256)
def covering_sets(task: Task, size: int) -> tuple[Set, ...]:
    """Sets of at most `size` columns that hold every set of t columns, none of more than 4,096
    cells: greedy, hence not always the fewest."""
    if size == task.ways:
        return task.sets
    left = set(task.sets)
    uses = [0] * len(task.shape)
    covering: list[Set] = []
    for first in task.sets:
        if first not in left:
            continue
        columns = first
        while len(columns) < size and (further := _next(task, columns, left, uses)) is not None:
            columns = tuple(sorted((*columns, further)))
        left.difference_update(combinations(columns, task.ways))
        for column in columns:
            uses[column] += 1
        covering.append(columns)
    return tuple(covering)


def _next(task: Task, columns: Set, left: set[Set], uses: list[int]) -> int | None:
    """The column that completes most marginals not yet covered, ties to the least used; None where
    none completes any."""
    choices: list[tuple[int, int, int]] = []
    for column in range(len(task.shape)):
        if column in columns or task.cells(columns) * task.shape[column] > MAX_SYMBOLS:
            continue
        marginals = (
            tuple(sorted((*rest, column))) for rest in combinations(columns, task.ways - 1)
        )
        if gain := len(left.intersection(marginals)):
            choices.append((-gain, uses[column], column))
    return min(choices)[2] if choices else None


# of a cohort in the cells of some columns, and its variance, each followed by that of `Steadied`:
# shape (2, m) each
Term = tuple[Floats, Floats]


@dataclass(frozen=True)
class Deal:
    """A design with the number of clients of each cohort.

    A marginal is the sum of the interactions of its parts A: the shares of A's cells beyond those
    of fewer columns. Each is averaged over all cohorts whose set contains A, by their clients. That
    is linear, hence unbiased, and the same in every marginal that contains A, so they agree.
    """

    task: Task
    design: Design
    clients: tuple[int, ...]

    @cached_property
    def reporters(self) -> Mapping[Set, int]:
        """The number of clients that report each part."""
        reporters = dict.fromkeys(self.task.parts, 0)
        for columns, count in zip(self.design.sets, self.clients, strict=True):
            for part in [columns] if self.design.characters else self.task.inside(columns):
                reporters[part] += count
        return reporters

    def estimate(self, randomizers: Sequence[Randomizer], tallies: Sequence[Tally]) -> Estimate:
        """All cells of all marginals, shape (cells,), the last column of each running fastest.
        Raises InputError where no client of a cohort answered."""
        each = self._character if self.design.characters else self._terms
        terms = list(map(each, range(len(self.clients)), randomizers, tallies))
        masks = np.array([_mask(columns) for columns in self.design.sets], dtype=np.uint64)
        marginals = (self._marginal(marginal, masks, terms) for marginal in self.task.sets)
        values, variances = zip(*marginals, strict=True)
        value, centre = np.concatenate(values, axis=1)
        variance, steady = np.concatenate(variances, axis=1)
        n = sum(tally.n for tally in tallies)
        return Steadied.of(value, variance, n, np.stack([centre, steady]))

    def _marginal(
        self, marginal: Set, masks: np.ndarray, terms: Sequence[Mapping[Set, Term]]
    ) -> Term:
        own = np.uint64(_mask(marginal))
        whole = self.task.cells(marginal)
        value = np.full((2, whole), 1 / whole)
        variance = np.zeros((2, whole))
        inside = masks & ~own == 0 if self.design.characters else masks & own != 0
        for place in np.flatnonzero(inside).tolist():
            overlap = tuple(column for column in self.design.sets[place] if column in marginal)
            means, squares = terms[place][overlap]
            rest = whole // self.task.cells(overlap)
            value += self._spread(means, overlap, marginal) / rest
            variance += self._spread(squares, overlap, marginal) / rest**2
        return value, variance

    def _spread(self, values: Floats, overlap: Set, marginal: Set) -> Floats:
        """`values`, of some of the marginal's columns, repeated over its cells."""
        whole = [self.task.shape[column] for column in marginal]
        shape = [self.task.shape[column] if column in overlap else 1 for column in marginal]
        return np.broadcast_to(values.reshape(2, *shape), [2, *whole]).reshape(2, -1)

    def _character(self, place: int, randomizer: Randomizer, tally: Tally) -> dict[Set, Term]:
        """The one term of a cohort that reports a parity."""
        columns = self.design.sets[place]
        odd = randomizer.estimate(tally)
        assert odd.ends is not None
        mean = np.array([1 - 2 * odd.value])
        variance = np.array([[4 * odd.standard_error**2]])
        ends = 1 - 2 * odd.ends[1], 1 - 2 * odd.ends[0]
        means, squares = Joint(mean, variance, tally.n, ends).terms
        signs = _product([np.array([1.0, -1.0])] * len(columns))
        size = len(signs)
        return {columns: (signs * means / size, np.ones(size) * squares / size**2)}

    def _terms(self, place: int, randomizer: Randomizer, tally: Tally) -> dict[Set, Term]:
        """The terms of one cohort in every marginal, by the columns that its set shares with it."""
        columns = self.design.sets[place]
        parts = list(self.task.inside(columns))
        rows = [self._rows(columns, part, self.clients[place]) for part in parts]
        reader = Need(symbols(self.task.cells(columns)), joint=True).reader(randomizer)
        joint: Joint = reader.joint(tally, np.concatenate(rows))
        cuts = np.cumsum([len(row) for row in rows])[:-1]
        means, squares = (np.split(each, cuts, axis=1) for each in joint.terms)
        return dict(zip(parts, zip(means, squares, strict=True), strict=True))

    def _rows(self, columns: Set, overlap: Set, clients: int) -> Floats:
        """The weights of a cohort's cells in its terms of `overlap`, some of its columns: shape
        (cells of the overlap, cells of columns)."""
        total = np.zeros((self.task.cells(overlap), self.task.cells(columns)))
        for part in self.task.inside(overlap):
            factors = [
                _factor(self.task.shape[each], each in overlap, each in part) for each in columns
            ]
            total += clients / self.reporters[part] * _product(factors)
        return total


def _mask(columns: Set) -> int:
    return sum(1 << column for column in columns)


def _factor(k: int, within: bool, inside: bool) -> Floats:
    """One column's part in an interaction: of its own deviation from uniform, evenly over its
    symbols, or summed out."""
    if not within:
        return np.ones((1, k))
    return np.eye(k) - 1 / k if inside else np.full((k, k), 1 / k)


def _product(factors: Sequence[Floats]) -> Floats:
    """The Kronecker product, the last factor running fastest."""
    product: Floats = np.ones(1)
    for factor in factors:
        product = np.kron(product, factor).astype(np.float64, copy=False)
    return product


KINDS = 512  # of synthetic records


@dataclass(frozen=True)
class Margins:
    """Every cell of every marginal, the design of the questions, and n times the bound on a cell's
    variance for each design."""

    estimate: Estimate
    design: Design
    variances: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Marginals(OfColumns[Margins]):
    """Estimates all marginals of `ways` of the `columns`: the share of every combination of their
    labels; without a table, of columns of k labels.

    Each client reports its combination of one set of columns by the best frequency oracle; or, of
    columns with two labels each, one parity of at most `ways` columns by randomized response. A
    closed form chooses the sets, and the result explains the choice. Privacy: every report is
    epsilon-locally private. Utility: unbiased; a cell is a sum of interactions, each averaged over
    all sets that contain it, so marginals agree where they overlap. Shares below 0 stay: the step
    `agreeing_laws` makes laws of them, at a price in bias. `tolerance` sets the default number of
    clients: all cells within it with probability 95 %. Cost: one round; a bit, or the bits of a
    set's oracle.
    """

    name = "marginals"
    summary = "Estimates all marginals of some columns from one report each"
    source = "Cormode, Kulkarni, Srivastava 2018 (InpHT); Zhang, Wang, Li, He, Chen 2018 (CALM)"
    example = (
        "--records fair.csv --columns 'religious;occupation;affairs > 0' --labels "
        "'1|2|3|4;1|2|3|4|5|6' --ways 2"
    )
    columns: tuple[str, ...] = parameter(
        tuple("abcdef"), "Columns or yes/no questions", of_table=True
    )
    ways: int = parameter(2, "Number of columns of each marginal")
    labels: tuple[str, ...] = parameter(
        (),
        "Public labels of each column that is no question",
        help="In a shell '|' separates labels, and ';' columns",
    )
    labels_from_data: bool = parameter(
        False, "Read the labels from the table, and publish them", help="In a simulation only"
    )
    missing: str = policy("missing values", category="a label of its own, in every column")
    other: str = policy(
        "values that are not listed", category="a label of its own, in every column"
    )
    k: int = parameter(2, "Without a table: number of labels of each column")
    randomizer: str = parameter(
        "best",
        "Randomizer of symbols; best: the one of least variance",
        help="Any but best reports sets of columns, which the best one decides",
    )
    tolerance: float = target_error(0.05)

    def check(self) -> None:
        symbols(self.k)
        check_different("the columns", self.columns)
        check_whole("the number of columns", len(self.columns), 1, 64)
        check_built(self.task)

    @cached_property
    def task(self) -> Task:
        """The number of symbols of each column, and the marginals to estimate."""
        return Task(self.parts.shape, self.ways)

    def variances(self, epsilon: float) -> tuple[Design, tuple[tuple[str, float], ...]]:
        """The best design at this epsilon, and n times the bound on a cell's variance for each."""
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        return best_design(self.task, epsilon, characters=self.randomizer == "best")

    @property
    def need(self) -> Need:
        return Need(symbols(self.task.cells(self.task.sets[0])), joint=True)

    def possible(self, result: Margins) -> Possible:
        sizes = map(self.task.cells, self.task.sets)
        return Possible(0.0, 1.0, tuple(accumulate(sizes))[:-1])

    def clients(self, epsilon: float) -> int:
        cells = sum(map(self.task.cells, self.task.sets))
        design = self.variances(epsilon)[0]
        z = normal_quantile(BETA / (2 * cells))
        usual = frequency_randomizer(epsilon, self.need.domain.size, joint=True)
        variance = design.variance * self.need.times(self.randomizer, usual, self.name)
        return max(len(design.sets), math.ceil(variance * (z / self.tolerance) ** 2))

    def algorithm(self, epsilon: float, clients: int) -> Local[Margins]:
        design, variances = self.variances(epsilon)
        count = len(design.sets)
        if clients < count:
            raise InputError(
                f"{count} sets of columns need clients of their own; {clients} are too few"
            )
        # every set has one client, and the others by the shares
        more = np.rint(np.cumsum(design.shares) * (clients - count)).astype(int)
        ends = [0, *(more + np.arange(1, count + 1)).tolist()]
        queries = tuple(
            self._question(epsilon, design, columns, Cohort(*part))
            for columns, part in zip(design.sets, pairwise(ends), strict=True)
        )
        deal = Deal(self.task, design, tuple(len(query.cohort) for query in queries))
        oracles = [query.randomizer for query in queries]
        return Nonadaptive(
            queries, lambda tallies: Margins(deal.estimate(oracles, tallies), design, variances)
        )

    def _question(self, epsilon: float, design: Design, columns: Set, cohort: Cohort) -> LocalQuery:
        query = self.parts.crossed(columns)
        if design.characters:
            odd = Odd(query.parts, query.labels, query.spare)
            return LocalQuery(odd, BinaryRR(epsilon), cohort)
        oracle: Randomizer
        if self.randomizer == "best":
            oracle = frequency_randomizer(epsilon, query.domain.size, joint=True)
        else:
            need = replace(self.need, domain=query.domain)
            oracle = need.randomizer(self.randomizer, epsilon, self.name)
        return LocalQuery(query, oracle, cohort)

    def synthetic(self, clients: int, seed: int) -> Population:
        """512 fixed kinds of record: the first column uniform, each further one equal to the one
        before with probability 1/2, else uniform."""
        self.check_without_table("labels and questions", self.labels or self.parts.questions)
        d = len(self.columns)
        words = philox_words(stream_key("marginals", 0), 0, 2 * KINDS * d).reshape(d, 2, KINDS)
        values = (words[:, 0] % np.uint64(self.k)).astype(np.int64)
        for before, after, coin in zip(values, values[1:], words[1:, 1], strict=False):
            after[:] = np.where(coin >> np.uint64(63), before, after)
        kinds = Records(dict(zip(self.columns, values.astype(np.str_), strict=True)))
        return Finite(kinds, np.ones(KINDS), clients, seed)

    @property
    def agreeing_laws(self) -> AgreeingLaws:
        """The step that makes laws of the estimate, at a price in bias; it is never taken by
        default."""
        return AgreeingLaws(self.task.sets, self.task.shape)

    @property
    def cells(self) -> list[str]:
        """The name of every cell of every marginal."""
        sides = [
            [f"{column} = {symbol}" for symbol in side]
            for column, side in zip(self.columns, self.parts.sides, strict=True)
        ]
        cells = (product(*(sides[column] for column in columns)) for columns in self.task.sets)
        return list(map(", ".join, chain.from_iterable(cells)))

    def describe(self, result: Margins) -> PlainData:
        way, count = result.design.name, len(result.design.sets)
        variances = dict(result.variances)
        others = "; ".join(f"{name}: {variance:.4g}" for name, variance in result.variances)
        explanation = (
            f"{way}, {count} in all: n times the variance of a share is at most "
            f"{variances[way]:.4g}, of all ways ({others})"
        )
        choice = {
            "way": way,
            "sets": count,
            "variances": variances,
            "explanation": explanation,
        }
        return {
            "columns": list(self.columns),
            "labels": self.cells,
            "choice": choice,
            **describe_estimate(result.estimate),
        }

    def truth(self, population: Population) -> Floats:
        return np.concatenate(
            [population.law(self.parts.crossed(columns)) for columns in self.task.sets]
        )
