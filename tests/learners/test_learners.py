"""The statistical-query learners: their guarantee under exact, wrong-by-tau and local answers, and what they ask."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from local_dp.domains import Parameter
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive, run
from local_dp.learners import examples
from local_dp.learners.fourier import LowDegree
from local_dp.learners.halfspaces import Halfspace, Perceptron
from local_dp.learners.learner import Learner
from local_dp.learners.moments import BayesRule, NaiveBayes, dyadic, prefix
from local_dp.learners.rules import Conjunctions, DecisionLists, Literal, Rule, RuleList, Stumps
from local_dp.learners.tasks import alternating_list, tasks
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalPlay, StatisticalQuery, StatisticalRounds
from local_dp.populations.population import Population
from local_dp.protocols.learning.sgd import LocalSGD
from local_dp.queries.examples import Correlation, Product, SignedLabel
from local_dp.queries.numbers import written
from local_dp.queries.registry import QUERIES
from local_dp.queries.vectors import Descent, Mistake, NearestCentre
from local_dp.records import Records
from local_dp.theorems.local_from_sq import enough_clients, local_from_sq

TASKS = tasks()
EDGE = 1e-9  # rounding at the edge of a tolerance


class Wrong(ExactOracle):
    """Answers off by exactly `sign` tolerances, or by a sign drawn for each query."""

    def __init__(self, population: Population, sign: float | np.random.Generator) -> None:
        super().__init__(population)
        self.sign = sign

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        """Within the tolerance of the expectation, and no nearer."""
        signs = self.sign.choice([-1.0, 1.0], len(queries)) if isinstance(self.sign, np.random.Generator) else [self.sign] * len(queries)
        return tuple(answer + sign * query.tolerance for answer, sign, query in zip(super().answer(queries), signs, queries, strict=True))


@pytest.mark.parametrize("name", TASKS)
def test_exact_answers_reach_alpha(name: str) -> None:
    """With exact answers every learner is within alpha, in no more queries and rounds than its formula says."""
    task = TASKS[name]
    population = task.population(1, 0)
    oracle = ExactOracle(population)
    assert task.excess(run(task.learner.algorithm(), oracle), population) <= task.learner.alpha + EDGE
    assert oracle.queries <= task.learner.queries
    assert oracle.rounds <= task.learner.rounds


@pytest.mark.parametrize("name", TASKS)
def test_wrong_answers_within_the_tolerance_reach_alpha(name: str) -> None:
    """The guarantee holds whatever the answers within the tolerance: all too high, all too low, and twenty patterns of both."""
    task = TASKS[name]
    population = task.population(1, 0)
    patterns: list[float | np.random.Generator] = [-1.0, 1.0, *map(np.random.default_rng, range(20))]
    for pattern in patterns:
        hypothesis = run(task.learner.algorithm(), Wrong(population, pattern))
        assert task.excess(hypothesis, population) <= task.learner.alpha + EDGE


@pytest.mark.parametrize("name", ["conjunctions", "stumps", "linear-regression", "naive-bayes"])
def test_every_pattern_of_wrong_answers_reaches_alpha(name: str) -> None:
    """For the learners of at most 13 queries, all patterns of answers too high or too low by the tolerance."""
    task = TASKS[name]
    population = task.population(1, 0)
    algorithm = task.learner.algorithm()
    assert isinstance(algorithm, Nonadaptive)
    exact = np.array(ExactOracle(population).answer(algorithm.queries))
    for signs in product((-1.0, 1.0), repeat=len(exact)):
        hypothesis = algorithm.decode(tuple((exact + task.learner.tolerance * np.array(signs)).tolist()))
        assert task.excess(hypothesis, population) <= task.learner.alpha + EDGE


@pytest.mark.parametrize("name", TASKS)
def test_a_useless_oracle_is_noticed(name: str) -> None:
    """The measure is not satisfied by anything: answers that are all 0 make each learner miss alpha."""

    class Silent(ExactOracle):
        def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
            return (0.0,) * len(queries)

    task = TASKS[name]
    learner = replace(task.learner, alpha=0.05)
    population = task.population(1, 0)
    assert task.excess(run(learner.algorithm(), Silent(population)), population) > learner.alpha


@pytest.mark.parametrize("name", TASKS)
def test_local_clients_reach_alpha(name: str) -> None:
    """With the bound's number of clients (drawn in aggregate) the learner is within alpha: it fails with probability beta = 1e-6 at most."""
    task, beta = TASKS[name], 1e-6
    learner = task.learner
    n = learner.clients(1.0, beta)
    population = task.population(n, 1)
    algorithm = local_from_sq(learner.algorithm(), 1.0, enough_clients(1.0, learner.beta_each(beta)))
    oracle = AggregateOracle(population, np.random.default_rng(1), 1.0)
    assert task.excess(run(algorithm, oracle), population) <= learner.alpha + EDGE
    assert sum(summary.n for summary in oracle.rounds) <= n


