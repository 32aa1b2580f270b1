"""A run with receivers: the server's results are those of one process, whatever dies; a server that
missed its quorum goes on; it costs hardly more."""

import asyncio
import json
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from local_dp.bus.children import environment
from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import GROUP_SIZE, client_group, filters, serve
from local_dp.clients.role import ClientRole
from local_dp.errors import InputError, QuorumError
from local_dp.interaction import run_async
from local_dp.protocols.learning.sgd import LocalSGD
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.surveys.survey import Survey
from local_dp.server import relay
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Share
from local_dp.server.members import filters as server_filters
from local_dp.server.quorum import Terms
from local_dp.server.receiver import GROUP, Receiver, Shared, ShareJournal
from local_dp.server.remote import Journal, RemoteOracle, path_of
from local_dp.simulation.receivers import shares
from local_dp.wire import EVERYBODY, behind, decode, topic
from tests.support.inputs.builders import RUN, SEED, in_population, role, small
from tests.support.runs.brokers import configured, free_port, mosquitto, needs_mosquitto
from tests.support.runs.certificates import deployed
from tests.support.runs.command import command, local_dp, outcome_of
from tests.support.runs.crowd import Crowd, crowd
from tests.support.runs.mortal import KilledError, Mortal
from tests.support.runs.virtual_time import beside, run_virtually

CLIENTS = 4 * GROUP_SIZE - 100
GROUPS = [client_group(start) for start in range(0, CLIENTS, GROUP_SIZE)]


class Town:
    """In memory: a member for each group, two receivers, of which the first dies at its `point`-th
    step and is started again, and their server."""

    def __init__(
        self, folder: Path, point: int = 0, protocol: LocalProtocol[Any] | None = None
    ) -> None:
        self.folder, self.broker, self.point, self.deaths = folder, MemoryBroker(), point, 0
        self.to_all: list[str] = []  # what a receiver says to the members of others too
        self.broker.fate = self._noted
        self.protocol = protocol or small("local-sgd")
        self.population = self.protocol.synthetic(CLIENTS, SEED)

    def _noted(self, delivery: Delivery) -> int:
        if delivery.topic == topic(RUN, "req", EVERYBODY):
            self.to_all.append(type(decode(delivery.payload)).__name__)
        return 1

    def member(self, group: str) -> Any:
        start = GROUP_SIZE * GROUPS.index(group)
        records = self.population.batch(start, min(CLIENTS, start + GROUP_SIZE))
        member: ClientRole = role(records, start, member=f"m-{group}")
        return serve(member, self.broker.join(filters(RUN, group)), RUN, group)

    async def receiver(self, name: str, start: int, stop: int) -> Receiver:
        """It plays until the run is over, by as many processes as it takes."""
        share = Share(start, stop, tuple(client_group(at) for at in range(start, stop, GROUP_SIZE)))
        while True:
            front, back = (
                self.broker.join(server_filters(RUN, share.groups)),
                self.broker.join(relay.filters(RUN, GROUP)),
            )
            journal = ShareJournal.of(self.folder / name, RUN)
            coordinator = Coordinator(RUN, stop, SEED, 1.0, Shared(20.0), share=share)
            mortal = name == "receiver-0" and self.deaths == 0 and self.point
            held: Any = (
                (Mortal(front), Mortal(journal), Mortal(back)) if mortal else (front, journal, back)
            )
            if mortal:
                Mortal.left = self.point
            receiver = Receiver(
                RemoteOracle(held[0], coordinator, journal=held[1]),
                held[2],
                name,
                held[1],
                again=name == "receiver-0" and self.deaths > 0,
            )
            try:
                await receiver.serve(5.0)
                return receiver
            except KilledError:
                self.deaths += 1
            finally:
                for bus in (front, back):
                    self.broker.buses.remove(bus)
                journal._log._held.close()  # as the kernel does for a killed process

    async def server(self, quorum: float = 1.0) -> Coordinator:
        folder = self.folder / "server"
        journal = (
            Journal.open(folder, RUN)
            if path_of(folder, RUN).exists()
            else Journal.begin(folder, RUN, {})
        )
        bus, coordinator = (
            self.broker.join(server_filters(behind(RUN))),
            Coordinator(behind(RUN), CLIENTS, SEED, 1.0, Terms(80.0, quorum, 80.0)),
        )
        oracle = RemoteOracle(bus, coordinator, journal=journal)
        spans = shares(CLIENTS, 2)
        try:
            async with beside(
                oracle.serve(1.0),
                *(self.receiver(f"receiver-{at}", *span) for at, span in enumerate(spans)),
            ) as (_, *receivers):
                await oracle.ready(20.0)
                await run_async(self.protocol.algorithm(1.0, CLIENTS), oracle)
                await oracle.end(1.0)
                self.records = [(await receiver).record() for receiver in receivers]
                return coordinator
        finally:
            journal.close()
            self.broker.buses.remove(bus)

    def check(self, coordinator: Coordinator) -> None:
        """Each report is counted once, in one share, and each member agrees."""
        assert self.to_all == []
        assert [each.digest for each in coordinator.rounds] == in_population(
            self.protocol.algorithm(1.0, CLIENTS), self.population
        )[1]
        assert (coordinator.counts.answered, coordinator.counts.conflicting) == (CLIENTS, 0)
        for record in self.records:
            assert record["reconciliation"]["rounds"]
            assert all(each["agree"] for each in record["reconciliation"]["rounds"])
            assert (record["reconciliation"]["silent"], record["counts"]["missing"]) == (0, 0)


