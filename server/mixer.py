"""The shuffler's part in a run: it asks the clients as a server does, and answers the server as its
only member, without the senders."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from local_dp.bus.interface import Bus, Connected, Delivery
from local_dp.errors import LocalDPError, RefusedError, WireError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import repeat_of
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import chunks
from local_dp.sealing import Envelopes
from local_dp.server.phases import Answer
from local_dp.server.remote import RemoteOracle
from local_dp.server.round import Part, Round
from local_dp.shuffle.central import Shuffler, check_shufflable
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
    behind,
    decode,
    encode,
    per_message,
    topic,
)

NAME = "shuffler"  # its name and its group, to the server
BROKER = 30.0  # seconds to wait for the brokers


def filters(run: str) -> list[str]:
    """Its topics on the server's side."""
    return [topic(behind(run), "req", NAME), topic(behind(run), "req", EVERYBODY)]


def will(run: str, envelopes: Envelopes) -> tuple[str, bytes]:
    """The message that the server's broker sends when its connection breaks."""
    where = topic(behind(run), "gone", NAME, NAME)
    return where, envelopes.seal(where, encode(Gone(run=behind(run), member=NAME)))


def query_of(ask: Ask) -> LocalQuery:
    """The ask, as the clients will read it. Raises InputError or RefusedError for a query that is
    unknown."""
    query = QUERIES.build(ask.query, ask.query_params)
    randomizer = RANDOMIZERS.build(ask.randomizer, ask.randomizer_params)
    repeat = repeat_of(ask.once, randomizer)
    return LocalQuery(query, randomizer, Cohort(ask.start, ask.stop), repeat)


@dataclass(eq=False, repr=False)
class Mixer:
    """Is all clients to the server on `bus`, and a server to the clients, whom `front` asks;
    `shuffler` keeps the crowd and draws the order.

    The server's rounds have the numbers of the clients' rounds. The messages of a round are kept,
    to be sent again, until the next; its senders are dropped with it. `passing` is called once,
    before anything is passed on.
    """

    front: RemoteOracle
    bus: Bus
    shuffler: Shuffler
    passing: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.run = behind(self.front.coordinator.run)
        self.clients = self.front.coordinator.members.clients
        self._answers: dict[int, list[bytes]] = {}
        self._number = 0
        self._ready = False

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
                await self._publish("gone", encode(Gone(run=self.run, member=NAME)))
            tasks[-1].cancel()  # no round is played any more
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
                    await self._take(message, requests)
                elif (
                    message is not None
                    and self._ready
                    and not (self._works and isinstance(message, Roll) and message.missing)
                ):
                    await self._hello()

    @property
    def _works(self) -> bool:
        """True if it plays a round. It then answers no roll that names it: a server would take a
        hello for the sign that an answer was lost."""
        return self._number > 0 and self._number not in self._answers

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
        private = self.shuffler.private and self.front.coordinator.members.attested
        await self._publish(
            "hello",
            encode(Hello(run=self.run, member=NAME, start=0, stop=self.clients, private=private)),
        )

    async def _publish(self, leaf: str, payload: bytes) -> None:
        await self.bus.publish(topic(self.run, leaf, NAME, NAME), payload)

    async def _take(self, request: Request, requests: "asyncio.Queue[Request]") -> None:
        """A round that is asked again is answered with the same bytes."""
        for payload in self._answers.get(request.round, ()):
            await self._publish("rep", payload)
        if request.round == self._number + 1:
            self._number = request.round
            requests.put_nowait(request)

    async def _play(self, requests: "asyncio.Queue[Request]", joining: float) -> None:
        """The rounds, one after the other, once the clients are there."""
        await self.front.ready(joining)
        self._ready = True
        await self._hello()
        while True:
            request = await requests.get()
            answers = [encode(each) for each in await self._messages(request)]
            if not self._answers:
                self.passing()
            self._answers = {request.round: answers}  # the server asks for no earlier round again
            await self._hello()  # a member that came meanwhile may not answer in private
            for payload in answers:
                await self._publish("rep", payload)

    async def _messages(self, request: Request) -> list[Answer]:
        """The messages to the server about a round."""
        try:
            queries = tuple(map(query_of, request.asks))
            for query in queries:
                check_shufflable(query)
            round = await self.front.collect(queries)
        except LocalDPError as error:
            code = error.code if isinstance(error, RefusedError) else "not-shuffled"
            return [
                Refusal(
                    run=self.run,
                    round=request.round,
                    member=NAME,
                    start=0,
                    stop=self.clients,
                    code=code,
                    text=str(error)[:1000],
                )
            ]
        self.front.coordinator.forget(round)
        return [
            messages for ask in range(len(round.parts)) for messages in self._of_ask(round, ask)
        ]

    def _of_ask(self, round: Round, ask: int) -> list[Answer]:
        """The reports to one ask, and the number of missing ones; the places are counted from the
        cohort's first and identify nobody."""
        part = round.parts[ask]
        rows, start = self.shuffler.passed(part.reports[part.answered]), part.query.cohort.start
        count, width = rows.shape
        messages: list[Answer] = [
            Reply(
                run=self.run,
                round=round.number,
                member=NAME,
                ask=ask,
                start=start + low,
                width=width,
                reports=rows[low:high].tobytes(),
            )
            for low, high in chunks(0, count, per_message(width))
        ]
        at = start + count
        for why, code, many in _lacking(round, part, count):
            if many > 0:
                messages.append(
                    Absent(
                        run=self.run,
                        round=round.number,
                        member=NAME,
                        ask=ask,
                        start=at,
                        stop=at + many,
                        why=why,
                        code=code,
                    )
                )
                at += many
        return messages


def _lacking(
    round: Round, part: Part, count: int
) -> list[tuple[Literal["missing", "refused", "crowd"], str, int]]:
    """The number of reports that are not passed on, by reason and code."""
    withheld, refusals = part.answers - count, part.refusers
    causes = Counter[str]()
    for lack, owing in round.lacking(part):
        causes[lack.cause] += owing
    causes[""] = len(part.query.cohort) - count - withheld - refusals - causes.total()
    return [
        ("crowd", "", withheld),
        ("refused", next(iter(part.refusals), ""), refusals),
        *(("missing", code, many) for code, many in causes.items()),
    ]
