"""The topics that a server reads: all, until somebody floods it; then only those of its members, and for a while not those of the flooder.

A message that the broker does not forward costs the server nothing. A forwarded one must be read by its connection, even if it is then dropped.
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
    """The topics to read now. A member that floods again is silenced for four times as long.

    Without a roster, and while a client is missing, the server reads every hello: a newcomer may come under any name.
    """

    def __init__(self, run: str, members: Members) -> None:
        self.run = run
        self.members = members
        self.silenced = Counter[str]()  # how often each member was, and whether strangers were
        self.narrow = False  # whether strangers are not heard any more
        self.on_flood: Callable[[], object] = lambda: None  # is called when there is one more
        self._unread = Counter[str]()
        self._until: dict[str, float] = {}
        self._known: object = False  # as `_state` is before the first flood
        self._changing = False

    def unread(self, topic: str, now: float) -> str | None:
        """Counts a message under `topic` that was not worth reading; the name of the member that is silenced for it, if one is."""
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
        return name not in self._until

    def wake(self, now: float) -> float:
        """When to change the filters; not before the last change stands."""
        if self._changing:
            return math.inf
        return now if self._state() != self._known else min(self._until.values(), default=math.inf)

    def change(self, now: float) -> list[str] | None:
        """The new filters, if they changed; call `stands` when the broker knows them."""
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
        """All messages from before the last change have arrived."""
        self._changing = False
        self._until = {name: max(until, now + PAUSE) for name, until in self._until.items()}

    @property
    def _newcomers(self) -> bool:
        return self.members.roster is None and self.members.present < self.members.clients

    def _state(self) -> object:
        """The state that decides the filters."""
        return self.narrow and (None if self.members.roster else len(self.members), self._newcomers, *self._until)
