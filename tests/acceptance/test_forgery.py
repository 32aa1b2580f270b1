"""Classes 3 and 6, promises P5 and P6: nobody speaks for another. Each test prints its figure."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_dp.bus.broker import EmbeddedBroker
from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.bus.mqtt import MqttBus
from local_dp.clients.member import HOSTS, will
from local_dp.errors import ForgedError, InputError, LocalDPError, WireError
from local_dp.sealing import SIGNATURE, Party, new_key, public
from local_dp.server.members import Place, Roster
from local_dp.wire import (
    AnyMessage,
    End,
    Gone,
    Hello,
    Refusal,
    Reply,
    Request,
    Roll,
    decode,
    encode,
    topic,
)
from tests.support.figures import figure
from tests.support.inputs.builders import RUN, reply_of, request, survey_query
from tests.support.runs.brokers import a_broker, joins, needs_mosquitto, overheard, retain
from tests.support.runs.parties import (
    CLIENTS,
    ROUNDS,
    Cast,
    digests,
    play_in_memory,
    play_on,
    undisturbed,
)

ESCAPE = "\x1b[2J\x1b]0;owned\x07"
Made: TypeAlias = Iterator[tuple[str, AnyMessage]]


@dataclass
class Forger:
    """What it says to what it hears, by the names of the attacks. With the key of a member, it is
    that member."""

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
        forged = [
            each
            for attack in self.attacks
            for each in ATTACKS[attack](self, heard)
            if (each.topic, each.payload) not in self.said
        ]
        self.said |= {(each.topic, each.payload) for each in forged}
        return forged

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

    def envelopes(self, heard: Delivery, where: str, message: bytes) -> Iterator[Delivery]:
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
                heard.payload[:SIGNATURE] + message,
            )
        )

    def message(self, heard: Delivery) -> AnyMessage | None:
        """What it reads; no signature keeps it from that."""
        try:
            return decode(heard.payload[SIGNATURE * self.cast.signed :])
        except WireError:
            return None


def _made(
    make: Callable[[Forger, AnyMessage], Made],
) -> Callable[[Forger, Delivery], Iterator[Delivery]]:
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
                said = Refusal(
                    run=RUN,
                    round=message.round,
                    member=name,
                    start=place.start,
                    stop=place.stop,
                    code="budget",
                    text=ESCAPE,
                )
                yield _rep(name), said


def _rep(member: str) -> str:
    return topic(RUN, "rep", HOSTS, member)


def _end(forger: Forger, message: AnyMessage) -> Made:
    """The run is over, before it has begun."""
    if isinstance(message, Hello | Roll):
        yield topic(RUN, "req", "all"), End(run=RUN)
        yield topic(RUN, "req", HOSTS), End(run=RUN)


def _early(forger: Forger, message: AnyMessage) -> Made:
    """The next round, asked with other coins before the server asks it: what it then asks is
    another request under the same round."""
    if isinstance(message, Request):
        asks = tuple(ask.model_copy(update={"coins": bytes(16)}) for ask in message.asks)
        yield (
            topic(RUN, "req", HOSTS),
            message.model_copy(update={"round": message.round + 1, "asks": asks}),
        )


def _gone(forger: Forger, message: AnyMessage) -> Made:
    if isinstance(message, Request):
        yield from (
            (topic(RUN, "gone", HOSTS, place.member), Gone(run=RUN, member=place.member))
            for place in forger.victims
        )


def _claim(forger: Forger, message: AnyMessage) -> Made:
    """One hello for all clients, and one as each member with the others' clients."""
    if isinstance(message, Hello | Roll):
        for name in (forger.name, *(place.member for place in forger.victims)):
            yield (
                topic(RUN, "hello", HOSTS, name),
                Hello(run=RUN, member=name, start=0, stop=CLIENTS, private=True),
            )


def _replay(forger: Forger, heard: Delivery) -> Iterator[Delivery]:
    """All that was ever said, under every other topic, and with a byte of it changed under its
    own."""
    names = [member.place.member for member in forger.cast.members]
    topics = [
        topic(RUN, leaf, HOSTS, name) for leaf in ("hello", "rep", "gone") for name in names
    ] + [topic(RUN, "req", group) for group in ("all", HOSTS)]
    yield from (Delivery(where, heard.payload) for where in topics if where != heard.topic)
    yield from (
        Delivery(heard.topic, _flipped(heard.payload, place))
        for place in range(0, len(heard.payload), 7)
    )


