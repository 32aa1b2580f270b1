"""Text in and about figures: notation, line breaks, the key to a figure's marks, and a figure in
words."""

import math
from collections.abc import Sequence
from textwrap import fill as wrap
from typing import Any

from local_dp.experiments.lab.claim import Check, Curve, Figure, Regions, Table
from local_dp.foreign import shown
from local_dp.text.layout import EXPONENT, typeset

_MARKS = {
    "measured": "markers are measured",
    "theory": "lines without markers are computed",
    "bound": "dashed lines are proven",
}


def lines(text: str, width: int) -> str:
    """The text, typeset, in lines of at most `width` characters. Exponents are raised; otherwise a
    dollar sign is a dollar sign."""
    escaped = wrap(shown(typeset(text), "block").replace(" = ", "\xa0=\xa0"), width).replace(
        "$", r"\$"
    )
    return EXPONENT.sub(lambda found: rf"$^{{\mathregular{{{found[1] or found[2]}}}}}$", escaped)


def key(figure: Figure | Regions) -> str:
    """How the figure is to be read, in a sentence for its caption."""
    if isinstance(figure, Regions):
        return (
            "What lies in a region lies in all around it. Numbers say whether they were measured, "
            "computed or proven."
        )
    parts = [
        said
        for style, said in _MARKS.items()
        if any(curve.style == style for curve in figure.curves)
    ]
    parts += (
        ["bands and whiskers are 95 % intervals"]
        if any(curve.low is not None for curve in figure.curves)
        else []
    )
    said = "; ".join(parts)
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def alt_text(figure: Figure | Regions) -> str:
    """The figure in words, for a reader who does not see it."""
    if isinstance(figure, Regions):
        parts = [
            f"{region.title} ({region.subtitle}): {_placed(region.placed) or 'nothing'}"
            for region in figure.regions
        ]
        return typeset(f"{figure.title}. Nested regions, the innermost first. {'. '.join(parts)}.")
    axes = (
        f"{figure.y_label}{' (logarithmic)' if figure.log_y else ''} against "
        f"{figure.x_label}{' (logarithmic)' if figure.log_x else ''}"
    )
    return typeset(
        f"{figure.title}. {axes}. "
        + "; ".join(_in_words(curve, figure.x_ticks) for curve in figure.curves)
        + "."
    )


def _placed(placed: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({'; '.join(evidence.splitlines())})" for name, evidence in placed)


def _in_words(curve: Curve, ticks: tuple[str, ...]) -> str:
    points = list(zip(curve.x, curve.y, strict=True))
    if not points:
        return f"{curve.label}: no points"
    if ticks:
        return f"{curve.label}: " + ", ".join(
            f"{ticks[int(x)]} {y:.3g}" for x, y in points if 0 <= int(x) < len(ticks)
        )
    (x0, y0), (x1, y1) = min(points), max(points)
    return f"{curve.label} ({curve.style}): from {y0:.3g} at {x0:g} to {y1:.3g} at {x1:g}"


def figure_check(figures: Sequence[Figure], table: Table, *, ends: bool = True) -> Check:
    """Whether every point of every measured curve stands in a row of the table beside the curve's
    name; with `ends`, the ends of its interval too."""
    points = [
        (curve, point)
        for figure in figures
        for curve in figure.curves
        if curve.style == "measured"
        for point in _points(curve, ends)
    ]
    lost = [
        f"{curve.label} at {point[0]:g}"
        for curve, point in points
        if not any(_tells(row, curve.label, point) for row in table.rows)
    ]
    said = f"in neither: {', '.join(lost[:3])}" if lost else f"{len(points)} points"
    return Check(
        f"The figure draws what the table tells: {table.title}", bool(points) and not lost, said
    )


def _points(curve: Curve, ends: bool) -> list[tuple[float, ...]]:
    bands = [band for band in (curve.low, curve.high) if ends and band is not None]
    return list(zip(curve.x, curve.y, *bands, strict=True))


def _tells(row: tuple[Any, ...], label: str, point: tuple[float, ...]) -> bool:
    """Whether a row names the curve, or the label up to its comma, and holds these numbers, each in
    a cell of its own."""
    names = [cell for cell in row if isinstance(cell, str)]
    numbers = [float(cell) for cell in row if isinstance(cell, (int, float))]
    for value in point:
        place = next(
            (place for place, number in enumerate(numbers) if math.isclose(value, number)), None
        )
        if place is None:
            return False
        del numbers[place]
    return label in names or label.split(",", maxsplit=1)[0] in names
