"""The members of a run: the client processes and hosts that have said hello, or stand in a roster;
and the topics that a server reads."""

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from local_dp.errors import InputError, WireError
from local_dp.ledger import Steps
from local_dp.sealing import KEY
from local_dp.server.rolls import gaps
from local_dp.wire import VERSION, Hello, Span, check_name, topic


@dataclass(frozen=True)
class Place:
    """A member, the clients start..stop that this member answers for, and its public key."""

    member: str
    group: str
    start: int
    stop: int
    key: bytes

    def __str__(self) -> str:
        return f"{self.member} {self.group} {self.start} {self.stop} {self.key.hex()}"

    @classmethod
    def parse(cls, line: str) -> "Place":
        """Raises InputError."""
        try:
            member, group, start, stop, key = line.split()
            place = cls(member, group, int(start), int(stop), bytes.fromhex(key))
        except ValueError:
            place = None
        if (
            place is None
            or not 0 <= place.start < place.stop
            or len(place.key) != KEY
            or str(place) != line
        ):
            raise InputError(
                f"a roster has lines of MEMBER GROUP START STOP KEY, not {line!r:.160}"
            )
        check_name(place.member, "a member's name")
        check_name(place.group, "a group's name")
        return place


def _is_claim(place: "Place | Member", group: str, hello: Hello) -> bool:
    """True if this is a claim to the group and the clients of a place."""
    return (place.group, place.start, place.stop) == (group, hello.start, hello.stop)


class Roster:
    """The places of a run, to which a poll adds more. Raises InputError if two have a name, a key
    or a client in common."""

    def __init__(self, places: Iterable[Place]) -> None:
        self.places = sorted(places, key=lambda place: place.start)
        self._by_name = {place.member: place for place in self.places}
        self.size = sum(place.stop - place.start for place in self.places)  # clients
        for what, values in (
            ("the name", [place.member for place in self.places]),
            ("the key", [place.key.hex() for place in self.places]),
        ):
            if len(set(values)) < len(values):
                twice = next(value for value in values if values.count(value) > 1)
                raise InputError(
                    f"{what} {twice} stands twice in the roster; each member has its own"
                )
        for first, second in pairwise(self.places):
            if first.stop > second.start:
                raise InputError(
                    f"{first.member} and {second.member} both claim client {second.start}; a "
                    "client has one place in a roster"
                )

    @classmethod
    def parse(cls, text: str) -> "Roster":
        """A line for each place; lines that begin with # are notes, one of them the number of
        places. Raises InputError, also for a cut one."""
        roster = cls(
            Place.parse(line)
            for line in text.splitlines()
            if line.strip() and not line.startswith("#")
        )
        sizes = re.findall(r"^# (\d+) places", text, re.MULTILINE)
        if sizes not in ([], [str(len(roster.places))]):
            raise InputError(
                f"the roster has {len(roster.places)} places and should have "
                f"{' or '.join(sizes)}: it was cut or changed; enrol its members again"
            )
        if not roster.places:
            raise InputError("the roster has no place; delete it, and enrol its members")
        return roster

    def __str__(self) -> str:
        return f"# {len(self.places)} places\n" + "".join(f"{place}\n" for place in self.places)

    def add(self, place: Place) -> None:
        """One more, with a name and clients of its own. Raises InputError."""
        # the places before it begin before this one ends
        at = bisect_left(self.places, place.stop, key=lambda each: each.start)
        if place.member in self._by_name or (at > 0 and self.places[at - 1].stop > place.start):
            raise InputError(f"{place.member} claims client {place.start}, which is not free")
        self.places.insert(at, place)
        self._by_name[place.member] = place
        self.size += place.stop - place.start

    def speaker(self, topic: str) -> bytes | None:
        """The key of the member whose group and name end a topic."""
        parts = topic.split("/")
        place = (
            self._by_name.get(parts[-1])
            if len(parts) == 6 and topic.startswith(f"{VERSION}/")
            else None
        )
        return place.key if place is not None and parts[-2] == place.group else None

    def holds(self, group: str, hello: Hello) -> bool:
        """True if this is a claim to the member's own place."""
        place = self._by_name.get(hello.member)
        return place is not None and _is_claim(place, group, hello)


