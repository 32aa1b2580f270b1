"""P6: a server keeps the last rounds whole, and of each earlier one what its accounts need."""

from contextlib import suppress
from random import Random

import pytest

from local_dp.clients.member import HOSTS
from local_dp.errors import QuorumError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server import coordinator
from local_dp.server.archive import RECENT
from local_dp.server.coordinator import Coordinator
from local_dp.server.losses import Unanswered
from local_dp.server.phases import Parting
from local_dp.server.quorum import Terms
from local_dp.wire import Account, topic
from tests.support.inputs.builders import RUN, SEED, arrive, reply_of
from tests.support.wrong import wrong

CANARY = LocalQuery(Question("yes == 1"), BinaryRR(0.01), Cohort(0, 4))


def _report(by: Coordinator, round: int, member: int, report: int = 1) -> None:
    reply = reply_of(round, f"m{member}", member, bytes([report]))
    by.receive(topic(RUN, "rep", HOSTS, reply.member), reply, 0.0)


def _play(rounds: int, loss: Random, order: Random) -> Coordinator:
    """Rounds of four members, each of which loses some replies and repeats others, with other bytes
    or the same; at the end all give their accounts."""
    server = Coordinator(RUN, 4, SEED, 1.0, Terms(20.0, 0.1))
    for member in range(4):
        arrive(server, f"m{member}", member, member + 1)
    for number in range(1, rounds + 1):
        server.open((CANARY,), 0.0)
        server.due(0.0)
        for member in order.sample(range(4), 4):
            for _ in range(loss.choice([0, 1, 1, 2])):
                _report(server, number, member, loss.randrange(2))
        for second in range(1, 8):  # so that chance explains few losses
            server.due(2.0 * second)
        with suppress(QuorumError):
            server.close(20.0)
    server.phase = Parting(server.members, 1.0, 20.0)
    for member in range(4):
        lines = tuple(
            (number, 1, loss.getrandbits(64))
            for number in range(1, rounds + 1)
            if loss.random() < 0.9
        )
        server.receive(
            topic(RUN, "rep", HOSTS, f"m{member}"),
            Account(run=RUN, member=f"m{member}", rounds=lines),
            20.0,
        )
    return server


@wrong(
    "local_dp.server.archive:Archive.add",
    "sums[name].checksum",
    "0",
    "the accounts of early rounds are not compared",
)
@wrong(
    "local_dp.server.archive:Archive.add",
    "absence is not None",
    "absence is not None and (not self.absences)",
    "a bus that loses reports of an early round is not seen in a run of many rounds",
)
def test_what_is_dropped_changes_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """By search: counts, reconciliation and losses are the same whether one round is kept whole, or
    all of them."""
    for seed in range(6):
        accounts = []
        for recent in (1, 3, 10**9):
            monkeypatch.setattr(coordinator, "RECENT", recent)
            server = _play(12, Random(seed), Random(seed))
            accounts.append(
                (server.counts, server.reconciliation(), server.losses(), server.rounds)
            )
            chance = max(loss.chance for loss in server.losses())
            assert 36 * chance <= 1e-6, "some rounds lost more than chance explains"
        assert accounts[0] == accounts[1] == accounts[2], f"seed {seed}"


@wrong(
    "local_dp.server.archive:Archive.late",
    "self.absences[number].end.owing",
    "()",
    "a slow member looks like one whose reports the network lost",
)
@wrong(
    "local_dp.server.coordinator:Coordinator.open",
    "len(self._history) >= RECENT",
    "len(self._history) < 0",
    "a server keeps the reports of every round, and its memory ends after many",
)
def test_a_report_for_a_round_long_over_is_rejected_and_noted() -> None:
    """It has a counter of its own. Its member counts as late in that round; nobody else's name
    does, and nothing else changes."""
    server = Coordinator(RUN, 4, SEED, 20.0, Terms(20.0, 0.1))
    for member in range(4):
        arrive(server, f"m{member}", member, member + 1)
    for number in range(1, RECENT + 3):
        server.open((CANARY,), 0.0)
        server.due(0.0)
        _report(server, number, 0)
        with suppress(QuorumError):
            server.close(20.0)
    assert len(server._history) == RECENT
    assert [len(values) for _, values in server._archive._sums.values()] == [2, 2], (
        "16 bytes of the only member that answered"
    )
    before = server.counts
    for member in (0, 1):
        _report(server, 1, member)
    _report(server, RECENT + 9, 1)
    assert server.counts == before
    assert server.rejections == {"too-late": 2, "unfit": 1}
    assert server._archive.absences[1].end == Unanswered(4, 1, ("m1", "m2", "m3"))
    assert server._archive.absences[1].late == {"m1"}
    _report(server, 3, 1)
    assert server.counts.late == before.late + 1, "this one is kept whole"
