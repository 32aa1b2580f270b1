"""The shuffler of a run, a process beside the server: it asks the clients as a server does, and answers the server as its only member, without the senders."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from local_dp.bus.address import Address
from local_dp.bus.children import environment, python
from local_dp.bus.interface import Bus, Connected, Delivery, SealedBus
from local_dp.bus.mqtt import MqttBus
from local_dp.errors import BusError, InputError, LocalDPError, RefusedError, WireError
from local_dp.loss import MAX_EPSILON
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import chunks
from local_dp.sealing import UNSIGNED, Envelopes, Party
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Keys, Roster
from local_dp.server.members import filters as server_filters
from local_dp.server.quorum import GRACE, Terms
from local_dp.server.remote import RemoteOracle
from local_dp.server.round import Part, Round
from local_dp.shuffle.central import Shuffler, check_shufflable
from local_dp.storage.log import sync
from local_dp.wire import CLIENT, EVERYBODY, Absent, Ask, End, Gone, Hello, Refusal, Reply, Request, Roll, behind, decode, encode, per_message, topic

NAME = "shuffler"  # its name and its group, to the server
PASSED = ".passed"  # the name of a run's file, after that of the run
Said: TypeAlias = Reply | Refusal | Absent


BROKER = 30.0  # seconds to wait for the brokers


def filters(run: str) -> list[str]:
    """The shuffler's topics on the server's side."""
    return [topic(behind(run), "req", NAME), topic(behind(run), "req", EVERYBODY)]


def will(run: str, envelopes: Envelopes) -> tuple[str, bytes]:
    """The message that the broker sends when the shuffler's connection breaks."""
    where = topic(behind(run), "gone", NAME, NAME)
    return where, envelopes.seal(where, encode(Gone(run=behind(run), member=NAME)))


@dataclass(frozen=True)
class Passed:
    """A file that stands for a run whose reports were passed on. Two shufflers would pass on two batches: their difference reveals the clients between them."""

    path: Path

    def check(self) -> None:
        """Raises InputError where it stands."""
        if self.path.exists():
            run = self.path.name.removesuffix(PASSED)
            raise InputError(f"reports of run {run!r} were passed on before, and a second batch would reveal clients; begin a run of a new name")

    def note(self) -> None:
        """Puts it on the disk. Raises InputError where it stands, or cannot be written."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            sync(self.path.parent)
        except FileExistsError:
            self.check()
        except OSError as error:
            raise InputError(f"cannot write {str(self.path)!r}: {error.strerror}") from None


class Mixer:
    """Plays a run between the clients, whom `front` asks, and the server on `bus`; `shuffler` keeps the crowd and draws the order.

    The server's rounds have the numbers of the clients' rounds. The messages of a round are kept, to be sent again; their senders are dropped with the round.
    `passing` is called once, before anything is passed on.
    """

    def __init__(self, front: RemoteOracle, bus: Bus, shuffler: Shuffler, passing: Callable[[], None] = lambda: None) -> None:
        self.front = front
        self.bus = bus
        self.shuffler = shuffler
        self.passing = passing
        self.run = behind(front.coordinator.run)
        self._said: dict[int, list[bytes]] = {}
        self._asked = 0
        self._ready = False

    async def serve(self, joining: float) -> None:
        """Mixes until the server ends the run, and passes that on. It waits `joining` seconds for the clients.

        Raises BusError or QuorumError if brokers or clients cannot be joined at first.
        """
        requests: asyncio.Queue[Request] = asyncio.Queue()
        tasks = [asyncio.create_task(each) for each in (self._listen(requests), self.front.serve(BROKER), self._play(requests, joining))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await self.front.end()
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
                elif message is not None and self._ready:
                    await self._hello()

    def _read(self, delivery: Delivery) -> Request | Roll | End | None:
        try:
            message = decode(delivery.payload, CLIENT)
        except WireError:
            return None  # not ours to answer
        return message if message.run == self.run and isinstance(message, Request | Roll | End) else None

    async def _hello(self) -> None:
        members = self.front.coordinator.members
        private = self.shuffler.private and members.attested
        await self._publish("hello", encode(Hello(run=self.run, member=NAME, start=0, stop=members.clients, private=private)))

    async def _publish(self, leaf: str, payload: bytes) -> None:
        await self.bus.publish(topic(self.run, leaf, NAME, NAME), payload)

    async def _heard(self, request: Request, requests: "asyncio.Queue[Request]") -> None:
        """A round that is asked again is answered with the same bytes."""
        for payload in self._said.get(request.round, ()):
            await self._publish("rep", payload)
        if request.round == self._asked + 1:
            self._asked = request.round
            requests.put_nowait(request)

    async def _play(self, requests: "asyncio.Queue[Request]", joining: float) -> None:
        """The rounds, one after the other, once the clients are there."""
        await self.front.ready(joining)
        self._ready = True
        await self._hello()
        while True:
            request = await requests.get()
            answers = [encode(each) for each in await self._answered(request)]
            if not self._said:
                self.passing()
            self._said = {request.round: answers}  # the server asks for no earlier round again
            await self._hello()  # a member that came meanwhile may not answer in private
            for payload in self._said[request.round]:
                await self._publish("rep", payload)

    async def _answered(self, request: Request) -> list[Said]:
        """The messages to the server about a round."""
        try:
            queries = tuple(_query(ask) for ask in request.asks)
            round = await self.front.collect(queries)
        except LocalDPError as error:
            code = error.code if isinstance(error, RefusedError) else "not-shuffled"
            clients = self.front.coordinator.members.clients
            return [Refusal(run=self.run, round=request.round, member=NAME, start=0, stop=clients, code=code, text=str(error)[:1000])]
        self.front.coordinator.forget(round)
        return [messages for ask in range(len(round.parts)) for messages in self._of_ask(round, ask)]

    def _of_ask(self, round: Round, ask: int) -> list[Said]:
        """The reports to one ask, and the number of missing ones; the places are counted from the cohort's first and identify nobody."""
        part = round.parts[ask]
        passed, start = self.shuffler.passed(part.reports[part.answered]), part.query.cohort.start
        count, width = passed.shape
        messages: list[Said] = [
            Reply(run=self.run, round=round.number, member=NAME, ask=ask, start=start + low, width=width, reports=passed[low:high].tobytes())
            for low, high in chunks(0, count, per_message(width))
        ]
        at = start + count
        for why, many in _lacking(part, count):
            if many:
                code = next(iter(part.refusals), "") if why == "refused" else ""
                messages.append(Absent(run=self.run, round=round.number, member=NAME, ask=ask, start=at, stop=at + many, why=why, code=code))
                at += many
        return messages


