"""A poll as a page on a network: foreign names and origins, oversized messages, listings, floods,
and what is written about the people."""

import asyncio
import json
import logging
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from local_dp.bus.address import Address
from local_dp.errors import ForgedError
from local_dp.sealing import Envelopes
from local_dp.server.pages import LOOPBACK
from local_dp.server.poll.crowd import Crowd, source_of
from local_dp.server.poll.gate import BURST, PACKET, Gate, GateError, Packet, Packets, Visit
from local_dp.server.poll.web import BODY, FRAME
from tests.support.long import short
from tests.support.runs.polls import Person, Served, asked, plan, serving
from tests.support.wrong import wrong

STRANGER = "127.0.0.9"  # another address of this machine
FOREIGN = ("http://example.com", "null", "http://localhost.example.com", "https://127.0.0.1")
KEY = json.dumps({"key": "ab" * 32}).encode()


def _play(folder: Path, attack, **options) -> None:  # type: ignore[no-untyped-def]
    """One attack on a poll that is served."""

    async def play() -> None:
        async with serving(folder, plan(**options)) as server:
            await attack(server)

    asyncio.run(play())


async def _line(server: Served, **options) -> ClientConnection:  # type: ignore[no-untyped-def]
    return await connect(
        f"{server.link.replace('http', 'ws')}bus",
        subprotocols=["mqtt"],  # type: ignore[list-item]
        **options,
    )


async def _drain(line: ClientConnection) -> None:
    while True:
        await line.recv()


def _greeting(name: str = "x", flags: int = 2, more: bytes = b"") -> bytes:
    body = b"\0\4MQTT\4" + bytes([flags]) + b"\0\x1e" + len(name).to_bytes(2) + name.encode() + more
    return bytes(Packet(0x10, body))


def _text(text: str) -> bytes:
    return len(text).to_bytes(2) + text.encode()


@wrong(
    "local_dp.server.poll.web:Web._status",
    "len(headers.getlist('host')) != 1 or not self.site.knows(host)",
    "len(headers.getlist('host')) != 1",
    "a rebound name reaches the poll",
)
def test_foreign_names_are_refused(tmp_path: Path) -> None:
    """A rebound name sends a foreign Host: refused for every page, datum and change, also for the
    bus."""

    async def attack(server: Served) -> None:
        site = server.poll.site
        for host in (
            "example.com",
            f"example.com:{site.port}",
            f"127.0.0.1.example.com:{site.port}",
            "127.0.0.1",
            f"0.0.0.0:{site.port}",
            "",
        ):
            for url, path, body in (
                (site.link, "", None),
                (site.link, "poll.json", None),
                (site.link, "join", KEY),
                (site.presenter, "close", b""),
            ):
                assert (await asked(url, path, body, Host=host)).status == 400
            with pytest.raises(InvalidStatus):
                await _line(server, additional_headers={"Host": host} if host else {"Host": "x"})
        assert (server.poll.places.taken, server.playing.done()) == (0, False)
        answer = await asked(site.link.replace(LOOPBACK, "localhost"), "poll.json")
        assert answer.status == 200

    _play(tmp_path, attack)


@wrong(
    "local_dp.server.poll.web:Web._status",
    "changes and (presenter if origin is None else not self.site.is_own(origin, host))",
    "changes and presenter and (origin is None)",
    "a page of another site closes the poll",
)
def test_foreign_origins_change_nothing(tmp_path: Path) -> None:
    """A page of another site cannot join, close, ask again or speak on the bus; no page without an
    origin can do what the presenter does."""

    async def attack(server: Served) -> None:
        site = server.poll.site
        for origin in FOREIGN:
            assert (await asked(site.link, "join", KEY, Origin=origin)).status == 403
            for path in ("close", "again"):
                assert (await asked(site.presenter, path, b"", Origin=origin)).status == 403
            with pytest.raises(InvalidStatus):
                await _line(server, origin=origin)
        assert (await asked(site.presenter, "close", b"")).status == 403
        assert (await asked(site.presenter, "close")).status in (404, 405)
        assert (server.poll.places.taken, server.playing.done()) == (0, False)
        assert (await asked(site.link, "join", KEY, Origin=site.origin(LOOPBACK))).status == 200

    _play(tmp_path, attack)


