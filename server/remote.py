"""The LR oracle over a message bus: real clients answer. It holds the bus and the clock, and the coordinator decides."""

import asyncio
import math
from collections.abc import Callable
from contextlib import aclosing

from local_dp.bus.base import Bus, Connected, Delivery
from local_dp.errors import WireError
from local_dp.oracles.local.asked import LocalQuery
from local_dp.tallies import Tally
from local_dp.wire import EVERYBODY, SERVER, End, decode, encode, topic
from server.collecting import Send
from server.coordinator import Coordinator
from server.progress import Progress
from server.round import Round

SHOWN = 0.25  # seconds between two looks at how far a round is


def filters(run: str) -> list[str]:
    """What the server subscribes to."""
    return [topic(run, leaf, "+", "+") for leaf in ("rep", "hello", "gone")]


class RemoteOracle:
    """Asks the clients that have said hello on the bus.

    `serve` must run beside `ready` and `answer`: it is the only reader of the bus.
    """

    def __init__(self, bus: Bus, coordinator: Coordinator, on_progress: Callable[[Progress], None] = lambda progress: None) -> None:
        self.bus = bus
        self.coordinator = coordinator
        self.on_progress = on_progress
        self._stirred = asyncio.Event()
        self._until = math.inf  # when the sleep ends that an event may shorten

    async def serve(self, patience: float) -> None:
        """Reads the bus until cancelled. Raises BusError if the broker cannot be joined within `patience` seconds."""
        async with aclosing(self.bus.messages(patience)) as events:
            async for event in events:
                if isinstance(event, Connected):
                    self.coordinator.connected()
                elif not self._deliver(event):
                    continue
                if self.coordinator.wake(_now()) < self._until:
                    self._stirred.set()

    def _deliver(self, delivery: Delivery) -> bool:
        """Whether it was read."""
        if not self.coordinator.reads(delivery.topic, _now()):
            return False
        try:
            message = decode(delivery.payload, SERVER)
        except WireError:
            self.coordinator.rejected += 1
        else:
            self.coordinator.receive(delivery.topic, message, _now())
        return True

    async def ready(self, patience: float) -> None:
        """Waits until every expected client is present, or `patience` seconds. Raises QuorumError if nobody came."""
        self.coordinator.gather(patience, _now())
        await self._settle()
        self.coordinator.gathered()

    async def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """One round. Raises RefusedError or QuorumError if it closes with fewer replies of a cohort than its quorum."""
        self.coordinator.open(queries, _now())
        return self.coordinator.close(await self._settle())

    async def collect(self, queries: tuple[LocalQuery, ...]) -> Round:
        """One round, however few answer it. Raises as `Coordinator.open`."""
        self.coordinator.open(queries, _now())
        await self._settle()
        return self.coordinator.shut()

    async def end(self) -> None:
        """Tells every client that the run is over."""
        await self._publish(Send(EVERYBODY, End(run=self.coordinator.run)))

    async def _settle(self) -> float:
        """Publishes what is due, whenever it is, until there is nothing to wait for; when that was, however long it then takes to show it."""
        while not self.coordinator.is_settled(now := _now()):
            self._stirred.clear()
            for send in self.coordinator.due(_now()):
                await self._publish(send)
            self._show()
            await self._sleep()
        self._show()
        return now

    async def _sleep(self) -> None:
        """Until there is something to do or to show: when the coordinator wakes, or before if an event makes it wake earlier."""
        self._until = self.coordinator.wake(_now())
        try:
            async with asyncio.timeout_at(min(self._until, _now() + SHOWN)):
                await self._stirred.wait()
        except TimeoutError:
            pass

    async def _publish(self, send: Send) -> None:
        await self.bus.publish(topic(self.coordinator.run, "req", send.group), encode(send.message))

    def _show(self) -> None:
        progress = self.coordinator.progress(_now())
        if progress is not None:
            self.on_progress(progress)


def _now() -> float:
    return asyncio.get_running_loop().time()
