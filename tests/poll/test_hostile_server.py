"""A server that signs hostile requests, and a network that forges them: the page refuses each in
words, and charges nothing for it."""

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
from typing import Any

import pytest
from paho.mqtt.publish import single

from local_dp.bus.address import Address
from local_dp.masked.queries import MaskedIndex, MaskedList
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.cells import Below
from local_dp.queries.query import STEPS
from local_dp.randomizers.frequencies.signed import SignedBlocks
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.sealing import Party, new_key
from local_dp.server.pages import LOOPBACK
from local_dp.server.poll.crowd import Crowd
from local_dp.server.poll.gate import Gate
from local_dp.server.poll.place import listening, site_of
from local_dp.server.poll.plan import Plan
from local_dp.server.poll.questions import MOST_EPSILON, Question, Questions
from local_dp.server.poll.run import Poll
from local_dp.server.poll.web import Web
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

    def asks(
        self, *asks: Ask, round: int = 1, run: str = "", key: bytes = b"", end: bytes = b""
    ) -> None:
        """A request with the server's signature, or with that of another key or run."""
        request = (
            encode(Request(run=run or self.plan.run, round=round, asks=asks or ASKS, missing=()))
            + end
        )
        self.says(
            Party.server(run or self.plan.run, key or self.plan.key, lambda _: None).seal(
                self._topic, request
            )
        )

    @property
    def _topic(self) -> str:
        return topic(self.plan.run, "req", "g0")


@contextmanager
def hostile(folder: Path, questions: Questions = THREE, **options: Any) -> Iterator[Server]:
    planned, ready = plan(questions, **{"people": 1, **options}), Queue[Callable[[], object]]()
    site = site_of(planned)

    async def serve(poll: Poll, listener: socket.socket, address: Address) -> None:
        envelopes = Party.server(planned.run, planned.key, poll.places.roster.speaker)
        web = Web(site, listener, poll, Gate(planned.run, envelopes, address), Crowd(100))
        loop = asyncio.get_running_loop()
        ready.put(lambda: loop.call_soon_threadsafe(web.close))
        await web.serve()

    def work(address: Address) -> None:
        with (
            closing(Journal.begin(folder, planned.run, planned.to_dict())) as journal,
            listening(LOOPBACK, planned.port) as listener,
        ):
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
    text: str = tab.evaluate(
        f"import('./client/index.js').then(client => client.words({json.dumps(code)}))"
    )
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


@pytest.fixture
def tab(tab: Tab) -> Iterator[Tab]:
    yield tab
    assert [each for each in tab.errors if "Failed to load" not in each] == []


