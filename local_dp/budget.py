"""The privacy budget: integer nano-nats, charged before sampling, never refunded.

Integers because float ledgers drift: they refuse the last legitimate round of an equal split, and let a charge of 1e-17 through for ever.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from local_dp.errors import InputError, RefusedError

NANO = 1_000_000_000
MAX_EPSILON = 24.0  # beyond it a report is the value itself for every practical purpose


def nano_epsilon(epsilon: float) -> int:
    """epsilon (nats) as whole nano-nats, rounded down (towards privacy). Raises InputError unless 1e-9 <= epsilon <= 24."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise InputError(f"epsilon is {epsilon!r}; give a number of nats in (0, {MAX_EPSILON:g}]")
    if not 1 / NANO <= epsilon <= MAX_EPSILON:  # also false for NaN
        raise InputError(f"epsilon is {epsilon!r}; it must lie between 1e-9 and {MAX_EPSILON:g} nats")
    return math.floor(epsilon * NANO + 1e-3)  # 1e-12 nats: absorbs the float error of products such as 0.7 * 1e9


def split_epsilon(epsilon: float, parts: int) -> float:
    """The largest epsilon that can be charged `parts` times within `epsilon`."""
    if parts < 1:
        raise InputError(f"cannot split a budget into {parts} parts; give 1 or more")
    return nano_epsilon(epsilon) // parts / NANO


class _Spending:
    """Nano-nats spent by each client: a step function of the client index, so its size is the number of cohorts, not of clients."""

    def __init__(self) -> None:
        self._starts = [0]
        self._spent = [0]

    def _cut(self, at: int) -> int:
        """The position of the step that begins at client `at`, made if it is not there."""
        position = bisect_right(self._starts, at) - 1
        if self._starts[position] == at:
            return position
        self._starts.insert(position + 1, at)
        self._spent.insert(position + 1, self._spent[position])
        return position + 1

    def most(self, start: int, stop: int) -> int:
        """Reads without cutting: a refused charge leaves no trace."""
        return max(self._spent[bisect_right(self._starts, start) - 1 : bisect_left(self._starts, stop)])

    def add(self, start: int, stop: int, nano: int) -> None:
        first = self._cut(start)
        for step in range(first, self._cut(stop)):
            self._spent[step] += nano

    @property
    def maximum(self) -> int:
        return max(self._spent)


class Ledger:
    """What every client of a block has spent, per run and for life: charge() checks first and commits only if nobody exceeds a limit.

    `limit` and `lifetime` are in nats; without `lifetime`, the run limit also holds for life.
    """

    def __init__(self, limit: float, lifetime: float | None = None) -> None:
        self.limit = nano_epsilon(limit)
        self.lifetime = self.limit if lifetime is None else nano_epsilon(lifetime)
        self._runs: dict[str, _Spending] = {}
        self._life = _Spending()

    def charge(self, run: str, start: int, stop: int, nano: int) -> None:
        """Charges `nano` to each client start..stop, or raises RefusedError("budget") and charges nobody."""
        self.charge_all(run, ((start, stop, nano),))

    def charge_all(self, run: str, charges: Sequence[tuple[int, int, int]]) -> None:
        """Charges (start, stop, nano) for each of a round's disjoint cohorts: all of them, or none and RefusedError("budget")."""
        spending = self._runs.get(run, _Spending())
        for start, stop, nano in charges:
            self._check(spending, start, stop, nano)
        self._runs[run] = spending
        for start, stop, nano in charges:
            spending.add(start, stop, nano)
            self._life.add(start, stop, nano)

    def _check(self, spending: _Spending, start: int, stop: int, nano: int) -> None:
        if type(nano) is not int or not 1 <= nano <= MAX_EPSILON * NANO:
            raise RefusedError("budget", f"a charge of {nano!r} nano-nats is not a whole number from 1 to {MAX_EPSILON * NANO:.0f}")
        if not 0 <= start < stop:
            raise RefusedError("budget", f"the clients {start}..{stop} are nobody; give 0 <= start < stop")
        for scope, limit, spent in (("run", self.limit, spending), ("lifetime", self.lifetime, self._life)):
            most = spent.most(start, stop)
            if most + nano > limit:
                raise RefusedError(
                    "budget",
                    f"epsilon {nano / NANO:g} on top of {most / NANO:g} spent exceeds the {scope} budget of {limit / NANO:g}",
                )

    @property
    def max_spent(self) -> float:
        """The most any one client has spent in its life, in nats."""
        return self._life.maximum / NANO
