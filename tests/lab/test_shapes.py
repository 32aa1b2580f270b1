"""A mean without bounds, and a learner that finds them, on columns of hard shapes and on real ones: the intervals hold what they are called."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import local_dp.protocols.vectors.mean_found as room
from local_dp.arrays import Floats
from local_dp.experiments.lab.coverage.cases import SHAPES, found_means, learned
from local_dp.experiments.lab.coverage.repetition import Case, measure
from local_dp.interaction import run
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.populations.finite import Resampled
from local_dp.protocols.vectors.mean_found import EDGES, MeanFound, Range
from local_dp.records import Records
from tests.support.inputs.tables import real_columns
from tests.support.long import short

LEVEL, FAILURE = 0.94, 1e-4  # the coverage claimed, and the chance that any of all the tests here fails where it is true
LOOKS = 2 * (len(SHAPES) + 11) + 2
CAUGHT = 0.8  # a coverage that 300 runs reject with probability 0.99


def least(runs: int) -> int:
    """The fewest runs that may hold the truth: fewer come with probability FAILURE / LOOKS where the coverage is LEVEL."""
    return int(stats.binom.ppf(FAILURE / LOOKS, runs, LEVEL))


def held(case: Case, runs: int) -> int:
    return int(measure(case, runs, np.random.default_rng(11)).held.min())


def test_the_number_of_runs_is_enough() -> None:
    assert stats.binom.cdf(least(300) - 1, 300, LEVEL) <= FAILURE / LOOKS
    assert stats.binom.cdf(least(300) - 1, 300, CAUGHT) >= 0.99


HARD = ("yes and no, 1 % yes", "Cauchy", "lognormal, sigma 1.5", "geometric counts", "5 for all")  # one of a kind


@pytest.mark.parametrize(("name", "runs"), [
    (HARD[0], 60), *(pytest.param(name, 300, marks=pytest.mark.long if name in HARD else pytest.mark.slow) for name in SHAPES),
])  # fmt: skip
def test_a_mean_without_bounds_holds_on_any_shape(name: str, runs: int) -> None:
    """The interval holds the mean of the clipped values, and the share outside is in its own."""
    (case,) = found_means(1.0, {name: SHAPES[name]})
    assert held(case, runs) >= least(runs)


@pytest.mark.slow
def test_a_mean_without_bounds_holds_on_real_columns() -> None:
    columns = real_columns()
    assert len(columns) == 10
    for case in found_means(1.0, columns):
        assert held(case, 300) >= least(300), case.what


@pytest.mark.long
def test_the_score_of_a_learner_without_bounds_holds() -> None:
    for case in learned(1.0):
        assert held(case, 300) >= least(300), case.what


@pytest.mark.long
def test_the_claim_of_before_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the interval holds the mean of the column itself is false for a heavy tail."""
    monkeypatch.setattr(MeanFound, "truth_of", lambda self, result, population: self.column_mean(population))
    (case,) = found_means(1.0, {"": SHAPES["lognormal, sigma 1.5"]})
    assert held(case, 30) < 15


def _found(name: str, seeds: int = 20) -> list[tuple[float, Range]]:
    protocol, clients = MeanFound(column="x"), 50_000
    population = Resampled(Records({"x": SHAPES[name]}), clients, 1)
    results = [run(protocol.algorithm(1.0, clients), AggregateOracle(population, np.random.default_rng(seed), 1.0)) for seed in range(seeds)]
    return [(float(found.estimate.value), found.bounds) for found in results]


@pytest.mark.parametrize(("name", "share"), [pytest.param("yes and no, 12 % yes", 0.1235, marks=pytest.mark.long), ("yes and no, 1 % yes", 0.01)])
def test_a_column_of_yes_and_no_has_its_ends(name: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds hold 0 and 1 in every run, and the median answer is the share. Without the rule for zeros some runs clip the ones away."""
    found = _found(name)
    assert all(bounds.low <= 0 and bounds.high >= 1 for _, bounds in found)
    assert abs(np.median([value for value, _ in found]) - share) < 0.03
    monkeypatch.setattr(room, "ZERO", len(EDGES))  # a magnitude that nobody has
    assert any(bounds.high < 1 for _, bounds in _found(name))


TWINS: list[Callable[[Any], Any]] = [
    lambda found: replace(found, bounds=Range(2 * found.bounds.low, 2 * found.bounds.high)),  # says other bounds than it clipped to
    lambda found: replace(found, estimate=found.estimate.on_scale(1.0, 2.0)),  # 1 too high
    lambda found: replace(found, outside=found.outside.on_scale(0.0, 0.5)),  # half the share outside
]


@pytest.mark.parametrize("place", short(range(len(TWINS)), lambda place: place == 0))
def test_wrong_answers_fall(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a column with a share outside: other bounds than those clipped to, a shifted estimate, half the share outside."""
    column: Floats = np.where(np.arange(2000) < 1700, np.linspace(2, 4, 2000), 1e5)
    monkeypatch.setattr(room, "locate", _fixed)
    (case,) = found_means(1.0, {"": column})
    assert held(case, 60) > 48
    twin, play = TWINS[place], MeanFound.algorithm

    def wrong(self: MeanFound, epsilon: float, clients: int) -> Any:
        algorithm = play(self, epsilon, clients)
        return type(algorithm)(lambda: _changed(algorithm.play(), twin))

    monkeypatch.setattr(MeanFound, "algorithm", wrong)
    (case,) = found_means(1.0, {"": column})
    assert held(case, 60) < 48


def _changed(play: Any, twin: Callable[[Any], Any]) -> Any:
    return twin((yield from play))


def _fixed(columns: Any, epsilon: float, clients: Any) -> Any:
    """The bounds [-10, 10], without asking."""
    yield ()
    return (Range(-10.0, 10.0),)
