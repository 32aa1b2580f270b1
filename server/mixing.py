"""The shuffler on the bus: it asks the clients as a server does, and answers the server as its only member, without the senders."""

import asyncio
from contextlib import aclosing
from typing import Literal, TypeAlias

from local_dp.bus.interface import Bus, Connected, Delivery
from local_dp.errors import LocalDPError, RefusedError, WireError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import chunks
from local_dp.sealing import Envelopes
from local_dp.server.remote import RemoteOracle
from local_dp.server.round import Part, Round
from local_dp.shuffle.central import Shuffler, check_shufflable
from local_dp.wire import CLIENT, EVERYBODY, Absent, Ask, End, Gone, Hello, Refusal, Reply, Request, Roll, behind, decode, encode, per_message, topic

NAME = "shuffler"  # its name and its group, to the server
Said: TypeAlias = Reply | Refusal | Absent


BROKER = 30.0  # seconds to wait for the brokers


def filters(run: str) -> list[str]:
    """The shuffler's topics on the server's side."""
    return [topic(behind(run), "req", NAME), topic(behind(run), "req", EVERYBODY)]


def will(run: str, envelopes: Envelopes) -> tuple[str, bytes]:
    """The message that the broker sends when the shuffler's connection breaks."""
    where = topic(behind(run), "gone", NAME, NAME)
    return where, envelopes.seal(where, encode(Gone(run=behind(run), member=NAME)))


class Mixer:
    """Plays a run between the clients, whom `front` asks, and the server on `bus`; `shuffler` keeps the crowd and draws the order.

    The server's rounds have the numbers of the clients' rounds. The messages of a round are kept, to be sent again; their senders are dropped with the round.
    """

    def __init__(self, front: RemoteOracle, bus: Bus, shuffler: Shuffler) -> None:
        self.front = front
        self.bus = bus
        self.shuffler = shuffler
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
            self._said[request.round] = [encode(each) for each in await self._answered(request)]
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
