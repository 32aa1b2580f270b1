"""Figures: the only importer of matplotlib. What was measured has markers and a confidence band,
theory is a line, a proven bound is dashed."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.errors import InputError
from local_dp.experiments.lab.figure_text import lines
from local_dp.experiments.lab.shapes import Curve, Figure, Region, Regions
from local_dp.experiments.lab.style import (
    DEFAULT,
    FADED,
    INK,
    MUTED,
    PALETTE,
    PAPER,
    RULE,
    Drawing,
    Look,
    groups,
    looks,
    model_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Canvas

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "figure.titlesize": "large",
    "figure.titleweight": "bold",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "path",
}


@contextmanager
def _canvas(drawing: Drawing, height: float, salt: str) -> Iterator["Canvas"]:
    """A matplotlib figure in our style, drawn without a display and without pyplot's global state.
    Equal figures become equal bytes."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    style: Any = _STYLE | {"font.size": drawing.font, "svg.hashsalt": salt}
    with rc_context(style):
        canvas = Canvas(figsize=(drawing.size, height), layout="constrained")
        FigureCanvasAgg(canvas)
        yield canvas


def _write(canvas: "Canvas", path: Path) -> None:
    """PNG, SVG or PDF by the name's ending, without a date."""
    dates = {".svg": {"Date": None, "Creator": None}, ".pdf": {"CreationDate": None}}
    try:
        path.unlink(missing_ok=True)  # it may be a link, and would be followed
        canvas.savefig(path, dpi=160, metadata=dates.get(path.suffix.lower(), {}))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write the figure {path}: {error}") from None


def save(figure: Figure | Regions, *paths: Path, drawing: Drawing = DEFAULT) -> None:
    """Draws a figure into each of `paths` (.svg, .png, .pdf). Raises InputError if one cannot be
    written, or for a series that it has not."""
    if isinstance(figure, Regions):
        height = drawing.line * sum(_height(region, drawing) for region in figure.regions)
    else:
        entries = _entries(figure, looks(figure, drawing.series), drawing)
        rows = 5 + sum(label.count("\n") + 1 for _, _, label in entries)
        ticks = 0.25 * max(map(len, figure.x_ticks), default=0)
        height = 0.55 * drawing.size + drawing.line * (rows + ticks)
    with _canvas(drawing, height, figure.name) as canvas:
        if isinstance(figure, Regions):
            _draw_regions(canvas, figure, drawing)
        else:
            _draw_curves(canvas, figure, drawing)
        for path in paths:
            _write(canvas, path)


def _draw_curves(canvas: "Canvas", figure: Figure, drawing: Drawing = DEFAULT) -> None:
    axes = canvas.add_subplot()
    bars = [curve for curve in figure.curves if curve.style == "bars"]
    look = looks(figure, drawing.series)
    for curve, each in zip(figure.curves, look, strict=True):
        if curve.style == "bars":
            models = [model_of(tick, "") for tick in figure.x_ticks if len(bars) == 1]
            colours = [PALETTE[model][0] if model else each.colour for model in models]
            _draw_bars(axes, curve, bars.index(curve), len(bars), colours or each.colour)
        elif curve.style == "measured":
            _draw_measured(axes, curve, each, connect=not figure.x_ticks)
        else:
            _draw_computed(axes, curve, each, connect=not figure.x_ticks)
    _entitle(canvas, figure.title, drawing)
    axes.set_xlabel(lines(figure.x_label, drawing.characters(0.75)))
    axes.set_ylabel(lines(figure.y_label, drawing.characters(0.5)))
    _scale_axes(axes, figure, drawing)
    if len(figure.curves) > 1:  # one curve alone is named by its axes
        _name_curves(canvas, figure, look, drawing)


def _entitle(canvas: "Canvas", title: str, drawing: Drawing) -> None:
    canvas.suptitle(lines(title, drawing.characters(0.72)), x=0.01, ha="left")


def _points(curve: Curve) -> tuple[Floats, Floats]:
    return np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)


