"""What a person sees while a command goes on, in which form, and how Ctrl-C ends it."""

import io
import re
import shlex
import subprocess
import sys
import time
from collections import Counter

import psutil
import pytest

from local_dp.experiments.cli.run.output import RunProgress
from local_dp.experiments.text.screen import CLOSED_PIPE, SCREEN, Screen
from local_dp.oracles.local.asked import CHUNK
from local_dp.protocols.registry import PROTOCOLS
from local_dp.server.progress import Attendance
from tests.support.inputs.documents import ROOT
from tests.support.long import short
from tests.support.runs.command import local_dp
from tests.support.runs.terminal import Terminal

SHOWING = """
--help
run survey --help
client masked-parity-one-round -h
plan frequency --clients 2000
price -h
price discrete-laplace 0.01 x 10000 + gaussian 5 x 3
shuffle binary-rr --clients 1000
audit hadamard --set k=8
attack trace -h
curate marginals -h
describe masked-parity-literal
dimension stumps
coverage survey success-rates --epsilon 1 --repetitions 10
run survey --tier aggregate --seed 2
run sq --tier aggregate --seed 2
run learn-trees --tier aggregate --seed 2
run prefix-sums --tier aggregate --seed 2
run survey --set question=yes==1|and|yes==1|and|yes==1|and|yes==1 --tier population --seed 1
"""
LINES = [
    line.replace("price discrete-laplace 0.01 x 10000 + gaussian 5 x 3", "price 'discrete-laplace 0.01 x 10000 + gaussian 5 x 3'")
    for line in SHOWING.split("\n")
    if line
]


