"""Parts of a finding, made from the measurements of one kind: checks over cases, curves from rows, means with their intervals."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.experiments.lab.claim import Check, Curve, Experiment
from local_dp.experiments.lab.intervals import about, about_log, ratio, relative_error, student
from local_dp.tallies import Z95

CERTAIN = 4.4  # standard errors: a correct rate or order is called wrong once in 100,000
Values: TypeAlias = Sequence[float] | Floats


@dataclass(frozen=True)
class Deltas:
    at: float  # the worst delta over all pairs of neighbours, at the stated loss
    below: float  # at a smaller epsilon, or with less noise


class OwnMeasure(Protocol):
    """A point that measures itself."""

    def measure(self, seed: int) -> Any: ...


P = TypeVar("P")
Q = TypeVar("Q", bound=OwnMeasure)
M = TypeVar("M")
Rows: TypeAlias = list[tuple[P, M]]


class OwnExperiment(Experiment[Q, M]):
    """A claim whose points measure themselves: a function of the point and the seed alone."""

    def measure(self, point: Q, seed: int) -> M:
        measurement: M = point.measure(seed)
        return measurement


def of(measurements: Iterable[tuple[Any, Any]], point: type[P], measurement: type[M]) -> Rows[P, M]:
    """The measurements of one kind of point."""
    return [(each, value) for each, value in measurements if isinstance(each, point) and isinstance(value, measurement)]


def every(statement: str, cases: Iterable[tuple[bool, str]], separator: str = ", ") -> Check:
    """Shown if there are cases and all of them hold; the evidence lists them."""
    cases = list(cases)
    return Check(statement, bool(cases) and all(holds for holds, _ in cases), separator.join(text for _, text in cases))


def none_wrong(statement: str, cases: Iterable[tuple[bool, str]], total: str) -> Check:
    """Shown if there are cases and all of them hold; the evidence is the total, or the first three cases that do not hold."""
    cases = list(cases)
    wrong = [text for holds, text in cases if not holds]
    return Check(statement, bool(cases) and not wrong, "; ".join(wrong[:3]) or total)


def curve(label: str, points: Iterable[tuple[float, ...]], style: Literal["measured", "theory", "bound", "bars"] = "measured", *, group: str = "") -> Curve:
    """The curve through points (x, y) or, with an interval, (x, y, low, high)."""
    x, y, *band = zip(*points, strict=True) or ((), ())
    return Curve(label, x, y, style, *band, group=group)


def curves(rows: Iterable[tuple[Any, ...]], *, grouped: bool = False) -> list[Curve]:
    """A measured curve for each label: rows of (label, x, y) or, with an interval, (label, x, y, low, high)."""
    points: dict[str, list[tuple[float, ...]]] = {}
    for label, *point in rows:
        points.setdefault(label, []).append(tuple(point))
    return [curve(label, each, group=label if grouped else "") for label, each in points.items()]


def mean_error(values: Values) -> tuple[float, float]:
    """The mean of independent values, and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(len(values))


def mean_about(values: Values, z: float = Z95) -> tuple[float, float, float]:
    """The mean of independent values and its normal interval."""
    mean, error = mean_error(values)
    return mean, *about(mean, error, z)


def mean_log(values: Values, z: float = Z95) -> tuple[float, float, float]:
    """The mean of independent positive values and its interval, by Student's quantile on a logarithmic scale."""
    mean = float(np.mean(values))
    return mean, *about_log(mean, relative_error(values), student(len(values) - 1, z))


def smaller(statement: str, cases: Iterable[tuple[Values, Values, str]], separator: str = "; ") -> Check:
    """Whether the mean of the first values is certainly below that of the second, in every case (first, second, name)."""
    ratios = [(ratio(second, first, CERTAIN), name) for first, second, name in cases]
    return every(statement, ((low > 1, f"{name}{times:.2f} [{low:.2f}, {high:.2f}] times smaller") for (times, low, high), name in ratios), separator)