def _flipped(payload: bytes, place: int, bit: int = 0) -> bytes:
    return payload[:place] + bytes([payload[place] ^ 1 << bit]) + payload[place + 1 :]


ATTACKS: dict[str, Callable[[Forger, Delivery], Iterator[Delivery]]] = {
    **{
        make.__name__.removeprefix("_"): _made(make)
        for make in (_replies, _refusals, _end, _early, _gone, _claim)
    },
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


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_forger_gets_nothing(attack: str) -> None:
    """On a broker of the forger's own, in memory: the reports are those of a run that nobody
    disturbs, and what was forged is counted."""
    cast = Cast.of()
    forger = Forger(cast, [attack])
    coordinator, forged = play_in_memory(cast, Malicious(forger))
    assert digests(coordinator.rounds) == undisturbed()
    counts = coordinator.counts
    assert (counts.answered, counts.refused, counts.missing, counts.conflicting) == (
        ROUNDS * CLIENTS,
        0,
        0,
        0,
    )
    assert coordinator.rejected == 0
    assert forger.said
    figure(
        "class 6",
        (
            f"{attack}: {len(forger.said)} messages forged, {forged} of them counted by the "
            "server, 0 accepted"
        ),
    )


class Rewriting(MemoryBroker):
    """Changes one bit of the share `of_all` of the replies and requests, and counts them."""

    def __init__(self, of_all: float, seed: int) -> None:
        super().__init__()
        self.of_all, self.chance, self.passed, self.altered = (
            of_all,
            Random(seed),
            0,
            {"rep": 0, "req": 0},
        )

    def route(self, delivery: Delivery) -> None:
        leaf, payload = delivery.topic.split("/")[3], delivery.payload
        self.passed += leaf in self.altered
        if leaf in self.altered and self.chance.random() < self.of_all:
            self.altered[leaf] += 1
            payload = _flipped(
                payload, self.chance.randrange(len(payload)), self.chance.randrange(8)
            )
        super().route(Delivery(delivery.topic, payload))


@pytest.mark.parametrize(
    ("share", "rounds"), [(0.1, 6), pytest.param(0.01, 100, marks=pytest.mark.slow)]
)
def test_what_is_rewritten_on_the_way_is_not_heard(share: float, rounds: int) -> None:
    """Test 25: some replies of 40 members and requests to them are changed; the reports are those
    of an undisturbed run, and each change is noticed."""
    cast, between = Cast.of(members=CLIENTS, rounds=rounds), Rewriting(share, seed=5)
    coordinator, forged = play_in_memory(cast, between)
    assert digests(coordinator.rounds) == undisturbed(rounds)
    assert (coordinator.counts.answered, coordinator.counts.conflicting, coordinator.rejected) == (
        rounds * CLIENTS,
        0,
        0,
    )
    assert forged == between.altered["rep"]
    assert sum(bus.forged for bus in cast.heard) == CLIENTS * between.altered["req"] > 0
    figure(
        25,
        (
            f"of {between.passed:,} replies and requests {sum(between.altered.values())} altered, "
            "all rejected by signature"
        ),
    )


def _spoiled(attack: str) -> bool:
    """Whether an attack changes the reports of an unsigned run, or ends it with a printable
    error."""
    cast = Cast.of(signed=False)
    try:
        coordinator, _ = play_in_memory(cast, Malicious(Forger(cast, [attack])))
    except LocalDPError as error:
        text = str(error)
        return ESCAPE not in text and text.isprintable()
    return digests(coordinator.rounds) != undisturbed()


@pytest.mark.parametrize("attack", ["replies", "refusals", "end", "early", "claim"])
def test_the_forger_takes_a_run_that_is_not_signed(attack: str) -> None:
    """The attacks that worked, and work without signatures: other reports, nobody's, or an error in
    the forger's words, written out."""
    assert _spoiled(attack)


@pytest.mark.parametrize("attack", ["claim", "replies", "refusals", "end", "gone", "early"])
def test_a_member_with_a_key_gets_nothing_beyond_its_place(attack: str) -> None:
    """Class 3: it claims all clients under its own name and under the others', and answers for
    them: what it says of others is rejected or forged."""
    cast = Cast.of()
    forger = Forger(cast, [attack], own=cast.members[-1].own)
    coordinator, forged = play_in_memory(cast, Malicious(forger))
    assert (digests(coordinator.rounds), coordinator.counts.conflicting) == (undisturbed(), 0)
    figure(
        "class 3",
        (
            f"{attack}: {len(forger.said)} messages of a member about others, "
            f"{coordinator.rejected} rejected, {forged} forged, 0 accepted"
        ),
    )


@pytest.mark.parametrize("kind", ["embedded", pytest.param("mosquitto", marks=needs_mosquitto)])
def test_the_forger_gets_nothing_on_a_broker(kind: str, tmp_path: Path) -> None:
    """All attacks at once by somebody who reads everything, and retained: the end and a round of a
    run of this name under another server's key, and forged."""
    cast, former = Cast.of(), Cast.of()
    forger = Forger(cast, list(ATTACKS))
    with a_broker(kind, tmp_path) as url:
        for where in (topic(RUN, "req", "all"), topic(RUN, "req", HOSTS)):
            for message in (encode(End(run=RUN)), encode(request(survey_query(CLIENTS)))):
                for payload in (message, former.at_the_server().seal(where, message)):
                    retain(url, where, payload)
        with on_a_broker(forger, url):
            outcome = play_on(cast, url, url)
    assert digests(outcome.rounds) == undisturbed()
    assert (outcome.counts.answered, outcome.counts.conflicting) == (ROUNDS * CLIENTS, 0)
    assert outcome.bus is not None
    assert outcome.bus.forged > 0
    figure(
        "class 6",
        (
            f"on {kind}: {len(forger.said)} messages forged, {outcome.bus.forged} counted by the "
            "server, 0 accepted"
        ),
    )


OWN = [new_key() for _ in range(3)]
SERVERS = [new_key() for _ in range(2)]
PLACES = [Place(f"host-{at}", HOSTS, at, at + 1, public(key)) for at, key in enumerate(OWN)]
ROSTER = Roster(PLACES)


def _party(speaker: int, run: int) -> Party:
    """The server, or a member, in one of two runs, of which each has a server."""
    name, server = (RUN, "another")[run], SERVERS[run]
    return (
        Party.server(name, server, ROSTER.speaker)
        if speaker < 0
        else Party.member(name, public(server), OWN[speaker])
    )


def _genuine(run: int) -> set[Delivery]:
    """All kinds of messages that a run has, as they travel."""
    name = (RUN, "another")[run]
    messages = [
        (-1, topic(name, "req", group), encode(each))
        for group in ("all", HOSTS)
        for each in (Roll(run=name), End(run=name))
    ]
    messages += [
        (-1, topic(name, "req", HOSTS), encode(request(survey_query(3), number=number, run=name)))
        for number in (1, 2)
    ]
    for at, place in enumerate(PLACES):
        hello = Hello(run=name, member=place.member, start=at, stop=at + 1, private=True)
        messages.append((at, topic(name, "hello", HOSTS, place.member), encode(hello)))
        messages += [
            (
                at,
                topic(name, "rep", HOSTS, place.member),
                encode(reply_of(number, place.member, at, b"\1")),
            )
            for number in (1, 2)
        ]
    sealed = {
        Delivery(where, _party(speaker, run).seal(where, message))
        for speaker, where, message in messages
    }
    return sealed | {
        Delivery(*will(name, HOSTS, place.member, _party(at, run)))
        for at, place in enumerate(PLACES)
    }


GENUINE = [_genuine(run) for run in range(2)]
ALL = sorted(GENUINE[0] | GENUINE[1], key=lambda each: (each.topic, each.payload))
TOPICS = sorted({each.topic for each in ALL})


@st.composite
def _mutated(draw: st.DrawFn) -> Delivery:
    """A genuine message of either run with its topic, its signature, its bytes or its length
    changed, or as it was."""
    one, other = draw(st.sampled_from(ALL)), draw(st.sampled_from(ALL))
    where, payload = one.topic, bytearray(one.payload)
    for kind in draw(
        st.lists(
            st.sampled_from(["topic", "letter", "flip", "cut", "longer", "signature", "message"]),
            max_size=3,
        )
    ):
        if kind == "topic":
            where = draw(st.sampled_from(TOPICS))
        elif kind == "letter":
            at = draw(st.integers(0, len(where) - 1))
            where = where[:at] + draw(st.characters(codec="utf-8")) + where[at + 1 :]
        elif kind == "flip" and payload:
            payload[draw(st.integers(0, len(payload) - 1))] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del payload[draw(st.integers(0, len(payload))) :]
        elif kind == "longer":
            payload += draw(st.binary(min_size=1, max_size=9))
        elif kind == "signature":
            payload[:SIGNATURE] = other.payload[:SIGNATURE]
        elif kind == "message":
            payload[SIGNATURE:] = other.payload[SIGNATURE:]
    return Delivery(where, bytes(payload))


@pytest.mark.parametrize(
    ("examples", "least"), [(50, 2), pytest.param(20_000, 1_000, marks=pytest.mark.slow)]
)
def test_only_what_was_said_is_heard(examples: int, least: int) -> None:
    """Any change of topic or bytes, any replay under another topic, by another member or in another
    run is not heard; what was said is."""
    seen = {"genuine": 0, "forged": 0}
    by_server, by_member = _party(-1, 0), _party(0, 0)

    @settings(max_examples=examples, derandomize=True, database=None)
    @given(_mutated())
    def search(delivery: Delivery) -> None:
        from_server = "/req/" in delivery.topic
        is_genuine = delivery in GENUINE[0]
        for party, hears in (
            (by_server, is_genuine and not from_server),
            (by_member, is_genuine and from_server),
        ):
            if hears:
                assert party.open(delivery.topic, delivery.payload) == delivery.payload[SIGNATURE:]
            else:
                with pytest.raises(ForgedError):
                    party.open(delivery.topic, delivery.payload)
        seen["genuine" if is_genuine else "forged"] += 1

    search()
    figure("class 6", f"by search, of class 3 as well: {seen}: 0 of the forged heard")
    assert min(seen.values()) > least


def test_a_speaker_has_one_group() -> None:
    """A member's key speaks under its own group and name alone; names, keys and clients that two
    places share are refused, and broken lines."""
    place = PLACES[1]
    assert ROSTER.speaker(topic(RUN, "rep", HOSTS, place.member)) == place.key
    for where in (
        topic(RUN, "rep", "g0", place.member),
        topic(RUN, "rep", HOSTS),
        f"other/1/{RUN}/rep/{HOSTS}/{place.member}",
        place.member,
        "",
    ):
        assert ROSTER.speaker(where) is None
    for twice in (
        Place("host-0", HOSTS, 7, 8, bytes(32)),
        Place("host-7", HOSTS, 7, 8, PLACES[0].key),
        Place("host-7", HOSTS, 2, 8, bytes(32)),
    ):
        with pytest.raises(InputError):
            Roster([*PLACES, twice])
    assert str(Roster.parse(f"# a note\n{ROSTER}")) == str(ROSTER)
    good = str(PLACES[0])
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
    async def tried() -> list[bool]:
        broker = EmbeddedBroker(tmp_path)
        await broker.start()
        try:
            urls = (f"mqtt+unix://{login}{broker.path}" for login in ("", "run:@", "run:secret@"))
            return [await joins(url) for url in (broker.url, *urls)]
        finally:
            await broker.stop()

    assert asyncio.run(tried()) == [True, False, False, False]


def test_a_key_has_32_bytes() -> None:
    """A longer one that begins as the speaker's, and a shorter one, open nothing: the library below
    reads 32 bytes wherever they end."""
    own = new_key()
    where, envelope = (
        topic(RUN, "rep", HOSTS, "m"),
        Party.member(RUN, public(own), own).seal(topic(RUN, "rep", HOSTS, "m"), b"x"),
    )
    for key in (public(own) + b"\0", public(own)[:-1], b"", None):
        with pytest.raises(ForgedError):
            Party(RUN, public(own), own, {where: key}.get).open(where, envelope)
    assert Party.member(RUN, public(own), own).open(where, envelope) == b"x"


def test_bytes_cannot_move_from_a_message_to_its_topic() -> None:
    """What was signed for one topic opens under no topic that is longer or shorter by bytes of the
    message."""
    own = new_key()
    party = Party.member(RUN, public(own), own)
    sealed = party.seal("run/ab", b"cd")
    assert party.open("run/ab", sealed) == b"cd"
    for place, message in (("run/a", b"bcd"), ("run/abc", b"d"), ("run/abcd", b"")):
        with pytest.raises(ForgedError):
            party.open(place, sealed[:-2] + message)
