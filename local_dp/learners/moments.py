"""Learners that ask for counts, moments, sums and Fourier coefficients: linear regression, naive
Bayes, thresholds, k-means and polynomials."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, combinations_with_replacement
from typing import Self, TypeAlias

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_dimension, check_positive, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.learners.learner import (
    AdaptiveLearner,
    CubeLearner,
    Learner,
    Promise,
    Scorer,
    Weights,
    features,
    share,
    signs,
    weighted,
)
from local_dp.oracles.statistical.oracles import Statistical, StatisticalPlay, StatisticalQuery
from local_dp.queries.examples import Correlation, Product, SignedLabel
from local_dp.queries.query import check_weights, matrix, weighted_sum, written
from local_dp.queries.tables import Question
from local_dp.queries.vectors import CentreSum, NearestCentre, nearest
from local_dp.records import Records


@dataclass(frozen=True)
class LinearModel(Weights):
    """Predicts <weights, x>."""

    def __str__(self) -> str:
        return f"y = {super().__str__()}"

    def predict(self, records: Records) -> Floats:
        return self.product(records)


@dataclass(frozen=True, kw_only=True)
class LinearRegression(Learner[LinearModel]):
    """Least squares of y on x0, ..., x{d-1}, all in [-1, 1]: mean square error at most the least
    plus alpha.

    Asks for the d (d + 3) / 2 moments E[x_i x_j] and E[x_j y] at once and solves the normal
    equations. With l at most the least eigenvalue of E[x x^T], and B at least the sum of the best
    weights' absolute values, the excess is at most d tau^2 (1 + B)^2 / (l (1 - d tau / l)^2): alpha
    for the tolerance tau = s / (1
    + s d / l), s = sqrt(alpha l / d) / (1 + B). Estimated eigenvalues below l - d tau are raised to
      it. Source: limits 9, with the constants derived.
    """

    name = "linear-regression"
    source = "least squares on statistical queries"
    d: int = 3
    least_eigenvalue: float = 0.2
    radius: float = 1.0

    def check(self) -> None:
        check_dimension(self.d)
        check_positive("radius", self.radius)
        if not 0 < self.least_eigenvalue <= 1:
            raise InputError(
                f"least_eigenvalue is {self.least_eigenvalue}; give a number above 0 and at most 1"
            )

    @property
    def promise(self) -> Promise:
        plain = math.sqrt(self.alpha * self.least_eigenvalue / self.d) / (1 + self.radius)
        tolerance = plain / (1 + plain * self.d / self.least_eigenvalue)
        return Promise(tolerance, self.d * (self.d + 3) // 2)

    def algorithm(self) -> Statistical[LinearModel]:
        columns = features(self.d)
        pairs = tuple(combinations_with_replacement(range(self.d), 2))
        queries = [Product((columns[i], columns[j])) for i, j in pairs] + [
            Product((column, "y")) for column in columns
        ]

        def decode(answers: tuple[float, ...]) -> LinearModel:
            second = np.zeros((self.d, self.d))
            for (i, j), answer in zip(pairs, answers, strict=False):
                second[i, j] = second[j, i] = answer
            eigenvalues, vectors = np.linalg.eigh(second)
            spectrum = np.maximum(eigenvalues, self.least_eigenvalue - self.d * self.tolerance)
            weights: Floats = vectors @ ((vectors.T @ np.array(answers[len(pairs) :])) / spectrum)
            return LinearModel(tuple(weights.tolist()))

        return Nonadaptive(tuple(map(self.ask, queries)), decode)


_FLOOR = 1e-9  # of a probability, so that its logarithm is finite


@dataclass(frozen=True)
class BayesRule(Scorer):
    """+1 where log Pr[y = 1] + sum_j log Pr[x_j | y = 1] exceeds the same for y = -1; `prior` is
    Pr[y = 1], `yes` Pr[x_j = 1 | y] for y = -1 and then +1."""

    prior: float
    yes: tuple[tuple[float, ...], tuple[float, ...]]

    def __post_init__(self) -> None:
        check_weights((self.prior, *self.yes[0]))
        check_weights(self.yes[1], len(self.yes[0]))

    def __str__(self) -> str:
        likely = (", ".join(f"{share:.3g}" for share in shares) for shares in self.yes)
        return "P(y = 1) = {:.3g}; P(x_j = 1 | y = -1) = {}; P(x_j = 1 | y = +1) = {}".format(
            self.prior, *likely
        )

    def score(self, records: Records) -> Floats:
        """The logarithm of the odds of y = 1, shape (n,)."""
        bits = matrix(records, features(len(self.yes[0])))
        pairs = zip((1 - self.prior, self.prior), self.yes, strict=True)
        no, yes = (
            _logarithm(np.array(weight)) + _likelihood(np.array(yes), bits) for weight, yes in pairs
        )
        return np.asarray(yes - no)


def _logarithm(probability: Floats) -> Floats:
    return np.log(np.clip(probability, _FLOOR, 1))


def _likelihood(yes: Floats, bits: Floats) -> Floats:
    return weighted_sum(_logarithm(yes), bits) + weighted_sum(_logarithm(1 - yes), 1 - bits)


@dataclass(frozen=True, kw_only=True)
class NaiveBayes(CubeLearner[BayesRule]):
    """Learns the best classifier over {0,1}^d where the features are independent given the label:
    error at most that of the best one plus alpha.

    Asks for Pr[y = 1], Pr[x_j = 1, y = 1] and Pr[x_j = 1, y = -1] at once, within tau = alpha / (4
    d + 1): the joint laws are off by (4 d + 1) tau in total variation, which bounds the loss.
    Source: limits 9, with the tolerance that a worst-case oracle needs.
    """

    name = "naive-bayes"
    source = "naive Bayes on statistical queries"

    @property
    def promise(self) -> Promise:
        return Promise(self.alpha / (4 * self.d + 1), 2 * self.d + 1)

    def algorithm(self) -> Statistical[BayesRule]:
        def decode(answers: tuple[float, ...]) -> BayesRule:
            prior = float(np.clip(share(answers[0]), _FLOOR, 1 - _FLOOR))
            joint = np.array([share(answer) for answer in answers[1:]]).reshape(2, self.d)
            yes = np.clip(joint / np.array([[1 - prior], [prior]]), 0, 1)
            return BayesRule(prior, (tuple(yes[0].tolist()), tuple(yes[1].tolist())))

        texts = [
            "y == 1",
            *(
                f"{column} == 1 and y == {label}"
                for label in (-1, 1)
                for column in features(self.d)
            ),
        ]
        return Nonadaptive(tuple(self.ask(Question(text)) for text in texts), decode)


@dataclass(frozen=True)
class AtLeast:
    """+1 where x >= threshold, else -1."""

    threshold: int

    def __str__(self) -> str:
        return f"x >= {self.threshold}"

    def predict(self, records: Records) -> Ints:
        return signs(records["x"] >= self.threshold)


def dyadic(bits: int) -> tuple[tuple[int, int], ...]:
    """The left children of the dyadic tree over 0..2^bits - 1, as (start, stop): every prefix is a
    disjoint union of at most `bits` of them, or everything."""
    return tuple(
        (start, start + width)
        for width in (1 << level for level in range(bits))
        for start in range(0, 1 << bits, 2 * width)
    )


def prefix(stop: int, bits: int) -> tuple[tuple[int, int], ...]:
    """The left children whose disjoint union is 0..stop - 1, for stop < 2^bits: one for each binary
    digit 1 of `stop`."""
    parts, start = [], 0
    for level in reversed(range(bits)):
        if stop >> level & 1:
            parts.append((start, start + (1 << level)))
            start += 1 << level
    return tuple(parts)


@dataclass(frozen=True, kw_only=True)
class Thresholds(Learner[AtLeast]):
    """Learns a threshold on {0, ..., 2^bits - 1}, agnostically and under every distribution: error
    at most that of the best one plus alpha.

    The error of the threshold t is a constant plus E[y 1(x < t)], and that is a sum of at most
    `bits` dyadic queries; two such sums are compared. Asks for the 2^bits - 1 left children at
    once, within alpha / (2 bits). Source: dyadic (tree) decomposition; limits 9.
    """

    name = "thresholds"
    source = "dyadic intervals"
    bits: int = 4

    def check(self) -> None:
        check_whole("bits", self.bits, 1, 12)

    @property
    def promise(self) -> Promise:
        return Promise(self.alpha / (2 * self.bits), (1 << self.bits) - 1)

    def algorithm(self) -> Statistical[AtLeast]:
        parts = dyadic(self.bits)

        def decode(answers: tuple[float, ...]) -> AtLeast:
            signed = dict(zip(parts, answers, strict=True))
            excess = [
                sum(signed[part] for part in prefix(stop, self.bits))
                for stop in range(1 << self.bits)
            ]
            return AtLeast(int(np.argmin(excess)))

        return Nonadaptive(
            tuple(
                self.ask(SignedLabel(f"x >= {start} and x < {stop}", "y")) for start, stop in parts
            ),
            decode,
        )


@dataclass(frozen=True)
class Centres:
    """k centres in d dimensions."""

    points: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        for point in self.points or ((),):
            check_weights(point, len(self.points[0]) if self.points else 0)

    def __str__(self) -> str:
        return "; ".join(
            f"({', '.join(f'{value:.4g}' for value in point)})" for point in self.points
        )

    def predict(self, records: Records) -> Ints:
        return nearest(matrix(records, features(len(self.points[0]))), np.array(self.points))

    def square_distance(self, records: Records) -> Floats:
        """The square distance of each record to its nearest centre, shape (n,)."""
        points = matrix(records, features(len(self.points[0])))
        centres = np.array(self.points)[nearest(points, np.array(self.points))].T
        return np.asarray(((points - centres) ** 2).sum(axis=0))

    def distance(self, other: "Centres") -> float:
        """The largest difference of a coordinate between centres of the same index."""
        return float(np.abs(np.array(self.points) - np.array(other.points)).max())


@dataclass(frozen=True, kw_only=True)
class KMeans(AdaptiveLearner[Centres]):
    """Lloyd's iteration from the given `start` on records in [-1, 1]^d: each coordinate of each new
    centre is within alpha of the exact step.

    A round asks for the share of records nearest to each centre and for the sum of their d
    coordinates. A centre is a sum over a share, so the tolerance 2 alpha c / 3 is enough where
    every cluster holds a share of at least c = `least_share`. Source: Blum, Dwork, McSherry, Nissim
    2005 (SuLQ); limits 9.
    """

    name = "k-means"
    source = "Blum, Dwork, McSherry, Nissim 2005"
    start: tuple[tuple[float, ...], ...] = ((-0.5, 0.0), (0.5, 0.0))
    rounds_asked: int = 5
    least_share: float = 0.2

    def check(self) -> None:
        if len({len(point) for point in self.start}) != 1:
            raise InputError(f"start is {self.start!r}; give centres of one dimension")
        check_whole("rounds_asked", self.rounds_asked, 1, 1000)
        if not 0 < self.least_share <= 1 / len(self.start):
            raise InputError(
                f"least_share is {self.least_share}; give a number above 0 and at most "
                f"{1 / len(self.start):g} for {len(self.start)} clusters"
            )

    @property
    def promise(self) -> Promise:
        queries = self.rounds_asked * len(self.start) * (len(self.start[0]) + 1)
        return Promise(2 * self.alpha * self.least_share / 3, queries, self.rounds_asked)

    def affordable(self, epsilon: float, clients: int) -> Self:
        """With fewer clients than queries, fewer rounds. Raises InputError for too few clients for
        one."""
        rounds = min(self.rounds_asked, clients * self.rounds_asked // self.queries)
        return (
            super().affordable(epsilon, clients)
            if rounds < 1
            else replace(self, rounds_asked=rounds)
        )

    def _play(self) -> StatisticalPlay[Centres]:
        centres = np.array(self.start)
        for _ in range(self.rounds_asked):
            answers = np.array((yield self._questions(centres))).reshape(len(centres), -1)
            shares = np.maximum((1 + answers[:, :1]) / 2, self.tolerance / 2)
            centres = np.clip(answers[:, 1:] / shares, -1, 1)
        return Centres(tuple(map(tuple, centres.tolist())))

    def _questions(self, centres: Floats) -> tuple[StatisticalQuery, ...]:
        columns = features(centres.shape[1])
        texts = written(centres.ravel())
        d = centres.shape[1]
        places = (d, *range(d))
        return tuple(
            self.ask(
                CentreSum(columns, texts, centre, place)
                if place < d
                else NearestCentre(columns, texts, centre)
            )
            for centre in range(len(centres))
            for place in places
        )


Set: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Polynomial(Scorer):
    """The sign of sum_S coefficient_S (-1)^(sum of x_j over S)."""

    sets: tuple[Set, ...]
    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        check_weights(self.coefficients, len(self.sets))

    def __str__(self) -> str:
        names = [
            f"(-1)^({' + '.join(f'x{place}' for place in members)})" if members else ""
            for members in self.sets
        ]
        return f"{weighted(self.coefficients, names)} > 0"

    def score(self, records: Records) -> Floats:
        """The value of the polynomial, shape (n,)."""
        total = np.zeros(len(records))
        for members, coefficient in zip(self.sets, self.coefficients, strict=True):
            odd = np.zeros(len(records), dtype=np.bool_)
            for place in members:
                odd ^= records[f"x{place}"] == 1
            total += coefficient * np.where(odd, -1.0, 1.0)
        return total


def _moment(members: Set, label: str = "") -> Correlation:
    """The product of these features and of the label, if one is named."""
    return Correlation(tuple(f"x{place}" for place in members), label)


def _sets(d: int, sizes: range) -> tuple[Set, ...]:
    return tuple(chain.from_iterable(combinations(range(d), size) for size in sizes))


@dataclass(frozen=True, kw_only=True)
class LowDegree(CubeLearner[Polynomial]):
    """Learns any function over {0,1}^d under the uniform distribution: error at most the Fourier
    weight above `degree` plus alpha.

    Asks for the N = sum_(i <= degree) C(d, i) low Fourier coefficients at once, each within
    sqrt(alpha / N), and predicts by the sign of the polynomial: the error is at most the mean
    square distance (Parseval). For the uniform distribution only. Source: Linial, Mansour, Nisan
    1993; limits 9.
    """

    name = "low-degree"
    source = "Linial, Mansour, Nisan 1993"
    degree: int = 2

    def check(self) -> None:
        super().check()
        check_whole("degree", self.degree, 0, self.d)
        if self.queries > 100_000:
            raise InputError(
                f"degree is {self.degree}; give one with at most 100,000 coefficients at d = "
                f"{self.d}"
            )

    @property
    def sets(self) -> tuple[Set, ...]:
        return _sets(self.d, range(self.degree + 1))

    @property
    def promise(self) -> Promise:
        queries = sum(math.comb(self.d, size) for size in range(self.degree + 1))
        return Promise(math.sqrt(self.alpha / queries), queries)

    def algorithm(self) -> Statistical[Polynomial]:
        sets = self.sets
        queries = tuple(self.ask(_moment(members, "y")) for members in sets)
        return Nonadaptive(queries, lambda answers: Polynomial(sets, answers))


@dataclass(frozen=True)
class OneRoundPolynomial:
    """Least squares over the polynomials of a degree on {0,1}^d, under any distribution; the
    hypothesis is the sign of the fit.

    Asks at once for the moments of the features up to twice the degree and for their correlations
    with the label. Eigenvalues below tau sqrt N, N the number of coefficients, are what errors of
    size tau can make of 0, and are raised to it. It promises the best square loss in the limit, not
    the best error: low-degree polynomials do not represent decision lists or halfspaces of small
    margin (Daniely, Feldman 2019; Dagan, Feldman 2020).
    """

    d: int = 6
    degree: int = 1
    tolerance: float = 0.01

    @cached_property
    def sets(self) -> tuple[Set, ...]:
        return LowDegree(d=self.d, degree=self.degree).sets

    @cached_property
    def moments(self) -> tuple[Set, ...]:
        """The products of two monomials, the constant left out."""
        return _sets(self.d, range(1, min(self.d, 2 * self.degree) + 1))

    @property
    def queries(self) -> int:
        return len(self.moments) + len(self.sets)

    def algorithm(self) -> Statistical[Polynomial]:
        moments = [_moment(members) for members in self.moments]
        correlations = [_moment(members, "y") for members in self.sets]
        queries = tuple(
            StatisticalQuery(query, self.tolerance) for query in (*moments, *correlations)
        )
        return Nonadaptive(
            queries, lambda answers: Polynomial(self.sets, self._solve(np.array(answers)))
        )

    def _solve(self, answers: Floats) -> tuple[float, ...]:
        moments = np.concatenate([[1.0], answers[: len(self.moments)]])
        place = {members: index for index, members in enumerate(((), *self.moments))}
        index = np.array(
            [
                [place[tuple(sorted(set(first) ^ set(second)))] for second in self.sets]
                for first in self.sets
            ]
        )
        eigenvalues, vectors = np.linalg.eigh(moments[index])
        least = self.tolerance * len(self.sets) ** 0.5
        sums = vectors.T @ answers[len(self.moments) :]
        weights: Floats = vectors @ (sums / np.maximum(eigenvalues, least))
        return tuple(weights.tolist())
