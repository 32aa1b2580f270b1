"""A survey that is repeated on changing records, within one budget for life, and its methods."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Self, TypeAlias

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.longitudinal import (
    Tree,
    Way,
    best_tree,
    lasting_answer,
    longitudinal_clients,
    ways,
)
from local_dp.checks import check_built, check_share, check_whole
from local_dp.domains import Domain
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import nano_epsilon, split_epsilon
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.oracles.local.memory import Memoised
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    PlainData,
    check_different,
    describe_estimates,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.needs import Need
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import OTHER_CHOICES, Launch, spare_of
from local_dp.queries.tables import Category, ChangeInterval, Question, asked_in
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.repeated.change_tracking import ChangeTracking
from local_dp.records import Records
from local_dp.tallies import Estimate, Possible, Steadied, Tally

LABEL = "longitudinal"

Decode: TypeAlias = Callable[[tuple[Tally, ...]], tuple[Estimate, ...]]
Queries: TypeAlias = tuple[LocalQuery, ...]


@dataclass(frozen=True)
class Asking:
    """The question of each wave, the most changes of a value, and a randomizer's name; the share of
    epsilon of one report of a memoised answer."""

    waves: tuple[Category | Question, ...]
    changes: int | None
    first: float
    randomizer: str

    def __post_init__(self) -> None:
        if len({(type(wave), wave.domain) for wave in self.waves}) > 1:
            raise InputError(
                "the waves have different answers; give columns with the same labels, or "
                "questions alone"
            )

    @property
    def k(self) -> int:
        return self.waves[0].domain.size

    @property
    def names(self) -> tuple[str, ...]:
        """The question or the column of each wave."""
        return tuple(
            wave.text if isinstance(wave, Question) else wave.column for wave in self.waves
        )

    @property
    def need(self) -> Need:
        return Need(self.waves[0].domain)

    def oracle(self, epsilon: float) -> Randomizer:
        if self.randomizer == "best":
            return frequency_randomizer(epsilon, self.k)
        return self.need.randomizer(self.randomizer, epsilon, Longitudinal.name)

    def read(self, oracle: Randomizer, tallies: tuple[Tally, ...]) -> tuple[Estimate, ...]:
        """Of each tally the share of yes where there are two symbols, else all shares."""
        estimates = map(self.need.reader(oracle).estimate, tallies)
        return tuple(each.at(1) if self.k == 2 else each for each in estimates)


def _cohorts(clients: int, shares: list[float]) -> list[Cohort]:
    """The clients in proportion to the shares, at least one in each cohort."""
    ends = np.rint(np.cumsum([0.0, *shares]) / sum(shares) * clients).astype(int)
    if clients < len(shares) or (np.diff(ends) < 1).any():
        raise InputError(
            f"{clients} clients are too few for {len(shares)} groups of them; give more"
        )
    return [Cohort(*part) for part in pairwise(ends.tolist())]


def split(asking: Asking, epsilon: float, clients: int) -> tuple[Queries, Decode]:
    """Each client answers in one wave, with all of epsilon."""
    oracle = asking.oracle(epsilon)
    cohorts = _cohorts(clients, [1.0] * len(asking.waves))
    queries = tuple(
        LocalQuery(wave, oracle, cohort) for wave, cohort in zip(asking.waves, cohorts, strict=True)
    )
    return queries, partial(asking.read, oracle)


def fresh(asking: Asking, epsilon: float, clients: int) -> tuple[Queries, Decode]:
    """Each client answers in every wave, with an equal part of epsilon."""
    oracle = asking.oracle(split_epsilon(epsilon, len(asking.waves)))
    queries = tuple(LocalQuery(wave, oracle, Cohort(0, clients)) for wave in asking.waves)
    return queries, partial(asking.read, oracle)


def memoised(asking: Asking, epsilon: float, clients: int) -> tuple[Queries, Decode]:
    """Each client reports its first value: once, or in every wave with a fresh report of one
    lasting answer, under one label and charged once."""
    first, waves = asking.waves[0], len(asking.waves)
    cohort = Cohort(0, clients)
    lasting = asking.oracle(epsilon)
    if asking.first < 1.0 and asking.randomizer == "best":
        lasting = lasting_answer(epsilon, asking.k, asking.first)[1]
    if not lasting.has_second_step:
        query = LocalQuery(first, lasting, cohort)
        return (query,), lambda tallies: asking.read(lasting, tallies) * waves
    query = LocalQuery(first, lasting, cohort, Memoised(LABEL))
    return (query,) * waves, partial(asking.read, lasting)


def tracked(asking: Asking, epsilon: float, clients: int) -> tuple[Queries, Decode]:
    """Each client reports the interval of its c-th change at one level of the tree; its cohort sets
    c and the level."""
    nano_epsilon(epsilon)
    waves = asking.waves
    tree = best_tree(epsilon, len(asking.waves))
    labels = waves[0].labels if isinstance(waves[0], Category) else ()
    changes = min(asking.changes or 0, len(waves))
    intervals = [
        ChangeInterval(asking.names, labels, change, width)
        for change in range(1, changes + 1)
        for width in tree.widths
    ]
    cohorts = _cohorts(clients, tree.cohorts(epsilon).tolist() * changes)
    queries = tuple(
        LocalQuery(query, _tracker(asking, query.domain, epsilon), cohort)
        for query, cohort in zip(intervals, cohorts, strict=True)
    )
    return queries, partial(_changes, tree, queries)


def _tracker(asking: Asking, intervals: Domain, epsilon: float) -> Randomizer:
    """The randomizer of the interval of a change."""
    if asking.randomizer == "best":
        return ChangeTracking(epsilon, intervals=intervals.size - 1)
    need = Need(intervals, joint=True)
    return need.randomizer(asking.randomizer, epsilon, Longitudinal.name)


def _changes(tree: Tree, queries: Queries, tallies: tuple[Tally, ...]) -> tuple[Estimate, ...]:
    """After each wave: odd changes so far, less even ones, each the sum over levels of the
    intervals that make up the waves until then."""
    # each followed by that of `Steadied`
    value = np.zeros((2, tree.waves))
    variance = np.zeros((2, tree.waves))
    for place, (query, tally) in enumerate(zip(queries, tallies, strict=True)):
        change, level = divmod(place, len(tree.widths))
        weights = np.zeros((tree.waves, query.randomizer.domain.size))
        for wave in range(tree.waves):
            part = tree.parts(wave + 1)[level]
            weights[wave, part.start : part.stop] = 1.0
        reader = Need(query.query.domain, joint=True).reader(query.randomizer)
        means, squares = reader.joint(tally, weights).terms
        value += (-1) ** change * means
        variance += squares
    n = sum(tally.answered for tally in tallies)
    return tuple(
        Steadied.of(one[0, 0], one[1, 0], n, one[:, 1])
        for one in np.stack([value, variance]).transpose(2, 0, 1)
    )


METHODS: dict[str, Callable[[Asking, float, int], tuple[Queries, Decode]]] = {
    "split": split,
    "fresh": fresh,
    "memoised": memoised,
    "tracked": tracked,
}


KINDS = 64  # of life in a synthetic population


@dataclass(frozen=True)
class Course:
    """An estimate of each wave, the method taken, and all methods that were possible."""

    estimates: tuple[Estimate, ...]
    way: Way
    ways: tuple[Way, ...]


@dataclass(frozen=True)
class Longitudinal(LocalProtocol[Course]):
    """Estimates the shares of yes, or of each label, at each of several times (waves), within one
    epsilon for all reports of a client.

    `columns` are the questions of the waves: columns with common public `labels`, or yes/no
    questions. Without a table, `times` waves of synthetic lives. `method` best takes the least
    variance by closed form: split (a client answers in one wave), fresh (in all, with epsilon / T
    each) or memoised (one lasting answer, where `changes` is 0). With tracked a client reports the
    interval of one of its `changes`, bit by bit as intervals end. Privacy: all reports of a life
    together are epsilon-locally private, whatever the values, and are charged before the first.
    Utility: variances by `bounds.longitudinal.ways`; more changes than `changes` bias the tracked
    and memoised methods. `tolerance` sets the default number of clients: all waves within it with
    probability 95 %. Cost: a symbol, T of them, or a bit an interval; no question depends on an
    answer.
    """

    name = "longitudinal"
    summary = "Estimates shares at several times within one budget"
    source = (
        "Erlingsson et al. 2014 (memoised), 2019 (changes tracked); Ding, Kulkarni, Yekhanin "
        "2017; Arcolezi et al. 2021, 2023"
    )
    example = "--times 64 --changes 1 --clients 200000"
    columns: tuple[str, ...] = parameter(
        (), "Column or yes/no question of each wave", of_table=True
    )
    labels: tuple[str, ...] = parameter((), "Public labels of all columns")
    missing: str = policy("missing values", category="a label of its own")
    other: str = policy("values that are not listed", category="a label of its own")
    times: int = parameter(8, "Without a table: number of waves")
    changes: int | None = parameter(
        None,
        "Most changes of a person's value; default: any",
        help="Counted from no, or from the first label, on",
    )
    method: str = parameter(
        "best",
        "How waves share the budget; best: of least variance",
        choices=("best", "split", "fresh", "memoised", "tracked"),
    )
    first: float = parameter(
        1.0,
        "Share of epsilon that one memoised report may reveal",
        help="Below 1 each wave has a fresh report",
    )
    randomizer: str = parameter(
        "best",
        "Randomizer of symbols; best: of least variance",
    )
    tolerance: float = target_error(0.05)

    def check(self) -> None:
        check_whole("times", self.times, 2, 1024)
        if self.changes is not None:
            check_whole("changes", self.changes, 0, 1024)
        if self.first != 1.0:
            check_share("first", self.first)
        if self.columns:
            check_different("the waves", self.columns, 2)
        check_built(self.asking)

    @property
    def asking(self) -> Asking:
        columns = self.columns or tuple(f"wave{wave}" for wave in range(1, self.times + 1))
        labels = self.labels or (() if self.columns else ("0", "1"))
        spare = spare_of(self.other, self.missing)
        waves = tuple(asked_in(column, labels, spare) for column in columns)
        return Asking(waves, self.changes, self.first, self.randomizer)

    @property
    def need(self) -> Need:
        return self.asking.need

    def ways(self, epsilon: float) -> tuple[Way, ...]:
        """Every possible method, the best one first."""
        asking = self.asking
        return ways(epsilon, len(asking.waves), asking.k, self.changes, self.first)

    def choice(self, epsilon: float) -> Way:
        """The method of a run. Raises InputError for one that is not possible here."""
        for way in self.ways(epsilon):
            if self.method in ("best", way.name):
                return way
        needs = (
            "changes=0: values that never change"
            if self.method == "memoised"
            else "yes and no, or two labels, and changes of at least 1"
        )
        raise InputError(f"method {self.method} needs {needs}")

    def possible(self, result: Course) -> Possible:
        return Possible(0.0, 1.0, ())

    def clients(self, epsilon: float) -> int:
        asking, way = self.asking, self.choice(epsilon)
        waves, worst = len(asking.waves), way.worst
        if way.name != "tracked":
            usual = METHODS[way.name](replace(asking, randomizer="best"), epsilon, waves)[0][0]
            worst *= self.need.times(self.randomizer, usual.randomizer, self.name)
        return longitudinal_clients(worst, waves, asking.k, self.tolerance, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[Course]:
        way = self.choice(epsilon)
        ways = self.ways(epsilon)
        queries, decode = METHODS[way.name](self.asking, epsilon, clients)
        return Nonadaptive(queries, lambda tallies: Course(decode(tallies), way, ways))

    def synthetic(self, clients: int, seed: int) -> Population:
        """64 kinds of life, equally likely: each begins with no and changes at uniform times, at
        most `changes` times (without a limit: twice)."""
        self.check_without_table("columns", self.columns)
        asking = self.asking
        waves = len(asking.waves)
        most = 2 if self.changes is None else min(self.changes, 3)
        words = philox_words(stream_key("lives", seed), 0, KINDS * (most + 2)).reshape(
            KINDS, most + 2
        )
        # `waves` is never
        times = np.sort(
            (words[:, :most] >> np.uint64(32)) * np.uint64(waves + 1) >> np.uint64(32), axis=1
        )
        changes = (times[:, :, None] <= np.arange(waves, dtype=np.uint64)).sum(axis=1)
        if self.changes == 0:
            changes += (words[:, most] >> np.uint64(63)).astype(np.int64)[:, None]
        values = changes % len(self.labels or "01")
        answers = np.array(self.labels)[values] if self.labels else values.astype(np.uint8)
        kinds = Records({f"wave{wave + 1}": answers[:, wave] for wave in range(waves)})
        return Finite(kinds, np.ones(KINDS), clients, seed)

    def for_table(self, table: Launch) -> Self:
        choice = "missing=category (a label of its own)"
        for wave in self.asking.waves:
            if isinstance(wave, Question):
                table.refuse_open(self.missing, wave, choice)
            else:
                table.refuse_missing(self.missing, wave.column, choice)
                table.refuse_other(self.other, wave.column, self.labels, OTHER_CHOICES)
        return self

    @property
    def estimate_names(self) -> list[str]:
        """The names of the estimates: of each wave, or of each label in it."""
        asking = self.asking
        first = asking.waves[0]
        if asking.k > 2:
            return [f"{name}: {symbol}" for name in asking.names for symbol in first.symbols]
        yes = "" if isinstance(first, Question) else f": {first.labels[1]}"
        return [f"{name}{yes}" for name in asking.names]

    def describe(self, result: Course) -> PlainData:
        choice = {
            "method": result.way.name,
            "explanation": self._reason(result),
            "ways": [asdict(way) for way in result.ways],
        }
        return {
            "labels": self.estimate_names,
            **describe_estimates(result.estimates),
            "choice": choice,
        }

    def _reason(self, result: Course) -> str:
        """Why this method was taken, beside all others."""
        beside = ", ".join(f"{way.name} {way.variance:.3g}" for way in result.ways)
        why = "least of" if result.way == result.ways[0] else "asked for, of"
        reason = (
            f"{result.way.name}: {why} {beside} (n times the variance of a share, on average "
            "over waves)"
        )
        if self.changes == 0:
            return reason
        return f"{reason}; lasting answers are for changes=0, for they show when a value changes"

    def values(self, result: Course) -> Floats:
        return np.concatenate([np.atleast_1d(each.value) for each in result.estimates])

    def truth(self, population: Population) -> Floats:
        """The shares in the distribution that the clients are drawn from, wave by wave: shape
        (waves,) of yes, or (waves k,)."""
        laws = [population.law(wave) for wave in self.asking.waves]
        return np.array([law[1] for law in laws]) if self.asking.k == 2 else np.concatenate(laws)
