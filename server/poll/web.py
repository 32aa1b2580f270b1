"""The web server of a poll: pages, data, the way to the broker. Host and Origin are checked here,
sizes bounded, and no address is written anywhere."""

import asyncio
import contextlib
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from local_dp.sealing import KEY
from local_dp.server.pace import clock
from local_dp.server.pages import SERVER, page_headers
from local_dp.server.poll.connections import reader, speaker
from local_dp.server.poll.crowd import Crowd
from local_dp.server.poll.files import files
from local_dp.server.poll.gate import Gate, pass_through

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send
    from starlette.websockets import WebSocket

BODY = 1 << 10  # bytes of a request's body
HEAD = 1 << 14  # bytes of its head
FRAME = 1 << 15  # bytes of a WebSocket's message
FAREWELL = 2  # seconds in which pages may fetch the last state
TICK = 0.2  # seconds between two states
HEADERS = page_headers("'self'", "'self'")
_LOGS = ("asyncio", "uvicorn", "websockets")  # they might name an address
_PRESENTER = "present."  # how the presenter's own files begin


class Refused(Exception):
    """An answer of this status, with words for a person."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Desk(Protocol):
    """What the server asks of the poll."""

    def public(self) -> dict[str, Any]:
        """The data of a respondent's page."""

    def join(self, key: bytes, fresh: Callable[[], bool]) -> dict[str, Any]:
        """The place of this key; a new one only if it is `fresh`. Raises Refused."""

    def state(self) -> dict[str, Any]:
        """The data of the presenter's page: another object after each change."""

    def reports(self, question: int) -> dict[str, Any]:
        """The stored reports to a question. Raises Refused."""

    def close(self) -> None:
        """Ends the poll."""

    def again(self) -> None:
        """Begins the second round. Raises Refused."""

    def picture(self) -> bytes:
        """The QR code of the link, as SVG."""


@dataclass(frozen=True)
class Site:
    """Where the poll is: the names it may be called by, the port, and the two secret paths."""

    names: tuple[str, ...]
    port: int
    token: str
    host_token: str
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"

    @property
    def link(self) -> str:
        return f"{self.origin(self.names[0])}/{self.token}/"

    @property
    def presenter(self) -> str:
        return f"{self.origin(self.names[0])}/{self.host_token}/"

    def origin(self, name: str) -> str:
        return f"{self.scheme}://{self.called(name)}"

    def called(self, name: str) -> str:
        """The name as a Host header has it."""
        host = f"[{name}]" if ":" in name else name
        return host if self.port == (80 if self.tls is None else 443) else f"{host}:{self.port}"

    def knows(self, host: str) -> bool:
        return host.lower() in {self.called(name).lower() for name in self.names}

    def is_own(self, origin: str, host: str) -> bool:
        """True if a page from this origin is one of ours, at the name that was called."""
        return origin == f"{self.scheme}://{host}"


