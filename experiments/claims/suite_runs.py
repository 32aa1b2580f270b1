"""Runs of the suite: every learner's task under every oracle that can be put behind the same interface."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np

from local_dp.bounds.curator import enough_records
from local_dp.curator.account import Account
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.hardness.adversary import VersionSpaceOracle
from local_dp.interaction import Oracle, run
from local_dp.learners import examples
from local_dp.learners.base import Classifier, Learner
from local_dp.learners.conjunctions import Literal
from local_dp.learners.decision_lists import Rule, RuleList
from local_dp.learners.tasks import Task, tasks
from local_dp.loss import Pure, nano_epsilon, split_epsilon
from local_dp.masked_parity.concept import Concept
from local_dp.masked_parity.midpoint import MidpointOracle, spectrum
from local_dp.masked_parity.statistical import bent_learner, two_round_learner
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.oracles.statistical.exact import ExactOracle
from local_dp.oracles.statistical.hostile import BiasedOracle, RoundedOracle, against, downward, upward
from local_dp.populations.concepts import ConceptClass, juntas, signed_conjunctions, stumps, thresholds
from local_dp.populations.finite import Finite
from local_dp.records import Records
from local_dp.theorems.curated_from_sq import curated_from_sq
from local_dp.theorems.local_from_sq import enough_clients, local_from_sq

EPSILON = 1.0
BETA = 0.1
PATTERNS = 24  # random patterns of +-tau tried as the worst case where a learner's class is not finite
CONTROL_D = 8
CONTROL_TOLERANCE = 0.05  # above 2^(-d/2 - 1): a one-round query for the mask drowns in it

Factory = Callable[[Finite, Learner[Any], np.random.Generator], Oracle[StatisticalQuery, float]]


@dataclass
class Counted:
    """Passes queries on, and counts them and the rounds."""

    inner: Oracle[StatisticalQuery, float]
    queries: int = 0
    rounds: int = 0

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        """The other oracle's answers."""
        self.queries += len(queries)
        self.rounds += 1
        return self.inner.answer(queries)


def samples(learner: Learner[Any]) -> int:
    """n for which the means over one sample are all within the tolerance, for queries fixed beforehand: 2 ln(2 t / beta) / tau^2 (Hoeffding)."""
    return int(np.ceil(2 * np.log(2 / learner.beta_each(BETA)) / learner.tolerance**2))


def _scattered(generator: np.random.Generator) -> Callable[[float], float]:
    return lambda expectation: float(generator.choice((-1.0, 1.0)))


def _sample(population: Finite, learner: Learner[Any], generator: np.random.Generator) -> ExactOracle:
    """The means over one sample of `population.size` individuals, drawn as how many there are of each kind."""
    drawn = generator.multinomial(population.size, population.shares)
    return ExactOracle(Finite(population.kinds, drawn.tolist(), 1, 0))


LEGAL: dict[str, Factory] = {
    "exact": lambda population, learner, generator: ExactOracle(population),
    "rounded": lambda population, learner, generator: RoundedOracle(population),
    "too high": lambda population, learner, generator: BiasedOracle(population, upward),
    "too low": lambda population, learner, generator: BiasedOracle(population, downward),
    "towards 0": lambda population, learner, generator: BiasedOracle(population, against),
    "scattered": lambda population, learner, generator: BiasedOracle(population, _scattered(generator)),
}
ORACLES = (*LEGAL, "worst case", "sample", "curator", "local clients")


def records_needed(name: str, learner: Learner[Any]) -> int:
    """How many individuals an oracle needs for answers within the tolerance."""
    if name == "sample":
        return samples(learner)
    if name == "curator":
        return enough_records(learner.queries, EPSILON, learner.tolerance, BETA)
    return learner.clients(EPSILON, BETA) if name == "local clients" else 1


