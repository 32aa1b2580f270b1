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
    plain = shown(typeset(text), "block").replace(" = ", "\xa0=\xa0")
    safe = wrap(plain, width).replace("$", r"\$")
    return EXPONENT.sub(lambda match: rf"$^{{\mathregular{{{match[1] or match[2]}}}}}$", safe)


def key(figure: Figure | Regions) -> str:
    """How the figure is to be read, in a sentence for its caption."""
    if isinstance(figure, Regions):
        return (
            "What lies in a region lies in all around it. Numbers say whether they were measured, "
            "computed or proven."
        )
    styles = {curve.style for curve in figure.curves}
    parts = [meaning for style, meaning in _MARKS.items() if style in styles]
    if any(curve.low is not None for curve in figure.curves):
        parts.append("bands and whiskers are 95 % intervals")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def alt_text(figure: Figure | Regions) -> str:
    """The figure in words, for a reader who does not see it."""
    if isinstance(figure, Regions):
        parts = [
            f"{region.title} ({region.subtitle}): {_listing(region.placed) or 'nothing'}"
            for region in figure.regions
        ]
        return typeset(f"{figure.title}. Nested regions, the innermost first. {'. '.join(parts)}.")
    y, x = (
        f"{label} (logarithmic)" if log else label
        for label, log in ((figure.y_label, figure.log_y), (figure.x_label, figure.log_x))
    )
    curves = "; ".join(_in_words(curve, figure.x_ticks) for curve in figure.curves)
    return typeset(f"{figure.title}. {y} against {x}. {curves}.")


def _listing(items: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({'; '.join(evidence.splitlines())})" for name, evidence in items)


def _in_words(curve: Curve, ticks: tuple[str, ...]) -> str:
    points = list(zip(curve.x, curve.y, strict=True))
    if not points:
        return f"{curve.label}: no points"
    if ticks:
        heights = (f"{ticks[int(x)]} {y:.3g}" for x, y in points if 0 <= int(x) < len(ticks))
        return f"{curve.label}: {', '.join(heights)}"
    (x0, y0), (x1, y1) = min(points), max(points)
    return f"{curve.label} ({curve.style}): from {y0:.3g} at {x0:g} to {y1:.3g} at {x1:g}"
