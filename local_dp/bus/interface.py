"""What a message bus is to the roles that use it."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Delivery:
    """A message that arrived."""

    topic: str
    payload: bytes


@dataclass(frozen=True)
class Connected:
    """The bus has just been joined, or joined again: whatever was sent before may be lost."""


CONNECTED = Connected()


class Bus(Protocol):
    """Publish and receive; may lose, repeat and reorder, and says when it starts afresh."""

    async def publish(self, topic: str, payload: bytes) -> None: ...

    def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]: ...


class ServerBus(Bus, Protocol):
    """A bus whose topics may be others later, for a server that is flooded."""

    async def listen(self, filters: Sequence[str]) -> None:
        """Hears what comes under these filters, and nothing else from then on; what comes under the old and the new meanwhile is not lost."""
        ...


class ClientBus(Bus, Protocol):
    """A bus with a clock, for a client that answers at a time of its own."""

    def now(self) -> float:
        """Seconds on the clock that `rest` keeps."""
        ...

    async def rest(self, seconds: float) -> None:
        """Waits, and hears nothing meanwhile."""
        ...
