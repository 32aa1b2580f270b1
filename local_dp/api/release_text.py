"""The numbers of a curator's release for a person: labels in full, and each number to the digits
that its error shows."""

from collections.abc import Sequence
from typing import Any

from local_dp.loss import Loss
from local_dp.protocols.local_protocol import PlainData
from local_dp.text.layout import grain, held, number

DRAWN = "of_rows"  # key of the true numbers of the rows, for a figure
_TRUE = {
    "median": "true median {}",
    "records_between": "{} records lie between it and this answer",
    "mean": "true mean {}",
    "error": "error {}",
    "triangles": "true number of triangles {}",
    "edges": "{} edges",
    "largest_error": "largest error of a count {}",
    "values_that_occur": "{} values occur in the table",
    "errors": "{} records have another label",
    "errors_of_the_best": "{} for the best answer",
    "records_labelled_1": "{} records have label 1",
    "records_of_it": "{} records of this value have label 1",
    "records_of_the_most_frequent": "{} of the most frequent value",
    "score": "true score {}",
    "trivial": "{} for a trivial rule",
}
MOVED = "Impossible estimates were moved to the nearest possible value; the option raw shows them."
_LIKE_IT = ("median", "mean", "score", "trivial")  # have the digits of the answer


def has_intervals(result: PlainData) -> bool:
    """True if each row has an interval."""
    return isinstance(result.get("value"), list) and bool(result["interval"])


def grains(result: PlainData, many: int) -> list[float | None]:
    """How fine the numbers of each row are shown. Without a known error counts of records have four
    digits, and points of a column all."""
    is_list = isinstance(result.get("value"), list)
    parts = [result.get(name) for name in ("standard_error", "interval", "value")]
    columns = [part if part and is_list else [part] * many for part in parts]
    otherwise = None if result.get("drawn", {}).get("axis") == "records" else 0.0
    fine = [grain(error, ends or (), value) for error, ends, value in zip(*columns, strict=True)]
    return [otherwise if each is None else each for each in fine]


def rows_of(
    result: PlainData, rows: Sequence[Sequence[Any]], fine: Sequence[float | None]
) -> list[list[str]]:
    """The rows as texts, with the interval of each: labels in full, a number to the digits that its
    error shows, and its share as finely."""
    labels, values = result.get("drawn", {}).get("labels", 1), result.get("value")
    ends = result["interval"] if has_intervals(result) else None
    texts = list[list[str]]()
    for place, (row, each) in enumerate(zip(rows, fine, strict=False)):
        whole = values[place] if isinstance(values, list) else None
        cells = [cell_of(cell, 0.0) for cell in row[:labels]]
        for cell in row[labels:]:
            is_share = each and whole and isinstance(cell, float)
            cells.append(cell_of(cell, each * abs(cell / whole) if is_share else each))
        texts.append([*cells, interval_of(ends[place], each)] if ends else cells)
    return texts


def within(result: PlainData, fine: Sequence[float | None]) -> str:
    """The interval of a release of one number."""
    ends = result.get("interval")
    if not ends or isinstance(ends[0], Sequence) or "value" not in result:
        return ""
    what = _TRUE.get(result["columns"][-1], "true value {}").format("of these records")
    return f"With probability 95 % the {what} lies in {interval_of(ends, fine[0])}."


def interval_of(ends: Sequence[float | None], fine: float | None) -> str:
    """An interval; None is an open end."""
    return held(" .. ".join("open" if end is None else number(end, fine) for end in ends))


def truth_of(truth: PlainData, fine: float | None = None) -> str:
    """The truth and the errors of a simulation, in one sentence."""
    parts = [
        _TRUE.get(name, f"{name.replace('_', ' ')} {{}}").format(
            cell_of(value, fine if name in _LIKE_IT else None)
        )
        for name, value in truth.items()
        if name != DRAWN
    ]
    sentence = "; ".join(map(held, parts))
    return f"{sentence[:1].upper()}{sentence[1:]}."


def cell_of(value: Any, fine: float | None = None) -> str:
    return number(value, fine) if isinstance(value, int | float) or value is None else str(value)


def loss_data(loss: Loss) -> dict[str, float]:
    """A loss as plain data."""
    return {"epsilon": loss.epsilon, "delta": loss.delta}


def loss_text(data: dict[str, Any], otherwise: str = "") -> str:
    """A loss in words; `otherwise` stands in the place of a delta."""
    delta = f" and delta {number(data['delta'], 0.0)}" if data["delta"] else otherwise
    return f"epsilon {number(data['epsilon'], 0.0)}{delta}"
