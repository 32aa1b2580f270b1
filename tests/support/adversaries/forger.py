"""Somebody on the broker who reads everything, holds a key of its own and knows every public one, and forges; on a bus in memory before anybody else hears."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeAlias

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.bus.mqtt import MqttBus
from local_dp.clients.member import HOSTS
from local_dp.errors import WireError
from local_dp.sealing import SIGNATURE, Party, new_key, public
from local_dp.server.members import Place
from local_dp.wire import AnyMessage, End, Gone, Hello, Refusal, Reply, Request, Roll, decode, encode, topic
from tests.support.inputs.builders import RUN
from tests.support.runs.brokers import overheard
from tests.support.runs.parties import CLIENTS, Cast

ESCAPE = "\x1b[2J\x1b]0;owned\x07"
Made: TypeAlias = Iterator[tuple[str, AnyMessage]]


@dataclass
class Forger:
    """What it says to what it hears, by the names of the attacks. With the key of a member, it is that member."""

    cast: Cast
    attacks: Sequence[str]
    own: bytes = field(default_factory=new_key)
    said: set[tuple[str, bytes]] = field(default_factory=set)
    genuine: list[Delivery] = field(default_factory=list)

    def forge(self, heard: Delivery) -> list[Delivery]:
        """What it publishes, each once."""
        if (heard.topic, heard.payload) in self.said:
            return []
        self.genuine.append(heard)
        forged = [each for attack in self.attacks for each in ATTACKS[attack](self, heard) if (each.topic, each.payload) not in self.said]
        self.said |= {(each.topic, each.payload) for each in forged}
        return forged

    @property
    def victims(self) -> list[Place]:
        """The places that are not its own."""
        return [member.place for member in self.cast.members if member.own != self.own]

    @property
    def name(self) -> str:
        return next((member.place.member for member in self.cast.members if member.own == self.own), "intruder")

    def envelopes(self, heard: Delivery, where: str, message: bytes) -> Iterator[Delivery]:
        """A message bare, under its own key, for this run and for another one, and under a signature that it has seen."""
        if not self.cast.signed:
            yield Delivery(where, message)
            return
        mine = [Party(run, public(self.cast.server), self.own, lambda topic: None) for run in (RUN, "another")]
        yield from (Delivery(where, payload) for payload in (message, *(each.seal(where, message) for each in mine), heard.payload[:SIGNATURE] + message))

    def message(self, heard: Delivery) -> AnyMessage | None:
        """What it reads; no signature keeps it from that."""
        try:
            return decode(heard.payload[SIGNATURE * self.cast.signed :])
        except WireError:
            return None


def _made(make: Callable[[Forger, AnyMessage], Made]) -> Callable[[Forger, Delivery], Iterator[Delivery]]:
    def attack(forger: Forger, heard: Delivery) -> Iterator[Delivery]:
        message = forger.message(heard)
        if message is not None:
            for where, forged in make(forger, message):
                yield from forger.envelopes(heard, where, encode(forged))

    return attack


def _replies(forger: Forger, message: AnyMessage) -> Made:
    """A race: everybody answers what the forger wants, before they can."""
    for place in forger.victims:
        if isinstance(message, Request):
            reports = bytes([1]) * (place.stop - place.start)
            for name in (place.member, forger.name):
                yield _rep(name), Reply(run=RUN, round=message.round, member=name, ask=0, start=place.start, width=1, reports=reports)


def _refusals(forger: Forger, message: AnyMessage) -> Made:
    for place in forger.victims:
        if isinstance(message, Request):
            for name in (place.member, forger.name):
                said = Refusal(run=RUN, round=message.round, member=name, start=place.start, stop=place.stop, code="budget", text=ESCAPE)
                yield _rep(name), said


def _rep(member: str) -> str:
    return topic(RUN, "rep", HOSTS, member)


def _end(forger: Forger, message: AnyMessage) -> Made:
    """The run is over, before it has begun."""
    if isinstance(message, Hello | Roll):
        yield topic(RUN, "req", "all"), End(run=RUN)
        yield topic(RUN, "req", HOSTS), End(run=RUN)


def _early(forger: Forger, message: AnyMessage) -> Made:
    """The next round, asked with other coins before the server asks it: what it then asks is another request under the same round."""
    if isinstance(message, Request):
        asks = tuple(ask.model_copy(update={"coins": bytes(16)}) for ask in message.asks)
        yield topic(RUN, "req", HOSTS), message.model_copy(update={"round": message.round + 1, "asks": asks})


def _gone(forger: Forger, message: AnyMessage) -> Made:
    if isinstance(message, Request):
        yield from ((topic(RUN, "gone", HOSTS, place.member), Gone(run=RUN, member=place.member)) for place in forger.victims)


def _claim(forger: Forger, message: AnyMessage) -> Made:
    """One hello for all clients, and one as each member with the others' clients."""
    if isinstance(message, Hello | Roll):
        for name in (forger.name, *(place.member for place in forger.victims)):
            yield topic(RUN, "hello", HOSTS, name), Hello(run=RUN, member=name, start=0, stop=CLIENTS, private=True)


def _replay(forger: Forger, heard: Delivery) -> Iterator[Delivery]:
    """All that was ever said, under every other topic, and with a byte of it changed under its own."""
    names = [member.place.member for member in forger.cast.members]
    topics = [topic(RUN, leaf, HOSTS, name) for leaf in ("hello", "rep", "gone") for name in names] + [topic(RUN, "req", group) for group in ("all", HOSTS)]
    yield from (Delivery(where, heard.payload) for where in topics if where != heard.topic)
    yield from (Delivery(heard.topic, _flipped(heard.payload, place)) for place in range(0, len(heard.payload), 7))


def _flipped(payload: bytes, place: int) -> bytes:
    return payload[:place] + bytes([payload[place] ^ 1]) + payload[place + 1 :]


ATTACKS: dict[str, Callable[[Forger, Delivery], Iterator[Delivery]]] = {
    **{make.__name__.removeprefix("_"): _made(make) for make in (_replies, _refusals, _end, _early, _gone, _claim)},
    "replay": _replay,
}


class Malicious(MemoryBroker):
    """A broker that is the forger's: what it forges comes before what it forges from."""

    def __init__(self, forger: Forger) -> None:
        super().__init__()
        self.forger = forger

    def route(self, delivery: Delivery) -> None:
        for forged in self.forger.forge(delivery):
            super().route(forged)
        super().route(delivery)


def on_a_broker(forger: Forger, url: str) -> AbstractContextManager[None]:
    """The forger on a real broker, which it joined before the run."""

    async def forge(bus: MqttBus, heard: Delivery) -> None:
        for forged in forger.forge(heard):
            await bus.publish(forged.topic, forged.payload)

    return overheard(url, "forger", forge)
