"""The ways to ask the same in every wave within one budget: the queries of each, and the estimates of every wave."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from local_dp.bounds.longitudinal import Tree, best_tree, lasting_answer
from local_dp.errors import InputError
from local_dp.loss import nano_epsilon, split_epsilon
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.surveys.shares import frequency_randomizer
from local_dp.queries.tables import Category, Question
from local_dp.queries.waves import ChangeInterval
from local_dp.randomizers.repeated.change_tracking import ChangeTracking
from local_dp.tallies import Estimate, Tally

LABEL = "longitudinal"

Decode: TypeAlias = Callable[[tuple[Tally, ...]], tuple[Estimate, ...]]
Queries: TypeAlias = tuple[LocalQuery, ...]


@dataclass(frozen=True)
class Asking:
    """What each wave asks, how often a value changes at most, and the share of epsilon that one report of a memoised answer may tell."""

    waves: tuple[Category | Question, ...]
    changes: int | None
    first: float

    def __post_init__(self) -> None:
        if len({wave.domain for wave in self.waves}) > 1 or len({type(wave) for wave in self.waves}) > 1:
            raise InputError("the waves ask things with different answers; give columns with the same labels, or questions alone")

    @property
    def k(self) -> int:
        """The symbols of an answer."""
        return self.waves[0].domain.size

    def shown(self, estimate: Estimate) -> Estimate:
        """The share of yes where there are two symbols, else all."""
        return estimate.at(1) if self.k == 2 else estimate


def _cohorts(clients: int, shares: list[float]) -> list[Cohort]:
    """The clients dealt out in proportion to the shares, one at least to each."""
    ends = np.rint(np.cumsum([0.0, *shares]) / sum(shares) * clients).astype(int)
    if clients < len(shares) or (np.diff(ends) < 1).any():
        raise InputError(f"{clients} clients are too few for {len(shares)} groups of them; give more")
    return [Cohort(*part) for part in pairwise(ends.tolist())]


def split(asking: Asking, epsilon: float, clients: int) -> tuple[Queries, Decode]:
    """Each client answers in one wave, with all of epsilon."""
    oracle = frequency_randomizer(epsilon, asking.k)
    cohorts = _cohorts(clients, [1.0] * len(asking.waves))
    queries = tuple(LocalQuery(wave, oracle, cohort) for wave, cohort in zip(asking.waves, cohorts, strict=True))
    return queries, lambda told: tuple(asking.shown(oracle.estimate(tally)) for tally in told)


def fresh(asking: Asking, epsilon: float, clients: int) -> tuple[Queries, Decode]:
    """Each client answers in every wave, with an equal part of epsilon."""
    oracle = frequency_randomizer(split_epsilon(epsilon, len(asking.waves)), asking.k)
    queries = tuple(LocalQuery(wave, oracle, Cohort(0, clients)) for wave in asking.waves)
    return queries, lambda told: tuple(asking.shown(oracle.estimate(tally)) for tally in told)


def memoised(asking: Asking, epsilon: float, clients: int) -> tuple[Queries, Decode]:
    """Each client answers of its first value: once, or in every wave with a fresh report of one lasting answer, under one label and paid once."""
    once = asking.first == 1.0
    oracle = frequency_randomizer(epsilon, asking.k) if once else lasting_answer(epsilon, asking.k, asking.first)[1]
    queries = (LocalQuery(asking.waves[0], oracle, Cohort(0, clients), "" if once else LABEL),) * (1 if once else len(asking.waves))
    return queries, lambda told: tuple(asking.shown(oracle.estimate(tally)) for tally in (told * len(asking.waves))[: len(asking.waves)])


def tracked(asking: Asking, epsilon: float, clients: int) -> tuple[Queries, Decode]:
    """Each client tells in which interval of its level of the tree its c-th change falls; c and the level are those of its cohort."""
    nano_epsilon(epsilon)
    waves, tree = asking.waves, best_tree(epsilon, len(asking.waves))
    names = tuple(wave.text if isinstance(wave, Question) else wave.column for wave in waves)
    labels = waves[0].labels if isinstance(waves[0], Category) else ()
    changes = min(asking.changes or 0, len(waves))
    asked = [ChangeInterval(names, labels, change, width) for change in range(1, changes + 1) for width in tree.widths]
    cohorts = _cohorts(clients, tree.cohorts(epsilon).tolist() * changes)
    queries = tuple(LocalQuery(query, ChangeTracking(epsilon, intervals=query.intervals), cohort) for query, cohort in zip(asked, cohorts, strict=True))
    return queries, lambda told: _tracked(tree, queries, told)


def _tracked(tree: Tree, queries: Queries, told: tuple[Tally, ...]) -> tuple[Estimate, ...]:
    """After each wave: odd changes so far, less even ones, each the sum over levels of the intervals that make up the waves until then."""
    value, variance = np.zeros(tree.waves), np.zeros(tree.waves)
    for place, (query, tally) in enumerate(zip(queries, told, strict=True)):
        change, level = divmod(place, len(tree.widths))
        weights = np.zeros((tree.waves, query.randomizer.domain.size))
        for wave in range(tree.waves):
            part = tree.parts(wave + 1)[level]
            weights[wave, part.start : part.stop] = 1.0
        assert isinstance(query.randomizer, ChangeTracking)
        joint = query.randomizer.joint(tally, weights)
        value += (-1) ** change * joint.value
        variance += np.diagonal(joint.covariance)
    n = sum(tally.answered for tally in told)
    return tuple(Estimate(np.asarray(value[wave]), np.sqrt(np.asarray(max(variance[wave], 0.0))), n) for wave in range(tree.waves))


METHODS: dict[str, Callable[[Asking, float, int], tuple[Queries, Decode]]] = {"split": split, "fresh": fresh, "memoised": memoised, "tracked": tracked}