@pytest.mark.parametrize("name", ["stumps", "low-degree"])
def test_simulated_clients_reach_alpha(name: str) -> None:
    """The same with every client simulated, where the bound asks for less than a million."""
    task, beta = TASKS[name], 1e-6
    learner = task.learner
    population = task.population(learner.clients(1.0, beta), 2)
    assert population.size < 1_000_000
    algorithm = local_from_sq(learner.algorithm(), 1.0, enough_clients(1.0, learner.beta_each(beta)))
    oracle = PopulationOracle(population, KeyedNoise(3), 3, 1.0)
    assert task.excess(run(algorithm, oracle), population) <= learner.alpha + EDGE
    assert oracle.ledger.max_spent <= 1.0


def test_models_follow_from_types() -> None:
    """NASQ or SQ is read off the type of `algorithm`, and is what `algorithm` returns."""
    models = {name: task.learner.model() for name, task in TASKS.items()}
    assert sorted(name for name, model in models.items() if model == "NASQ") == [
        "conjunctions", "linear-regression", "low-degree", "naive-bayes", "stumps", "thresholds",
    ]  # fmt: skip
    for name, task in TASKS.items():
        assert isinstance(task.learner.algorithm(), Nonadaptive if models[name] == "NASQ" else Adaptive)


def test_client_counts_of_the_formulas() -> None:
    """Client counts are those of t 2 C^2 ln(2t/beta) / tau^2 for the textbook sizes: conjunctions, stumps, naive Bayes and decision lists."""
    assert Conjunctions(d=10).clients(1.0, 0.1) == pytest.approx(4.5e7, rel=0.01)
    assert Conjunctions(d=10, monotone=True).clients(1.0, 0.1) == pytest.approx(5.0e6, rel=0.01)
    assert Stumps(d=10).clients(1.0, 0.1) == pytest.approx(5.0e4, rel=0.01)
    assert NaiveBayes(d=6).clients(1.0, 0.1) == pytest.approx(13 * 2 * 2.164**2 * math.log(260) / (0.1 / 25) ** 2, rel=0.01)
    assert DecisionLists(d=4).clients(1.0, 0.1) == pytest.approx(50 * 2 * 2.164**2 * math.log(1000) / 0.02**2, rel=0.01)


