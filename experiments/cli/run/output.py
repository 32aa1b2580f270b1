"""The progress of a run on the screen, and its summary at the end."""

import math
from types import TracebackType
from typing import Self

from local_dp.experiments.text.layout import number
from local_dp.experiments.text.screen import SCREEN
from local_dp.server.progress import Attendance, Progress, RoundProgress

NAMED = 3  # spans of missing clients
NOTED = 5  # rounds that leave a line
_BAR = 20


class RunProgress:
    """Shows missing clients, then the progress of the round. Each of the first few rounds leaves a line."""

    def __init__(self) -> None:
        self._round: RoundProgress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or isinstance(error, Exception):
            self._leave()

    def show(self, progress: Progress) -> None:
        if isinstance(progress, Attendance):
            SCREEN.working(_missing(progress))
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


def _missing(attendance: Attendance) -> str:
    spans = [str(start) if stop == start + 1 else f"{start}..{stop - 1}" for start, stop in attendance.missing]
    more = f" and {len(spans) - NAMED:,} more gaps" if len(spans) > NAMED else ""
    waiting = f"; waiting for {', '.join(spans[:NAMED])}{more}" if spans else ""
    return f"{attendance.present:,} of {attendance.clients:,} clients are ready{waiting}"
