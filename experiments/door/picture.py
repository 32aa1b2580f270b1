"""A run's estimates as a figure."""

import math
from pathlib import Path
from typing import Any

from experiments.lab.figures import plot_estimates
from experiments.tiers.outcome import estimates
from local_dp.errors import InputError

ENDINGS = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Raises InputError before a run if its figure could not be drawn after it."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"--plot is {str(path)!r}; give a file that ends in .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} for the figure; make it first")


def draw(data: dict[str, Any], path: Path) -> None:
    """Draws a run's estimates with their intervals, and the truth where it is known."""
    labels, values, _, intervals = zip(*estimates(data["result"]), strict=True)
    result = data["result"]
    lows = [result["low"] if low is None else low for low, _ in intervals]  # an open interval is drawn to the end of the grid
    highs = [result["high"] if high is None else high for _, high in intervals]
    truth = result["truth"]
    truths = truth if truth is None or isinstance(truth, list) else [truth]
    known = [math.nan if value is None else value for value in values]  # what is unknown has an interval and no point
    plot_estimates(f"{data['protocol']}, epsilon {data['epsilon']:g}, {data['rounds'][0]['n']:,} clients", labels, known, lows, highs, truths, path)
