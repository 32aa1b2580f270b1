"""Every statistical-query learner as a local protocol: KLNRS Theorem 4.8, applied to a learner and
its task."""

from dataclasses import asdict, dataclass, fields, make_dataclass, replace
from functools import cached_property, partial
from inspect import getdoc
from itertools import pairwise
from typing import Any, ClassVar, cast, get_origin, get_type_hints

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds.response import rr_clients_hoeffding
from local_dp.checks import check_built
from local_dp.cube import walsh_hadamard
from local_dp.errors import InputError
from local_dp.hardness.margins import Margin
from local_dp.interaction import Adaptive, Nonadaptive
from local_dp.learners.examples import TRIED, Task
from local_dp.oracles.local.asked import Cohort, Local, LocalAlgorithm, LocalPlay, LocalQuery
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, parameter
from local_dp.queries.examples import ParityExample
from local_dp.randomizers.signs.characters import Characters, mask_set
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems.from_sq import local_from_sq

MODELS = {"NASQ": "LNI", "SQ": "LI"}
HELP = {  # of the learners' parameters, the same for all learners
    "alpha": "Error that the learner promises to stay within",
    "slack": "Factor of every tolerance; above 1 nothing is promised",
    "d": "Dimension: the features of a record",
    "monotone": "Whether the conjunction has no negated variables",
    "degree": "Degree of the polynomial",
    "gamma": "Margin of the examples to the halfspace",
    "bound": "Bound on every feature; default: by the dimension",
    "rounds_asked": "Number of rounds that move the centres",
    "least_share": "Least share of the records in a cluster",
    "least_eigenvalue": "Least eigenvalue of the features' second moments",
    "radius": "Bound on the norm of the weights",
    "bits": "Bits of a value",
    "depth": "Depth of the tree",
}
SUMMARIES = {
    "conjunctions": "Learns a conjunction of binary features",
    "stumps": "Learns the single feature that predicts best",
    "thresholds": "Learns a threshold on whole numbers",
    "naive-bayes": "Learns a classifier for independent features",
    "low-degree": "Learns a function of binary features by a polynomial",
    "linear-regression": "Learns a linear model by least squares",
    "decision-lists": "Learns a list of if-then rules",
    "perceptron": "Learns a halfspace with a margin",
    "trees": "Learns a decision tree",
    "k-means": "Finds the centres of clusters by Lloyd's iteration",
    "logistic-regression": "Learns a logistic regression by gradient descent",
}
SENTENCES = {  # that explain a rule, by the learner's name; the others are classifiers
    "decision-lists": "The learned rule predicts the label of a record: {}.",
    "trees": "The learned rule predicts the label of a record by the condition that holds: {}.",
    "naive-bayes": "The learned rule predicts the likelier label of a record, by {}.",
    "linear-regression": "The learned rule predicts {}.",
    "k-means": "The records gather around the points {}.",
}
CLASSIFIER = "The learned rule predicts the label of a record: it is +1 where {}; else -1."


@dataclass(frozen=True)
class Lesson:
    """A hypothesis, the clients of each query, and the number that the guarantee needs."""

    hypothesis: Any
    clients_per_query: int
    enough_per_query: int


