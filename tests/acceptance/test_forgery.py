"""P5: nobody speaks for another."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest

from local_dp.bus.broker import EmbeddedBroker
from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import HOSTS
from local_dp.errors import ForgedError, InputError, LocalDPError, WireError
from local_dp.sealing import SIGNATURE, Party, new_key, public
from local_dp.server.members import Place, Roster
from local_dp.wire import (
    AnyMessage,
    End,
    Hello,
    Refusal,
    Reply,
    Request,
    Roll,
    decode,
    encode,
    topic,
)
from tests.support.inputs.builders import RUN
from tests.support.runs.brokers import joins
from tests.support.runs.parties import CLIENTS, ROUNDS, Cast, digests, play_in_memory, undisturbed
from tests.support.wrong import wrong

ESCAPE = "\x1b[2J\x1b]0;owned\x07"
Made: TypeAlias = Iterator[tuple[str, AnyMessage]]


@dataclass
class Forger:
    """What it says to what it hears, by the names of the attacks. With the key of a member, it is
    that member."""

    cast: Cast
    attacks: Sequence[str]
    own: bytes = field(default_factory=new_key)
    originals: set[tuple[str, bytes]] = field(default_factory=set)
    genuine: list[Delivery] = field(default_factory=list)

    def forge(self, original: Delivery) -> list[Delivery]:
        """What it publishes, each once."""
        if (original.topic, original.payload) in self.originals:
            return []
        self.genuine.append(original)
        attempts = [each for attack in self.attacks for each in ATTACKS[attack](self, original)]
        forgeries = [each for each in attempts if (each.topic, each.payload) not in self.originals]
        self.originals |= {(each.topic, each.payload) for each in forgeries}
        return forgeries

    @property
    def victims(self) -> list[Place]:
        """The places that are not its own."""
        return [member.place for member in self.cast.members if member.own != self.own]

    @property
    def name(self) -> str:
        return next(
            (member.place.member for member in self.cast.members if member.own == self.own),
            "intruder",
        )

    def envelopes(self, original: Delivery, where: str, message: bytes) -> Iterator[Delivery]:
        """A message bare, under its own key, for this run and for another one, and under a
        signature that it has seen."""
        if not self.cast.signed:
            yield Delivery(where, message)
            return
        mine = [
            Party(run, public(self.cast.server), self.own, lambda topic: None)
            for run in (RUN, "another")
        ]
        yield from (
            Delivery(where, payload)
            for payload in (
                message,
                *(each.seal(where, message) for each in mine),
                original.payload[:SIGNATURE] + message,
            )
        )

    def message(self, original: Delivery) -> AnyMessage | None:
        """What it reads; no signature keeps it from that."""
        try:
            return decode(original.payload[SIGNATURE * self.cast.signed :])
        except WireError:
            return None


def _attack_by(
    make: Callable[[Forger, AnyMessage], Made],
) -> Callable[[Forger, Delivery], Iterator[Delivery]]:
    def attack(forger: Forger, original: Delivery) -> Iterator[Delivery]:
        message = forger.message(original)
        if message is not None:
            for where, forgery in make(forger, message):
                yield from forger.envelopes(original, where, encode(forgery))

    return attack


def _replies(forger: Forger, message: AnyMessage) -> Made:
    """A race: everybody answers what the forger wants, before they can."""
    for place in forger.victims:
        if isinstance(message, Request):
            reports = bytes([1]) * (place.stop - place.start)
            for name in (place.member, forger.name):
                yield (
                    _rep(name),
                    Reply(
                        run=RUN,
                        round=message.round,
                        member=name,
                        ask=0,
                        start=place.start,
                        width=1,
                        reports=reports,
                    ),
                )


def _refusals(forger: Forger, message: AnyMessage) -> Made:
    for place in forger.victims:
        if isinstance(message, Request):
            for name in (place.member, forger.name):
                refusal = Refusal(
                    run=RUN,
                    round=message.round,
                    member=name,
                    start=place.start,
                    stop=place.stop,
                    code="budget",
                    text=ESCAPE,
                )
                yield _rep(name), refusal


def _rep(member: str) -> str:
    return topic(RUN, "rep", HOSTS, member)


def _end(forger: Forger, message: AnyMessage) -> Made:
    """The run is over, before it has begun."""
    if isinstance(message, Hello | Roll):
        yield topic(RUN, "req", "all"), End(run=RUN)
        yield topic(RUN, "req", HOSTS), End(run=RUN)


def _claim(forger: Forger, message: AnyMessage) -> Made:
    """One hello for all clients, and one as each member with the others' clients."""
    if isinstance(message, Hello | Roll):
        for name in (forger.name, *(place.member for place in forger.victims)):
            yield (
                topic(RUN, "hello", HOSTS, name),
                Hello(run=RUN, member=name, start=0, stop=CLIENTS, private=True),
            )


