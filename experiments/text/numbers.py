"""Numbers as a person reads them: as many digits as they are good for."""

import math

_DIGITS = 4
_LARGEST, _SMALLEST = 1e15, 1e-6  # beyond these, with a power of ten


def number(value: float | None, error: float | None = None) -> str:
    """`value` to four significant digits; beside its standard error, to that error's second one. A whole number has all its digits.

    What is not known (None) is said to be unknown. What is not zero is never shown as zero: 0.00004 is 0.00004, and a standard error, which has itself beside
    it, has two digits.
    """
    if value is None:
        return "unknown"
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    alone = not error or not math.isfinite(error)
    scale = abs(value) if alone or error is None else error
    if scale == 0:
        return "0"
    places = (_DIGITS if alone else 2) - 1 - math.floor(math.log10(scale))
    if not _SMALLEST <= scale < _LARGEST:
        return f"{value:.{max(places + math.floor(math.log10(abs(value) or scale)), 0)}e}"
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if alone and places > 0 else text


def bound(value: float, up: bool, digits: int = 5) -> str:
    """A bound to so many significant digits, rounded up or down unless it is right to a millionth of the last one."""
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return f"{unit * (math.ceil(value / unit - 1e-6) if up else math.floor(value / unit + 1e-6)):.{digits}g}"