def outcome(task: Task[Any], oracle: str, slack: float, generator: np.random.Generator) -> dict[str, Any]:
    """One run of a task's learner, `slack` times its proven tolerance: how far it misses, and what it asked."""
    learner = replace(task.learner, slack=slack)
    n = records_needed(oracle, learner)
    if oracle == "worst case":
        return _worst(task, learner, generator)
    population = task.population(n, int(generator.integers(2**63)))
    if oracle == "local clients":
        clients_for = enough_clients(EPSILON, learner.beta_each(BETA))
        local = AggregateOracle(population, generator, EPSILON)
        hypothesis = run(local_from_sq(learner.algorithm(), EPSILON, clients_for), local)
        used = sum(summary.n for summary in local.rounds)
        return {"excess": task.excess(hypothesis, population), "rounds": len(local.rounds), "individuals": used}
    if oracle == "curator":
        trusted = TrustedOracle(population, Account(Pure(nano_epsilon(EPSILON))), Draws(KeyedNoise(int(generator.integers(2**63)))))
        hypothesis = run(curated_from_sq(learner.algorithm(), split_epsilon(EPSILON, learner.queries), n), trusted)
        return {"excess": task.excess(hypothesis, population), "queries": trusted.queries, "rounds": trusted.rounds, "individuals": n}
    counted = Counted((LEGAL | {"sample": _sample})[oracle](population, learner, generator))
    excess = task.excess(run(learner.algorithm(), counted), population)
    return {"excess": excess, "queries": counted.queries, "rounds": counted.rounds, "individuals": n}


def _worst(task: Task[Any], learner: Learner[Any], generator: np.random.Generator) -> dict[str, Any]:
    """Against the version-space adversary over the learner's finite class; without one, the worst of PATTERNS patterns of answers off by tau."""
    concepts = finite_class(learner.name)
    if concepts is None:
        population = task.population(1, 0)
        misses = [
            task.excess(run(learner.algorithm(), BiasedOracle(population, bias)), population)
            for bias in (upward, downward, against, *(_scattered(generator) for _ in range(PATTERNS)))
        ]
        return {"excess": max(misses), "adversary": "patterns"}
    oracle = VersionSpaceOracle(concepts, learner.alpha)
    predicted = run(learner.algorithm(), oracle).predict(concepts.points)
    misses = [float(concepts.weights @ (concepts.row(int(concept)) != predicted)) / concepts.total for concept in oracle.alive]
    return {"excess": max(misses), "adversary": f"{concepts.size} concepts"}


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
    """The class from which a worst-case oracle picks the target, on the points of the learner's task; None if the task has no such class."""
    if learner == "decision-lists":
        weights = np.rint(examples.first_one_law(4) * 4 * 8).astype(np.int64)
        return _class_of("decision-lists", examples.cube(4), weights.tolist(), _all_lists(4))
    if learner == "perceptron":
        return _lists_as_halfspaces(4)
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
    """The concepts that the greedy tree learner finds from exact answers: it misses parities, whoever answers."""
    learner = tasks()["trees"].learner

    def learned(index: int) -> bool:
        population = concepts.population(index, 1, 0)
        return examples.error_rate(run(learner.algorithm(), ExactOracle(population)), population) <= learner.alpha

    kept = [index for index in range(concepts.size) if learned(index)]
    return replace(concepts, name="trees", params={}, size=len(kept), row=lambda index: concepts.row(kept[index]))


def control(name: str, oracle: str, generator: np.random.Generator) -> float:
    """The error of a masked-parity learner, in two rounds or in one, with exact answers or against the oracle that hides the mask: the worse of both masks."""
    r = int(generator.integers(1, 1 << CONTROL_D))
    if name not in ("masked parity, two rounds", "masked parity, one round"):
        raise InputError(f"no control {name!r}")
    algorithm = two_round_learner(CONTROL_D) if name.endswith("two rounds") else bent_learner(CONTROL_D, CONTROL_TOLERANCE)
    errors = []
    for a in (0, 1):
        target = Concept(CONTROL_D, r, a)
        answers = MidpointOracle(CONTROL_D, r, a) if oracle == "worst case" else _ExactMask(CONTROL_D, r, a)
        errors.append(run(algorithm, answers).error(target))
    return max(errors)


class _ExactMask(MidpointOracle):
    """Exact answers for masked parity, by the same transform as the adversary's."""

    def answer_one(self, query: StatisticalQuery) -> float:
        whole = spectrum(query, self.d)
        return float(whole.centre[self.r] + (1 - 2 * self.a) * whole.half[self.r]) / whole.scale