@needs_chromium
@needs_mosquitto
@pytest.mark.long
def test_hostile_requests_are_refused_in_words(tmp_path: Path) -> None:
    """Ten before the answer and three after it, each in words: the page does not show it, or it is
    forged. The honest request alone is answered, once."""
    first, second, _ = ASKS
    scripted = second.model_copy(
        update={
            "query_params": {
                **second.query_params,
                "labels": ("<script>window.ran = true</script>", "b", "c"),
            }
        }
    )
    with hostile(tmp_path) as server, browser() as window:
        tab = window.beside(apart=True)
        tab.go(server.link, LOADED)
        fill(tab, 1, 1, 7)
        _says(tab, "wait on your phone")
        before: list[tuple[str, Callable[[], None]]] = [
            (
                "bad-query",
                lambda: server.asks(
                    first.model_copy(update={"randomizer_params": {"epsilon": 20.0}})
                ),
            ),
            ("bad-query", lambda: server.asks(first.model_copy(update={"randomizer": "tell-all"}))),
            ("forged", lambda: server.asks(key=new_key())),
            ("bad-query", lambda: server.asks(scripted)),
            ("oversized", lambda: server.says(bytes((1 << 20) + 65))),
            ("bad-query", lambda: server.asks(first.model_copy(update={"query": "everything"}))),
            ("forged", lambda: server.asks(run="another-run")),
            (
                "bad-query",
                lambda: server.asks(
                    first.model_copy(update={"randomizer_params": {"epsilon": -1.0}})
                ),
            ),
            ("trailing-bytes", lambda: server.asks(end=b"\0")),
            (
                "bad-query",
                lambda: server.asks(first.model_copy(update={"query_params": {"text": "q1 == 0"}})),
            ),
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
            (
                "equivocation",
                lambda: server.asks(*(ask.model_copy(update={"coins": OTHERS}) for ask in ASKS)),
            ),
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
def test_too_much_is_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll beyond the limit of a phone is refused in words when the page opens; nothing can be
    sent."""
    monkeypatch.setattr("local_dp.server.poll.questions.MOST_EPSILON", 2 * MOST_EPSILON)
    with (
        hostile(
            tmp_path, Questions("greedy", (Question("q1", "Did you?", MOST_EPSILON + 1),))
        ) as server,
        browser() as window,
    ):
        tab = window.beside(apart=True)
        tab.go(server.link, LOADED)
        assert status(tab).startswith(f"{REFUSED}, and sent nothing.")
        assert "budget" in status(tab)
        assert tab.evaluate(
            "[document.getElementById('send').disabled, "
            "document.getElementById('send').textContent]"
        ) == [True, "Send my answer"]


def _click(tab: Tab, link: str, *answers: str, hours: str = "") -> None:
    """Opens the page, answers, and sends."""
    tab.go(link, "document.title !== 'A private poll' && !document.getElementById('form').hidden")
    clicks = "".join(f"document.getElementById('{answer}').click();" for answer in answers)
    typed = f"document.getElementById('q0-0').value = {hours};" if hours else ""
    tab.evaluate(f"{clicks}{typed}document.getElementById('send').click()")
    tab.wait("/wait/.test(document.getElementById('status').textContent)")


def _pay(tab: Tab, epsilon: float, *texts: str) -> None:
    """Waits for these questions under "What your phone sent", in this order, and compares the
    cost."""
    tab.wait(f"document.querySelectorAll('#reports h3').length === {len(texts)}")
    assert tab.evaluate(
        "[...document.querySelectorAll('#reports h3')].map(each => each.textContent)"
    ) == [*texts]
    assert f"Left for this poll: {MOST_EPSILON - epsilon:g} of 8" in _spent(tab)


def _describe(monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], object]) -> None:
    """From now on, poll.json is changed so."""

    def described(poll: Poll) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(json.dumps(poll._public))
        change(data)
        return {**data, "open": True}

    monkeypatch.setattr(Poll, "public", described)


EIGHT = Questions(
    "eight", tuple(Question(f"q{place}", f"Did you do {place}?", 1.0) for place in range(1, 9))
)
TWO = Questions(
    "two", (Question("q1", "Did you ever cheat?", 0.1), Question("q2", "Do you like tea?", 7.0))
)
HOURS = Questions("hours", (Question("q1", "How many hours?", 1.0, low=0.0, high=10.0),))
UNSHOWN = "something that this page does not show"


@needs_chromium
@needs_mosquitto
@pytest.mark.long
def test_one_question_is_not_answered_eight_times(tab: Tab, tmp_path: Path) -> None:
    """Of eight questions the first is asked eight times: refused; then each is answered once and
    named."""
    asks = [Ask.of(query, COINS) for query in EIGHT.asks(100)]
    with hostile(tmp_path, EIGHT) as server:
        _click(tab, server.link, *(f"q{place}-1" for place in range(8)))
        server.asks(*asks[:1] * 8)
        _says(tab, UNSHOWN)
        server.asks(*asks)
        _pay(tab, 8, *(question.text for question in EIGHT.questions))


@needs_chromium
@needs_mosquitto
@pytest.mark.long
def test_a_query_of_the_server_is_not_read(
    tab: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A description gives a harmless question the query of another one: the page ignores it, and
    refuses the request."""
    asks = [Ask.of(query, COINS) for query in TWO.asks(100)]
    _describe(
        monkeypatch,
        lambda data: data["questions"][1].update(
            query="question", query_params=asks[0].query_params, name="q1"
        ),
    )
    with hostile(tmp_path, TWO) as server:
        _click(tab, server.link, "q0-1", "q1-1")
        server.asks(asks[0], asks[1].model_copy(update={"query_params": asks[0].query_params}))
        _says(tab, UNSHOWN)
        server.asks(*asks)
        _pay(tab, 7.1, "Did you ever cheat?", "Do you like tea?")


@needs_chromium
@needs_mosquitto
@pytest.mark.long
def test_of_six_thresholds_one_is_answered(
    tab: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first round none, and then one for the announced cost; after a reload both reports
    are named as they were, whatever the server describes."""
    thresholds = [
        Ask.of(LocalQuery(Below("q1", end, STEPS // 2), OneBitMean(1.0), Cohort(0, 100)), COINS)
        for end in range(2, 8)
    ]
    _describe(monkeypatch, lambda data: data["again"].update(rounds=6))
    with hostile(tmp_path, HOURS, ask_again=True) as server:
        _click(tab, server.link, hours="4")
        for round, ask in enumerate(thresholds, start=2):
            server.asks(ask, round=round)
        _says(tab, UNSHOWN)
        server.asks(*(Ask.of(query, COINS) for query in HOURS.asks(100)))
        _pay(tab, 1, "How many hours?")
        for round, ask in enumerate(thresholds, start=2):
            server.asks(ask, round=round)
        both = "How many hours?", "How many hours? Is your number below 2?"
        _says(tab, _words(tab, "budget"))
        _pay(tab, 2, *both)
        _describe(monkeypatch, lambda data: data["questions"][0].update(text="Another question?"))
        tab.go(server.link, "document.querySelector('#reports h3') !== null")
        _pay(tab, 2, *both)
        assert "You said" not in tab.evaluate("document.body.innerText")


@needs_chromium
@needs_mosquitto
@pytest.mark.long
def test_answers_that_look_the_same_are_not_shown(
    tab: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A label with a letter that nobody sees: one sentence, and no form."""
    _describe(monkeypatch, lambda data: data["questions"][1]["labels"].append("red\u200b"))
    with hostile(tmp_path) as server:
        tab.go(server.link, "document.getElementById('title').textContent.includes('cannot')")
        assert status(tab) == (
            f"This poll is not clear: two answers to question 2 look the same. {REFUSED}, and "
            "sent nothing."
        )
        assert tab.evaluate("document.querySelectorAll('fieldset').length") == 0


@needs_chromium
@needs_mosquitto
@pytest.mark.long
def test_a_phone_makes_one_move_of_a_game(tab: Tab, tmp_path: Path) -> None:
    """The move of round two is refused in round one, and after the first move."""
    first = Ask.of(LocalQuery(MaskedIndex(8), SignedBlocks(5.0, k=8), Cohort(0, 100)), COINS)
    second = Ask.of(
        LocalQuery(MaskedList(8, r=5, free=3, asked=3), SignedBlocks(5.0, k=6), Cohort(0, 100)),
        COINS,
    )
    with hostile(tmp_path, Questions("a game", ()), game=5.0) as server:
        _click(tab, server.link)
        server.asks(second, round=1)
        _says(tab, UNSHOWN)
        server.asks(first)
        _pay(tab, 5, "Round 1: which bit of r does your label show?")
        server.asks(second, round=2)
        _says(tab, _words(tab, "budget"))
        _pay(tab, 5, "Round 1: which bit of r does your label show?")
