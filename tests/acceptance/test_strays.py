"""Class 16: strangers who connect to a broker without its password end no run, and nothing is kept
of them."""

import asyncio
import re
import resource
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, aclosing, closing, contextmanager, suppress
from getpass import getuser
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_dp.api.asking import RunOptions
from local_dp.bus import door
from local_dp.bus.address import Address
from local_dp.bus.door import GREETING, Door, packed
from local_dp.bus.interface import CONNECTED, Delivery
from local_dp.bus.mqtt import MqttBus
from local_dp.interaction import Adaptive
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.surveys.survey import Survey
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.quorum import Terms
from local_dp.server.watch import server as watch
from local_dp.server.watch.events import Scene
from local_dp.simulation.execute import execute
from local_dp.simulation.over_bus import over_bus
from local_dp.simulation.settings import EMBEDDED, Randomness, Settings, Tier
from local_dp.tallies import Estimate, Tally
from tests.support.adversaries.strays import Strays, greeting, strays
from tests.support.figures import figure
from tests.support.runs.brokers import a_broker, embedded, line_to, needs_mosquitto, retain

FILES, CLIENTS, MEBIBYTE = 1024, 6, 1 << 20
WARM, PAUSE, PARTING = (
    3,
    0.01,
    0.5,
    # rounds before the strangers come and after they left; seconds between two rounds, and before
    # the last look
)


