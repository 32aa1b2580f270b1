"""One figure of a benchmark: a speed beside a reference of the same run, judged by their ratio."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from local_dp.experiments.text.layout import table
from local_dp.experiments.text.screen import SCREEN

REPEATS = 3


@dataclass(frozen=True)
class Speed:
    """A measured value and its reference. `asked` bounds their ratio: from above for times and sizes, from below for rates and gains (`more`)."""

    what: str
    value: float
    unit: str
    reference: float
    asked: float
    more: bool = False

    @property
    def ratio(self) -> float:
        """The value in units of the reference."""
        return self.value / self.reference

    @property
    def meets(self) -> bool:
        """Whether the ratio is within its bound."""
        return self.ratio >= self.asked if self.more else self.ratio <= self.asked


@dataclass(frozen=True)
class Case:
    """Work and bare work beside it. With `amount`, both are rates: millions of these a second; else seconds."""

    what: str
    work: Callable[[], object]
    bare: Callable[[], object]
    asked: float
    amount: int = 0

    def measured(self) -> Speed:
        """The best of a few repeats of each."""
        SCREEN.working(f"measuring {self.what}")
        self.work()  # compiles, and fills caches
        ours, bare = best_of(self.work), best_of(self.bare)
        if not self.amount:
            return Speed(self.what, ours, "s", bare, self.asked)
        return Speed(self.what, self.amount / ours / 1e6, "million/s", self.amount / bare / 1e6, self.asked, more=True)


def once(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def best_of(work: Callable[[], object]) -> float:
    """The shortest of a few calls, in seconds: other programs disturb the others."""
    return min(once(work) for _ in range(REPEATS))


def all_speeds(processes: int) -> list[Speed]:
    """Every speed but those of stores and peers. Runs come first: a child's peak memory is no less than its parent's at its start."""
    from local_dp.experiments.bench.runs import bus_speeds, process_speeds, run_speeds
    from local_dp.experiments.bench.tables import all_cluster_speeds, table_speeds

    runs = [*run_speeds(), *table_speeds(), *all_cluster_speeds()]
    from local_dp.experiments.bench.curator import curator_cases
    from local_dp.experiments.bench.randomizers import randomizer_speeds

    speeds = [*randomizer_speeds(), *process_speeds(processes), *bus_speeds()]
    return [*runs, *speeds, *(case.measured() for case in curator_cases())]


def as_rows(speeds: Iterable[Speed]) -> list[dict[str, Any]]:
    """The figures as plain data."""
    return [{**asdict(speed), "ratio": speed.ratio, "meets": speed.meets} for speed in speeds]


def describe_speeds(speeds: Iterable[Speed], width: int) -> str:
    """The figures as a table."""
    rows = []
    for speed in speeds:
        value, reference, ratio, asked = (f"{each:.3g}" for each in (speed.value, speed.reference, speed.ratio, speed.asked))
        bound, verdict = f"at {'least' if speed.more else 'most'} {asked}", "meets" if speed.meets else "misses"
        rows.append((speed.what, value, speed.unit, reference, ratio, bound, verdict))
    return table(("what", "value", "unit", "reference", "ratio", "asked", "verdict"), rows, width)