@dataclass(eq=False, repr=False)
class Web:
    """Serves the poll of `desk` at `site` in this event loop, until it is closed."""

    site: Site
    listener: socket.socket
    desk: Desk
    gate: Gate
    crowd: Crowd

    def __post_init__(self) -> None:
        self._files = files()
        self._over = asyncio.Event()
        for name in _LOGS:
            logging.getLogger(name).addHandler(logging.NullHandler())
            logging.getLogger(name).propagate = False
        self._server = self._build()

    async def serve(self) -> None:
        """Until `close`."""
        await self._server.serve([self.listener])

    def close(self) -> None:
        """Ends the server; presenters have FAREWELL seconds to fetch the last state."""
        self._over.set()
        self._server.should_exit = True

    def _build(self) -> "uvicorn.Server":
        import uvicorn

        class Server(uvicorn.Server):
            """The command line handles signals."""

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        config = uvicorn.Config(
            self._check(self._app()),
            **SERVER,
            proxy_headers=False,
            http=reader(self.crowd),
            ws=speaker(self.crowd),
            ws_max_size=FRAME,
            ws_per_message_deflate=False,
            h11_max_incomplete_event_size=HEAD,
            backlog=1024,
        )
        config.timeout_graceful_shutdown = FAREWELL
        config.load()
        config.ssl = self.site.tls
        return Server(config)

    def _app(self) -> "Starlette":
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse, StreamingResponse
        from starlette.responses import Response as Plain
        from starlette.routing import Route, WebSocketRoute

        async def data(request: "Request") -> "Response":
            return JSONResponse(self.desk.public())

        async def join(request: "Request") -> "Response":
            key, address = await _key(request), request.client.host if request.client else ""
            return JSONResponse(self.desk.join(key, lambda: self.crowd.may_join(address, clock())))

        async def follow(request: "Request") -> "Response":
            self.crowd.belongs(request.scope["client"], "presenter")
            return StreamingResponse(self._states(), media_type="text/event-stream")

        async def reports(request: "Request") -> "Response":
            text = request.query_params.get("question", "0")
            return JSONResponse(
                self.desk.reports(int(text) if text.isdecimal() and len(text) < 4 else -1)
            )

        async def close(request: "Request") -> "Response":
            self.desk.close()
            return JSONResponse({})

        async def again(request: "Request") -> "Response":
            self.desk.again()
            return JSONResponse({})

        async def picture(request: "Request") -> "Response":
            return Plain(self.desk.picture(), media_type="image/svg+xml")

        async def refuse(request: "Request", error: Exception) -> "Response":
            assert isinstance(error, Refused)
            return JSONResponse({"error": str(error)}, status_code=error.status)

        ours, theirs = f"/{self.site.token}", f"/{self.site.host_token}"
        routes = [
            Route(f"{ours}/poll.json", data),
            Route(f"{ours}/join", join, methods=["POST"]),
            WebSocketRoute(f"{ours}/bus", self._bus),
            Route(f"{theirs}/poll.json", data),
            Route(f"{theirs}/state", follow),
            Route(f"{theirs}/reports", reports),
            Route(f"{theirs}/close", close, methods=["POST"]),
            Route(f"{theirs}/again", again, methods=["POST"]),
            Route(f"{theirs}/qr.svg", picture),
            Route(f"{ours}/{{path:path}}", self._page("respond.html", presenter=False)),
            Route(f"{theirs}/{{path:path}}", self._page("present.html", presenter=True)),
        ]
        return Starlette(routes=routes, exception_handlers={Refused: refuse})

    def _page(self, first: str, presenter: bool) -> "Callable[[Request], Awaitable[Response]]":
        from starlette.responses import Response as Plain

        async def show(request: "Request") -> "Response":
            path = request.path_params["path"] or first
            file = self._files.get(path)
            if file is None or (path.startswith(_PRESENTER) and not presenter):
                return Plain(status_code=404)
            is_gzip = "gzip" in request.headers.get("accept-encoding", "")
            headers = {
                "Vary": "Accept-Encoding",
                **({"Content-Encoding": "gzip"} if is_gzip else {}),
            }
            return Plain(file.gzip if is_gzip else file.data, headers=headers, media_type=file.kind)

        return show

    def _check(self, app: "ASGIApp") -> "ASGIApp":
        """The application behind the checks of name, origin and pace."""
        from starlette.datastructures import Headers
        from starlette.responses import PlainTextResponse

        async def check(scope: "Scope", receive: "Receive", send: "Send") -> None:
            status = self._status(scope, Headers(scope=scope))
            if status and scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            elif status:
                await PlainTextResponse("", status_code=status, headers=HEADERS)(
                    scope, receive, send
                )
            else:
                await app(scope, receive, _with_headers(send))

        return check

    def _status(self, scope: "Scope", headers: "Any") -> int:
        """The status of a request that is refused before it is looked at, else 0."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if len(headers.getlist("host")) != 1 or not self.site.knows(host):
            return 400
        changes = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        presenter = scope["path"].startswith(f"/{self.site.host_token}/")
        if changes and (presenter if origin is None else not self.site.is_own(origin, host)):
            return 403  # a page of another site; programs that are no browsers send no origin
        address = scope["client"][0] if scope.get("client") else ""
        return 0 if self.crowd.may_ask(address, clock()) else 429

    async def _bus(self, websocket: "WebSocket") -> None:
        from starlette.websockets import WebSocketDisconnect

        if "mqtt" not in websocket.scope["subprotocols"]:
            await websocket.close(1002)
            return
        await websocket.accept("mqtt")
        key = websocket.scope["client"]

        async def receive() -> bytes | None:
            try:
                return await websocket.receive_bytes()
            except (WebSocketDisconnect, KeyError, RuntimeError):
                return None

        # the page, or the broker, is gone
        with contextlib.suppress(OSError, WebSocketDisconnect, RuntimeError):
            await pass_through(
                self.gate,
                receive,
                websocket.send_bytes,
                lambda member: self.crowd.belongs(key, member),
            )
        with contextlib.suppress(OSError, WebSocketDisconnect, RuntimeError):
            await websocket.close()

    async def _states(self) -> AsyncIterator[str]:
        """Each new state, to the last."""
        last = None
        while True:
            over = self._over.is_set()
            state = self.desk.state()
            if state is not last:
                last = state
                yield f"data: {json.dumps(state, allow_nan=False)}\n\n"
            if over:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), TICK)


async def _key(request: "Request") -> bytes:
    """The public key in the body of a request. Raises Refused."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY:
            raise Refused(413, "the request is too long")
    try:
        key = bytes.fromhex(json.loads(body)["key"])
    except (ValueError, TypeError, KeyError, RecursionError):
        key = b""
    if len(key) != KEY:
        raise Refused(400, f"a request to join has the key of {KEY} bytes, in hexadecimal")
    return key


def _with_headers(send: "Send") -> "Send":
    """Adds the headers of all answers."""
    fixed = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *fixed]}
        await send(message)

    return sending
