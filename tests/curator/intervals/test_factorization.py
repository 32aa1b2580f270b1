"""The square-root factorization with whole coefficients."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from local_dp.accounting.losses import gaussian_delta
from local_dp.arrays import Counts
from local_dp.curator.intervals import PrefixFactorization, exact_product, series_inverse, series_product, square_sensitivity
from local_dp.curator.multisets import Multiset
from local_dp.draws import Draws
from local_dp.loss import Approximate
from local_dp.noise import KeyedNoise
from tests.support.runs.scripted import Script


def matrix(coefficients: Counts) -> Counts:
    """The lower-triangular Toeplitz matrix with this first column."""
    places = np.arange(len(coefficients))
    lags = places[:, None] - places
    return np.where(lags >= 0, coefficients[np.maximum(lags, 0)], 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**32), st.integers(0, 2**13)), min_size=1, max_size=30))
def test_products_are_exact(pairs: list[tuple[int, int]]) -> None:
    """Against Python's whole numbers, up to the largest sums there are."""
    a, b = ([pair[k] for pair in pairs] for k in (0, 1))
    expected = [sum(a[j] * b[i - j] for j in range(i + 1)) for i in range(len(a))]
    assert exact_product(np.array(a), np.array(b)).tolist() == expected


def test_a_series_times_its_inverse() -> None:
    """Is 1, at lengths that are powers of two and that are not."""
    for size in (1, 2, 5, 64, 100):
        series = np.append(3.0, np.random.default_rng(size).random(size - 1) / size)
        assert series_product(series, series_inverse(series)) == pytest.approx(np.eye(size)[0], abs=1e-12)


@pytest.mark.parametrize("bits", [1, 2, 5, 8])
def test_sensitivity_over_all_pairs(bits: int) -> None:
    """Every record replaced by every other, in whole numbers: the largest squared distance of two columns."""
    mechanism = PrefixFactorization(bits, 1.0, 1e-6)
    columns = matrix(mechanism.coefficients).T
    worst = max(int(((columns - other) ** 2).sum(axis=1).max()) for other in columns)
    assert mechanism.square == worst
    assert bits == 1 or mechanism.square > int((columns[0] ** 2).sum())  # of a record that is added: too little


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=2, max_size=12))
def test_sensitivity_of_any_coefficients(column: list[int]) -> None:
    """Not only of those that fall."""
    columns = matrix(np.array(column)).T
    assert square_sensitivity(np.array(column)) == max(int(((a - b) ** 2).sum()) for a in columns for b in columns)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (8.0, 1e-9)])
def test_noise_is_the_least_that_the_loss_allows(epsilon: float, delta: float) -> None:
    """A variance one smaller has a larger delta; against records added or removed, half the squared sensitivity or more, it has less."""
    mechanism = PrefixFactorization(6, epsilon, delta)
    assert mechanism.loss == Approximate(round(epsilon * 10**9), round(delta * 10**18))
    spent = [gaussian_delta(math.sqrt(mechanism.square / variance), epsilon) for variance in (mechanism.variance, mechanism.variance - 1)]
    assert spent[0] <= delta < spent[1]


def test_what_is_released_is_the_product_and_noise() -> None:
    """With words that draw no noise, W x itself, exactly; from drawn noise, the same plus noise that does not depend on x."""
    mechanism, database = PrefixFactorization(4, 1.0, 1e-6), Multiset.of([0, 3, 3, 15], 4)
    counts = np.bincount([0, 3, 3, 15], minlength=16)
    assert mechanism.measured(database, Script([0] * 32)).tolist() == (matrix(mechanism.coefficients) @ counts).tolist()
    noise = mechanism.measured(database, Draws(KeyedNoise(4))) - matrix(mechanism.coefficients) @ counts
    other = Multiset.of([7, 7, 7, 8], 4)
    assert np.array_equal(mechanism.measured(other, Draws(KeyedNoise(4))) - noise, matrix(mechanism.coefficients) @ np.bincount([7, 7, 7, 8], minlength=16))


