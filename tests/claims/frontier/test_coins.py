"""`coins` is shown as it stands; tests with wrong coins in their place are not."""

from typing import Any

import numpy as np
import pytest

from local_dp.bounds import interaction
from local_dp.bounds.interaction import (
    chi_square_quantile,
    half_errors,
    half_stretch,
    half_threshold,
    likely_threshold,
    shared_half_clients,
)
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.frontier import coins
from local_dp.experiments.claims.frontier.coins import (
    ALPHA,
    EXPERIMENT,
    FIXED,
    PRIVATE,
    PUBLIC,
    TEN,
)
from tests.support.runs.quick import Quick, Twin

QUICK, MOMENTS = Quick(EXPERIMENT), coins.moments
KNOWN = {"moments": lambda _, *rest: MOMENTS(FIXED, *rest)}
NO_NOISE = {"response_gain": lambda epsilon: 1.0001}
SHIFT = {"half_threshold": lambda stretch, groups: groups * stretch}
FIRST = (QUICK.points[0],)
HALVED = {"chi_square_quantile": lambda tail, n: chi_square_quantile(tail, n // 2)}
TWINS = [
    Twin("halves known to the adversary", coins, KNOWN, (TEN,), "chi-square formula"),
    Twin("rows known to the adversary", coins, KNOWN, (PUBLIC,), "grows as k^1"),
    Twin(
        "random rows in place of known ones",
        coins,
        {"moments": lambda _, *rest: MOMENTS(PUBLIC, *rest)},
        (FIXED,),
        "Rows known beforehand",
    ),
    Twin("halves without noise", coins, NO_NOISE, (TEN,), "chi-square formula"),
    Twin("rows without noise", coins, NO_NOISE, (PUBLIC,), "closed forms"),
    Twin(
        "a tenth more noise",
        coins,
        {"response_gain": lambda epsilon: 1.1 * response_gain(epsilon)},
        (TEN, PRIVATE),
        "closed forms",
        "stated thresholds",
    ),
    Twin("a threshold at the whole shift", interaction, SHIFT, FIRST, "At the stated thresholds"),
    Twin("a threshold of half the degrees", interaction, HALVED, (PUBLIC,), "uniform law"),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS, slow=("a tenth more noise",))


def test_moments_are_those_of_rows_written_out() -> None:
    """Public rows have the mean squares of random signs, 1 / k under uniform, and 4 alpha^2 / k
    more under a law alpha away; own rows have them in all."""
    generator: Any = np.random.default_rng(1)
    means, expected = coins.moments(PUBLIC, 64, 4000, generator)
    assert (expected**2).mean() == pytest.approx(1 / 64, rel=0.03)
    assert ((means - expected) ** 2).mean() == pytest.approx(4 * ALPHA**2 / 64, rel=0.03)
    shifts, _ = coins.moments(PRIVATE, 64, 10, generator)
    assert (shifts**2).sum(axis=1) == pytest.approx(np.full(10, 4 * ALPHA**2))


def test_means_of_random_halves_have_the_proven_square() -> None:
    """4 alpha^2 / (k - 1), over all ways to choose a half of four symbols exactly and for 64 by a
    sample."""
    words = np.array([3, 5, 6, 9, 10, 12])
    signs = 1 - 2 * (words[:, None] >> np.arange(4) & 1)
    shifts = 2 * ALPHA * (signs @ [1, 1, -1, -1]) / 4
    assert np.mean(np.square(shifts)) == pytest.approx(4 * ALPHA**2 / 3)
    halves, _ = coins.moments(TEN, 64, 20_000, np.random.default_rng(1))
    # 200,000 squares: 0.3 % is one deviation
    assert np.mean(halves**2) == pytest.approx(4 * ALPHA**2 / 63, rel=0.02)


def test_thresholds() -> None:
    """The likely threshold has the least sum of errors, its count is the least with a mean of .1;
    half way, 40 groups of 7 C^2 k / alpha^2 err .069, .180."""
    clients = shared_half_clients(1.0, 64, 0.25, 0.1, 10)
    stretch = half_stretch(1.0, 64, 0.25, clients, 10)
    best = likely_threshold(stretch, 10)
    errors = sum(half_errors(stretch, 10, best))
    assert (
        errors <= 0.2 < sum(half_errors(half_stretch(1.0, 64, 0.25, clients - 100, 10), 10, best))
    )
    assert all(
        sum(half_errors(stretch, 10, factor * best)) > errors for factor in (0.8, 0.95, 1.05, 1.2)
    )
    stretch = half_stretch(1.0, 1024, 0.25, round(7 * 1024 * (response_gain(1.0) / 0.25) ** 2), 40)
    assert half_errors(stretch, 40, half_threshold(stretch, 40)) == pytest.approx(
        (0.069, 0.180), abs=0.001
    )
