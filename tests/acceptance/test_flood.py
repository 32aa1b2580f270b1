"""P6: a flood costs bounded work, hides no honest word and holds up no round."""

import asyncio
from typing import Any

import pytest

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.populations.finite import Rows
from local_dp.protocols.surveys.survey import Survey
from local_dp.sealing import Party, new_key, public
from local_dp.server import remote
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import BURST, EACH, OPENED_BURST, PAUSE, Place, Roster, filters
from local_dp.server.quorum import GRACE, Terms
from local_dp.server.remote import RemoteOracle
from local_dp.wire import Hello, Side, decode, encode, topic
from tests.support.inputs.builders import (
    RUN,
    SEED,
    play_in_memory,
    request,
    role,
    survey_query,
    yes_records,
)
from tests.support.runs.virtual_time import run_virtually


def hello_of(client: int) -> bytes:
    return encode(
        Hello(run=RUN, member=f"client-{client}", start=client, stop=client + 1, private=False)
    )


def answer_of(client: int) -> bytes:
    member = role(yes_records(1), start=client, member=f"client-{client}")
    return encode(member.handle(request(survey_query(50)))[0])


def test_a_flood_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """One member of 50 and a stranger send 400 messages: no more of them are decoded than one that
    is honest could have had to send."""
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
            deliver("hello", client, hello_of(client))
        coordinator.open((survey_query(50),), 0.0)
        before = read[0]
        answer = answer_of(7)
        for _ in range(200):
            deliver("rep", 7, answer)
            deliver("rep", 99, answer)  # of a stranger
        return read[0] - before

    counts = asyncio.run(play())
    assert counts <= BURST + EACH + 2
    assert (coordinator.rejected, coordinator.counts.answered) == (400 - counts, 1)


def test_a_flood_under_a_name_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under an honest member's name come 2,000 messages that it has not signed: few are verified,
    and its own message a second later is read."""
    count = [0]
    keys = {name: new_key() for name in ("server", "client-7")}
    roster = Roster([Place("client-7", "g0", 7, 8, public(keys["client-7"]))])
    original = Party.open

    def counting(party: Party, where: str, envelope: bytes) -> bytes:
        count[0] += roster.speaker(where) is not None
        return original(party, where, envelope)

    monkeypatch.setattr(Party, "open", counting)
    member = Party.member(RUN, public(keys["server"]), keys["client-7"])
    where = topic(RUN, "hello", "g0", "client-7")
    hello = hello_of(7)
    coordinator = Coordinator(RUN, 50, SEED, 1.0, Terms(20.0), roster)
    broker = MemoryBroker()

    async def play() -> None:
        oracle = RemoteOracle(
            broker.join([where]),
            coordinator,
            envelopes=Party.server(RUN, keys["server"], roster.speaker),
        )
        serving = asyncio.create_task(oracle.serve(1.0))
        for _ in range(2_000):
            broker.route(Delivery(where, bytes(64) + hello))
        await asyncio.sleep(PAUSE + 0.1)
        assert coordinator.members.present == 0
        broker.route(Delivery(where, member.seal(where, hello)))
        await asyncio.sleep(1.0)
        serving.cancel()
        assert oracle.bus.forgeries + coordinator.rejected == 2_000

    run_virtually(play())
    assert coordinator.members.present == 1
    assert count[0] <= OPENED_BURST + 2


def test_who_floods_is_not_forwarded_and_not_waited_for() -> None:
    """Its topic is left, and those of strangers; others stand. The round ends with all others, and
    after a second the topic comes back."""
    coordinator, broker = Coordinator(RUN, 50, SEED, 1.0, Terms(60.0, 0.9)), MemoryBroker()
    bus = broker.join(filters(RUN))
    oracle = RemoteOracle(bus, coordinator)

    def say(leaf: str, client: int, payload: bytes) -> None:
        broker.route(Delivery(topic(RUN, leaf, "g0", f"client-{client}"), payload))

    def listeners() -> set[int]:
        return {
            client for client in range(52) if bus.hears(topic(RUN, "rep", "g0", f"client-{client}"))
        }

    async def play() -> None:
        serving, loop = asyncio.create_task(oracle.serve(1.0)), asyncio.get_running_loop()
        await asyncio.sleep(0.1)
        for client in range(50):
            say("hello", client, hello_of(client))
        asking = asyncio.create_task(oracle.collect((survey_query(50),)))
        await asyncio.sleep(0.1)
        began, others = loop.time(), set(range(50)) - {7}
        for client in others:
            say("rep", client, answer_of(client))
        for _ in range(1200):
            say("rep", 7, bytes(100))
        await asyncio.sleep(0.1)
        assert listeners() == others
        counts = (await asking).counts
        assert (counts.answered, counts.missing) == (49, 1)
        assert loop.time() - began < GRACE + 0.1
        asking = asyncio.create_task(oracle.collect((survey_query(50),)))
        await asyncio.sleep(PAUSE)
        assert listeners() == others | {7}
        assert coordinator.listening.silenced == {"client-7": 1}
        asking.cancel()
        serving.cancel()

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
