"""Acceptance test 27 at the server: a flood, from a member, from a stranger or under somebody's name, costs bounded work, and hides no honest word."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

import pytest

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.populations.table import Rows
from local_dp.protocols.surveys.survey import Survey
from local_dp.sealing import UNSIGNED, Party, new_key, public
from local_dp.server import remote
from local_dp.server.coordinator import Coordinator
from local_dp.server.flow_control import GRACE
from local_dp.server.listening import LEAVES, PAUSE, filters
from local_dp.server.members import BURST, EACH, OPENED_BURST
from local_dp.server.progress import Turnout
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.server.roster import Place, Roster
from local_dp.wire import Hello, Refusal, Reply, Side, decode, encode, topic
from tests.support.figures import figure
from tests.support.inputs.builders import RUN, SEED, play_in_memory, request, role, survey_query, yes_records
from tests.support.runs.virtual_time import run_virtually


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
    """Under an honest member's name come 20,000 messages that it has not signed: few are verified, and its own message a second later is read."""
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
        oracle = RemoteOracle(broker.join([where, stranger]), coordinator, envelopes=Party.server(RUN, keys["server"], roster.speaker))
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
        figure(27, f"of 20,000 forged messages of one flood {verified[0] - 1:,} signatures are verified; {counted:,} are counted")
        assert counted == 20_000

    run_virtually(play())
    assert coordinator.members.present == 1
    assert verified[0] <= OPENED_BURST + 2


T = TypeVar("T")


class Flooded:
    """A server over a bus in memory whose 50 clients are played here, with keys or without."""

    def __init__(self, signed: bool) -> None:
        self.keys = {name: new_key() for name in ("server", *map(_named, range(50)))}
        places = [Place(_named(index), "g0", index, index + 1, public(self.keys[_named(index)])) for index in range(50)]
        self.roster = Roster(places) if signed else None
        self.coordinator = Coordinator(RUN, 50, SEED, 1.0, Terms(60.0, 0.9), self.roster)
        self.broker = MemoryBroker()
        self.bus = self.broker.join(filters(RUN))
        envelopes = Party.server(RUN, self.keys["server"], self.roster.speaker) if self.roster else UNSIGNED
        self.oracle = RemoteOracle(self.bus, self.coordinator, envelopes=envelopes)
        self.sealed = self.oracle.bus
        self.serving = asyncio.create_task(self.oracle.serve(1.0))

    async def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Work of the server, once that has read what was sent before."""
        await asyncio.sleep(0.1)
        task = asyncio.create_task(work)
        await asyncio.sleep(0.1)
        return task

    def say(self, leaf: str, index: int, message: Hello | Reply | Refusal) -> None:
        where, name = topic(RUN, leaf, "g0", _named(index)), _named(index)
        envelopes = UNSIGNED if self.roster is None else Party.member(RUN, public(self.keys["server"]), self.keys[name])
        self.broker.route(Delivery(where, envelopes.seal(where, encode(message))))

    def hello(self, *indices: int) -> None:
        for index in indices:
            self.say("hello", index, Hello(run=RUN, member=_named(index), start=index, stop=index + 1, private=False))

    def shout(self, index: int, times: int = 1200, leaf: str = "rep") -> None:
        """So many messages under a name, of which none is what it should be."""
        for _ in range(times):
            self.broker.route(Delivery(topic(RUN, leaf, "g0", _named(index)), bytes(100)))

    def heard(self) -> dict[str, set[int]]:
        """Whose topics of each kind are forwarded to the server."""
        return {leaf: {index for index in range(52) if self.bus.hears(topic(RUN, leaf, "g0", _named(index)))} for leaf in LEAVES}


def _named(index: int) -> str:
    return f"client-{index}"


def _all_of(clients: Iterable[int]) -> dict[str, set[int]]:
    return {leaf: set(clients) for leaf in LEAVES}


@pytest.mark.parametrize("signed", [True, pytest.param(False, marks=pytest.mark.long)])
def test_who_floods_is_not_forwarded_and_heard_again(signed: bool) -> None:
    """Its topics are left, and those of strangers; those of others stand. After a second they come back, after the next flood in four seconds."""

    async def play() -> None:
        run, others = Flooded(signed), set(range(50)) - {7}
        run.hello(*range(50))
        asking = await run.begin(run.oracle.collect((survey_query(50),)))
        assert run.heard()["rep"] == set(range(52))
        for pause in (1.0, 4.0, 16.0):
            run.shout(7)
            await asyncio.sleep(0.1)
            assert run.heard() == _all_of(others)
            run.shout(7)  # it is not forwarded
            await asyncio.sleep(pause - 0.2)
            assert run.heard()["rep"] == others
            await asyncio.sleep(0.2)
            assert run.heard()["rep"] == others | {7}
        assert run.coordinator.listening.silenced == {"client-7": 3}
        assert run.coordinator.rejected + run.sealed.forged == 3600
        asking.cancel()

    run_virtually(play())


def test_who_floods_is_not_waited_for() -> None:
    """A round of fifty with one that floods and does not answer is over two seconds after it was shut out: 49 answers, one missing."""

    async def play() -> Turnout:
        run = Flooded(True)
        run.hello(*range(50))
        asking = await run.begin(run.oracle.collect((survey_query(50),)))
        began = asyncio.get_running_loop().time()
        for index in sorted(set(range(50)) - {7}):
            run.say("rep", index, role(yes_records(1), start=index, member=_named(index)).handle(request(survey_query(50)))[0])
        run.shout(7)
        counts = (await asking).counts
        assert asyncio.get_running_loop().time() - began < GRACE + 0.1
        return counts

    counts = run_virtually(play())
    assert (counts.answered, counts.missing) == (49, 1)


def test_strangers_are_shut_out() -> None:
    """A flood under a name that is in no roster costs the server nothing more, from then on; nobody of the roster is shut out, who has come or not."""

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
    """Without a roster, while a client is missing, all hellos are read; a newcomer's topics are added; when all are present, no others are read."""

    async def play() -> None:
        run = Flooded(False)
        gathering = await run.begin(run.oracle.ready(30.0))
        run.hello(*range(40))
        run.shout(51)
        await asyncio.sleep(0.1)
        assert run.heard() == {"rep": set(range(40)), "hello": set(range(52)), "gone": set(range(40))}
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
    """The ceiling is above what an honest member has to say: a round whose every message comes five times loses none."""
    population = Rows(yes_records(40))
    protocol = Survey(question="yes == 1")
    _, coordinator = play_in_memory(protocol.algorithm(1.0, 40), population, 40, MemoryBroker(lambda delivery: 5), as_processes=True)
    assert (coordinator.counts.answered, coordinator.counts.missing, coordinator.rejected) == (40, 0, 0)