@dataclass(frozen=True, kw_only=True)
class Learned(LocalProtocol[Lesson]):
    """A statistical-query learner on its synthetic task, each query answered by fresh clients under
    randomized response. Its fields are the learner's.

    Privacy: each client answers at most once, epsilon-locally private. Utility: the learner's own,
    with probability 95 %, with the default number of clients, t 2 C^2 ln(40 t) / tau^2 for at most
    t queries of tolerance tau. Any other number n gives each query n / t clients, and errors change
    by the factor sqrt(default / n). An adaptive learner takes cohorts round by round and may leave
    some unused. Cost: one bit a client. Source: KLNRS Theorem 4.8.
    """

    figureless = "a hypothesis"
    learner_name: ClassVar[str]
    error_unit = "excess over the comparison of the learner's guarantee"

    def check(self) -> None:
        check_built(self.task)

    @cached_property
    def task(self) -> Task[Any]:
        """The learner with these parameters, and its population."""
        example, task = TRIED[self.learner_name]
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return task(replace(example, **settings))

    def clients(self, epsilon: float) -> int:
        return self.task.learner.clients(epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalAlgorithm[Lesson]:
        learner = self.task.learner
        cohort = clients // learner.queries
        if cohort < 1:
            raise InputError(
                f"{self.name} asks up to {learner.queries} queries, each of its own clients; "
                f"{clients} are too few"
            )
        enough = rr_clients_hoeffding(epsilon, learner.tolerance, learner.beta_each(BETA))
        local = local_from_sq(learner.algorithm(), epsilon, lambda query: cohort)
        finish = partial(Lesson, clients_per_query=cohort, enough_per_query=enough)
        if isinstance(local, Nonadaptive):
            decode = local.decode
            return Nonadaptive(local.queries, lambda tallies: finish(decode(tallies)))
        inner = local.play

        def play() -> LocalPlay[Lesson]:
            return finish((yield from inner()))

        return Adaptive(play)

    def synthetic(self, clients: int, seed: int) -> Population:
        return self.task.population(clients, seed)

    def describe(self, result: Lesson) -> PlainData:
        rule = {
            "rule": str(result.hypothesis),
            "clients a query": result.clients_per_query,
            "enough": result.enough_per_query,
        }
        return {"hypothesis": rule, "parameters": asdict(result.hypothesis)}

    def explain(self, result: Lesson) -> str:
        rule = str(result.hypothesis)
        if rule == "always":
            return "The learned rule predicts the label +1 for every record."
        return SENTENCES.get(self.learner_name, CLASSIFIER).format(rule)

    def true_error(self, result: Lesson, population: Population) -> float:
        """The exact excess of the hypothesis over the comparison of the learner's guarantee, which
        promises at most alpha."""
        assert isinstance(population, Finite)
        return max(0.0, self.task.excess(result.hypothesis, population))

    @classmethod
    def model(cls) -> str:
        """LNI for a non-adaptive learner and LI for an adaptive one, by the type of the learner's
        algorithm, which the theorem preserves."""
        return MODELS[TRIED[cls.learner_name][0].model()]


def learned(name: str) -> type[Learned]:
    """The protocol `name`, "learn-" and the name of an SQ learner: the learner's scalar parameters
    are its fields, with the values of its task as defaults."""
    own = name.removeprefix("learn-")
    learner, task = TRIED[own]
    hints = get_type_hints(type(learner))
    names = [field.name for field in fields(learner) if get_origin(hints[field.name]) is not tuple]
    doc = f"{getdoc(learner)}\n\nThe task: {getdoc(task)}\n\nLocally: {getdoc(Learned)}"
    parameters = [
        (field, hints[field], parameter(getattr(learner, field), HELP[field])) for field in names
    ]
    constants = {
        "name": name,
        "summary": SUMMARIES[own],
        "source": f"{learner.source}; KLNRS 2008, Theorem 4.8",
        "learner_name": own,
        "__doc__": doc,
        "__module__": __name__,
    }
    kind = make_dataclass(
        f"Learn{type(learner).__name__}",
        parameters,
        bases=(Learned,),
        namespace=constants,
        frozen=True,
        kw_only=True,
    )
    return cast(type[Learned], kind)


LearnConjunctions = learned("learn-conjunctions")
LearnStumps = learned("learn-stumps")
LearnThresholds = learned("learn-thresholds")
LearnNaiveBayes = learned("learn-naive-bayes")
LearnLowDegree = learned("learn-low-degree")
LearnLinearRegression = learned("learn-linear-regression")
LearnDecisionLists = learned("learn-decision-lists")
LearnPerceptron = learned("learn-perceptron")
LearnTrees = learned("learn-trees")
LearnKMeans = learned("learn-k-means")
LearnLogisticRegression = learned("learn-logistic-regression")


def shares_of_clients(margin: Margin) -> Floats:
    """The share of the clients for each set S of blocks: |c_S| b^(|S|/2) / MC, shape (2^t,)."""
    sizes = np.bitwise_count(np.arange(1 << margin.concepts.t))
    prices: Floats = np.abs(margin.coefficients) * float(margin.concepts.b) ** (sizes / 2)
    return np.asarray(prices / prices.sum())


def cohorts(margin: Margin, clients: int) -> dict[int, Cohort]:
    """The clients of each set of blocks, by these shares, without empty cohorts."""
    ends = np.rint(np.cumsum(shares_of_clients(margin)) * clients).astype(int).tolist()
    return {
        S: Cohort(start, stop)
        for S, (start, stop) in enumerate(pairwise([0, *ends]))
        if start < stop
    }


def vote(margin: Margin, epsilon: float, clients: int) -> Local[Floats]:
    """For each mask s of t b bits, the share of clients who report that (-1)^<s, x> agrees with
    their label, less those who report the contrary.

    A prediction for x draws one client and uses its report: the mean prediction h(x) is the sum of
    these shares times (-1)^<s, x>. Privacy: each client answers once, by randomized response,
    epsilon-locally private. Utility: E_D[y h] > 0 with probability p, for every concept and every
    law D, with C^2 MC^2 p / (1 - p) clients (`bounds.interaction.vote_clients`). Cost: one bit a
    client, one round. t b <= 12, and b a power of two.
    """
    concepts = margin.concepts
    d = concepts.variables
    groups = cohorts(margin, clients)
    masks = {S: np.unique(concepts.masks(S)) for S in groups}
    queries = tuple(
        LocalQuery(ParityExample(d), Characters(epsilon, d=d, masks=mask_set(masks[S], d)), cohort)
        for S, cohort in groups.items()
    )

    def decode(answers: tuple[Tally, ...]) -> Floats:
        words = np.zeros(1 << concepts.variables)
        for places, tally in zip(masks.values(), answers, strict=True):
            words[places] += tally.counts[:, 0] - tally.counts[:, 1]
        return words / clients

    return Nonadaptive(queries, decode)


def hard_examples(margin: Margin, clients: int, seed: int) -> Finite:
    """The hardest law for the class: u from mu, and x uniform among the points whose first
    variables of the blocks are u."""
    labels, shares = _hard_law(margin)
    x = np.arange(len(labels), dtype=np.uint64)
    return Finite(Records({"x": x, "y": labels.astype(np.int8)}), shares, clients, seed)


def advantage(margin: Margin, words: Floats) -> float:
    """E[y h(x)] under that law: above 0 if the vote is right more often than wrong."""
    labels, shares = _hard_law(margin)
    return float((walsh_hadamard(words) * labels * shares).sum())


def _hard_law(margin: Margin) -> tuple[Counts, Floats]:
    """The label of every x, and its probability."""
    concepts = margin.concepts
    x = np.arange(1 << concepts.variables)
    read = (x >> np.arange(concepts.t)[:, None] * concepts.b & 1).T @ (1 << np.arange(concepts.t))
    shares: Floats = margin.law[read] / margin.law.sum() * 2.0 ** (concepts.t - concepts.variables)
    return concepts.signs()[read].astype(np.int64), shares
