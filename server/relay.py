"""A role between the clients and the server of a run: it asks the clients as a server does, and is
a member of the server's run behind it."""

import asyncio
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import TypeAlias

from pydantic import BaseModel

from local_dp.bus.children import ending, environment, python
from local_dp.bus.interface import Bus, Connected, Delivery
from local_dp.errors import BusError, LocalDPError, WireError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.sealing import Envelopes
from local_dp.server.remote import RemoteOracle
from local_dp.wire import (
    CLIENT,
    EVERYBODY,
    Absent,
    Ask,
    End,
    Gone,
    Hello,
    Refusal,
    Reply,
    Request,
    Roll,
    Span,
    behind,
    decode,
    encode,
    topic,
)

BROKER = 30.0  # seconds to wait for the brokers
Said: TypeAlias = Reply | Refusal | Absent


def filters(run: str, group: str) -> list[str]:
    """Its topics on the server's side."""
    return [topic(behind(run), "req", group), topic(behind(run), "req", EVERYBODY)]


def will(run: str, group: str, name: str, envelopes: Envelopes) -> tuple[str, bytes]:
    """The message that the broker sends when its connection breaks."""
    where = topic(behind(run), "gone", group, name)
    return where, envelopes.seal(where, encode(Gone(run=behind(run), member=name)))


def query_of(ask: Ask) -> LocalQuery:
    """The ask, as the clients will read it. Raises InputError or RefusedError for a query that is
    unknown."""
    return LocalQuery(
        QUERIES.build(ask.query, ask.query_params),
        RANDOMIZERS.build(ask.randomizer, ask.randomizer_params),
        Cohort(ask.start, ask.stop),
        ask.once,
    )


class Relay(ABC):
    """Plays a run between the clients, whom `front` asks, and the server on `bus`, where it is
    `name`, the member for the clients of `span`.

    The server's rounds have the numbers of the clients' rounds. The messages of a round are kept,
    to be sent again, until the next. `passing` is called once, before anything is passed on.
    """

    resumes = False  # whether it may begin with a later round than the first

    def __init__(
        self,
        front: RemoteOracle,
        bus: Bus,
        group: str,
        name: str,
        span: Span,
        passing: Callable[[], None] = lambda: None,
    ) -> None:
        self.front = front
        self.bus = bus
        self.group = group
        self.name = name
        self.span = span
        self.passing = passing
        self.run = behind(front.coordinator.run)
        self._said: dict[int, list[bytes]] = {}
        self._asked = 0
        self._ready = False

    @property
    @abstractmethod
    def private(self) -> bool:
        """What it says of itself, beside its members."""

    @abstractmethod
    async def answered(self, request: Request) -> list[Said]:
        """The messages to the server about a round."""

    async def gathered(self, joining: float) -> None:
        """Waits for the clients."""
        await self.front.ready(joining)

    @abstractmethod
    async def part(self, over: bool) -> None:
        """Leaves the clients: the run is over, or else it failed."""

    async def serve(self, joining: float) -> None:
        """Plays until the server ends the run, and passes that on. It waits `joining` seconds for
        the clients.

        Raises BusError or QuorumError if brokers or clients cannot be joined at first.
        """
        requests: asyncio.Queue[Request] = asyncio.Queue()
        tasks = [
            asyncio.create_task(each)
            for each in (
                self._listen(requests),
                self.front.serve(BROKER),
                self._play(requests, joining),
            )
        ]
        over = False
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            over = True
        finally:
            if not over:
                await self._publish("gone", encode(Gone(run=self.run, member=self.name)))
            tasks[-1].cancel()  # no round is played any more
            await self.part(over)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, requests: "asyncio.Queue[Request]") -> None:
        """Hears the server until it says the end."""
        async with aclosing(self.bus.messages(BROKER)) as events:
            async for event in events:
                message = event if isinstance(event, Connected) else self._read(event)
                if isinstance(message, End):
                    return
                if isinstance(message, Request):
                    await self._heard(message, requests)
                elif (
                    message is not None
                    and self._ready
                    and not (self._works and isinstance(message, Roll) and message.missing)
                ):
                    await self._hello()

    @property
    def _works(self) -> bool:
        """Whether it plays a round. It then answers no roll that names it: a server would take a
        hello for the sign that an answer was lost."""
        return self._asked > 0 and self._asked not in self._said

    def _read(self, delivery: Delivery) -> Request | Roll | End | None:
        try:
            message = decode(delivery.payload, CLIENT)
        except WireError:
            return None  # not ours to answer
        return (
            message
            if message.run == self.run and isinstance(message, Request | Roll | End)
            else None
        )

    async def _hello(self) -> None:
        start, stop = self.span
        private = self.private and self.front.coordinator.members.attested
        await self._publish(
            "hello",
            encode(Hello(run=self.run, member=self.name, start=start, stop=stop, private=private)),
        )

    async def _publish(self, leaf: str, payload: bytes) -> None:
        await self.bus.publish(topic(self.run, leaf, self.group, self.name), payload)

    async def _heard(self, request: Request, requests: "asyncio.Queue[Request]") -> None:
        """A round that is asked again is answered with the same bytes."""
        for payload in self._said.get(request.round, ()):
            await self._publish("rep", payload)
        if request.round == self._asked + 1 or (self.resumes and request.round > self._asked):
            self._asked = request.round
            requests.put_nowait(request)

    async def _play(self, requests: "asyncio.Queue[Request]", joining: float) -> None:
        """The rounds, one after the other, once the clients are there."""
        await self.gathered(joining)
        self._ready = True
        await self._hello()
        while True:
            request = await requests.get()
            answers = [encode(each) for each in await self.answered(request)]
            if not self._said:
                self.passing()
            self._said = {request.round: answers}  # the server asks for no earlier round again
            await self._hello()  # a member that came meanwhile may not answer in private
            for payload in answers:
                await self._publish("rep", payload)


LOST = 5  # the exit code, as on the command line


class RelayProcess:
    """A relay beside the run that starts it, for as long as that holds its standard input open: the
    module that plays it, and its configuration."""

    def __init__(self, module: str, config: BaseModel, lost: str) -> None:
        self.module = module
        self.config = config
        self.lost = lost  # what is said when it ends before the run does
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts the process; it joins the run by itself."""
        self._process = await asyncio.create_subprocess_exec(
            *python(self.module),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(self.config.model_dump_json().encode() + b"\n")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def ended(self) -> tuple[int, str]:
        """Its exit code and what it printed, once it has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        message = (await self._process.stdout.read()).decode(errors="replace").strip()
        return await self._process.wait(), message

    async def watch(self) -> None:
        """Waits until it ends. Raises BusError if that was before the run did."""
        code, message = await self.ended()
        if code:
            raise BusError(
                message
                or f"{self.lost} ({ending(code)}); its reports are lost, start the run again"
            )

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


def live(serve: Callable[[str], Awaitable[None]]) -> None:
    """The process of a relay: its configuration is a line of JSON on standard input."""
    sys.exit(asyncio.run(_live(serve)))


async def _live(serve: Callable[[str], Awaitable[None]]) -> int:
    config = sys.stdin.readline()
    # its starter is gone: there is nothing to save
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), os._exit, 0)
    try:
        await serve(config)
    except LocalDPError as error:
        print(error, flush=True)
        return LOST
    return 0
