"""The page's view of a run, as plain data: public numbers, never a record; the truth only at the
end of a simulation."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from local_dp.cube import places_of, walsh_hadamard
from local_dp.errors import LocalDPError
from local_dp.foreign import shown
from local_dp.interaction import Nonadaptive
from local_dp.masked.population import NULL_SHARE
from local_dp.masked.protocols import MaskedParityProtocol
from local_dp.masked.queries import (
    MaskedBent,
    MaskedBit,
    MaskedFunction,
    MaskedIndex,
    MaskedList,
    MaskedParity,
)
from local_dp.oracles.local.asked import LocalQuery
from local_dp.protocols.local_protocol import MODELS, describe_estimate, possible_result
from local_dp.queries.query import Query
from local_dp.randomizers.frequencies.signed import SignedOracle
from local_dp.server.pages import finite, longer
from local_dp.server.progress import Attendance, Interim, Progress, RoundProgress
from local_dp.simulation.outcome import STAMP, Shown, estimates, stamp_of
from local_dp.simulation.settings import Settings
from local_dp.tallies import Estimate, Steadied, Tally, steadied
from local_dp.text.layout import grain, marked, number, typeset

# label, coefficient, standard error, its interval
Bar: TypeAlias = tuple[str, float, float, float, float]


def coefficients(ask: LocalQuery, tally: Tally) -> Iterator[Bar]:
    """The Fourier coefficients of the label that one ask of masked parity estimates, each on the
    scale of the label's sign; none of another ask."""
    query, randomizer = ask.query, ask.randomizer
    if isinstance(randomizer, SignedOracle) and isinstance(query, MaskedIndex | MaskedParity):
        labels = (
            [f"bit {place} of r" for place in range(query.d)]
            if isinstance(query, MaskedIndex)
            else [f"parity {query.r:#x}"]
        )
        yield from _labelled(labels, randomizer.estimate(tally, NULL_SHARE))
    elif isinstance(randomizer, SignedOracle) and isinstance(query, MaskedList | MaskedBent):
        estimate = randomizer.estimate(tally)
        # or else it is a bent function that is multiplied by each parity
        if isinstance(query, MaskedList) or query.told == query.d:
            yield from _labelled(
                [f"parity {vector:#x}" for vector in query.vectors()],
                _spectrum(query.listed, randomizer, estimate),
            )
        positions = range(query.d) if isinstance(query, MaskedBent) else places_of(query.asked)
        yield from _labelled([f"bit {place} of r" for place in positions], estimate, query.listed)
    elif isinstance(query, MaskedBit | MaskedFunction):
        name = f"bit {query.j} of r" if isinstance(query, MaskedBit) else "parity of r"
        estimate = randomizer.estimate(tally).on_scale(-1.0, 1.0)  # of the share of +1
        yield from _labelled([name], estimate, np.size(estimate.value) - 1)


def _labelled(labels: list[str], estimate: Estimate, first: int = 0) -> Iterator[Bar]:
    columns = estimate.value, estimate.standard_error, *estimate.interval()
    parts = (np.atleast_1d(column)[first:].tolist() for column in columns)
    yield from zip(labels, *parts, strict=True)


def _spectrum(size: int, randomizer: SignedOracle, estimate: Estimate) -> Estimate:
    """One coefficient for each parity on the list: the transform of the means by symbol. A report
    counts towards one parity alone, hence the larger error."""
    n, means, errors = estimate.n, estimate.value[:size], estimate.standard_error[:size]
    mean = walsh_hadamard(means)
    square = size * float((n * errors**2 + means**2).mean())
    reach = min(size, randomizer.cells) * randomizer.gain
    steady = steadied(mean, np.full(size, square), (-reach, reach), n)
    return Steadied(mean, np.full(size, errors.max() * size**0.5), n, steady=steady)


ROWS = 32  # estimates shown
ROUNDS = 30  # rounds shown, the last ones
NAME = 60  # letters of a query's name
GAPS = 5  # spans of clients that are missing
SHARE = 10  # an interim estimate may take one part in so many of the time
PAUSE = 0.2  # seconds between two of them, at least

