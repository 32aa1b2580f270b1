"""The message bus as the roles use it."""

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
    """The bus has just been joined, or joined again: earlier messages may be lost."""


CONNECTED = Connected()


class Bus(Protocol):
    """Publish and receive; may lose, repeat and reorder, and says when it starts afresh."""

    async def publish(self, topic: str, payload: bytes) -> None: ...

    def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]: ...


class ServerBus(Bus, Protocol):
    """A bus whose topics may be others later, for a server that is flooded."""

    async def listen(self, filters: Sequence[str]) -> None:
        """Receives messages under these filters only, from then on; none that fits the old and the new ones is lost meanwhile."""


class ClientBus(Bus, Protocol):
    """A bus with a clock, for a client that answers at a time of its own."""

    def now(self) -> float:
        """Seconds on the clock that `rest` keeps."""

    async def rest(self, seconds: float) -> None:
        """Waits, and receives nothing meanwhile."""