@contextmanager
def few_files() -> Iterator[None]:
    """A process that is started meanwhile may open as many files as is usual, and no more."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


def _survey(goes_on: Callable[[int], bool], tier: Tier, broker: str = EMBEDDED) -> Settings:
    """The settings of a survey that is asked again and again, while it `goes_on` before the round
    of this number."""
    protocol, query = (
        Survey(question="yes == 1"),
        LocalQuery(Question("yes == 1"), BinaryRR(0.002), Cohort(0, CLIENTS)),
    )

    def play() -> Generator[tuple[LocalQuery, ...], tuple[Tally, ...], Estimate]:
        (tally,) = yield (query,)
        for number in count(1):
            if not goes_on(number):
                return query.randomizer.estimate(tally)
            (tally,) = yield (query,)
        raise AssertionError

    how: dict[str, Any] = {
        "tier": tier,
        "broker": broker,
        "terms": Terms(60.0, 1.0),
        "played": Adaptive(play),
    }
    return Settings(protocol, protocol.synthetic(CLIENTS, 1), 20.0, Randomness(1, False), **how)


class Beside:
    """Goes on until all strangers have come, and some rounds more. `looks` are the broker's open
    files and bytes, before and after."""

    def __init__(self, broker: psutil.Process, strangers: Strays) -> None:
        self.broker, self.strangers, self.looks, self.last = (
            broker,
            strangers,
            list[tuple[int, int]](),
            0,
        )

    def __call__(self, number: int) -> bool:
        if number == WARM:
            self._look()
            self.strangers.thread.start()
        elif number > WARM and self.strangers.over and not self.last:
            self.last = number + WARM
        time.sleep(PAUSE)
        if number == self.last:
            time.sleep(PARTING)
            self._look()
        return number != self.last

    def _look(self) -> None:
        self.looks.append((self.broker.num_fds(), self.broker.memory_info().rss))


SOON = 3.0  # seconds for what takes a moment
# "secret"
PASSWORDS = (
    "run:$7$101$7K6eh3n38G6KHM1S$bOaf0EkQX5pPhk2qdlkgOxF3eChj0lR+xmZRH+UX0eHw2amMoE/"
    "Hrl0a1icEmEHcoWAR1gmluM5qbvkW8hgk0Q==\n"
)


@needs_mosquitto
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    "kind",
    ["embedded", "mosquitto", pytest.param("mosquitto that is full", marks=pytest.mark.long)],
)
@pytest.mark.parametrize("strangers", [pytest.param(20_000, marks=pytest.mark.slow), 200])
def test_strangers_end_no_run(strangers: int, kind: str, tmp_path: Path) -> None:
    """Of four kinds: every report counts, all are those of an undisturbed run, and the broker has
    the files and the memory that it had before.

    Where silent strangers hold all connections of Mosquitto, members that have joined go on.
    """
    (tmp_path / "passwords").write_text(PASSWORDS)
    ours = set(psutil.Process().children())
    with ExitStack() as stack:
        with few_files():
            login = (
                "allow_anonymous false",
                f"password_file {tmp_path / 'passwords'}",
                f"user {getuser()}",
            )
            full = ("max_connections 30",) if "full" in kind else ()
            url = stack.enter_context(
                a_broker(kind, tmp_path, *login, *full, "set_tcp_nodelay true")
            )
        url = url if "@" in url else url.replace("//", "//run:secret@")
        (broker,) = set(psutil.Process().children()) - ours
        come = stack.enter_context(strays(Address.parse(url), strangers))
        beside = Beside(broker, come)
        outcome = asyncio.run(over_bus(_survey(beside, "hosts", url), lambda progress: None))
    alone = execute(
        _survey(lambda number: number != beside.last, "population"), lambda progress: None
    )
    (files, memory), (files_after, memory_after) = beside.looks
    figure(
        "class 16",
        f"{come.made:,} strangers on {kind} beside {len(outcome.rounds)} rounds: 0 reports lost, "
        f"open files {files} and {files_after}, {(memory_after - memory) / MEBIBYTE:.2f} MiB more",
    )
    assert come.made == strangers
    assert come.lost == 0, "the broker kept a connection open"
    assert outcome.counts.answered == outcome.counts.asked == CLIENTS * len(outcome.rounds)
    assert [each.digest for each in outcome.rounds] == [each.digest for each in alone.rounds]
    assert files_after <= files
    assert memory_after - memory < MEBIBYTE


def test_a_stranger_takes_no_members_place() -> None:
    """The client id of a member without the password, which ended the member's subscriptions: the
    member hears on."""

    async def play(url: str) -> None:
        address = Address.parse(url)
        async with aclosing(MqttBus(address, "member", ["t"]).messages(SOON)) as events:
            assert await anext(events) == CONNECTED
            with line_to(address) as stranger:
                stranger.sendall(greeting("wrong", "member"))
                assert await asyncio.to_thread(stranger.recv, 64) == b"\x20\x02\x00\x05"
            await asyncio.to_thread(retain, url, "t", b"heard")
            assert await asyncio.wait_for(anext(events), SOON) == Delivery("t", b"heard")

    with embedded() as url:
        asyncio.run(play(url))


LOGIN = packed("run", "secret")
HELLO = greeting("secret")
WORDS = st.one_of(
    st.just(HELLO),
    st.binary(max_size=40),
    st.tuples(st.integers(0, len(HELLO) - 1), st.integers(1, 255)).map(
        lambda at: HELLO[: at[0]] + bytes([HELLO[at[0]] ^ at[1]]) + HELLO[at[0] + 1 :]
    ),
    st.integers(0, len(HELLO)).map(lambda end: HELLO[:end]),
    st.integers(0, 0xFFFFFF).map(lambda size: b"\x10" + size.to_bytes(3) + bytes(GREETING)),
)


class Doors:
    """A door in this process, and strangers who come to it in turn."""

    def __init__(self, path: Path) -> None:
        self.path, self.entered = str(path), list[bytes]()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(1024)
        self.listener.setblocking(False)
        self.door = Door(self.listener, LOGIN, self._enter)

    async def _enter(self, line: socket.socket, first: bytes) -> None:
        self.entered.append(first)

    def come(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        line.connect(self.path)
        line.setblocking(False)
        return line

    @contextmanager
    def open(self) -> Iterator[None]:
        serving = asyncio.create_task(self.door.serve())
        try:
            yield
        finally:
            serving.cancel()
            self.listener.close()


@pytest.mark.parametrize("examples", [60, pytest.param(2_000, marks=pytest.mark.slow)])
def test_nobody_enters_without_the_password(examples: int, tmp_path: Path) -> None:
    """Any bytes, in any pieces, by search: only a greeting that ends with the login is handed on,
    whole; every other connection is closed, and forgotten."""
    entered = [0]

    async def play(words: list[bytes], piece: int) -> None:
        place = tmp_path / "door"
        place.unlink(missing_ok=True)
        doors = Doors(place)
        loop = asyncio.get_running_loop()
        with doors.open():
            for word in words:
                with closing(doors.come()) as line, suppress(ConnectionError):
                    for at in range(0, len(word), max(piece, len(word) // 8)):
                        await loop.sock_sendall(line, word[at : at + max(piece, len(word) // 8)])
                        await asyncio.sleep(0)
                    line.shutdown(socket.SHUT_WR)
                    async with asyncio.timeout(SOON):
                        while await loop.sock_recv(line, 64):
                            pass
            await asyncio.sleep(0)
            assert not doors.door.waiting
            assert not doors.door.inside
        assert all(
            each.endswith(LOGIN) and any(word.startswith(each) for word in words)
            for each in doors.entered
        )
        assert doors.entered.count(HELLO) == sum(word.startswith(HELLO) for word in words)
        entered[0] += len(doors.entered)

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(WORDS, max_size=4), st.sampled_from([1, 7, 4096]))
    def search(words: list[bytes], piece: int) -> None:
        asyncio.run(play(words, piece))

    search()
    assert entered[0] > examples // 10


def test_the_oldest_silent_stranger_gives_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three wait where two may: the first is closed after its shortest time; a member enters
    meanwhile; the others are closed after theirs."""
    monkeypatch.setattr(door, "STRANGERS", 3)
    monkeypatch.setattr(door, "CROWDED", 0.05)
    monkeypatch.setattr(door, "PATIENCE", 0.3)

    async def play() -> None:
        doors, loop = Doors(tmp_path / "door"), asyncio.get_running_loop()
        with doors.open():
            silent, began = [doors.come() for _ in range(3)], loop.time()
            assert await loop.sock_recv(silent[0], 1) == b""
            assert 0.04 < loop.time() - began < 0.25
            member = doors.come()
            await loop.sock_sendall(member, HELLO)
            assert await loop.sock_recv(member, 1) == b""
            assert doors.entered == [HELLO]
            for line in silent[1:]:
                assert await loop.sock_recv(line, 1) == b""
            assert loop.time() - began > 0.04
            await asyncio.sleep(0)
            assert not doors.door.waiting
            for line in (*silent, member):
                line.close()

    asyncio.run(asyncio.wait_for(play(), SOON))


