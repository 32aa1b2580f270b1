"""The page in a real browser: it follows a run to its end, reads well at any width and in both
schemes, and nobody else gets at it."""

import http.client
import json
import shlex
import socket
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from local_dp.api.asking import RunOptions, ask
from local_dp.cli.run.run import look
from local_dp.errors import InputError
from local_dp.masked.protocols import MaskedParityOneRound
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.surveys.survey import Survey
from local_dp.server.progress import Attendance, Progress
from local_dp.server.watch.events import Scene
from local_dp.server.watch.server import Page, watched
from local_dp.simulation.settings import Settings, Tier
from tests.support.long import short
from tests.support.runs.browser import browser, needs_chromium
from tests.support.runs.command import local_dp


def _settings(protocol: Survey | Frequency | MaskedParityOneRound, clients: int) -> Settings:
    return RunOptions(clients=clients, seed=7).settings(protocol, None)


@contextmanager
def _serve(scene: Scene) -> Iterator[Page]:
    page = Page(scene)
    try:
        yield page
    finally:
        page.close()


def _status(url: str, path: str = "", host: str = "") -> int:
    with _get(url, path, host) as answer:
        return answer.status


def _get(url: str, path: str = "", host: str = "") -> http.client.HTTPResponse:
    """The answer to one request, under another Host header than the page's own if there is one."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    headers = {"Connection": "close"} | ({"Host": host} if host else {})
    connection.request("GET", path or parts.path, headers=headers)
    return connection.getresponse()


@needs_chromium
@pytest.mark.parametrize("tier", short(["population", "hosts"], lambda tier: tier == "population"))
def test_a_run_is_followed_to_its_end(tier: Tier) -> None:
    """A browser that came when it was called has the result once the run is over, keeps it, and
    finds no server any more; it complains of nothing."""
    urls = []
    with browser() as tab:

        def open_it(url: str) -> bool:
            urls.append(url)
            tab.go(url, "state !== null")
            assert (
                tab.evaluate("document.getElementById('status').textContent")
                == "Waiting for the clients."
            )
            return True

        result = ask(Survey(), None, RunOptions(clients=300, seed=7, tier=tier, watch=open_it))
        tab.wait("state.phase === 'over'")
        text = tab.evaluate("document.body.innerText")
        assert all(part in text for part in ("The run is over.", "300 asked, 300 answered"))
        assert tab.evaluate("state.rows[0].value") == result.estimate
        parts = urlsplit(urls[0])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((parts.hostname or "", parts.port or 0), timeout=5)
        assert (tab.evaluate("document.body.innerText"), tab.errors) == (text, [])


def test_nobody_else_gets_at_the_page() -> None:
    """It listens on 127.0.0.1 alone, under a path that cannot be guessed; a foreign Host is
    refused; the page may load nothing that is not its own."""
    with _serve(Scene(_settings(Survey(), 100))) as page:
        assert page._socket.getsockname()[0] == "127.0.0.1"
        answer = _get(page.url)
        text = answer.read().decode()
        assert answer.status == 200
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in policy
        assert text.count("http") == text.count("http://www.w3.org/2000/svg") + text.count(
            "http-equiv"
        )
        assert [_status(page.url, path) for path in ("/", "/events", "/elsewhere/")] == [
            404,
            404,
            404,
        ]
        for host in ("example.com", "127.0.0.1.example.com:80", "0.0.0.0"):
            assert _status(page.url, host=host) == 400
            assert _status(page.url, urlsplit(page.url).path + "events", host) == 400
        with _serve(Scene(_settings(Survey(), 100))) as other:
            assert urlsplit(other.url).path != urlsplit(page.url).path


def test_the_events_are_the_states() -> None:
    """A reader receives each state, the last one too, and then the stream ends; an error ends the
    server, reaches the caller and is the last state."""
    scene = Scene(_settings(Survey(), 100))
    with _serve(scene) as page:
        events = _get(page.url, urlsplit(page.url).path + "events")
        first = json.loads(events.readline().decode().removeprefix("data: "))
        scene.show(Attendance(40, 100, ((40, 100),)))
        scene.fail(InputError("so it was"))
        last = json.loads(events.read().decode().strip().split("data: ")[-1])
    assert (first["phase"], last["phase"], last["present"]) == ("starting", "failed", 40)
    assert last["status"] == "The run has ended: so it was."
    urls = list[str]()
    with (
        pytest.raises(InputError, match="no more"),
        watched(_settings(Survey(), 100), urls.append) as failing,
    ):
        raise InputError("no more")
    assert failing.state["status"] == "The run has ended: no more."
    with pytest.raises(ConnectionRefusedError):
        _get(urls[0])


def test_watch_at_the_command_line() -> None:
    """`--watch` names the page on standard error and leaves standard output to the result; without
    a terminal no browser is opened."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webbrowser, "open", lambda url: pytest.fail("a browser was opened"))
        done = local_dp(
            *shlex.split("run survey --clients 200 --seed 1 --tier population --watch --json")
        )
    assert done.returncode == 0, done.stderr
    assert "watch at http://127.0.0.1:" in done.stderr
    assert json.loads(done.stdout)["clients"]["answered"] == 200


def test_a_browser_is_opened_at_a_desktop_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal under a desktop the page is opened; in one without, where a browser would open
    inside the terminal, it is only named."""
    urls: list[str] = []

    def open_it(url: str) -> bool:
        urls.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_it)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not look("http://127.0.0.1:1/")
    monkeypatch.setenv("DISPLAY", ":0")
    assert look("http://127.0.0.1:2/")
    assert urls == ["http://127.0.0.1:2/"]


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "starlette", None)
    with pytest.raises(InputError, match=r"local-dp\[watch\]"):
        Page(Scene(_settings(Survey(), 100)))


def test_progress_goes_on_beside_the_page() -> None:
    steps: list[Progress] = []
    result = ask(
        Survey(),
        None,
        RunOptions(clients=100, seed=7, progress=steps.append, watch=lambda url: None),
    )
    assert (len(steps), result.data["clients"]["answered"]) == (3, 100)