async def _play(town: Town) -> None:
    async with beside(*map(town.member, GROUPS)):
        town.check(await town.server())
    assert town.point or asyncio.get_running_loop().time() < 20.0, "no round lasts to its deadline"


@pytest.mark.parametrize(
    "points",
    [(0, 5, 23, 44), pytest.param(range(1, 70), marks=pytest.mark.long)],
    ids=["some", "each"],
)
def test_a_receiver_that_dies_loses_nothing(points: Any, tmp_path: Path) -> None:
    """Killed before or after any step of its journal and of its buses: the digests are those of the
    population tier, and each report is counted once."""
    deaths = 0
    for point in points:
        town = Town(tmp_path / str(point), point)
        run_virtually(_play(town))
        deaths += town.deaths
    assert deaths >= 0.8 * len([point for point in points if point])


def test_a_missed_quorum_is_resumed_with_receivers(tmp_path: Path) -> None:
    """The last group is absent, and the run ends below its quorum; then it comes, a new server and
    new receivers go on, and the digests are the uncut run's."""
    town = Town(tmp_path)

    async def play() -> None:
        async with beside(*map(town.member, GROUPS[:-1])):
            with pytest.raises(QuorumError):
                await town.server()
            async with beside(town.member(GROUPS[-1])):
                town.check(await town.server())

    run_virtually(play())


def test_the_server_judges_all_shares_together(tmp_path: Path) -> None:
    """The second share has five answers of eight, all together five of six: that is a quorum of
    0.8."""
    town = Town(tmp_path, protocol=Survey())

    async def play() -> Coordinator:
        async with beside(*map(town.member, GROUPS[:-1])):
            return await town.server(0.8)

    counts = run_virtually(play()).counts
    assert (counts.answered, counts.missing) == (CLIENTS - 150, 150)


def test_shares_are_whole_groups() -> None:
    """They cover all clients once, and there are no more of them than groups."""
    for clients, receivers in ((10_000, 4), (1_100, 3), (250, 1)):
        spans = shares(clients, receivers)
        assert [span[0] for span in spans] == [0, *(span[1] for span in spans[:-1])]
        assert spans[-1][1] == clients
        assert all(start % GROUP_SIZE == 0 for start, _ in spans)
    with pytest.raises(InputError, match="receivers"):
        shares(250, 2)


MANY, RECEIVERS = 10_000, (1, 2, 4)


