"""Runs of the suite: every learner's task under every oracle."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Floats
from local_dp.bounds.curator import enough_records
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.clipped import NoisySum
from local_dp.errors import LocalDPError
from local_dp.experiments.lab.parts import (
    ClientCount,
    Crossing,
    Row,
    Successes,
    Trial,
    cross_check,
    measured_clients,
    seeded,
)
from local_dp.hardness.adversary import VersionSpaceOracle
from local_dp.interaction import Oracle, Watched, run
from local_dp.learners import examples
from local_dp.learners.examples import Task
from local_dp.learners.halfspaces import Perceptron
from local_dp.learners.learner import Learner
from local_dp.learners.rules import Literal, Rule, RuleList, Trees
from local_dp.loss import NANO, Pure, nano_epsilon, split_epsilon
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.oracles.statistical.oracles import (
    BiasedOracle,
    ExactOracle,
    NullOracle,
    RoundedOracle,
    StatisticalQuery,
    against,
    downward,
    upward,
)
from local_dp.populations.concepts import (
    ConceptClass,
    Signs,
    juntas,
    signed_conjunctions,
    stumps,
    thresholds,
)
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.learning.learned import Learned, Lesson
from local_dp.protocols.local_protocol import find_protocol
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.from_sq import enough_clients, local_from_sq

PATTERNS = 16  # random patterns of +-tau on the hard task
REPLAYED = 20  # concepts: up to so many, the adversary's answers are checked by brute force
EDGE = 1e-9
LISTS = 4  # variables of lists, which a perceptron learns as halfspaces
EPSILON = 1.0
BETA = 0.1


@dataclass(frozen=True)
class Outcome:
    """One run of a learner: how far it misses, and what is known of its oracle."""

    excess: float
    queries: int | None = None
    rounds: int | None = None
    charged: float | None = None  # by a curator's account
    lost: float | None = None  # by the curator's sums together
    adversary: str | None = None  # the targets and errors of a worst case
    replayed: tuple[int, int] | None = (
        None  # the best answers, and all, that an adversary gave in a small game
    )


def worst_case(task: Task[Any], learner: Learner[Any], generator: Generator) -> Outcome:
    """The largest miss on the hard task, or on a target of the finite class.

    The answers come from every legal oracle, and from PATTERNS patterns of errors of tau."""
    population = task.population(1, 0)
    makers = [*LEGAL.values(), *[LEGAL["scattered"]] * PATTERNS]
    oracles = (make(population, generator) for make in makers)
    misses = [task.excess(run(learner.algorithm(), each), population) for each in oracles]
    concepts = finite_class(learner.name)
    if concepts is None:
        return Outcome(max(misses), adversary="patterns")
    if isinstance(learner, Perceptron):
        _, gamma = examples.list_halfspace_examples(LISTS)
        learner = replace(learner, d=LISTS + 1, gamma=gamma)
    oracle = _Replay(concepts, learner.alpha)
    labels = run(learner.algorithm(), oracle).predict(concepts.points)
    targets = map(concepts.row, oracle.alive.tolist())
    misses += [float(concepts.weights @ (row != labels)) / concepts.total for row in targets]
    return Outcome(
        max(misses),
        adversary=f"patterns, {concepts.size} concepts",
        replayed=(oracle.best, oracle.answers),
    )


class _Replay(VersionSpaceOracle):
    """Holds each answer of a small game against all others it might have given, expectation by
    expectation and pair by pair."""

    best = answers = 0

    def answer_one(self, query: StatisticalQuery) -> float:
        possible = self.alive.tolist()
        answer = super().answer_one(query)
        if self.concepts.size <= REPLAYED:
            self.best += self._is_best(query, possible, answer)
            self.answers += 1
        return answer

    def _is_best(self, query: StatisticalQuery, possible: list[int], answer: float) -> bool:
        """True if the answer is legal and keeps as many far pairs as any other would."""
        alive, tolerance = self.alive.tolist(), query.tolerance
        exact = {
            concept: ExactOracle(self.concepts.population(concept, 1, 0)).answer_one(query)
            for concept in possible
        }
        legal = all(abs(exact[concept] - answer) <= tolerance + EDGE for concept in alive)
        width = 2 * tolerance + EDGE
        windows = (
            [concept for concept, mean in exact.items() if 0 <= mean - start <= width]
            for start in exact.values()
        )
        return legal and self._far_pairs(alive) >= max(map(self._far_pairs, windows))

    def _far_pairs(self, concepts: list[int]) -> int:
        """How many pairs differ with probability at least 2 alpha."""
        rows = [self.concepts.row(concept) for concept in concepts]
        least = 2 * self.alpha * self.concepts.total - EDGE
        distances = (
            float(self.concepts.weights @ (one != other)) for one, other in combinations(rows, 2)
        )
        return sum(distance >= least for distance in distances)


def _lists(name: str, bits: Records, points: Records, weights: Floats) -> ConceptClass:
    """The distinct labellings of the bits by lists, as a class on the points."""
    labellings = np.stack([concept.predict(bits) for concept in _all_lists(LISTS)])
    rows = np.unique(labellings, axis=0).astype(np.int8)
    whole = np.rint(weights).astype(np.int64)
    return ConceptClass(name, {}, points, whole, len(rows), lambda index: rows[index])


def _lists_on_cube() -> ConceptClass:
    points = examples.cube(LISTS)
    weights = examples.first_one_law(LISTS) * LISTS * 2 ** (LISTS - 1)
    return _lists("decision-lists", points, points, weights)


def _lists_as_halfspaces() -> ConceptClass:
    """On the points of `list_halfspace_examples`; the alternating lists have the smallest
    margin."""
    population, _ = examples.list_halfspace_examples(LISTS)
    columns = population.kinds.columns.items()
    points = Records({name: column for name, column in columns if name != "y"})
    places = [f"x{place}" for place in range(LISTS)]
    bits = Records({place: (points[place] < 0).view(np.uint8) for place in places})
    weights = population.shares * LISTS * 2 ** (LISTS - 1)
    return _lists("lists as halfspaces", bits, points, weights)


def _all_lists(d: int) -> list[RuleList]:
    """Every decision list that uses each of d variables once."""
    literals = [
        list(map(Literal, order, values))
        for order in permutations(range(d))
        for values in product((0, 1), repeat=d)
    ]
    rules = [
        list(map(Rule, each, labels)) for each in literals for labels in product((-1, 1), repeat=d)
    ]
    return [RuleList((*some, Rule(None, last))) for some in rules for last in (-1, 1)]


@cache
def finite_class(learner: str) -> ConceptClass | None:
    """The class from which a worst-case oracle picks the target of the learner called `learner`;
    None if it has no such class."""
    makers: dict[str, tuple[Callable[..., ConceptClass], tuple[int, ...]]] = {
        "conjunctions": (signed_conjunctions, (5,)),
        "stumps": (stumps, (6,)),
        "thresholds": (thresholds, (4,)),
        "low-degree": (juntas, (5, 2)),
        "trees": (_greedily_learnable, (5, 2)),
        "decision-lists": (_lists_on_cube, ()),
        "perceptron": (_lists_as_halfspaces, ()),
    }
    if learner not in makers:
        return None
    make, sizes = makers[learner]
    return make(*sizes)


def _greedily_learnable(d: int, k: int) -> ConceptClass:
    """The juntas that the greedy tree learner finds from exact answers: it misses parities with
    every oracle."""
    learner, concepts = Trees(d=d, depth=3), juntas(d, k)

    def learns(index: int) -> bool:
        population = concepts.population(index, 1, 0)
        tree = run(learner.algorithm(), ExactOracle(population))
        return examples.error_rate(tree, population) <= learner.alpha

    learnable = [index for index in range(concepts.size) if learns(index)]

    def row(index: int) -> Signs:
        return concepts.row(learnable[index])

    return replace(concepts, name="trees", params={}, size=len(learnable), row=row)


def _sample(population: Finite, generator: Generator) -> ExactOracle:
    """The means over one sample of `population.size` individuals, drawn as how many there are of
    each kind."""
    counts = generator.multinomial(population.size, population.shares)
    return ExactOracle(Finite(population.kinds, counts.tolist(), 1, 0))


def _twin(population: Finite, beside: bool) -> Finite:
    """The population with every label reversed (every coordinate, where there is no label), and
    with its own examples beside them if `beside`."""
    columns = population.kinds.columns
    reversed_names = ("y",) if "y" in columns else tuple(columns)
    opposite = {
        name: -values if name in reversed_names else values for name, values in columns.items()
    }
    if not beside:
        return Finite(Records(opposite), population.shares.tolist(), 1, 0)
    both = {name: np.concatenate([values, opposite[name]]) for name, values in columns.items()}
    return Finite(Records(both), np.tile(population.shares, 2).tolist(), 1, 0)


LEGAL: dict[str, Callable[[Finite, Generator], Oracle[StatisticalQuery, float]]] = {
    "exact": lambda population, generator: ExactOracle(population),
    "rounded": lambda population, generator: RoundedOracle(population),
    "too high": lambda population, generator: BiasedOracle(population, upward),
    "too low": lambda population, generator: BiasedOracle(population, downward),
    "towards 0": lambda population, generator: BiasedOracle(population, against),
    "null-seeking": lambda population, generator: NullOracle(
        population, _twin(population, beside=True)
    ),
    "reversing": lambda population, generator: NullOracle(
        population, _twin(population, beside=False)
    ),
    "scattered": lambda population, generator: BiasedOracle(
        population, lambda expectation: float(generator.choice((-1.0, 1.0)))
    ),
}
ORACLES = (*LEGAL, "worst case", "sample", "curator", "local clients")


def records_needed(name: str, learner: Learner[Any]) -> int:
    """How many individuals an oracle needs for answers within the tolerance."""
    if name == "sample":
        # the means over n are all within tau if n >= 2 ln(2 t / beta) / tau^2 (Hoeffding)
        return int(np.ceil(2 * np.log(2 / learner.beta_each(BETA)) / learner.tolerance**2))
    if name == "curator":
        return enough_records(learner.queries, EPSILON, learner.tolerance, BETA)
    return learner.clients(EPSILON, BETA) if name == "local clients" else 1


def outcome(task: Task[Any], oracle: str, slack: float, generator: Generator) -> Outcome:
    """One run of a task's learner, `slack` times its proven tolerance: how far it misses, and what
    it asked. A refused learner has learned nothing."""
    try:
        return _outcome(task, oracle, slack, generator)
    except LocalDPError:
        return Outcome(1.0)


def _outcome(task: Task[Any], oracle: str, slack: float, generator: Generator) -> Outcome:
    learner = replace(task.learner, slack=slack)
    n = records_needed(oracle, learner)
    if oracle == "worst case":
        return worst_case(task, learner, generator)
    population = task.population(n, int(generator.integers(2**63)))
    if oracle == "local clients":
        return _by_clients(task, learner, population, generator)
    if oracle == "curator":
        return _by_curator(task, learner, population, generator)
    sizes: list[int] = []  # queries, by round
    make = _sample if oracle == "sample" else LEGAL[oracle]
    counter = Watched(
        make(population, generator), before=lambda queries: sizes.append(len(queries))
    )
    excess = task.excess(run(learner.algorithm(), counter), population)
    return Outcome(excess, sum(sizes), len(sizes))


def _by_clients(
    task: Task[Any], learner: Learner[Any], population: Finite, generator: Generator
) -> Outcome:
    clients_for = enough_clients(EPSILON, learner.beta_each(BETA))
    oracle = AggregateOracle(population, generator, EPSILON)
    hypothesis = run(local_from_sq(learner.algorithm(), EPSILON, clients_for), oracle)
    excess = task.excess(hypothesis, population)
    return Outcome(excess, rounds=len(oracle.rounds))


def _by_curator(
    task: Task[Any], learner: Learner[Any], population: Finite, generator: Generator
) -> Outcome:
    account, nanos = Account(Pure(nano_epsilon(EPSILON))), list[int]()
    trusted = TrustedOracle(population, account, seeded(int(generator.integers(2**63))))
    ledger: Watched[NoisySum, int] = Watched(
        trusted, before=lambda sums: nanos.extend(each.loss.nano for each in sums)
    )
    epsilon = split_epsilon(EPSILON, learner.queries)
    hypothesis = run(curated_from_sq(learner.algorithm(), epsilon, population.size), ledger)
    excess = task.excess(hypothesis, population)
    charge, loss = account.spent.nano / NANO, sum(nanos) / NANO
    return Outcome(excess, trusted.queries, trusted.rounds, charge, loss)


def learned_within_alpha(protocol: Learned, lesson: Lesson, population: Population) -> bool:
    """True if a local run kept the learner's promise."""
    return protocol.true_error(lesson, population) <= protocol.task.learner.alpha * (1 + EDGE)


