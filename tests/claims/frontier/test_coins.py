"""`coins` is shown as it stands; tests with wrong coins in their place are not."""

from typing import Any

import numpy as np
import pytest

from local_dp.bounds.interaction import chi_square_quantile, half_errors, half_stretch, half_threshold, likely_threshold, shared_half_clients
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.frontier.coins import runs
from local_dp.experiments.claims.frontier.coins.claim import EXPERIMENT, TEN
from tests.support.runs.quick import Quick, lost

QUICK = Quick(EXPERIMENT)
found = QUICK.where


def test_shown() -> None:
    """At the quick scale; and a point measured twice with one seed is identical."""
    assert found().verdict == "shown", lost(found())
    assert QUICK.measure(0) == QUICK.right(0)


@pytest.mark.parametrize(("design", "fallen"), [(TEN, "10 groups"), (runs.PUBLIC, "grow as k^1")])
def test_public_coins_known_beforehand_are_not_shown(design: str, fallen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An adversary who knows the halves or the rows is never found: no number of people is enough."""
    honest = runs.moments
    monkeypatch.setattr(runs, "moments", lambda _, *rest: honest(runs.FIXED, *rest))
    assert fallen in lost(found(design))


def test_rows_that_the_adversary_does_not_know_are_not_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random rows in place of known ones find the law, so that they would miss it is not shown."""
    honest = runs.moments
    monkeypatch.setattr(runs, "moments", lambda _, *rest: honest(runs.PUBLIC, *rest))
    assert "miss a law" in lost(found(runs.FIXED))


@pytest.mark.parametrize(("design", "fallen"), [(TEN, "chi-square formula"), (runs.PUBLIC, "closed forms")])
def test_no_noise_is_not_what_the_formulas_say(design: str, fallen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports that are not randomized need far fewer people."""
    monkeypatch.setattr(runs, "response_gain", lambda epsilon: 1.0001)
    assert fallen in lost(found(design))


def test_a_test_at_the_wrong_level_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A threshold of half as many degrees rejects the uniform law."""
    honest = chi_square_quantile
    monkeypatch.setattr(runs, "chi_square_quantile", lambda tail, degrees: honest(tail, degrees // 2))
    assert "uniform law" in lost(found(runs.PUBLIC))


def test_a_threshold_at_the_whole_shift_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It misses the law away every other time, which is not what the formula says of the one half way."""
    with monkeypatch.context() as broken:
        broken.setattr(runs, "half_threshold", lambda stretch, groups: groups * stretch)
        wrong = QUICK.measure(0)
    measured = [(point, QUICK.right(place) if place else wrong) for place, point in enumerate(QUICK.points)]
    assert lost(EXPERIMENT.conclude(measured, "quick")).startswith("the threshold half way")


def test_moments_are_those_of_rows_written_out() -> None:
    """Public rows have the mean squares of random signs, 1 / k under uniform and 4 alpha^2 / k for what a law alpha away adds; own rows have them in all."""
    generator: Any = np.random.default_rng(1)
    means, expected = runs.moments(runs.PUBLIC, 64, 4000, generator)
    assert (expected**2).mean() == pytest.approx(1 / 64, rel=0.03)
    assert ((means - expected) ** 2).mean() == pytest.approx(4 * runs.ALPHA**2 / 64, rel=0.03)
    moved, _ = runs.moments(runs.PRIVATE, 64, 10, generator)
    assert (moved**2).sum(axis=1) == pytest.approx(np.full(10, 4 * runs.ALPHA**2))


def test_means_of_random_halves_have_the_proven_square() -> None:
    """4 alpha^2 / (k - 1), over all ways to choose a half of four symbols exactly and for 64 by a sample."""
    frequent = np.array([1, 1, 0, 0])
    signs = [1 - 2 * np.array([(word >> place) & 1 for place in range(4)]) for word in (3, 5, 6, 9, 10, 12)]
    moved = [float(2 * runs.ALPHA * (sign @ (2 * frequent - 1)) / 4) for sign in signs]
    assert np.mean(np.square(moved)) == pytest.approx(4 * runs.ALPHA**2 / 3)
    drawn, _ = runs.moments(TEN, 64, 20_000, np.random.default_rng(1))
    assert np.mean(drawn**2) == pytest.approx(4 * runs.ALPHA**2 / 63, rel=0.02)  # 200,000 squares: 0.3 % is one deviation


def test_the_best_threshold_is_the_best() -> None:
    """No other threshold has a smaller sum of errors, and the count is the least that has a mean of .1."""
    clients = shared_half_clients(1.0, 64, 0.25, 0.1, 10)
    stretch = half_stretch(1.0, 64, 0.25, clients, 10)
    best = likely_threshold(stretch, 10)
    errors = sum(half_errors(stretch, 10, best))
    assert errors <= 0.2 < sum(half_errors(half_stretch(1.0, 64, 0.25, clients - 100, 10), 10, best))
    assert all(sum(half_errors(stretch, 10, factor * best)) > errors for factor in (0.8, 0.95, 1.05, 1.2))


def test_the_threshold_half_way() -> None:
    """With 40 groups and 7 C^2 k / alpha^2 people it errs .069 and .180."""
    stretch = half_stretch(1.0, 1024, 0.25, round(7 * 1024 * (response_gain(1.0) / 0.25) ** 2), 40)
    assert half_errors(stretch, 40, half_threshold(stretch, 40)) == pytest.approx((0.069, 0.180), abs=0.001)


def test_nothing_measured_shows_nothing() -> None:
    """Without measurements the verdict is "not shown"."""
    assert EXPERIMENT.conclude([], "quick").verdict == "not shown"