def _draw_measured(axes: "Axes", curve: Curve, look: Look, *, connect: bool) -> None:
    x, y = _points(curve)
    colour = look.colour
    connect = connect and bool(np.all(np.diff(x) > 0))  # else the points are a scatter
    if connect:
        width = 0.9 + 3 * look.under
        axes.plot(x, y, linewidth=width, alpha=0.6, color=colour, zorder=look.layer)
    if colour == FADED:
        return
    axes.plot(x, y, linestyle="none", zorder=look.layer + 1, **_markers(look))
    if curve.low is not None and curve.high is not None:
        axes.vlines(x, curve.low, curve.high, color=colour, linewidth=1.4, alpha=0.8, zorder=3)
        if connect:
            axes.fill_between(
                x, curve.low, curve.high, color=colour, alpha=0.16, linewidth=0, zorder=2
            )


def _draw_computed(axes: "Axes", curve: Curve, look: Look, *, connect: bool) -> None:
    x, y = _points(curve)
    style: dict[str, Any] = {"linestyle": look.dashes, "color": look.colour, "zorder": look.layer}
    if connect and len(x) > 1:
        width = 0.9 if look.colour == FADED else 1.8 + 3 * look.under
        axes.plot(x, y, linewidth=width, alpha=0.9, **style)
    else:  # a line has no meaning between categories: a short stroke at each
        axes.hlines(y, x - 0.32, x + 0.32, linewidth=1.8, **style)


def _markers(look: Look) -> dict[str, Any]:
    """The markers of a curve: hollow if its shade comes round again, larger if another curve hides
    it."""
    face, edge = (PAPER, look.colour) if look.hollow else (look.colour, PAPER)
    return {
        "color": look.colour,
        "marker": look.marker,
        "markersize": 6.5 + 5 * look.under,
        "markerfacecolor": face,
        "markeredgecolor": edge,
        "markeredgewidth": 0.8,
    }


def _draw_bars(axes: "Axes", curve: Curve, place: int, of: int, colour: str | list[str]) -> None:
    width = 0.8 / of
    x, y = _points(curve)
    at = x + (place - (of - 1) / 2) * width
    axes.bar(at, y, width=0.92 * width, color=colour, alpha=0.88, zorder=2)
    if curve.low is not None and curve.high is not None:
        axes.vlines(at, curve.low, curve.high, color=INK, linewidth=1.2, zorder=4)


def _scale_axes(axes: "Axes", figure: Figure, drawing: Drawing) -> None:
    if figure.log_x:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis, axes.get_xlim())
    if figure.log_y:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis, axes.get_ylim())
    if figure.x_ticks:
        _name_categories(axes, figure.x_ticks, drawing)
        return
    curves = [curve for curve in figure.curves if curve.style == "measured"]
    positions = sorted({float(x) for curve in curves for x in curve.x})
    small = all(position.is_integer() and position <= 4096 for position in positions)
    if small and 2 <= len(positions) <= 9:
        _tick_at(axes, positions, figure.log_x)


def _name_categories(axes: "Axes", ticks: Sequence[str], drawing: Drawing) -> None:
    """Names below the axis, slanting where a word is wider than its place."""
    width = max(4, drawing.characters(0.85) // len(ticks))
    rotation: dict[str, Any] = {}
    if any(len(word) > width for tick in ticks for word in tick.split()):
        width = 24
        rotation = {"rotation": 32, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(ticks)), [lines(tick, width) for tick in ticks], **rotation)
    axes.set_xlim(-0.6, len(ticks) - 0.4)
    axes.grid(visible=False, axis="x")


