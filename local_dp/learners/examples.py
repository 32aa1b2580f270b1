"""Finite populations of examples for the learners: every kind of record with its exact probability, so that an exact oracle is exact."""

import math
from collections.abc import Sequence

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_dimension
from local_dp.errors import InputError
from local_dp.learners.learner import Classifier, features, signs
from local_dp.populations.finite import Finite
from local_dp.records import Records

MAX_CUBE = 16


def cube(d: int) -> Records:
    """Every point of {0,1}^d in the columns x0, ..., x{d-1}; row r holds the binary digits of r."""
    check_dimension(d, MAX_CUBE)
    rows = np.arange(1 << d, dtype=np.uint32)
    return Records({name: (rows >> place & 1).astype(np.uint8) for place, name in enumerate(features(d))})


def product_law(ones: Sequence[float]) -> Floats:
    """The probabilities of the rows of `cube` when x_j is 1 with probability ones[j], independently."""
    law = np.ones(1)
    for one in ones:
        law = np.concatenate([(1 - one) * law, one * law])
    return law


def first_one_law(d: int) -> Floats:
    """The probabilities of the rows of `cube` when the first j with x_j = 1 is uniform on the d places and the later bits are uniform.

    Every rule of a list over x0, x1, ... then decides equally often: the uniform distribution hardly ever reaches the late ones.
    """
    rows = np.arange(1, 1 << d)
    first = np.array([(row & -row).bit_length() - 1 for row in rows.tolist()])
    return np.concatenate([[0.0], 1 / (d * 2.0 ** (d - 1 - first))])


def labelled(records: Records, shares: Sequence[float] | Floats, concept: Classifier, size: int = 1, seed: int = 0, flip: float = 0.0) -> Finite:
    """Examples (x, concept(x)) with y = +1 or -1, flipped with probability `flip`; a positive `flip` makes the task agnostic."""
    y = concept.predict(records)
    clean = Finite(Records({**records.columns, "y": y}), np.asarray(shares).tolist(), size, seed)
    if flip == 0:
        return clean
    columns = {name: np.concatenate([values, values]) for name, values in records.columns.items()}
    both = Records({**columns, "y": np.concatenate([y, -y])})
    return Finite(both, np.concatenate([(1 - flip) * clean.shares, flip * clean.shares]).tolist(), size, seed)


def uniform_examples(d: int, concept: Classifier, size: int = 1, seed: int = 0) -> Finite:
    """Examples of a concept, uniform over {0,1}^d."""
    return labelled(cube(d), np.ones(1 << d), concept, size, seed)


def line(bits: int) -> Records:
    """The points 0, ..., 2^bits - 1 in the column x."""
    return Records({"x": np.arange(1 << bits, dtype=np.int64)})


def naive_bayes_examples(prior: float, yes: Sequence[Sequence[float]], size: int = 1, seed: int = 0) -> Finite:
    """Pr[y = 1] = prior and, given y, independent features with `Pr[x_j = 1] = yes[0][j]` for y = -1 and `yes[1][j]` for y = 1."""
    records = cube(len(yes[0]))
    columns = {name: np.concatenate([values, values]) for name, values in records.columns.items()}
    y = np.repeat(np.array([-1, 1], dtype=np.int8), len(records))
    shares = np.concatenate([(1 - prior) * product_law(yes[0]), prior * product_law(yes[1])])
    return Finite(Records({**columns, "y": y}), shares.tolist(), size, seed)


def signed_cube(d: int) -> Records:
    """The points of {+-1 / sqrt d}^d, of norm 1: row r of `cube`, a bit 1 as minus."""
    return Records({name: (1 - 2 * values.astype(np.float64)) / math.sqrt(d) for name, values in cube(d).columns.items()})


def halfspace_examples(weights: Sequence[float], gamma: float, size: int = 1, seed: int = 0) -> Finite:
    """Uniform over the points of `signed_cube` with abs(<w, x>) >= gamma norm(w), labelled +1/-1 by the sign. Raises InputError if no point is left."""
    records, w = signed_cube(len(weights)), np.array(weights)
    score = sum(weight * values for weight, values in zip(w / np.linalg.norm(w), records.columns.values(), strict=True))
    kept = np.flatnonzero(np.abs(score) >= gamma - 1e-12)
    if not len(kept):
        raise InputError(f"no point of the cube has margin {gamma} for these weights; give a smaller margin")
    y = signs(score > 0)
    return Finite(Records({**records.columns, "y": y}).take(kept), [1 / len(kept)] * len(kept), size, seed)


