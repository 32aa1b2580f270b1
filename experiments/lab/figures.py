"""Figures: the only importer of matplotlib. What was measured has markers and a confidence band, theory is a line, a proven bound is dashed."""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from local_dp.errors import InputError
from local_dp.experiments.lab.claim import Curve, Figure, Region, Regions
from local_dp.experiments.lab.figure_text import lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Canvas

INK, MUTED, RULE, PAPER = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
# Okabe and Ito's palette, the yellow left out and the light ones darkened to stand on white: colour-blind readers can distinguish them.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5558f", "#b07d00", "#3b93c9", "#6b6b6b")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_ROLES = re.compile(r"\b(?:measured|simulated|predicted|proven|theory|formula|bound|worst found)\b|[,:]")
_LABEL_WIDTH = 38  # characters that the name of a curve may have on one line of the key: two such columns fit
ENDINGS = (".png", ".svg", ".pdf")
_WIDTH = 6.8  # inches: the text of a printed page
_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 14,
    "axes.labelsize": 10.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "both",
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
def _canvas(width: float, height: float, salt: str) -> Iterator["Canvas"]:
    """A matplotlib figure in our style, drawn without a display and without pyplot's global state. Equal figures become equal bytes."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    style: Any = _STYLE | {"svg.hashsalt": salt}
    with rc_context(style):
        canvas = Canvas(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(canvas)
        yield canvas


def _write(canvas: "Canvas", path: Path) -> None:
    """PNG, SVG or PDF by the name's ending, without a date."""
    suffix = path.suffix.lower()
    undated = {".svg": {"Date": None, "Creator": None}, ".pdf": {"CreationDate": None}}.get(suffix, {})
    try:
        path.unlink(missing_ok=True)  # it may be a link, and would be followed
        canvas.savefig(path, dpi=160, metadata=undated)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write the figure {path}: {error}") from None


def save(figure: Figure | Regions, *paths: Path) -> None:
    """Draws a figure into each of `paths` (.svg, .png). Raises InputError if one cannot be written."""
    if isinstance(figure, Regions):
        height = 0.36 * sum(map(_height, figure.regions)) + 0.2
    else:
        height = 4.2 + 0.11 * len(figure.curves) + 0.05 * max(map(len, figure.x_ticks), default=0)
    with _canvas(_WIDTH, height, figure.name) as canvas:
        if isinstance(figure, Regions):
            _draw_regions(canvas, figure)
        else:
            _draw_curves(canvas.add_subplot(), figure)
        for path in paths:
            _write(canvas, path)


def _groups(curves: Sequence[Curve]) -> list[int]:
    """The place of each curve's group in the order of appearance: its colour.

    Without a group, curves of different styles share a colour if their labels differ only in the role ("X, measured", "X, predicted").
    """
    order: list[tuple[str, set[str]]] = []
    places = []
    for curve in curves:
        subject = curve.group or " ".join(_ROLES.sub(" ", curve.label).split())
        place = next((at for at, (name, styles) in enumerate(order) if name == subject and (curve.group or curve.style not in styles)), len(order))
        if place == len(order):
            order.append((subject, set()))
        order[place][1].add(curve.style)
        places.append(place)
    return places


