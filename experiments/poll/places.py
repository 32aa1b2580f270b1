"""The places of a poll: one for each public key, in the order of joining, in the journal before they are given."""

from collections.abc import Callable
from typing import Any

from local_dp.experiments.poll.web import Refused
from local_dp.server.members import Place, Roster
from local_dp.server.remote import Journal


class Places:
    """Gives places 0..people to keys. The same key has the same place for ever."""

    def __init__(self, journal: Journal, people: int) -> None:
        self.people = people
        self._journal = journal
        self.roster = Roster(journal.places())
        self._by_key = {place.key: place for place in self.roster.places}
        self._names = {(place.group, place.member) for place in self.roster.places}
        self.open = True

    def __len__(self) -> int:
        return len(self._by_key)

    def join(self, key: bytes, fresh: Callable[[], bool]) -> dict[str, Any]:
        """The place of a key. Raises Refused if there is none, or if a new one may not be taken now."""
        place = self._by_key.get(key)
        if place is None:
            place = self._new(key, fresh)
        return {"member": place.member, "group": place.group, "start": place.start}

    def _new(self, key: bytes, fresh: Callable[[], bool]) -> Place:
        start = len(self._by_key)
        if not self.open:
            raise Refused(410, "this poll is closed")
        if start >= self.people:
            raise Refused(409, f"all {self.people} places of this poll are taken")
        if not fresh():
            raise Refused(429, "many people join from your network at once; try again in a few seconds")
        place = Place(f"p{start}", f"g{start}", start, start + 1, key)  # a group of its own: nobody reads requests to others
        self._journal.place(place)
        self.roster.add(place)
        self._by_key[key] = place
        self._names.add((place.group, place.member))
        return place

    def holds(self, group: str, member: str) -> bool:
        """Whether this is a member's group and name."""
        return (group, member) in self._names
