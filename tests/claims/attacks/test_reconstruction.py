"""`reconstruction` is shown as it stands; wrong choices in its place are not."""

from collections.abc import Callable

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.attacks.reconstruction import least_squares
from local_dp.bounds.attacks import wrong_bits
from local_dp.experiments.claims.attacks import reconstruction
from local_dp.experiments.claims.attacks.reconstruction import EXPERIMENT
from local_dp.experiments.lab.claim import Finding, Point
from local_dp.loss import Pure
from local_dp.theorems.local_from_sq import from_own_bits

pytestmark = pytest.mark.long
POINTS = EXPERIMENT.points("quick")
NOISE = [point for point in POINTS if point["kind"] == "noise" and point["n"] == 64]
MODELS = [point for point in POINTS if point["kind"] == "models"]
SHARES = [point for point in POINTS if point["kind"] == "share"]


def found(points: list[Point]) -> Finding:
    """The finding of a quick run of these points."""
    return EXPERIMENT.conclude([(point, EXPERIMENT.measure(point, 1)) for point in points], "quick")


def lost(finding: Finding) -> set[str]:
    """The first words of the checks that fell."""
    return {" ".join(check.statement.split()[:2]) for check in finding.checks if not check.shown}


def test_shown() -> None:
    """By the whole quick run; a point measured twice is identical."""
    finding = found(POINTS)
    assert finding.verdict == "shown", lost(finding)
    assert EXPERIMENT.measure(NOISE[1], 5) == EXPERIMENT.measure(NOISE[1], 5) != EXPERIMENT.measure(NOISE[1], 6)


def rounded_up(matrix: Floats, sums: Floats) -> Floats:
    """Least squares of sums that are thought to be higher by a fifth of n."""
    solved: Floats = np.linalg.solve(matrix.T @ matrix, matrix.T @ (sums + 0.2 * matrix.shape[1]))
    return solved


TWINS: list[tuple[str, str, Callable[..., object], list[Point], str]] = [
    ("a decoder that overestimates every sum", "DECODERS", lambda: dict.fromkeys(reconstruction.DECODERS, rounded_up), NOISE, "least squares"),
    ("a decoder instead of the program", "DECODERS", lambda: dict.fromkeys(reconstruction.DECODERS, least_squares), NOISE, "where errors"),
    ("a closed form of the whole width", "wrong_bits", lambda: lambda n, k, sd: wrong_bits(n, k, 2 * sd), SHARES, "noise within"),
    ("a curator that spends all on each", "optimal_part", lambda: lambda budget, parts: Pure(budget.nano), MODELS, "a curator"),
    ("clients that tell more", "from_own_bits", lambda: _telling, MODELS, "clients give"),
]


def _telling(attack: object, public: object, secret: str, epsilon: float) -> object:
    return from_own_bits(attack, public, secret, epsilon / 4)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "change", "points", "falls"), [twin[1:] for twin in TWINS], ids=[twin[0] for twin in TWINS])
def test_wrong_twins_are_not_shown(name: str, change: Callable[[], object], points: list[Point], falls: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loses the check that is about it."""
    monkeypatch.setattr(reconstruction, name, change())
    assert falls in lost(found(points))


def test_a_part_of_the_points_shows_nothing() -> None:
    """Without models and shares, or noise, there is no verdict."""
    assert all(found(points).verdict == "not shown" for points in (NOISE, SHARES))