def successes_of(protocol: Learned, generator: Generator) -> Successes:
    """For `minimal_clients`: how often the learner keeps its promise on its hard task, with tallies
    drawn from their law."""

    def successes(n: int, runs: int) -> int:
        population, algorithm = protocol.synthetic(n, 1), protocol.algorithm(EPSILON, n)
        oracles = (AggregateOracle(population, generator, EPSILON) for _ in range(runs))
        lessons = (run(algorithm, oracle) for oracle in oracles)
        return sum(learned_within_alpha(protocol, lesson, population) for lesson in lessons)

    return successes


class Fewest(Row):
    """The least number of local clients for success 1 - BETA on the hard task."""

    task: str
    trials: int

    def measure(self, seed: int) -> ClientCount:
        protocol = find_protocol(f"learn-{self.task}")()
        assert isinstance(protocol, Learned)
        successes = successes_of(protocol, default_rng([seed, *self.task.encode()]))
        least = protocol.task.learner.queries
        guess = max(least, protocol.task.learner.clients(EPSILON, BETA) // 8)
        return measured_clients(successes, guess, target=1 - BETA, trials=self.trials, least=least)


# parameters, clients, runs
CHECKED = {
    "stumps": ({"d": "3", "alpha": "0.3"}, 150, 600),
    "logistic-regression": ({"d": "2", "alpha": "0.4"}, 120, 200),
}


class Users(Row):
    """A small point of a learner's local run, client by client and drawn from its law."""

    task: str

    def measure(self, seed: int) -> Crossing:
        settings, clients, users = CHECKED[self.task]

        def trial() -> Trial:
            protocol = find_protocol(f"learn-{self.task}").from_settings(settings)
            assert isinstance(protocol, Learned)
            succeeds = partial(learned_within_alpha, protocol)
            return Trial(
                protocol.algorithm(EPSILON, clients),
                partial(protocol.synthetic, clients),
                succeeds,
                clients,
                EPSILON,
            )

        return cross_check(trial, seed, users=users, laws=4 * users)
