"""A page as a person meets it: opened in headless Chromium, wide and narrow, light and dark, and
looked at by axe-core.

The browser is spoken to by the Chrome DevTools Protocol. Chromium is a program of the machine,
axe-core a file in the package axe-core-python.
"""

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium on this machine: apt-get install chromium"
)
WIDTHS = (1200, 400)
SCHEMES = ("light", "dark")
LOADED = "document.readyState === 'complete'"
SERIOUS = ("serious", "critical")
PATIENCE = 60.0  # seconds, on a machine that has much else to do
_FLAGS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
    ),
    *(
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--remote-debugging-port=0",
        "--log-level=3",
    ),
)
_SCROLL = "document.scrollingElement.scrollWidth - document.documentElement.clientWidth"
_AXE = (
    # without what takes long and is not asked for
    "axe.run(document, {resultTypes: ['violations'], selectors: false, preload: false})"
    ".then(found => JSON.stringify(found.violations.map(each => [each.impact, each.id, "
    "each.nodes[0].html])))"
)


class Tab:
    """One tab of a browser: goes to pages, evaluates expressions there, and keeps what they
    complained of in `errors`."""

    def __init__(
        self, socket: Connection, opener: "Tab | None" = None, apart: bool = False
    ) -> None:
        self._socket = socket
        self._numbers: itertools.count[int] = opener._numbers if opener else itertools.count(1)
        # the errors of each tab of the browser
        self._logs: dict[str, list[str]] = opener._logs if opener else {}
        self._session = ""
        self.errors: list[str] = []
        profile = opener._profile if opener else {}
        self._profile: dict[str, str] = (
            {"browserContextId": self.call("Target.createBrowserContext")["browserContextId"]}
            if apart
            else profile
        )
        self._target: str = self.call("Target.createTarget", url="about:blank", **self._profile)[
            "targetId"
        ]
        self._session = self.call("Target.attachToTarget", targetId=self._target, flatten=True)[
            "sessionId"
        ]
        self._logs[self._session] = self.errors
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def beside(self, apart: bool = False) -> "Tab":
        """Another tab of the same person; or `apart`, of another one, with storage of its own."""
        return Tab(self._socket, self, apart)

    def close(self) -> None:
        session, self._session = self._session, ""
        self.call("Target.closeTarget", targetId=self._target)
        del self._logs[session]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        address = {"sessionId": self._session} if self._session else {}
        self._socket.send(json.dumps({"id": number, "method": method, "params": params, **address}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            self._hear(message)
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                answer: dict[str, Any] = message["result"]
                return answer

    def _hear(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        errors = self._logs.get(message.get("sessionId", ""), self.errors)
        match message.get("method"):
            case "Runtime.exceptionThrown":
                errors.append(
                    str(
                        params["exceptionDetails"]
                        .get("exception", {})
                        .get("description", params["exceptionDetails"]["text"])
                    )
                )
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "assert"):
                errors.append(
                    str([each.get("value", each.get("description")) for each in params["args"]])
                )
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def appear(self, width: int, scheme: str) -> None:
        """How wide the window is, and which colours the person prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def go(self, address: str, until: str = LOADED) -> None:
        assert "errorText" not in self.call("Page.navigate", url=address), (
            f"{address} does not open"
        )
        self.wait(f"location.href === {json.dumps(address)} && {LOADED} && ({until})")

    def wait(self, until: str) -> None:
        end = time.monotonic() + PATIENCE
        while self.evaluate(until) is not True:
            assert time.monotonic() < end, (
                f"{until} did not become true; the page says: "
                f"{self.evaluate('document.body.innerText')} {self.errors}"
            )
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, path: Path) -> None:
        path.write_bytes(
            base64.b64decode(
                self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
            )
        )

    def axe(self, *impacts: str) -> list[str]:
        """What axe-core finds of these impacts, or of any."""
        self.evaluate(files("axe_core_python").joinpath("axe.min.js").read_text() + "; true")
        return [
            f"{impact}: {rule}: {where}"
            for impact, rule, where in json.loads(self.evaluate(_AXE))
            if not impacts or impact in impacts
        ]


@contextmanager
def browser() -> Iterator[Tab]:
    """A browser of its own, with one tab."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port, path = _address(Path(profile, "DevToolsActivePort"), process)
            with connect(
                f"ws://127.0.0.1:{port}{path}",
                max_size=None,
                proxy=None,
                compression=None,
                ping_interval=None,
            ) as socket:
                yield Tab(socket)
        finally:
            process.kill()
            process.wait()


def _address(file: Path, process: "subprocess.Popen[bytes]") -> tuple[str, str]:
    """Where the browser listens, once it has written it down."""
    end = time.monotonic() + PATIENCE
    while not (file.exists() and len(lines := file.read_text().split()) == 2):
        assert process.poll() is None, "the browser has ended"
        assert time.monotonic() < end, "the browser does not listen"
        time.sleep(0.05)
    return lines[0], lines[1]


def faults(tab: Tab, page: str | Path) -> list[str]:
    """What is wrong with a page, an address or a file: console errors, horizontal scroll, serious
    findings of axe-core, at each width and colour scheme."""
    address = page.resolve().as_uri() if isinstance(page, Path) else page
    complaints = []
    for width, scheme in itertools.product(WIDTHS, SCHEMES):
        tab.appear(width, scheme)
        tab.go(address)
        beyond = tab.evaluate(_SCROLL)
        wrong = [f"scrolls sideways by {beyond} pixels"] if beyond > 0 else []
        wrong += tab.axe(*SERIOUS)
        wrong += tab.errors
        tab.errors.clear()
        complaints += [f"{width} px, {scheme}: {each}" for each in wrong]
    return complaints
