"""`data-noise` is shown as it stands; wrong noise in its place is not."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from local_dp.curator.sensitivity.cauchy import CauchyNoise
from local_dp.curator.sensitivity.mechanisms import Proposed
from local_dp.curator.sensitivity.triangles import NoisyLocalTriangles, Triangles
from local_dp.experiments.claims.curator.data_noise import runs
from local_dp.experiments.claims.curator.data_noise.claim import EXPERIMENT
from local_dp.experiments.lab.claim import Finding
from local_dp.experiments.lab.coverage.stated import measure_stated

pytestmark = pytest.mark.long
POINTS = EXPERIMENT.points("quick")


def found(*kinds: str) -> Finding:
    """The finding of a quick run, of these kinds of points or of all."""
    chosen = [point for point in POINTS if not kinds or point["kind"] in kinds]
    return EXPERIMENT.conclude([(point, EXPERIMENT.measure(point, 1)) for point in chosen], "quick")


def lost(finding: Finding, statement: str) -> bool:
    """Whether the one check that says this fell."""
    (check,) = [check for check in finding.checks if statement in check.statement]
    return not check.shown


def test_shown() -> None:
    """At quick scale; and points measured twice with one seed are identical."""
    finding = found()
    assert finding.verdict == "shown", [check.statement for check in finding.checks if not check.shown]
    for kind in ("loss", "medians"):
        point = next(point for point in POINTS if point["kind"] == kind) | {"runs": 20}
        assert EXPERIMENT.measure(point, 3) == EXPERIMENT.measure(point, 3)


def test_local_sensitivity_for_smooth_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less noise, that tells of itself."""
    monkeypatch.setattr(CauchyNoise, "scale", runs.LocalNoise.scale)
    assert lost(found("loss"), "loss is at most epsilon")


def test_a_larger_shift_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 % less noise than the exact constants, where they are met."""
    right = CauchyNoise.exact

    def bold(epsilon: float) -> CauchyNoise:
        return CauchyNoise(right(epsilon).shift * Fraction(101, 100), right(epsilon).stretch)

    monkeypatch.setattr(CauchyNoise, "exact", bold)
    finding = found("price", "loss")
    assert lost(finding, "constants cost epsilon")
    assert lost(finding, "loss is at most epsilon")


@pytest.mark.parametrize(("kind", "attribute", "wrong"), [(Proposed, "threshold", 0), (NoisyLocalTriangles, "margin", 0)])
def test_tests_and_margins_left_out_are_not_shown(monkeypatch: pytest.MonkeyPatch, kind: type, attribute: str, wrong: int) -> None:
    """A proposal that nearly always answers, and a noisy sensitivity that is too low half of the time."""
    monkeypatch.setattr(kind, attribute, wrong)
    assert lost(found("delta"), "keep to delta")


def test_a_ladder_of_equal_rungs_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rungs that do not widen with the distance."""
    right = Triangles.within
    monkeypatch.setattr(Triangles, "within", lambda local, distance: right(local, 0))
    assert lost(found("delta"), "the ladder")


def test_noise_of_another_scale_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the noise that the scale says."""
    right = CauchyNoise.add
    monkeypatch.setattr(CauchyNoise, "add", lambda noise, value, scale, draws: right(noise, value, 2 * scale, draws))
    assert lost(found("medians"), "within their scale")


def test_published_constants_for_exact_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """They gain nothing over themselves, and lose to the ladder and to the exponential mechanism."""
    monkeypatch.setattr(CauchyNoise, "exact", CauchyNoise.published)
    finding = found("medians", "triangles")
    assert all(lost(finding, statement) for statement in ("errs at most a fifth", "errs about as much", "four other private counts"))


def test_what_it_states_is_held() -> None:
    """The intervals of quantiles of Cauchy errors, at their exact coverage."""
    for stated in EXPERIMENT.stated("quick"):
        row = measure_stated(stated, 400, np.random.default_rng(1))
        assert row["inside"], stated.what
        assert not measure_stated(replace(stated, truth=0.8 * stated.truth), 400, np.random.default_rng(1))["inside"]
