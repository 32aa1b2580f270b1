"""Intervals that experiments state of anything but a protocol's estimate or a success rate: repeated with laws like theirs, whose truth is known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.experiments.lab.coverage.repetition import BAND, FAR, resolves
from local_dp.experiments.lab.intervals import wilson


@dataclass(frozen=True)
class Stated:
    """An interval made of so many trials: `make(generator)` makes it from fresh ones, or raises InputError; `truth` is what it is about."""

    name: str
    what: str
    trials: int
    truth: float
    make: Callable[[np.random.Generator], tuple[float, float]]
    dear: int = 1  # so many times fewer repetitions
    exact: float | None = None  # its coverage, where it is known


def measure_stated(case: Stated, repetitions: int, generator: np.random.Generator) -> dict[str, Any]:
    """How often the interval held the truth, lay below it, lay above it, as plain data.

    `inside`: the coverage, the exact one where it is known, is in the band; with few repetitions, the measured one up to five standard errors. Trials that
    show no interval are left out; if they are most, it is not inside.
    """
    runs = max(10, repetitions // case.dear)
    made = [found for found in (_made(case, generator) for _ in range(runs)) if found is not None]
    stated = max(1, len(made))
    below, above = sum(high < case.truth for _, high in made), sum(low > case.truth for low, _ in made)
    held = len(made) - below - above
    low, high = wilson(held, stated, FAR)
    near = low <= (BAND[1] if case.exact is None else case.exact) and (BAND[0] if case.exact is None else case.exact) <= high
    rate = held / stated if case.exact is None else case.exact
    return {
        "name": case.name, "what": case.what, "trials": case.trials, "repetitions": runs, "refused": runs - len(made), "coverage": held / stated,
        "interval": wilson(held, stated), "missed_below": below / stated, "missed_above": above / stated, "exact": case.exact,
        "inside": near and 2 * len(made) >= runs and (BAND[0] <= rate <= BAND[1] or (case.exact is None and not resolves(stated))),
    }  # fmt: skip


def _made(case: Stated, generator: np.random.Generator) -> tuple[float, float] | None:
    """The interval; None where there is none, because the trials do not show one."""
    try:
        return case.make(generator)
    except InputError:
        return None


def resampled(pool: Sequence[float] | Floats, trials: int, generator: np.random.Generator) -> Floats:
    """A fresh sample from the law that a pool of measurements makes, whose mean is the pool's."""
    picked: Floats = np.asarray(pool)[generator.integers(len(pool), size=trials)]
    return picked
