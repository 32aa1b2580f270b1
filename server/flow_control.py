"""When each member is asked: group after group, so that the replies never overflow a broker's queue."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from local_dp.server.members import Member

WINDOW = 750  # members whose replies may be outstanding: what every broker survives in its default configuration
STALE = 5.0  # seconds after which members that owe replies no longer hold up the next ones
GRACE = 2.0  # seconds that a member must have been gone before the round stops waiting for it


@dataclass(eq=False)
class Wave:
    """Members of one group, by name; when they were asked, and which of them still owe replies."""

    group: str
    owing: dict[str, Member]
    asked: float = 0.0
    whole: bool = False  # the group's first: the request goes to all of it


class Waves:
    """The members of a round: who waits to be asked, and who was asked and owes.

    At most WINDOW members asked in the last STALE seconds owe at any time, unless a single group is larger: it is then asked alone.
    """

    def __init__(self, members: Iterable[Member]) -> None:
        self._waiting: dict[str, Wave] = {}
        self.asked: list[Wave] = []
        self._wave_of: dict[str, Wave] = {}
        self._here: set[str] = set()  # who was asked, owes and is not gone
        self._groups: set[str] = set()  # those that were asked as a whole
        self._went: list[tuple[float, str]] = []  # a heap of who was asked, owed and went, the last one first
        for member in members:
            self.add(member)
        self._waiting = dict(sorted(self._waiting.items()))

    def add(self, member: Member) -> None:
        """One more member that owes replies, to be asked with those of its group that still wait."""
        self._waiting.setdefault(member.group, Wave(member.group, {})).owing[member.name] = member

    def has_room(self, now: float) -> bool:
        """Whether somebody waits and may be asked."""
        if not self._waiting:
            return False
        outstanding = sum(len(wave.owing) for wave in self.asked if wave.asked + STALE > now)
        return outstanding == 0 or outstanding + len(next(iter(self._waiting.values())).owing) <= WINDOW

    def ask(self, now: float) -> Wave | None:
        """The wave to be asked now, if there is room for one."""
        if not self.has_room(now):
            return None
        wave = self._waiting.pop(next(iter(self._waiting)))
        wave.asked, wave.whole = now, wave.group not in self._groups
        self.asked.append(wave)
        self._wave_of |= dict.fromkeys(wave.owing, wave)
        self._here |= {name for name, member in wave.owing.items() if member.gone_since is None}
        self._groups.add(wave.group)
        for member in wave.owing.values():
            self._note(member)
        return wave

    def settled(self, member: Member) -> None:
        """This member has answered or refused for all its clients."""
        self._here.discard(member.name)
        wave = self._wave_of.pop(member.name, None) or self._waiting.get(member.group)  # it may have answered what its group was asked before it joined
        if wave is not None:
            wave.owing.pop(member.name, None)

    def gone(self, member: Member) -> None:
        self._here.discard(member.name)
        self._note(member)

    def _note(self, member: Member) -> None:
        if member.name in self._wave_of and member.gone_since is not None:
            heappush(self._went, (-member.gone_since, member.name))

    def back(self, member: Member) -> None:
        if member.name in self._wave_of:
            self._here.add(member.name)

    def lost(self) -> int:
        """How many reports are owed by members that were asked and are gone."""
        if len(self._wave_of) == len(self._here):
            return 0
        return sum(self._wave_of[name].owing[name].owes for name in self._wave_of.keys() - self._here)

    def idle_from(self) -> float:
        """When the wait ends: all were asked, and each member that owes has been gone for GRACE seconds. Infinite while one is present."""
        if self._waiting or self._here:
            return math.inf
        while self._went:
            since, name = self._went[0]
            wave = self._wave_of.get(name)
            if wave is not None and wave.owing[name].gone_since == -since:
                return GRACE - since
            heappop(self._went)  # an outdated entry
        return -math.inf

    def wake(self, now: float) -> float:
        """When there may be room, or the wait may end, without a message."""
        if self.has_room(now):
            return now
        times = [stale for wave in self.asked if (stale := wave.asked + STALE) > now] if self._waiting else []
        return min([*times, self.idle_from()])
