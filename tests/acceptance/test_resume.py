"""Acceptance tests 19 (after a restart), 20 and 22: a server that is killed or stopped loses
nothing it had accepted, and counts nothing twice."""

import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from local_dp.bus.address import Address
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.bus.interface import Delivery
from local_dp.cli.operate.keys import private_key, public_key
from local_dp.cli.run import join
from local_dp.clients.journal import MemoryStore
from local_dp.clients.member import HOSTS, client_group
from local_dp.clients.role import ClientRole
from local_dp.errors import InputError
from local_dp.noise import KeyedNoise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.local_protocol import find_protocol
from local_dp.queries.tables import Category
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.records import Records
from local_dp.sealing import UNSIGNED, Envelopes, Party
from local_dp.server.coordinator import Coordinator
from local_dp.server.quorum import Terms
from local_dp.server.remote import Journal
from local_dp.tallies import Tally
from local_dp.wire import (
    Account,
    AnyMessage,
    End,
    Hello,
    Receipt,
    Refusal,
    Reply,
    Request,
    Roll,
    decode,
    encode,
    topic,
)
from tests.support.inputs.builders import RUN, SEED, arrive, yes_records
from tests.support.runs.brokers import a_broker, mosquitto, needs_mosquitto
from tests.support.runs.command import command, enrolled
from tests.support.runs.mortal import CLIENTS, HOSTS_OF, ROUNDS, Town
from tests.support.runs.virtual_time import run_virtually


class Watching(threading.Thread):
    """Answers for many members on one connection, each in its `envelopes`, and notes which round is
    asked."""

    def __init__(
        self,
        url: str,
        run: str,
        members: list[tuple[str, ClientRole]],
        envelopes: Mapping[str, Envelopes] | None = None,
    ) -> None:
        super().__init__(daemon=True)
        self.url, self.run_name, self.members = url, run, members
        self.envelopes = {
            role.member: (envelopes or {}).get(role.member, UNSIGNED) for _, role in members
        }
        self.asked: list[int] = []
        self.requests: dict[int, set[bytes]] = {}
        self.receipts = 0
        self.stir = threading.Condition()

    def run(self) -> None:
        finish(self._live())

    async def _live(self) -> None:
        bus = BlockingBus(
            Address.parse(self.url), f"{self.run_name}-many", [topic(self.run_name, "req", "+")]
        )
        async for event in bus.messages(10.0):
            message = self._read(event) if isinstance(event, Delivery) else Roll(run=self.run_name)
            if isinstance(message, Roll):
                for group, role in self.members:
                    hello = Hello(
                        run=self.run_name,
                        member=role.member,
                        start=role.start,
                        stop=role.stop,
                        private=False,
                    )
                    await self._say(bus, "hello", group, hello)
            elif isinstance(message, Request):
                self._note(message)
                for group, role in self.members:
                    if isinstance(event, Delivery) and event.topic.endswith(f"/{group}"):
                        for answer in role.handle(message):
                            await self._say(bus, "rep", group, answer)
            elif isinstance(message, Receipt):
                self.receipts += len(message.accepted)
            elif isinstance(message, End):
                for group, role in self.members:
                    await self._say(bus, "rep", group, role.account(self.run_name))
                return

    async def _say(
        self, bus: BlockingBus, leaf: str, group: str, message: Hello | Reply | Refusal | Account
    ) -> None:
        where = topic(self.run_name, leaf, group, message.member)
        await bus.publish(where, self.envelopes[message.member].seal(where, encode(message)))

    def _read(self, delivery: Delivery) -> AnyMessage:
        """What the server says: to all of them in one envelope."""
        return decode(next(iter(self.envelopes.values())).open(delivery.topic, delivery.payload))

    def _note(self, message: Request) -> None:
        with self.stir:
            self.asked.append(message.round)
            self.requests.setdefault(message.round, set()).add(
                encode(message.model_copy(update={"missing": ()}))
            )
            self.stir.notify_all()

    def wait_for_a_request(self, beyond: int, seconds: float) -> float:
        """Until more than so many requests have been seen; how long that took."""
        began = time.monotonic()
        with self.stir:
            assert self.stir.wait_for(lambda: len(self.asked) > beyond, seconds), (
                "nothing was asked"
            )
        return time.monotonic() - began