def _marker(group: int) -> str:
    """The marker of a group: another one when the colours come round again."""
    return MARKERS[(group + group // len(COLOURS)) % len(MARKERS)]


def _draw_curves(axes: "Axes", figure: Figure) -> None:
    bars = [curve for curve in figure.curves if curve.style == "bars"]
    for curve, group in zip(figure.curves, _groups(figure.curves), strict=True):
        colour = COLOURS[group % len(COLOURS)]
        if curve.style == "bars":
            _draw_bars(axes, curve, bars.index(curve), len(bars), colour)
        else:
            _draw_line(axes, curve, colour, _marker(group), joined=not figure.x_ticks)
    axes.set_xlabel(lines(figure.x_label, 70))
    axes.set_ylabel(lines(figure.y_label, 36))
    _scale_axes(axes, figure)
    _name_curves(axes, figure)


def _draw_line(axes: "Axes", curve: Curve, colour: str, marker: str, joined: bool) -> None:
    x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
    if curve.style == "measured":
        joined = joined and bool(np.all(np.diff(x) > 0))  # else the points are a scatter
        if joined:
            axes.plot(x, y, linestyle="-", linewidth=0.9, alpha=0.6, color=colour, zorder=3)
        axes.plot(x, y, marker=marker, linestyle="none", markersize=6.5, color=colour, markeredgecolor=PAPER, zorder=4)
        if curve.low is not None and curve.high is not None:
            low, high = np.asarray(curve.low, dtype=float), np.asarray(curve.high, dtype=float)
            axes.vlines(x, low, high, color=colour, linewidth=1.4, alpha=0.8, zorder=3)
            if joined:
                axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0, zorder=2)
        return
    dashes = _dashes(curve)
    if joined and len(x) > 1:
        axes.plot(x, y, linestyle=dashes, linewidth=1.8, color=colour, alpha=0.9, zorder=3)
    else:  # a line has no meaning between categories: a short stroke at each
        axes.hlines(y, x - 0.32, x + 0.32, linestyle=dashes, linewidth=1.8, color=colour, zorder=3)


def _draw_bars(axes: "Axes", curve: Curve, place: int, of: int, colour: str) -> None:
    width = 0.8 / of
    at = np.asarray(curve.x, dtype=float) + (place - (of - 1) / 2) * width
    y = np.asarray(curve.y, dtype=float)
    axes.bar(at, y, width=0.92 * width, color=colour, alpha=0.88, zorder=2)
    if curve.low is not None and curve.high is not None:
        axes.vlines(at, curve.low, curve.high, color=INK, linewidth=1.2, zorder=4)


def _scale_axes(axes: "Axes", figure: Figure) -> None:
    if figure.log_x:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis, axes.get_xlim())
    if figure.log_y:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis, axes.get_ylim())
    if figure.x_ticks:
        width = max(4, 84 // len(figure.x_ticks))
        crowded = any(len(word) > width for tick in figure.x_ticks for word in tick.split())
        names = [lines(tick, 24 if crowded else width) for tick in figure.x_ticks]
        turned: dict[str, Any] = {"rotation": 32, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        axes.set_xticks(range(len(names)), names, **turned)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.grid(visible=False, axis="x")
        return
    positions = sorted({float(x) for curve in figure.curves for x in curve.x if curve.style == "measured"})
    if 2 <= len(positions) <= 9 and all(position.is_integer() and position <= 4096 for position in positions):
        _tick_at(axes, positions, figure.log_x)


def _plain_numbers(axis: "Axis", limits: tuple[float, float]) -> None:
    """A logarithmic axis of less than two decades of everyday numbers is labelled 1, 2, 5, 10 rather than by powers of ten."""
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


def _name_curves(axes: "Axes", figure: Figure) -> None:
    """A key below the axes names the curves in the order in which they end, the highest first; one curve alone is named by its axes."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if len(figure.curves) < 2:
        return
    handles: list[Line2D | Patch] = []
    places = dict(enumerate(_groups(figure.curves)))
    for place in _order(figure):
        curve, group = figure.curves[place], places[place]
        colour, label = COLOURS[group % len(COLOURS)], lines(curve.label, _LABEL_WIDTH)
        if curve.style == "bars":
            handles.append(Patch(color=colour, label=label))
        elif curve.style == "measured":
            handles.append(Line2D([], [], color=colour, marker=_marker(group), linewidth=1.1, label=label))
        else:
            handles.append(Line2D([], [], color=colour, linestyle=_dashes(curve), linewidth=1.8, label=label))
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    canvas.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9.5, handlelength=2.6, columnspacing=1.6)


def _order(figure: Figure) -> list[int]:
    """The curves' places as their right ends lie from top to bottom; bars and categories stay as they are."""
    if figure.x_ticks:
        return list(range(len(figure.curves)))
    return sorted(range(len(figure.curves)), key=lambda place: -_end_of(figure.curves[place]))


def _end_of(curve: Curve) -> float:
    """The last finite value of a curve; below all others if there is none."""
    points = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if math.isfinite(y)]
    return max(points)[1] if points else -math.inf


def _dashes(curve: Curve) -> Any:
    return "-" if curve.style == "theory" else (0, (5, 3))


_HEAD, _ROW, _GAP = 1.0, 0.68, 0.32  # heights in a diagram: a region's title, a line of what is placed in it, the rim between two regions


def _height(region: Region) -> float:
    """What a region adds to the height of the diagram."""
    return _HEAD + _ROW * sum(1 + len(evidence.splitlines()) for _, evidence in region.placed) + 2 * _GAP


def _draw_regions(canvas: "Canvas", figure: Regions) -> None:
    """Nested rounded boxes, the innermost at the bottom, each with its title and what was placed in it, with the evidence line by line."""
    from matplotlib.patches import FancyBboxPatch

    canvas.set_layout_engine("none")
    axes = canvas.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    depth = len(figure.regions)
    top = _GAP * (depth - 1)
    for level, region in enumerate(figure.regions):
        inset = bottom = _GAP * (depth - 1 - level)
        top += _height(region) - _GAP
        colour = COLOURS[(2, 0, 3, 1, 4, 5, 6)[level % 7]]
        for face, edge, alpha in ((colour, "none", 0.09), ("none", colour, 0.9)):
            shape = FancyBboxPatch((inset, bottom), 20 - 2 * inset, top - bottom, boxstyle="round,pad=0,rounding_size=0.45")
            shape.set(facecolor=face, edgecolor=edge, alpha=alpha, linewidth=1.6, zorder=depth - level)
            axes.add_patch(shape)
        left, y = inset + 0.6, top - 0.55
        axes.text(left, y, lines(region.title, 90), fontsize=12, fontweight="bold", color=INK, va="center", zorder=9)
        axes.text(19.4 - inset, y, lines(region.subtitle, 90), fontsize=9.5, color=INK, va="center", ha="right", zorder=9)
        y -= _HEAD / 4
        for name, evidence in region.placed:
            y -= _ROW
            axes.plot([left + 0.12], [y], marker="o", markersize=5.5, color=colour, zorder=9)
            axes.text(left + 0.5, y, lines(name, 90), fontsize=10.5, va="center", zorder=9)
            for line in evidence.splitlines():
                y -= _ROW
                axes.text(left + 0.5, y, lines(line, 110), fontsize=9, color=INK, va="center", zorder=9)
    axes.set_xlim(-0.1, 20.1)
    axes.set_ylim(-0.1, top + 0.1)


@dataclass(frozen=True)
class Estimates:
    """Estimates with their intervals, one row each; NaN is unknown. `axis` says what is estimated, with its unit; `rows` what a row is."""

    title: str
    axis: str
    rows: str
    labels: Sequence[str]
    values: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    truth: Sequence[float] | None


def plot_estimates(found: Estimates, path: Path) -> None:
    """Draws estimates beside the truth where it is known into `path` (.png, .svg or .pdf). Raises InputError."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"cannot draw {str(path)!r}: give a name that ends in .png, .svg or .pdf")
    labels = [lines(label, 36) for label in found.labels]
    high = 0.27 + 0.15 * max(label.count("\n") for label in labels)
    with _canvas(_WIDTH, 1.9 + high * len(labels), found.title) as canvas:
        axes = canvas.add_subplot()
        rows = np.arange(len(labels))[::-1]
        named = "estimate" if np.isnan(found.lows).all() else "estimate, with its 95 % interval"
        axes.hlines(rows, found.lows, found.highs, color=COLOURS[0], linewidth=2.2, alpha=0.55, zorder=2)
        axes.plot(found.values, rows, "o", color=COLOURS[0], markersize=6.5, markeredgecolor=PAPER, label=named, zorder=4)
        if found.truth is not None:
            axes.plot(found.truth, rows, "|", color=COLOURS[1], markersize=13, markeredgewidth=2.4, label="truth", zorder=3)
        axes.set_yticks(rows, labels)
        axes.set_ylim(-0.6, len(labels) - 0.4)
        axes.set_xlabel(lines(found.axis, 64))
        axes.set_ylabel(lines(found.rows, 24))
        axes.grid(visible=False, axis="y")
        axes.set_title(lines(found.title, 60))
        canvas.legend(loc="outside lower center", ncols=2, frameon=False)
        _write(canvas, path)
