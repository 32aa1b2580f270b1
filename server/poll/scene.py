"""The presenter's view of a poll as plain data: estimates, intervals, counts, and what one more
answer changes; never who answered."""

import math
from typing import Any, TypeAlias

import numpy as np

from local_dp.oracles.local.asked import LocalQuery
from local_dp.protocols.local_protocol import possible_result
from local_dp.randomizers.finite import FiniteChannel
from local_dp.server.pages import finite, longer
from local_dp.server.poll.questions import Question
from local_dp.server.round import Part
from local_dp.tallies import Z95, Estimate, Tally
from local_dp.text.layout import number

ACCURACY = 0.05  # half-width to reach, as a share, or of the range of a number
WALL = 2000  # reports shown
STEPS = 32  # reports tried as the next one
State: TypeAlias = dict[str, Any]


def rows_of(question: Question, estimate: Estimate | None) -> list[State]:
    """The estimates of a question, moved into what is possible, with their 95 % intervals, a row
    each; without numbers while nobody has answered."""
    labels = question.labels or (("yes",) if question.kind == "yes-no" else ("mean",))
    if estimate is None:
        return [
            {"label": label, "value": None, "low": None, "high": None, "text": ""}
            for label in labels
        ]
    estimate = possible_result(question.protocol, estimate)
    low, high = estimate.interval()
    parts = (
        np.atleast_1d(part).tolist()
        for part in (estimate.value, low, high, estimate.standard_error)
    )
    return [_row(label, *each) for label, *each in zip(labels, *parts, strict=True)]


def _row(label: str, value: float, low: float, high: float, error: float) -> State:
    text = f"{number(value, error)} ({number(low, error)} to {number(high, error)})"
    return {
        "label": label,
        "value": finite(value),
        "low": finite(low),
        "high": finite(high),
        "text": text,
    }


class Standing:
    """One question so far; `look` gives its state."""

    def __init__(self, question: Question, people: int) -> None:
        self.question = question
        self._decode = question.algorithm(people).decode
        self._history: list[list[float | None]] = []

    def estimate(self, tally: Tally) -> Estimate | None:
        """None while nobody has answered."""
        if not tally.n:
            return None
        estimate: Estimate = self._decode((tally,))
        return estimate

    def look(self, part: Part) -> State:
        """The state of the question."""
        tally = part.tally()
        estimate, scale = self.estimate(tally), self._scale
        rows = rows_of(self.question, estimate)
        state = {
            **self.question.to_dict(),
            "answered": tally.n,
            "rows": rows,
            "width": None,
            "more": None,
            "step": None,
            "history": self._history,
        }
        if estimate is None:
            return state
        low, high = estimate.interval()
        width = float(np.max(high - low)) / 2
        if not self._history or self._history[-1][0] != tally.n:
            self._history = longer(self._history, tally.n, width, rows)
        error = float(np.max(estimate.standard_error)) / scale
        target = math.ceil(tally.n * (Z95 * error / ACCURACY) ** 2)
        return {
            **state,
            "history": self._history,
            "width": width,
            "more": max(0, target - tally.n),
            "step": self._step(part.query, tally, estimate),
        }

    @property
    def _scale(self) -> float:
        if self.question.high is None or self.question.low is None:
            return 1.0
        return self.question.high - self.question.low

    def _step(self, query: LocalQuery, tally: Tally, now: Estimate) -> float | None:
        """How far one more report moves an estimate at the most, over some reports."""
        randomizer = query.randomizer
        if not isinstance(randomizer, FiniteChannel):
            return None
        reports = np.arange(min(STEPS, randomizer.alphabet), dtype=randomizer.report_dtype)
        more = (randomizer.tally(reports[at : at + 1], np.zeros(1, np.uint16)) for at in reports)
        moves = [self._decode((tally + one,)).value - now.value for one in more]
        return float(np.max(np.abs(moves)))


def reports_of(part: Part) -> State:
    """What the server has stored: the reports in the order of places, each as its bits."""
    bits = part.query.randomizer.bits
    places = np.flatnonzero(part.answered)[:WALL]
    reports = part.decoded(slice(None))[places].tolist()
    return {
        "answered": part.answers,
        "bits": bits,
        "places": places.tolist(),
        "reports": [format(report, f"0{bits}b") for report in reports],
    }
