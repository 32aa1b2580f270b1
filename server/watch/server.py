"""The page of one run, served on loopback for as long as the run goes on.

Starlette and uvicorn are small, typed, and enough for a page with server-sent events. Nobody else
can open it: it listens on 127.0.0.1 only, under a random path, and answers no foreign Host, which a
rebound name would send. The page may load only itself and its events.
"""

import asyncio
import json
import re
import secrets
import socket
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from local_dp.server.pages import LOOPBACK, SERVER, check_installed, page_headers
from local_dp.server.watch.events import Scene
from local_dp.simulation.settings import Settings

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

ARRIVAL = 10.0  # seconds that a run waits for the browser that was opened
FAREWELL = 1  # seconds in which pages may fetch the last state
TICK = 0.1  # seconds between two states
# connections to the page at one time; seconds in which one must have asked for something
CONNECTIONS, SILENCE = (
    64,
    5.0,
)
ENDED = ("over", "failed")
PAGE = Path(__file__).with_name("page.html")


class Page:
    """The server of a scene's page, in a thread of its own. `url` is where it is."""

    def __init__(self, scene: Scene) -> None:
        check_installed("watch", "starlette", "uvicorn")
        self.scene = scene
        self._secret = secrets.token_urlsafe(16)
        self._socket = socket.create_server((LOOPBACK, 0))
        self.url = f"http://{LOOPBACK}:{self._socket.getsockname()[1]}/{self._secret}/"
        self.arrival = threading.Event()  # whether a reader came
        self._start()

    def _start(self) -> None:
        import uvicorn

        settings = uvicorn.Config(self._app(), ws="none", http=_reader(), **SERVER)
        settings.timeout_graceful_shutdown = FAREWELL
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Ends the server; readers have a second to fetch the last state."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def _app(self) -> "Starlette":
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.responses import Response, StreamingResponse
        from starlette.routing import Route

        page = PAGE.read_text()
        own = _headers(page)

        async def show(request: "Request") -> "Response":
            return Response(page, media_type="text/html", headers=own)

        async def follow(request: "Request") -> "Response":
            return StreamingResponse(self._events(), media_type="text/event-stream", headers=own)

        routes = [Route(f"/{self._secret}/", show), Route(f"/{self._secret}/events", follow)]
        return Starlette(
            routes=routes,
            middleware=[
                Middleware(
                    TrustedHostMiddleware, allowed_hosts=[LOOPBACK, "localhost"], www_redirect=False
                )
            ],
        )

    async def _events(self) -> AsyncIterator[str]:
        """Each new state, to the last."""
        self.arrival.set()
        last = None
        while True:
            state = self.scene.state
            if state is not last:
                last = state
                yield f"data: {json.dumps(state, allow_nan=False)}\n\n"
            if state["phase"] in ENDED:
                return
            await asyncio.sleep(TICK)


def _reader() -> "type[asyncio.Protocol]":
    """A connection to the page: closed at once where there are too many, and soon where it asks for
    nothing. The run needs the open files itself."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Reader(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.loop.call_later(
                0.0 if len(self.connections) > CONNECTIONS else SILENCE, self._close_if_silent
            )

        def _close_if_silent(self) -> None:
            if self.cycle is None:
                self.transport.abort()

    return Reader


def _headers(page: str) -> dict[str, str]:
    """The page may run its own script and style, and fetch its events."""
    script, style = (
        f"'sha256-{b64encode(sha256(_inside(page, kind).encode()).digest()).decode()}'"
        for kind in ("script", "style")
    )
    return page_headers(script, style)


def _inside(page: str, kind: str) -> str:
    parts = re.findall(f"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
    assert len(parts) == 1, f"the page holds one {kind}"
    return str(parts[0])


@contextmanager
def watched(settings: Settings, announce: Callable[[str], object]) -> Iterator[Scene]:
    """Serves the page of a run until it ends. `announce` receives its address; if it returns true,
    the run waits for a reader to arrive."""
    scene = Scene(settings)
    page = Page(scene)
    try:
        if announce(page.url):
            page.arrival.wait(ARRIVAL)
        yield scene
    except BaseException as error:
        scene.fail(error)
        raise
    finally:
        page.close()
