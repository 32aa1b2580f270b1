"""Large conjunctions by a polynomial, and pairs of many columns: prices over all neighbours,
errors, and projections."""

import math
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import nnls

from local_dp.accounting.losses import gaussian_delta
from local_dp.arrays import Floats
from local_dp.curator.marginals.base import BinaryTable
from local_dp.curator.marginals.conjunctions import (
    Disjunctions,
    WeightedMonomials,
    best_degree,
    bias,
    coefficients,
    monomial_counts,
)
from local_dp.curator.marginals.pairs import (
    PairGaussian,
    SignTable,
    onto_elliptope,
    onto_hull,
    pairs_of,
)
from local_dp.loss import approximate
from tests.support.inputs.refusals import refuse
from tests.support.runs.scripted import Script, seeded


@pytest.mark.parametrize("width", [1, 2, 5, 33])
def test_the_polynomial_is_within_its_bias(width: int) -> None:
    """In fractions: 0 of no ones, within the bias of 1 from 1 to `width` ones, which it reaches.
    More records pay for a higher degree."""
    for degree in range(1, min(width, 10) + 1):
        polynomial = coefficients(degree, width)
        values = [
            sum((c * math.comb(z, r) for r, c in enumerate(polynomial, 1)), Fraction(0))
            for z in range(width + 1)
        ]
        assert values[0] == 0
        assert max(abs(value - 1) for value in values[1:]) == bias(degree, width)
    for wide, degree in ((4, 3), (16, 6), (64, 12)):  # the least degrees of bias .1, as tabulated
        assert bias(degree, wide) <= Fraction(1, 10) < bias(degree - 1, wide)
    degrees = [best_degree(12, 6, size, approximate(1.0, 1e-6)) for size in (300, 10**4, 10**7)]
    assert degrees == sorted(degrees)
    assert degrees[0] < degrees[-1] == 6


@pytest.mark.parametrize(("d", "size"), [(1, 1), (5, 70), (9, 300)])
def test_monomials_are_counted(d: int, size: int) -> None:
    """Against counting each set of columns, in colexicographic order."""
    table = BinaryTable.of(np.random.default_rng(d).integers(0, 2, (size, d)))
    for r, counts in enumerate(monomial_counts(table, min(d, 4)), 1):
        sets = sorted(combinations(range(d), r), key=lambda columns: columns[::-1])
        assert counts.tolist() == [
            int(table.bits[:, columns].all(axis=1).sum()) for columns in sets
        ]


@pytest.mark.parametrize("degree", [2, 3, 5])
def test_answers_without_noise(degree: int) -> None:
    """Every disjunction of up to 5 of 7 columns, within the bias; exactly at degree 5."""
    disjunctions, table = (
        Disjunctions(7, 5, degree),
        BinaryTable.of(np.random.default_rng(3).random((90, 7)) < 0.2),
    )
    mechanism = WeightedMonomials(disjunctions, 1.0, 1e-6)
    released, worst = mechanism.release(table, Script([0] * 400)), 0.0
    for size in range(6):
        for columns in combinations(range(7), size):
            truth = int(table.bits[:, list(columns)].any(axis=1).sum())
            worst = max(worst, abs(released.any_of(columns) - truth))
            assert released.all_of(columns) == pytest.approx(90 - released.any_of(columns))
    assert worst <= 90 * disjunctions.bias + 1e-9
    assert worst > 0 or degree == 5


def test_the_price_over_all_neighbours() -> None:
    """Every row replaced by every other: the squared moves over the variances are at most mu^2, in
    fractions, and nearly that for one pair."""
    mechanism = WeightedMonomials(Disjunctions(5, 4, 3), 1.0, 1e-6)
    counts = [
        monomial_counts(BinaryTable.of(np.array([row])), 3) for row in product((0, 1), repeat=5)
    ]
    worst = max(
        sum(
            (
                Fraction(int(((a - b) ** 2).sum()), v)
                for a, b, v in zip(one, other, mechanism.variances, strict=True)
            ),
            Fraction(0),
        )
        for one, other in product(counts, repeat=2)
    )
    assert (
        0.97e-6
        < gaussian_delta(math.sqrt(worst), 1.0)
        <= 1e-6
        < gaussian_delta(math.sqrt(2 * worst), 1.0)
    )


def test_errors_have_their_deviation() -> None:
    """Squares of 400 answers' errors in standard ones average 1 within 6 standard errors, about
    what the release without noise says."""
    disjunctions, table, draws = (
        Disjunctions(6, 4, 2),
        BinaryTable.of(np.random.default_rng(4).integers(0, 2, (50, 6))),
        seeded(5),
    )
    mechanism = WeightedMonomials(disjunctions, 1.0, 1e-6)
    exact = mechanism.release(table, Script([0] * 200)).any_of([0, 2, 3, 5])
    scores = np.array(
        [
            (mechanism.release(table, draws).any_of([0, 2, 3, 5]) - exact) / mechanism.deviation
            for _ in range(400)
        ]
    )
    assert abs(float((scores**2).mean()) - 1) < 6 * math.sqrt(2 / 400)


def test_weights_are_best() -> None:
    """No other noise by size of the same price has a smaller error at full width: a tenth more or
    less for one size costs."""
    disjunctions = Disjunctions(12, 6, 4)
    variances = [
        float(variance) for variance in WeightedMonomials(disjunctions, 1.0, 1e-6).variances
    ]

    def error(variances_of_sizes: list[float]) -> float:
        price = sum(
            size / variance
            for size, variance in zip(disjunctions.sizes, variances_of_sizes, strict=True)
        )
        terms = zip(coefficients(4, 6), variances_of_sizes, strict=True)
        return price * sum(
            float(c) ** 2 * math.comb(6, r) * variance for r, (c, variance) in enumerate(terms, 1)
        )

    for r, factor in product(range(4), (0.9, 1.1)):
        assert error(
            [variance * (factor if place == r else 1) for place, variance in enumerate(variances)]
        ) > error(variances)


