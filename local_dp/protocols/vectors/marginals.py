"""All marginals of so many columns: each client reports a set of columns or one parity, by the
least variance in closed form."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, pairwise, product
from typing import Self

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
    LocalProtocol,
    PlainData,
    describe_estimate,
    parameter,
    policy,
)
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import Columns, Launch
from local_dp.queries.cells import Crossed, Odd
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.randomizers.frequencies.best import NEAR, best_choice
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Estimate, Joint, Steadied, Tally

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
        return tuple(
            columns
            for size in range(1, self.ways + 1)
            for columns in combinations(range(len(self.shape)), size)
        )

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
    known = (
        [_characters(task, epsilon)]
        if set(task.shape) == {2} and len(task.parts) <= MAX_SETS
        else []
    )
    for size in range(task.ways, len(task.shape) + 1):
        covering = covering_sets(task, size)
        if size > task.ways and max(map(len, covering)) < size:
            break  # no larger set has few enough cells
        known.append(_sets(task, epsilon, covering, f"sets of {size}"))
    return known


@lru_cache(maxsize=64)
def best_design(task: Task, epsilon: float) -> tuple[Design, tuple[tuple[str, float], ...]]:
    """The first of `designs` whose variance is within 1 % of the least, and the variance of
    each."""
    known = designs(task, epsilon)
    least = min(design.variance for design in known)
    return next(design for design in known if design.variance <= float(NEAR) * least), tuple(
        (design.name, design.variance) for design in known
    )


def _characters(task: Task, epsilon: float) -> Design:
    """Every parity of at most t columns, in the best shares by the number j of columns.

    A cell is 2^-t sum_A +-chi_A: with shares w_j its variance is at most C^2 4^-t sum_j C(t, j) /
    w_j, least for w_j ~ (C(t, j) / C(d, j))^(1/2).
    """
    d, t = len(task.shape), task.ways
    weights = [math.sqrt(math.comb(t, size) / math.comb(d, size)) for size in range(1, t + 1)]
    whole = sum(math.comb(d, size) * weight for size, weight in enumerate(weights, 1))
    shares = tuple(weights[len(part) - 1] / whole for part in task.parts)
    variance = (
        response_gain(epsilon) ** 2
        / 4**t
        * sum(math.comb(t, size) * whole / weight for size, weight in enumerate(weights, 1))
    )
    return Design("characters", task.parts, shares, True, variance)


def _sets(task: Task, epsilon: float, covering: tuple[Set, ...], name: str) -> Design:
    """Sets by the best frequency oracle for each, with clients in proportion to each set's own
    variance."""
    factors = np.array([_factors(epsilon, task.cells(columns)) for columns in covering])
    cells = np.array([task.cells(columns) for columns in covering], dtype=np.float64)
    rarest = 1 / np.array(
        [
            math.prod(sorted(task.shape[column] for column in columns)[: task.ways])
            for columns in covering
        ]
    )
    alone = factors[:, 0] * cells * rarest * (1 - rarest) + factors[:, 1] * (1 - rarest) ** 2
    shares = alone / alone.sum()
    return Design(
        name,
        covering,
        tuple(shares.tolist()),
        False,
        _worst_cell(
            task, covering, shares, factors * np.stack([cells, np.ones_like(cells)], axis=1)
        ),
    )


@lru_cache(maxsize=4096)
def _factors(epsilon: float, k: int) -> tuple[float, float]:
    best = best_choice(epsilon, k, joint=True)
    return contrast_factors(epsilon, best.order, best.w)


def _worst_cell(task: Task, covering: tuple[Set, ...], shares: Floats, factors: Floats) -> float:
    """n times the largest bound of a cell, where each interaction is averaged over all sets that
    contain it, by their clients.

    With S_A the share of clients whose set contains A, h_A = prod_A (1 - 1/k) / K_{S - A}, and (a,
    b) of a set as by `contrast_factors`, a times its cells: sum_A h_A^2 / prod_A (k - 1) sum_T a_T
    s_T / S_A^2 + sum_T b_T s_T (sum_A h_A / S_A)^2, A the sets inside T and the marginal S.
    """
    member = np.zeros((len(covering), len(task.shape)), dtype=np.bool_)
    for row, columns in zip(member, covering, strict=True):
        row[list(columns)] = True
    holds = {part: member[:, list(part)].all(axis=1) for part in task.parts}
    asked = {part: float(shares @ holds[part]) for part in task.parts}
    spread = {
        part: float((factors[:, 0] * shares) @ holds[part]) / asked[part] ** 2
        for part in task.parts
    }
    peak = factors[:, 1] * shares
    worst = 0.0
    for marginal in task.sets:
        inside = [part for size in range(1, task.ways + 1) for part in combinations(marginal, size)]
        heights = [task.height(part) * task.cells(part) / task.cells(marginal) for part in inside]
        flat = sum(
            height**2 / math.prod(task.shape[column] - 1 for column in part) * spread[part]
            for height, part in zip(heights, inside, strict=True)
        )
        sums = sum(
            (
                height / asked[part] * holds[part]
                for height, part in zip(heights, inside, strict=True)
            ),
            np.zeros(len(covering)),
        )
        worst = max(worst, flat + float(peak @ sums**2))
    return worst


@lru_cache(maxsize=256)
def covering_sets(task: Task, size: int) -> tuple[Set, ...]:
    """Sets of at most `size` columns that hold every set of t columns, none of more than 4,096
    cells: greedy, hence not always the fewest."""
    if size == task.ways:
        return task.sets
    left = set(task.sets)
    used = [0] * len(task.shape)
    covering: list[Set] = []
    for first in task.sets:
        if first not in left:
            continue
        columns = first
        while len(columns) < size and (further := _next(task, columns, left, used)) is not None:
            columns = tuple(sorted((*columns, further)))
        left.difference_update(combinations(columns, task.ways))
        for column in columns:
            used[column] += 1
        covering.append(columns)
    return tuple(covering)


def _next(task: Task, columns: Set, left: set[Set], used: list[int]) -> int | None:
    """The column that completes most marginals not yet covered, ties to the least used; None where
    none completes any."""
    best: tuple[int, int, int] | None = None
    for column in range(len(task.shape)):
        if column in columns or task.cells(columns) * task.shape[column] > MAX_SYMBOLS:
            continue
        gained = sum(
            tuple(sorted((*rest, column))) in left for rest in combinations(columns, task.ways - 1)
        )
        if gained and (best is None or (-gained, used[column], column) < best):
            best = -gained, used[column], column
    return None if best is None else best[2]


Added = tuple[
    Floats, Floats
    # the term of a cohort in the cells of some columns and its variance, each followed by that of
    # `Steadied`: shape (2, m) each
]


@dataclass(frozen=True)
class Dealt:
    """A design with the number of clients of each cohort.

    A marginal is the sum of the interactions of its parts A: the shares of A's cells beyond those
    of fewer columns. Each is averaged over all cohorts whose set contains A, by their clients. That
    is linear, hence unbiased, and the same in every marginal that contains A, so they agree.
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
        return (
            part for size in range(1, self.task.ways + 1) for part in combinations(columns, size)
        )

    def estimate(self, randomizers: Sequence[Randomizer], tallies: Sequence[Tally]) -> Estimate:
        """All cells of all marginals, shape (cells,), the last column of each running fastest.
        Raises InputError where no client of a cohort answered."""
        terms = [
            self._added(place, *one)
            for place, one in enumerate(zip(randomizers, tallies, strict=True))
        ]
        masks = np.array(
            [sum(1 << column for column in columns) for columns in self.design.sets],
            dtype=np.uint64,
        )
        values, variances = zip(
            *(self._marginal(marginal, masks, terms) for marginal in self.task.sets), strict=True
        )
        (value, centre) = np.concatenate(values, axis=1)
        (variance, steady) = np.concatenate(variances, axis=1)
        return Steadied.of(
            value, variance, sum(tally.n for tally in tallies), np.stack([centre, steady])
        )

    def _marginal(
        self, marginal: Set, masks: np.ndarray, terms: Sequence[Mapping[Set, Added]]
    ) -> Added:
        own = np.uint64(sum(1 << column for column in marginal))
        whole = self.task.cells(marginal)
        value = np.full((2, whole), 1 / whole)
        variance = np.zeros((2, whole))
        for place in np.flatnonzero(
            masks & ~own == 0 if self.design.characters else masks & own != 0
        ).tolist():
            met = tuple(column for column in self.design.sets[place] if column in marginal)
            more, its = terms[place][met]
            rest = whole // self.task.cells(met)
            value += self._spread(more, met, marginal) / rest
            variance += self._spread(its, met, marginal) / rest**2
        return value, variance

    def _spread(self, values: Floats, met: Set, marginal: Set) -> Floats:
        """`values`, of some of the marginal's columns, repeated over its cells."""
        shape = [self.task.shape[column] if column in met else 1 for column in marginal]
        return np.broadcast_to(
            values.reshape(2, *shape), [2, *(self.task.shape[column] for column in marginal)]
        ).reshape(2, -1)

    def _added(self, place: int, randomizer: Randomizer, tally: Tally) -> dict[Set, Added]:
        """The terms of one cohort in every marginal, by the columns that its set shares with it."""
        columns = self.design.sets[place]
        if self.design.characters:
            odd = randomizer.estimate(tally)
            assert odd.ends is not None
            one = Joint(
                np.array([1 - 2 * odd.value]),
                np.array([[4 * odd.standard_error**2]]),
                tally.n,
                (1 - 2 * odd.ends[1], 1 - 2 * odd.ends[0]),
            )
            (means, squares) = one.terms
            signs = _product([np.array([1.0, -1.0])] * len(columns))
            return {
                columns: (
                    signs * means / len(signs),
                    np.ones(len(signs)) * squares / len(signs) ** 2,
                )
            }
        if not isinstance(randomizer, FrequencyOracle):
            raise InputError(
                "marginals need an oracle that knows the covariance of its shares, and "
                f"{randomizer.name} does not"
            )
        parts = list(self._parts(columns))
        rows = [self._rows(columns, part, self.clients[place]) for part in parts]
        joint = randomizer.joint(tally, np.concatenate(rows))
        terms = (
            np.split(each, np.cumsum([len(row) for row in rows])[:-1], axis=1)
            for each in joint.terms
        )
        return dict(zip(parts, zip(*terms, strict=True), strict=True))

    def _rows(self, columns: Set, met: Set, clients: int) -> Floats:
        """The weights of a cohort's cells in its terms of `met`, some of its columns: shape (cells
        of met, cells of columns)."""
        total = np.zeros((self.task.cells(met), self.task.cells(columns)))
        for part in self._parts(met):
            total += (
                clients
                / self.asked[part]
                * _product(
                    [_factor(self.task.shape[each], each in met, each in part) for each in columns]
                )
            )
        return total


