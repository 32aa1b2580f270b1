"""Members without a state of their own, thousands of them in one process, at a round trip from the
server; for runs in virtual time."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import client_group
from local_dp.errors import QuorumError
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import filters
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.wire import EVERYBODY, AnyMessage, Hello, Reply, Request, Roll, decode, encode, topic
from tests.support.inputs.builders import RUN, SEED, reply_of, survey_query
from tests.support.runs.virtual_time import beside, run_virtually


@dataclass
class Played:
    """What a round with light members took: the seconds of the wait and of the round, when the
    first report came, and who said hello how often."""

    answers: int = 0
    wait: float = 0.0
    took: float = 0.0
    first: float = float("inf")  # seconds after the wait
    hellos: Counter[int] = field(default_factory=Counter)  # those that were said
    arrivals: Counter[int] = field(default_factory=Counter)  # those that reached the server


class LightBroker(MemoryBroker):
    """The clients `present`, each its own member; a message takes half of `trip`, and to or from a
    member it is lost with the chance `loss`."""

    def __init__(self, present: Iterable[int], trip: float, loss: float, record: Played) -> None:
        super().__init__()
        self.loss, self.chance = loss, random.Random(SEED)
        self.groups: dict[str, list[int]] = {EVERYBODY: list(present)}
        for client in self.groups[EVERYBODY]:
            self.groups.setdefault(client_group(client), []).append(client)
        self.trip = trip
        self.record = record
        self.server = self.join(filters(RUN))

    def route(self, delivery: Delivery) -> None:
        asyncio.get_running_loop().call_later(
            self.trip / 2, self._deliver, delivery.topic.split("/")[-1], decode(delivery.payload)
        )

    def _arrives(self) -> bool:
        return self.chance.random() >= self.loss

    def _say(self, leaf: str, client: int, message: AnyMessage) -> None:
        if not self._arrives():
            return
        self.record.arrivals[client] += leaf == "hello"
        where = topic(RUN, leaf, client_group(client), f"m{client}")
        asyncio.get_running_loop().call_later(
            self.trip / 2, self.server.queue.put_nowait, Delivery(where, encode(message))
        )

    def hello(self, client: int) -> None:
        self.record.hellos[client] += 1
        self._say(
            "hello",
            client,
            Hello(run=RUN, member=f"m{client}", start=client, stop=client + 1, private=False),
        )

    def _deliver(self, group: str, message: AnyMessage) -> None:
        for client in filter(lambda _: self._arrives(), self.groups.get(group, ())):
            if isinstance(message, Roll) and message.calls(client, client + 1):
                self.hello(client)
            elif isinstance(message, Request) and (
                not message.missing
                or any(start <= client < stop for start, stop in message.missing)
            ):
                self._say("rep", client, self._reply(client, message))

    def _reply(self, client: int, request: Request) -> Reply:
        return reply_of(request.round, f"m{client}", client, b"\1")


def play_light(
    clients: int, absent: Iterable[int] = (), trip: float = 0.1, loss: float = 0.0
) -> Played:
    """One round with light members, of which `absent` never come, over a network that delays and
    loses."""
    record, missing = Played(), set(absent)

    async def play() -> Played:
        broker = LightBroker(
            [client for client in range(clients) if client not in missing], trip, loss, record
        )
        loop = asyncio.get_running_loop()
        coordinator = Coordinator(RUN, clients, SEED, 1.0, Terms())
        oracle = RemoteOracle(broker.server, coordinator)
        async with beside(oracle.serve(1.0)):
            for client in broker.groups[EVERYBODY]:
                broker.hello(client)
            await oracle.ready(60.0)
            record.wait = loop.time()
            hear = coordinator.pace.heard

            def first(seconds: float) -> None:
                record.first = min(record.first, loop.time() - record.wait)
                hear(seconds)

            coordinator.pace.heard = first  # type: ignore[method-assign]
            with suppress(QuorumError):
                await oracle.answer((survey_query(clients),))
            record.took = loop.time() - record.wait
            record.answers = coordinator.counts.answered
        return record

    return run_virtually(play())
