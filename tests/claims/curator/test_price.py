"""`price` is shown as it stands; wrong noise, prices and baselines in its place are not."""

import math
from fractions import Fraction

import pytest

from local_dp.accounting.rules import RULES, delta
from local_dp.curator.counts import k_norm
from local_dp.curator.counts.gaussian import GaussianCounts
from local_dp.curator.counts.k_norm import KNormCounts
from local_dp.curator.counts.laplace import ColumnCounts, ComposedLaplaceCounts, LaplaceCounts, NoCounts, NoisyCounts
from local_dp.curator.rounded_normal import least_variance
from local_dp.experiments.claims.curator.price import runs
from local_dp.experiments.claims.curator.price.claim import EXPERIMENT
from local_dp.experiments.claims.curator.price.runs import COMPOSED, GAUSSIAN, K_NORM, LAPLACE, NOTHING
from tests.support.runs.quick import Quick, lost

pytestmark = pytest.mark.long
QUICK = Quick(EXPERIMENT)
found = QUICK.where


def test_shown() -> None:
    """At the quick scale; and a point measured twice with one seed is identical."""
    assert found().verdict == "shown", lost(found())
    place = next(place for place, point in enumerate(QUICK.points) if point.get("name") == K_NORM and point["kind"] == "errors")
    assert QUICK.measure(place) == QUICK.right(place)


def test_adding_up_for_the_exact_price_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It grows as k, and a delta that is too small is not what counts lose."""
    monkeypatch.setitem(RULES, "exact", RULES["basic"])
    assert "sqrt(k), where adding up" in lost(found("rules"))
    monkeypatch.setattr(runs, "delta", lambda losses, epsilon, delta=delta: 0.99 * delta(losses, epsilon))
    assert "no price is lower" in lost(found("transcripts"))


def test_half_the_noise_of_the_cube_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has another law, and errs less than is possible."""
    monkeypatch.setattr(k_norm, "_radius", lambda k, nano, right=k_norm._radius: right(k, 2 * nano))
    said = lost(found(K_NORM))
    assert "closed forms" in said
    assert "no pure noise has a median" in said


def test_noise_on_each_for_the_cube_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is far above the bound, and no better than itself."""
    monkeypatch.setattr(KNormCounts, "noise", lambda counts, draws: LaplaceCounts(counts.k, counts.epsilon).noise(draws))
    said = lost(found(K_NORM))
    assert "noise in the shape of the cube has it" in said
    assert "worse than that of the cube" in said


def test_noise_for_one_count_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """On each of k counts as if they were one: it costs k epsilon, and errs less than is possible."""
    monkeypatch.setattr(LaplaceCounts, "step", property(lambda counts: Fraction(counts.loss.nano)))
    said = lost(found(LAPLACE))
    assert "keeps to its loss" in said
    assert "no pure noise has a median" in said


def test_a_bold_share_of_a_delta_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times the step that the optimal composition allows."""
    right_step = ComposedLaplaceCounts.step
    monkeypatch.setattr(ComposedLaplaceCounts, "step", property(lambda counts: 3 * right_step.__get__(counts)))
    said = lost(found(COMPOSED))
    assert "keeps to its loss" in said
    assert "less than half of Laplace noise" in said


@pytest.mark.parametrize(
    ("square", "checks"), [(lambda k: 1, ["Gaussian noise keeps to delta", "for a few counts"]), (lambda k: k * math.isqrt(k), ["grow as k", "than any"])]
)
def test_another_sensitivity_is_not_shown(square: object, checks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaussian noise for one count that moves is too little, and noise for a larger one too much."""
    assert callable(square)
    monkeypatch.setattr(GaussianCounts, "variance", property(lambda counts: least_variance(square(counts.k), counts.loss)))
    said = lost(found(GAUSSIAN, "normal"))
    assert all(check in said for check in checks)


def test_nothing_that_looks_at_the_data_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline that errs by nothing."""

    def told(nothing: NoCounts, database: ColumnCounts, draws: object) -> NoisyCounts:
        return NoisyCounts(database.counts)

    monkeypatch.setattr(NoCounts, "release", told)
    assert "saying half of them" in lost(found(NOTHING))
