"""Class 23: a server of 10,000 rounds. The last thousand cost what the first did; memory, open
files and the journal stay small, and the budget is exact."""

import os
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from hashlib import shake_256
from pathlib import Path
from random import Random

import numpy as np
import pytest

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import HOSTS
from local_dp.errors import QuorumError, RefusedError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server import coordinator
from local_dp.server.archive import RECENT
from local_dp.server.coordinator import Coordinator
from local_dp.server.losses import Unanswered
from local_dp.server.members import filters
from local_dp.server.phases import Parting
from local_dp.server.quorum import Terms
from local_dp.server.remote import Journal, RemoteOracle
from local_dp.storage import log
from local_dp.storage.log import Entry, Log
from local_dp.wire import Account, End, Hello, Reply, Request, Roll, checksum, decode, encode, topic
from tests.support.effort import Effort, Peak
from tests.support.figures import figure
from tests.support.inputs.builders import RUN, SEED, arrive, survey_query
from tests.support.runs.virtual_time import beside, run_virtually

MEMBERS, EACH = 5, 200
CLIENTS = MEMBERS * EACH
EPSILON = 0.002  # of a round
NANO_NATS = 2_000_000  # the same
# bytes of a round that stay in memory and in the journal, at most: its reports are 1,000
GROWTH, ON_DISK = (
    2048,
    4096,
)
TRACED = 2  # rounds of each window whose steps are counted
# the last rounds take so many times as long as the first at most, and so many times the steps
SLOWER, MORE = (
    2.0,
    1.25,
)
LONG = 1_000  # rounds whose time can be compared
ASKED = (survey_query(CLIENTS, randomizer=BinaryRR(EPSILON)),)
TERMS = Terms(20.0, 1.0)


def _reply(member: int, round: int) -> Reply:
    """The reports of a host to a round: a function of both, so that nothing is kept of them
    here."""
    bits = np.frombuffer(shake_256(f"{member} {round}".encode()).digest(EACH), dtype=np.uint8) & 1
    return Reply(
        run=RUN,
        round=round,
        member=f"host-{member}",
        ask=0,
        start=member * EACH,
        width=1,
        reports=bits.tobytes(),
    )


class Hosts(MemoryBroker):
    """Hosts that answer at once, and every tenth round twice. `asked` is the number of rounds."""

    asked = 0

    def route(self, delivery: Delivery) -> None:
        super().route(delivery)
        if delivery.topic.split("/")[3] == "req":
            message = decode(delivery.payload)
            self.asked = (
                max(self.asked, message.round) if isinstance(message, Request) else self.asked
            )
            for member in range(MEMBERS):
                self._answer(member, message)

    def _answer(self, member: int, message: object) -> None:
        name, start = f"host-{member}", member * EACH
        if isinstance(message, Roll):
            self._say(
                "hello",
                name,
                encode(Hello(run=RUN, member=name, start=start, stop=start + EACH, private=False)),
            )
        elif isinstance(message, Request):
            for _ in range(1 + (message.round % 10 == 0)):
                self._say("rep", name, encode(_reply(member, message.round)))
        elif isinstance(message, End):
            lines = tuple(
                (number, EACH, checksum(_reply(member, number)))
                for number in range(1, self.asked + 1)
            )
            self._say("rep", name, encode(Account(run=RUN, member=name, rounds=lines)))

    def _say(self, leaf: str, name: str, payload: bytes) -> None:
        super().route(Delivery(topic(RUN, leaf, HOSTS, name), payload))


@dataclass
class Window:
    """What some rounds in a row took: seconds of processor time, lines of Python and SQLite's
    steps; the journal's bytes, open files and memory at the end."""

    seconds: float = 0.0
    lines: int = 0
    steps: int = 0
    size: int = 0
    files: int = 0
    held: int = 0