def _factor(k: int, met: bool, inside: bool) -> Floats:
    """One column's part in an interaction: of its own deviation from uniform, evenly over its
    symbols, or summed out."""
    if not met:
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
class Marginals(LocalProtocol[Margins]):
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
    tolerance: float = parameter(
        0.05,
        "Error in 95 % of runs; sets the default client number",
        unit="share",
    )

    def check(self) -> None:
        symbols(self.k)
        if not self.columns or len(set(self.columns)) < len(self.columns) or len(self.columns) > 64:
            raise InputError(
                f"the columns are {';'.join(self.columns)!r}; give up to 64 different ones, "
                "separated by ';'"
            )
        check_built(self.task)

    @cached_property
    def parts(self) -> Columns:
        return Columns(self.columns, self.labels, self.k, self.missing, self.other)

    @cached_property
    def task(self) -> Task:
        """The number of symbols of each column, and the marginals to estimate."""
        return Task(self.parts.shape, self.ways)

    def variances(self, epsilon: float) -> tuple[Design, tuple[tuple[str, float], ...]]:
        """The best design at this epsilon, and n times the bound on a cell's variance for each."""
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        return best_design(self.task, epsilon)

    @property
    def possible(self) -> tuple[float, float]:
        return 0.0, 1.0

    def clients(self, epsilon: float) -> int:
        cells = sum(map(self.task.cells, self.task.sets))
        design = self.variances(epsilon)[0]
        return max(
            len(design.sets),
            math.ceil(
                design.variance * (normal_quantile(BETA / (2 * cells)) / self.tolerance) ** 2
            ),
        )

    def algorithm(self, epsilon: float, clients: int) -> Local[Margins]:
        design, variances = self.variances(epsilon)
        if clients < len(design.sets):
            raise InputError(
                f"{len(design.sets)} sets of columns need clients of their own; {clients} are too "
                "few"
            )
        spare = clients - len(design.sets)  # every set has one client, and the others by the shares
        ends = [
            0,
            *(
                np.rint(np.cumsum(design.shares) * spare).astype(int)
                + np.arange(1, len(design.sets) + 1)
            ).tolist(),
        ]
        queries = tuple(
            self._question(epsilon, design, columns, Cohort(*part))
            for columns, part in zip(design.sets, pairwise(ends), strict=True)
        )
        dealt = Dealt(self.task, design, tuple(len(query.cohort) for query in queries))
        oracles = [query.randomizer for query in queries]
        return Nonadaptive(
            queries, lambda tallies: Margins(dealt.estimate(oracles, tallies), design, variances)
        )

    def _question(self, epsilon: float, design: Design, columns: Set, cohort: Cohort) -> LocalQuery:
        query = self.query(columns)
        if design.characters:
            return LocalQuery(
                Odd(query.parts, query.labels, query.spare), BinaryRR(epsilon), cohort
            )
        return LocalQuery(
            query, frequency_randomizer(epsilon, self.task.cells(columns), joint=True), cohort
        )

    def synthetic(self, clients: int, seed: int) -> Population:
        """512 fixed kinds of record: the first column uniform, each further one equal to the one
        before with probability 1/2, else uniform."""
        if self.labels or len(self.parts.named) < len(self.columns):
            raise InputError(
                "marginals: labels and questions are about the columns of a table; add --records, "
                "or leave them out"
            )
        words = philox_words(stream_key("marginals", 0), 0, 2 * KINDS * len(self.columns)).reshape(
            len(self.columns), 2, KINDS
        )
        values = (words[:, 0] % np.uint64(self.k)).astype(np.int64)
        for before, after, coin in zip(values, values[1:], words[1:, 1], strict=False):
            after[:] = np.where(coin >> np.uint64(63), before, after)
        return Finite(
            Records(
                {
                    name: column.astype(np.str_)
                    for name, column in zip(self.columns, values, strict=True)
                }
            ),
            [1.0] * KINDS,
            clients,
            seed,
        )

    def for_table(self, table: Launch) -> Self:
        return replace(
            self,
            labels=self.parts.labels_of_table(
                table, self.labels_from_data, "missing=category (a label of its own)"
            ),
        )

    @property
    def agreeing_laws(self) -> AgreeingLaws:
        """The step that makes laws of the estimate, at a price in bias; it is never taken by
        default."""
        return AgreeingLaws(self.task.sets, self.task.shape)

    @property
    def cells(self) -> list[str]:
        """The name of every cell of every marginal."""
        sides = self.parts.sides
        every = (
            (columns, product(*(sides[column] for column in columns))) for columns in self.task.sets
        )
        return [
            ", ".join(
                f"{self.columns[place]} = {name}" for place, name in zip(columns, cell, strict=True)
            )
            for columns, cells in every
            for cell in cells
        ]

    def describe(self, result: Margins) -> PlainData:
        variances = dict(result.variances)
        others = "; ".join(f"{name}: {variance:.4g}" for name, variance in result.variances)
        taken = (
            f"{result.design.name}, {len(result.design.sets)} in all: n times the variance of a "
            f"share is at most {variances[result.design.name]:.4g}"
        )
        choice = {
            "way": result.design.name,
            "sets": len(result.design.sets),
            "variances": variances,
            "explanation": f"{taken}, of all ways ({others})",
        }
        return {
            "columns": list(self.columns),
            "labels": self.cells,
            "choice": choice,
            **describe_estimate(result.estimate),
        }

    def truth(self, population: Population) -> Floats:
        return np.concatenate([population.law(self.query(columns)) for columns in self.task.sets])

    def query(self, columns: Set) -> Crossed:
        return self.parts.crossed(columns)
