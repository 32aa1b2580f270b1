"""The statistical-query learners: their guarantee under every legal oracle, what they ask, and
wrong twins that lose it."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from local_dp.errors import RefusedError
from local_dp.experiments.claims.local.suite.runs import LEGAL
from local_dp.interaction import Nonadaptive, Watched, run
from local_dp.learners.examples import TRIED, Task, error_rate, faint_examples, tasks
from local_dp.learners.halfspaces import Halfspace, LogisticRegression, MarginDescent, Perceptron
from local_dp.learners.learner import Learner
from local_dp.learners.moments import (
    KMeans,
    LinearModel,
    LinearRegression,
    LowDegree,
    NaiveBayes,
    Thresholds,
)
from local_dp.learners.rules import Conjunctions, DecisionLists, Stumps, Trees
from local_dp.learners.tabular import HYPOTHESES, Verdict, verdict
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.oracles.statistical.oracles import (
    BiasedOracle,
    ExactOracle,
    StatisticalQuery,
    downward,
    upward,
)
from local_dp.protocols.learning.sgd import LocalSGD
from local_dp.queries.examples import Correlation, Product, SignedLabel
from local_dp.queries.query import QUERIES, STEPS, written
from local_dp.queries.vectors import Descent, Mistake, NearestCentre
from local_dp.records import Records
from local_dp.theorems.from_sq import enough_clients, local_from_sq
from tests.support.adversaries import twins
from tests.support.inputs.refusals import refuse
from tests.support.long import short

TASKS = tasks()
EDGE = 1e-9  # rounding at the edge of a tolerance


@pytest.mark.parametrize(
    "name",
    short(
        ["conjunctions", "stumps", "linear-regression", "naive-bayes"],
        lambda name: name != "naive-bayes",
    ),
)
def test_every_pattern_of_wrong_answers_reaches_alpha(name: str) -> None:
    """For the learners of at most 13 queries, all patterns of answers too high or too low by the
    tolerance."""
    task = TASKS[name]
    population = task.population(1, 0)
    algorithm = task.learner.algorithm()
    assert isinstance(algorithm, Nonadaptive)
    exact = np.array(ExactOracle(population).answer(algorithm.queries))
    for signs in product((-1.0, 1.0), repeat=len(exact)):
        hypothesis = algorithm.decode(
            tuple((exact + task.learner.tolerance * np.array(signs)).tolist())
        )
        assert task.excess(hypothesis, population) <= task.learner.alpha + EDGE


@pytest.mark.parametrize("name", TASKS)
def test_local_clients_reach_alpha(name: str) -> None:
    """With the bound's number of clients (drawn in aggregate) the learner is within alpha: it fails
    with probability beta = 1e-6 at most."""
    task, beta = TASKS[name], 1e-6
    learner = task.learner
    n = learner.clients(1.0, beta)
    population = task.population(n, 1)
    algorithm = local_from_sq(
        learner.algorithm(), 1.0, enough_clients(1.0, learner.beta_each(beta))
    )
    oracle = AggregateOracle(population, np.random.default_rng(1), 1.0)
    assert task.excess(run(algorithm, oracle), population) <= learner.alpha + EDGE
    assert sum(summary.n for summary in oracle.rounds) <= n


def test_local_sgd_client_count() -> None:
    """The number of clients for an expected error makes the bound that error; too few rounds are
    refused."""
    learner = LocalSGD(d=10, gamma=0.2, alpha=0.1, rounds=5000, told="one-bit-mean")
    n = learner.clients(0.5)
    assert n == pytest.approx(10 / math.tanh(0.25) ** 2 / 2e-4)
    assert learner.gradient_norm(0.5, n) / 5000**0.5 == pytest.approx(0.1, rel=1e-4)
    refuse(
        ("give more than", lambda: LocalSGD(d=10, gamma=0.2, alpha=0.1, rounds=100).clients(1.0))
    )


def test_learner_query_values() -> None:
    records = Records(
        {
            "a": np.array([1, 0]),
            "b": np.array([1, 1]),
            "u": np.array([0.5, -1.0]),
            "y": np.array([1, -1]),
        }
    )
    values = {
        Correlation(("a", "b"), "y"): [1, 1], Correlation((), "y"): [1, 0],
        Correlation(("a",)): [0, 1], SignedLabel("a == 0", "y"): [1, 0],
        Product(("u", "u")): [5 << 13, 1 << 16], Mistake(("u",), "y", (1.0,)): [0, 0],
        Descent("hinge", ("u",), "y", (1.0,), 0): [3 << 14, 1 << 15],
        NearestCentre(("u",), written([-1, 1]), 1): [1, 0],
    }  # fmt: skip
    assert {query: query(records).tolist() for query in values} == values


LEARNER = MarginDescent(d=4, steps=12, alpha=0.2)
POPULATION = faint_examples(4, 0.3)


def weights(halfspace: Halfspace) -> np.ndarray:
    return np.array(halfspace.weights)


def strays(learner: MarginDescent) -> float:
    """How far wrong answers within the tolerance carry the weights, at most of those tried, in
    units of alpha."""
    exact = weights(run(learner.algorithm(), ExactOracle(POPULATION)))
    biases: list[Callable[[float], float]] = [
        upward,
        downward,
        lambda value: 1.0 if value > 0 else -1.0,
    ]
    results = [run(learner.algorithm(), BiasedOracle(POPULATION, bias)) for bias in biases]
    return max(float(np.linalg.norm(weights(each) - exact)) for each in results) / learner.alpha


def test_legal_answers_move_the_weights_by_alpha_at_most() -> None:
    """Under biased answers the weights stay within alpha of the exact ones; with eight times the
    tolerance they do not."""
    assert strays(LEARNER) <= 1
    assert strays(replace(LEARNER, slack=8.0)) > 1


def test_fewer_clients_take_fewer_steps() -> None:
    """A quarter of the clients take half the steps, few take one, and fewer than coordinates are
    refused."""
    clients = LEARNER.clients(1.0, 0.05)
    assert LEARNER.affordable(1.0, clients) == LEARNER
    assert LEARNER.affordable(1.0, 10 * clients) == LEARNER
    assert LEARNER.affordable(1.0, clients // 4).steps in (5, 6)
    assert LEARNER.affordable(1.0, 4).steps == 1
    refuse(("too few", lambda: LEARNER.affordable(1.0, 3)))


# multiples of the tolerance that lose; 6 for the others
BEYOND = {"perceptron": 16.0, "trees": 16.0}


def share_of_alpha(task: Task[Any], learner: Learner[Any], oracle: str = "exact") -> float:
    """How far a learner misses on the task, in units of alpha. Its queries are data, and no more of
    them and of rounds than its formulas say."""
    population = task.population(1, 0)
    rounds = list[tuple[StatisticalQuery, ...]]()
    answers = Watched(LEGAL[oracle](population, np.random.default_rng(3)), before=rounds.append)
    excess = task.excess(run(learner.algorithm(), answers), population) / task.learner.alpha
    assert (sum(map(len, rounds)) <= learner.queries, len(rounds) <= learner.rounds) == (True, True)
    for query in {query.query for queries in rounds[:3] for query in queries[:3]}:
        assert QUERIES.build(query.name, query.params()) == query
    return excess


SIZES: list[Learner[Any]] = [
    Conjunctions(d=2, alpha=0.3), Conjunctions(d=9, monotone=True), Stumps(d=2, alpha=0.3),
    Thresholds(bits=1, alpha=0.3),
    NaiveBayes(d=3, alpha=0.05), LowDegree(d=6, degree=3),
    LinearRegression(d=2, alpha=0.05, least_eigenvalue=0.5, radius=0.5),
    DecisionLists(d=3), Perceptron(d=2, gamma=0.7), Trees(d=2, depth=1, alpha=0.2),
    KMeans(least_share=0.3, alpha=0.2, rounds_asked=3),
]  # fmt: skip


@pytest.mark.parametrize("learner", [*(task.learner for task in TASKS.values()), *SIZES], ids=repr)
def test_the_right_learner_keeps_its_promise(learner: Learner[Any]) -> None:
    """On its hard task every learner is within alpha at the proven tolerance, under every legal
    oracle: exact, rounded, biased, null-seeking; at other sizes too."""
    task = TRIED[learner.name][1](learner)
    assert {
        oracle: share
        for oracle in LEGAL
        if (share := share_of_alpha(task, learner, oracle)) > 1 + EDGE
    } == {}


@pytest.mark.parametrize("name", TASKS)
def test_a_multiple_of_the_tolerance_loses(name: str) -> None:
    """The task is at the edge: with 6 times the proven tolerance (16 for trees and the perceptron)
    a legal oracle defeats the learner."""
    task = TASKS[name]
    loose = replace(task.learner, slack=BEYOND.get(name, 6.0))
    assert max(share_of_alpha(task, loose, oracle) for oracle in LEGAL) > 1 + EDGE


@pytest.mark.parametrize(("name", "twin"), [
    ("conjunctions", twins.LaxConjunctions(d=5)), ("stumps", twins.PositiveStumps(d=6)),
    ("thresholds", twins.ShiftedThresholds(bits=4)),
    ("naive-bayes", twins.EvenBayes(d=6)), ("low-degree", LowDegree(d=5, degree=1)),
    ("linear-regression", twins.Uncorrelated(d=3, alpha=0.02, least_eigenvalue=0.3)),
    ("decision-lists", twins.LaxLists(d=4)),
    ("perceptron", twins.HastyPerceptron(d=4, gamma=0.3, alpha=0.25)),
    ("perceptron", twins.ContentPerceptron(d=4, gamma=0.3, alpha=0.25)),
    ("trees", Trees(d=5, depth=2)), ("k-means", KMeans(rounds_asked=1)),
    ("k-means", twins.WholeMeans()),
    ("logistic-regression", LogisticRegression(d=4, radius=0.02)),
], ids=lambda value: value if isinstance(value, str) else type(value).__name__)  # fmt: skip
def test_a_wrong_twin_is_caught(name: str, twin: Learner[Any]) -> None:
    """A threshold six times too lax, a prior or a moment forgotten, a round or a degree too few:
    each misses alpha under some legal oracle."""
    assert type(twin.algorithm()) is type(TASKS[name].learner.algorithm())
    shares = {oracle: share_of_alpha(TASKS[name], twin, oracle) for oracle in LEGAL}
    assert max(shares.values()) > 1 + EDGE, shares
    assert all(map(math.isfinite, shares.values()))


@pytest.mark.parametrize("name", TASKS)
def test_a_verdict_is_the_hypothesiss_own(name: str) -> None:
    """For every learner, the share of right verdicts is one minus its hypothesis's error, exactly;
    of a model or centres, the mean square error in [0, 1]."""
    population = TASKS[name].population(1, 0)
    hypothesis = run(TASKS[name].learner.algorithm(), ExactOracle(population))
    query, kinds = verdict(hypothesis), population.kinds
    assert QUERIES.build(query.name, query.params()) == query
    assert query.judged == hypothesis
    law = population.law(query)
    if query.classifies:
        assert law[1] == pytest.approx(1 - error_rate(hypothesis, population))
        return
    if isinstance(hypothesis, LinearModel):
        errors = (np.clip(hypothesis.predict(kinds), -1, 1) - kinds["y"]) ** 2 / 4
    else:
        centres = np.array(hypothesis.points)
        points = np.stack([kinds["x0"], kinds["x1"]])[:, None, :] - centres.T[:, :, None]
        errors = (points**2).sum(axis=0).min(axis=0) / 8
    mean = law @ np.arange(STEPS + 1) / STEPS
    assert mean == pytest.approx(population.shares @ errors, abs=1 / STEPS)


def test_every_hypothesis_has_a_verdict() -> None:
    names = {
        type(run(task.learner.algorithm(), ExactOracle(task.population(1, 0)))).__name__
        for task in TASKS.values()
    }
    assert names == HYPOTHESES.keys()


@pytest.mark.parametrize(("kind", "hypothesis"), [
    ("Halfspace", '{"weights": []}'), ("Halfspace", '{"weights": ["1"]}'),
    ("Halfspace", '{"weights": [NaN]}'), ("Halfspace", ""), ("Halfspace", "[" * 10**5),
    ("Polynomial", '{"sets": [[0]], "coefficients": [1, 2]}'),
    ("BayesRule", '{"prior": 0.5, "yes": [[0.5], [0.5, 0.5]]}'), ("Centres", '{"points": []}'),
    ("Centres", '{"points": [[1], [1, 2]]}'), ("Tree", '{"leaves": 3}'),
    ("LinearModel", '{"weights": [Infinity]}'), ("Oracle", "{}"), ("Halfspace", 3),
])  # fmt: skip
def test_what_is_no_hypothesis_is_refused_with_a_code(kind: str, hypothesis: Any) -> None:
    with pytest.raises(RefusedError):
        QUERIES.build("verdict", {"kind": kind, "hypothesis": hypothesis})


def test_a_tie_is_a_no() -> None:
    """A score of exactly 0 predicts -1 on the wire as at the server."""
    query = Verdict("Halfspace", json.dumps({"weights": [1.0, -1.0]}))
    records = Records(
        {"x0": np.array([0.5, 0.5]), "x1": np.array([0.5, 0.5]), "y": np.array([1.0, -1.0])}
    )
    assert query.values(records).tolist() == [0, 1]


# worked out by hand (limits 5.1 and 9), for the catalogue's parameters
BY_HAND = {
    "conjunctions": 0.1 / 10,  # alpha over 2 d literals, d = 5
    "stumps": 0.1,  # alpha
    "thresholds": 0.1 / 8,  # alpha / (2 bits), 4 bits
    "naive-bayes": 0.1 / 25,  # alpha / (4 d + 1), d = 6
    "low-degree": math.sqrt(0.1 / 16),  # sqrt(alpha / N), N = 1 + 5 + 10
    # s / (1 + s d / l), s = sqrt(alpha l / d) / (1 + B); d = 3, l = 0.3, B = 1
    "linear-regression": 1 / (1 / (math.sqrt(0.02 * 0.3 / 3) / 2) + 3 / 0.3),
    "decision-lists": 0.1 / 5,  # alpha / (d + 1), d = 4
    "perceptron": 0.3 * 0.25 / 8,  # gamma alpha / (8 sqrt(d) bound), bound = 1 / sqrt(d)
    "trees": 0.1 / 16,  # alpha / 2^(depth + 1), depth 3
    "k-means": 2 * 0.1 * 0.2 / 3,  # 2 alpha c / 3, c = 0.2
    "logistic-regression": 0.1 / 8,  # alpha / (4 R sqrt(d) bound), R = 2, bound = 1 / sqrt(d)
}


@pytest.mark.parametrize("name", TASKS)
def test_tolerance_and_clients_are_those_of_the_proof(name: str) -> None:
    """The tolerance is the guarantee's; t ceil(2 C^2 ln(2 t / beta) / tau^2) clients suffice."""
    learner, epsilon, beta = TASKS[name].learner, 1.0, 0.1
    assert learner.tolerance == pytest.approx(BY_HAND[name])
    gain, t = 1 / math.tanh(epsilon / 2), learner.queries
    clients = t * 2 * gain**2 * math.log(2 * t / beta) / BY_HAND[name] ** 2
    assert clients * (1 - 1e-6) <= learner.clients(epsilon, beta) <= clients * (1 + 1e-6) + t