@dataclass(frozen=True)
class Keys:
    """A server's private key and its roster."""

    own: bytes = field(repr=False)
    roster: Roster


# messages of a member that are read: a second, at once, and for each report that it owes
RATE, BURST, EACH = 10.0, 64, 8
# messages under its name whose signature is verified: more, as others may have sent them
OPENED, OPENED_BURST = 500.0, 500


@dataclass
class Allowance:
    """How many more messages are worth the work: at most `most`, unless raised, and `rate` more a
    second. It bounds the cost of a flood."""

    rate: float
    most: float
    left: float = 0.0
    at: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.most

    def take(self, now: float) -> bool:
        """True if one more is."""
        self.left = min(self.left + self.rate * (now - self.at), max(self.left, self.most))
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True

    def allow(self, more: float) -> None:
        """So many more, beside `most` at the most."""
        self.left = min(self.left, self.most) + more

    def rest(self, until: float) -> None:
        """None until then, and `most` only after a while."""
        self.left, self.at = 0.0, until


@dataclass
class Member:
    """A client process or a host with the clients start..stop. It may be gone; it owes reports in
    the open round."""

    name: str
    group: str
    start: int
    stop: int
    private: bool  # as it says
    gone_since: float | None = None
    owes: int = 0
    returns: int = 0  # times that its connection was made again in the open round
    reachable: bool = False  # it has heard what was sent before the roll of the open round
    read: Allowance = field(default_factory=lambda: Allowance(RATE, BURST))


class Members:
    """The members of a run. Their spans are disjoint and kept in order, so that a newcomer is
    compared with two neighbours only.

    A `roster` fixes them; without one, the first member to claim a client has it.
    """

    def __init__(self, clients: int, roster: Roster | None = None) -> None:
        self.clients = clients
        self.roster = roster
        self.present = 0  # clients whose member has said hello
        self.by_name: dict[str, Member] = {}  # those that have said hello
        self._ordered: list[Member] = []
        self._missing: tuple[int, list[Span]] = -1, []  # while so many were present
        # the messages under a name in the roster whose signature is verified
        self.openings = defaultdict[str, Allowance](lambda: Allowance(OPENED, OPENED_BURST))

    def __iter__(self) -> Iterator[Member]:
        return iter(self._ordered)

    def __len__(self) -> int:
        return len(self._ordered)

    def names(self) -> list[tuple[str, str]]:
        """The group and the name of everybody who may speak: who is in the roster, or without one
        who has said hello."""
        if self.roster is None:
            return [(each.group, each.name) for each in self._ordered]
        return [(each.group, each.member) for each in self.roster.places]

    def owner(self, topic: str) -> str | None:
        """The name of the member that owns this topic, if there is one."""
        group, name = topic.split("/")[-2:]
        if self.roster is not None:
            return None if self.roster.speaker(topic) is None else name
        member = self.by_name.get(name)
        return name if member is not None and member.group == group else None

    @property
    def attested(self) -> bool:
        """True if every member says that it answers in private, and has never said otherwise."""
        return all(member.private for member in self._ordered)

    def hello(self, group: str, hello: Hello) -> tuple[Member, bool]:
        """The member that says hello, and whether it is new.

        Raises WireError if it claims clients that are not its own, by the roster, or are not free,
        or were others last time.
        """
        if self.roster is not None and not self.roster.holds(group, hello):
            raise WireError(
                f"member {hello.member} claims the clients {hello.start}..{hello.stop}, which the "
                "roster does not give it"
            )
        member = self.by_name.get(hello.member)
        if member is not None and _is_claim(member, group, hello):
            member.private &= hello.private
            return member, False
        # the members before it begin before this one ends
        place = bisect_left(self._ordered, hello.stop, key=lambda member: member.start)
        clash = place > 0 and self._ordered[place - 1].stop > hello.start
        if member is not None or clash or not 0 <= hello.start < hello.stop <= self.clients:
            raise WireError(
                f"member {hello.member} claims the clients {hello.start}..{hello.stop}, which are "
                "not free"
            )
        member = Member(hello.member, group, hello.start, hello.stop, hello.private)
        self.by_name[member.name] = member
        self._ordered.insert(place, member)
        self.present += member.stop - member.start
        return member, True

    def missing(self) -> list[Span]:
        """The clients whose member has not said hello, as spans."""
        if self._missing[0] != self.present:
            self._missing = (
                self.present,
                gaps(((member.start, member.stop) for member in self._ordered), self.clients),
            )
        return self._missing[1]

    def absent(self) -> list[tuple[str, int, int]]:
        """Who has not said hello: the name in the roster, or the number of the client, and the
        clients."""
        if self.roster is not None:
            return [
                (each.member, each.start, each.stop)
                for each in self.roster.places
                if each.member not in self.by_name
            ]
        return [
            (f"client {low}" if high == low + 1 else f"clients {low} to {high - 1}", low, high)
            for low, high in self.missing()
        ]

    def speaker(self, name: str, start: int, stop: int) -> Member:
        """The member that speaks for the clients start..stop. Raises WireError if it may not."""
        member = self.by_name.get(name)
        if member is None or not member.start <= start <= stop <= member.stop:
            raise WireError(
                f"member {name} speaks for the clients {start}..{stop}, which are not its own"
            )
        return member

    def silence(self, name: str, until: float) -> None:
        self.openings[name].rest(until)
        if name in self.by_name:
            self.by_name[name].read.rest(until)

    def assign(self, members: Iterable[Member], asks: Steps) -> None:
        """Sets how many reports each of these members owes in a round with `asks` queries to each
        client."""
        for member in members:
            member.returns, member.reachable = 0, False
            member.owes = sum(
                (stop - start) * count
                for start, stop, count in asks.within(member.start, member.stop)
            )
            member.read.allow(EACH * member.owes)
            self.openings[member.name].allow(EACH * member.owes)


