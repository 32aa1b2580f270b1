"""A run's estimates as a figure."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from local_dp.errors import InputError
from local_dp.experiments.lab.figures import Estimates, plot_estimates
from local_dp.experiments.tiers.outcome import estimates

MOST = 40  # rows of a figure
_AXES = {
    "survey": "share of the clients asked whose answer is yes",
    "frequency": "share of the clients",
    "histogram": "share of the clients",
    "crosstab": "share of the clients",
    "mean": "mean of {column}, in the units of the column",
    "quantiles": "{column}, in the units of the column",
    "sq": "average over the clients",
}
_SHARES = ("frequency", "histogram", "crosstab")  # shares of several labels add up
ENDINGS = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Raises InputError for a figure that cannot be written."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"the figure is {str(path)!r}; give a file that ends in .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} for the figure; create it first")


def draw(data: dict[str, Any], path: Path) -> None:
    """Draws a run's estimates with their intervals, and the truth where it is known."""
    plot_estimates(pictured(data), path)


def pictured(data: dict[str, Any]) -> Estimates:
    """The figure of a run: at most `MOST` rows. Further shares are summed; of other estimates only the first are drawn."""
    labels, values, _, intervals = zip(*estimates(data["result"]), strict=True)
    result = data["result"]
    lows = [result["low"] if low is None else low for low, _ in intervals]  # an open interval ends at the end of the grid
    highs = [result["high"] if high is None else high for _, high in intervals]
    truth = result["truth"]
    known = [math.nan if value is None else value for value in values]  # an unknown value has an interval and no point
    parameters = data["parameters"]
    column = str(parameters.get("column") or " and ".join(parameters.get("columns") or ()))
    whole = Estimates(
        f"{data['protocol']}, epsilon {data['epsilon']:g}, {data['rounds'][0]['n']:,} clients; {data.get('stamp', 'private')}",
        _AXES.get(data["protocol"], "estimate").format(column=column),
        str(parameters.get("by") or (column if data["protocol"] in _SHARES else "")),
        *(labels, known, lows, highs),
        truth if truth is None or isinstance(truth, list) else [truth],
    )
    return whole if len(labels) <= MOST else _fewer(whole, data["protocol"])


def _fewer(whole: Estimates, protocol: str) -> Estimates:
    """At most `MOST` rows. The choice does not depend on the estimates: the sum of the smallest would be far below the truth."""
    count = len(whole.labels)
    if protocol == "histogram":
        each = -(-count // MOST)
        merged = replace(whole, axis=f"{whole.axis}, {each} neighbouring bins summed in each row")
        return _summed(merged, [range(first, min(first + each, count)) for first in range(0, count, each)])
    if protocol in _SHARES:
        rest = _summed(whole, [*(range(place, place + 1) for place in range(MOST - 1)), range(MOST - 1, count)])
        return replace(rest, labels=[*rest.labels[:-1], f"{count - MOST + 1} others, summed"])
    first = _summed(whole, [range(place, place + 1) for place in range(MOST)])
    return replace(first, axis=f"{whole.axis}; the first {MOST} of {count}")


def _summed(whole: Estimates, groups: Sequence[range]) -> Estimates:
    """One row for each group: the sum of its shares, without an interval if there are several."""

    def total(values: Sequence[float]) -> list[float]:
        return [sum(values[place] for place in group) for group in groups]

    def alone(values: Sequence[float]) -> list[float]:
        return [values[group[0]] if len(group) == 1 else math.nan for group in groups]

    labels = [whole.labels[group[0]] if len(group) == 1 else f"{whole.labels[group[0]]} to {whole.labels[group[-1]]}" for group in groups]
    truth = None if whole.truth is None else total(whole.truth)
    return replace(whole, labels=labels, values=total(whole.values), lows=alone(whole.lows), highs=alone(whole.highs), truth=truth)
