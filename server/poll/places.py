"""The places of a poll: one for each public key, at random among those that are free. A place is in
the journal before it is given."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random
from typing import Any

from local_dp.server.members import Place, Roster
from local_dp.server.poll.web import Refused
from local_dp.server.remote import Journal

_NOTE = "place "  # begins the name of its entry


class Places:
    """Gives the places 0..people to keys, in an order that `seed` shuffles: the people of a span
    are a random sample.

    The same key has the same place for ever. `hosts` are the sizes of the hosts that will come:
    each has a span of its own.
    """

    def __init__(self, journal: Journal, people: int, seed: int, hosts: Sequence[int] = ()) -> None:
        self.people = people
        self.open = True
        self.roster = Roster(Place.parse(data.decode()) for data in journal.notes(_NOTE))
        self._journal = journal
        self._by_key = {place.key: place for place in self.roster.places}
        order, sizes = Random(f"places {seed}"), [*hosts, *[1] * (people - sum(hosts))]
        order.shuffle(sizes)
        spans = [(stop - size, stop) for size, stop in zip(sizes, accumulate(sizes), strict=True)]
        order.shuffle(spans)
        starts = {place.start for place in self.roster.places}
        self._free = [span for span in spans if span[0] not in starts]

    @property
    def taken(self) -> int:
        """How many places are taken."""
        return self.roster.size

    def join(self, key: bytes, fresh: Callable[[], bool]) -> dict[str, Any]:
        """The place of a key. Raises Refused if there is none, or if a new one may not be taken
        now."""
        place = self._by_key.get(key)
        if place is None:
            if not self.open:
                raise Refused(410, "this poll is closed")
            if not fresh():
                raise Refused(
                    429, "many people join from your network at once; try again in a few seconds"
                )
            place = self.give(key, 1)
        return {"member": place.member, "group": place.group, "start": place.start}

    def give(self, key: bytes, clients: int) -> Place:
        """A free span of so many places, to this key. Raises Refused if there is none."""
        span = next((span for span in self._free if span[1] - span[0] == clients), None)
        if span is None:
            raise Refused(409, f"all {self.people} places of this poll are taken")
        self._free.remove(span)
        start, stop = span
        # a group of its own: nobody reads requests to others
        place = Place(f"p{start}", f"g{start}", start, stop, key)
        self._journal.note(f"{_NOTE}{start}", str(place).encode())
        self.roster.add(place)
        self._by_key[key] = place
        return place
