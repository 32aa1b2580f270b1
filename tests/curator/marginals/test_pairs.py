"""Pairs of many columns: the release, its price, and the bodies it is projected on."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import nnls

from local_dp.accounting.losses import gaussian_delta
from local_dp.arrays import Floats
from local_dp.curator.marginals.pairs import NoisyPairs, PairGaussian, SignTable, onto_elliptope, onto_hull, pairs_of, rms_error, shrunk
from local_dp.draws import Draws
from local_dp.noise import KeyedNoise
from tests.support.inputs.refusals import refuse
from tests.support.runs.scripted import Script


def noisy(d: int, seed: int, spread: float) -> Floats:
    """A symmetric matrix about the means of a table, 1 on the diagonal."""
    generator = np.random.default_rng(seed)
    table = SignTable.of(generator.integers(0, 2, (20, d)))
    above = np.triu_indices(d, 1)
    sums = table.sums[above] + 20 * spread * generator.standard_normal(len(above[0]))
    return pairs_of(sums, 20, 1.0).means


@pytest.mark.parametrize("d", [2, 3, 5, 6])
def test_the_price_over_all_neighbours(d: int) -> None:
    """Every row replaced by every other: the largest squared move of all pairs is what is paid for, and the noise is the least for it."""
    rows = np.array(list(product((1, -1), repeat=d)))
    above = np.triu_indices(d, 1)
    sums = (rows[:, :, None] * rows[:, None, :])[:, *above]
    worst = max(int(((sums - each) ** 2).sum(axis=1).max()) for each in sums)
    mechanism = PairGaussian(d, 1.0, 1e-6)
    assert mechanism.square == worst
    spent = [gaussian_delta(math.sqrt(worst / variance), 1.0) for variance in (mechanism.variance, mechanism.variance - 1)]
    assert spent[0] <= 1e-6 < spent[1]
    assert worst > len(above[0])  # what an added record moves: too little


def test_what_is_released_is_the_means_and_noise() -> None:
    """With words that draw no noise, the means themselves; with noise, of the stated deviation within 6 standard errors, and symmetric."""
    table = SignTable.of(np.random.default_rng(0).integers(0, 2, (50, 9)))
    mechanism = PairGaussian(9, 1.0, 1e-6)
    exact = mechanism.release(table, Script([0] * 72))
    assert exact.means == pytest.approx((table.signs.T.astype(float) @ table.signs) / 50)
    draws, above = Draws(KeyedNoise(1)), np.triu_indices(9, 1)
    released = [mechanism.release(table, draws) for _ in range(200)]
    off = np.array([each.means[above] - exact.means[above] for each in released]) / exact.deviation
    assert abs(float((off**2).mean()) - 1) < 6 * math.sqrt(2 / off.size)
    assert np.array_equal(released[0].means, released[0].means.T)


def test_shrinking() -> None:
    """Noise alone shrinks to nearly nothing, no noise to itself; and it beats what it shrinks where the noise is large."""
    generator = np.random.default_rng(2)
    draws = generator.standard_normal(45)
    assert rms_error(shrunk(pairs_of(draws, 1, 1.0)), np.eye(10)) < 0.5 * rms_error(pairs_of(draws, 1, 1.0).means, np.eye(10))
    means = noisy(6, 0, 0.1)
    assert shrunk(NoisyPairs(means, 0.0)) == pytest.approx(means)
    assert np.array_equal(shrunk(NoisyPairs(np.eye(3), 0.1)), np.eye(3))


@pytest.mark.parametrize(("d", "spread"), [(3, 1.0), (7, 0.3), (7, 2.0)])
def test_the_elliptope(d: int, spread: float) -> None:
    """Semidefinite with diagonal 1, and the nearest: <Z - Y, W - Z> >= 0 for the vertices W of the body and many mixtures of them."""
    matrix = noisy(d, d, spread)
    nearest = onto_elliptope(matrix)
    assert np.diag(nearest) == pytest.approx(1)
    assert np.linalg.eigvalsh(nearest).min() > -1e-9
    vectors = np.random.default_rng(d).standard_normal((2000, d, d))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    others = [*(vectors @ vectors.transpose(0, 2, 1)), *(np.outer(v, v) for v in product((1, -1), repeat=d))]
    assert min(float(((nearest - matrix) * (other - nearest)).sum()) for other in others) > -1e-3
    assert onto_elliptope(nearest) == pytest.approx(nearest, abs=1e-4)


@pytest.mark.parametrize(("d", "spread"), [(2, 1.5), (4, 0.5), (6, 1.0), (6, 0.1)])
def test_the_hull(d: int, spread: float) -> None:
    """As non-negative least squares over all 2^(d - 1) vertices at once find it; what is in it stays."""
    matrix, above = noisy(d, d, spread), np.triu_indices(d, 1)
    signs = np.array([(1, *rest) for rest in product((1, -1), repeat=d - 1)])
    vertices = (signs[:, :, None] * signs[:, None, :])[:, *above].T
    weights = nnls(np.vstack([vertices, np.full(len(signs), 1e4)]), np.append(matrix[above], 1e4))[0]
    nearest = onto_hull(matrix)
    assert nearest[above] == pytest.approx(vertices @ weights, abs=1e-4)
    assert onto_hull(nearest) == pytest.approx(nearest, abs=1e-4)


def test_bad_input() -> None:
    """Values that are no signs, a table of other columns, too many columns to enumerate, a matrix that is not symmetric."""
    refuse(
        ("-1 and 1", lambda: SignTable(np.zeros((3, 3), dtype=np.int8))),
        ("the mechanism 4", lambda: PairGaussian(4, 1.0, 1e-6).release(SignTable.of(np.zeros((2, 3), dtype=int)), Draws(KeyedNoise(0)))),
        ("from 2 to 12", lambda: onto_hull(np.eye(13))),
        ("symmetric matrix", lambda: onto_elliptope(np.array([[1.0, 2.0], [0.0, 1.0]]))),
    )
