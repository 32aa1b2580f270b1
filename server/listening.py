"""Which topics of a run the server hears: all, until somebody floods it; from then on those of its members alone, and for a while not those of who floods.

What a broker does not forward costs the server nothing. A message that is forwarded has to be read by its connection, though nothing looks at it.
"""

import math
from collections import Counter
from collections.abc import Callable

from local_dp.server.members import Members
from local_dp.wire import topic

LEAVES = ("rep", "hello", "gone")
FLOOD = 500  # messages of one member, or of all strangers, that were not worth reading
STRANGERS = ""  # as whose flood is counted what comes under nobody's name
PAUSE, LONGEST = 1.0, 64.0  # seconds: that a member is not heard, the first time and at most


def filters(run: str) -> list[str]:
    """What the server subscribes to at first."""
    return [topic(run, leaf, "+", "+") for leaf in LEAVES]


class Listening:
    """What the server of a run should hear now. Who floods again when it is heard again is not heard for four times as long.

    Without a roster, and while somebody is missing, everybody's hello is heard, who floods or not: a newcomer could say it under any name.
    """

    def __init__(self, run: str, members: Members) -> None:
        self.run = run
        self.members = members
        self.silenced = Counter[str]()  # how often each member was, and whether strangers were
        self.narrow = False  # whether strangers are not heard any more
        self.on_flood: Callable[[], object] = lambda: None  # is called when there is one more
        self._unread = Counter[str]()
        self._until: dict[str, float] = {}
        self._known, self._changing = self._state(), False

    def unread(self, topic: str, now: float) -> str | None:
        """One more message came under `topic` that was not worth reading: whom it has silenced, if anybody."""
        name = self.members.owner(topic) or STRANGERS
        if name in self._until or (name == STRANGERS and self.narrow):
            return None  # it was on its way before they were shut out
        self._unread[name] += 1
        if self._unread[name] < FLOOD:
            return None
        self.narrow = True
        if name != STRANGERS:
            del self._unread[name]
            self._until[name] = now + min(PAUSE * 4 ** self.silenced[name], LONGEST)
            self.members.silence(name, self._until[name])
        self.silenced[name] += 1
        self.on_flood()
        return name

    def hears(self, name: str) -> bool:
        """Whether a member is not silenced."""
        return name not in self._until

    def wake(self, now: float) -> float:
        """When to hear something else than now; not before the last change stands."""
        if self._changing:
            return math.inf
        return now if self._state() != self._known else min(self._until.values(), default=math.inf)

    def change(self, now: float) -> list[str] | None:
        """The filters to hear by from now on, if they are not those of before; `stands` is called when the broker knows."""
        if self._changing:
            return None
        self._until = {name: until for name, until in self._until.items() if until > now}
        state = self._state()
        if state == self._known:
            return None
        self._known, self._changing = state, True
        newcomers = self._newcomers
        leaves = [leaf for leaf in LEAVES if leaf != "hello" or not newcomers]
        exact = [topic(self.run, leaf, group, name) for group, name in self.members.names() if name not in self._until for leaf in leaves]
        return [*exact, topic(self.run, "hello", "+", "+")] if newcomers else exact

    def stands(self, now: float) -> None:
        """What was on its way before the last change has come."""
        self._changing = False
        self._until = {name: max(until, now + PAUSE) for name, until in self._until.items()}

    @property
    def _newcomers(self) -> bool:
        return self.members.roster is None and self.members.present < self.members.clients

    def _state(self) -> object:
        """What the filters depend on."""
        return self.narrow and (None if self.members.roster else self.members.count, self._newcomers, *self._until)