def _plain_numbers(axis: "Axis", limits: tuple[float, float]) -> None:
    """A logarithmic axis of less than two decades of everyday numbers is labelled 1, 2, 5, 10
    rather than by powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = limits
    if high / low < 100 and low >= 1e-3 and high <= 1e5:
        axis.set_minor_locator(LogLocator(subs=(2, 5)))
        for set_formatter in (axis.set_major_formatter, axis.set_minor_formatter):
            set_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _tick_at(axes: "Axes", positions: list[float], log: bool) -> None:
    """Ticks where something was measured, where that does not crowd the axis."""
    from matplotlib.ticker import NullFormatter, NullLocator

    places = np.log(positions) if log else np.array(positions)
    if np.min(np.diff(places)) < 0.045 * (places[-1] - places[0]):
        return
    axes.set_xticks(positions, [f"{position:g}" for position in positions])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def _name_curves(canvas: "Canvas", figure: Figure, look: Sequence[Look], drawing: Drawing) -> None:
    """A key below the axes names the curves in the order in which they end, the highest first; grey
    ones have a number."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Line2D | Patch] = []
    for curve, each, label in _entries(figure, look, drawing):
        if curve.style == "bars":
            handles.append(Patch(color=each.colour, label=label))
            continue
        style: dict[str, Any] = {"color": each.colour, "linestyle": each.dashes, "linewidth": 1.8}
        if curve.style == "measured":
            style = {"linewidth": 1.1, **_markers(each)}
        handles.append(Line2D([], [], label=label, **style))
    places = zip(groups(figure.curves), look, strict=True)
    if others := len({place for place, each in places if each.colour == FADED}):
        label = f"{others} more, in the table"
        handles.append(Line2D([], [], color=FADED, linewidth=0.9, label=label))
    canvas.legend(
        handles=handles,
        loc="outside lower left",
        frameon=False,
        handlelength=2.6,
        labelspacing=0.35,
        borderaxespad=0.2,
    )


def _entries(
    figure: Figure, look: Sequence[Look], drawing: Drawing
) -> list[tuple[Curve, Look, str]]:
    """The curves with a name, their looks and labels, as their right ends lie from top to bottom;
    bars and categories stay as they are. A series has one name."""
    heads = tuple(f"{curve.label}," for curve in figure.curves)
    entries = []
    for curve, each in zip(figure.curves, look, strict=True):
        again = curve.style == "theory" and curve.label.startswith(heads)
        if each.colour != FADED and not again:
            entries.append((curve, each, lines(curve.label, drawing.characters(0.85))))
    if not figure.x_ticks:
        entries.sort(key=lambda entry: -_end_of(entry[0]))
    return entries


def _end_of(curve: Curve) -> float:
    """The last finite value of a curve; below all others if there is none."""
    points = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if math.isfinite(y)]
    return max(points)[1] if points else -math.inf


# heights in a diagram, in lines: a region's title, a line of what is placed in it, the rim between
# two regions
_HEAD, _ROW, _GAP = 1.0, 0.95, 0.4


def _region_lines(region: Region, drawing: Drawing) -> list[tuple[str, bool]]:
    """The lines of a region, and which begin what is placed there."""
    entries: list[tuple[str, bool]] = []
    for name, evidence in region.placed:
        start = len(entries)
        for text in (name, *evidence.splitlines()):
            entries += [(line, False) for line in lines(text, drawing.characters(0.9)).split("\n")]
        entries[start] = entries[start][0], True
    return entries


def _height(region: Region, drawing: Drawing) -> float:
    """What a region adds to the height of the diagram, in lines."""
    return 2 * _HEAD + _ROW * len(_region_lines(region, drawing)) + 2 * _GAP


def _draw_regions(canvas: "Canvas", figure: Regions, drawing: Drawing = DEFAULT) -> None:
    """Nested rounded boxes, the innermost at the bottom, each with its title and what was placed in
    it, with the evidence line by line."""
    canvas.set_layout_engine("none")
    axes = canvas.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    depth = len(figure.regions)
    colours = {model: cycle(shades) for model, shades in PALETTE.items()}
    top = _GAP * (depth - 1)
    for level, region in enumerate(figure.regions):
        inset = _GAP * (depth - 1 - level)
        top += _height(region, drawing) - _GAP
        colour = next(colours[model_of(f"{region.title} {region.subtitle}", "curator")])
        _draw_box(axes, inset, top, colour, depth - level)
        _fill_box(axes, inset, top, colour, region, drawing)
    axes.set_xlim(-0.1, 20.1)
    axes.set_ylim(-0.1, top + 0.1)


