"""One task a learner: a population on which its guarantee can be checked exactly, and by how much a hypothesis misses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from local_dp.learners import examples
from local_dp.learners.base import Classifier, H, Learner
from local_dp.learners.conjunctions import AllOf, Conjunctions, Literal
from local_dp.learners.decision_lists import DecisionLists, Rule, RuleList
from local_dp.learners.fourier import LowDegree
from local_dp.learners.halfspaces import Halfspace, Perceptron
from local_dp.learners.k_means import Centres, KMeans
from local_dp.learners.linear_regression import LinearModel, LinearRegression
from local_dp.learners.logistic_regression import LogisticRegression, logistic_loss
from local_dp.learners.naive_bayes import BayesRule, NaiveBayes
from local_dp.learners.stumps import Stump, Stumps
from local_dp.learners.thresholds import AtLeast, Thresholds
from local_dp.learners.trees import Tree, Trees
from local_dp.populations.finite import Finite


@dataclass(frozen=True)
class Task(Generic[H]):
    """A learner with the population (of a size and seed) it learns from; `excess` is what its guarantee says is at most alpha."""

    learner: Learner[H]
    population: Callable[[int, int], Finite]
    excess: Callable[[H, Finite], float]


def beyond(best: float) -> Callable[[Classifier, Finite], float]:
    """The error rate beyond that of the best hypothesis."""
    return lambda hypothesis, population: examples.error_rate(hypothesis, population) - best


def conjunctions() -> Task[AllOf]:
    """x0 and not x2, of 5 variables, uniform."""
    target = AllOf((Literal(0), Literal(2, 0)))
    return Task(Conjunctions(d=5), lambda size, seed: examples.uniform_examples(5, target, size, seed), beyond(0))


def stumps() -> Task[Stump]:
    """not x3, of 6 variables, with 20 % of the labels flipped."""
    return Task(
        Stumps(d=6),
        lambda size, seed: examples.labelled(examples.cube(6), np.ones(64), Stump(Literal(3, 0)), size, seed, flip=0.2),
        beyond(0.2),
    )


def thresholds() -> Task[AtLeast]:
    """x >= 11 on 16 points, with 10 % of the labels flipped."""
    return Task(
        Thresholds(bits=4),
        lambda size, seed: examples.labelled(examples.line(4), np.ones(16), AtLeast(11), size, seed, flip=0.1),
        beyond(0.1),
    )


def alternating_list(d: int) -> RuleList:
    """If x0 then +1, else if x1 then -1, else if x2 then +1, ...: of all lists the one that low-degree polynomials approximate worst."""
    return RuleList(tuple(Rule(Literal(place), 1 - 2 * (place % 2)) for place in range(d)))


def decision_lists() -> Task[RuleList]:
    """The alternating list of 4 variables, every rule decisive equally often."""
    return Task(
        DecisionLists(d=4),
        lambda size, seed: examples.labelled(examples.cube(4), examples.first_one_law(4), alternating_list(4), size, seed),
        beyond(0),
    )


def perceptron() -> Task[Halfspace]:
    """The alternating list of 4 variables as a halfspace of margin 0.129, every rule decisive equally often: averaging errs on 28 %."""
    margin = examples.list_halfspace_examples(4)[1]
    return Task(Perceptron(d=5, gamma=margin, alpha=0.25), lambda size, seed: examples.list_halfspace_examples(4, size, seed)[0], beyond(0))


def multiplexer() -> Tree:
    """x1 if x0 is 1, else x2."""
    return Tree(tuple(((Literal(0, chosen), Literal(place, bit)), 2 * bit - 1) for chosen, place in ((1, 1), (0, 2)) for bit in (0, 1)))


def trees() -> Task[Tree]:
    """The multiplexer of 5 variables, uniform: ID3 needs one level more than the smallest tree."""
    return Task(Trees(d=5, depth=3), lambda size, seed: examples.uniform_examples(5, multiplexer(), size, seed), beyond(0))


def naive_bayes() -> Task[BayesRule]:
    """Six features, independent given the label; the label is 1 in 40 %."""
    yes = ((0.2, 0.3, 0.6, 0.5, 0.5, 0.2), (0.7, 0.4, 0.2, 0.5, 0.6, 0.5))
    bayes = BayesRule(0.4, yes)
    population = examples.naive_bayes_examples(0.4, yes)
    return Task(NaiveBayes(d=6), lambda size, seed: examples.naive_bayes_examples(0.4, yes, size, seed), beyond(examples.error_rate(bayes, population)))


def k_means() -> Task[Centres]:
    """Two well separated clusters in the plane, of 40 % and 60 %; misses by the largest coordinate error of a centre."""
    truth = ((-0.6, 0.2), (0.4, -0.3))
    return Task(
        KMeans(least_share=0.4),
        lambda size, seed: examples.cluster_examples(truth, (0.4, 0.6), 0.2, size, seed),
        lambda centres, population: centres.distance(Centres(truth)),
    )


def low_degree() -> Task[Any]:
    """The multiplexer of 5 variables, uniform: its Fourier degree is 2."""
    return Task(LowDegree(d=5, degree=2), lambda size, seed: examples.uniform_examples(5, multiplexer(), size, seed), beyond(0))


def _square_loss(model: LinearModel, population: Finite) -> float:
    return float(population.shares @ (model.predict(population.kinds) - population.kinds["y"]) ** 2)


def linear_regression() -> Task[LinearModel]:
    """Three features and a noise of +-0.1; misses by the excess mean square error."""
    return Task(
        LinearRegression(d=3, least_eigenvalue=0.6),
        lambda size, seed: examples.linear_examples((0.3, -0.2, 0.4), 0.1, size, seed),
        lambda model, population: _square_loss(model, population) - 0.01,
    )


def logistic_regression() -> Task[Halfspace]:
    """A well specified logistic model of four features; misses by the excess logistic loss."""
    weights = (1.0, -1.0, 0.5, 0.5)
    least = logistic_loss(Halfspace(weights), examples.logistic_examples(weights))
    return Task(
        LogisticRegression(d=4),
        lambda size, seed: examples.logistic_examples(weights, size, seed),
        lambda halfspace, population: logistic_loss(halfspace, population) - least,
    )


MAKERS: tuple[Callable[[], Task[Any]], ...] = (
    conjunctions,
    stumps,
    thresholds,
    naive_bayes,
    low_degree,
    linear_regression,
    decision_lists,
    perceptron,
    trees,
    k_means,
    logistic_regression,
)


def tasks() -> dict[str, Task[Any]]:
    """Every task by its learner's name: the non-adaptive ones first."""
    return {task.learner.name: task for task in (make() for make in MAKERS)}
