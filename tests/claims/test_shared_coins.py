"""`shared-coins` is shown as it stands; halves that the adversary knows, and reports without their noise, are not."""

import numpy as np
import pytest

from experiments.claims import shared_coins_runs as runs
from experiments.claims.shared_coins import EXPERIMENT
from local_dp.bounds.identity import half_errors, half_stretch, half_threshold, likely_threshold, shared_half_clients
from tests.support.quick import Quick, lost

pytestmark = pytest.mark.long
QUICK = Quick(EXPERIMENT)
found = QUICK.found


def test_shown() -> None:
    """At the quick scale; and a point measured twice with one seed is identical."""
    assert found().verdict == "shown", lost(found())
    assert QUICK.measure(0) == QUICK.right(0)


def test_halves_known_beforehand_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adversary who knows the halves makes a law that all of them split evenly: no number of people is enough."""
    found()
    honest = runs.means
    monkeypatch.setattr(runs, "means", lambda *args: 0 * honest(*args))
    assert "10 groups" in lost(found(lambda point: point["groups"] == 10))


def test_reports_without_noise_are_not_what_the_formula_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports that say the truth need far fewer people than C^2 k / alpha^2."""
    found()
    monkeypatch.setattr(runs, "sums", lambda moved, n, generator, honest=runs.sums: honest(2 * moved, n, generator))
    assert "formula" in lost(found(lambda point: point["groups"] == 40))


def test_means_of_random_halves_have_the_proven_square() -> None:
    """4 alpha^2 / (k - 1), over all ways to choose a half of four symbols exactly and for 64 by a sample."""
    frequent = np.array([1, 1, 0, 0])
    signs = [1 - 2 * np.array([(word >> place) & 1 for place in range(4)]) for word in (3, 5, 6, 9, 10, 12)]
    moved = [float(2 * runs.ALPHA * (sign @ (2 * frequent - 1)) / 4) for sign in signs]
    assert np.mean(np.square(moved)) == pytest.approx(4 * runs.ALPHA**2 / 3)
    drawn = runs.means(64, 10, 20_000, np.random.default_rng(1))
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
    stretch = half_stretch(1.0, 256, 0.25, round(runs.PLENTY * runs.unit(256, 40)), 40)
    assert half_errors(stretch, 40, half_threshold(stretch, 40)) == pytest.approx((0.069, 0.180), abs=0.001)


def test_nothing_measured_shows_nothing() -> None:
    """Without measurements the verdict is "not shown"."""
    assert EXPERIMENT.conclude([], "quick").verdict == "not shown"
