"""A poll as people meet it: the command in a process of its own, and its pages in tabs of a
browser."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.runs.browser import PATIENCE, Tab
from tests.support.runs.command import command
from tests.support.runs.polls import ask

QUESTIONS = """
title = "An <b>honest</b> hour"

[[question]]
text = "Did you ever cheat in an exam?"

[[question]]
text = "Which of these did you do last month?"
labels = ["lied to a friend", "<script>alert(1)</script>", "nothing of these"]

[[question]]
text = "How many hours did you sleep last night?"
low = 0
high = 12
epsilon = 0.5
"""
LOADED = "document.querySelector('fieldset') !== null"
SENT = "document.querySelector('.bits') !== null"
DONE = "document.getElementById('status')?.textContent.startsWith('Done') === true"


@dataclass
class Running:
    """The process of a poll, and its two links."""

    process: "subprocess.Popen[str]"
    name: str
    link: str
    presenter: str

    def kill(self) -> None:
        """As a crash does: with -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """As the presenter's button does; returns when the result is there."""
        origin = self.presenter.rsplit("/", 2)[0]
        assert ask(self.presenter, "close", b"{}", Origin=origin).status == 200
        assert self.process.wait(timeout=PATIENCE) == 0

    def counted(self, question: int) -> dict[int, str]:
        """The bits that the server has stored, by place."""
        reports = ask(self.presenter, f"reports?question={question}").data
        return dict(zip(reports["places"], reports["reports"], strict=True))


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Running]:
    """`local-dp poll` with these questions, until the end of the block at the latest; with
    --resume, the poll of this folder; with --game, a game."""
    (folder / "questions.toml").write_text(QUESTIONS)
    questions = () if {"--resume", "--game"} & {*arguments} else (str(folder / "questions.toml"),)
    errors = folder / f"errors-{time.monotonic_ns()}"
    with errors.open("w") as stream:
        words = command(
            "poll",
            *questions,
            "--journal",
            str(folder / "journal"),
            "--out",
            str(folder / "result"),
            *arguments,
        )
        process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=stream, text=True, env={**os.environ}
        )
        try:
            yield _links(process, errors)
        finally:
            process.kill()
            process.wait()


def _links(process: "subprocess.Popen[str]", errors: Path) -> Running:
    end = time.monotonic() + PATIENCE
    while (
        len(links := re.findall(r"https?://\S+", errors.read_text())) < 2
        or "resume" not in errors.read_text()
    ):
        assert process.poll() is None, errors.read_text()
        assert time.monotonic() < end, f"the poll does not begin: {errors.read_text()}"
        time.sleep(0.1)
    (name,) = re.findall(r"^poll (\S+)", errors.read_text(), re.MULTILINE)
    return Running(process, name, links[0], links[1])


def fill(tab: Tab, yes: int, label: int, hours: float) -> None:
    """Answers the three questions and taps on send."""
    tab.evaluate(
        f"document.getElementById('q0-{yes}').click(); "
        f"document.getElementById('q1-{label}').click();"
        f"document.getElementById('q2-0').value = '{hours}'; "
        "document.getElementById('send').click()"
    )


def shown(tab: Tab) -> list[str]:
    """The bits that the page shows, by question."""
    bits: list[str] = tab.evaluate(
        "[...document.querySelectorAll('.bits')].map(each => each.textContent)"
    )
    return bits


def place(tab: Tab) -> int:
    return int(tab.evaluate("document.getElementById('sent').dataset.place"))


def result(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "result" / "result.json").read_text())
    return data
