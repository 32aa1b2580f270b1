"""When the server calls the roll again, and for whom: sans I/O, a pure function of the run's name,
the time and the missing clients."""

from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise

from local_dp.wire import MAX_MISSING, Roll, Span

# seconds without a newcomer until the roll is called: at first, and at most, as each pause is twice
# the last one
SOON, SELDOM = 2.0, 16.0
# the 4th, 16th, 64th .. call names nobody: members of older versions answer no other
EVERYBODY_AGAIN = 4
# the share by which a pause is longer or shorter, so that runs on one broker do not call together
SPREAD = 0.25


def pause(run: str, calls: int) -> float:
    """Seconds without a newcomer until the next call, after `calls` of them."""
    word = int.from_bytes(blake2b(f"{run} roll {calls}".encode(), digest_size=8).digest())
    return float(min(SOON * 2.0 ** min(calls, 60), SELDOM) * (1 + SPREAD * (word / 2**63 - 1)))


def for_everybody(call: int) -> bool:
    """True if this call, counted from 1, names nobody, so that all members answer."""
    while call > 1 and call % EVERYBODY_AGAIN == 0:
        call //= EVERYBODY_AGAIN
        if call == 1:
            return True
    return False


def gaps(spans: Iterable[Span], clients: int) -> list[Span]:
    """The clients 0..clients outside of ascending spans that are apart."""
    ends = [(0, 0), *spans, (clients, clients)]
    return [(before[1], after[0]) for before, after in pairwise(ends) if before[1] < after[0]]


class Rolls:
    """The calls of one run. A newcomer postpones the next call; only what is missing is called."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.calls = 0
        self.since = 0.0  # a member said hello for the first time, or the wait began
        self._pause = pause(run, 0)

    def wake(self) -> float:
        """When the next call is due, if somebody is missing."""
        return self.since + self._pause

    def due(self, missing: list[Span], now: float) -> list[Roll]:
        """The messages of a call, if one is due. They name the missing clients."""
        if not missing or self.wake() > now:
            return []
        self.calls, self.since = self.calls + 1, now
        self._pause = pause(self.run, self.calls)
        if for_everybody(self.calls):
            return [Roll(run=self.run)]
        return [
            Roll(run=self.run, missing=tuple(missing[at : at + MAX_MISSING]))
            for at in range(0, len(missing), MAX_MISSING)
        ]
