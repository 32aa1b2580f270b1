"""The privacy budget: integer nano-nats, charged before sampling, never refunded.

Integers because float ledgers drift: they refuse the last legitimate round of an equal split, and
let a charge of 1e-17 through for ever.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_dp.errors import RefusedError
from local_dp.loss import MAX_EPSILON, NANO, nano_epsilon


class Steps:
    """A whole number for each client, 0 at first, that changes by spans of clients: one step for
    each cohort, not each client."""

    def __init__(self) -> None:
        self._starts = [0]
        self._values = [0]

    def copy(self) -> "Steps":
        """Another one with the same values."""
        twin = Steps()
        twin._starts = self._starts.copy()
        twin._values = self._values.copy()
        return twin

    def add(self, start: int, stop: int, amount: int) -> None:
        """Adds `amount` to each client start..stop."""
        first = self._cut(start)
        for step in range(first, self._cut(stop)):
            self._values[step] += amount

    def _cut(self, client: int) -> int:
        """The position of the step that begins at `client`, made if it is not there."""
        position = bisect_right(self._starts, client) - 1
        if self._starts[position] == client:
            return position
        self._starts.insert(position + 1, client)
        self._values.insert(position + 1, self._values[position])
        return position + 1

    def within(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The steps of the clients start..stop: (first, one past the last, value) each. Reads
        without cutting."""
        for step in range(bisect_right(self._starts, start) - 1, bisect_left(self._starts, stop)):
            end = self._starts[step + 1] if step + 1 < len(self._starts) else stop
            yield max(start, self._starts[step]), min(stop, end), self._values[step]

    def most(self, start: int, stop: int) -> int:
        """The largest value among the clients start..stop."""
        return max(
            self._values[bisect_right(self._starts, start) - 1 : bisect_left(self._starts, stop)]
        )

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Every step that is not 0: (first, one past the last, value) each."""
        # the last step has no end, and is 0
        for start, stop, value in zip(self._starts, self._starts[1:], self._values, strict=False):
            if value:
                yield start, stop, value

    @property
    def maximum(self) -> int:
        """The largest value."""
        return max(self._values)


@dataclass(frozen=True)
class Charge:
    """`nano` nano-nats for each client start..stop; under a label in `label` it is paid once, and
    `what` is the label's meaning."""

    start: int
    stop: int
    nano: int
    label: str = ""
    what: bytes = b""


class Ledger:
    """The spending of every client of a block, per run and for life: charge() checks first and
    commits only if no client exceeds a limit.

    `limit` and `lifetime` are in nats; without `lifetime`, the run limit also holds for life. The
    charges of one round are added up before they are checked (KLNRS Definition 4.4): all of them
    are committed, or none.
    """

    def __init__(self, limit: float, lifetime: float | None = None) -> None:
        self.limit = nano_epsilon(limit)
        self.lifetime = self.limit if lifetime is None else nano_epsilon(lifetime)
        self._runs: dict[str, Steps] = {}
        self._life = Steps()
        # what each label stands for, and who has paid for it
        self._labels: dict[str, tuple[bytes, Steps]] = {}

    def check(
        self, run: str, charges: Sequence[Charge]
    ) -> tuple[Steps, dict[str, tuple[bytes, Steps]]]:
        """`_due`. Raises RefusedError("budget", or "equivocation" for a label with another meaning)
        unless it can be charged; charges nothing."""
        due, labels = self._due(charges)
        spending = self._runs.get(run, Steps())
        for start, stop, nano in due.spans():
            for scope, limit, steps in (
                ("run", self.limit, spending),
                ("lifetime", self.lifetime, self._life),
            ):
                most = steps.most(start, stop)
                if most + nano > limit:
                    raise RefusedError(
                        "budget",
                        f"epsilon {nano / NANO:g} on top of {most / NANO:g} spent exceeds the "
                        f"{scope} budget of {limit / NANO:g}",
                    )
        return due, labels

    def charge(self, run: str, charges: Sequence[Charge]) -> None:
        """Charges a round: all of it, or nothing and the error of `check`."""
        self._enter(run, *self.check(run, charges))

    def enter(self, run: str, charges: Sequence[Charge]) -> None:
        """Notes a round that was charged already, whatever the limits are now."""
        self._enter(run, *self._due(charges))

    def _enter(self, run: str, due: Steps, labels: dict[str, tuple[bytes, Steps]]) -> None:
        spending = self._runs.setdefault(run, Steps())
        self._labels.update(labels)
        for start, stop, nano in due.spans():
            spending.add(start, stop, nano)
            self._life.add(start, stop, nano)

    def _due(self, charges: Sequence[Charge]) -> tuple[Steps, dict[str, tuple[bytes, Steps]]]:
        """The charge of each client, and the labels after payment."""
        due = Steps()
        labels = dict[str, tuple[bytes, Steps]]()
        for charge in charges:
            _check(charge)
            if not charge.label:
                due.add(charge.start, charge.stop, charge.nano)
                continue
            what, payers = labels.get(charge.label) or self._labels.get(
                charge.label, (charge.what, Steps())
            )
            if what != charge.what:
                raise RefusedError(
                    "equivocation",
                    f"the label {charge.label!r} already stands for another question or "
                    "randomizer; choose another label",
                )
            payers = payers.copy()
            for start, stop, times in payers.within(charge.start, charge.stop):
                if not times:
                    due.add(start, stop, charge.nano)
            payers.add(charge.start, charge.stop, 1)
            labels[charge.label] = (what, payers)
        return due, labels

    @property
    def runs(self) -> dict[str, float]:
        """The most any one client has spent in each run, in nats."""
        return {run: steps.maximum / NANO for run, steps in self._runs.items()}

    @property
    def max_spent(self) -> float:
        """The most any one client has spent in its life, in nats."""
        return self._life.maximum / NANO


def _check(charge: Charge) -> None:
    if type(charge.nano) is not int or not 1 <= charge.nano <= MAX_EPSILON * NANO:
        raise RefusedError(
            "budget",
            f"a charge of {charge.nano!r} nano-nats is not a whole number from 1 to "
            f"{MAX_EPSILON * NANO:.0f}",
        )
    if not 0 <= charge.start < charge.stop:
        raise RefusedError(
            "budget",
            f"the clients {charge.start}..{charge.stop} are nobody; give 0 <= start < stop",
        )
