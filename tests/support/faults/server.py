"""A server that restarts: it keeps, before it acts, whatever reached it, and hears all of it again
when it comes back."""

from contextlib import suppress
from typing import Any

from local_dp.errors import InputError, QuorumError, RefusedError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import Session, repeat_of
from local_dp.queries.examples import PathStep
from local_dp.queries.tables import Question
from local_dp.randomizers.repeated.memoised import OneOfRounds
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.coordinator import Coordinator
from local_dp.server.phases import Collecting, Send
from local_dp.server.quorum import Terms
from local_dp.server.round import Round
from local_dp.wire import AnyMessage
from tests.support.faults.client import RUN

CLIENTS = 4
SESSION = "path"
TERMS = Terms(deadline=4.0, quorum=0.25)


def _query(epsilon: float, start: int = 0, stop: int = CLIENTS, once: str = "") -> LocalQuery:
    repeat = repeat_of(once, BinaryRR(epsilon))
    return LocalQuery(Question("yes == 1"), BinaryRR(epsilon), Cohort(start, stop), repeat)


def _step(path: str) -> LocalQuery:
    """A round of a session: each client has a step to tell on every path of two steps, and may tell
    one."""
    return LocalQuery(PathStep(path), OneOfRounds(0.4), Cohort(0, CLIENTS), Session(SESSION))


ROUNDS = (
    (_query(0.3),),
    (_query(0.3),),
    (_query(0.2, 0, 2), _query(0.4, 2, 4)),
    (_query(0.1), _query(0.2, 1, 3)),
    (_query(0.25, once="weekly"),),
    (_query(0.25, once="weekly"),),
    (_query(1.0),),
    *((_step(path),) for path in ("00", "01", "10")),
    (_step("11"), _query(0.2)),
)


class Server:
    """A coordinator and its messages so far; `closed` holds what it said of each round when it
    ended it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[Any, ...]]] = []
        self.closed: dict[int, tuple[str, int]] = {}
        self.rounds: dict[int, Round] = {}
        self.now = 0.0
        self._new()

    def _new(self) -> None:
        self.coordinator = Coordinator(RUN, CLIENTS, 1, 24.0, TERMS)
        self.open: Round | None = None

    def restart(self) -> None:
        """Comes back: the same messages and the same clock lead to the same state."""
        events, self.events, self.now = self.events, [], 0.0
        self._new()
        for what, arguments in events:
            getattr(self, what)(*arguments)
        self.join()

    def join(self) -> None:
        self.events.append(("join", ()))
        self.coordinator.connected()

    def begin(self, which: int) -> None:
        """Begins a round, if none is open and the budget allows it."""
        self.events.append(("begin", (which,)))
        if self.open is not None:
            return
        try:
            self.coordinator.open(ROUNDS[which % len(ROUNDS)], self.now)
        except (InputError, RefusedError):
            return
        assert isinstance(self.coordinator.phase, Collecting)
        self.open = self.coordinator.phase.round
        self.rounds[self.open.number] = self.open

    def hear(self, topic: str, message: AnyMessage) -> bool:
        """A message from the network; whether it was not rejected."""
        self.events.append(("hear", (topic, message)))
        before = self.coordinator.rejected
        self.coordinator.receive(topic, message, self.now)
        return self.coordinator.rejected == before

    def tick(self, seconds: float) -> list[Send]:
        """Time passes: what it publishes. A round that is over is closed."""
        self.events.append(("tick", (seconds,)))
        self.now += seconds
        if self.open is not None and self.coordinator.phase.is_settled(self.now):
            self._close(self.open)
        return self.coordinator.due(self.now)

    def _close(self, round: Round) -> None:
        self.open = None
        with suppress(QuorumError, RefusedError):
            self.coordinator.close(self.now)
        self.closed[round.number] = round.digest(), round.counts.answered
