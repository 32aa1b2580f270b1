"""Polls for tests: served in the test's own event loop, with members in Python that join over the
page's WebSocket."""

import asyncio
import http.client
import json
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from local_dp.bus.address import Address
from local_dp.bus.interface import SealedBus
from local_dp.bus.mqtt import MqttBus
from local_dp.clients.journal import MemoryStore
from local_dp.clients.member import filters, serve, will
from local_dp.clients.role import ClientRole
from local_dp.noise import Noise, SystemNoise
from local_dp.records import Records
from local_dp.sealing import Party, new_key, public
from local_dp.server.pages import LOOPBACK
from local_dp.server.poll.gate import Packet
from local_dp.server.poll.place import listening, site_of
from local_dp.server.poll.plan import Plan
from local_dp.server.poll.questions import Question, Questions
from local_dp.server.poll.run import Poll, Result
from local_dp.server.remote import Journal
from local_dp.wire import Gone, Hello, encode, topic

THREE = Questions(
    "three questions",
    (
        Question("q1", "Did you ever cheat?", 1.0),
        Question("q2", "Which colour?", 1.0, labels=("red", "green", "blue")),
        Question("q3", "How many hours?", 0.5, low=0.0, high=10.0),
    ),
)
PATIENCE = 30.0


@dataclass
class Answer:
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


def ask(
    url: str,
    path: str = "",
    body: bytes | None = None,
    source: str = LOOPBACK,
    ca: str = "",
    **headers: str,
) -> Answer:
    """One request from `source`, an address of this machine; `_` in the name of a header stands for
    `-`."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20, source_address=(source, 0))
    if ca:
        connection = http.client.HTTPSConnection(
            parts.netloc, timeout=20, context=ssl.create_default_context(cafile=ca)
        )
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(connection):
        connection.request("GET" if body is None else "POST", parts.path + path, body, fields)
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.headers), answer.read())


async def asked(*arguments: Any, **headers: Any) -> Answer:
    """The same, in a thread."""
    return await asyncio.to_thread(ask, *arguments, **headers)


class ClientBus(MqttBus):
    """With the clock of the event loop."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass
class Person:
    """One respondent in Python: with a key, a record and a store, which outlive a connection."""

    record: Records
    key: bytes = field(default_factory=new_key)
    store: MemoryStore = field(default_factory=lambda: MemoryStore(10.0))
    place: dict[str, Any] = field(default_factory=dict)
    role: ClientRole | None = None
    address: str = ""  # of another way to the broker
    ca: str = ""  # the file of the authority, over TLS
    noise: Noise = field(default_factory=SystemNoise)

    @classmethod
    def of(cls, yes: int, colour: str = "red", hours: float = 5.0, **options: Any) -> "Person":
        return cls(
            Records(
                {
                    "q1": np.array([yes], dtype=np.uint8),
                    "q2": np.array([colour]),
                    "q3": np.array([hours]),
                }
            ),
            **options,
        )

    async def join(self, link: str) -> dict[str, Any]:
        """The poll's data, once a place is taken."""
        poll: dict[str, Any] = (await asked(link, "poll.json", ca=self.ca)).data
        body = json.dumps({"key": public(self.key).hex()}).encode()
        self.place = (await asked(link, "join", body, ca=self.ca)).data
        return poll

    async def answer(self, link: str) -> None:
        """Answers until the poll is over."""
        poll = await self.join(link)
        run, group, member = poll["run"], self.place["group"], self.place["member"]
        self.role = self.role or ClientRole(
            member, self.place["start"], self.record, self.noise, self.store
        )
        envelopes = Party.member(run, server=bytes.fromhex(poll["server"]), own=self.key)
        options = f"?ca={self.ca}" if self.ca else ""
        url = self.address or f"{link.replace('http', 'ws', 1)}bus{options}"
        last_words = will(run, group, member, envelopes)
        bus = ClientBus(Address.parse(url), f"{run}-{member}", filters(run, group), last_words)
        await serve(self.role, SealedBus(bus, envelopes), run, group)

    def sealed(self, poll: Plan, leaf: str) -> bytes:
        """Its signed hello, or its will."""
        where = topic(poll.run, leaf, self.place["group"], self.place["member"])
        start = self.place["start"]
        hello = Hello(
            run=poll.run, member=self.place["member"], start=start, stop=start + 1, private=True
        )
        last_words = Gone(run=poll.run, member=self.place["member"])
        message = encode(hello if leaf == "hello" else last_words)
        return Party.member(poll.run, server=public(poll.key), own=self.key).seal(where, message)

    def greeting(self, poll: Plan) -> bytes:
        """The first packet of its connection."""
        where = topic(poll.run, "gone", self.place["group"], self.place["member"]).encode()
        parts = (b"x", where, self.sealed(poll, "gone"))
        body = b"".join(len(part).to_bytes(2) + part for part in parts)
        return bytes(Packet(0x10, b"\0\4MQTT\4\6\0\x1e" + body))

    def reports(self) -> list[bytes]:
        """The bytes it has sent, by question."""
        (commit,) = self.store.commits
        return [reply.reports for reply in commit.replies]


@dataclass
class Served:
    """A poll that is being served."""

    poll: Poll
    playing: "asyncio.Task[Result]"

    @property
    def link(self) -> str:
        return self.poll.site.link

    def answers(self, people: Iterable[Person]) -> "list[asyncio.Task[None]]":
        """These people answer until the poll is over."""
        return [asyncio.create_task(person.answer(self.link)) for person in people]

    async def hear(self, *people: Person) -> None:
        """These people, and nobody else, answer all three questions and leave."""
        tasks = self.answers(people)
        await self.until(*[len(people)] * 3)
        for task in tasks:
            task.cancel()

    async def until(self, *counts: int) -> None:
        """Waits for so many answers to each question."""
        async with asyncio.timeout(PATIENCE):
            while [each["answered"] for each in self.poll.state()["questions"]] != list(counts):
                if self.playing.done():
                    self.playing.result()
                await asyncio.sleep(0.05)

    async def close(self) -> Result:
        """Closes it as the presenter does."""
        origin = self.poll.site.origin(LOOPBACK)
        assert (await asked(self.poll.site.presenter, "close", b"", Origin=origin)).status == 200
        async with asyncio.timeout(PATIENCE):
            return await self.playing


def plan(questions: Questions = THREE, **options: Any) -> Plan:
    with listening(LOOPBACK, 0) as probe:
        port = probe.getsockname()[1]
    return Plan.new(
        questions, **{"people": 100, "host": LOOPBACK, "name": LOOPBACK, "port": port, **options}
    )


@asynccontextmanager
async def serving(
    folder: Path, design: Plan, journal: Journal | None = None
) -> AsyncIterator[Served]:
    """Serves a new poll, or goes on with a journal, until the end of the block at the latest."""
    with closing(journal or Journal.begin(folder, design.run, design.to_dict())) as store:
        poll = Poll(design, store, site_of(design), listening(LOOPBACK, design.port))
        ready = asyncio.Event()
        playing = asyncio.create_task(poll.play(ready.set))
        try:
            await asyncio.wait(
                {playing, asyncio.create_task(ready.wait())},
                timeout=PATIENCE,
                return_when=asyncio.FIRST_COMPLETED,
            )
            yield Served(poll, playing)
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
