"""The message bus as the roles use it; and a bus with signed envelopes, the one place at each end
where messages are signed and verified."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from local_dp.errors import ForgedError

if TYPE_CHECKING:  # signatures are imported by those who sign
    from local_dp.sealing import Envelopes


@dataclass(frozen=True)
class Delivery:
    """A message that arrived."""

    topic: str
    payload: bytes


@dataclass(frozen=True)
class Connected:
    """The bus has just been joined, or joined again: earlier messages may be lost."""


CONNECTED = Connected()


class Bus(Protocol):
    """Publish and receive; may lose, repeat and reorder, and says when it starts afresh."""

    async def publish(self, topic: str, payload: bytes) -> None: ...

    def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]: ...


class ServerBus(Bus, Protocol):
    """A bus whose topics may be others later, for a server that is flooded. `lost` is why it has no
    connection now, in one line; empty while it has one."""

    @property
    def lost(self) -> str: ...

    async def listen(self, filters: Sequence[str]) -> None:
        """Receives messages under these filters only, from then on; none that fits the old and the
        new ones is lost meanwhile."""


class ClientBus(Bus, Protocol):
    """A bus with a clock, for a client that answers at a time of its own."""

    def now(self) -> float:
        """Seconds on the clock that `rest` keeps."""

    async def rest(self, seconds: float) -> None:
        """Waits, and receives nothing meanwhile."""


B = TypeVar("B", bound=Bus)


@dataclass(eq=False, repr=False)
class SealedBus(Generic[B]):
    """A bus that drops every message not signed by its speaker, and counts it in `forgeries`.
    Messages whose topic is not `worth` it are dropped unopened."""

    bus: B
    envelopes: "Envelopes"
    worth: Callable[[str], bool] = lambda topic: True
    forgeries: int = 0

    async def publish(self, topic: str, payload: bytes) -> None:
        """Hands a message to the broker, in its envelope."""
        await self.bus.publish(topic, self.envelopes.seal(topic, payload))

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
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
                    self.forgeries += 1
                else:
                    yield Delivery(event.topic, message)

    async def listen(self: "SealedBus[ServerBus]", filters: Sequence[str]) -> None:
        await self.bus.listen(filters)

    def now(self: "SealedBus[ClientBus]") -> float:
        return self.bus.now()

    async def rest(self: "SealedBus[ClientBus]", seconds: float) -> None:
        await self.bus.rest(seconds)
