"""One figure of a benchmark, and how its time is taken."""

import time
from collections.abc import Callable
from dataclasses import dataclass

REPEATS = 3


@dataclass(frozen=True)
class Speed:
    """One figure: what was measured, its value, the reference beside it, and what is asked of it."""

    what: str
    value: float
    unit: str
    reference: float | None
    asked: float
    meets: bool


def once(work: Callable[[], object]) -> float:
    """Seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def best_of(work: Callable[[], object]) -> float:
    """The shortest of a few repeats, in seconds: the others were disturbed."""
    return min(once(work) for _ in range(REPEATS))