def skewed_examples(d: int, gamma: float, rare: float, size: int = 1, seed: int = 0) -> Finite:
    """y x = gamma w +- (1 - gamma) v for orthogonal w = (1, 1, ...) / sqrt d and v = (1, -1, 1, ...) / sqrt d; minus with probability `rare`.

    The halfspace of w has margin gamma on every example, exactly; below gamma = 1/2 the average of y x misclassifies the rare ones.
    """
    check_dimension(d)
    alternating = np.array([1.0, -1.0] * (d // 2) + [0.0] * (d % 2))
    y, side = np.array([1, -1, 1, -1], dtype=np.int8), np.array([1.0, 1.0, -1.0, -1.0])
    x = y * (gamma + (1 - gamma) * alternating[:, None] * side) / math.sqrt(d)
    return Finite(Records({**dict(zip(features(d), x, strict=True)), "y": y}), [1 - rare, 1 - rare, rare, rare], size, seed)


def list_weights(d: int) -> Floats:
    """Weights of a halfspace that is the list "x0: +1, else x1: -1, else x2: +1, ...": each outweighs the later ones against it. Fibonacci numbers."""
    weights = np.zeros(d)
    for place in reversed(range(d)):
        weights[place] = 1 + weights[place + 1 :: 2].sum()
    return weights * (-1.0) ** np.arange(d)


def list_halfspace_examples(d: int, size: int = 1, seed: int = 0) -> tuple[Finite, float]:
    """The alternating list of d variables as a halfspace over d + 1 features +-1 / sqrt(d + 1), the last constant; and a margin it has.

    Every rule is decisive equally often, and the margin falls as 1.618^-d.
    """
    bits, law = cube(d), first_one_law(d)
    kept = np.flatnonzero(law)
    weights = list_weights(d)
    score = np.asarray(sum(weight * bits[name] for weight, name in zip(weights, features(d), strict=True)))[kept]
    columns = {name: (1.0 - 2.0 * bits[name][kept]) / math.sqrt(d + 1) for name in features(d)}
    constant = {f"x{d}": np.full(len(kept), 1 / math.sqrt(d + 1))}
    norm = math.sqrt(float((weights**2).sum() + weights.sum() ** 2)) / 2  # of the same halfspace over the signs and the constant
    margin = float(np.abs(score).min()) / (math.sqrt(d + 1) * norm)
    return Finite(Records({**columns, **constant, "y": signs(score > 0)}), law[kept].tolist(), size, seed), margin


def faint_examples(d: int, strength: float, size: int = 1, seed: int = 0) -> Finite:
    """Labels of +1 and -1, equally likely; a loud first feature +-1 / sqrt d that says nothing of them, and faint others, y strength / sqrt d each."""
    loud, y = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1, -1, 1, -1], dtype=np.int8)
    columns = {name: (loud if place == 0 and d > 1 else strength * y) / math.sqrt(d) for place, name in enumerate(features(d))}
    return Finite(Records({**columns, "y": y}), [1.0] * 4, size, seed)


def correlated_examples(weights: Sequence[float], correlation: float, noise: float, size: int = 1, seed: int = 0) -> Finite:
    """x over {-1, +1}^d, uniform, but all coordinates equal with probability `correlation` (so that is E[x_i x_j]); y = <w, x> +- noise, equally likely.

    The least eigenvalue of E[x x^T] is 1 - correlation, in every direction whose coordinates sum to 0.
    """
    d = len(weights)
    x = 2.0 * np.stack(list(cube(d).columns.values())) - 1
    law = np.full(1 << d, (1 - correlation) / (1 << d))
    law[[0, -1]] += correlation / 2
    twice = np.concatenate([x, x], axis=1)
    y = np.array(weights) @ twice + noise * np.repeat([1.0, -1.0], 1 << d)
    return Finite(Records({**dict(zip(features(d), twice, strict=True)), "y": y}), np.concatenate([law, law]).tolist(), size, seed)


def cluster_examples(centres: Sequence[Sequence[float]], shares: Sequence[float], spread: float, size: int = 1, seed: int = 0) -> Finite:
    """Around each centre the 5^d points of a lattice of half-width `spread`, equally likely within a cluster."""
    d = len(centres[0])
    offsets = np.array(np.meshgrid(*[np.linspace(-spread, spread, 5)] * d, indexing="ij")).reshape(d, -1)
    points = np.concatenate([np.array(centre)[:, None] + offsets for centre in centres], axis=1)
    kinds = Records(dict(zip(features(d), points, strict=True)))
    return Finite(kinds, np.repeat(np.array(shares) / offsets.shape[1], offsets.shape[1]).tolist(), size, seed)


def error_rate(hypothesis: Classifier, population: Finite) -> float:
    """Pr[hypothesis(x) != y], exactly."""
    return float(population.shares @ (hypothesis.predict(population.kinds) != population.kinds["y"]))
