"""One hard task a learner: a population near the edge of what its tolerance can tell apart, and by how much a hypothesis misses.

Every population is made so that a learner with a lax threshold, a dropped query, a wrong sign or a round too few misses alpha on it, while the right one
keeps its promise whatever the answers within its tolerance. Labels and features are public constructions, exact in law.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from local_dp.learners import examples
from local_dp.learners.fourier import LowDegree, Polynomial
from local_dp.learners.halfspaces import Halfspace, LogisticRegression, Perceptron, logistic_loss
from local_dp.learners.learner import Classifier, H, Learner
from local_dp.learners.moments import AtLeast, BayesRule, Centres, KMeans, LinearModel, LinearRegression, NaiveBayes, Thresholds
from local_dp.learners.rules import AllOf, Conjunctions, DecisionLists, Literal, Rule, RuleList, Stump, Stumps, Tree, Trees
from local_dp.populations.finite import Finite
from local_dp.records import Records

BARELY = 1.02  # times alpha: what a mistake must cost to count as one


@dataclass(frozen=True)
class Task(Generic[H]):
    """A learner with the population (of a size and seed) it learns from; `excess` is what its guarantee says is at most alpha."""

    learner: Learner[H]
    population: Callable[[int, int], Finite]
    excess: Callable[[H, Finite], float]


def beyond(best: float) -> Callable[[Classifier, Finite], float]:
    """The error rate beyond that of the best hypothesis."""
    return lambda hypothesis, population: examples.error_rate(hypothesis, population) - best


def conjunctions(learner: Conjunctions) -> Task[AllOf]:
    """x0 alone; every other literal x_j is violated by its own alpha / (d - 1) of the examples, so that only all of them together cost more than alpha."""
    d, rare = learner.d, min(BARELY * learner.alpha, 0.5)
    full = (1 << d) - 1
    rows = [full - 1, full, *(full - (1 << place) for place in range(1, d))]
    shares = [(1 - rare) / 2, (1 - rare) / 2, *[rare / max(1, d - 1)] * (d - 1)]
    points = examples.cube(d).take(np.array(rows))
    return Task(learner, lambda size, seed: examples.labelled(points, shares, AllOf((Literal(0),)), size, seed), beyond(0))


def stumps(learner: Stumps) -> Task[Stump]:
    """The negation of the last variable, wrong on 5 %; x0 is behind it by barely more than alpha, and the others say nothing."""
    correlations = [max(0.0, 0.9 - 2 * BARELY * learner.alpha), *[0.0] * (learner.d - 1)]
    correlations[-1] = -0.9
    yes = [[(1 + sign * correlation) / 2 for correlation in correlations] for sign in (-1, 1)]
    return Task(learner, lambda size, seed: examples.naive_bayes_examples(0.5, yes, size, seed), beyond(0.05))


def thresholds(learner: Thresholds) -> Task[AtLeast]:
    """x >= N - 1 of N points: barely more than alpha at N - 1 and as much at N - 2 decide, the rest is noise; N - 1 is the sum of the most dyadic parts."""
    points, decisive = 1 << learner.bits, min(BARELY * learner.alpha, 0.5)
    line = examples.line(learner.bits)
    noise = np.full(points, (0.5 - decisive) / points)
    minus, plus = noise.copy(), noise.copy()
    minus[-2] += decisive
    plus[-1] += decisive
    kinds = Records({"x": np.tile(line["x"], 2), "y": np.repeat(np.array([-1, 1], dtype=np.int8), points)})
    return Task(learner, lambda size, seed: Finite(kinds, np.concatenate([minus, plus]).tolist(), size, seed), beyond(0.5 - decisive))


def naive_bayes(learner: NaiveBayes) -> Task[BayesRule]:
    """Pr[y = 1] = 0.4: a common feature that only the prior decides, and d - 1 rare ones, of probability 2.1 alpha / d or a tenth of it."""
    rare = min(2.1 * learner.alpha / learner.d, 0.9)
    yes = ((0.7, *[rare / 10] * (learner.d - 1)), (0.9, *[rare] * (learner.d - 1)))
    best = examples.error_rate(BayesRule(0.4, yes), examples.naive_bayes_examples(0.4, yes))
    return Task(learner, lambda size, seed: examples.naive_bayes_examples(0.4, yes, size, seed), beyond(best))


def multiplexer(select: int, one: int, zero: int) -> Tree:
    """x_one if x_select is 1, else x_zero."""
    return Tree(tuple(((Literal(select, chosen), Literal(place, bit)), 2 * bit - 1) for chosen, place in ((1, one), (0, zero)) for bit in (0, 1)))


def low_degree(learner: LowDegree) -> Task[Polynomial]:
    """The multiplexer of the last three variables (a variable or a constant, where the degree is too low for it) with one point's label flipped, uniform.

    The flipped point has weight at every degree: what it costs is allowed, and nothing else is.
    """
    d = learner.d
    target: Classifier = AllOf((Literal(d - 1),) if learner.degree else ())
    if learner.degree >= 2 and d >= 3:
        target = multiplexer(d - 1, d - 2, d - 3)
    cube = examples.cube(d)
    y = target.predict(cube)
    y[0] = -y[0]
    kinds = Records({**cube.columns, "y": y})

    def population(size: int, seed: int) -> Finite:
        return Finite(kinds, [1.0] * len(y), size, seed)

    exact = population(1, 0)
    above = 1 - sum(query.expectation(exact.law(query.query)) ** 2 for query in learner.algorithm().queries)
    return Task(learner, population, beyond(above))


def _square_loss(model: LinearModel, population: Finite) -> float:
    return float(population.shares @ (model.predict(population.kinds) - population.kinds["y"]) ** 2)


def linear_regression(learner: LinearRegression) -> Task[LinearModel]:
    """Correlated features, with exactly the least eigenvalue, and the weights in its direction; y to within +-0.1. Misses by the excess mean square error."""
    weights, size_of = [0.0] * learner.d, 0.9 * min(1.0, learner.radius)
    weights[0], weights[-1] = (size_of / 2, -size_of / 2) if learner.d > 1 else (size_of, size_of)
    return Task(
        learner,
        lambda size, seed: examples.correlated_examples(weights, 1 - learner.least_eigenvalue, 0.1, size, seed),
        lambda model, population: _square_loss(model, population) - 0.01,
    )


def alternating_list(d: int) -> RuleList:
    """If x0 then +1, else if x1 then -1, else if x2 then +1, ...: of all lists the one that low-degree polynomials approximate worst."""
    return RuleList(tuple(Rule(Literal(place), 1 - 2 * (place % 2)) for place in range(d)))


def decision_lists(learner: DecisionLists) -> Task[RuleList]:
    """The alternating list with half of its rules rare: where one decides all later variables are 1, so a literal that catches much catches a rare one too.

    The rare rules together decide barely more than alpha.
    """
    d, pairs = learner.d, (learner.d + 1) // 2
    rare = min(BARELY * learner.alpha, 0.5)
    full = (1 << d) - 1
    rows = [full - ((1 << first) - 1) for first in range(2 * pairs)]  # the first 1 at place `first`; none at place d
    shares = [(rare if (place + 1) // 2 % 2 == 0 else 1 - rare) / pairs for place in range(2 * pairs)]  # rare common, common rare, rare common, ...
    points = examples.cube(d).take(np.array(rows))
    return Task(learner, lambda size, seed: examples.labelled(points, shares, alternating_list(d), size, seed), beyond(0))


def perceptron(learner: Perceptron) -> Task[Halfspace]:
    """Every example at margin gamma, exactly; barely more than alpha of them are so rare a kind that their average, one round's move, is wrong on all."""
    rare = min(BARELY * learner.alpha, 0.45)
    return Task(learner, lambda size, seed: examples.skewed_examples(learner.d, learner.gamma, rare, size, seed), beyond(0))


