"""The pages of a poll in a real browser: readable, reachable by keyboard, safe with hostile text,
small, and honest about what was sent."""

import itertools
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_dp.server.poll.files import CLIENT, PAGES, files
from tests.support.runs.browser import SCHEMES, Tab, needs_chromium
from tests.support.runs.poll_pages import DONE, LOADED, SENT, Running, fill, result, running
from tests.support.runs.polls import ask
from tests.support.web import types

WIDTHS = (360, 1200)
PRESENTED = "document.querySelector('[aria-expanded]') !== null"  # the presenter's page has a card
MOST_BYTES = 300_000
SCROLL = "document.scrollingElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def poll(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("poll")) as process:
        yield process


def test_the_pages_have_no_script_and_no_style_inside() -> None:
    """Scripts and styles are files of their own; no script makes elements or code from text."""
    for page in PAGES.glob("*.html"):
        text = page.read_text()
        assert re.findall(r"<script\b[^>]*>(.*?)</script>", text, re.DOTALL) == [""]
        assert not re.search(r"<style|\sstyle=|\son\w+=|https?:", text), page.name
    for script in PAGES.glob("*.js"):
        text = script.read_text()
        assert not re.search(
            (
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new "
                r"Function|DOMParser|srcdoc"
            ),
            text,
        ), script.name


def test_the_files_of_a_page_are_few_bytes() -> None:
    """All files that are served fit together into 300 KB as they are sent, and the list has the sum
    of each."""
    contents = files()
    assert sum(len(file.gzip) for file in contents.values()) <= MOST_BYTES
    assert len(contents["files.txt"].data.splitlines()) == len(contents) - 1


@needs_chromium
@pytest.mark.long
def test_a_person_reads_and_reaches_everything(poll: Running, window: Tab, tmp_path: Path) -> None:
    """axe-core finds nothing, and nothing scrolls sideways: form, gap, what was sent, and the
    presenter's page; narrow and wide, light and dark."""
    wrong: list[str] = []
    for width, scheme in itertools.product(WIDTHS, SCHEMES):
        tab = window.beside(apart=True)

        def look(what: str, tab: Tab = tab, width: int = width, scheme: str = scheme) -> None:
            beyond = tab.evaluate(SCROLL)
            faults = [
                *tab.axe(),
                *tab.errors,
                *([f"scrolls sideways by {beyond}"] if beyond > 0 else []),
            ]
            wrong.extend(f"{what}, {width} px, {scheme}: {each}" for each in faults)
            tab.picture(tmp_path / f"{what}-{width}-{scheme}.png")

        tab.appear(width, scheme)
        tab.go(poll.link, LOADED)
        tab.evaluate("document.getElementById('trust').open = true")
        look("form")
        tab.evaluate("document.getElementById('send').click()")
        look("gap")
        fill(tab, 1, 1, 7.5)
        tab.wait(DONE)
        look("sent")
        tab.go(poll.presenter, "document.querySelector('.point') !== null")
        tab.evaluate(
            "for (const each of document.querySelectorAll('[aria-expanded]')) each.click()"
        )
        tab.wait("document.querySelectorAll('.wall span').length >= 3")
        look("presenter")
        tab.evaluate("document.getElementById('close').click()")
        look("sure")
        tab.close()
    assert wrong == []


@needs_chromium
@pytest.mark.long
def test_the_policy_is_strict_and_text_stays_text(poll: Running, tab: Tab) -> None:
    """A title and a label with markup are text on both pages; an injected script, style or form
    does not run."""
    policy = ask(poll.link).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for address, until in ((poll.link, LOADED), (poll.presenter, PRESENTED)):
        tab.go(address, until)
        text = tab.evaluate("document.body.textContent")
        assert "An <b>honest</b> hour" in text
        assert tab.evaluate("document.querySelectorAll('main script, main b').length") == 0
        tab.evaluate(
            "{ const made = document.createElement('script'); made.textContent = 'window.ran = "
            "true'; document.body.append(made) }"
        )
        assert tab.evaluate("window.ran") is None
        assert any("Content Security Policy" in each for each in tab.errors)
        tab.errors.clear()
    tab.go(poll.link, LOADED)
    assert "<script>alert(1)</script>" in tab.evaluate(
        "document.getElementById('questions').textContent"
    )


KEYS = {"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40, "ArrowUp": 38}


def _press(tab: Tab, *keys: str) -> None:
    for key in keys:
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        code = {" ": "Space"}.get(key, key)
        common = {"key": key, "code": code, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0]))}
        tab.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        tab.call("Input.dispatchKeyEvent", type="keyUp", **common)


def _tab_to(tab: Tab, selector: str) -> None:
    for _ in range(20):
        if tab.evaluate(f"document.activeElement.matches({selector!r})"):
            return
        _press(tab, "Tab")
    raise AssertionError(f"the keyboard does not reach {selector}")


