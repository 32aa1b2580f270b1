"""The places of a poll: one for a key, for ever; in the journal before they are given; bounded."""

from contextlib import closing
from pathlib import Path

import pytest

from local_dp.experiments.poll.places import Places
from local_dp.experiments.poll.web import Refused
from local_dp.server.remote import Journal


def _key(number: int) -> bytes:
    return number.to_bytes(32)


def test_a_key_has_one_place_for_ever(tmp_path: Path) -> None:
    """The same key has the same place, also in another process after a crash; new keys have the next places, and hosts as many as they need."""
    with closing(Journal.begin(tmp_path, "poll-1", {})) as journal:
        places = Places(journal, 10)
        assert [places.join(_key(number), lambda: True)["start"] for number in (1, 2, 1, 3, 2)] == [0, 1, 0, 2, 1]
        assert places.give(_key(4), 5).stop == 8
        assert places.join(_key(5), lambda: True) == {"member": "p8", "group": "g8", "start": 8}
    with closing(Journal.open(tmp_path, "poll-1")) as journal:
        again = Places(journal, 10)
        assert (again.taken, str(again.roster)) == (9, str(places.roster))
        assert [again.join(_key(number), lambda: False)["start"] for number in (1, 2, 3, 5)] == [0, 1, 2, 8]
        assert again.join(_key(6), lambda: True)["start"] == 9
        assert again.roster.speaker("ldp/1/poll-1/rep/g9/p9") == _key(6)


def test_who_gets_no_place(tmp_path: Path) -> None:
    """A new key is refused where its network takes too many, where all places are taken, and when the poll is closed; an old one never is."""
    with closing(Journal.begin(tmp_path, "poll-1", {})) as journal:
        places = Places(journal, 2)
        with pytest.raises(Refused, match="try again") as refused:
            places.join(_key(1), lambda: False)
        assert (refused.value.status, places.taken) == (429, 0)
        places.join(_key(1), lambda: True)
        places.open = False
        with pytest.raises(Refused, match="closed"):
            places.join(_key(2), lambda: True)
        places.open = True
        places.join(_key(2), lambda: True)
        with pytest.raises(Refused, match="all 2 places"):
            places.join(_key(3), lambda: True)
        assert places.join(_key(1), lambda: False)["start"] == 0
