"""A quick run of an experiment: a test's broken code measures some points again, all others are measured once, by right code."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from local_dp.experiments.lab.claim import Experiment, Finding
from local_dp.experiments.lab.store import plain

SEED = 100


class Quick:
    """The quick points of an experiment, of which point i has seed 100 + i."""

    def __init__(self, experiment: Experiment[Any, Any]) -> None:
        self.experiment = experiment
        self._right: dict[int, Any] = {}

    @cached_property
    def points(self) -> list[Any]:
        """What is measured."""
        return self.experiment.points("quick")

    def measure(self, place: int) -> Any:
        """What a point measures now."""
        return self.experiment.measure(self.points[place], SEED + place)

    def right(self, place: int) -> Any:
        """What a point measures when it is first asked for: once for all tests of a file."""
        if place not in self._right:
            self._right[place] = self.measure(place)
        return self._right[place]

    def all_right(self) -> None:
        """Asks for all: before the first test of a file breaks anything."""
        for place in range(len(self.points)):
            self.right(place)

    def found(self, again: Callable[[Any], bool] = lambda point: False) -> Finding:
        """The finding, where the points of which `again` is true are measured now."""
        measured = [(point, self.measure(place) if again(point) else self.right(place)) for place, point in enumerate(self.points)]
        return self.experiment.conclude(measured, "quick")

    def where(self, *wrong: Any) -> Finding:
        """The finding, where the points that have one of these values under any of their names are measured now."""
        return self.found(lambda point: any(value in wrong for value in plain(point).values() if isinstance(value, str)))


def lost(finding: Finding) -> str:
    """The checks that fell."""
    return "; ".join(check.statement for check in finding.checks if not check.shown)
