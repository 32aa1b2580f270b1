"""`oracles` is shown as it stands; wrong noise, a solver that does not lie, a test left out and wrong baselines in its place are not."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from local_dp.curator.oracle_efficient import perturbed
from local_dp.curator.oracle_efficient.perturbed import Beside
from local_dp.curator.oracle_efficient.robust import RobustRelease, Terms
from local_dp.curator.oracle_efficient.separated import Claimed, Conjunctions, Verified, Weighted
from local_dp.experiments.claims.curator.oracles import runs
from local_dp.experiments.claims.curator.oracles.claim import EXPERIMENT
from local_dp.experiments.claims.curator.oracles.runs import COLUMNS, COUNTED, EXPONENTIAL, GAME, HISTOGRAM, ONE, ONE_DRAW, PRODUCT, RELEVANT, ROBUST, RSPM, D
from local_dp.experiments.lab.claim import Finding, Measurement, Point
from tests.support.inputs.fair_columns import fair_table
from tests.support.runs.quick import lost

pytestmark = pytest.mark.long
POINTS = EXPERIMENT.points("quick")


@cache
def right(place: int) -> Measurement:
    """What a point measures, once for all tests here."""
    return EXPERIMENT.measure(POINTS[place], 1)


def found(wrong: str = "", changed: Callable[[Measurement], None] | None = None) -> Finding:
    """The finding of a quick run in which points of one kind are measured again, or changed, and all others are as they are right."""
    measured: list[tuple[Point, Measurement]] = []
    for place, point in enumerate(POINTS):
        again = EXPERIMENT.measure(point, 1) if point["kind"] == wrong and changed is None else _copied(right(place))
        if changed is not None and point["kind"] == wrong:
            changed(again)
        measured.append((point, again))
    return EXPERIMENT.conclude(measured, "quick")


def _copied(measurement: Measurement) -> Measurement:
    return {key: dict(value) if isinstance(value, dict) else value for key, value in measurement.items()}


def test_shown() -> None:
    """At the quick scale; a point measured twice with one seed is identical; the headline has the run's own figures."""
    finding = found()
    assert finding.verdict == "shown", lost(finding)
    place = next(place for place, point in enumerate(POINTS) if point["kind"] == "tables")
    assert EXPERIMENT.measure(POINTS[place], 1) == right(place)
    rspm = next(
        measured["excess"][RSPM] for point, measured in ((p, right(i)) for i, p in enumerate(POINTS)) if point.get("n") == 1000 and "excess" in measured
    )
    assert f"RSPM errs {np.mean(rspm):.1%} more" in finding.headline


def test_an_error_is_that_of_the_population() -> None:
    """Over all points of the cube: how often a conjunction and the true one differ, weighted, times the labels that are right beyond those that are not."""
    points = np.arange(1 << D)
    ones = np.array([int(point).bit_count() for point in points])
    weights = ONE**ones * (1 - ONE) ** (D - ones)
    for mask in (0, 1, 0b110, (1 << RELEVANT) - 1, 0b1111, (1 << D) - 1):
        differ = ((points & mask) == mask) != ((points & 7) == 7)
        assert runs.excess(mask) == pytest.approx(0.8 * float(weights[differ].sum()), abs=1e-12)


def test_half_the_noise_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """RSPM with noise for half of what a replaced example moves."""
    monkeypatch.setattr(Conjunctions, "shift", property(lambda queries: queries.d))
    assert "loses epsilon, exactly" in lost(found("loss"))


def test_methods_that_do_as_well_are_not_shown() -> None:
    """RSPM that needs as few examples as another method, and the others as many as RSPM: by their names exchanged."""

    def swapped(one: str, other: str) -> Callable[[Measurement], None]:
        def change(measurement: Measurement) -> None:
            both: dict[str, Any] = measurement["excess"]
            both[one], both[other] = both[other], both[one]

        return change

    assert "RSPM finds the best conjunction" in lost(found("learning", swapped(RSPM, EXPONENTIAL)))
    assert "the exponential mechanism finds it" in lost(found("learning", swapped(RSPM, EXPONENTIAL)))
    assert "a noisy count of each bit" in lost(found("learning", swapped(RSPM, COUNTED)))


def test_a_solver_that_tells_the_truth_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown of a lie is not true without one."""
    monkeypatch.setattr(runs.Liar, "minimise", lambda solver, data: Claimed(solver.exact.minimise(data).choice))
    assert "a solver that lies tells a label" in lost(found("solver"))
    monkeypatch.undo()
    monkeypatch.setattr(Verified, "minimise", lambda oracle, data: oracle.exact.minimise(data))
    assert "a solver that lies tells a label" in lost(found("solver"))


def test_a_survivor_without_a_test_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """PRSMA that tells any survivor; and PRSMA that does not pay for one survivor more."""
    monkeypatch.setattr(Terms, "passed", lambda terms, survivors: Fraction(survivors > 0))
    monkeypatch.setattr(RobustRelease, "_delta", lambda release: 0.1)
    assert "with PRSMA the same solver" in lost(found("solver"))
    monkeypatch.undo()
    monkeypatch.setattr("local_dp.curator.oracle_efficient.robust.nano_of_ratio", lambda ratio: 0)
    assert "what PRSMA says" in lost(found("price"))


def test_a_game_against_nobody_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queries' player hardly sees what the data's player drew; nor is a histogram with a thousand times the error the better table."""
    monkeypatch.setattr(perturbed, "Beside", lambda scale, data: Beside(scale, Weighted(data.points, np.full_like(data.weights, -1))))
    assert "the game's table" in lost(found("tables"))
    monkeypatch.undo()

    def worse(measurement: Measurement) -> None:
        measurement["errors"][HISTOGRAM] = [1000 * error for error in measurement["errors"][HISTOGRAM]]

    assert "the game's table" in lost(found("tables", worse))


def test_every_figure_has_its_table() -> None:
    """Three figures of at most six curves; the losing methods are drawn."""
    finding = found()
    assert [len(figure.curves) for figure in finding.figures] == [4, 5, 4]  # type: ignore[union-attr]
    assert {curve.label for curve in finding.figures[1].curves} >= {GAME, HISTOGRAM}  # type: ignore[union-attr]
    assert any(ROBUST in curve.label for curve in finding.figures[2].curves)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (6366, {GAME: 0.0933, PRODUCT: 0.243, HISTOGRAM: 0.0107}),
        pytest.param(100_000, {GAME: 0.0303, PRODUCT: 0.2432, HISTOGRAM: 0.0006}, marks=pytest.mark.slow),
    ],
)
def test_the_game_on_fair(n: int, said: dict[str, float]) -> None:
    """Means of ten runs on eight columns, all rows or so many drawn from them, as documented: nearer than the product, not than the histogram; with one draw
    a round farther than either."""
    rows = fair_table().bits[:, [0, 2, 4, 6, 8, 10, 12, 16]].astype(np.int64) @ (1 << np.arange(COLUMNS))
    generators = [np.random.default_rng([seed, n]) for seed in range(10)]
    errors = [runs.table_errors(rows if n == len(rows) else generator.choice(rows, n), generator) for generator in generators]
    means = {name: float(np.mean([each[name] for each in errors])) for name in (*said, ONE_DRAW)}
    assert {name: round(means[name], 4) for name in said} == said
    assert means[HISTOGRAM] < means[GAME] < means[PRODUCT] < means[ONE_DRAW]
