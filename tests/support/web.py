"""The JavaScript client for tests: programs in Node, and modules in a browser, from files that a
server of this process serves."""

import functools
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
OLDEST = 20  # of Node
TYPESCRIPT = "typescript@5.9.3"


def _node() -> str | None:
    """The Node of this machine, unless it is too old."""
    path = shutil.which("node")
    version = (
        subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        if path
        else ""
    )
    return path if version.startswith("v") and int(version[1:].split(".")[0]) >= OLDEST else None


NODE = _node()
needs_node = pytest.mark.skipif(
    NODE is None, reason=f"there is no Node {OLDEST} or later on this machine: install nodejs"
)
POLICY = "default-src 'none'; img-src data:; script-src 'self'; connect-src 'self' ws://127.0.0.1:*"
FLAGS = ("--experimental-websocket", "--no-warnings")  # Node 20 has WebSocket, but not at once


def node(program: str, *arguments: str, data: object = None, timeout: float = 600) -> Any:
    """What a program of tests/web prints, as JSON; `data` is its standard input, as JSON."""
    assert NODE is not None
    words = [NODE, *FLAGS, str(ROOT / "tests" / "web" / program), *arguments]
    process = subprocess.run(
        words, input=json.dumps(data), capture_output=True, text=True, timeout=timeout, check=False
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return json.loads(process.stdout)


def types(folder: Path) -> str:
    """What TypeScript says of the modules of a folder, by its tsconfig.json; it is fetched by npx,
    and without a registry the test is skipped."""
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("there is no npx on this machine: apt-get install npm")
    tsc = [npx, "--yes", "--package", TYPESCRIPT, "tsc"]
    if subprocess.run(
        [*tsc, "--version"], capture_output=True, check=False, timeout=120
    ).returncode:
        pytest.skip("npx cannot fetch TypeScript")
    report = subprocess.run(
        [*tsc, "-p", str(folder)], capture_output=True, text=True, check=False, timeout=300
    )
    return report.stdout + report.stderr


class _Files(http.server.SimpleHTTPRequestHandler):
    """The files of the repository, under a strict policy; any other path is an empty page."""

    extensions_map = {  # noqa: RUF012 - as the base class has it
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
    }

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def do_GET(self) -> None:
        if self.path.split("?")[0] != "/":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>t</title><link rel=icon href=data:,>")

    def log_message(self, *anything: Any) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    """The address of the repository's files on the loopback."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Files, directory=str(ROOT))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
