"""What a person sees of a run: how far it is while it goes on, one readable summary at the end."""

import json
import math
from types import TracebackType
from typing import Any, Self

from experiments.cli.screen import SCREEN
from experiments.text.layout import held, paragraph, screen_width, table
from experiments.text.numbers import number
from server.collecting import RoundProgress
from server.coordinator import Progress
from server.members import Attendance

SHOWN = 40  # estimates in a summary
NAMED = 3  # spans of clients that are missing
NOTED = 5  # rounds that leave a line
_BAR = 20
_PLACES = 12  # of a true error: what lies behind them is rounding of the sums


class RunProgress:
    """Who is missing, and then how far the round is; each of the first few rounds leaves a line when the next begins."""

    def __init__(self, beginning: str) -> None:
        self.beginning = beginning
        self._round: RoundProgress | None = None

    def __enter__(self) -> Self:
        SCREEN.working(self.beginning)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or isinstance(error, Exception):
            self._leave()

    def show(self, progress: Progress) -> None:
        """Shows how far the run is."""
        if isinstance(progress, Attendance):
            SCREEN.working(_who_is_missing(progress))
            return
        if self._round is not None and self._round.round != progress.round:
            self._leave()
        self._round = progress
        filled = _BAR * progress.answered // max(progress.asked, 1)
        left = f", {progress.seconds_left:.0f} s left" if math.isfinite(progress.seconds_left) else ""
        SCREEN.working(f"{'█' * filled}{'─' * (_BAR - filled)} {_line(progress)}{left}")

    def _leave(self) -> None:
        if self._round is not None and self._round.round <= NOTED:
            SCREEN.note(_line(self._round))


def _line(progress: RoundProgress) -> str:
    return f"round {progress.round}: {progress.answered:,}/{progress.asked:,} replied, epsilon {number(progress.epsilon)}"


def _who_is_missing(attendance: Attendance) -> str:
    spans = [str(start) if stop == start + 1 else f"{start}..{stop - 1}" for start, stop in attendance.missing]
    more = f" and {len(spans) - NAMED:,} more gaps" if len(spans) > NAMED else ""
    waiting = f"; waiting for {', '.join(spans[:NAMED])}{more}" if spans else ""
    return f"{attendance.present:,} of {attendance.clients:,} clients are ready{waiting}"


def show(data: dict[str, Any], as_json: bool) -> None:
    """A run's outcome, as JSON or for a person."""
    SCREEN.tell(json.dumps(data) if as_json else summary(data, screen_width()))


def summary(data: dict[str, Any], width: int) -> str:
    """A run's outcome for a person."""
    result = data["result"]
    stamp = "private: operating-system entropy" if data["private"] else f"{data['stamp']}, seed {data['seed']}"
    what = f"{data['protocol']} ({data['model']}, {data['interaction']}) in tier {data['tier']}, epsilon {number(data['epsilon'])}; {held(stamp)}"
    lines = (result["explanation"], _error(result), _who_answered(data), _cost(data))
    return "\n".join((paragraph(what, width), "", _result_table(result, width), "", *(paragraph(line, width) for line in lines if line)))


def _error(result: dict[str, Any]) -> str:
    """The true error, and the truth where it is one thing."""
    if result["true_error"] is None:
        return ""
    truth = result["truth"]
    beside = "" if truth is None or isinstance(truth, list) else f"; the truth is {_plain(truth)}"
    error = round(float(result["true_error"]), _PLACES)
    return held(f"true error {number(error)}") + beside


def _plain(value: Any) -> str:
    """A truth: a number, or a hypothesis by its parts."""
    return ", ".join(held(f"{key} = {part}") for key, part in value.items()) if isinstance(value, dict) else number(value)


def _who_answered(data: dict[str, Any]) -> str:
    clients = data["clients"]
    told = [held(f"{number(value)} {name.replace('_', ' ')}") for name, value in clients.items() if value or name in ("asked", "answered", "missing")]
    return f"clients: {', '.join(told)}"


def _cost(data: dict[str, Any]) -> str:
    bits = sorted({round["bits_per_client"] for round in data["rounds"]})
    each = " or ".join(map(str, bits)) + (" bit" if bits == [1] else " bits")
    names = dict.fromkeys(each["name"] for round in data["rounds"] for each in round["randomizers"])
    rounds = f"{len(data['rounds'])} round{'s' if len(data['rounds']) > 1 else ''}"
    parts = (
        *(f"{rounds} by {' and '.join(names)}", f"{each} from each client asked"),
        *(f"most epsilon spent by one client {number(data['max_epsilon_spent'])}", f"{number(data['wall_s'])} s"),
    )
    return ", ".join(map(held, parts))


def _result_table(result: dict[str, Any], width: int) -> str:
    if "hypothesis" in result:
        cells = {name: number(value) if isinstance(value, float) else str(value) for name, value in result["hypothesis"].items()}
        return table(list(cells), [list(cells.values())], width)
    rows = estimates(result)
    shown = [
        (label, number(estimate, error), number(error, error), held(f"{number(low, error)} .. {number(high, error)}"))
        for label, estimate, error, (low, high) in rows[:SHOWN]
    ]
    if len(rows) > SHOWN:
        shown.append((f"... {len(rows) - SHOWN} more", "", "", "--json has all"))
    return table(("", "estimate", "standard error", "95 % interval"), shown, width)


def estimates(result: dict[str, Any]) -> list[tuple[str, float, float, tuple[float, float]]]:
    """The result's estimates: (label, estimate, standard error, interval) each."""
    if not isinstance(result["estimate"], list):
        label = result.get("question") or result["column"]
        return [(label, result["estimate"], result["standard_error"], tuple(result["interval"]))]
    return list(zip(result["labels"], result["estimate"], result["standard_error"], map(tuple, result["interval"]), strict=True))
