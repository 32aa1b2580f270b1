"""A bus inside one process, with faults on demand: roles are joined through it in tests and
simulations."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from local_dp.bus.interface import CONNECTED, Connected, Delivery

Fate = Callable[[Delivery], int]  # how many times a message is delivered: 0 loses it, 2 repeats it


class MemoryBroker:
    """Routes messages between its buses, each as often as `fate` says."""

    def __init__(self, fate: Fate = lambda delivery: 1) -> None:
        self.fate = fate
        self.buses: list[MemoryBus] = []

    def join(self, filters: Sequence[str]) -> "MemoryBus":
        bus = MemoryBus(self, filters)
        self.buses.append(bus)
        return bus

    def route(self, delivery: Delivery) -> None:
        """Hands a message to everybody who subscribed to its topic."""
        for bus in self.buses:
            if bus.hears(delivery.topic):
                for _ in range(self.fate(delivery)):
                    bus.queue.put_nowait(delivery)


class MemoryBus:
    """One connection, which is never lost."""

    lost = ""
    idle: float | None = None

    def __init__(self, broker: MemoryBroker, filters: Sequence[str]) -> None:
        self.broker = broker
        self.filters = filters
        self.queue: asyncio.Queue[Delivery | Connected] = asyncio.Queue()
        self.queue.put_nowait(CONNECTED)

    async def publish(self, topic: str, payload: bytes) -> None:
        self.broker.route(Delivery(topic, payload))

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
        """Every delivery, until nothing came for `idle` seconds; put CONNECTED into `queue` to play
        a reconnection."""
        while True:
            try:
                event = await asyncio.wait_for(self.queue.get(), self.idle)
            except TimeoutError:
                return
            yield event

    def hears(self, topic: str) -> bool:
        """True if what is published under a topic comes here."""
        return any(_matches(pattern, topic) for pattern in self.filters)

    async def listen(self, filters: Sequence[str]) -> None:
        self.filters = filters

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _matches(pattern: str, topic: str) -> bool:
    parts, levels = pattern.split("/"), topic.split("/")
    if len(parts) != len(levels):
        return False
    return all(part in ("+", level) for part, level in zip(parts, levels, strict=True))
