"""Text in and about figures: notation, line breaks, the key to a figure's marks, and a figure in
words."""

from textwrap import fill as wrap

from local_dp.experiments.lab.shapes import Curve, Figure, Regions
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
