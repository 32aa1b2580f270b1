"""Whether a figure draws what its table tells: the two are made from the measurements by separate code."""

import math
from collections.abc import Sequence
from typing import Any

from local_dp.experiments.lab.claim import Check, Curve, Figure, Table


def figure_check(figures: Sequence[Figure], table: Table, *, ends: bool = True) -> Check:
    """Whether every point of every measured curve stands in a row of the table beside the curve's name; with `ends`, the ends of its interval too."""
    points = [(curve, point) for figure in figures for curve in figure.curves if curve.style == "measured" for point in _points(curve, ends)]
    lost = [f"{curve.label} at {point[0]:g}" for curve, point in points if not any(_tells(row, curve.label, point) for row in table.rows)]
    said = f"in neither: {', '.join(lost[:3])}" if lost else f"{len(points)} points"
    return Check(f"The figure draws what the table tells: {table.title}", bool(points) and not lost, said)


def _points(curve: Curve, ends: bool) -> list[tuple[float, ...]]:
    bands = [band for band in (curve.low, curve.high) if ends and band is not None]
    return list(zip(curve.x, curve.y, *bands, strict=True))


def _tells(row: tuple[Any, ...], label: str, point: tuple[float, ...]) -> bool:
    """Whether a row names the curve, or the label up to its comma, and holds these numbers, each in a cell of its own."""
    names = [cell for cell in row if isinstance(cell, str)]
    numbers = [float(cell) for cell in row if isinstance(cell, (int, float))]
    for value in point:
        place = next((place for place, number in enumerate(numbers) if math.isclose(value, number)), None)
        if place is None:
            return False
        del numbers[place]
    return label in names or label.split(",", maxsplit=1)[0] in names