def trees(learner: Trees) -> Task[Tree]:
    """The multiplexer of the last three variables, uniform, of which ID3 needs three levels; with fewer, a conjunction or a variable that needs them all.

    So many labels are wrong that a level too few costs barely more than alpha.
    """
    d, flip = learner.d, (1 - min(1.0, 4 * BARELY * learner.alpha)) / 2
    target: Classifier = AllOf(tuple(Literal(d - 1 - place) for place in range(min(learner.depth, 2))))
    if learner.depth >= 3:
        target = multiplexer(d - 1, d - 2, d - 3)
    law = np.ones(1 << d)
    return Task(learner, lambda size, seed: examples.labelled(examples.cube(d), law, target, size, seed, flip), beyond(flip))


def k_means(learner: KMeans) -> Task[Centres]:
    """Two clusters in the plane, of unequal shares where allowed; the first round cuts the larger one. Misses by the largest coordinate error of a centre."""
    truth = ((-0.8, 0.2), (0.1, -0.3))
    shares = (learner.least_share, 1 - learner.least_share)
    return Task(
        learner,
        lambda size, seed: examples.cluster_examples(truth, shares, 0.2, size, seed),
        lambda centres, population: centres.distance(Centres(truth)),
    )


def logistic_regression(learner: LogisticRegression) -> Task[Halfspace]:
    """A loud feature that says nothing and faint ones that say all: their gradient is just large enough to be worth alpha. Misses by the excess loss."""
    d = learner.d
    faint = range(1, d) if d > 1 else range(1)
    strength = min(1.0, 2.25 * learner.alpha / learner.radius * math.sqrt(d / len(faint)))  # the weights 0 miss by barely more than alpha
    best = Halfspace(tuple(learner.radius / math.sqrt(len(faint)) if place in faint else 0.0 for place in range(d)))
    least = logistic_loss(best, examples.faint_examples(d, strength))
    return Task(
        learner,
        lambda size, seed: examples.faint_examples(d, strength, size, seed),
        lambda halfspace, population: logistic_loss(halfspace, population) - least,
    )


TRIED: dict[str, tuple[Learner[Any], Callable[[Any], Task[Any]]]] = {
    learner.name: (learner, task)
    for learner, task in (
        (Conjunctions(d=5), conjunctions),
        (Stumps(d=6), stumps),
        (Thresholds(bits=4), thresholds),
        (NaiveBayes(d=6), naive_bayes),
        (LowDegree(d=5), low_degree),
        (LinearRegression(d=3, alpha=0.02, least_eigenvalue=0.3), linear_regression),
        (DecisionLists(d=4), decision_lists),
        (Perceptron(d=4, gamma=0.3, alpha=0.25), perceptron),
        (Trees(d=5, depth=3), trees),
        (KMeans(), k_means),
        (LogisticRegression(d=4), logistic_regression),
    )
}


def tasks() -> dict[str, Task[Any]]:
    """Every task by its learner's name, at the size at which it is tried: the non-adaptive learners first."""
    return {name: task(learner) for name, (learner, task) in TRIED.items()}
