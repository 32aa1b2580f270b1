"""How much the server and the helper do, counted in operations: in proportion to the clients, however they come."""

import socket
import subprocess
from pathlib import Path

import pytest

from local_dp.arrays import Bools
from local_dp.bus.children import environment, python
from local_dp.clients.fleet import LEAN
from local_dp.server.coordinator import Coordinator
from local_dp.server.round import Part
from local_dp.wire import Hello, Reply, topic
from tests.support.inputs.builders import PATIENT, RUN, SEED, survey_query

REPLIES, EACH = 64, 100


def test_a_reply_is_looked_at_and_not_the_whole_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host of 6,400 clients that answers in 64 messages: each client's place is looked at once for its report, and not once for every message."""
    looked: list[int] = []
    waiting = Part.waiting

    def counted(part: Part, window: slice) -> Bools:
        positions = waiting(part, window)
        looked.append(len(positions))
        return positions

    monkeypatch.setattr(Part, "waiting", counted)
    clients = REPLIES * EACH
    coordinator = Coordinator(RUN, clients, SEED, 1.0, PATIENT)
    coordinator.receive(topic(RUN, "hello", "hosts", "h"), Hello(run=RUN, member="h", start=0, stop=clients, private=False), 0.0)
    coordinator.open((survey_query(clients),), 0.0)
    coordinator.due(0.0)
    looked.clear()
    for place in range(REPLIES):
        reply = Reply(run=RUN, round=1, member="h", ask=0, start=place * EACH, width=1, reports=bytes(EACH))
        coordinator.receive(topic(RUN, "rep", "hosts", "h"), reply, 1.0)
    assert (coordinator.rejected, coordinator.counts.answered) == (0, clients)
    assert sum(looked) <= 2 * clients, "with a look at the host's whole window for each message it is 64 times as many"


def test_a_helper_whose_launcher_is_gone_forks_nobody(tmp_path: Path) -> None:
    """Its standard input closed while it got ready: it ends, and no member of 40 has called."""
    path = str(tmp_path / "launcher")
    with socket.socket(socket.AF_UNIX) as launcher:
        launcher.bind(path)
        launcher.listen(64)
        launcher.setblocking(False)
        words = python("local_dp.clients.helper", "40", path, "90")
        done = subprocess.run(words, stdin=subprocess.DEVNULL, env=environment(**LEAN), timeout=60, check=False)
        assert done.returncode == 0
        with pytest.raises(BlockingIOError):
            launcher.accept()
