"""The members of a run, fixed before the first round: each with its name, group, clients and key."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from local_dp.errors import InputError
from local_dp.sealing import KEY
from local_dp.wire import VERSION, Hello, check_name


@dataclass(frozen=True)
class Place:
    """A member, the clients start..stop that it alone speaks for, and its public key."""

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
        if place is None or not 0 <= place.start < place.stop or len(place.key) != KEY or str(place) != line:
            raise InputError(f"a roster has lines of MEMBER GROUP START STOP KEY, not {line!r:.160}")
        check_name(place.member)
        check_name(place.group)
        return place


class Roster:
    """The places of a run. Raises InputError if two have a name, a key or a client in common."""

    def __init__(self, places: Iterable[Place]) -> None:
        self.places = sorted(places, key=lambda place: place.start)
        self._named = {place.member: place for place in self.places}
        for what, values in (("the name", [place.member for place in self.places]), ("the key", [place.key.hex() for place in self.places])):
            if len(set(values)) < len(values):
                twice = next(value for value in values if values.count(value) > 1)
                raise InputError(f"{what} {twice} stands twice in the roster; each member has its own")
        for first, second in pairwise(self.places):
            if first.stop > second.start:
                raise InputError(f"{first.member} and {second.member} both claim client {second.start}; a client has one place in a roster")

    @classmethod
    def parse(cls, text: str) -> "Roster":
        """A line for each place; lines that begin with # are notes. Raises InputError."""
        return cls(Place.parse(line) for line in text.splitlines() if line.strip() and not line.startswith("#"))

    def __str__(self) -> str:
        return "".join(f"{place}\n" for place in self.places)

    def speaker(self, topic: str) -> bytes | None:
        """The key of the member whose group and name end a topic."""
        parts = topic.split("/")
        place = self._named.get(parts[-1]) if len(parts) == 6 and topic.startswith(f"{VERSION}/") else None
        return place.key if place is not None and parts[-2] == place.group else None

    def holds(self, group: str, hello: Hello) -> bool:
        """Whether this is a claim to the member's own place."""
        place = self._named.get(hello.member)
        return place is not None and (place.group, place.start, place.stop) == (group, hello.start, hello.stop)


@dataclass(frozen=True)
class Keys:
    """A server's private key and its roster."""

    own: bytes = field(repr=False)
    roster: Roster
