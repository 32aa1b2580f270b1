"""The result of a run, and its estimates as a figure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_dp.api.declare import WIDTH, Tabular
from local_dp.api.show import summary, truths, unit, withheld
from local_dp.errors import InputError
from local_dp.protocols.local_protocol import LocalProtocol, PlainData
from local_dp.simulation.cluster import plug_ins_of
from local_dp.simulation.installation import stamp_of
from local_dp.simulation.outcome import estimates

if TYPE_CHECKING:  # what draws takes a while to import
    from local_dp.experiments.lab.figures import Estimates
    from local_dp.experiments.lab.style import Drawing

MOST = 40  # rows of a figure
_AXES = {
    "survey": "share of yes",
    "frequency": "share of the clients",
    "histogram": "share of the clients",
    "crosstab": "share of the clients",
    "mean": "mean of {column}, in the units of the column",
    "quantiles": "{column}, in the units of the column",
    "sq": "average over the clients",
}
_SHARES = ("frequency", "histogram", "crosstab")  # shares of several labels add up


def pictured(data: PlainData) -> "Estimates":
    """A run's estimates with their intervals and the known truth, in at most `MOST` rows. Further
    shares are summed; of other estimates the first are drawn."""
    from local_dp.experiments.lab.style import model_of

    title = (
        f"{data['protocol']}, epsilon {data['epsilon']:g}, {data['clients']['asked']:,} "
        f"{unit(data)}; {'DEGRADED; ' if 'degraded' in data else ''}"
        f"{data.get('stamp', 'private')}"
    )
    return drawn_rows(data, title, model_of(data["interaction"], "one-round"))


def drawn_rows(data: PlainData, title: str, model: str) -> "Estimates":
    """The estimates of a protocol's result, which has its `parameters` beside it."""
    from local_dp.experiments.lab.figures import Estimates

    result, parameters = data["result"], data["parameters"]
    rows = estimates(result)
    labels = [row[0] for row in rows]
    values = [row[1] for row in rows]
    intervals = [row[3] for row in rows]
    beyond = math.inf if "low" in result else math.nan  # an interval is open, or unknown
    lows = [-beyond if low is None else low for low, _ in intervals]
    highs = [beyond if high is None else high for _, high in intervals]
    truth = result["truth"]
    # an unknown value has an interval and no point
    points = [math.nan if value is None else value for value in values]
    column = str(parameters.get("column") or " and ".join(parameters.get("columns") or ()))
    axis = _AXES.get(data["protocol"], "estimate").format(column=column)
    if parameters.get("missing") == "exclude":
        axis = f"{axis}, among those present"
    if "withheld" in result:
        axis = f"{axis}. {withheld(data)}"
    whole = Estimates(
        title,
        axis,
        str(parameters.get("by") or (column if data["protocol"] in _SHARES else "")),
        *(labels, points, lows, highs),
        truth if truth is None or isinstance(truth, list) else [truth],
        model,
    )
    return whole if len(labels) <= MOST else _fewer(whole, data["protocol"])


def _fewer(whole: "Estimates", protocol: str) -> "Estimates":
    """At most `MOST` rows. The choice does not depend on the estimates: the sum of the smallest
    would be far below the truth."""
    count = len(whole.labels)
    if protocol == "histogram":
        each = -(-count // MOST)
        bins = replace(whole, axis=f"{whole.axis}, {each} neighbouring bins summed in each row")
        starts = range(0, count, each)
        return _sums(bins, [range(first, min(first + each, count)) for first in starts])
    alone = [range(place, place + 1) for place in range(MOST)]
    if protocol in _SHARES:
        rest = _sums(whole, [*alone[:-1], range(MOST - 1, count)])
        return replace(rest, labels=[*rest.labels[:-1], f"{count - MOST + 1} others, summed"])
    return replace(_sums(whole, alone), axis=f"{whole.axis}; the first {MOST} of {count}")


def _sums(whole: "Estimates", groups: Sequence[range]) -> "Estimates":
    """One row for each group: the sum of its shares, without an interval if there are several."""

    def total(values: Sequence[float]) -> list[float]:
        return [sum(values[place] for place in group) for group in groups]

    def alone(values: Sequence[float]) -> list[float]:
        return [values[group[0]] if len(group) == 1 else math.nan for group in groups]

    labels = [
        whole.labels[group[0]]
        if len(group) == 1
        else f"{whole.labels[group[0]]} to {whole.labels[group[-1]]}"
        for group in groups
    ]
    truth = None if whole.truth is None else total(whole.truth)
    return replace(
        whole,
        labels=labels,
        values=total(whole.values),
        lows=alone(whole.lows),
        highs=alone(whole.highs),
        truth=truth,
    )


def framed(result: PlainData) -> dict[str, list[Any]]:
    """A result's estimates as columns, with the truth where it is known; NaN is unknown."""
    rows = []
    for label, value, error, ends in estimates(result):
        numbers = (value, error, *ends)
        rows.append((label, *(math.nan if each is None else each for each in numbers)))
    truth = truths(result, len(rows))
    others = result.get("withheld", [])
    rows += [(label, *[math.nan] * 4) for label in others]
    names = ("label", "estimate", "standard_error", "low", "high")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return columns | ({"truth": [*truth, *[math.nan] * len(others)]} if truth else {})


@dataclass(frozen=True, repr=False)
class Result(Tabular):
    """A run's result: prints itself as one block, and is plain data by `to_dict`.

    `answer` is the algorithm's own result, such as an `Estimate` or a hypothesis. `data` is the
    JSON of `local-dp run --json`: randomizer, parameters, model, counts of clients, spent budget,
    and in a simulation the truth.
    """

    protocol: LocalProtocol[Any]
    answer: Any

    def text(self, width: int = WIDTH) -> str:
        return summary(self.data, width)

    def origin(self) -> tuple[Any, str]:
        return self.data["seed"], stamp_of(plug_ins_of(self.protocol))

    @property
    def estimate(self) -> Any:
        """The estimate, a number or a list of them; None for a hypothesis."""
        return self.data["result"].get("estimate")

    @property
    def value(self) -> Any:
        """The estimate, a number or a list of them; or the hypothesis."""
        return self.answer if self.estimate is None else self.estimate

    @property
    def standard_error(self) -> Any:
        """The standard error of the estimate, a number or a list of them; None for a hypothesis and
        for quantiles."""
        return self.data["result"].get("standard_error")

    @property
    def interval(self) -> Any:
        """The 95 % interval (low, high) of the estimate, or a list of them; None for a
        hypothesis."""
        return self.data["result"].get("interval")

    @property
    def degraded(self) -> tuple[str, ...]:
        """The signs that reports were lost by choice, or are impossible; the interval then allows
        for any lost reports. Empty for a plain result."""
        return tuple(self.data.get("degraded", ()))

    @property
    def truth(self) -> Any:
        """The truth, in a simulation; None in a private run."""
        return self.data["result"]["truth"]

    def frame(self) -> Mapping[str, list[Any]]:
        """The estimates: label, estimate, standard_error, low, high; in a simulation also truth.
        Raises InputError for a hypothesis."""
        self._check_estimates()
        return framed(self.data["result"])

    def draw(self, path: Path, drawing: "Drawing") -> None:
        from local_dp.experiments.lab.figures import plot_estimates

        self._check_estimates()
        plot_estimates(pictured(self.data), path, drawing)

    def _check_estimates(self) -> None:
        if "estimate" not in self.data["result"]:
            raise InputError(
                f"the result of {self.protocol.name} is {self.protocol.figureless}: there is no "
                "number to show; print the result"
            )