@needs_chromium
@pytest.mark.long
def test_the_keyboard_alone_suffices(poll: Running, tab: Tab) -> None:
    """Answers, sending and the explanation; on the presenter's page the wall and the question
    before closing: each by Tab, space, arrows and Enter."""
    tab.call("Page.bringToFront")
    tab.go(poll.link, LOADED)
    _tab_to(tab, "[name=q0]")
    _press(tab, " ")
    _tab_to(tab, "[name=q1]")
    _press(tab, " ", "ArrowDown")
    _tab_to(tab, "[name=q2]")
    _press(tab, "Enter")  # sends too early
    assert "question 3" in tab.evaluate("document.getElementById('gap').textContent")
    assert tab.evaluate("document.activeElement.name") == "q2"
    _press(tab, "7")
    _tab_to(tab, "#send")
    _press(tab, "Enter")
    tab.wait(DONE)
    assert tab.evaluate("document.activeElement.id") == "sent-title"
    facts = tab.evaluate(
        "[...document.querySelectorAll('.facts dd:first-of-type')].map(each => each.textContent)"
    )
    assert facts == ["yes", "<script>alert(1)</script>", "7"]
    _tab_to(tab, "#trust summary")
    _press(tab, "Enter")
    assert tab.evaluate("document.getElementById('trust').open") is True
    tab.go(poll.presenter, PRESENTED)
    _tab_to(tab, "[aria-expanded]")
    _press(tab, "Enter")
    tab.wait("document.querySelector('.wall span') !== null")
    tab.evaluate("document.getElementById('link').focus()")
    _tab_to(tab, "#close")
    _press(tab, "Enter")
    assert tab.evaluate("document.getElementById('sure').open") is True
    assert tab.evaluate("document.activeElement.id") == "sure-no"
    _press(tab, "Enter")
    assert tab.evaluate("document.getElementById('sure').open") is False
    assert tab.errors == []


@needs_chromium
@pytest.mark.long
def test_a_class_plays_the_game(window: Tab, tmp_path: Path) -> None:
    """Three phones take part, each in one round, and show the record and the bit; the presenter's
    page shows what round 1 taught, and the rule at the end."""
    wrong: list[str] = []

    def look(what: str, *tabs: Tab) -> None:
        for tab, width in itertools.product(tabs, WIDTHS):
            tab.appear(width, "light")
            beyond = tab.evaluate(SCROLL)
            wrong.extend(
                f"{what}, {width} px: {each}"
                for each in (*tab.axe(), *([f"scrolls sideways by {beyond}"] if beyond > 0 else []))
            )

    with running(tmp_path, "--game") as poll:
        people = [window.beside(apart=True) for _ in range(3)]
        for tab in people:
            tab.go(poll.link, "document.getElementById('send').textContent === 'Take part'")
        look("form", people[0])
        for tab in people:
            tab.evaluate("document.getElementById('send').click()")
            tab.wait(
                "/^x = [01]{8}, i = [0-7], b = [01], label .1. With b = "
                "/.test(document.getElementById('record').textContent)"
            )
        presenter = window.beside(apart=True)
        presenter.go(
            poll.presenter,
            "document.getElementById('joined').textContent === 'phones joined, 3 connected'",
        )
        look("before", presenter)
        presenter.evaluate(
            "document.getElementById('close').click(); document.getElementById('sure-yes').click()"
        )
        presenter.wait("document.getElementById('ask-again').textContent === 'Ask round 2'")
        assert "where each ? is open. So 16 rules are left." in presenter.evaluate(
            "document.getElementById('thresholds').textContent"
        )
        assert sum(tab.evaluate(SENT) for tab in people) == 2
        presenter.evaluate("document.getElementById('ask-again').click()")
        presenter.wait("/^(F|Not f)ound/.test(document.getElementById('median').textContent)")
        for tab in people:
            tab.wait(f"{SENT} && document.getElementById('status').textContent.includes('closed')")
            assert "Your record says" in tab.evaluate(
                "document.getElementById('reports').textContent"
            )
            assert "This poll has cost \u03b5 = 5." in tab.evaluate(
                "document.getElementById('cost').textContent"
            )
        look("after", people[0], presenter)
        assert [
            each
            for tab in (*people, presenter)
            for each in tab.errors
            if "ERR_CONNECTION_REFUSED" not in each
        ] == []
        for tab in (*people, presenter):
            tab.close()
    assert wrong == []
    assert re.match("(F|Not f)ound", result(tmp_path)["again"]["text"])


@pytest.mark.long
def test_the_types_of_the_pages_hold(tmp_path: Path) -> None:
    """TypeScript accepts every script of the pages, strictly, beside the client as they are
    served."""
    for file in PAGES.glob("*.js"):
        shutil.copy(file, tmp_path)
    shutil.copytree(CLIENT, tmp_path / "client")
    shutil.copy(CLIENT / "package.json", tmp_path)
    (tmp_path / "tsconfig.json").write_text((CLIENT / "tsconfig.json").read_text())
    assert types(tmp_path) == ""