def _replay(forger: Forger, original: Delivery) -> Iterator[Delivery]:
    """All that was ever said, under every other topic, and with a byte of it changed under its
    own."""
    names = [member.place.member for member in forger.cast.members]
    topics = [topic(RUN, leaf, HOSTS, name) for leaf in ("hello", "rep", "gone") for name in names]
    topics += [topic(RUN, "req", "all"), topic(RUN, "req", HOSTS)]
    yield from (Delivery(where, original.payload) for where in topics if where != original.topic)
    yield from (
        Delivery(original.topic, _flip(original.payload, place))
        for place in range(0, len(original.payload), 7)
    )


def _flip(payload: bytes, place: int, bit: int = 0) -> bytes:
    return payload[:place] + bytes([payload[place] ^ 1 << bit]) + payload[place + 1 :]


ATTACKS: dict[str, Callable[[Forger, Delivery], Iterator[Delivery]]] = {
    **{
        make.__name__.removeprefix("_"): _attack_by(make)
        for make in (_replies, _refusals, _end, _claim)
    },
    "replay": _replay,
}


class Malicious(MemoryBroker):
    """A broker that is the forger's: what it forges comes before what it forges from."""

    def __init__(self, forger: Forger) -> None:
        super().__init__()
        self.forger = forger

    def route(self, delivery: Delivery) -> None:
        for forgery in self.forger.forge(delivery):
            super().route(forgery)
        super().route(delivery)


@wrong(
    "local_dp.sealing:Party._statement",
    "self._head + len(where).to_bytes(4) + where",
    "self._head",
    "an envelope is replayed under any other topic",
    at="replay",
)
@wrong(
    "local_dp.bus.interface:SealedBus.messages",
    "self.forgeries += 1",
    "self.forgeries += 1\n                yield Delivery(event.topic, event.payload[64:])",
    "a forged message is counted, and read all the same",
    at="replies",
)
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_forger_gets_nothing(attack: str) -> None:
    """On a broker of the forger's own, in memory: the reports are those of a run that nobody
    disturbs, and what was forged is counted."""
    cast = Cast.of()
    forger = Forger(cast, [attack])
    coordinator, forgeries = play_in_memory(cast, Malicious(forger))
    assert forgeries or attack == "end"
    assert digests(coordinator.rounds) == undisturbed()
    counts = coordinator.counts
    assert (counts.answered, counts.refused, counts.missing, counts.conflicting) == (
        ROUNDS * CLIENTS,
        0,
        0,
        0,
    )
    assert coordinator.rejected == 0
    assert forger.originals


def _spoils(attack: str) -> bool:
    """Whether an attack changes the reports of an unsigned run, or ends it with a printable
    error."""
    cast = Cast.of(signed=False)
    try:
        coordinator, _ = play_in_memory(cast, Malicious(Forger(cast, [attack])))
    except LocalDPError as error:
        text = str(error)
        return ESCAPE not in text and text.isprintable()
    return digests(coordinator.rounds) != undisturbed()


@pytest.mark.parametrize("attack", ["replies", "refusals"])
def test_the_forger_takes_a_run_that_is_not_signed(attack: str) -> None:
    """The attacks that worked, and work without signatures: other reports, nobody's, or an error in
    the forger's words, written out."""
    assert _spoils(attack)


@wrong(
    "local_dp.server.members:Members.hello",
    "self.roster is not None and (not self.roster.holds(group, hello))",
    "False",
    "a member with a key claims all clients",
    at="claim",
)
@pytest.mark.parametrize("attack", ["claim", "replies"])
def test_a_member_with_a_key_gets_nothing_beyond_its_place(attack: str) -> None:
    """It claims all clients under its own name and under the others', and answers for them: what it
    says of others is rejected or forged."""
    cast = Cast.of()
    forger = Forger(cast, [attack], own=cast.members[-1].own)
    coordinator, _ = play_in_memory(cast, Malicious(forger))
    assert (digests(coordinator.rounds), coordinator.counts.conflicting) == (undisturbed(), 0)


