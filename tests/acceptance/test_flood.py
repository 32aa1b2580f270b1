"""Acceptance tests 27 and 29: a flood costs bounded work, hides no honest word and holds up no
round; a soak through a bad network leaks nothing."""

import asyncio
import os
import random
import resource
import statistics
import threading
from collections.abc import Coroutine, Generator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from local_dp.bus.address import Address
from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.bus.mqtt import MqttBus
from local_dp.interaction import Adaptive
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.populations.finite import Rows
from local_dp.protocols.surveys.survey import Survey
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.sealing import UNSIGNED, Party, new_key, public
from local_dp.server import remote
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import BURST, EACH, LEAVES, OPENED_BURST, PAUSE, Place, Roster, filters
from local_dp.server.progress import Progress, RoundProgress, Turnout
from local_dp.server.quorum import GRACE, Terms
from local_dp.server.remote import RemoteOracle
from local_dp.simulation.outcome import Outcome
from local_dp.simulation.over_bus import over_bus
from local_dp.simulation.settings import OnProgress, Randomness, Settings
from local_dp.tallies import Estimate, Tally
from local_dp.wire import Hello, Refusal, Reply, Side, decode, encode, topic
from tests.support.adversaries.flooding import flood
from tests.support.figures import figure
from tests.support.inputs.builders import (
    RUN,
    SEED,
    play_in_memory,
    request,
    role,
    survey_query,
    yes_records,
)
from tests.support.runs.brokers import a_broker, by_way_of, line_to, needs_mosquitto
from tests.support.runs.virtual_time import run_virtually


def test_a_flood_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """One member of 50 and a stranger send 20,000 messages: no more of them are decoded than one
    that is honest could have had to send."""
    read = [0]

    def counting(payload: bytes, side: Side) -> Any:
        read[0] += 1
        return decode(payload, side)

    monkeypatch.setattr(remote, "decode", counting)
    coordinator = Coordinator(RUN, 50, SEED, 1.0, Terms(20.0))
    oracle = RemoteOracle(MemoryBroker().join([]), coordinator)

    def deliver(leaf: str, client: int, payload: bytes) -> bool:
        return oracle._deliver(Delivery(topic(RUN, leaf, "g0", f"client-{client}"), payload))

    async def play() -> int:
        for client in range(50):
            deliver(
                "hello",
                client,
                encode(
                    Hello(
                        run=RUN,
                        member=f"client-{client}",
                        start=client,
                        stop=client + 1,
                        private=False,
                    )
                ),
            )
        coordinator.open((survey_query(50),), 0.0)
        before = read[0]
        answer = encode(
            role(yes_records(1), start=7, member="client-7").handle(request(survey_query(50)))[0]
        )
        for _ in range(10_000):
            deliver("rep", 7, answer)
            deliver("rep", 99, answer)  # of a stranger
        return read[0] - before

    flooded = asyncio.run(play())
    print(
        f"test 27: of 20,000 messages of one flood, {flooded} are decoded; "
        f"{coordinator.rejected:,} are counted as rejected"
    )
    assert flooded <= BURST + EACH + 2
    assert (coordinator.rejected, coordinator.counts.answered) == (20_000 - flooded, 1)


