"""Figures: the only importer of matplotlib. What was measured has markers and a confidence band,
theory is a line, a proven bound is dashed."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

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
    "axes.grid.axis": "both",
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "legend.fontsize": "medium",
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
    suffix = path.suffix.lower()
    undated = {".svg": {"Date": None, "Creator": None}, ".pdf": {"CreationDate": None}}.get(
        suffix, {}
    )
    try:
        path.unlink(missing_ok=True)  # it may be a link, and would be followed
        canvas.savefig(path, dpi=160, metadata=undated)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write the figure {path}: {error}") from None


def save(figure: Figure | Regions, *paths: Path, drawing: Drawing = DEFAULT) -> None:
    """Draws a figure into each of `paths` (.svg, .png, .pdf). Raises InputError if one cannot be
    written, or for a series that it has not."""
    line = drawing.font / 72 * 1.5  # inches
    if isinstance(figure, Regions):
        height = line * sum(_height(region, drawing) for region in figure.regions)
    else:
        look = looks(figure, drawing.series)
        named = sum(
            lines(figure.curves[place].label, drawing.characters(0.85)).count("\n") + 1
            for place in _named(figure, look)
        )
        height = 0.55 * drawing.size + line * (
            5 + named + 0.25 * max(map(len, figure.x_ticks), default=0)
        )
    with _canvas(drawing, height, figure.name) as canvas:
        if isinstance(figure, Regions):
            _draw_regions(canvas, figure, drawing)
        else:
            _draw_curves(canvas.add_subplot(), figure, drawing)
        for path in paths:
            _write(canvas, path)


def _draw_curves(axes: "Axes", figure: Figure, drawing: Drawing = DEFAULT) -> None:
    bars = [curve for curve in figure.curves if curve.style == "bars"]
    look = looks(figure, drawing.series)
    for curve, each in zip(figure.curves, look, strict=True):
        if curve.style == "bars":
            models = (
                [
                    PALETTE[model_of(tick, "")][0] if model_of(tick, "") else each.colour
                    for tick in figure.x_ticks
                ]
                if len(bars) == 1
                else each.colour
            )
            _draw_bars(axes, curve, bars.index(curve), len(bars), models)
        else:
            _draw_line(axes, curve, each, joined=not figure.x_ticks)
    _entitle(axes, figure.title, drawing)
    axes.set_xlabel(lines(figure.x_label, drawing.characters(0.75)))
    axes.set_ylabel(lines(figure.y_label, drawing.characters(0.5)))
    _scale_axes(axes, figure, drawing)
    _name_curves(axes, figure, look, drawing)


def _entitle(axes: "Axes", title: str, drawing: Drawing) -> None:
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    canvas.suptitle(lines(title, drawing.characters(0.72)), x=0.01, ha="left")


def _draw_line(axes: "Axes", curve: Curve, look: Look, joined: bool) -> None:
    x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
    colour, above = look.colour, 0 if look.colour == FADED else 2.9 if look.under else 3
    if curve.style == "measured":
        joined = joined and bool(np.all(np.diff(x) > 0))  # else the points are a scatter
        if joined:
            axes.plot(
                x,
                y,
                linestyle="-",
                linewidth=0.9 + 3 * look.under,
                alpha=0.6,
                color=colour,
                zorder=above,
            )
        if look.colour != FADED:
            axes.plot(x, y, linestyle="none", zorder=above + 1, **_marked(look))
        if curve.low is not None and curve.high is not None and look.colour != FADED:
            low, high = np.asarray(curve.low, dtype=float), np.asarray(curve.high, dtype=float)
            axes.vlines(x, low, high, color=colour, linewidth=1.4, alpha=0.8, zorder=3)
            if joined:
                axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0, zorder=2)
        return
    if joined and len(x) > 1:
        axes.plot(
            x,
            y,
            linestyle=look.dashes,
            linewidth=0.9 if colour == FADED else 1.8 + 3 * look.under,
            color=colour,
            alpha=0.9,
            zorder=above,
        )
    else:  # a line has no meaning between categories: a short stroke at each
        axes.hlines(
            y, x - 0.32, x + 0.32, linestyle=look.dashes, linewidth=1.8, color=colour, zorder=above
        )


def _marked(look: Look) -> dict[str, Any]:
    """The markers of a curve: hollow if its shade comes round again, larger if another curve hides
    it."""
    face, edge = (PAPER, look.colour) if look.hollow else (look.colour, PAPER)
    size = 6.5 + 5 * look.under
    return {
        "color": look.colour,
        "marker": look.marker,
        "markersize": size,
        "markerfacecolor": face,
        "markeredgecolor": edge,
        "markeredgewidth": 0.8,
    }


def _draw_bars(axes: "Axes", curve: Curve, place: int, of: int, colour: str | list[str]) -> None:
    width = 0.8 / of
    at = np.asarray(curve.x, dtype=float) + (place - (of - 1) / 2) * width
    y = np.asarray(curve.y, dtype=float)
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
        width = max(4, drawing.characters(0.85) // len(figure.x_ticks))
        crowded = any(len(word) > width for tick in figure.x_ticks for word in tick.split())
        names = [lines(tick, 24 if crowded else width) for tick in figure.x_ticks]
        turned: dict[str, Any] = (
            {"rotation": 32, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        )
        axes.set_xticks(range(len(names)), names, **turned)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.grid(visible=False, axis="x")
        return
    positions = sorted(
        {float(x) for curve in figure.curves for x in curve.x if curve.style == "measured"}
    )
    if 2 <= len(positions) <= 9 and all(
        position.is_integer() and position <= 4096 for position in positions
    ):
        _tick_at(axes, positions, figure.log_x)


def _plain_numbers(axis: "Axis", limits: tuple[float, float]) -> None:
    """A logarithmic axis of less than two decades of everyday numbers is labelled 1, 2, 5, 10
    rather than by powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = limits
    if high / low < 100 and low >= 1e-3 and high <= 1e5:
        axis.set_minor_locator(LogLocator(subs=(2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _tick_at(axes: "Axes", positions: list[float], log: bool) -> None:
    """Ticks where something was measured, where that does not crowd the axis."""
    from matplotlib.ticker import NullFormatter, NullLocator

    places = np.log(positions) if log else np.array(positions)
    if np.min(np.diff(places)) < 0.045 * (places[-1] - places[0]):
        return
    axes.set_xticks(positions, [f"{position:g}" for position in positions])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def _name_curves(axes: "Axes", figure: Figure, look: Sequence[Look], drawing: Drawing) -> None:
    """A key below the axes names the curves in the order in which they end, the highest first; one
    curve alone is named by its axes, grey ones by a number."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if len(figure.curves) < 2:
        return
    handles: list[Line2D | Patch] = []
    for place in _named(figure, look):
        curve, each, label = (
            figure.curves[place],
            look[place],
            lines(figure.curves[place].label, drawing.characters(0.85)),
        )
        if curve.style == "bars":
            handles.append(Patch(color=each.colour, label=label))
        elif curve.style == "measured":
            handles.append(Line2D([], [], linewidth=1.1, label=label, **_marked(each)))
        else:
            handles.append(
                Line2D([], [], color=each.colour, linestyle=each.dashes, linewidth=1.8, label=label)
            )
    if faded := len(
        {
            place
            for place, each in zip(groups(figure.curves), look, strict=True)
            if each.colour == FADED
        }
    ):
        handles.append(
            Line2D([], [], color=FADED, linewidth=0.9, label=f"{faded} more, in the table")
        )
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    canvas.legend(
        handles=handles,
        loc="outside lower left",
        frameon=False,
        handlelength=2.6,
        labelspacing=0.35,
        borderaxespad=0.2,
    )


def _named(figure: Figure, look: Sequence[Look]) -> list[int]:
    """The places of the curves with a name, as their right ends lie from top to bottom; bars and
    categories stay as they are. A series has one name."""

    def named(curve: Curve) -> bool:
        return curve.style != "theory" or not any(
            curve.label.startswith(f"{other.label},") for other in figure.curves
        )

    places = [
        place
        for place, curve in enumerate(figure.curves)
        if look[place].colour != FADED and named(curve)
    ]
    return (
        places
        if figure.x_ticks
        else sorted(places, key=lambda place: -_end_of(figure.curves[place]))
    )


def _end_of(curve: Curve) -> float:
    """The last finite value of a curve; below all others if there is none."""
    points = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if math.isfinite(y)]
    return max(points)[1] if points else -math.inf


_HEAD, _ROW, _GAP = (
    1.0,
    0.95,
    0.4,
    # heights in a diagram, in lines: a region's title, a line of what is placed in it, the rim
    # between two regions
)


def _listed(region: Region, drawing: Drawing) -> list[tuple[str, bool]]:
    """The lines of a region, and which begin what is placed there."""
    listed = []
    for name, evidence in region.placed:
        for text, first in [(name, True), *((line, False) for line in evidence.splitlines())]:
            listed += [
                (line, first and not place)
                for place, line in enumerate(lines(text, drawing.characters(0.9)).split("\n"))
            ]
    return listed


def _height(region: Region, drawing: Drawing) -> float:
    """What a region adds to the height of the diagram, in lines."""
    return 2 * _HEAD + _ROW * len(_listed(region, drawing)) + 2 * _GAP


def _draw_regions(canvas: "Canvas", figure: Regions, drawing: Drawing = DEFAULT) -> None:
    """Nested rounded boxes, the innermost at the bottom, each with its title and what was placed in
    it, with the evidence line by line."""
    from matplotlib.patches import FancyBboxPatch

    canvas.set_layout_engine("none")
    axes = canvas.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    depth, shades = len(figure.regions), dict[str, int]()
    top = _GAP * (depth - 1)
    for level, region in enumerate(figure.regions):
        inset = bottom = _GAP * (depth - 1 - level)
        top += _height(region, drawing) - _GAP
        model = model_of(f"{region.title} {region.subtitle}", "curator")
        shade = shades[model] = shades.get(model, -1) + 1
        colour = PALETTE[model][shade % len(PALETTE[model])]
        for face, edge, alpha in ((colour, "none", 0.09), ("none", colour, 0.9)):
            shape = FancyBboxPatch(
                (inset, bottom),
                20 - 2 * inset,
                top - bottom,
                boxstyle="round,pad=0,rounding_size=0.45",
            )
            shape.set(
                facecolor=face, edgecolor=edge, alpha=alpha, linewidth=1.6, zorder=depth - level
            )
            axes.add_patch(shape)
        left, y = inset + 0.5, top - 0.75 * _HEAD
        axes.text(
            left,
            y,
            lines(region.title, 90),
            fontsize="large",
            fontweight="bold",
            color=INK,
            va="center",
            zorder=9,
        )
        axes.text(
            19.5 - inset,
            y,
            lines(region.subtitle, 90),
            color=INK,
            va="center",
            ha="right",
            zorder=9,
        )
        y -= _HEAD / 2
        for line, first in _listed(region, drawing):
            y -= _ROW
            if first:
                axes.plot([left + 0.15], [y], marker="o", markersize=5.5, color=colour, zorder=9)
            axes.text(
                left + 0.6,
                y,
                line,
                fontweight="bold" if first else "normal",
                color=INK,
                va="center",
                zorder=9,
            )
    axes.set_xlim(-0.1, 20.1)
    axes.set_ylim(-0.1, top + 0.1)


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


def plot_estimates(found: Estimates, path: Path, drawing: Drawing = DEFAULT) -> None:
    """Draws estimates beside the truth where it is known into `path` (.png, .svg or .pdf). Raises
    InputError."""
    labels = [lines(label, drawing.characters(0.35)) for label in found.labels]
    line = drawing.font / 72 * 1.5
    colour = PALETTE[found.model][0]
    with _canvas(
        drawing, line * (8 + sum(1.2 + label.count("\n") for label in labels)), found.title
    ) as canvas:
        axes = canvas.add_subplot()
        rows = np.arange(len(labels))[::-1]
        named = "estimate" if np.isnan(found.lows).all() else "estimate, with its 95 % interval"
        known = np.concatenate([found.lows, found.highs, found.values, found.truth or ()]).astype(
            np.float64
        )
        known = known[np.isfinite(known)] if np.isfinite(known).any() else np.zeros(1)
        margin = 0.06 * (np.ptp(known) or 1.0)
        edges = known.min() - margin, known.max() + margin
        for ends, edge, arrow in ((found.lows, edges[0], "<"), (found.highs, edges[1], ">")):
            # an open end
            axes.plot(
                np.where(np.isinf(ends), edge, np.nan),
                rows,
                arrow,
                color=colour,
                markersize=5.5,
                alpha=0.7,
            )
        axes.hlines(
            rows,
            np.maximum(found.lows, edges[0]),
            np.minimum(found.highs, edges[1]),
            color=colour,
            linewidth=2.2,
            alpha=0.55,
            zorder=2,
        )
        axes.plot(
            found.values,
            rows,
            "o",
            color=colour,
            markersize=6.5,
            markeredgecolor=PAPER,
            label=named,
            zorder=4,
        )
        if found.truth is not None:
            axes.plot(
                found.truth,
                rows,
                "|",
                color=INK,
                markersize=13,
                markeredgewidth=2.4,
                label="truth",
                zorder=3,
            )
        axes.set_yticks(rows, labels)
        axes.set_ylim(-0.6, max(len(labels), 1) - 0.4)
        if not labels:
            axes.text(
                0.5, 0.5, "nothing was found", transform=axes.transAxes, ha="center", va="center"
            )
        axes.set_xlabel(lines(found.axis, drawing.characters(0.6)))
        axes.set_ylabel(lines(found.rows, 24))
        axes.grid(visible=False, axis="y")
        _entitle(axes, found.title, drawing)
        canvas.legend(loc="outside lower left", frameon=False)
        _write(canvas, path)
