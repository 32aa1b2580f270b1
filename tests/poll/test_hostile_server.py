"""A server that signs hostile requests, and a network that forges them: the page refuses each in words, and charges nothing for it."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

import pytest
from paho.mqtt.publish import single

from local_dp.bus.address import Address
from local_dp.experiments.pages import LOOPBACK
from local_dp.experiments.poll.crowd import Crowd
from local_dp.experiments.poll.gate import Gate
from local_dp.experiments.poll.place import listening, site_of
from local_dp.experiments.poll.plan import Plan
from local_dp.experiments.poll.questions import MOST_EPSILON, Question, Questions
from local_dp.experiments.poll.run import Poll
from local_dp.experiments.poll.web import Web
from local_dp.sealing import Party, new_key
from local_dp.server.remote import Journal
from local_dp.wire import Ask, Request, encode, topic
from tests.support.runs.brokers import mosquitto, needs_mosquitto
from tests.support.runs.browser import PATIENCE, Tab, browser, needs_chromium
from tests.support.runs.poll_pages import LOADED, fill, shown, status
from tests.support.runs.polls import THREE, plan

COINS, OTHERS = bytes(16), bytes([1] * 16)
ASKS = tuple(Ask.of(query, COINS) for query in THREE.asks(100))
REFUSED = "Your phone refused"


@dataclass
class Server:
    """A poll's web server without a poll behind it: what it asks is up to the test."""

    plan: Plan
    link: str
    address: Address

    def says(self, payload: bytes) -> None:
        """Publishes to the first member, as anybody on the broker could."""
        single(self._topic, payload, hostname=self.address.host, port=self.address.port)

    def asks(self, *asks: Ask, round: int = 1, run: str = "", key: bytes = b"", end: bytes = b"") -> None:
        """A request with the server's signature, or with that of another key or run."""
        request = encode(Request(run=run or self.plan.run, round=round, asks=asks or ASKS, missing=())) + end
        self.says(Party.server(run or self.plan.run, key or self.plan.key, lambda _: None).seal(self._topic, request))

    @property
    def _topic(self) -> str:
        return topic(self.plan.run, "req", "g0")


@contextmanager
def hostile(folder: Path, questions: Questions = THREE) -> Iterator[Server]:
    planned, ready = plan(questions, people=1), Queue[Callable[[], object]]()
    site = site_of(planned)

    async def serve(poll: Poll, listener: socket.socket, address: Address) -> None:
        envelopes = Party.server(planned.run, planned.key, poll.places.roster.speaker)
        web = Web(site, listener, poll, Gate(planned.run, envelopes, address), Crowd(100))
        loop = asyncio.get_running_loop()
        ready.put(lambda: loop.call_soon_threadsafe(web.close))
        await web.serve()

    def work(address: Address) -> None:
        with closing(Journal.begin(folder, planned.run, planned.to_dict())) as journal, listening(LOOPBACK, planned.port) as listener:
            asyncio.run(serve(Poll(planned, journal, site, listener), listener, address))

    with mosquitto(folder) as broker:
        address = Address.parse(broker.url)
        thread = threading.Thread(target=work, args=(address,))
        thread.start()
        close = ready.get(timeout=PATIENCE)
        try:
            yield Server(planned, site.link, address)
        finally:
            close()
            thread.join()


def _words(tab: Tab, code: str) -> str:
    """The page's words for a code."""
    text: str = tab.evaluate(f"import('./client/index.js').then(client => client.words({json.dumps(code)}))")
    assert len(text.split()) > 5
    return text


def _says(tab: Tab, words: str) -> None:
    end = time.monotonic() + PATIENCE
    while words not in status(tab):
        assert time.monotonic() < end, f"{words!r} is not said, but {status(tab)!r}"
        time.sleep(0.05)


def _spent(tab: Tab) -> str:
    text: str = tab.evaluate("document.getElementById('run-text').textContent")
    return text


@needs_chromium
@needs_mosquitto
@pytest.mark.long
def test_hostile_requests_are_refused_in_words(tmp_path: Path) -> None:
    """Ten before the answer and three after it: each has its words on the page; the honest request between them is answered once, and alone is paid for."""
    first, second, _ = ASKS
    scripted = second.model_copy(update={"query_params": {**second.query_params, "labels": ("<script>window.ran = true</script>", "b", "c")}})
    with hostile(tmp_path) as server, browser() as window:
        tab = window.beside(apart=True)
        tab.go(server.link, LOADED)
        fill(tab, 1, 1, 7)
        _says(tab, "wait on your phone")
        before: list[tuple[str, Callable[[], None]]] = [
            ("budget", lambda: server.asks(first.model_copy(update={"randomizer_params": {"epsilon": 20.0}}))),
            ("unknown-randomizer", lambda: server.asks(first.model_copy(update={"randomizer": "tell-all"}))),
            ("forged", lambda: server.asks(key=new_key())),
            ("bad-query", lambda: server.asks(scripted)),
            ("oversized", lambda: server.says(bytes((1 << 20) + 65))),
            ("unknown-query", lambda: server.asks(first.model_copy(update={"query": "everything"}))),
            ("forged", lambda: server.asks(run="another-run")),
            ("bad-parameters", lambda: server.asks(first.model_copy(update={"randomizer_params": {"epsilon": -1.0}}))),
            ("trailing-bytes", lambda: server.asks(end=b"\0")),
            ("bad-query", lambda: server.asks(first.model_copy(update={"query_params": {"text": "q1 == 0"}}))),
        ]
        for code, attack in before:
            attack()
            _says(tab, _words(tab, code))
            assert "sent nothing" in status(tab)
            assert "Left for this poll: 8 of 8" in _spent(tab)
        server.asks()
        tab.wait("document.querySelectorAll('.bits').length === 3")
        bits = shown(tab)
        assert "5.5 of 8" in _spent(tab)
        after: list[tuple[str, Callable[[], None]]] = [
            ("equivocation", lambda: server.asks(*(ask.model_copy(update={"coins": OTHERS}) for ask in ASKS))),
            ("bad-query", lambda: server.asks(round=2)),
            ("equivocation", lambda: server.asks(first)),
        ]
        for code, attack in after:
            attack()
            _says(tab, _words(tab, code))
            assert f"{REFUSED} another request, and sent nothing new." in status(tab)
        assert (shown(tab), tab.evaluate("window.ran")) == (bits, None)
        assert "5.5 of 8" in _spent(tab)
        assert [each for each in tab.errors if "Failed to load" not in each] == []


@needs_chromium
@needs_mosquitto
@pytest.mark.long
def test_too_much_is_refused_before_anything_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll beyond the limit of a phone is refused in words when the page opens; nothing can be sent."""
    monkeypatch.setattr("local_dp.experiments.poll.questions.MOST_EPSILON", 2 * MOST_EPSILON)
    with hostile(tmp_path, Questions("greedy", (Question("q1", "Did you?", MOST_EPSILON + 1),))) as server, browser() as window:
        tab = window.beside(apart=True)
        tab.go(server.link, LOADED)
        assert status(tab).startswith(f"{REFUSED}, and sent nothing.")
        assert "budget" in status(tab)
        assert tab.evaluate("[document.getElementById('send').disabled, document.getElementById('send').textContent]") == [True, "Send my answer"]