def test_a_flood_under_a_name_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under an honest member's name come 20,000 messages that it has not signed: few are verified,
    and its own message a second later is read."""
    verified = [0]
    keys = {name: new_key() for name in ("server", "client-7")}
    roster = Roster([Place("client-7", "g0", 7, 8, public(keys["client-7"]))])
    opened = Party.open

    def counting(party: Party, where: str, envelope: bytes) -> bytes:
        verified[0] += roster.speaker(where) is not None
        return opened(party, where, envelope)

    monkeypatch.setattr(Party, "open", counting)
    member = Party.member(RUN, public(keys["server"]), keys["client-7"])
    where, stranger = topic(RUN, "hello", "g0", "client-7"), topic(RUN, "rep", "g0", "client-99")
    hello = encode(Hello(run=RUN, member="client-7", start=7, stop=8, private=False))
    coordinator = Coordinator(RUN, 50, SEED, 1.0, Terms(20.0), roster)
    broker = MemoryBroker()

    async def play() -> None:
        oracle = RemoteOracle(
            broker.join([where, stranger]),
            coordinator,
            envelopes=Party.server(RUN, keys["server"], roster.speaker),
        )
        serving = asyncio.create_task(oracle.serve(1.0))
        for _ in range(10_000):
            broker.route(Delivery(where, bytes(64) + hello))
            broker.route(Delivery(stranger, bytes(64) + hello))
        await asyncio.sleep(PAUSE + 0.1)
        assert coordinator.members.present == 0
        broker.route(Delivery(where, member.seal(where, hello)))
        await asyncio.sleep(1.0)
        serving.cancel()
        counted = oracle.bus.forged + coordinator.rejected
        figure(
            27,
            (
                f"of 20,000 forged messages of one flood {verified[0] - 1:,} signatures are "
                f"verified; {counted:,} are counted"
            ),
        )
        assert counted == 20_000

    run_virtually(play())
    assert coordinator.members.present == 1
    assert verified[0] <= OPENED_BURST + 2


T = TypeVar("T")


class Flooded:
    """A server over a bus in memory whose 50 clients are played here, with keys or without."""

    def __init__(self, signed: bool) -> None:
        self.keys = {name: new_key() for name in ("server", *map(_named, range(50)))}
        places = [
            Place(_named(index), "g0", index, index + 1, public(self.keys[_named(index)]))
            for index in range(50)
        ]
        self.roster = Roster(places) if signed else None
        self.coordinator = Coordinator(RUN, 50, SEED, 1.0, Terms(60.0, 0.9), self.roster)
        self.broker = MemoryBroker()
        self.bus = self.broker.join(filters(RUN))
        envelopes = (
            Party.server(RUN, self.keys["server"], self.roster.speaker) if self.roster else UNSIGNED
        )
        self.oracle = RemoteOracle(self.bus, self.coordinator, envelopes=envelopes)
        self.sealed = self.oracle.bus
        self.serving = asyncio.create_task(self.oracle.serve(1.0))

    async def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        await asyncio.sleep(0.1)
        task = asyncio.create_task(work)
        await asyncio.sleep(0.1)
        return task

    def say(self, leaf: str, index: int, message: Hello | Reply | Refusal) -> None:
        where, name = topic(RUN, leaf, "g0", _named(index)), _named(index)
        envelopes = (
            UNSIGNED
            if self.roster is None
            else Party.member(RUN, public(self.keys["server"]), self.keys[name])
        )
        self.broker.route(Delivery(where, envelopes.seal(where, encode(message))))

    def hello(self, *indices: int) -> None:
        for index in indices:
            self.say(
                "hello",
                index,
                Hello(run=RUN, member=_named(index), start=index, stop=index + 1, private=False),
            )

    def shout(self, index: int, times: int = 1200, leaf: str = "rep") -> None:
        """So many messages under a name, of which none is what it should be."""
        for _ in range(times):
            self.broker.route(Delivery(topic(RUN, leaf, "g0", _named(index)), bytes(100)))

    def heard(self) -> dict[str, set[int]]:
        """Whose topics of each kind are forwarded to the server."""
        return {
            leaf: {
                index
                for index in range(52)
                if self.bus.hears(topic(RUN, leaf, "g0", _named(index)))
            }
            for leaf in LEAVES
        }


def _named(index: int) -> str:
    return f"client-{index}"


def _all_of(clients: Iterable[int]) -> dict[str, set[int]]:
    return {leaf: set(clients) for leaf in LEAVES}


@pytest.mark.parametrize("signed", [True, pytest.param(False, marks=pytest.mark.long)])
def test_who_floods_is_not_forwarded_and_heard_again(signed: bool) -> None:
    """Its topics are left, and those of strangers; those of others stand. After a second they come
    back, after the next flood in four seconds."""

    async def play() -> None:
        run, others = Flooded(signed), set(range(50)) - {7}
        run.hello(*range(50))
        asking = await run.begin(run.oracle.collect((survey_query(50),)))
        assert run.heard()["rep"] == set(range(52))
        for pause in (1.0, 4.0):
            run.shout(7)
            await asyncio.sleep(0.1)
            assert run.heard() == _all_of(others)
            run.shout(7)  # it is not forwarded
            await asyncio.sleep(pause - 0.2)
            assert run.heard()["rep"] == others
            await asyncio.sleep(0.2)
            assert run.heard()["rep"] == others | {7}
        assert run.coordinator.listening.silenced == {"client-7": 2}
        assert run.coordinator.rejected + run.sealed.forged == 2400
        asking.cancel()

    run_virtually(play())


def test_who_floods_is_not_waited_for() -> None:
    async def play() -> Turnout:
        run = Flooded(True)
        run.hello(*range(50))
        asking = await run.begin(run.oracle.collect((survey_query(50),)))
        began = asyncio.get_running_loop().time()
        for index in sorted(set(range(50)) - {7}):
            run.say(
                "rep",
                index,
                role(yes_records(1), start=index, member=_named(index)).handle(
                    request(survey_query(50))
                )[0],
            )
        run.shout(7)
        counts = (await asking).counts
        assert asyncio.get_running_loop().time() - began < GRACE + 0.1
        return counts

    counts = run_virtually(play())
    assert (counts.answered, counts.missing) == (49, 1)


def test_strangers_are_shut_out() -> None:
    """A flood under a name that is in no roster costs the server nothing more, from then on; nobody
    of the roster is shut out, who has come or not."""

    async def play() -> None:
        run = Flooded(True)
        gathering = await run.begin(run.oracle.ready(30.0))
        run.hello(*range(10))
        run.shout(51)
        await asyncio.sleep(0.1)
        assert run.heard() == _all_of(range(50))
        assert run.coordinator.listening.silenced == {"": 1}
        gathering.cancel()

    run_virtually(play())


def test_a_newcomer_is_heard_beside_a_flood() -> None:
    """Without a roster, while a client is missing, all hellos are read; a newcomer's topics are
    added; when all are present, no others are read."""

    async def play() -> None:
        run = Flooded(False)
        gathering = await run.begin(run.oracle.ready(30.0))
        run.hello(*range(40))
        run.shout(51)
        await asyncio.sleep(0.1)
        assert run.heard() == {
            "rep": set(range(40)),
            "hello": set(range(52)),
            "gone": set(range(40)),
        }
        run.hello(45)
        await asyncio.sleep(0.1)
        assert run.heard()["rep"] == {*range(40), 45}
        run.hello(*range(50))
        await gathering
        asking = await run.begin(run.oracle.collect((survey_query(50),)))
        assert run.heard() == _all_of(range(50))
        asking.cancel()

    run_virtually(play())


def test_an_honest_round_is_read_whole() -> None:
    """The ceiling is above what an honest member has to say: a round whose every message comes five
    times loses none."""
    population = Rows(yes_records(40))
    protocol = Survey(question="yes == 1")
    _, coordinator = play_in_memory(
        protocol.algorithm(1.0, 40),
        population,
        40,
        MemoryBroker(lambda delivery: 5),
        as_processes=True,
    )
    assert (coordinator.counts.answered, coordinator.counts.missing, coordinator.rejected) == (
        40,
        0,
        0,
    )


BLOCK, BLOCKS = 10, 7  # rounds; every second block is flooded


def _run(
    clients: int,
    rounds: int,
    url: str,
    look: OnProgress = lambda progress: None,
    quorum: float = 1.0,
) -> Outcome:
    """A run in which each of these client processes is asked in each of so many rounds."""
    protocol = Survey(question="yes == 1")
    query = LocalQuery(Question("yes == 1"), BinaryRR(20.0 / rounds), Cohort(0, clients))

    def play() -> Generator[tuple[LocalQuery, ...], tuple[Tally, ...], Estimate]:
        for _ in range(rounds - 1):
            yield (query,)
        (tally,) = yield (query,)
        return query.randomizer.estimate(tally)

    how: dict[str, Any] = {
        "tier": "processes",
        "broker": url,
        "terms": Terms(60.0, quorum),
        "played": Adaptive(play),
    }
    run = Settings(protocol, protocol.synthetic(clients, 1), 20.0, Randomness(1, False), **how)
    return asyncio.run(over_bus(run, look))


def _beside_a_flood(url: str, clients: int, flooder: str) -> tuple[float, float, Outcome]:
    """The median seconds of a round of some 50 honest clients, without and with a flood under the
    topic of `flooder`, and the outcome."""

    def look(progress: Progress) -> None:
        if isinstance(progress, RoundProgress):
            flooded.flow((progress.round - 1) // BLOCK % 2 == 1)

    with flood(url, f"ldp/1/run-ffffffff/rep/g0/{flooder}", 20_000) as flooded:
        outcome = _run(clients, BLOCK * BLOCKS, url, look, 0.9)
    blocks = [place // BLOCK for place in range(BLOCK * BLOCKS)]
    # warm from the second on
    calm, rough = (
        [
            each
            for each, block in zip(outcome.seconds, blocks, strict=True)
            if block and block % 2 == odd
        ]
        for odd in (0, 1)
    )
    return statistics.median(calm), statistics.median(rough), outcome


@needs_mosquitto
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mosquitto", "embedded"])
@pytest.mark.parametrize("flooder", ["a member", "a stranger"])
def test_a_flood_does_not_slow_an_honest_round(
    flooder: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test 27: one client sends 20,000 messages a second, under a member's topic or a stranger's:
    rounds of 50 honest clients take at most twice as long."""
    # the run's name is known to the one that floods
    monkeypatch.setattr("secrets.token_hex", lambda size: "f" * 2 * size)
    members = 51 if flooder == "a member" else 50
    with a_broker(kind, tmp_path, "allow_anonymous true", "set_tcp_nodelay true") as url:
        calm, rough, outcome = _beside_a_flood(url, members, "client-50")
    figure(
        27,
        f"on {kind} {flooder} sends 20,000 messages a second: a round of 50 takes "
        f"{1e3 * rough:.0f} ms, without that {1e3 * calm:.0f} ms, the slowest of "
        f"{len(outcome.seconds)} {max(outcome.seconds):.1f} s; "
        f"{outcome.rejected + outcome.bus.forged if outcome.bus else 0:,} messages of it were "
        "received",
    )
    assert outcome.counts.answered >= 50 * len(outcome.seconds)
    assert list(outcome.bus.silenced if outcome.bus else ()) == [
        "client-50" if flooder == "a member" else ""
    ]
    assert rough <= 2 * calm


