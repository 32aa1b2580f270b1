"""Finite populations of examples for the learners: every kind of record with its exact probability,
so that an exact oracle is exact."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_dimension
from local_dp.learners.halfspaces import Halfspace, LogisticRegression, Perceptron, logistic_loss
from local_dp.learners.learner import Classifier, H, Learner, features, signs
from local_dp.learners.moments import (
    AtLeast,
    BayesRule,
    Centres,
    KMeans,
    LinearModel,
    LinearRegression,
    LowDegree,
    NaiveBayes,
    Polynomial,
    Thresholds,
)
from local_dp.learners.rules import (
    AllOf,
    Conjunctions,
    DecisionLists,
    Literal,
    Rule,
    RuleList,
    Stump,
    Stumps,
    Tree,
    Trees,
)
from local_dp.populations.finite import Finite
from local_dp.records import Records

MAX_CUBE = 16


def cube(d: int) -> Records:
    """Every point of {0,1}^d in the columns x0, ..., x{d-1}; row r holds the binary digits of r."""
    check_dimension(d, MAX_CUBE)
    rows = np.arange(1 << d, dtype=np.uint32)
    return Records(
        {name: (rows >> place & 1).astype(np.uint8) for place, name in enumerate(features(d))}
    )


def product_law(ones: Sequence[float]) -> Floats:
    """The probabilities of the rows of `cube` when x_j is 1 with probability ones[j],
    independently."""
    law = np.ones(1)
    for one in ones:
        law = np.concatenate([(1 - one) * law, one * law])
    return law


def first_one_law(d: int) -> Floats:
    """The probabilities of the rows of `cube` for a uniform place of the first 1, later bits
    uniform: every rule of a list decides equally often."""
    rows = np.arange(1, 1 << d)
    first = np.array([(row & -row).bit_length() - 1 for row in rows.tolist()])
    return np.concatenate([[0.0], 1 / (d * 2.0 ** (d - 1 - first))])


def labelled(
    records: Records,
    shares: Sequence[float] | Floats,
    concept: Classifier,
    size: int = 1,
    seed: int = 0,
    flip: float = 0.0,
) -> Finite:
    """Examples (x, concept(x)) with y = +1 or -1, flipped with probability `flip`; a positive
    `flip` makes the task agnostic."""
    y = concept.predict(records)
    clean = Finite(Records({**records.columns, "y": y}), np.asarray(shares).tolist(), size, seed)
    if flip == 0:
        return clean
    columns = {name: np.concatenate([values, values]) for name, values in records.columns.items()}
    both = Records({**columns, "y": np.concatenate([y, -y])})
    return Finite(
        both, np.concatenate([(1 - flip) * clean.shares, flip * clean.shares]).tolist(), size, seed
    )


def uniform_examples(d: int, concept: Classifier, size: int = 1, seed: int = 0) -> Finite:
    """Examples of a concept, uniform over {0,1}^d."""
    return labelled(cube(d), np.ones(1 << d), concept, size, seed)


def line(bits: int) -> Records:
    """The points 0, ..., 2^bits - 1 in the column x."""
    return Records({"x": np.arange(1 << bits, dtype=np.int64)})


def naive_bayes_examples(
    prior: float, yes: Sequence[Sequence[float]], size: int = 1, seed: int = 0
) -> Finite:
    """Pr[y = 1] = prior and, given y, independent features with `Pr[x_j = 1] = yes[0][j]` for y =
    -1 and `yes[1][j]` for y = 1."""
    records = cube(len(yes[0]))
    columns = {name: np.concatenate([values, values]) for name, values in records.columns.items()}
    y = np.repeat(np.array([-1, 1], dtype=np.int8), len(records))
    shares = np.concatenate([(1 - prior) * product_law(yes[0]), prior * product_law(yes[1])])
    return Finite(Records({**columns, "y": y}), shares.tolist(), size, seed)


def skewed_examples(d: int, gamma: float, rare: float, size: int = 1, seed: int = 0) -> Finite:
    """y x = gamma w +- (1 - gamma) v, w and v orthogonal, minus with probability `rare`: margin
    gamma exactly, and averages of y x misclassify the rare."""
    check_dimension(d)
    alternating = np.array([1.0, -1.0] * (d // 2) + [0.0] * (d % 2))
    y = np.array([1, -1, 1, -1], dtype=np.int8)
    side = np.array([1.0, 1.0, -1.0, -1.0])
    offsets = (1 - gamma) * alternating[:, None] * side
    x = y * (gamma + offsets) / math.sqrt(d)
    columns = {**dict(zip(features(d), x, strict=True)), "y": y}
    return Finite(Records(columns), [1 - rare, 1 - rare, rare, rare], size, seed)


def list_weights(d: int) -> Floats:
    """Weights of a halfspace that is the list "x0: +1, else x1: -1, else x2: +1, ...": each
    outweighs the later ones against it. Fibonacci numbers."""
    weights = np.zeros(d)
    for place in reversed(range(d)):
        weights[place] = 1 + weights[place + 1 :: 2].sum()
    return weights * (-1.0) ** np.arange(d)


def list_halfspace_examples(d: int, size: int = 1, seed: int = 0) -> tuple[Finite, float]:
    """The alternating list of d variables as a halfspace over d + 1 features, the last constant;
    and its margin, which falls as 1.618^-d."""
    bits, law = cube(d), first_one_law(d)
    rows = np.flatnonzero(law)
    weights = list_weights(d)
    terms = (weight * bits[name] for weight, name in zip(weights, features(d), strict=True))
    score = np.asarray(sum(terms))[rows]
    norm_of_signs = math.sqrt(d + 1)
    columns = {name: (1.0 - 2.0 * bits[name][rows]) / norm_of_signs for name in features(d)}
    constant = {f"x{d}": np.full(len(rows), 1 / math.sqrt(d + 1))}
    # of the same halfspace over the signs and the constant
    norm = math.sqrt(float((weights**2).sum() + weights.sum() ** 2)) / 2
    margin = float(np.abs(score).min()) / (math.sqrt(d + 1) * norm)
    records = Records({**columns, **constant, "y": signs(score > 0)})
    return Finite(records, law[rows].tolist(), size, seed), margin


def faint_examples(d: int, strength: float, size: int = 1, seed: int = 0) -> Finite:
    """Labels of +1 and -1, equally likely; a loud first feature +-1 / sqrt d that is independent of
    them, and faint others, y strength / sqrt d each."""
    loud = np.array([1.0, 1.0, -1.0, -1.0])
    y = np.array([1, -1, 1, -1], dtype=np.int8)
    columns = {
        name: (loud if place == 0 and d > 1 else strength * y) / math.sqrt(d)
        for place, name in enumerate(features(d))
    }
    return Finite(Records({**columns, "y": y}), [1.0] * 4, size, seed)


def correlated_examples(
    weights: Sequence[float], correlation: float, noise: float, size: int = 1, seed: int = 0
) -> Finite:
    """x over {-1, +1}^d with E[x_i x_j] = `correlation`, least eigenvalue 1 - `correlation`; y =
    <w, x> +- noise, equally likely."""
    d = len(weights)
    x = 2.0 * np.stack(list(cube(d).columns.values())) - 1
    law = np.full(1 << d, (1 - correlation) / (1 << d))
    law[[0, -1]] += correlation / 2
    twice = np.concatenate([x, x], axis=1)
    y = np.array(weights) @ twice + noise * np.repeat([1.0, -1.0], 1 << d)
    columns = {**dict(zip(features(d), twice, strict=True)), "y": y}
    return Finite(Records(columns), np.concatenate([law, law]).tolist(), size, seed)


def cluster_examples(
    centres: Sequence[Sequence[float]],
    shares: Sequence[float],
    spread: float,
    size: int = 1,
    seed: int = 0,
) -> Finite:
    """Around each centre the 5^d points of a lattice of half-width `spread`, equally likely within
    a cluster."""
    d = len(centres[0])
    steps = np.linspace(-spread, spread, 5)
    offsets = np.array(np.meshgrid(*[steps] * d, indexing="ij")).reshape(d, -1)
    points = np.concatenate([np.array(centre)[:, None] + offsets for centre in centres], axis=1)
    kinds = Records(dict(zip(features(d), points, strict=True)))
    points_each = offsets.shape[1]
    return Finite(
        kinds, np.repeat(np.array(shares) / points_each, points_each).tolist(), size, seed
    )


def error_rate(hypothesis: Classifier, population: Finite) -> float:
    """Pr[hypothesis(x) != y], exactly."""
    return float(
        population.shares @ (hypothesis.predict(population.kinds) != population.kinds["y"])
    )


BARELY = 1.02  # times alpha: what a mistake must cost to count as one


@dataclass(frozen=True)
class Task(Generic[H]):
    """A learner with the population (of a size and seed) it learns from; `excess` is what its
    guarantee says is at most alpha."""

    learner: Learner[H]
    population: Callable[[int, int], Finite]
    excess: Callable[[H, Finite], float]


def beyond(best: float) -> Callable[[Classifier, Finite], float]:
    """The error rate beyond that of the best hypothesis."""
    return lambda hypothesis, population: error_rate(hypothesis, population) - best


def conjunctions(learner: Conjunctions) -> Task[AllOf]:
    """x0 alone; every other literal x_j is violated by its own alpha / (d - 1) of the examples, so
    that only all of them together cost more than alpha."""
    d = learner.d
    rare = min(BARELY * learner.alpha, 0.5)
    full = (1 << d) - 1
    rows = [full - 1, full, *(full - (1 << place) for place in range(1, d))]
    common = (1 - rare) / 2
    shares = [common, common, *[rare / max(1, d - 1)] * (d - 1)]
    points = cube(d).take(np.array(rows))
    return Task(learner, partial(labelled, points, shares, AllOf((Literal(0),))), beyond(0))


def stumps(learner: Stumps) -> Task[Stump]:
    """The negation of the last variable, wrong on 5 %; x0 is behind it by barely more than alpha,
    and the others say nothing."""
    correlations = [max(0.0, 0.9 - 2 * BARELY * learner.alpha), *[0.0] * (learner.d - 1)]
    correlations[-1] = -0.9
    yes = [[(1 + sign * correlation) / 2 for correlation in correlations] for sign in (-1, 1)]
    return Task(learner, partial(naive_bayes_examples, 0.5, yes), beyond(0.05))


def thresholds(learner: Thresholds) -> Task[AtLeast]:
    """x >= N - 1 of N points: barely more than alpha at N - 1 and as much at N - 2 decide, the rest
    is noise; N - 1 is the sum of the most dyadic parts."""
    points = 1 << learner.bits
    decisive = min(BARELY * learner.alpha, 0.5)
    noise = np.full(points, (0.5 - decisive) / points)
    minus, plus = noise.copy(), noise.copy()
    minus[-2] += decisive
    plus[-1] += decisive
    kinds = Records(
        {
            "x": np.tile(line(learner.bits)["x"], 2),
            "y": np.repeat(np.array([-1, 1], dtype=np.int8), points),
        }
    )
    return Task(
        learner,
        partial(Finite, kinds, np.concatenate([minus, plus]).tolist()),
        beyond(0.5 - decisive),
    )


def naive_bayes(learner: NaiveBayes) -> Task[BayesRule]:
    """Pr[y = 1] = 0.4: a common feature that only the prior decides, and d - 1 rare ones, of
    probability 2.1 alpha / d or a tenth of it."""
    rare = min(2.1 * learner.alpha / learner.d, 0.9)
    yes = ((0.7, *[rare / 10] * (learner.d - 1)), (0.9, *[rare] * (learner.d - 1)))
    best = error_rate(BayesRule(0.4, yes), naive_bayes_examples(0.4, yes))
    return Task(learner, partial(naive_bayes_examples, 0.4, yes), beyond(best))


def multiplexer(select: int, one: int, zero: int) -> Tree:
    """x_one if x_select is 1, else x_zero."""
    return Tree(
        tuple(
            ((Literal(select, value), Literal(place, bit)), 2 * bit - 1)
            for value, place in ((1, one), (0, zero))
            for bit in (0, 1)
        )
    )


def low_degree(learner: LowDegree) -> Task[Polynomial]:
    """The multiplexer of the last three variables, one label flipped, which is allowed and nothing
    else; at a lower degree a variable or a constant."""
    d = learner.d
    target: Classifier = AllOf((Literal(d - 1),) if learner.degree else ())
    if learner.degree >= 2 and d >= 3:
        target = multiplexer(d - 1, d - 2, d - 3)
    points = cube(d)
    y = target.predict(points)
    y[0] = -y[0]
    kinds = Records({**points.columns, "y": y})

    population = partial(Finite, kinds, [1.0] * len(y))
    exact = population(1, 0)
    above = 1 - sum(
        query.expectation(exact.law(query.query)) ** 2 for query in learner.algorithm().queries
    )
    return Task(learner, population, beyond(above))


def linear_regression(learner: LinearRegression) -> Task[LinearModel]:
    """Correlated features, with exactly the least eigenvalue, and the weights in its direction; y
    to within +-0.1. Misses by the excess mean square error."""
    weights = [0.0] * learner.d
    size_of = 0.9 * min(1.0, learner.radius)
    weights[0], weights[-1] = (size_of / 2, -size_of / 2) if learner.d > 1 else (size_of, size_of)

    def excess(model: LinearModel, population: Finite) -> float:
        return (
            float(
                population.shares @ (model.predict(population.kinds) - population.kinds["y"]) ** 2
            )
            - 0.01
        )

    return Task(
        learner, partial(correlated_examples, weights, 1 - learner.least_eigenvalue, 0.1), excess
    )


def alternating_list(d: int) -> RuleList:
    """If x0 then +1, else if x1 then -1, else if x2 then +1, ...: of all lists the one that
    low-degree polynomials approximate worst."""
    return RuleList(tuple(Rule(Literal(place), 1 - 2 * (place % 2)) for place in range(d)))


def decision_lists(learner: DecisionLists) -> Task[RuleList]:
    """The alternating list with half of its rules rare, barely more than alpha together: a literal
    that catches much catches a rare one too."""
    d = learner.d
    pairs = (learner.d + 1) // 2
    rare = min(BARELY * learner.alpha, 0.5)
    full = (1 << d) - 1
    # the first 1 at place `first`; none at place d
    rows = [full - ((1 << first) - 1) for first in range(2 * pairs)]
    # rare common, common rare, rare common, ...
    shares = [
        (rare if (place + 1) // 2 % 2 == 0 else 1 - rare) / pairs for place in range(2 * pairs)
    ]
    points = cube(d).take(np.array(rows))
    return Task(learner, partial(labelled, points, shares, alternating_list(d)), beyond(0))


def perceptron(learner: Perceptron) -> Task[Halfspace]:
    """Every example at margin gamma, exactly; barely more than alpha of them are so rare a kind
    that their average, one round's move, is wrong on all."""
    rare = min(BARELY * learner.alpha, 0.45)
    return Task(learner, partial(skewed_examples, learner.d, learner.gamma, rare), beyond(0))


