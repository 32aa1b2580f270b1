"""Runs of the suite: every learner's task under every oracle, and the proven tolerances and numbers of clients, worked out by hand (limits 5.1 and 9)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from local_dp.bounds.curator import enough_records
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.clipped import NoisySum
from local_dp.draws import Draws
from local_dp.errors import InputError, LocalDPError
from local_dp.experiments.claims.local.suite.worst import Outcome, scattered, worst_case
from local_dp.experiments.lab.claim import Check
from local_dp.experiments.lab.cross_check import Crossing, Trial, cross_check
from local_dp.experiments.lab.minimal_clients import Search, measured_clients
from local_dp.experiments.lab.statistics import Positive
from local_dp.interaction import Oracle, Watched, run
from local_dp.learners.examples import Task
from local_dp.learners.learner import Learner
from local_dp.loss import NANO, Pure, nano_epsilon, split_epsilon
from local_dp.masked.population import Concept
from local_dp.masked.statistical import MidpointOracle, bent_learner, spectrum, two_round_learner
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.oracles.statistical.oracles import BiasedOracle, ExactOracle, NullOracle, RoundedOracle, StatisticalQuery, against, downward, upward
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.learning.learned import Learned, Lesson
from local_dp.protocols.local_protocol import find_protocol
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.from_sq import enough_clients, local_from_sq

EPSILON = 1.0
BETA = 0.1
CONTROL_D = 8
CONTROL_TOLERANCE = 0.05  # above 2^(-d/2 - 1): a one-round query for the mask drowns in it


class Factory(Protocol):
    """Makes an oracle for a run of a learner on a population."""

    def __call__(self, population: Finite, learner: Learner[Any], generator: np.random.Generator) -> Oracle[StatisticalQuery, float]: ...


def samples(learner: Learner[Any]) -> int:
    """n for which the means over one sample are all within the tolerance, for queries fixed beforehand: 2 ln(2 t / beta) / tau^2 (Hoeffding)."""
    return int(np.ceil(2 * np.log(2 / learner.beta_each(BETA)) / learner.tolerance**2))


def _sample(population: Finite, learner: Learner[Any], generator: np.random.Generator) -> ExactOracle:
    """The means over one sample of `population.size` individuals, drawn as how many there are of each kind."""
    drawn = generator.multinomial(population.size, population.shares)
    return ExactOracle(Finite(population.kinds, drawn.tolist(), 1, 0))


def _twin(population: Finite, kept: bool) -> Finite:
    """The population with every label reversed (every coordinate, where there is no label), and with its own examples beside them if they are `kept`."""
    columns = population.kinds.columns
    reversed_names = ("y",) if "y" in columns else tuple(columns)
    opposite = {name: -values if name in reversed_names else values for name, values in columns.items()}
    if not kept:
        return Finite(Records(opposite), population.shares.tolist(), 1, 0)
    both = {name: np.concatenate([values, opposite[name]]) for name, values in columns.items()}
    return Finite(Records(both), np.tile(population.shares, 2).tolist(), 1, 0)


LEGAL: dict[str, Factory] = {
    "exact": lambda population, learner, generator: ExactOracle(population),
    "rounded": lambda population, learner, generator: RoundedOracle(population),
    "too high": lambda population, learner, generator: BiasedOracle(population, upward),
    "too low": lambda population, learner, generator: BiasedOracle(population, downward),
    "towards 0": lambda population, learner, generator: BiasedOracle(population, against),
    "null-seeking": lambda population, learner, generator: NullOracle(population, _twin(population, kept=True)),
    "reversing": lambda population, learner, generator: NullOracle(population, _twin(population, kept=False)),
    "scattered": lambda population, learner, generator: BiasedOracle(population, scattered(generator)),
}
ORACLES = (*LEGAL, "worst case", "sample", "curator", "local clients")


def records_needed(name: str, learner: Learner[Any]) -> int:
    """How many individuals an oracle needs for answers within the tolerance."""
    if name == "sample":
        return samples(learner)
    if name == "curator":
        return enough_records(learner.queries, EPSILON, learner.tolerance, BETA)
    return learner.clients(EPSILON, BETA) if name == "local clients" else 1


def outcome(task: Task[Any], oracle: str, slack: float, generator: np.random.Generator) -> Outcome:
    """One run of a task's learner, `slack` times its proven tolerance: how far it misses, and what it asked. A refused learner has learned nothing."""
    try:
        return _outcome(task, oracle, slack, generator)
    except LocalDPError as error:
        return Outcome(1.0, refused=str(error))


def _outcome(task: Task[Any], oracle: str, slack: float, generator: np.random.Generator) -> Outcome:
    learner = replace(task.learner, slack=slack)
    n = records_needed(oracle, learner)
    if oracle == "worst case":
        hostile = [partial(make, learner=learner, generator=generator) for make in LEGAL.values()]
        return worst_case(task, learner, hostile, generator)
    population = task.population(n, int(generator.integers(2**63)))
    if oracle == "local clients":
        clients_for = enough_clients(EPSILON, learner.beta_each(BETA))
        local = AggregateOracle(population, generator, EPSILON)
        hypothesis = run(local_from_sq(learner.algorithm(), EPSILON, clients_for), local)
        used = sum(summary.n for summary in local.rounds)
        return Outcome(task.excess(hypothesis, population), rounds=len(local.rounds), individuals=used)
    if oracle == "curator":
        account, lost = Account(Pure(nano_epsilon(EPSILON))), list[int]()
        trusted = TrustedOracle(population, account, Draws(KeyedNoise(int(generator.integers(2**63)))))
        watched: Watched[NoisySum, int] = Watched(trusted, before=lambda sums: lost.extend(each.loss.nano for each in sums))
        hypothesis = run(curated_from_sq(learner.algorithm(), split_epsilon(EPSILON, learner.queries), n), watched)
        return Outcome(task.excess(hypothesis, population), trusted.queries, trusted.rounds, n, account.spent.nano / NANO, sum(lost) / NANO)
    asked: list[int] = []  # queries, by round
    counted = Watched((LEGAL | {"sample": _sample})[oracle](population, learner, generator), before=lambda queries: asked.append(len(queries)))
    excess = task.excess(run(learner.algorithm(), counted), population)
    return Outcome(excess, sum(asked), len(asked), n)