def test_coefficients_are_those_of_the_root() -> None:
    """Rounded so that their sums are within 1/2 of binom(2k, k) / 4^k times the scale, all of them 0 or more."""
    coefficients = PrefixFactorization(8, 1.0, 1e-6).coefficients
    exact, total = Fraction(1), Fraction(0)
    for k, records in enumerate(np.cumsum(coefficients).tolist()):
        total += 32 * exact
        assert abs(records - total) <= Fraction(1, 2)
        exact *= Fraction(2 * k + 1, 2 * k + 2)
    assert coefficients.min() >= 0


@pytest.mark.parametrize("bits", [2, 6, 11])
def test_rounding_costs_little(bits: int) -> None:
    """Row norm times sensitivity, against that of the root itself: within 5 % on small domains and 2 % on larger ones."""
    mechanism = PrefixFactorization(bits, 1.0, 1e-6)
    root = np.append(1.0, np.cumprod(1 - 1 / (2 * np.arange(1, 1 << bits))))
    lags = [float(((root - np.append(np.zeros(d), root[: len(root) - d])) ** 2).sum()) for d in range(1, len(root))]
    best = math.sqrt(max(lags) * float((root**2).sum()))
    assert 0.98 < math.sqrt(mechanism.square) * np.linalg.norm(mechanism.decoding) / best < (1.05 if bits == 2 else 1.02)


def test_errors_have_their_variance() -> None:
    """Over 300 releases, squares of all thresholds' errors in standard ones average 1 within 6 standard errors: unbiased, and no larger than said."""
    mechanism, database, draws = PrefixFactorization(7, 1.0, 1e-6), Multiset.of([0, 100, 100, 127], 7), Draws(KeyedNoise(6))
    errors = np.array([mechanism.release(database, draws).errors(database)[1:] for _ in range(300)])
    scores = np.mean((errors / mechanism.deviations()[1:]) ** 2, axis=1)
    standard = scores.std() / 300**0.5
    assert abs(scores.mean() - 1) < 6 * standard < 0.5
    assert np.abs(errors.mean(axis=0) / mechanism.deviations()[1:]).max() < 6 / 300**0.5


def test_the_largest_errors() -> None:
    """Means over runs of the largest error of a threshold and of an interval at D = 2^8, within 6 standard errors and 3 % of what the documents say."""
    mechanism, database, draws = PrefixFactorization(8, 1.0, 1e-6), Multiset.of([3, 3, 9], 8), Draws(KeyedNoise(8))
    errors = [mechanism.release(database, draws).errors(database) for _ in range(150)]
    for figure, result in ((39.9, [np.abs(each).max() for each in errors]), (67.6, [np.ptp(each) for each in errors])):
        assert abs(np.mean(result) - figure) < 6 * np.std(result) / 150**0.5 + 0.03 * figure


def test_privacy_of_two_points_by_enumeration() -> None:
    """All pairs of replaced records, all whole answers W x + z: within delta, and most of it; not with half the variance.

    The noise does not depend on x, so a pair of neighbours is the move W (e_a - e_b) alone, whatever the other records are.
    """
    mechanism = PrefixFactorization(1, 1.0, 1e-2)
    columns = matrix(mechanism.coefficients).T

    def spent(variance: float) -> float:
        sigma, most = math.sqrt(variance), int(12 * math.sqrt(variance)) + 8
        borders = (np.arange(-most, most + 2) - 0.5) / sigma
        one = np.diff(norm.cdf(borders))
        law, worst = np.outer(one, one), 0.0
        for move in (columns[0] - columns[1], columns[1] - columns[0]):
            other = np.roll(law, tuple(move.tolist()), axis=(0, 1))
            worst = max(worst, float(np.maximum(law - math.e * other, 0).sum()))
        return worst

    assert 0.75e-2 < spent(mechanism.variance) <= 1e-2 < spent(mechanism.variance / 2)
