"""`coins` is shown as it stands; tests with wrong coins in their place are not."""

from typing import Any

import numpy as np
import pytest

from experiments.claims import coins_runs as runs
from experiments.claims.coins import EXPERIMENT
from local_dp.bounds.identity import chi_square_quantile
from tests.support.quick import Quick, lost

QUICK = Quick(EXPERIMENT)
found = QUICK.where


def test_shown() -> None:
    """At the quick scale; and a point measured twice with one seed is identical."""
    assert found().verdict == "shown", lost(found())
    assert QUICK.measure(0) == QUICK.right(0)


def test_public_rows_known_beforehand_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adversary who knows the rows is never found."""
    honest = runs.moments
    monkeypatch.setattr(runs, "moments", lambda coins, *rest: honest(runs.FIXED, *rest))
    assert "grow as k^1" in lost(found(runs.PUBLIC))


def test_rows_that_the_adversary_does_not_know_are_not_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random rows in place of known ones find the law, so that they would miss it is not shown."""
    honest = runs.moments
    monkeypatch.setattr(runs, "moments", lambda coins, *rest: honest(runs.PUBLIC, *rest))
    assert "miss a law" in lost(found(runs.FIXED))


def test_no_noise_is_not_what_the_closed_form_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports that are not randomized need far fewer clients."""
    monkeypatch.setattr(runs, "response_gain", lambda epsilon: 1.0001)
    assert "closed forms" in lost(found(runs.PUBLIC))


def test_a_test_at_the_wrong_level_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A threshold of half as many degrees rejects the uniform law."""
    honest = chi_square_quantile
    monkeypatch.setattr(runs, "chi_square_quantile", lambda tail, degrees: honest(tail, degrees // 2))
    assert "uniform law is rejected" in lost(found(runs.PUBLIC))


def test_moments_are_those_of_rows_written_out() -> None:
    """Means and expectations of public rows have the mean squares of random signs: 1/k under uniform, 4 alpha^2 / k for what a law alpha away adds."""
    generator: Any = np.random.default_rng(1)
    means, expected = runs.moments(runs.PUBLIC, 64, 0.25, 4000, generator)
    assert (expected**2).mean() == pytest.approx(1 / 64, rel=0.03)
    assert ((means - expected) ** 2).mean() == pytest.approx(4 * 0.25**2 / 64, rel=0.03)
    moved, _ = runs.moments(runs.PRIVATE, 64, 0.25, 10, generator)
    assert (moved**2).sum(axis=1) == pytest.approx(np.full(10, 4 * 0.25**2))


def test_nothing_measured_shows_nothing() -> None:
    """Without measurements the verdict is "not shown"."""
    assert EXPERIMENT.conclude([], "quick").verdict == "not shown"