@pytest.mark.parametrize("runs", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_a_server_that_dies_anywhere_goes_on(runs: int, tmp_path: Path) -> None:
    """Test 20 by search, in virtual time: killed before and after what it writes and says, up to
    twelve times in a run."""
    generator, kills, points = random.Random(20), 0, set[int]()
    (tmp_path / "plain").mkdir()
    plain, undisturbed, _ = run_virtually(Town(tmp_path / "plain").live(iter([10**9])))
    expected = plain, [summary.digest for summary in undisturbed.rounds]
    for turn in range(runs):
        where = tmp_path / str(turn)
        where.mkdir()
        town, drawn = Town(where), [generator.randrange(1, 60) for _ in range(12)]
        result, coordinator, died = run_virtually(town.live(iter([*drawn, 10**9])))
        assert (result, [summary.digest for summary in coordinator.rounds]) == expected, turn
        assert all(len(forms) == 1 for forms in town.requests.values()), (
            "a round was asked in two ways"
        )
        assert [member.store.ledger.max_spent for member in town.members] == [
            pytest.approx(0.04 * ROUNDS)
        ] * HOSTS_OF
        assert (coordinator.counts.answered, coordinator.counts.conflicting) == (
            CLIENTS * ROUNDS,
            0,
        )
        accounts = coordinator.reconciliation()
        assert (accounts.accepted_not_charged, accounts.charged_not_accepted) == (0, 0)
        assert accounts.silent in (0, HOSTS_OF), (
            "all, where a server was killed after it had said the end"
        )
        kills, points = kills + died, points | set(drawn[:died])
    assert kills >= 5 * runs
    print(
        f"test 20: {kills} kills at {len(points)} points in {runs} runs of {ROUNDS} rounds: the "
        "result bit for bit, each request byte for byte"
    )


def _canary(number: int, client: int) -> tuple[str, Reply]:
    """A report that nobody else sends: in its cell."""
    name = f"client-{client}"
    return topic(RUN, "rep", "g0", name), Reply(
        run=RUN, round=number, member=name, ask=0, start=client, width=1, reports=bytes([client])
    )


class Server:
    """A coordinator and its journal, without a bus; every `Server` of a folder is the one before
    it, started again."""

    def __init__(self, folder: Path, query: LocalQuery) -> None:
        self.query, self.clients = query, len(query.cohort)
        self.journal = (
            Journal.open(folder, RUN)
            if (folder / f"{RUN}.run").exists()
            else Journal.begin(folder, RUN, {})
        )
        self.coordinator = Coordinator(RUN, self.clients, SEED, 24.0, Terms(10.0, 0.5))
        self.coordinator.fresh = []
        for client in range(self.clients):
            arrive(self.coordinator, f"client-{client}", client, client + 1, 0.0, "g0")
        while (
            past := self.journal.past(len(self.coordinator.rounds) + 1)
        ) is not None and past.closing is not None:
            self.coordinator.repeat((query,), past)
        self.number = len(self.coordinator.rounds) + 1
        round = self.coordinator.open((query,), 0.0, past)
        if past is None:
            self.journal.asked(self.number, round.request_digest())

    def hear(self, sent: Iterable[tuple[str, Reply]]) -> None:
        """What the bus brings; what is new is kept."""
        for where, reply in sent:
            self.coordinator.receive(where, reply, 0.0)
        assert self.coordinator.fresh is not None
        self.journal.keep(self.coordinator.fresh)
        self.coordinator.fresh.clear()

    def close(self) -> tuple[Tally, int]:
        """The round's tally and how many answered; the server ends with it."""
        (tally,) = self.coordinator.close(1.0)
        closing = self.coordinator.closing()
        self.journal.closed(self.number, closing)
        self.journal.close()
        return tally, closing.counts.answered


@pytest.mark.parametrize("clients", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_every_report_counts_once_after_restarts(clients: int, tmp_path: Path) -> None:
    """Test 19 with 20 clients: five times each, in any order, earlier rounds among them, and all of
    them again after a restart in mid-round."""
    rounds = 20
    generator, restarts, accepted = random.Random(19), 0, 0
    query = LocalQuery(
        Category("x", tuple(map(str, range(clients)))), GRR(0.01, k=clients), Cohort(0, clients)
    )
    earlier, digests = list[tuple[str, Reply]](), list[str | None]()
    for number in range(1, rounds + 1):
        silent, others = (
            generator.sample(range(clients), clients // 10),
            generator.choices(earlier, k=clients) if earlier else [],
        )
        sent = [
            _canary(number, client) for client in range(clients) if client not in silent
        ] * 5 + others
        generator.shuffle(sent)
        half, server = generator.randrange(len(sent)), Server(tmp_path, query)
        server.hear(sent[:half])
        if number % 3:
            server.journal.close()
            restarts, server = restarts + 1, Server(tmp_path, query)
            server.hear([*earlier, *sent[:half]])  # the broker delivers it all once more
        server.hear(sent[half:])
        tally, answered = server.close()
        assert set(tally.counts.ravel().tolist()) <= {0, 1}, number
        assert int(tally.counts.sum()) == answered == clients - len(silent)
        accepted, digests = accepted + answered, [*digests, server.coordinator.rounds[-1].digest]
        earlier += [_canary(number, client) for client in range(clients)]
    again = Server(tmp_path, query)
    again.hear(earlier)
    again.journal.close()
    assert [each.digest for each in Server(tmp_path, query).coordinator.rounds] == digests, (
        "nothing is added to a round that is closed"
    )
    print(
        f"test 19: {rounds * clients} cells all 0 or 1, {accepted} accepted, {rounds + restarts} "
        "restarts, everything delivered again"
    )


BROKERS = ("mosquitto", "embedded")
SGD = (
    f"local-sgd --d 2 --gamma 0.9 --alpha 0.9 --rounds {ROUNDS} --clients {CLIENTS} --seed 3 "
    "--quorum 1"
).split()


def _people(count: int, seed: int) -> Records:
    return (
        find_protocol("local-sgd")
        .from_settings({"d": "2", "gamma": "0.9", "alpha": "0.9", "rounds": str(ROUNDS)})
        .synthetic(count, seed)
        .batch(0, count)
    )


def _hosts(records: Records) -> list[tuple[str, ClientRole]]:
    each = CLIENTS // HOSTS_OF
    spans = [(index * each, (index + 1) * each) for index in range(HOSTS_OF)]
    return [
        (
            HOSTS,
            ClientRole(
                f"host-{low}", low, records.take(slice(low, high)), KeyedNoise(3), MemoryStore(1.0)
            ),
        )
        for low, high in spans
    ]


def _ran(
    url: str, folder: Path, run: str, kills: int, records: Records, keys: Path | None = None
) -> tuple[dict[str, Any], int, list[float]]:
    """The outcome of a run whose server is killed some times; the kills, and seconds from each new
    start to a request.

    With keys in a folder all is signed; only the first server gets their place.
    """
    watching = Watching(url, run, _hosts(records), _envelopes(keys, run) if keys else None)
    watching.start()
    generator, died, waited = random.Random(kills), 0, []
    signed = ("--key", "server.key", "--roster", "roster") if keys else ()
    words, where = (
        command(
            "server",
            *SGD,
            "--broker",
            url,
            "--run",
            run,
            "--journal",
            str(folder),
            "--json",
            *signed,
        ),
        keys,
    )
    while True:
        seen = len(watching.asked)
        server = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=where
        )
        if died < kills:
            waited.append(watching.wait_for_a_request(seen, 30.0))
            time.sleep(generator.uniform(0, 0.02))
            server.kill()
        out, err = server.communicate(timeout=60)
        if server.returncode != -signal.SIGKILL:
            assert server.returncode == 0, err
            watching.join(10)
            assert all(len(forms) == 1 for forms in watching.requests.values()), (
                "a round was asked in two ways"
            )
            return json.loads(out), died, waited
        died += 1
        words, where = (
            command("resume", run, "--journal", str(folder), "--broker", url, "--json"),
            None,
        )


def _envelopes(keys: Path, run: str) -> dict[str, Envelopes]:
    server = public_key(str(keys / "server.key.pub"))
    return {
        path.stem: Party.member(run, server, private_key(path)) for path in keys.glob("host-*.key")
    }


@needs_mosquitto
@pytest.mark.parametrize(
    ("kills", "kind"),
    [
        pytest.param(2, "mosquitto", marks=pytest.mark.long),
        *(pytest.param(50, kind, marks=pytest.mark.slow) for kind in BROKERS),
    ],
)
def test_a_server_that_is_killed_is_resumed(kills: int, kind: str, tmp_path: Path) -> None:
    """Test 20, SIGKILLs of `local-dp server` and `resume` in runs of 20 rounds and 50 clients;
    where there are many, it asks again within five seconds."""
    records, died, waits, run, runs = _people(CLIENTS, 3), 0, [0.0], 0, tmp_path / "runs"
    with a_broker(kind, tmp_path) as url:
        plain, _, _ = _ran(url, runs, "plain", 0, records)
        while died < kills:
            run += 1
            data, more, waited = _ran(url, runs, f"run-{run}", kills - died, records)
            assert data["result"] == plain["result"]
            assert [each["digest"] for each in data["rounds"]] == [
                each["digest"] for each in plain["rounds"]
            ]
            assert (
                data["clients"]["answered"],
                data["reconciliation"]["accepted_not_charged"],
            ) == (CLIENTS, 0)
            died, waits = died + more, waits + waited[1:]
    assert len(plain["rounds"]) == ROUNDS
    print(
        f"test 20: on {kind} {died} SIGKILLs of the server in {run} runs of {ROUNDS} rounds: the "
        f"same result bit for bit, asking again after {max(waits):.1f} s at most"
    )
    assert kills < 50 or max(waits) < 5


@pytest.mark.long
@needs_mosquitto
def test_a_signed_run_is_resumed_signed(tmp_path: Path) -> None:
    """A run with keys and a roster, whose server is killed twice: `resume`, started elsewhere
    without keys, signs and continues, bit for bit."""
    enrolled(tmp_path, *range(0, CLIENTS, CLIENTS // HOSTS_OF), clients=CLIENTS // HOSTS_OF)
    records = _people(CLIENTS, 3)
    with mosquitto(tmp_path) as broker:
        plain, _, _ = _ran(broker.url, tmp_path / "runs", "plain", 0, records)
        data, died, _ = _ran(broker.url, tmp_path / "runs", "signed", 2, records, tmp_path)
    assert (plain["signed"], data["signed"], data["clients"]["forged_messages"]) == (False, True, 0)
    assert data["result"] == plain["result"]
    assert [each["digest"] for each in data["rounds"]] == [
        each["digest"] for each in plain["rounds"]
    ]
    assert (
        data["clients"]["answered"],
        data["reconciliation"]["silent"],
        data["reconciliation"]["accepted_not_charged"],
    ) == (CLIENTS, 0, 0)
    print(
        f"test 20: {died} SIGKILLs of a server with keys: resumed signed, the same result bit for "
        "bit"
    )


def _paused(clients: int, seconds: float, kind: str) -> Any:
    return pytest.param(
        clients, seconds, kind, marks=pytest.mark.slow if clients > 300 else pytest.mark.long
    )


@needs_mosquitto
@pytest.mark.parametrize(
    ("clients", "seconds", "kind"),
    [
        _paused(300, 2.0, "mosquitto"),
        _paused(3000, 20.0, "mosquitto"),
        _paused(3000, 20.0, "embedded"),
    ],
)
def test_a_server_that_stands_still_loses_nothing(
    clients: int, seconds: float, kind: str, tmp_path: Path
) -> None:
    """Test 22."""
    members = [
        (
            client_group(index),
            ClientRole(f"client-{index}", index, yes_records(1), SystemNoise(), MemoryStore(1.0)),
        )
        for index in range(clients)
    ]
    with a_broker(kind, tmp_path) as url:
        watching = Watching(url, "stopped", members)
        watching.start()
        server = subprocess.Popen(
            command("server", "survey", "--clients", str(clients), "--broker", url, "--run",
            "stopped", "--deadline", "120", "--quorum", "1", "--json"),
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        watching.wait_for_a_request(0, 60.0)
        server.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        server.send_signal(signal.SIGCONT)
        data = json.loads(server.communicate(timeout=120)[0])
        watching.join(10)
    assert (
        data["clients"]["answered"],
        data["clients"]["conflicting"],
        data["reconciliation"]["accepted_not_charged"],
    ) == (clients, 0, 0)
    assert (data["reconciliation"]["silent"], watching.receipts) == (0, clients)
    print(
        f"test 22: on {kind} a server that stood still for {seconds:g} s while reports came: "
        f"{data['clients']['answered']} of {clients}, each with its receipt"
    )


def test_a_changed_run_is_not_resumed(tmp_path: Path) -> None:
    """A journal whose round was asked otherwise, as by another version, is refused: clients would
    see another request under the same round."""
    query = LocalQuery(Category("x", tuple("0123456789")), GRR(0.01, k=10), Cohort(0, 10))
    Server(tmp_path, query).journal.close()
    with pytest.raises(InputError, match="is not what it was when it was asked"):
        Server(
            tmp_path, LocalQuery(Category("y", tuple("0123456789")), GRR(0.01, k=10), Cohort(0, 10))
        )


def test_a_run_is_begun_once(tmp_path: Path) -> None:
    """A second server under a run's name is refused with what to do; so is a journal that somebody
    has open."""
    journal = Journal.begin(tmp_path, RUN, {"at": "now"})
    with pytest.raises(InputError, match="resume"):
        Journal.begin(tmp_path, RUN, {})
    with pytest.raises(InputError, match="another process has it open"):
        Journal.open(tmp_path, RUN)
    journal.close()
    assert Journal.open(tmp_path, RUN).began == {"at": "now"}


def test_a_run_is_resumed_with_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"run": RUN, "broker": "mqtt://localhost", "key": "server.key", "roster": "roster"}
    Journal.begin(tmp_path, RUN, {"options": options, "protocol": "survey", "given": {}}).close()
    keys: list[tuple[Path | None, Path | None]] = []
    monkeypatch.setattr(
        join.Server, "__call__", lambda server, *_: keys.append((server.key, server.roster))
    )
    join.Resume(RUN, tmp_path)()
    assert keys == [(Path("server.key"), Path("roster"))]