def learned_within_alpha(protocol: Learned, lesson: Lesson, population: Population) -> bool:
    """Whether a local run kept the learner's promise."""
    return protocol.true_error(lesson, population) <= protocol.task.learner.alpha * (1 + 1e-9)


def fewest_clients(name: str, trials: int, seed: int) -> Search:
    """The least number of local clients for success 1 - BETA on the hard task."""
    protocol = find_protocol(f"learn-{name}")()
    assert isinstance(protocol, Learned)
    generator = np.random.default_rng([seed, *name.encode()])

    def successes(n: int, runs: int) -> int:
        population, algorithm = protocol.synthetic(n, 1), protocol.algorithm(EPSILON, n)
        return sum(learned_within_alpha(protocol, run(algorithm, AggregateOracle(population, generator, EPSILON)), population) for _ in range(runs))

    least = protocol.task.learner.queries
    guess = max(least, protocol.task.learner.clients(EPSILON, BETA) // 8)
    return measured_clients(successes, guess, target=1 - BETA, trials=trials, least=least)


def geometric(figures: Sequence[Positive]) -> Positive:
    """The geometric mean of independent figures, with Welch's degrees of freedom."""
    error = math.hypot(*(figure.error for figure in figures))
    degrees = error**4 / sum(figure.error**4 / figure.degrees for figure in figures)
    return Positive(math.prod(figure.value for figure in figures) ** (1 / len(figures)), error / len(figures), degrees)


CHECKED = {"stumps": ({"d": "3", "alpha": "0.3"}, 150, 600), "logistic-regression": ({"d": "2", "alpha": "0.4"}, 120, 200)}  # parameters, clients, runs


def by_client(name: str, seed: int) -> Crossing:
    """A small point of a learner's local run, client by client and drawn from its law."""
    settings, clients, users = CHECKED[name]

    def trial() -> Trial:
        protocol = find_protocol(f"learn-{name}").from_settings(settings)
        assert isinstance(protocol, Learned)

        def succeeds(lesson: Lesson, population: Population) -> bool:
            return learned_within_alpha(protocol, lesson, population)

        return Trial(protocol.algorithm(EPSILON, clients), lambda drawn: protocol.synthetic(clients, drawn), succeeds, clients, EPSILON)

    return cross_check(trial, seed, users=users, laws=4 * users)


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


TOLERANCES: Final = {
    "conjunctions": 0.1 / 10,  # alpha over 2 d literals, d = 5
    "stumps": 0.1,  # alpha
    "thresholds": 0.1 / 8,  # alpha / (2 bits), 4 bits
    "naive-bayes": 0.1 / 25,  # alpha / (4 d + 1), d = 6
    "low-degree": math.sqrt(0.1 / 16),  # sqrt(alpha / N), N = 1 + 5 + 10
    "linear-regression": 1 / (1 / (math.sqrt(0.02 * 0.3 / 3) / 2) + 3 / 0.3),  # s / (1 + s d / l), s = sqrt(alpha l / d) / (1 + B); d = 3, l = 0.3, B = 1
    "decision-lists": 0.1 / 5,  # alpha / (d + 1), d = 4
    "perceptron": 0.3 * 0.25 / 8,  # gamma alpha / (8 sqrt(d) bound), bound = 1 / sqrt(d)
    "trees": 0.1 / 16,  # alpha / 2^(depth + 1), depth 3
    "k-means": 2 * 0.1 * 0.2 / 3,  # 2 alpha c / 3, c = 0.2
    "logistic-regression": 0.1 / 8,  # alpha / (4 R sqrt(d) bound), R = 2, bound = 1 / sqrt(d)
}


def bounds_check(known: dict[str, Task[Any]]) -> Check:
    """Whether each learner's tolerance, and its sufficient number of local clients t ceil(2 C^2 ln(2 t / beta) / tau^2), are those of its guarantee."""
    square = (math.exp(EPSILON) + 1) ** 2 / (math.exp(EPSILON) - 1) ** 2
    wrong = []
    for name, task in known.items():
        learner, tolerance = task.learner, TOLERANCES[name]
        clients = learner.queries * 2 * square * math.log(2 * learner.queries / BETA) / tolerance**2
        counted = records_needed("local clients", learner)
        if not (math.isclose(learner.tolerance, tolerance) and clients * (1 - 1e-6) <= counted <= clients * (1 + 1e-6) + learner.queries):
            wrong.append(f"{name}: {learner.tolerance:.4g} for {tolerance:.4g}, {counted:,} clients for {clients:,.0f}")
    return Check("Every tolerance and every sufficient bound is what its proof says", not wrong, "; ".join(wrong) or f"{len(known)} learners")