def trees(learner: Trees) -> Task[Tree]:
    """The multiplexer of the last three variables, of which ID3 needs three levels: a level too few
    costs barely more than alpha."""
    d = learner.d
    flip = (1 - min(1.0, 4 * BARELY * learner.alpha)) / 2
    literals = (Literal(d - 1 - place) for place in range(min(learner.depth, 2)))
    target: Classifier = AllOf(tuple(literals))
    if learner.depth >= 3:
        target = multiplexer(d - 1, d - 2, d - 3)
    law = np.ones(1 << d)
    return Task(learner, partial(labelled, cube(d), law, target, flip=flip), beyond(flip))


def k_means(learner: KMeans) -> Task[Centres]:
    """Two clusters in the plane, of unequal shares where allowed; the first round cuts the larger
    one. Misses by the largest coordinate error of a centre."""
    truth = ((-0.8, 0.2), (0.1, -0.3))
    shares = (learner.least_share, 1 - learner.least_share)
    return Task(
        learner,
        partial(cluster_examples, truth, shares, 0.2),
        lambda centres, population: centres.distance(Centres(truth)),
    )


def logistic_regression(learner: LogisticRegression) -> Task[Halfspace]:
    """A loud feature independent of the label, and faint ones that determine it: their gradient is
    barely worth alpha. Misses by the excess loss."""
    d = learner.d
    faint = range(1, d) if d > 1 else range(1)
    # the weights 0 miss by barely more than alpha
    strength = min(1.0, 2.25 * learner.alpha / learner.radius * math.sqrt(d / len(faint)))
    weights = (
        learner.radius / math.sqrt(len(faint)) if place in faint else 0.0 for place in range(d)
    )
    best = Halfspace(tuple(weights))
    least = logistic_loss(best, faint_examples(d, strength))
    return Task(
        learner,
        partial(faint_examples, d, strength),
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
    """Every task by its learner's name, at the size at which it is tried: the non-adaptive learners
    first."""
    return {name: task(learner) for name, (learner, task) in TRIED.items()}