LEAVES = ("rep", "hello", "gone")
FLOOD = 500  # messages of one member, or of all strangers, that were not worth reading
STRANGERS = ""  # as whose flood is counted what comes under nobody's name
PAUSE, LONGEST = 1.0, 64.0  # seconds: that a member is not heard, the first time and at most


def filters(run: str) -> list[str]:
    """What a server subscribes to at first."""
    return [topic(run, leaf, "+", "+") for leaf in LEAVES]


class Listening:
    """The topics to read now. A member that floods again is silenced for four times as long.

    Without a roster, and while a client is missing, the server reads every hello: a newcomer may
    come under any name.
    """

    def __init__(self, run: str, members: Members) -> None:
        self.run = run
        self.members = members
        self.silenced = Counter[str]()  # how often each member was, and whether strangers were
        self.narrow = False  # whether strangers are not heard any more
        self.on_flood: Callable[[], object] = lambda: None  # is called when there is one more
        self._unread = Counter[str]()
        self._until: dict[str, float] = {}
        self._last: object = False  # as `_state` is before the first flood
        self._changing = False

    def unread(self, topic: str, now: float) -> str | None:
        """Counts a message under `topic` that was not worth reading; the name of the member that is
        silenced for it, if one is."""
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
        return now if self._state() != self._last else min(self._until.values(), default=math.inf)

    def change(self, now: float) -> list[str] | None:
        """The new filters, if they changed; call `stands` when the broker knows them."""
        if self._changing:
            return None
        self._until = {name: until for name, until in self._until.items() if until > now}
        state = self._state()
        if state == self._last:
            return None
        self._last, self._changing = state, True
        newcomers = self._newcomers
        leaves = [leaf for leaf in LEAVES if leaf != "hello" or not newcomers]
        exact = [
            topic(self.run, leaf, group, name)
            for group, name in self.members.names()
            if name not in self._until
            for leaf in leaves
        ]
        return [*exact, topic(self.run, "hello", "+", "+")] if newcomers else exact

    def stands(self, now: float) -> None:
        """All messages from before the last change have arrived."""
        self._changing = False
        self._until = {name: max(until, now + PAUSE) for name, until in self._until.items()}

    @property
    def _newcomers(self) -> bool:
        return self.members.roster is None and self.members.present < self.members.clients

    def _state(self) -> object:
        return self.narrow and (
            len(self.members.roster.places if self.members.roster else self.members),
            self._newcomers,
            *self._until,
        )
