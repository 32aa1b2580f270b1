"""The worst case of the suite: an adversary over a finite class of targets, and many patterns of wrong answers on the learner's hard task."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from local_dp.hardness.adversary import VersionSpaceOracle
from local_dp.interaction import Oracle, run
from local_dp.learners import examples
from local_dp.learners.examples import Task
from local_dp.learners.halfspaces import Perceptron
from local_dp.learners.learner import Classifier, Learner
from local_dp.learners.rules import Literal, Rule, RuleList, Trees
from local_dp.oracles.statistical.oracles import BiasedOracle, ExactOracle, StatisticalQuery
from local_dp.populations.concepts import ConceptClass, juntas, signed_conjunctions, stumps, thresholds
from local_dp.populations.finite import Finite
from local_dp.records import Records

PATTERNS = 16  # random patterns of +-tau on the hard task
REPLAYED = 20  # concepts: up to so many, the adversary's answers are checked by brute force
EDGE = 1e-9
LISTS = 4  # variables of the lists that a perceptron learns as halfspaces


@dataclass(frozen=True)
class Outcome:
    """One run of a learner: how far it misses, and what is known of its oracle."""

    excess: float
    queries: int | None = None
    rounds: int | None = None
    individuals: int | None = None
    charged: float | None = None  # by a curator's account
    lost: float | None = None  # by the curator's sums together
    adversary: str | None = None  # the targets and errors of a worst case
    replayed: tuple[int, int] | None = None  # the best answers, and all, that an adversary gave in a small game
    opposites: float | None = None  # the share of lists whose labels reversed are a list too: 1
    refused: str | None = None


Hostile = Callable[[Finite], Oracle[StatisticalQuery, float]]


def worst_case(task: Task[Any], learner: Learner[Any], hostile: Sequence[Hostile], generator: np.random.Generator) -> Outcome:
    """The largest miss on the hard task, or on a target of the finite class.

    The answers come from the `hostile` oracles, and from PATTERNS patterns of errors of tau."""
    population = task.population(1, 0)
    patterns: list[Hostile] = [lambda there: BiasedOracle(there, scattered(generator))] * PATTERNS
    misses = [task.excess(run(learner.algorithm(), oracle(population)), population) for oracle in (*hostile, *patterns)]
    concepts = finite_class(learner.name)
    if concepts is None:
        return Outcome(max(misses), adversary="patterns")
    if isinstance(learner, Perceptron):
        learner = replace(learner, d=LISTS + 1, gamma=examples.list_halfspace_examples(LISTS)[1])
    oracle = _Replayed(concepts, learner.alpha)
    predicted = run(learner.algorithm(), oracle).predict(concepts.points)
    misses += [float(concepts.weights @ (concepts.row(int(concept)) != predicted)) / concepts.total for concept in oracle.alive]
    opposites = None
    if learner.name == "decision-lists":  # where a list is, the list with all labels reversed is, by its last rule too
        labellings = {concepts.row(concept).tobytes() for concept in range(concepts.size)}
        opposites = sum((-concepts.row(concept)).tobytes() in labellings for concept in range(concepts.size)) / concepts.size
    adversary = f"patterns, {concepts.size} concepts"
    return Outcome(max(misses), adversary=adversary, replayed=(oracle.best, oracle.replayed), opposites=opposites)


class _Replayed(VersionSpaceOracle):
    """Holds each answer of a small game against all others it might have given, expectation by expectation and pair by pair."""

    best = replayed = 0

    def answer_one(self, query: StatisticalQuery) -> float:
        possible = self.alive.tolist()
        answer = super().answer_one(query)
        if self.concepts.size <= REPLAYED:
            exact = {concept: ExactOracle(self.concepts.population(concept, 1, 0)).answer_one(query) for concept in possible}
            legal = all(abs(exact[concept] - answer) <= query.tolerance + EDGE for concept in self.alive.tolist())
            windows = [[c for c in possible if 0 <= exact[c] - start <= 2 * query.tolerance + EDGE] for start in exact.values()]
            self.best += legal and self._far_pairs(self.alive.tolist()) >= max(map(self._far_pairs, windows))
            self.replayed += 1
        return answer

    def _far_pairs(self, concepts: list[int]) -> int:
        """How many pairs differ with probability at least 2 alpha."""
        rows = [self.concepts.row(concept) for concept in concepts]
        least = 2 * self.alpha * self.concepts.total - EDGE
        return sum(float(self.concepts.weights @ (one != other)) >= least for one, other in combinations(rows, 2))


def scattered(generator: np.random.Generator) -> Callable[[float], float]:
    """Each answer too high or too low by the tolerance, at random."""
    return lambda expectation: float(generator.choice((-1.0, 1.0)))


def _class_of(name: str, points: Records, weights: Sequence[int], concepts: Sequence[Classifier]) -> ConceptClass:
    """The distinct labellings of the points by these concepts."""
    rows = np.unique(np.stack([concept.predict(points) for concept in concepts]), axis=0).astype(np.int8)
    return ConceptClass(name, {}, points, np.asarray(weights, dtype=np.int64), len(rows), lambda index: rows[index])


def _lists_as_halfspaces(d: int) -> ConceptClass:
    """Lists of d variables on the points of `list_halfspace_examples`; the alternating ones have the smallest margin."""
    population, _ = examples.list_halfspace_examples(d)
    points = Records({name: column for name, column in population.kinds.columns.items() if name != "y"})
    bits = Records({f"x{place}": (points[f"x{place}"] < 0).view(np.uint8) for place in range(d)})
    rows = np.unique(np.stack([concept.predict(bits) for concept in _all_lists(d)]), axis=0).astype(np.int8)
    weights = np.rint(population.shares * d * 2 ** (d - 1)).astype(np.int64)
    return ConceptClass("lists as halfspaces", {}, points, weights, len(rows), lambda index: rows[index])


def _all_lists(d: int) -> list[RuleList]:
    """Every decision list that uses each of d variables once."""
    rules = [
        [Rule(Literal(place, value), label) for place, value, label in zip(order, values, labels, strict=True)]
        for order in permutations(range(d))
        for values in product((0, 1), repeat=d)
        for labels in product((-1, 1), repeat=d)
    ]
    return [RuleList((*some, Rule(None, last))) for some in rules for last in (-1, 1)]


@cache
def finite_class(learner: str) -> ConceptClass | None:
    """The class from which a worst-case oracle picks the target of the learner called `learner`; None if it has no such class."""
    if learner == "decision-lists":
        weights = np.rint(examples.first_one_law(4) * 4 * 8).astype(np.int64)
        return _class_of("decision-lists", examples.cube(4), weights.tolist(), _all_lists(4))
    if learner == "perceptron":
        return _lists_as_halfspaces(LISTS)
    if learner == "trees":
        return _greedily_learnable(juntas(5, 2))
    named: dict[str, Callable[[], ConceptClass]] = {
        "conjunctions": lambda: signed_conjunctions(5),
        "stumps": lambda: stumps(6),
        "thresholds": lambda: thresholds(4),
        "low-degree": lambda: juntas(5, 2),
    }
    return named[learner]() if learner in named else None


def _greedily_learnable(concepts: ConceptClass) -> ConceptClass:
    """The concepts that the greedy tree learner finds from exact answers: it misses parities with every oracle."""
    learner = Trees(d=5, depth=3)

    def learned(index: int) -> bool:
        population = concepts.population(index, 1, 0)
        return examples.error_rate(run(learner.algorithm(), ExactOracle(population)), population) <= learner.alpha

    kept = [index for index in range(concepts.size) if learned(index)]
    return replace(concepts, name="trees", params={}, size=len(kept), row=lambda index: concepts.row(kept[index]))
