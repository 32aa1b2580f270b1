"""Checks that many claims make: every case of a statement is true, figures lie in a band, successes are as frequent as stated."""

import math
from collections.abc import Iterable, Mapping

from local_dp.experiments.lab.claim import Check
from local_dp.experiments.lab.intervals import wilson
from local_dp.tallies import Z95

SURE = 3.9  # standard errors: a true statement fails once in 10,000


def every(statement: str, cases: Iterable[tuple[bool, str]], more: str = "", *, also: bool = True, chance: float | None = None) -> Check:
    """Whether each case (whether it is true, its figures) is true, and there is one. The evidence joins the figures and `more`; `also` must be true too."""
    cases = list(cases)
    return Check(
        statement, bool(cases) and also and all(true for true, _ in cases), "; ".join([*(text for _, text in cases if text), *filter(None, [more])]), chance
    )


def within(
    statement: str, figures: Mapping[str, float], low: float = -math.inf, high: float = math.inf, *, spec: str = ".3g", more: str = "", also: bool = True
) -> Check:
    """Whether each named figure lies from `low` to `high`, and there is one. The evidence lists them in the format `spec`."""
    return every(statement, ((low <= figure <= high, f"{name}: {figure:{spec}}") for name, figure in figures.items()), more, also=also)


def at_least(statement: str, rates: Mapping[str, tuple[int, int]], least: float, *, z: float = SURE, more: str = "", also: bool = True) -> Check:
    """Whether each named rate (successes, trials) may be `least` or more: the upper end of its Wilson interval at z standard errors is not below."""
    cases = ((wilson(*rate, z)[1] >= least, f"{name}: {in_words(*rate)}") for name, rate in rates.items())
    return every(statement, cases, more, also=also, chance=math.erfc(z / math.sqrt(2)) / 2 * len(rates))


def at_most(statement: str, rates: Mapping[str, tuple[int, int]], most: float, *, z: float = SURE, more: str = "", also: bool = True) -> Check:
    """Whether each named rate (successes, trials) may be `most` or less: the lower end of its Wilson interval at z standard errors is not above."""
    cases = ((wilson(*rate, z)[0] <= most, f"{name}: {in_words(*rate)}") for name, rate in rates.items())
    return every(statement, cases, more, also=also, chance=math.erfc(z / math.sqrt(2)) / 2 * len(rates))


def in_words(successes: int, trials: int) -> str:
    """A success rate with its 95 % interval, such as "12 of 300 [0.023, 0.069]"."""
    low, high = wilson(successes, trials, Z95)
    return f"{successes} of {trials} [{low:.3f}, {high:.3f}]"
