"""What a person sees while a command goes on: within a second, in which form, and how Ctrl-C ends
it."""

import io
import re
import shlex
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from local_dp.cli.run.run import run_progress
from local_dp.oracles.local.asked import CHUNK
from local_dp.server.progress import Attendance
from local_dp.text.screen import SCREEN, Screen
from tests.support.long import short
from tests.support.runs.command import local_dp
from tests.support.runs.terminal import CLEARED, Terminal

SHOWING = """
--help
run survey --help
client masked-parity-one-round -h
plan frequency --clients 2000
price -h
price 'discrete-laplace 0.01 x 10000 + gaussian 5 x 3'
shuffle binary-rr --clients 1000
audit hadamard --set k=8
attack trace -h
curate marginals -h
describe masked-parity-literal
dimension stumps
run survey --tier aggregate --seed 2
run sq --tier aggregate --seed 2
run learn-trees --tier aggregate --seed 2
run prefix-sums --tier aggregate --seed 2
run survey --question yes==1|and|yes==1|and|yes==1|and|yes==1 --tier population --seed 1
"""


class Tty(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def words(text: str) -> Counter[str]:
    """The words of a text, without rules and without how long it took."""
    return Counter(
        word
        for word in re.sub(r",\s+[\d.e-]+ s\b", "", text).split()
        if not re.fullmatch("─+", word)
    )


@pytest.mark.parametrize(
    "line",
    short(SHOWING.strip().splitlines(), lambda line: not line.startswith(("plan", "price '"))),
)
def test_no_word_is_broken_at_80_columns(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 80 columns a command says the same words as on 300, and no line is longer."""
    output, arguments = {}, [word.replace("|", " ") for word in shlex.split(line)]
    for columns in (80, 300):
        monkeypatch.setenv("COLUMNS", str(columns))
        done = local_dp(*arguments)
        output[columns] = done.stdout + done.stderr
    assert max(map(len, output[80].splitlines())) <= 80, output[80]
    assert words(output[80]) == words(output[300])


def test_a_terminal_breaks_errors_between_words() -> None:
    """On a terminal of 60 columns a long error takes several lines, none longer, with the words of
    the one line that a pipe gets."""
    plain = local_dp("run", "survy")
    text = Terminal("run", "survy", columns=60).end()
    assert len(text.splitlines()) > 3
    assert max(map(len, text.splitlines())) <= 60
    assert words(text) == words(plain.stderr)


def test_a_line_says_what_goes_on_while_the_command_is_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a terminal a line is drawn by itself; it is gone before a result is printed and when the
    command ends; a pipe gets none, whatever CI asks for."""
    stream, out = Tty(), io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", out)
    with Screen(delay=0.0) as screen:
        screen.working("counting the people of a whole town")
        end = time.monotonic() + 30
        while "whole town" not in stream.getvalue() and time.monotonic() < end:
            pass  # busy, as a computation is
        assert "counting the people of a whole town" in stream.getvalue()
        monkeypatch.setattr(out, "flush", lambda: stream.write("HERE"))
        screen.tell("done")
        assert out.getvalue() == "done\n"
    assert CLEARED.sub("", stream.getvalue()) == "HERE"
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with Screen(delay=0.0) as screen:
        time.sleep(0.05)
    assert pipe.getvalue() == ""


def messages_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    messages: list[str] = []
    monkeypatch.setattr(SCREEN, "working", lambda text, done=None: messages.append(text))
    assert local_dp(*arguments).returncode == 0
    return messages


@pytest.mark.usefixtures("warm")
def test_a_run_shows_who_is_ready_and_has_replied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run over processes shows how many are ready, who is missing, and how many have replied; a
    simulated round, how many after each chunk."""
    messages = messages_of(monkeypatch, *shlex.split("run survey --tier processes --clients 30"))
    assert messages[0] == "starting the clients in tier processes"
    assert messages[1] == "0 of 30 clients are ready; waiting for 0..29"
    assert "30 of 30 clients are ready" in messages
    assert any(
        "30/30 replied, epsilon 1" in each
        for each in messages[messages.index("30 of 30 clients are ready") :]
    )
    messages = messages_of(
        monkeypatch, *shlex.split(f"run survey --tier population --clients {3 * CHUNK}")
    )
    counts = [
        int(match[1].replace(",", ""))
        for each in messages
        if (match := re.search(r"([\d,]+)/[\d,]+ replied", each))
    ]
    assert counts == sorted(counts)
    assert set(counts) == {0, CHUNK, 2 * CHUNK, 3 * CHUNK}


def test_a_waiting_server_names_who_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    monkeypatch.setattr(SCREEN, "working", messages.append)
    with run_progress() as progress:
        progress(Attendance(95, 100, ((3, 4), (10, 14))))
        progress(Attendance(95, 100, ((3, 4), (10, 11), (12, 13), (20, 21), (30, 31))))
    assert messages == [
        "95 of 100 clients are ready; waiting for 3, 10..13",
        "95 of 100 clients are ready; waiting for 3, 10, 12 and 2 more gaps",
    ]


@pytest.mark.parametrize(
    "line",
    short(
        [
            "run frequency --tier population --clients 1e10",
            "run frequency --tier population --clients 1e10 --private",
            "run local-sgd --tier aggregate --rounds 1e6 --clients 1e7",
            "run local-sgd --tier population --rounds 1e5 --clients 1e8",
            "run local-sgd --tier hosts --rounds 1e5 --clients 4e5",
        ],
        lambda line: line.endswith("1e10"),
    ),
)
def test_ctrl_c_ends_a_run_in_its_round(line: str) -> None:
    """Interrupted in a round that would take minutes, every tier ends at once with exit code 130
    and leaves no process."""
    terminal = Terminal(*line.split())
    terminal.wait_for(r"round [2-9]|round 1: [1-9]")  # some have answered
    family = terminal.process.children(recursive=True)
    terminal.interrupt()
    text = terminal.end(seconds=20)
    assert terminal.process.returncode == 130, text
    assert "Traceback" not in text
    _, alive = psutil.wait_procs(family, timeout=6)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


SECOND = 1.0
TYPED = (
    ("bench",),
    shlex.split("curate histogram --records fair.csv --column age"),
    shlex.split("run masked-parity --tier processes --clients 300"),
    ("experiment", "parity"),
    shlex.split("server survey --broker mqtt://127.0.0.1:1 --run nowhere --clients 10"),
)


def first_words(*arguments: str) -> float:
    """The processor time of a command in a terminal until something is drawn there, in seconds;
    then it is killed, with all that it started."""
    terminal = Terminal(*arguments)
    terminal.wait_for(r"\S")
    try:
        times = terminal.process.cpu_times()
    except psutil.NoSuchProcess:
        pytest.fail(f"local-dp {' '.join(arguments)} had ended before it could be timed")
    for each in (*terminal.process.children(recursive=True), terminal.process):
        each.kill()
    terminal.end()
    return float(times.user + times.system)


@pytest.mark.parametrize("arguments", short(TYPED, lambda each: each[0] in ("bench", "curate")))
def test_a_command_says_something_within_a_second(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    turns = (first_words(*arguments) for _ in range(3))
    assert any(seconds + SCREEN.delay <= SECOND for seconds in turns)
