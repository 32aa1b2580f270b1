"""The places of a poll: one for each public key, in the order of joining. A place is in the journal before it is given."""

from collections.abc import Callable
from typing import Any

from local_dp.experiments.poll.web import Refused
from local_dp.server.members import Place, Roster
from local_dp.server.remote import Journal

_NOTE = "place "  # begins the name of its entry


class Places:
    """Gives the places 0..people to keys. The same key has the same place for ever."""

    def __init__(self, journal: Journal, people: int) -> None:
        self.people = people
        self.open = True
        self.roster = Roster(Place.parse(data.decode()) for data in journal.notes(_NOTE))
        self._journal = journal
        self._by_key = {place.key: place for place in self.roster.places}

    @property
    def taken(self) -> int:
        """How many places are taken: those from 0 on."""
        return self.roster.places[-1].stop if self.roster.places else 0

    def join(self, key: bytes, fresh: Callable[[], bool]) -> dict[str, Any]:
        """The place of a key. Raises Refused if there is none, or if a new one may not be taken now."""
        place = self._by_key.get(key)
        if place is None:
            if not self.open:
                raise Refused(410, "this poll is closed")
            if self.taken >= self.people:
                raise Refused(409, f"all {self.people} places of this poll are taken")
            if not fresh():
                raise Refused(429, "many people join from your network at once; try again in a few seconds")
            place = self.give(key, 1)
        return {"member": place.member, "group": place.group, "start": place.start}

    def give(self, key: bytes, clients: int) -> Place:
        """The next places, to this key."""
        start = self.taken
        place = Place(f"p{start}", f"g{start}", start, start + clients, key)  # a group of its own: nobody reads requests to others
        self._journal.note(f"{_NOTE}{start}", str(place).encode())
        self.roster.add(place)
        self._by_key[key] = place
        return place
