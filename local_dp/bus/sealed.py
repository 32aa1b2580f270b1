"""A bus whose messages travel in envelopes: the one place at each end where they are closed and opened."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from local_dp.bus.interface import Bus, ClientBus, Connected, Delivery, ServerBus
from local_dp.errors import ForgedError
from local_dp.sealing import Envelopes

B = TypeVar("B", bound=Bus)


class SealedBus(Generic[B]):
    """Another bus, of which nothing is heard but what its speaker said; `forged` counts the rest, but for what comes under a topic that is not `worth` it."""

    def __init__(self, bus: B, envelopes: Envelopes, worth: Callable[[str], bool] = lambda topic: True) -> None:
        self.bus = bus
        self.envelopes = envelopes
        self.worth = worth
        self.forged = 0

    async def publish(self, topic: str, payload: bytes) -> None:
        """Hands a message to the broker, in its envelope."""
        await self.bus.publish(topic, self.envelopes.seal(topic, payload))

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
        """What the other bus brings, out of its envelopes."""
        async with aclosing(self.bus.messages(patience)) as events:
            async for event in events:
                if isinstance(event, Connected):
                    yield event
                    continue
                if not self.worth(event.topic):
                    continue
                try:
                    message = self.envelopes.open(event.topic, event.payload)
                except ForgedError:
                    self.forged += 1
                else:
                    yield Delivery(event.topic, message)


class SealedServerBus(SealedBus[ServerBus]):
    """The same, with other topics when the server wants them."""

    async def listen(self, filters: Sequence[str]) -> None:
        """Hears these from now on."""
        await self.bus.listen(filters)


class SealedClientBus(SealedBus[ClientBus]):
    """The same, with the clock of the other one."""

    def now(self) -> float:
        """Seconds on the clock that `rest` keeps."""
        return self.bus.now()

    async def rest(self, seconds: float) -> None:
        """Waits, and hears nothing meanwhile."""
        await self.bus.rest(seconds)