def test_low_degree_on_average() -> None:
    """N^2 C^2 / alpha clients, 1.5e5 for degree 2 in 10 variables, make the mean error at most alpha; a hundredth of them do not."""
    assert LowDegree(d=10).average_clients(1.0) == pytest.approx(1.5e5, rel=0.03)
    task, learner = TASKS["low-degree"], LowDegree(d=5)

    def mean_error(n: int) -> float:
        generator = np.random.default_rng(9)
        local = local_from_sq(learner.algorithm(), 1.0, lambda query: n // learner.queries)
        population = task.population(n, 0)
        return float(np.mean([task.excess(run(local, AggregateOracle(population, generator, 1.0)), population) for _ in range(50)]))

    assert mean_error(learner.average_clients(1.0)) <= learner.alpha
    assert mean_error(learner.average_clients(1.0) // 100) > learner.alpha


def test_every_alternating_list_is_learned() -> None:
    """Decision lists of 2 to 8 variables with every rule equally decisive, exact answers: no error at all beyond alpha, at most d + 1 rounds."""
    for d in range(2, 9):
        population = examples.labelled(examples.cube(d), examples.first_one_law(d), alternating_list(d))
        oracle = ExactOracle(population)
        learned = run(DecisionLists(d=d).algorithm(), oracle)
        assert examples.error_rate(learned, population) <= 0.1
        assert oracle.rounds <= d + 1


def test_random_lists_survive_random_answers() -> None:
    """Thirty random lists of 5 variables under random products laws, answers off by tau: error at most alpha each time."""
    generator = np.random.default_rng(7)
    learner = DecisionLists(d=5)
    for _ in range(30):
        order = generator.permutation(5)
        target = RuleList(tuple(Rule(Literal(int(place), int(generator.integers(2))), int(generator.choice([-1, 1]))) for place in order))
        population = examples.labelled(examples.cube(5), examples.product_law(generator.uniform(0.1, 0.9, 5).tolist()), target)
        assert examples.error_rate(run(learner.algorithm(), Wrong(population, generator)), population) <= learner.alpha + EDGE


def test_naive_bayes_needs_its_tolerance() -> None:
    """At tolerance alpha, which suffices for sampled answers, an oracle that pulls rare features towards the wrong label makes it lose 2 alpha or more."""
    yes = ((0.02,) * 8, (0.1,) * 8)
    population = examples.naive_bayes_examples(0.5, yes)
    best = examples.error_rate(BayesRule(0.5, yes), population)

    class Pulling(ExactOracle):
        def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
            pulls = [-1 if str(query.query.params()["text"]).endswith("y == 1") else 1 for query in queries]
            return tuple(answer + pull * query.tolerance for answer, pull, query in zip(super().answer(queries), pulls, queries, strict=True))

    learner = NaiveBayes(d=8, alpha=0.1)
    assert examples.error_rate(run(learner.algorithm(), Pulling(population)), population) - best <= learner.alpha
    loose = replace(learner, slack=learner.alpha / learner.proven)
    assert examples.error_rate(run(loose.algorithm(), Pulling(population)), population) - best >= 2 * learner.alpha


def test_perceptron_moves_are_bounded() -> None:
    """Over twenty random margins and answers off by tau, the perceptron stops by itself within 4.6 / gamma^2 + 1 rounds and errs at most alpha."""
    generator = np.random.default_rng(11)
    for _ in range(20):
        weights = generator.integers(1, 5, 5).astype(float).tolist()
        gamma = float(generator.choice([0.2, 0.4, 0.6]))
        learner = Perceptron(d=5, gamma=gamma)
        population = examples.halfspace_examples(weights, gamma)
        oracle = Wrong(population, generator)
        assert examples.error_rate(run(learner.algorithm(), oracle), population) <= learner.alpha
        assert oracle.rounds < learner.rounds


def test_local_sgd_meets_its_bound_on_average() -> None:
    """The mean error of eight runs of private descent at margin 0.5 is within its bound, and worse at a hundredth of epsilon."""
    learner, n = LocalSGD(d=8, gamma=0.5, rounds=40), 20_000
    errors: dict[float, list[float]] = {1.0: [], 0.01: []}
    for epsilon, seen in errors.items():
        for seed in range(8):
            population = examples.halfspace_examples([1, 2, 1, 1, 3, 1, 1, 2], 0.5, n, seed)
            result = run(learner.algorithm(epsilon, n), PopulationOracle(population, KeyedNoise(seed), seed, epsilon))
            seen.append(examples.error_rate(result, population))
    assert np.mean(errors[1.0]) <= learner.expected_error(1.0, n)
    assert np.mean(errors[0.01]) > np.mean(errors[1.0])


def test_local_sgd_client_count() -> None:
    """The number of clients for an expected error makes the bound that error; too few rounds are refused."""
    learner = LocalSGD(d=10, gamma=0.2, alpha=0.1, rounds=5000)
    n = learner.clients(1.0)
    assert learner.expected_error(1.0, n) == pytest.approx(0.1, rel=1e-4)
    with pytest.raises(InputError, match="give more than"):
        LocalSGD(d=10, gamma=0.2, alpha=0.1, rounds=100).clients(1.0)


class Scripted:
    """Answers from a seed alone, whatever is asked."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        return tuple(self.generator.choice((-1.0, -0.4, 0.3, 1.0), len(queries)).tolist())


def forgets(learner: Learner[Any]) -> bool:
    """Whether one algorithm, run three times, gives for the same answers the same hypothesis, and another one for others."""
    algorithm = learner.algorithm()
    first, other, again = (run(algorithm, Scripted(seed)) for seed in (3, 4, 3))
    return bool(first == again and first != other)


class Remembering(DecisionLists):
    """The wrong twin: what an earlier run caught stays in the list."""

    def algorithm(self) -> StatisticalRounds[RuleList]:
        earlier: list[Rule] = []

        def play() -> StatisticalPlay[RuleList]:
            earlier.extend((yield from self._play()).rules)
            return RuleList(tuple(earlier))

        return Adaptive(play)


@pytest.mark.parametrize("name", TASKS)
def test_a_hypothesis_depends_on_the_answers_of_its_run_alone(name: str) -> None:
    """An algorithm keeps nothing from one run to the next: the same answers give the same hypothesis, whatever it heard in between."""
    assert forgets(TASKS[name].learner)


def test_a_learner_that_remembers_is_noticed() -> None:
    """A list that goes on where an earlier run ended does not pass for one that forgets."""
    assert not forgets(Remembering(d=4))


@pytest.mark.parametrize("name", TASKS)
def test_every_query_travels_as_data(name: str) -> None:
    """Each query a learner asks is rebuilt from its name and parameters, equal and with equal values."""
    task = TASKS[name]
    population = task.population(1, 0)
    seen: list[StatisticalQuery] = []

    class Recorder(ExactOracle):
        def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
            seen.extend(queries)
            return super().answer(queries)

    run(task.learner.algorithm(), Recorder(population))
    for query in {question.query for question in seen}:
        rebuilt = QUERIES.build(query.name, query.params())
        assert rebuilt == query
        assert np.array_equal(rebuilt(population.kinds), query(population.kinds))


def test_learner_query_values() -> None:
    """Each learner query on two records, by hand."""
    records = Records({"a": np.array([1, 0]), "b": np.array([1, 1]), "u": np.array([0.5, -1.0]), "y": np.array([1, -1])})
    assert Correlation(("a", "b"), "y")(records).tolist() == [1, 1]
    assert Correlation((), "y")(records).tolist() == [1, 0]
    assert Correlation(("a",))(records).tolist() == [0, 1]
    assert SignedLabel("a == 0", "y")(records).tolist() == [1, 0]
    assert (Product(("u", "u"))(records) / 2**16 * 2 - 1).tolist() == [0.25, 1.0]
    assert Mistake(("u",), "y", (1.0,))(records).tolist() == [0, 0]
    assert (Descent("hinge", ("u",), "y", (1.0,), 0)(records) / 2**16 * 2 - 1).tolist() == [0.5, 0.0]
    assert NearestCentre(("u",), written([-1, 1]), 1)(records).tolist() == [1, 0]


BAD_QUERIES: list[tuple[str, dict[str, Parameter]]] = [
    ("product", {"factors": ()}),
    ("product", {"factors": ("u",), "bound": 0.0}),
    ("descent", {"loss": "none", "columns": ("u",), "label": "y", "weights": ("1",), "coordinate": 0}),
    ("descent", {"loss": "hinge", "columns": ("u",), "label": "y", "weights": ("1",), "coordinate": 1}),
    ("descent", {"loss": "hinge", "columns": ("u",), "label": "y", "weights": ("x",), "coordinate": 0}),
    ("mistake", {"columns": ("u",), "label": "y", "weights": ("nan",)}),
    ("mistake", {"columns": ("u", "v"), "label": "y", "weights": ("1",)}),
    ("nearest-centre", {"columns": ("u", "v"), "centres": ("1", "2", "3"), "centre": 0}),
    ("centre-sum", {"columns": ("u",), "centres": ("1", "2"), "centre": 0, "coordinate": 1}),
    ("correlation", {"columns": ("u", "u"), "label": "y"}),
]


@pytest.mark.parametrize(("name", "params"), BAD_QUERIES)
def test_bad_queries_are_refused(name: str, params: dict[str, Parameter]) -> None:
    """Parameters that make no query are refused with a sentence."""
    with pytest.raises(InputError, match=r"\w"):
        QUERIES[name](**params)


def test_bad_learners_are_refused() -> None:
    """Parameters that make no learner are refused with a sentence."""
    wrong: list[tuple[type[Learner[Any]], dict[str, Any]]] = [
        (Conjunctions, {"alpha": 0.0}),
        (Conjunctions, {"d": 0}),
        (Perceptron, {"gamma": 2.0}),
        (NaiveBayes, {"slack": -1.0}),
    ]
    for learner, params in wrong:
        with pytest.raises(InputError, match="give"):
            learner(**params)
    with pytest.raises(InputError, match="need one from"):
        Perceptron(bound=0.1)


def test_prefixes_are_unions_of_left_children() -> None:
    """Every prefix of 0..15 is a disjoint union of at most four of the fifteen dyadic left children."""
    parts = set(dyadic(4))
    assert len(parts) == 15
    for stop in range(16):
        union = [point for start, end in prefix(stop, 4) for point in range(start, end)]
        assert set(prefix(stop, 4)) <= parts
        assert sorted(union) == list(range(stop))
        assert len(prefix(stop, 4)) <= 4


def test_halfspace_examples_have_their_margin() -> None:
    """Every example of the population satisfies y <w, x> >= gamma norm(w), and has norm 1."""
    population = examples.halfspace_examples([3.0, 1.0, 1.0], 0.5)
    x = np.stack([population.kinds[f"x{place}"] for place in range(3)])
    assert np.allclose((x**2).sum(axis=0), 1)
    assert np.all(population.kinds["y"] * (np.array([3.0, 1.0, 1.0]) @ x) >= 0.5 * math.sqrt(11) - 1e-9)
    assert examples.error_rate(Halfspace((3.0, 1.0, 1.0)), population) == 0