def _draw_box(axes: "Axes", inset: float, top: float, colour: str, layer: int) -> None:
    from matplotlib.patches import FancyBboxPatch

    for face, edge, alpha in ((colour, "none", 0.09), ("none", colour, 0.9)):
        shape = FancyBboxPatch(
            (inset, inset),
            20 - 2 * inset,
            top - inset,
            boxstyle="round,pad=0,rounding_size=0.45",
        )
        shape.set(facecolor=face, edgecolor=edge, alpha=alpha, linewidth=1.6, zorder=layer)
        axes.add_patch(shape)


def _fill_box(
    axes: "Axes", inset: float, top: float, colour: str, region: Region, drawing: Drawing
) -> None:
    write = partial(axes.text, color=INK, va="center", zorder=9)
    left, y = inset + 0.5, top - 0.75 * _HEAD
    write(left, y, lines(region.title, 90), fontsize="large", fontweight="bold")
    write(19.5 - inset, y, lines(region.subtitle, 90), ha="right")
    y -= _HEAD / 2
    for line, first in _region_lines(region, drawing):
        y -= _ROW
        if first:
            axes.plot([left + 0.15], [y], marker="o", markersize=5.5, color=colour, zorder=9)
        write(left + 0.6, y, line, fontweight="bold" if first else "normal")


@dataclass(frozen=True)
class Estimates:
    """Estimates with their intervals, one row each; NaN is unknown, an infinite end open. `axis` is
    what is estimated, with its unit; `rows` what a row is."""

    title: str
    axis: str
    rows: str
    labels: Sequence[str]
    values: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    truth: Sequence[float] | None
    model: str = "curator"


def plot_estimates(estimates: Estimates, path: Path, drawing: Drawing = DEFAULT) -> None:
    """Draws estimates beside the truth where it is known into `path` (.png, .svg or .pdf). Raises
    InputError."""
    labels = [lines(label, drawing.characters(0.35)) for label in estimates.labels]
    height = drawing.line * (8 + sum(1.2 + label.count("\n") for label in labels))
    with _canvas(drawing, height, estimates.title) as canvas:
        axes = canvas.add_subplot()
        rows = np.arange(len(labels))[::-1]
        _draw_intervals(axes, rows, estimates)
        if estimates.truth is not None:
            style: dict[str, Any] = {"color": INK, "markersize": 13, "markeredgewidth": 2.4}
            axes.plot(estimates.truth, rows, "|", label="truth", zorder=3, **style)
        axes.set_yticks(rows, labels)
        axes.set_ylim(-0.6, max(len(labels), 1) - 0.4)
        if not labels:
            axes.text(
                0.5, 0.5, "nothing was found", transform=axes.transAxes, ha="center", va="center"
            )
        axes.set_xlabel(lines(estimates.axis, drawing.characters(0.6)))
        axes.set_ylabel(lines(estimates.rows, 24))
        axes.grid(visible=False, axis="y")
        _entitle(canvas, estimates.title, drawing)
        canvas.legend(loc="outside lower left", frameon=False)
        _write(canvas, path)


def _draw_intervals(axes: "Axes", rows: Ints, estimates: Estimates) -> None:
    """The estimates, each with a bar from end to end, and an arrow at an open end."""
    lows, highs, values = estimates.lows, estimates.highs, estimates.values
    numbers = np.concatenate([lows, highs, values, estimates.truth or ()]).astype(np.float64)
    numbers = numbers[np.isfinite(numbers)] if np.isfinite(numbers).any() else np.zeros(1)
    margin = 0.06 * (np.ptp(numbers) or 1.0)
    left, right = numbers.min() - margin, numbers.max() + margin
    colour = PALETTE[estimates.model][0]
    for ends, edge, arrow in ((lows, left, "<"), (highs, right, ">")):
        x = np.where(np.isinf(ends), edge, np.nan)
        axes.plot(x, rows, arrow, color=colour, markersize=5.5, alpha=0.7)
    bars = np.maximum(lows, left), np.minimum(highs, right)
    axes.hlines(rows, *bars, color=colour, linewidth=2.2, alpha=0.55, zorder=2)
    label = "estimate" if np.isnan(lows).all() else "estimate, with its 95 % interval"
    style: dict[str, Any] = {"color": colour, "markersize": 6.5, "markeredgecolor": PAPER}
    axes.plot(values, rows, "o", label=label, zorder=4, **style)