def noisy(d: int, seed: int, spread: float) -> Floats:
    """A symmetric matrix about the means of a table, 1 on the diagonal."""
    generator = np.random.default_rng(seed)
    table = SignTable.of(generator.integers(0, 2, (20, d)))
    above = np.triu_indices(d, 1)
    sums = table.sums[above] + 20 * spread * generator.standard_normal(len(above[0]))
    return pairs_of(sums, 20, 1.0).means


@pytest.mark.parametrize("d", [2, 3, 5, 6])
def test_the_price_over_all_neighbours_of_pairs(d: int) -> None:
    """Every row replaced by every other: the largest squared move of all pairs is what is paid for,
    and the noise is the least for it."""
    rows = np.array(list(product((1, -1), repeat=d)))
    above = np.triu_indices(d, 1)
    sums = (rows[:, :, None] * rows[:, None, :])[:, *above]
    worst = max(int(((sums - each) ** 2).sum(axis=1).max()) for each in sums)
    mechanism = PairGaussian(d, 1.0, 1e-6)
    assert mechanism.square == worst
    spent = [
        gaussian_delta(math.sqrt(worst / variance), 1.0)
        for variance in (mechanism.variance, mechanism.variance - 1)
    ]
    assert spent[0] <= 1e-6 < spent[1]
    assert worst > len(above[0])  # what an added record moves: too little


def test_what_is_released_is_the_means_and_noise() -> None:
    """With words that draw no noise, the means themselves; with noise, of the stated deviation
    within 6 standard errors, and symmetric."""
    table = SignTable.of(np.random.default_rng(0).integers(0, 2, (50, 9)))
    mechanism = PairGaussian(9, 1.0, 1e-6)
    exact = mechanism.release(table, Script([0] * 72))
    assert exact.means == pytest.approx((table.signs.T.astype(float) @ table.signs) / 50)
    draws, above = seeded(1), np.triu_indices(9, 1)
    released = [mechanism.release(table, draws) for _ in range(200)]
    off = np.array([each.means[above] - exact.means[above] for each in released]) / exact.deviation
    assert abs(float((off**2).mean()) - 1) < 6 * math.sqrt(2 / off.size)
    assert np.array_equal(released[0].means, released[0].means.T)


@pytest.mark.parametrize(("d", "spread"), [(3, 1.0), (7, 0.3), (7, 2.0)])
def test_the_elliptope(d: int, spread: float) -> None:
    """Semidefinite with diagonal 1, and the nearest: <Z - Y, W - Z> >= 0 for the vertices W of the
    body and many mixtures of them."""
    matrix = noisy(d, d, spread)
    nearest = onto_elliptope(matrix)
    assert np.diag(nearest) == pytest.approx(1)
    assert np.linalg.eigvalsh(nearest).min() > -1e-9
    vectors = np.random.default_rng(d).standard_normal((2000, d, d))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    others = [
        *(vectors @ vectors.transpose(0, 2, 1)),
        *(np.outer(v, v) for v in product((1, -1), repeat=d)),
    ]
    assert min(float(((nearest - matrix) * (other - nearest)).sum()) for other in others) > -1e-3
    assert onto_elliptope(nearest) == pytest.approx(nearest, abs=1e-4)


@pytest.mark.parametrize(("d", "spread"), [(2, 1.5), (4, 0.5), (6, 1.0), (6, 0.1)])
def test_the_hull(d: int, spread: float) -> None:
    """As non-negative least squares over all 2^(d - 1) vertices at once find it; what is in it
    stays."""
    matrix, above = noisy(d, d, spread), np.triu_indices(d, 1)
    signs = np.array([(1, *rest) for rest in product((1, -1), repeat=d - 1)])
    vertices = (signs[:, :, None] * signs[:, None, :])[:, *above].T
    weights = nnls(np.vstack([vertices, np.full(len(signs), 1e4)]), np.append(matrix[above], 1e4))[
        0
    ]
    nearest = onto_hull(matrix)
    assert nearest[above] == pytest.approx(vertices @ weights, abs=1e-4)
    assert onto_hull(nearest) == pytest.approx(nearest, abs=1e-4)


def test_bad_input() -> None:
    released = WeightedMonomials(Disjunctions(4, 2, 1), 1.0, 1e-6).release(
        BinaryTable.of(np.zeros((3, 4), dtype=int)), seeded(0)
    )
    refuse(
        ("the degree is 5", lambda: Disjunctions(8, 4, 5)),
        ("smaller degree", lambda: Disjunctions(64, 32, 8)),
        *(("at most 2", partial(released.any_of, wrong)) for wrong in ([0, 1, 2], [4], [-1])),
        ("-1 and 1", lambda: SignTable(np.zeros((3, 3), dtype=np.int8))),
        (
            "the mechanism 4",
            lambda: PairGaussian(4, 1.0, 1e-6).release(
                SignTable.of(np.zeros((2, 3), dtype=int)), seeded(0)
            ),
        ),
        ("from 2 to 12", lambda: onto_hull(np.eye(13))),
        ("symmetric matrix", lambda: onto_elliptope(np.array([[1.0, 2.0], [0.0, 1.0]]))),
    )
