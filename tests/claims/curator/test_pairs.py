"""`pairs` is shown as it stands; wrong noise and wrong projections in its place are not."""

from functools import cache

import pytest

from local_dp.curator.marginals import pairs as pairs_module
from local_dp.curator.marginals.pairs import PairGaussian, onto_elliptope
from local_dp.curator.rounded_normal import rounded_normals
from local_dp.experiments.claims.curator.pairs import runs as pairs_runs
from local_dp.experiments.claims.curator.pairs.claim import EXPERIMENT
from local_dp.experiments.lab.claim import Finding, Measurement, Point
from tests.support.runs.quick import lost

pytestmark = pytest.mark.long
POINTS = [point | ({"runs": 4} if "runs" in point and not point["hull"] else {}) for point in EXPERIMENT.points("quick")]
SMALLEST = [place for place, point in enumerate(POINTS) if point["d"] <= 50]


@cache
def right(place: int) -> Measurement:
    """What a point measures, once for all tests here, in half as many runs as a quick run takes."""
    return EXPERIMENT.measure(POINTS[place], 100 + place)


def found(again: tuple[int, ...] = ()) -> Finding:
    """The finding of a run in which the points at these places are measured again, and all others as they are right."""
    measured: list[tuple[Point, Measurement]] = [
        (point, EXPERIMENT.measure(point, 100 + place) if place in again else right(place)) for place, point in enumerate(POINTS)
    ]
    return EXPERIMENT.conclude(measured, "quick")


def test_what_does_not_depend_on_the_number_of_runs_is_shown() -> None:
    """The price, the noise, what holds in every run, the figure; and a point measured twice with one seed is identical."""
    missing = lost(found())
    assert not any(what in missing for what in ("pays for", "variance", "farther", "draws what"))
    assert EXPERIMENT.measure(POINTS[0], 100) == right(0)


def test_the_price_of_an_added_record_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that pays for one record's own pairs only."""
    monkeypatch.setattr(PairGaussian, "square", property(lambda mechanism: mechanism.d * (mechanism.d - 1) // 2))
    assert "pays for" in lost(found(tuple(SMALLEST)))


def test_too_little_noise_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the variance that is stated."""
    monkeypatch.setattr(pairs_module, "rounded_normals", lambda draws, variance, count: rounded_normals(draws, variance // 2, count))
    assert "variance" in lost(found(tuple(SMALLEST)))


def test_a_projection_elsewhere_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that goes half as far again in the other direction; and one that stays."""
    monkeypatch.setattr(pairs_runs, "onto_elliptope", lambda means: 1.5 * means - 0.5 * onto_elliptope(means))
    assert "farther" in lost(found(tuple(SMALLEST)))
    monkeypatch.setattr(pairs_runs, "onto_elliptope", lambda means: means)
    assert "projected beats raw" in lost(found(tuple(SMALLEST)))