def test_strangers_at_the_page_take_no_files_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative: the page of a run closes connections beyond its number at once, and those that
    ask for nothing soon; then it answers a reader."""
    monkeypatch.setattr(watch, "CONNECTIONS", 5)
    monkeypatch.setattr(watch, "SILENCE", 0.2)
    page = watch.Page(Scene(RunOptions(clients=2000, seed=7).settings(Survey(), None)))
    try:
        here = page._socket.getsockname()
        silent = [socket.create_connection(here) for _ in range(20)]
        for line in silent:
            line.settimeout(SOON)
            with line, suppress(ConnectionResetError):
                line.sendall(b"GET")
                assert line.recv(1) == b""
        assert not page._server.server_state.connections
        with socket.create_connection(here) as reader:
            reader.sendall(
                (
                    f"GET {page.url.split(str(here[1]))[1]} HTTP/1.1\r\nHost: "
                    "127.0.0.1\r\nConnection: close\r\n\r\n"
                ).encode()
            )
            assert reader.recv(12) == b"HTTP/1.1 200"
    finally:
        page.close()


LISTENERS = {  # where this project listens, and why no stranger fills it
    "local_dp/bus/embedded.py": {"bind"},  # the door
    "clients/fleet.py": {"start_unix_server"},  # in a folder that others cannot enter
    "server/watch/server.py": {"create_server"},  # the test above
    # tests/poll/test_attacks.py: floods of silent connections
    "server/poll/place.py": {"create_server"},
    "experiments/bench/fleets.py": {"create_server"},  # finds a free port, and closes
}


def test_every_listener_has_its_bound() -> None:
    """The search for relatives: no other file of the project listens for connections."""
    root, listens = (
        Path(__file__).parents[2],
        re.compile(
            r"\b(create_server|start_server|start_unix_server|bind|serve_forever|HTTPServer)\("
        ),
    )
    files = (
        path
        for room in ("local_dp", "clients", "server", "experiments")
        for path in (root / room).rglob("*.py")
    )
    found = {
        path.relative_to(root).as_posix(): set(listens.findall(path.read_text())) for path in files
    }
    assert {file: calls for file, calls in found.items() if calls} == LISTENERS