def test_nothing_is_listed_and_paths_are_secret(tmp_path: Path) -> None:
    """Without a token there is nothing; the respondents' token opens nothing of the presenter's; no
    path leads out of the served files."""

    async def attack(server: Served) -> None:
        site = server.poll.site
        root = f"http://{LOOPBACK}:{site.port}/"
        for path in (
            "",
            "poll.json",
            "join",
            "state",
            "polls",
            "robots.txt",
            site.token[:-1],
            f"{site.token}x/",
        ):
            assert (await asked(root, path)).status == 404
        for path in ("state", "reports", "present.html", "../run.py", "..%2frun.py", "/etc/passwd"):
            assert (await asked(site.link, path)).status == 404, path
        assert len(site.token) >= 22
        assert site.token != site.host_token
        page = await asked(site.link)
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        assert site.host_token not in json.dumps((await asked(site.link, "poll.json")).data)

    _play(tmp_path, attack)


def test_oversized_messages_are_refused(tmp_path: Path) -> None:
    """Bodies, heads, frames and packets beyond their bounds end the request or the connection, and
    nothing else."""

    async def attack(server: Served) -> None:
        site = server.poll.site
        assert (await asked(site.link, "join", b"x" * (BODY + 1))).status == 413
        for body in (
            b"",
            b"{}",
            b'{"key": 1}',
            b'{"key": "ab"}',
            b"[" * BODY,
            b'{"key": "' + b"ab" * 33 + b'"}',
        ):
            assert (await asked(site.link, "join", body)).status == 400
        assert (await asked(site.link, "x" * 20_000)).status in (400, 404)
        for frame in (
            b"\x10" * (FRAME + 1),
            _greeting() + b"\x30\xff\xff\x03" + bytes(100),
            b"\x30\x05abcde",
            "text",
        ):
            line = await _line(server)
            await line.send(frame)
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(_drain(line), 10)
        await server.hear(Person.of(1))

    _play(tmp_path, attack)


@pytest.mark.parametrize("source", short([STRANGER, LOOPBACK], lambda source: source == LOOPBACK))
def test_a_flood_of_connections_does_not_stop_a_class(source: str, tmp_path: Path) -> None:
    """700 silent connections from one address, beyond what is allowed in all: twelve people still
    join and answer, also from the same address."""

    async def attack(server: Served) -> None:
        with ExitStack() as lines:
            for _ in range(700):
                lines.enter_context(
                    socket.create_connection(
                        (LOOPBACK, server.poll.site.port), timeout=5, source_address=(source, 0)
                    )
                )
            await server.hear(*[Person.of(1) for _ in range(12)])

    _play(tmp_path, attack)


@pytest.mark.long
def test_a_flood_on_the_bus_does_not_stop_a_class(tmp_path: Path) -> None:
    """Silent WebSockets never reach the broker; a connection that sends too many packets is closed;
    people answer meanwhile."""

    async def attack(server: Served) -> None:
        lines = await asyncio.gather(*(_line(server, local_addr=(STRANGER, 0)) for _ in range(100)))
        loud, speaker = await _line(server, local_addr=(STRANGER, 0)), Person.of(1)
        await speaker.join(server.link)
        await loud.send(speaker.greeting(server.poll.plan) + bytes(Packet(0xC0, b"")) * 2 * BURST)
        tasks = server.answers(Person.of(1) for _ in range(3))
        await server.until(3, 3, 3)
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(_drain(loud), 10)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*(line.close() for line in lines))

    _play(tmp_path, attack)


def test_one_address_does_not_take_all_places(tmp_path: Path) -> None:
    """A flood of new keys takes half of the places at once, and then one in two seconds; a class at
    another address has the others."""

    async def attack(server: Served) -> None:
        answers = []
        for number in range(150):
            key = json.dumps({"key": number.to_bytes(32).hex()}).encode()
            answers.append((await asked(server.link, "join", key, STRANGER)).status)
        assert answers.count(200) in range(100, 112)
        assert set(answers) == {200, 429}
        await server.hear(*[Person.of(1) for _ in range(3)])

    _play(tmp_path, attack, people=200)


