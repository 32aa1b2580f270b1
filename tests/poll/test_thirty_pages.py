"""Thirty people in thirty browsers, over a bad network and a server that dies: each page shows the
bits that are counted, and each person counts once."""

import random
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from local_dp.protocols.local_protocol import possible_result
from local_dp.server.poll.questions import read
from local_dp.tallies import Tally
from tests.support.runs.browser import PATIENCE, Tab, browser, needs_chromium
from tests.support.runs.poll_pages import (
    DONE,
    LOADED,
    SENT,
    Running,
    fill,
    place,
    result,
    running,
    shown,
)

PEOPLE, LATE = 30, 2
OUTAGE = 10.0  # seconds
IS_PLACED = "document.getElementById('sent').dataset.place !== ''"


def _offline(tab: Tab, off: bool) -> None:
    tab.call("Network.enable")
    tab.call(
        "Network.emulateNetworkConditions",
        offline=off,
        latency=0,
        downloadThroughput=-1,
        uploadThroughput=-1,
    )


def _open(window: Tab, link: str, count: int) -> list[Tab]:
    """So many people, each with a browser of their own, who see the questions."""
    tabs = [window.beside(apart=True) for _ in range(count)]
    for tab in tabs:
        tab.call("Page.navigate", url=link)
    _all(tabs, LOADED)
    return tabs


def _all(tabs: list[Tab], until: str) -> None:
    end = time.monotonic() + 10 * PATIENCE
    for tab in tabs:
        while tab.evaluate(f"({until}) === true") is not True:
            assert time.monotonic() < end, (
                f"{until} did not become true: {tab.evaluate('document.body.innerText')} "
                f"{tab.errors}"
            )
            time.sleep(0.2)


def _answer(tabs: list[Tab], words: random.Random) -> None:
    for tab in tabs:
        fill(tab, words.randrange(2), words.randrange(3), words.randrange(13))


@needs_chromium
@pytest.mark.parametrize(
    "people",
    [pytest.param(6, marks=pytest.mark.long), pytest.param(PEOPLE, marks=pytest.mark.slow)],
)
def test_many_pages_and_one_truth(people: int, tmp_path: Path) -> None:
    """Of thirty, ten reload, three are offline for ten seconds, two come late, one opens the page
    twice, the server is killed with -9 and resumed.

    The bits on each page are those that the server counts, compared one by one; the estimates are
    the decoder's of these bits.
    """
    words = random.Random(7)
    with ExitStack() as stack:
        window = stack.enter_context(browser())
        poll = stack.enter_context(running(tmp_path))
        tabs = _open(window, poll.link, people - LATE)
        presenter, twice = window.beside(apart=True), tabs[0].beside()
        presenter.go(poll.presenter)
        twice.go(poll.link, LOADED)
        reload, away = people // 3, max(1, people // 10)
        first, others, offline = tabs[:reload], tabs[reload:-away], tabs[-away:]
        _answer(first, words)
        _all(first, DONE)
        for tab in first:
            tab.call("Page.reload")
        _all(first, SENT)
        for tab in offline:
            _offline(tab, True)
        began = time.monotonic()
        _answer([*offline, *others], words)
        poll.kill()  # while the others answer
        second = stack.enter_context(running(tmp_path, "--resume", poll.name))
        assert (second.link, second.presenter) == (poll.link, poll.presenter)
        time.sleep(max(0.0, began + OUTAGE - time.monotonic()))
        for tab in offline:
            _offline(tab, False)
        tabs += _open(window, second.link, LATE)
        _answer(tabs[-LATE:], words)
        _all([*tabs, twice], f"{DONE} && {IS_PLACED}")
        _all([presenter], f"document.getElementById('answered').textContent === '{people}'")
        _compare(second, tabs, twice)
        second.close()
        _check_result(tmp_path, tabs)


def _compare(poll: Running, people: list[Tab], twice: Tab) -> None:
    """Each page's bits are those that were counted for its place, and nobody else was counted."""
    reports = [poll.counted(question) for question in range(3)]
    places = [place(tab) for tab in people]
    assert len(set(places)) == len(people)
    assert all(answers.keys() == set(places) for answers in reports)
    for where, tab in zip(places, people, strict=True):
        assert shown(tab) == [answers[where] for answers in reports]
    assert (place(twice), shown(twice)) == (places[0], shown(people[0]))


def _check_result(folder: Path, people: list[Tab]) -> None:
    """The result has an answer of each person to each question, and its estimates are the decoder's
    of the bits on the pages."""
    data = result(folder)
    assert (data["joined"], data["accounts"]["agree"]) == (len(people), True)
    questions = read(str(folder / "questions.toml"), 1.0).questions
    for number, (question, entry) in enumerate(zip(questions, data["questions"], strict=True)):
        assert entry["answered"] == len(people)
        query = question.ask(1000)
        reports = np.array([int(shown(tab)[number], 2) for tab in people], dtype=np.uint8)
        tally = query.randomizer.tally(reports, np.zeros(len(people), dtype=np.uint8))
        assert isinstance(tally, Tally)
        estimate = possible_result(question.protocol, question.algorithm(1000).decode((tally,)))
        assert [row["value"] for row in entry["estimates"]] == [
            float(value) for value in estimate.value.reshape(-1)
        ]
