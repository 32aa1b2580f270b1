"""Acceptance tests 27 and 29 in full: a flood beside an honest round, and a soak through a bad network, on both brokers. Slow; each prints its figure."""

import asyncio
import os
import random
import resource
import statistics
import threading
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from local_dp.bus.address import Address
from local_dp.bus.mqtt import MqttBus
from local_dp.experiments.tiers.outcome import Outcome
from local_dp.experiments.tiers.over_bus import over_bus
from local_dp.experiments.tiers.settings import OnProgress, Randomness, Settings
from local_dp.interaction import Adaptive
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.surveys.survey import Survey
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.progress import Progress, RoundProgress
from local_dp.server.quorum import Terms
from local_dp.tallies import Estimate, Tally
from tests.support.adversaries.flooding import flood
from tests.support.figures import figure
from tests.support.runs.brokers import a_broker, needs_mosquitto

BLOCK, BLOCKS = 10, 7  # rounds; every second block is flooded


def _run(clients: int, rounds: int, url: str, look: OnProgress = lambda progress: None, quorum: float = 1.0) -> Outcome:
    """A run in which each of these client processes is asked in each of so many rounds."""
    protocol = Survey(question="yes == 1")
    query = LocalQuery(Question("yes == 1"), BinaryRR(20.0 / rounds), Cohort(0, clients))

    def play() -> Generator[tuple[LocalQuery, ...], tuple[Tally, ...], Estimate]:
        for _ in range(rounds - 1):
            yield (query,)
        (tally,) = yield (query,)
        return query.randomizer.estimate(tally)

    how: dict[str, Any] = {"tier": "processes", "broker": url, "terms": Terms(60.0, quorum), "played": Adaptive(play)}
    run = Settings(protocol, protocol.synthetic(clients, 1), 20.0, Randomness(1, False), **how)
    return asyncio.run(over_bus(run, look))


def _beside_a_flood(url: str, clients: int, flooder: str) -> tuple[float, float, Outcome]:
    """The median seconds of a round of some 50 honest clients, without and with a flood under the topic of `flooder`, and the outcome."""

    def look(progress: Progress) -> None:
        if isinstance(progress, RoundProgress):
            flooded.flow((progress.round - 1) // BLOCK % 2 == 1)

    with flood(url, f"ldp/1/run-ffffffff/rep/g0/{flooder}", 20_000) as flooded:
        outcome = _run(clients, BLOCK * BLOCKS, url, look, 0.9)
    blocks = [place // BLOCK for place in range(BLOCK * BLOCKS)]
    calm, rough = (
        [each for each, block in zip(outcome.seconds, blocks, strict=True) if block and block % 2 == odd] for odd in (0, 1)
    )  # warm from the second on
    return statistics.median(calm), statistics.median(rough), outcome


@needs_mosquitto
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mosquitto", "embedded"])
@pytest.mark.parametrize("flooder", ["a member", "a stranger"])
def test_a_flood_does_not_slow_an_honest_round(flooder: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test 27: one client sends 20,000 messages a second, under a member's topic or a stranger's: rounds of 50 honest clients take at most twice as long."""
    monkeypatch.setattr("secrets.token_hex", lambda size: "f" * 2 * size)  # the run's name is known to the one that floods
    members = 51 if flooder == "a member" else 50
    with a_broker(kind, tmp_path, "allow_anonymous true", "set_tcp_nodelay true") as url:
        calm, rough, outcome = _beside_a_flood(url, members, "client-50")
    figure(
        27,
        f"on {kind} {flooder} sends 20,000 messages a second: a round of 50 takes {1e3 * rough:.0f} ms, without that {1e3 * calm:.0f} ms, the slowest of "
        f"{len(outcome.seconds)} {max(outcome.seconds):.1f} s; {outcome.rejected + outcome.bus.forged if outcome.bus else 0:,} messages of it were received",
    )
    assert outcome.counts.answered >= 50 * len(outcome.seconds)
    assert list(outcome.bus.silenced if outcome.bus else ()) == ["client-50" if flooder == "a member" else ""]
    assert rough <= 2 * calm


class Proxy:
    """A network that delays each piece by 50 ms, more or less by as much, and cuts a share of the connections now and then."""

    def __init__(self, port: int, seed: int) -> None:
        self.port, self.chance, self.cut = port, random.Random(seed), 0

    async def serve(self) -> int:
        server = await asyncio.start_server(self._join, "127.0.0.1", 0, backlog=512)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        ways = [asyncio.create_task(self._carry(reader, back)), asyncio.create_task(self._carry(there, writer))]
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
    """Test 29: 100 client processes and 200 rounds through a bad network, one reply in twenty said twice: all counted once, descriptors and memory flat."""
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
        broker = Address.parse(url)
        loop, proxy = asyncio.new_event_loop(), Proxy(broker.port, 1)
        threading.Thread(target=loop.run_forever, daemon=True).start()
        port = asyncio.run_coroutine_threadsafe(proxy.serve(), loop).result()
        outcome = _run(100, 200, url.replace(f":{broker.port}", f":{port}"), look)
        loop.call_soon_threadsafe(loop.stop)
    grown = (memory[-1] - memory[len(memory) // 2]) / 1024 / (outcome.counts.answered / 2000)
    print(
        f"test 29: on {kind} {sum(outcome.seconds):.0f} s, {outcome.counts.answered} reports, {proxy.cut} connections cut, {outcome.counts.duplicate} repeated"
        f"; open files {files[0]} to {files[-1]}, {grown:.2f} MB more per 1,000 reports"
    )
    assert outcome.counts.answered == outcome.counts.asked
    assert sum(outcome.seconds) < 600
    assert files[-1] <= files[0] + 5
    assert grown < 1.0