@dataclass
class Server:
    """A server with a journal and the budget of so many rounds."""

    folder: Path
    rounds: int
    hosts: Hosts = field(default_factory=Hosts)
    steps: int = 0

    def __post_init__(self) -> None:
        self.coordinator = Coordinator(RUN, CLIENTS, SEED, EPSILON * self.rounds, TERMS)

    def _step(self) -> int:
        self.steps += 10
        return 0

    async def _window(self, oracle: RemoteOracle, rounds: int) -> Window:
        seen, before = Window(), self.steps
        for number in range(rounds):
            if number < TRACED:
                with Effort() as effort:
                    await oracle.answer(ASKED)
                seen.lines += effort.steps
            else:
                began = time.process_time()
                await oracle.answer(ASKED)
                seen.seconds += time.process_time() - began
        seen.steps, seen.files = self.steps - before, len(os.listdir("/proc/self/fd"))
        seen.size = sum(path.stat().st_size for path in self.folder.iterdir())
        return seen

    async def play(self, journal: Journal, window: int) -> list[Window]:
        """All rounds, in windows of so many, and one round more, which the budget does not pay
        for."""
        journal._log._held.set_progress_handler(self._step, 10)
        oracle, windows = (
            RemoteOracle(self.hosts.join(filters(RUN)), self.coordinator, journal=journal),
            list[Window](),
        )
        async with beside(oracle.serve(1.0)):
            await oracle.ready(5.0)
            with Peak() as peak:
                for _ in range(0, self.rounds, window):
                    windows.append(await self._window(oracle, window))
                    windows[-1].held = peak.held
            with pytest.raises(RefusedError, match="budget"):
                await oracle.answer(ASKED)
            await oracle.end(1.0)
        return windows


def _begun(folder: Path, rounds: int, window: int) -> tuple[Server, list[Window]]:
    server = Server(folder, rounds)
    with closing(Journal.begin(folder, RUN, {})) as journal:
        return server, run_virtually(server.play(journal, window))


def _grown(windows: list[Window], window: int) -> list[str]:
    """What grows with the rounds and should not, of the last window beside the first."""
    first, last, rounds = windows[0], windows[-1], window * (len(windows) - 1)
    size, before = last.size - windows[-2].size, windows[1].size - first.size
    checks = {
        "time": window < LONG or last.seconds <= SLOWER * first.seconds,
        "lines": last.lines <= MORE * first.lines,
        "steps of SQLite": last.steps <= MORE * first.steps,
        "files": last.files <= first.files,
        "journal": size <= MORE * before and last.size <= ON_DISK * window * len(windows),
        "memory": last.held - first.held <= GROWTH * rounds,
    }
    return [name for name, holds in checks.items() if not holds]


@pytest.mark.parametrize(
    ("rounds", "window"), [(210, 70), pytest.param(10_000, 1_000, marks=pytest.mark.slow)]
)
def test_the_last_rounds_cost_what_the_first_did(rounds: int, window: int, tmp_path: Path) -> None:
    """By steps, time, open files, bytes of the journal and memory; every report is reconciled, the
    budget is charged to the last nano-nat.

    A server that is started again with the journal has the same rounds, and asks nobody.
    """
    server, windows = _begun(tmp_path, rounds, window)
    played, first, last = server.coordinator, windows[0], windows[-1]
    figure(
        "class 23",
        f"{rounds:,} rounds of {CLIENTS:,} clients: the last {window:,} take "
        f"{last.seconds / first.seconds:.2f} times the time of the first, "
        f"{last.lines / first.lines:.2f} times the lines of Python, "
        f"{last.steps / first.steps:.2f} times the steps of SQLite. Open files {first.files} and "
        f"{last.files}. {(last.held - first.held) / (rounds - window):,.0f} bytes a round stay in "
        f"memory, {last.size / rounds:,.0f} in the journal. {played.ledger.max_spent:g} of "
        f"{EPSILON * rounds:g} nats charged",
    )
    assert _grown(windows, window) == []
    assert played.ledger._life.maximum == rounds * NANO_NATS
    assert (played.counts.answered, played.counts.duplicate, played.counts.conflicting) == (
        rounds * CLIENTS,
        rounds // 10 * CLIENTS,
        0,
    )
    assert (played.rejected, played.losses()) == (0, ())
    accounts = played.reconciliation()
    assert [
        each.round for each in accounts.rounds if each.agree and each.accepted == CLIENTS
    ] == list(range(1, rounds + 1))
    again = Server(tmp_path, rounds)
    with closing(Journal.open(tmp_path, RUN)) as journal:
        run_virtually(again.play(journal, window))
    assert (
        again.coordinator.rounds,
        again.coordinator.ledger._life.maximum,
        again.hosts.asked,
    ) == (played.rounds, rounds * NANO_NATS, 0)