class Proxy:
    """A network that delays each piece by 50 ms, more or less by as much, and cuts a share of the
    connections now and then."""

    def __init__(self, broker: Address, seed: int) -> None:
        self.broker, self.chance, self.cut = broker, random.Random(seed), 0

    async def serve(self) -> int:
        server = await asyncio.start_server(self._join, "127.0.0.1", 0, backlog=512)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(sock=line_to(self.broker))
        ways = [
            asyncio.create_task(self._carry(reader, back)),
            asyncio.create_task(self._carry(there, writer)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for each in ways:
            each.cancel()
        for end in (writer, back):
            with suppress(OSError):
                end.transport.abort()

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                await asyncio.sleep(self.chance.uniform(0.0, 0.1))
                if self.chance.random() < 0.01:
                    self.cut += 1
                    return
                target.write(data)
                await target.drain()


@needs_mosquitto
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mosquitto", "embedded"])
def test_a_soak_leaks_nothing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test 29: 100 client processes and 200 rounds through a bad network, one reply in twenty said
    twice: all counted once, descriptors and memory flat."""
    chance, files, memory = random.Random(3), list[int](), list[int]()
    publish = MqttBus.publish

    async def twice(bus: MqttBus, topic: str, payload: bytes) -> None:
        for _ in range(1 + (chance.random() < 0.05)):
            await publish(bus, topic, payload)

    def look(progress: Progress) -> None:
        if isinstance(progress, RoundProgress) and progress.answered == progress.asked:
            files.append(len(os.listdir("/proc/self/fd")))
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    monkeypatch.setattr(MqttBus, "publish", twice)
    with a_broker(kind, tmp_path, "allow_anonymous true", "set_tcp_nodelay true") as url:
        loop, proxy = asyncio.new_event_loop(), Proxy(Address.parse(url), 1)
        threading.Thread(target=loop.run_forever, daemon=True).start()
        port = asyncio.run_coroutine_threadsafe(proxy.serve(), loop).result()
        outcome = _run(100, 200, by_way_of(port, url), look)
        loop.call_soon_threadsafe(loop.stop)
    grown = (memory[-1] - memory[len(memory) // 2]) / 1024 / (outcome.counts.answered / 2000)
    print(
        f"test 29: on {kind} {sum(outcome.seconds):.0f} s, {outcome.counts.answered} reports, "
        f"{proxy.cut} connections cut, {outcome.counts.duplicate} repeated"
        f"; open files {files[0]} to {files[-1]}, {grown:.2f} MB more per 1,000 reports"
    )
    assert outcome.counts.answered == outcome.counts.asked
    assert sum(outcome.seconds) < 600
    assert files[-1] <= files[0] + 5
    assert grown < 1.0
