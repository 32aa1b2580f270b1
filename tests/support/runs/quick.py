"""A quick run of an experiment: a test's broken code measures some points again, all others are
measured once, by right code."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import pytest

from local_dp.experiments.lab.parts import Experiment, Figure, Finding
from local_dp.experiments.lab.store import plain
from local_dp.experiments.lab.style import PALETTE, looks
from tests.support.runs.shared import Once

SEED = 100


class Twin:
    """Wrong values in place of right ones, the points that show them, and a part of each check that
    must then fail.

    `target` has the names of `changes` as attributes, or as keys if it is a dict; without a target
    the names are dotted paths.
    """

    def __init__(
        self,
        why: str,
        target: Any,
        changes: Mapping[str, Any],
        points: tuple[Any, ...],
        *falls: str,
    ) -> None:
        self.why = why
        self.target = target
        self.changes = changes
        self.points = points
        self.falls = falls

    def __str__(self) -> str:
        return self.why

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        for name, wrong in self.changes.items():
            if self.target is None:
                patch.setattr(name, wrong)
            elif isinstance(self.target, dict):
                patch.setitem(self.target, name, wrong)
            else:
                patch.setattr(self.target, name, wrong)


class Quick:
    """The quick points of an experiment, or others, of which point i has seed 100 + i, or all have
    one seed."""

    def __init__(
        self, experiment: Experiment, points: list[Any] | None = None, seed: int | None = None
    ) -> None:
        self.experiment = experiment
        self.seed = seed
        self._points = points
        self._right: dict[int, Any] = {}

    @cached_property
    def points(self) -> list[Any]:
        return self.experiment.points("quick") if self._points is None else self._points

    def measure(self, place: int) -> Any:
        """The measurement of a point now."""
        return self.experiment.measure(
            self.points[place], SEED + place if self.seed is None else self.seed
        )

    def right(self, place: int) -> Any:
        """The first measurement of a point: once for all tests of a file."""
        if place not in self._right:
            self._right[place] = self.measure(place)
        return self._right[place]

    def all_right(self, once: Once, name: str) -> None:
        """Measures all points, as `name`: before the first test of a file breaks anything."""
        if len(self._right) < len(self.points):
            places = {id(point): place for place, point in enumerate(self.points)}
            results = once.measured(
                name, self.experiment, self.points, lambda point: self.measure(places[id(point)])
            )
            self._right = {place: measurement for place, (_, measurement) in enumerate(results)}

    def found(self, again: Callable[[Any], bool] = lambda point: False) -> Finding:
        """The finding, where the points of which `again` is true are measured now."""
        results = [
            (point, self.measure(place) if again(point) else self.right(place))
            for place, point in enumerate(self.points)
        ]
        finding = self.experiment.conclude(results, "quick")
        coloured(finding)
        return finding

    def where(self, *wrong: Any) -> Finding:
        """The finding, where these points, points of these classes and those with one of these
        values under any of their names are measured now."""
        kinds = tuple(kind for kind in wrong if isinstance(kind, type))

        def again(point: Any) -> bool:
            if isinstance(point, kinds) or point in wrong:
                return True
            return any(value in wrong for value in plain(point).values() if isinstance(value, str))

        return self.found(again)

    def shows(self, place: int = 0) -> None:
        """Asserts that the claim is shown, by checks of stated power, and that a point measured
        twice with one seed is identical."""
        finding = self.found()
        assert finding.verdict == "shown", lost(finding)
        sure(finding)
        assert plain(self.measure(place)) == plain(self.right(place))

    def tests(
        self, twins: list[Twin], kind: type = object, *, slow: tuple[str, ...] = ()
    ) -> tuple[Callable[[], None], Callable[..., None]]:
        """Two long tests: the claim is shown, and the first point of this kind twice the same; each
        twin loses its checks. The twins named in `slow` are slow."""
        place = [isinstance(point, kind) for point in self.points].index(True)

        @pytest.mark.long
        def show() -> None:
            """At the quick scale; and a point measured twice is identical."""
            self.shows(place)

        @pytest.mark.long
        @pytest.mark.slow(only=slow)
        @pytest.mark.parametrize("twin", twins, ids=str)
        def wrong_twins(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
            """Each loses the checks that are about it."""
            self.loses(twin, monkeypatch)

        return show, wrong_twins

    def loses(self, twin: Twin, patch: pytest.MonkeyPatch) -> None:
        """Asserts that the checks about a twin fail where it is in place."""
        twin.apply(patch)
        losses = lost(self.where(*twin.points))
        assert all(part in losses for part in twin.falls), losses


def sure(finding: Finding) -> None:
    """Asserts that each measured check states its chance and what it catches, and that a claim's
    checks fail by chance 4 times in 10,000 at most."""
    assert all(
        0 < check.chance <= 1e-4 and check.catches != "nothing"
        for check in finding.checks
        if check.chance or check.catches
    )
    assert sum(check.chance for check in finding.checks) <= 4e-4


def coloured(finding: Finding) -> None:
    """Asserts that no figure has more than eight coloured series, and that every model of a figure
    has a colour."""
    for figure in finding.figures:
        if isinstance(figure, Figure):
            assert figure.model in PALETTE
            series = [each for each in looks(figure) if each.coloured]
            kinds = {(each.colour, each.marker, each.hollow) for each in series}
            assert len(kinds) <= 8, figure.name


def lost(finding: Finding) -> str:
    return "; ".join(check.statement for check in finding.checks if not check.shown)
