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
from tests.support.inputs.refusals import refuse
from tests.support.runs.scripted import Script, seeded

QUERIES = Disjunctions(5, 4, 3)
MECHANISM = WeightedMonomials(QUERIES, 1.0, 1e-6)


@pytest.mark.parametrize("width", [1, 2, 5, 33])
def test_the_polynomial_is_within_its_bias(width: int) -> None:
    """In fractions: 0 of no ones, within the bias of 1 from 1 to `width` ones, which it reaches."""
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


@pytest.mark.parametrize(("d", "size"), [(1, 1), (9, 300)])
def test_monomials_are_counted(d: int, size: int) -> None:
    """Against counting each set of columns, in colexicographic order."""
    table = BinaryTable.of(np.random.default_rng(d).integers(0, 2, (size, d)))
    for r, counts in enumerate(monomial_counts(table, min(d, 4)), 1):
        sets = sorted(combinations(range(d), r), key=lambda columns: columns[::-1])
        assert counts.tolist() == [
            int(table.bits[:, columns].all(axis=1).sum()) for columns in sets
        ]


@pytest.mark.parametrize("degree", [2, 5])
def test_answers_without_noise(degree: int) -> None:
    """Every disjunction of up to 5 of 7 columns, within the bias; exactly at degree 5."""
    disjunctions, table = (
        Disjunctions(7, 5, degree),
        BinaryTable.of(np.random.default_rng(3).random((90, 7)) < 0.2),
    )
    release, worst = (
        WeightedMonomials(disjunctions, 1.0, 1e-6).release(table, Script([0] * 400)),
        0.0,
    )
    for size in range(6):
        for columns in combinations(range(7), size):
            truth = int(table.bits[:, columns].any(axis=1).sum())
            worst = max(worst, abs(release.any_of(columns) - truth))
            assert release.all_of(columns) == pytest.approx(90 - release.any_of(columns))
    assert worst <= 90 * disjunctions.bias + 1e-9
    assert (worst > 1e-9) == (degree < 5)


def test_the_price_over_all_neighbours() -> None:
    """Every row replaced by every other: the squared moves over the variances are at most mu^2, in
    fractions, and nearly that for one pair."""
    counts = [
        monomial_counts(BinaryTable.of(np.array([row])), 3) for row in product((0, 1), repeat=5)
    ]
    worst = Fraction(0)
    for one, other in product(counts, repeat=2):
        moves = [int(((a - b) ** 2).sum()) for a, b in zip(one, other, strict=True)]
        worst = max(worst, sum(map(Fraction, moves, MECHANISM.variances), Fraction(0)))
    assert 0.97e-6 < gaussian_delta(math.sqrt(worst), 1.0) <= 1e-6
    assert gaussian_delta(math.sqrt(2 * worst), 1.0) > 1e-6


def test_weights_are_best() -> None:
    """The deviation is that of the sum at full width; other noise by size of the same price has a
    larger one: a tenth more or less for one size costs."""
    squares = [float(c) ** 2 * math.comb(4, r) for r, c in enumerate(coefficients(3, 4), 1)]
    variances, sizes = np.array(MECHANISM.variances, dtype=float), np.array(QUERIES.sizes)
    assert MECHANISM.deviation == pytest.approx(math.sqrt(squares @ (variances + 1 / 12)))
    own = (sizes / variances).sum() * (squares @ variances)
    for others in variances * (1 + np.vstack([np.eye(3), -np.eye(3)]) / 10):
        assert (sizes / others).sum() * (squares @ others) > own


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_price_over_all_neighbours_of_pairs(d: int) -> None:
    """Every row replaced by every other: the largest squared move of all pairs is what is paid for;
    an added record moves less."""
    rows, (first, second) = np.array(list(product((1, -1), repeat=d))), np.triu_indices(d, 1)
    sums = rows[:, first] * rows[:, second]
    worst = int(((sums[:, None] - sums) ** 2).sum(axis=2).max())
    assert PairGaussian(d, 1.0, 1e-6).square == worst > len(first)


def test_what_is_released_is_the_means_and_noise() -> None:
    """With words that draw no noise, the means themselves; with noise symmetric, of the stated
    deviation."""
    table = SignTable.of(np.random.default_rng(0).integers(0, 2, (50, 9)))
    mechanism = PairGaussian(9, 1.0, 1e-6)
    exact, noisy = mechanism.release(table, Script([0] * 72)), mechanism.release(table, seeded(1))
    assert exact.means == pytest.approx((table.signs.T.astype(float) @ table.signs) / 50)
    assert exact.deviation == pytest.approx(math.sqrt(mechanism.variance + 1 / 12) / 50)
    assert np.array_equal(noisy.means, noisy.means.T)


def noisy(d: int, spread: float) -> Floats:
    """A symmetric matrix about the means of a table, 1 on the diagonal."""
    generator, above = np.random.default_rng(d), np.triu_indices(d, 1)
    table = SignTable.of(generator.integers(0, 2, (20, d)))
    noise = 20 * spread * generator.standard_normal(len(above[0]))
    return pairs_of(table.sums[above] + noise, 20, 1.0).means


@pytest.mark.parametrize(("d", "spread"), [(3, 1.0), (7, 2.0)])
def test_the_elliptope(d: int, spread: float) -> None:
    """Semidefinite with diagonal 1, and the nearest: <Z - Y, W - Z> >= 0 for the vertices W of the
    body and many mixtures of them."""
    matrix = noisy(d, spread)
    nearest = onto_elliptope(matrix)
    assert np.diag(nearest) == pytest.approx(1)
    assert np.linalg.eigvalsh(nearest).min() > -1e-9
    vectors = np.random.default_rng(d).standard_normal((2000, d, d))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    vertices = (np.outer(v, v) for v in product((1, -1), repeat=d))
    for other in (*(vectors @ vectors.transpose(0, 2, 1)), *vertices):
        assert ((nearest - matrix) * (other - nearest)).sum() > -1e-3
    assert onto_elliptope(nearest) == pytest.approx(nearest, abs=1e-4)


@pytest.mark.parametrize(("d", "spread"), [(2, 1.5), (6, 1.0)])
def test_the_hull(d: int, spread: float) -> None:
    """As non-negative least squares over all 2^(d - 1) vertices at once find it; what is in it
    stays."""
    matrix, above = noisy(d, spread), np.triu_indices(d, 1)
    signs = np.array(list(product((1,), *[(1, -1)] * (d - 1))))
    vertices = (signs[:, above[0]] * signs[:, above[1]]).T
    system = np.vstack([vertices, np.full(len(signs), 1e4)])
    weights = nnls(system, np.append(matrix[above], 1e4))[0]
    nearest = onto_hull(matrix)
    assert nearest[above] == pytest.approx(vertices @ weights, abs=1e-4)
    assert onto_hull(nearest) == pytest.approx(nearest, abs=1e-4)


def test_bad_input() -> None:
    release = WeightedMonomials(Disjunctions(4, 2, 1), 1.0, 1e-6).release(
        BinaryTable.of(np.zeros((3, 4), dtype=int)), seeded(0)
    )
    refuse(
        ("the degree is 5", lambda: Disjunctions(8, 4, 5)),
        ("smaller degree", lambda: Disjunctions(64, 32, 8)),
        *(("at most 2", partial(release.any_of, wrong)) for wrong in ([0, 1, 2], [4], [-1])),
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
