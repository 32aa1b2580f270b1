"""The connections of uvicorn, each counted in the crowd. Imports uvicorn where a poll is served."""

import asyncio

from local_dp.server.poll.crowd import Crowd

# seconds in which a connection must have asked for something: browsers open one in advance, and
# close it themselves after 10
SILENCE = 15.0


def reader(crowd: Crowd) -> "type[asyncio.Protocol]":
    """A connection: counted, and closed soon if it asks for nothing."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Reader(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            crowd.enter(self.client, self.client[0] if self.client else "", transport.abort)
            self.loop.call_later(SILENCE, self._close_if_silent)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            crowd.leave(self.client)

        def _close_if_silent(self) -> None:
            if self.cycle is None and self.transport.get_protocol() is self:
                self.transport.abort()

    return Reader


def speaker(crowd: Crowd) -> "type[asyncio.Protocol]":
    """A WebSocket: counted until it is closed."""
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    class Speaker(WebSocketsSansIOProtocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            crowd.leave(self.client)

    return Speaker
