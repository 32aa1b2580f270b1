"""Text in and about figures: exponents, line breaks, and a figure in words."""

import re
from textwrap import fill as wrap

from experiments.lab.claim import Curve, Figure, Regions

EXPONENT = re.compile(r"\^(?:(-?\w+(?:\.\d+)?)|\(([^()\n]+)\))")


def lines(text: str, width: int) -> str:
    """The text in lines of at most `width` characters. Exponents such as 2^d and 2^(-d/2) are raised; otherwise a dollar sign is a dollar sign."""
    escaped = wrap(text, width).replace("$", r"\$")
    return EXPONENT.sub(lambda found: rf"$^{{\mathregular{{{found[1] or found[2]}}}}}$", escaped)


def alt_text(figure: Figure | Regions) -> str:
    """The figure in words, for a reader who does not see it."""
    if isinstance(figure, Regions):
        parts = [f"{region.title} ({region.subtitle}): {', '.join(name for name, _ in region.placed) or 'nothing'}" for region in figure.regions]
        return f"{figure.title}. Nested regions, the innermost first. " + "; ".join(parts) + "."
    axes = f"{figure.y_label}{' (logarithmic)' if figure.log_y else ''} against {figure.x_label}{' (logarithmic)' if figure.log_x else ''}"
    return f"{figure.title}. {axes}. " + "; ".join(_in_words(curve, figure.x_ticks) for curve in figure.curves) + "."


def _in_words(curve: Curve, ticks: tuple[str, ...]) -> str:
    points = list(zip(curve.x, curve.y, strict=True))
    if not points:
        return f"{curve.label}: no points"
    if ticks:
        return f"{curve.label}: " + ", ".join(f"{ticks[int(x)]} {y:.3g}" for x, y in points if 0 <= int(x) < len(ticks))
    (x0, y0), (x1, y1) = min(points), max(points)
    return f"{curve.label} ({curve.style}): from {y0:.3g} at {x0:g} to {y1:.3g} at {x1:g}"