def _lacking(part: Part, passed: int) -> list[tuple[Literal["missing", "refused", "crowd"], int]]:
    """The number of reports that are not passed on, by reason."""
    withheld, refused = int(part.answered.sum()) - passed, int((part.refused & ~part.answered).sum())
    return [("crowd", withheld), ("refused", refused), ("missing", len(part.query.cohort) - passed - withheld - refused)]


def _query(ask: Ask) -> LocalQuery:
    """The ask, as the clients will read it. Raises InputError or RefusedError for a query that is unknown or cannot be shuffled."""
    query = LocalQuery(
        QUERIES.build(ask.query, ask.query_params), RANDOMIZERS.build(ask.randomizer, ask.randomizer_params), Cohort(ask.start, ask.stop), ask.once
    )
    check_shufflable(query)
    return query


_LOST = 5  # the exit code, as on the command line


class ShufflerConfig(BaseModel):
    """One shuffler: its run, the brokers of the clients and of the server, how many clients there are, its crowd, and its seed, or None for entropy.

    `joining`, `deadline` and `grace` are in seconds: the longest wait for the clients, for the reports of a round, and for a client that went. `key`, its own
    and private, `server_key` and `roster` come together; without them nothing is signed. `folder` is for the file of a run that is passed on once; without it,
    nobody starts this one again.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    run: str
    broker: str
    server_broker: str
    clients: Annotated[int, Field(ge=1)]
    crowd: Annotated[int, Field(ge=2)]
    seed: int | None
    deadline: float = 24.0
    joining: float = 60.0
    grace: float = GRACE
    key: Annotated[str, Field(repr=False)] = ""
    server_key: str = ""
    roster: str = ""
    folder: str = ""

    async def serve(self) -> None:
        """Mixes until the run is over. Raises BusError or QuorumError, and InputError if the run was passed on before."""
        passed = Passed(Path(self.folder) / (self.run + PASSED)) if self.folder else None
        if passed is not None:
            passed.check()
        keys = Keys(bytes.fromhex(self.key), Roster.parse(self.roster)) if self.key else None
        before: Envelopes = UNSIGNED if keys is None else Party.server(self.run, keys.own, keys.roster.speaker)
        after: Envelopes = UNSIGNED if keys is None else Party.member(behind(self.run), bytes.fromhex(self.server_key), keys.own)
        coordinator = Coordinator(self.run, self.clients, 0, MAX_EPSILON, Terms(self.deadline, grace=self.grace), keys.roster if keys else None)
        clients = MqttBus(Address.parse(self.broker), f"{self.run}-{NAME}-front", server_filters(self.run))
        server = MqttBus(Address.parse(self.server_broker), f"{self.run}-{NAME}", filters(self.run), will(self.run, after))
        front = RemoteOracle(clients, coordinator, envelopes=before)
        mixer = Mixer(front, SealedBus(server, after), Shuffler.of(self.seed, self.crowd), passed.note if passed else lambda: None)
        await mixer.serve(self.joining)


class ShufflerProcess:
    """A shuffler beside the run that starts it, for as long as that holds its standard input open."""

    def __init__(self, config: ShufflerConfig) -> None:
        self.config = config
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts the process; it joins the run by itself."""
        self._process = await asyncio.create_subprocess_exec(
            *python("local_dp.server.shuffler"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment(), start_new_session=True
        )
        assert self._process.stdin is not None
        self._process.stdin.write(self.config.model_dump_json().encode() + b"\n")

    async def watch(self) -> None:
        """Waits until it ends. Raises BusError if that was before the run did."""
        assert self._process is not None
        assert self._process.stdout is not None
        message = (await self._process.stdout.read()).decode(errors="replace").strip()
        code = await self._process.wait()
        if code:
            raise BusError(message or f"the shuffler ended before the run did (exit code {code}); its reports are lost, start the run again")

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


async def _live() -> int:
    config = ShufflerConfig.model_validate_json(sys.stdin.readline())
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), os._exit, 0)  # its starter is gone: there is nothing to save
    try:
        await config.serve()
    except LocalDPError as error:
        print(error, flush=True)
        return _LOST
    return 0


def main() -> None:
    """The shuffler's process: its configuration is a line of JSON on standard input."""
    sys.exit(asyncio.run(_live()))


if __name__ == "__main__":
    main()