def test_nothing_is_written_about_the_people(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """No address and no agent in the journal, in a file, in a log, or on a screen; nor the answer
    itself."""
    agent, answer = "Agent-Of-Nobody-1234", "blue"
    caplog.set_level(logging.DEBUG)

    async def attack(server: Served) -> None:
        for path in ("", "poll.json", "nothing"):
            await asked(server.link, path, None, STRANGER, User_Agent=agent)
        key = json.dumps({"key": "cd" * 32}).encode()
        assert (await asked(server.link, "join", key, STRANGER, User_Agent=agent)).status == 200
        with socket.create_connection((LOOPBACK, server.poll.site.port), 10, (STRANGER, 0)) as line:
            line.sendall(b"GARBAGE / HTTP/9\r\n\r\n")
            await asyncio.to_thread(line.recv, 100)
        task = asyncio.create_task(Person.of(1, answer, 7.25).answer(server.link))
        await server.until(1, 1, 1)
        await server.close()
        await task

    _play(tmp_path, attack)
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    screen = capfd.readouterr()
    for text in (STRANGER, agent):
        assert text.encode() not in files
        assert text not in caplog.text + screen.out + screen.err
    assert b"7.25" not in files
    assert len(files) > 1000


class _Signed(Envelopes):
    """Accepts what ends in the name of its member, p0."""

    def open(self, topic: str, envelope: bytes) -> bytes:
        if not topic.endswith("/g0/p0") or not envelope.endswith(b"p0"):
            raise ForgedError("not signed")
        return envelope


GATE = Gate("poll-1", _Signed(), Address("127.0.0.1", 1883, "user", "word"))
FORBIDDEN = {
    "no greeting": (Packet(0xC0, b""), True),
    "no will": (Packet(0x10, _greeting()[2:]), True),
    "two greetings": (Packet(0x10, _greeting()[2:]), False),
    "another protocol": (Packet(0x10, b"\0\4MQTX\4\2\0\0\0\0"), True),
    "MQTT 5": (Packet(0x10, b"\0\4MQTT\5\2\0\0\0\0\0"), True),
    "a will of another": (
        Packet(0x10, _greeting(flags=6, more=_text("ldp/1/poll-1/gone/g1/p1") + _text("p0"))[2:]),
        True,
    ),
    "a will that stays": (
        Packet(
            0x10, _greeting(flags=0x26, more=_text("ldp/1/poll-1/gone/g0/p0") + _text("p0"))[2:]
        ),
        True,
    ),
    "a will that answers": (
        Packet(0x10, _greeting(flags=6, more=_text("ldp/1/poll-1/rep/g0/p0") + _text("p0"))[2:]),
        True,
    ),
    "a request": (Packet(0x30, _text("ldp/1/poll-1/req/g0") + b"p0"), False),
    "another's reply": (Packet(0x30, _text("ldp/1/poll-1/rep/g1/p1") + b"p0"), False),
    "another run": (Packet(0x30, _text("ldp/1/poll-2/rep/g0/p0") + b"p0"), False),
    "a gone by hand": (Packet(0x30, _text("ldp/1/poll-1/gone/g0/p0") + b"p0"), False),
    "a retained reply": (Packet(0x31, _text("ldp/1/poll-1/rep/g0/p0") + b"p0"), False),
    "an internal topic": (Packet(0x30, _text("$SYS/x") + b"p0"), False),
    "not signed": (Packet(0x30, _text("ldp/1/poll-1/rep/g0/p0") + b"p1"), False),
    "a will that is not signed": (
        Packet(0x10, _greeting(flags=6, more=_text("ldp/1/poll-1/gone/g0/p0") + _text("p1"))[2:]),
        True,
    ),
    "no topic": (Packet(0x30, b"\xff\xff"), False),
    "not text": (Packet(0x30, b"\0\1\xff"), False),
    "reading replies": (Packet(0x82, b"\0\1" + _text("ldp/1/poll-1/rep/g0/p0") + b"\0"), False),
    "reading everything": (Packet(0x82, b"\0\1" + _text("#") + b"\0"), False),
    "reading another's requests": (
        Packet(0x82, b"\0\1" + _text("ldp/1/poll-1/req/g1") + b"\0"),
        False,
    ),
    "reading all groups": (Packet(0x82, b"\0\1" + _text("ldp/1/poll-1/req/+") + b"\0"), False),
    "reading nothing": (Packet(0x82, b"\0\1"), False),
    "many topics": (Packet(0x82, b"\0\1" + 9 * (_text("ldp/1/poll-1/req/g0") + b"\0")), False),
    "a broker's answer": (Packet(0x20, b"\0\0"), False),
}


@wrong(
    "local_dp.server.poll.gate:Visit._subscribe",
    "(self.who[0], EVERYBODY)",
    "(self.who[0], EVERYBODY, topic.split('/')[-1])",
    "a page reads the receipts of others, from which their reports can be found",
    at="reading another's requests",
)
@pytest.mark.parametrize("case", FORBIDDEN)
def test_the_gate_refuses_what_no_member_sends(case: str) -> None:
    packet, first = FORBIDDEN[case]
    visit = Visit(GATE, lambda member: pytest.fail("a hello"), None if first else ("g0", "p0"))
    with pytest.raises(GateError):
        visit.passed(packet)


def test_the_gate_passes_members() -> None:
    """A greeting gets the broker's password and another name; a member's own messages pass
    unchanged, and its hello is noted."""
    hellos: list[str] = []
    visit, will = (
        Visit(GATE, hellos.append),
        _text("ldp/1/poll-1/gone/g0/p0") + _text("last words of p0"),
    )
    greeting = visit.passed(
        Packet(0x10, _greeting("p0", flags=6 | 0xC0, more=will + _text("me") + _text("mine"))[2:])
    )
    assert greeting.body.startswith(b"\0\4MQTT\4\xc6\0\x1e\0\x16")
    assert greeting.body.endswith(will + _text("user") + _text("word"))
    reading = Packet(
        0x82, b"\0\1" + _text("ldp/1/poll-1/req/g0") + b"\0" + _text("ldp/1/poll-1/req/all") + b"\0"
    )
    messages = [
        Packet(0x30, _text(f"ldp/1/poll-1/{leaf}/g0/p0") + b"p0") for leaf in ("hello", "rep")
    ]
    for packet in (
        reading,
        *messages,
        Packet(0x32, _text("ldp/1/poll-1/rep/g0/p0") + b"\0\1p0"),
        Packet(0xC0, b""),
        Packet(0xE0, b""),
    ):
        assert visit.passed(packet) is packet
    assert hellos == ["p0"]


@wrong(
    "local_dp.server.poll.gate:Visit._publish",
    "tuple(who) != self.who",
    "False",
    "a page speaks for another person",
)
def test_nobody_speaks_for_another(tmp_path: Path) -> None:
    """A message under another's name ends the connection at the gate: the member is not silenced by
    it, and nothing reaches the server."""

    async def attack(server: Served) -> None:
        person, other = Person.of(1), Person.of(0)
        for each in (person, other):
            await each.join(server.link)
        run, place, greeting = server.poll.plan.run, person.place, other.greeting(server.poll.plan)
        for leaf, envelope in (
            ("hello", bytes(200)),
            ("rep", bytes(200)),
            ("hello", person.sealed(server.poll.plan, "hello")),
        ):
            line = await _line(server)
            await line.send(
                greeting
                + bytes(
                    Packet(
                        0x30,
                        _text(f"ldp/1/{run}/{leaf}/{place['group']}/{place['member']}") + envelope,
                    )
                )
            )
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(_drain(line), 10)
        await server.hear(person)
        # the wills of who never said hello
        assert set(server.poll.coordinator.rejections) <= {"unread"}

    _play(tmp_path, attack)


def test_packets_are_cut_wherever_the_bytes_are() -> None:
    """However a stream is divided, the packets are the same; one that is too long ends it."""
    packets = [Packet(0x30, bytes(size)) for size in (0, 1, 127, 128, 300, PACKET)]
    stream = b"".join(map(bytes, packets))
    for step in (1, 7, 1000, len(stream)):
        cut = Packets()
        assert [
            packet
            for at in range(0, len(stream), step)
            for packet in cut.feed(stream[at : at + step])
        ] == packets
    with pytest.raises(GateError):
        Packets().feed(bytes(Packet(0x30, bytes(PACKET + 1))))


@wrong(
    "local_dp.server.poll.crowd:Crowd._make_room",
    "not each.member",
    "each.member",
    "a flood closes the connections of people who answer",
)
def test_who_loses_the_connection() -> None:
    """With one connection too many, the source with the most loses its oldest one without a member;
    members keep theirs."""
    crowd, closed = Crowd(people=2), list[str]()
    for number in range(crowd.most):
        source, name = ("10.0.0.1" if number % 3 else f"10.0.1.{number % 200}"), str(number)
        crowd.enter(name, source, lambda name=name: closed.append(name))  # type: ignore[misc]
    crowd.belongs("1", "p0")
    for number in range(3):
        crowd.enter(f"new {number}", "10.0.9.9", lambda: closed.append("new"))
    assert (closed, len(crowd)) == (["2", "4", "5"], 260)
    assert (
        source_of("2001:db8:1:2:3:4:5:6")
        == source_of("2001:db8:1:2::1")
        != source_of("2001:db8:1:3::1")
    )
    assert source_of("::ffff:10.0.0.1") == source_of("10.0.0.1")
