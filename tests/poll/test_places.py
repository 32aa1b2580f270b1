"""The places of a poll: one for a key, for ever; in the journal before they are given; bounded."""

from collections import Counter
from contextlib import closing
from pathlib import Path
from unittest.mock import create_autospec

import pytest

from local_dp.server.poll.places import Places
from local_dp.server.poll.web import Refused
from local_dp.server.remote import Journal
from tests.support.wrong import wrong


def _key(number: int) -> bytes:
    return number.to_bytes(32)


@wrong(
    "local_dp.server.poll.places:Places.__init__",
    "self._by_key = {place.key: place for place in self.roster.places}",
    "self._by_key: dict[bytes, Place] = {}",
    "a key that joins again after a crash has a second place, and counts twice",
)
def test_a_key_has_one_place_for_ever(tmp_path: Path) -> None:
    """The same key has the same place, also in another process after a crash; hosts have as many as
    they need; in the end all places are taken once."""
    with closing(Journal.begin(tmp_path, "poll-1", {})) as journal:
        places = Places(journal, 10, 7, (5,))
        one, two, three = (places.join(_key(number), lambda: True)["start"] for number in (1, 2, 3))
        assert [places.join(_key(number), lambda: False)["start"] for number in (2, 1, 3)] == [
            two,
            one,
            three,
        ]
        host = places.give(_key(4), 5)
        assert host.stop == host.start + 5
    with closing(Journal.open(tmp_path, "poll-1")) as journal:
        again = Places(journal, 10, 7, (5,))
        assert (again.taken, str(again.roster)) == (8, str(places.roster))
        assert [again.join(_key(number), lambda: False)["start"] for number in (1, 2, 3)] == [
            one,
            two,
            three,
        ]
        others = [again.join(_key(number), lambda: True) for number in (5, 6)]
        assert sorted(
            [one, two, three, *range(host.start, host.stop), *(each["start"] for each in others)]
        ) == list(range(10))
        last = others[-1]["start"]
        assert others[-1] == {"member": f"p{last}", "group": f"g{last}", "start": last}
        assert again.roster.speaker(f"ldp/1/poll-1/rep/g{last}/p{last}") == _key(6)


@wrong(
    "local_dp.server.poll.places:Places.__init__",
    "order.shuffle(spans)",
    "pass",
    "who comes late answers other questions in the second round, and the median is biased",
)
def test_places_do_not_follow_the_order_of_joining() -> None:
    """Over 1,000 polls of ten the first key has each place about equally often: all counts are
    within five deviations, which fails once in 10^5."""
    journal = create_autospec(Journal, instance=True)
    journal.notes.return_value = []
    counts = Counter(
        Places(journal, 10, seed).join(_key(1), lambda: True)["start"] for seed in range(1000)
    )
    assert all(abs(counts[place] - 100) < 5 * 90**0.5 for place in range(10))


def test_who_gets_no_place(tmp_path: Path) -> None:
    """A new key is refused where its network takes too many, where all places are taken, and when
    the poll is closed; an old one never is."""
    with closing(Journal.begin(tmp_path, "poll-1", {})) as journal:
        places = Places(journal, 2, 7)
        with pytest.raises(Refused, match="try again") as error:
            places.join(_key(1), lambda: False)
        assert (error.value.status, places.taken) == (429, 0)
        start = places.join(_key(1), lambda: True)["start"]
        places.open = False
        with pytest.raises(Refused, match="closed"):
            places.join(_key(2), lambda: True)
        places.open = True
        places.join(_key(2), lambda: True)
        with pytest.raises(Refused, match="all 2 places"):
            places.join(_key(3), lambda: True)
        assert places.join(_key(1), lambda: False)["start"] == start