State: TypeAlias = dict[str, Any]


@dataclass
class Scene:
    """The run so far: `show` takes its progress, `finish` or `fail` its end. `state` is the page's
    data, a new object after each change."""

    settings: Settings
    state: State = field(init=False)
    _next: float = -math.inf  # no interim estimate before
    _bars: dict[int, list[Bar]] = field(default_factory=dict)  # of each round

    def __post_init__(self) -> None:
        settings, protocol = self.settings, self.settings.protocol
        model = protocol.model()
        self.state = {
            "protocol": protocol.name,
            "what": list(marked(" ".join((protocol.__doc__ or "").split("\n\n")[0].split()))),
            "facts": (
                f"{MODELS[model]} ({model}), tier {settings.tier}, {settings.population.size:,} "
                f"clients, {typeset(f'epsilon {number(settings.epsilon)}')}"
            ),
            "stamp": "asked to be private"
            if settings.randomness.private
            else f"{STAMP}, seed {settings.randomness.seed}",
            "budget": settings.epsilon,
            "phase": "starting",
            "status": "Waiting for the clients.",
            "present": 0,
            "clients": settings.population.size,
            "rounds": [],
            "spent": 0.0,
            "heading": "Estimate so far",
            "rows": [],
            "more": 0,
            "coefficients": False,
            "history": [],
            "result": [],
        }

    def show(self, progress: Progress) -> None:
        if isinstance(progress, Attendance):
            missing = progress.gaps(GAPS, " to ")
            status = f"Clients are joining{f'; waiting for {missing}' if missing else ''}."
            self._change(phase="joining", present=progress.present, status=status)
        else:
            self._round(progress)

    def finish(self, data: dict[str, Any]) -> None:
        """The run is over; `data` is the output of `--json`, without the truth of a private run."""
        result = data["result"]
        counts = [
            f"{number(value)} {name.replace('_', ' ')}"
            for name, value in data["clients"].items()
            if value
        ]
        error = (
            "" if result["true_error"] is None else f"True error: {number(result['true_error'])}."
        )
        faults = data.get("degraded", [])
        lines = [
            f"DEGRADED: {'; '.join(faults)}." if faults else "",
            result["explanation"],
            error,
            f"Reports: {', '.join(counts)}.",
            f"Seconds: {number(data['wall_s'])}.",
        ]
        if "estimate" in result:
            self._rows(estimates(result), result["truth"])
        # of the last round, on the way to another result
        heading = "Result" if "estimate" in result else "What was estimated"
        self._change(
            phase="over", stamp=stamp_of(data), spent=data["max_epsilon_spent"], heading=heading
        )
        self._change(
            result=[shown(line) for line in lines if line],
            status=f"The run is over{', and its result is degraded' if faults else ''}.",
        )

    def fail(self, error: BaseException) -> None:
        self._change(
            phase="failed",
            status=f"The run has ended: {error}."
            if isinstance(error, LocalDPError)
            else "The run was interrupted.",
        )

    def _round(self, progress: RoundProgress) -> None:
        names = ("round", "answered", "asked", "refused", "lost", "epsilon")
        now = {name: getattr(progress, name) for name in names}
        rounds: list[State] = self.state["rounds"]
        is_new = not rounds or rounds[-1]["round"] != progress.round
        if is_new:
            self._next = -math.inf
            self._change(history=[])
        width = None if is_new else rounds[-1]["width"]
        earlier = rounds if is_new else rounds[:-1]
        self._change(rounds=[*earlier, {**now, "width": width}][-ROUNDS:])
        self._change(
            phase="asking",
            spent=max(progress.spent, self.state["spent"]),
            status=f"Round {progress.round} is being answered.",
        )
        began = time.monotonic()
        done = progress.answered == progress.asked
        if progress.interim is not None and progress.answered and (done or began >= self._next):
            self._estimate(progress.interim, progress.answered)
            self._next = time.monotonic() + max(PAUSE, SHARE * (time.monotonic() - began))

    def _estimate(self, interim: Interim, count: int) -> None:
        """Updates the estimate, unless the reports are too few to decode."""
        try:
            with np.errstate(all="ignore"):
                rows = self._read(interim)
        except (LocalDPError, ArithmeticError, ValueError):
            return
        widths = [
            (row["high"] - row["low"]) / 2
            for row in rows
            if row["low"] is not None and row["high"] is not None
        ]
        if widths:
            history = [point for point in self.state["history"] if point[0] < count]
            self._change(history=longer(history, count, max(widths), rows))
            *earlier, now = self.state["rounds"]
            self._change(rounds=[*earlier, {**now, "width": number(max(widths))}])

    def _read(self, interim: Interim) -> list[State]:
        """Shows the estimates of a round; returns this round's rows."""
        protocol, tallies = self.settings.protocol, interim.tallies()
        pairs = [pair for pair in zip(interim.queries, tallies, strict=True) if pair[1].n]
        if isinstance(protocol, MaskedParityProtocol):
            bars = [bar for pair in pairs for bar in coefficients(*pair)]
            if bars:
                self._bars[self.state["rounds"][-1]["round"]] = bars
                self._draw_bars(_by_round(self._bars))
                return [_bar_row(*bar) for bar in bars]
        algorithm = self.settings.algorithm
        if isinstance(algorithm, Nonadaptive):
            result = algorithm.decode(tallies)
            about = protocol.describe(
                result if self.settings.raw else possible_result(protocol, result)
            )
            if "estimate" in about:
                return self._rows(estimates(about), None)
        rows: list[Shown] = []
        for place, (query, tally) in enumerate(pairs[:ROWS], start=1):
            estimate = query.randomizer.estimate(tally)
            about = {"column": f"{place}. {_name(query.query)}", **describe_estimate(estimate)}
            size = np.size(estimate.value)
            labels = [f"{about['column']} [{cell}]" for cell in range(size)]
            rows += estimates({**about, "labels": labels})[: ROWS + 1]
        return self._rows(rows, None)

    def _rows(self, rows: list[Shown], truth: Any) -> list[State]:
        truths = truth if isinstance(truth, list) else [truth] * len(rows)
        states = [
            _row(*row, true_value) for row, true_value in zip(rows[:ROWS], truths, strict=False)
        ]
        self._change(rows=states, more=max(0, len(rows) - ROWS), coefficients=False)
        return states

    def _draw_bars(self, bars: list[Bar]) -> None:
        """The largest coefficients, in the order of their questions."""
        largest = sorted(range(len(bars)), key=lambda place: -abs(bars[place][1]))[:ROWS]
        selection = [bars[place] for place in sorted(largest)]
        self._change(
            rows=[_bar_row(*bar) for bar in selection],
            more=len(bars) - len(selection),
            coefficients=True,
        )

    def _change(self, **parts: Any) -> None:
        """A new state: one that was handed out does not change."""
        self.state = {**self.state, **parts}