@wrong(
    "local_dp.sealing:Party.__init__",
    "blake2b(server + run.encode(), digest_size=32)",
    "blake2b(digest_size=32)",
    "an envelope of one run, or of another server, holds in the next",
)
@wrong(
    "local_dp.sealing:Party._statement",
    "self._head + len(where).to_bytes(4)",
    "self._head",
    "bytes of a signed message can be moved to its topic",
)
def test_only_what_was_said_is_heard() -> None:
    """An envelope opens under its topic, in its run, for its server: no other topic, run, server or
    speaker, no changed bit, no byte moved to the topic."""
    server, own, message = new_key(), new_key(), b"abcd"
    hearing, where = (
        Party.server(RUN, server, lambda topic: public(own)),
        topic(RUN, "rep", HOSTS, "m"),
    )
    speaking = Party.member(RUN, public(server), own)
    signed_message = speaking.seal(where, message)
    assert hearing.open(where, signed_message) == message
    signature = signed_message[:SIGNATURE]
    forgeries = [
        (f"{where}a", signature + b"bcd"),
        (where[:-1], signature + b"mabcd"),
        (f"{where}n", signed_message),
        (where, signature),
    ]
    for run, hearer, speaker in (
        ("another", server, own),
        (RUN, new_key(), own),
        (RUN, server, new_key()),
    ):
        forgeries.append((where, Party.member(run, public(hearer), speaker).seal(where, message)))
    forgeries += [(where, _flip(signed_message, place)) for place in range(len(signed_message))]
    for place, envelope in forgeries:
        with pytest.raises(ForgedError):
            hearing.open(place, envelope)
    for key in (public(own) + b"\0", public(own)[:-1], None):
        with pytest.raises(ForgedError):
            Party.server(RUN, server, lambda topic, key=key: key).open(where, signed_message)  # type: ignore[misc]
    with pytest.raises(ForgedError):
        speaking.open(where, signed_message)
    assert speaking.open(where, hearing.seal(where, message)) == message


@wrong(
    "local_dp.server.members:Roster.speaker",
    "place is not None and parts[-2] == place.group",
    "place is not None",
    "a member speaks under a group that is not its own",
)
def test_a_speaker_has_one_group() -> None:
    """A member's key speaks under its own group and name alone; names, keys and clients that two
    places share are refused, and broken lines."""
    place = Place("host-0", HOSTS, 0, 1, b"\xab" * 32)
    roster = Roster([place])
    assert roster.speaker(topic(RUN, "rep", HOSTS, place.member)) == place.key
    for where in (
        topic(RUN, "rep", "g0", place.member),
        topic(RUN, "rep", HOSTS),
        f"other/1/{RUN}/rep/{HOSTS}/{place.member}",
        place.member,
        "",
    ):
        assert roster.speaker(where) is None
    for twice in (
        Place("host-0", HOSTS, 7, 8, bytes(32)),
        Place("host-7", HOSTS, 7, 8, place.key),
        Place("host-7", HOSTS, 0, 8, bytes(32)),
    ):
        with pytest.raises(InputError):
            Roster([place, twice])
    assert str(Roster.parse(f"# a note\n{roster}")) == str(roster)
    good = str(place)
    for line in (
        "",
        good[:-1],
        good.replace(" 0 ", " -1 "),
        good.upper(),
        good + " 1",
        good.replace("host-0", "host/0"),
        good.replace(" 0 1 ", " 1 1 "),
    ):
        with pytest.raises(InputError):
            Place.parse(line)


def test_the_embedded_broker_lets_in_whoever_has_its_password(tmp_path: Path) -> None:
    async def connect_all() -> list[bool]:
        broker = EmbeddedBroker(tmp_path)
        await broker.start()
        try:
            urls = (f"mqtt+unix://{login}{broker.path}" for login in ("", "run:@", "run:secret@"))
            return [await joins(url) for url in (broker.url, *urls)]
        finally:
            await broker.stop()

    assert asyncio.run(connect_all()) == [True, False, False, False]