@contextmanager
def _served(
    url: str, folder: Path, members: Crowd, receivers: int, *protocol: str
) -> Iterator["subprocess.Popen[str]"]:
    """A server whose receivers have called the roll."""
    words = (
        *protocol,
        "--broker",
        url,
        "--run",
        members.run,
        "--clients",
        str(MANY),
        "--seed",
        "3",
        "--receivers",
        str(receivers),
    )
    terms = ("--deadline", "120", "--quorum", "1", "--journal", str(folder), "--json")
    with subprocess.Popen(
        command("server", *words, *terms),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as server:
        try:
            assert members.called.wait(60.0)
            yield server
        finally:
            for process in (
                (*psutil.Process(server.pid).children(), server) if server.poll() is None else ()
            ):
                process.kill()


def _as_in_memory(output: str, *protocol: str, least: int = MANY) -> None:
    """Each of the members counted once in all rounds; of so many at least the account is there,
    charged once, and in agreement."""
    data, alone = (
        json.loads(output),
        outcome_of(*protocol, "--tier", "population", "--clients", str(MANY), "--seed", "3"),
    )
    assert [each["digest"] for each in data["rounds"]] == [
        each["digest"] for each in alone["rounds"]
    ]
    assert (data["clients"]["answered"], data["clients"]["conflicting"]) == (
        alone["clients"]["answered"],
        0,
    )
    accounts = data["reconciliation"]
    assert least <= accounts["members"] - accounts["silent"] <= MANY
    assert [each for each in accounts["rounds"] if not each["agree"]] == []


def _spent(server: "subprocess.Popen[str]") -> float:
    """The processor time of a server and its receivers in seconds, until it ends."""
    processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
    before = spent = [sum(process.cpu_times()[:2]) for process in processes]
    while server.poll() is None:
        for at, process in enumerate(processes):
            try:
                spent = [*spent[:at], sum(process.cpu_times()[:2]), *spent[at + 1 :]]
            except psutil.Error:  # it has ended
                continue
        time.sleep(0.02)
    return float(sum(spent) - sum(before))


@pytest.mark.slow
@needs_mosquitto
def test_receivers_cost_hardly_more_than_one(tmp_path: Path) -> None:
    """Of two and four receivers, with the coordinator, a member takes at most 1.3 times the
    processor time that it takes of one."""
    seconds = {}
    with mosquitto(tmp_path) as broker:
        for receivers in RECEIVERS:
            with (
                crowd(broker.url, f"cost-{receivers}", Survey().synthetic(MANY, 3), 3) as members,
                _served(broker.url, tmp_path, members, receivers, "survey") as server,
            ):
                members.join()
                seconds[receivers] = _spent(server)
                assert server.stdout is not None
                _as_in_memory(server.stdout.read(), "survey")
    print(
        {receivers: f"{1e6 * spent / MANY:.0f} us a member" for receivers, spent in seconds.items()}
    )
    assert max(seconds.values()) <= 1.3 * seconds[1]


LEARNING = ("local-sgd", "--d", "2", "--gamma", "0.9", "--alpha", "0.9", "--rounds", "8")


def _killed_one(server: "subprocess.Popen[str]", generator: random.Random) -> bool:
    """Whether there was one to kill."""
    with suppress(psutil.Error, IndexError):
        generator.choice(
            [
                child
                for child in psutil.Process(server.pid).children()
                if "local_dp.server.receiver" in child.cmdline()
            ]
        ).kill()
        return True
    return False


@pytest.mark.slow
@needs_mosquitto
def test_fifty_kills_of_receivers_lose_nothing(tmp_path: Path) -> None:
    """SIGKILL at random moments, by two and by four receivers in turn: the digests are the
    population tier's, and every report is counted and charged once.

    A receiver that dies as the run ends takes the accounts of its members along, so those of one
    share may be missing.
    """
    generator, kills, runs = random.Random(34), 0, 0
    protocol: LocalProtocol[Any] = LocalSGD(d=2, gamma=0.9, alpha=0.9, rounds=8)
    with mosquitto(tmp_path) as broker:
        while kills < 50:
            runs += 1
            receivers = 2 + 2 * (runs % 2)
            with (
                crowd(broker.url, f"kill-{runs}", protocol.synthetic(MANY, 3), 3) as members,
                _served(broker.url, tmp_path, members, receivers, *LEARNING) as server,
            ):
                members.join()
                while server.poll() is None:
                    kills += not members.over.is_set() and _killed_one(server, generator)
                    try:
                        output, errors = server.communicate(timeout=generator.uniform(0.5, 4.0))
                    except subprocess.TimeoutExpired:
                        continue
                assert server.returncode == 0, errors
                _as_in_memory(output, *LEARNING, least=MANY - MANY // receivers)
    print(f"{kills} kills in {runs} runs")


@pytest.mark.long
@needs_mosquitto
def test_receivers_join_the_shipped_broker(tmp_path: Path) -> None:
    """TLS, access rules, signatures: each receiver has a certificate of its own, and one client of
    each share is counted. Without certificates it is a line."""
    folder, port, roster = tmp_path / "broker", free_port(), str(tmp_path / "roster")
    ids = (3, GROUP_SIZE + 7)
    for name in ("server", *(f"client-{at}" for at in ids)):
        assert local_dp("keys", "create", str(tmp_path / f"{name}.key")).returncode == 0
    for at in ids:
        assert (
            local_dp(
                "keys", "enrol", roster, str(tmp_path / f"client-{at}.key.pub"), "--index", str(at)
            ).returncode
            == 0
        )
    config = deployed(
        folder, port, [f"client-{at}" for at in ids], ("server", "receiver-0", "receiver-1")
    )

    def joined(role: str, name: str, *words: str) -> list[str]:
        url = f"mqtts://localhost:{port}?ca={folder / 'ca.crt'}&cert={folder / name}.pem"
        return command(
            role,
            "survey",
            "--seed",
            "3",
            "--broker",
            url,
            "--run",
            "tls",
            "--key",
            str(tmp_path / f"{name}.key"),
            *words,
        )

    asking = (
        "--clients",
        str(2 * GROUP_SIZE),
        "--joining",
        "3",
        "--quorum",
        "0.004",
        "--roster",
        roster,
        "--journal",
        str(tmp_path),
        "--json",
    )
    with configured(config, port):
        clients = [
            subprocess.Popen(
                joined(
                    "client",
                    f"client-{at}",
                    "--index",
                    str(at),
                    "--server-key",
                    str(tmp_path / "server.key.pub"),
                ),
                env=environment(),
            )
            for at in ids
        ]
        words = joined("server", "server", *asking, "--receivers")
        done = subprocess.run(
            [*words, "2"],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert [client.wait(20) for client in clients] == [0, 0]
        (folder / "receiver-1.pem").unlink()
        again = ["other" if word == "tls" else word for word in words]
        refused = subprocess.run(
            [*again, "2"],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
            check=False,
        )
    data = json.loads(done.stdout)
    assert (data["clients"]["answered"], data["reconciliation"]["members"]) == (2, 2)
    assert refused.returncode == 2
    assert "there is no certificate" in refused.stderr
