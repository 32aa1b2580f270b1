"""Acceptance test 27 at the server: a flood, from a member, from a stranger or under somebody's name, costs bounded work, and hides no honest word."""

import asyncio
from typing import Any

import pytest

from local_dp.bus.base import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.populations.table import Rows
from local_dp.protocols.survey import Survey
from local_dp.sealing import Party, new_key, public
from local_dp.wire import Hello, Side, decode, encode, topic
from server import remote
from server.coordinator import Coordinator
from server.members import BURST, EACH, OPENED_BURST
from server.remote import RemoteOracle
from server.roster import Place, Roster
from server.terms import Terms
from tests.support.builders import RUN, SEED, play_in_memory, request, role, survey_query, yes_records
from tests.support.figures import figure
from tests.support.virtual_time import run_virtually


def test_a_flood_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """One member of 50 and a stranger send 20,000 messages: no more of them are decoded than one that is honest could have had to send."""
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
            deliver("hello", client, encode(Hello(run=RUN, member=f"client-{client}", start=client, stop=client + 1, private=False)))
        coordinator.open((survey_query(50),), 0.0)
        before = read[0]
        answer = encode(role(yes_records(1), start=7, member="client-7").handle(request(survey_query(50)))[0])
        for _ in range(10_000):
            deliver("rep", 7, answer)
            deliver("rep", 99, answer)  # of a stranger
        return read[0] - before

    flooded = asyncio.run(play())
    print(f"test 27: of 20,000 messages of one flood, {flooded} are decoded; {coordinator.rejected:,} are counted as rejected")
    assert flooded <= BURST + EACH + 2
    assert coordinator.rejected == 20_000 - flooded
    assert coordinator.counts.answered == 1


def test_a_flood_under_a_name_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under an honest member's name come 20,000 messages that it has not signed: few are verified, and what it says itself a second later is heard."""
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
        bus = remote.heard(broker.join([where, stranger]), Party.server(RUN, keys["server"], roster.speaker), coordinator)
        serving = asyncio.create_task(RemoteOracle(bus, coordinator).serve(1.0))
        for _ in range(10_000):
            broker.route(Delivery(where, bytes(64) + hello))
            broker.route(Delivery(stranger, bytes(64) + hello))
        await asyncio.sleep(1.0)
        assert coordinator.members.present == 0
        broker.route(Delivery(where, member.seal(where, hello)))
        await asyncio.sleep(1.0)
        serving.cancel()
        figure(27, f"of 20,000 forged messages of one flood {verified[0] - 1:,} signatures are verified; {bus.forged + coordinator.rejected:,} are counted")
        assert bus.forged + coordinator.rejected == 20_000

    run_virtually(play())
    assert coordinator.members.present == 1
    assert verified[0] <= OPENED_BURST + 2


def test_an_honest_round_is_read_whole() -> None:
    """The ceiling is above what an honest member has to say: a round whose every message comes five times loses none."""
    population = Rows(yes_records(40))
    protocol = Survey(question="yes == 1")
    _, coordinator = play_in_memory(protocol.algorithm(1.0, 40), population, 40, MemoryBroker(lambda delivery: 5), as_processes=True)
    assert (coordinator.counts.answered, coordinator.counts.missing, coordinator.rejected) == (40, 0, 0)