class Tty(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def words(text: str) -> Counter[str]:
    """The words of a text, without rules and without how long it took."""
    return Counter(word for word in re.sub(r",\s+[\d.e-]+ s\b", "", text).split() if not re.fullmatch("─+", word))


@pytest.mark.parametrize("line", LINES)
def test_no_word_is_broken_at_80_columns(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 80 columns a command says the same words as on 300, and no line is longer; a table that does not fit repeats its headings, and no others."""
    output, arguments = {}, [word.replace("|", " ") for word in shlex.split(line)]
    for columns in (80, 300):
        monkeypatch.setenv("COLUMNS", str(columns))
        done = local_dp(*arguments)
        output[columns] = done.stdout + done.stderr
    assert max(map(len, output[80].splitlines())) <= 80, output[80]
    if words(output[80]) != words(output[300]):
        assert set(words(output[80])) == set(words(output[300]))
        assert arguments[0] == "coverage", "the one table that is too wide"


def test_a_terminal_breaks_errors_between_words() -> None:
    """On a terminal of 60 columns a long error takes several lines, none longer, with the words of the one line that a pipe gets."""
    piped = local_dp("run", "survy")
    shown = Terminal("run", "survy", columns=60).end()
    assert len(shown.splitlines()) > 3
    assert max(map(len, shown.splitlines())) <= 60
    assert words(shown) == words(piped.stderr)


def test_a_line_says_what_goes_on_while_the_command_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a line is drawn by itself, with the seconds; it is gone before a result is printed and when the command ends; a pipe gets none."""
    stream, out = Tty(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", out)
    with Screen(delay=0.0) as screen:
        screen.working("counting the people of a whole town")
        end = time.monotonic() + 30
        while "whole town (" not in stream.getvalue() and time.monotonic() < end:
            pass  # busy, as a computation is
        assert "counting the people of a whole town (" in stream.getvalue()
        screen.tell("done")
        assert out.getvalue() == "done\n"
    assert stream.getvalue().endswith("\r\x1b[2K")
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with Screen(delay=0.0) as screen:
        time.sleep(0.05)
    assert pipe.getvalue() == ""


def messages_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    """Everything that a command says it is doing, in order."""
    messages: list[str] = []
    monkeypatch.setattr(SCREEN, "working", messages.append)
    assert local_dp(*arguments).returncode == 0
    return messages


def test_starting_processes_shows_how_many_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run over processes says that it starts them, how many are ready and who is missing, and then how many have replied."""
    messages = messages_of(monkeypatch, "run", "survey", "--tier", "processes", "--clients", "30")
    assert messages[0] == "starting the clients in tier processes"
    assert messages[1] == "0 of 30 clients are ready; waiting for 0..29"
    assert "30 of 30 clients are ready" in messages
    assert any("30/30 replied, epsilon 1" in each for each in messages[messages.index("30 of 30 clients are ready") :])


def test_the_population_tier_shows_each_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated round says after every chunk of clients how many have answered."""
    messages = messages_of(monkeypatch, "run", "survey", "--tier", "population", "--clients", str(3 * CHUNK))
    counts = [int(match[1].replace(",", "")) for each in messages if (match := re.search(r"([\d,]+)/[\d,]+ replied", each))]
    assert counts == sorted(counts)
    assert set(counts) == {0, CHUNK, 2 * CHUNK, 3 * CHUNK}


def test_a_waiting_server_names_who_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single clients by index, neighbours as a span, and of many gaps the first three and how many more."""
    messages: list[str] = []
    monkeypatch.setattr(SCREEN, "working", messages.append)
    with RunProgress() as progress:
        progress.show(Attendance(95, 100, ((3, 4), (10, 14))))
        progress.show(Attendance(95, 100, ((3, 4), (10, 11), (12, 13), (20, 21), (30, 31))))
    assert messages == ["95 of 100 clients are ready; waiting for 3, 10..13", "95 of 100 clients are ready; waiting for 3, 10, 12 and 2 more gaps"]


@pytest.mark.parametrize(
    "arguments",
    short(
        [
            ["frequency", "--tier", "population", "--clients", "1e10"],
            ["frequency", "--tier", "population", "--clients", "1e10", "--private"],
            ["local-sgd", "--tier", "aggregate", "--rounds", "1e6", "--clients", "1e7"],
            ["local-sgd", "--tier", "population", "--rounds", "1e5", "--clients", "1e8"],
            ["local-sgd", "--tier", "hosts", "--rounds", "1e5", "--clients", "4e5"],
        ],
        lambda arguments: len(arguments) == 5,
    ),
    ids=lambda arguments: f"{arguments[0]} {arguments[2]}{' private' * ('--private' in arguments)}",
)
def test_ctrl_c_ends_a_run_in_its_round(arguments: list[str]) -> None:
    """Interrupted in a round that would take minutes, every tier ends at once with exit code 130 and leaves no process."""
    terminal = Terminal("run", *arguments)
    terminal.wait_for(r"round [2-9]|round 1: [1-9]")  # some have answered
    family = terminal.process.children(recursive=True)
    terminal.interrupt()
    shown = terminal.end(seconds=20)
    assert terminal.process.returncode == 130, shown
    assert "Traceback" not in shown
    _, alive = psutil.wait_procs(family, timeout=6)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.long
def test_ctrl_c_ends_a_measurement() -> None:
    """Interrupted in a measurement of many repetitions, a command that starts no process ends with exit code 130 and without a traceback."""
    terminal = Terminal("coverage", "survey", "--repetitions", "1e6")
    terminal.wait_for("measuring survey")
    terminal.interrupt()
    shown = terminal.end(seconds=20)
    assert terminal.process.returncode == 130, shown
    assert "Traceback" not in shown


def test_a_closed_pipe_ends_in_silence() -> None:
    """A command whose output is closed prints no error; its exit code is that of a program ended by SIGPIPE."""
    with subprocess.Popen([sys.executable, "-P", "-m", "local_dp", "mechanisms"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", CLOSED_PIPE)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_help_fits_a_screen(name: str) -> None:
    """`run NAME --help` takes at most 40 lines of 80 columns; `--help-all` lists every option of a run."""
    brief, whole = local_dp("run", name, "--help").stdout, local_dp("run", name, "--help-all").stdout
    assert len(brief.splitlines()) <= 40
    assert all(option in whole for option in ("--epsilon", "--worst-case", "--stores", "--crowd"))
    assert "--epsilon" in brief
    assert "--crowd" not in brief