def _whole(self: Log, run: str | None = None, round: int = 0) -> list[Entry]:
    """Looks at every entry for those of a round."""
    condition = "" if run is None else f" WHERE round = {round:d}"
    return [Entry(*row[:4]) for row in self._held.execute(f"{log._READ}{condition} ORDER BY place")]


TWINS = {
    "keeps every round": (coordinator, "RECENT", 10**9, "memory"),
    "searches the whole journal": (Log, "entries", _whole, "steps of SQLite"),
}


@pytest.mark.long
@pytest.mark.parametrize("twin", TWINS)
def test_a_server_that_grows_is_caught(
    twin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, wrong, grows = TWINS[twin]
    monkeypatch.setattr(where, name, wrong)
    assert grows in _grown(_begun(tmp_path, 140, 70)[1], 70)


CANARY = LocalQuery(Question("yes == 1"), BinaryRR(0.01), Cohort(0, 4))


def _said(by: Coordinator, round: int, member: int, report: int = 1) -> None:
    name = f"m{member}"
    by.receive(
        topic(RUN, "rep", HOSTS, name),
        Reply(
            run=RUN, round=round, member=name, ask=0, start=member, width=1, reports=bytes([report])
        ),
        0.0,
    )


def _played(rounds: int, loss: Random, order: Random) -> Coordinator:
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
                _said(server, number, member, loss.randrange(2))
        for second in range(1, 20):  # so that chance explains few losses
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


@pytest.mark.parametrize("seeds", [6, pytest.param(500, marks=pytest.mark.slow)])
def test_what_is_dropped_changes_no_account(seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By search: counts, reconciliation and losses are the same whether one round is kept whole, or
    all of them."""
    for seed in range(seeds):
        found = []
        for recent in (1, 3, 10**9):
            monkeypatch.setattr(coordinator, "RECENT", recent)
            server = _played(12, Random(seed), Random(seed))
            found.append((server.counts, server.reconciliation(), server.losses(), server.rounds))
            assert server.losses(), "some rounds lost more than chance explains"
        assert found[0] == found[1] == found[2], f"seed {seed}"


def test_a_report_for_a_round_long_over_is_rejected_and_noted() -> None:
    """It has a counter of its own. Its member counts as late in that round; nobody else's name
    does, and nothing else changes."""
    server = Coordinator(RUN, 4, SEED, 20.0, Terms(20.0, 0.1))
    for member in range(4):
        arrive(server, f"m{member}", member, member + 1)
    for number in range(1, RECENT + 3):
        server.open((CANARY,), 0.0)
        server.due(0.0)
        _said(server, number, 0)
        with suppress(QuorumError):
            server.close(20.0)
    before = server.counts
    for member in (0, 1):
        _said(server, 1, member)
    _said(server, RECENT + 9, 1)
    assert server.counts == before
    assert server.rejections == {"too-late": 2, "unfit": 1}
    assert server._archive.missed[1].end == Unanswered(4, 1, ("m1", "m2", "m3"))
    assert server._archive.missed[1].late == {"m1"}
    _said(server, 3, 1)
    assert server.counts.late == before.late + 1, "this one is kept whole"
