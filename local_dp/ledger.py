"""The privacy budget: integer nano-nats, charged before sampling, never refunded.

Integers because float ledgers drift: they refuse the last legitimate round of an equal split, and let a charge of 1e-17 through for ever.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from local_dp.errors import RefusedError
from local_dp.loss import MAX_EPSILON, NANO, nano_epsilon


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