def _by_round(bars: dict[int, list[Bar]]) -> list[Bar]:
    """The bars of all rounds; a repeated label gets the number of its round."""
    by_name: dict[str, Bar] = {}
    for number_of_round, part in bars.items():
        for bar in part:
            name = f"{bar[0]}, round {number_of_round}" if bar[0] in by_name else bar[0]
            by_name[name] = (name, *bar[1:])
    return list(by_name.values())


def _name(query: Query) -> str:
    """A query's name and short parameters, which are public."""
    words = (
        str(value) for value in query.params().values() if isinstance(value, int | float | str)
    )
    return f"{query.name} {', '.join(word for word in words if word)}"[:NAME].strip()


def _row(
    label: str,
    value: float | None,
    error: float | None,
    interval: tuple[float | None, float | None],
    truth: Any,
) -> State:
    low, high = interval
    fine = grain(error, interval, value)
    ends = ("open" if end is None else number(end, fine) for end in interval)
    text = typeset(f"{number(value, fine)} ({' to '.join(ends)})")
    return {
        "label": shown(label),
        "value": finite(value),
        "low": finite(low),
        "high": finite(high),
        "text": text,
        "truth": finite(truth),
    }


def _bar_row(label: str, value: float, error: float, low: float, high: float) -> State:
    return _row(label, value, error, (low, high), None)
