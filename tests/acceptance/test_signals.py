"""P1, P6: a signal is never lost, a killed command leaves nothing behind, and nothing is charged
for a lost result."""

import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from local_dp.api.tables import LARGE
from local_dp.loss import Pure
from local_dp.storage.budget_file import KeptBudget
from local_dp.text.screen import SCREEN
from tests.support.long import short
from tests.support.runs.at_end import OPEN
from tests.support.runs.command import local_dp
from tests.support.runs.signalled import COMMAND, Victim
from tests.support.wrong import wrong

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


PLACES = ("finalizer", "weak reference", "exec", "class", "cleanup", "foreign code")
MOMENT = """
import os, signal, sys, time, weakref
from local_dp.cli import main
number, place = int(sys.argv[1]), sys.argv[2]
send = lambda *_: os.kill(os.getpid(), number)

class Loud:
    __del__ = send

class Quiet:
    pass

def play():
    try:
        if place == "finalizer":
            Loud()
        elif place == "weak reference":
            quiet = Quiet()
            watched = weakref.ref(quiet, send)
            del quiet
        elif place == "cleanup":
            try:
                send()
            finally:
                send()
        elif place == "class":
            type("Made", (), {"field": type("Field", (), {"__set_name__": send})()})
        elif place == "foreign code":
            main._PATIENCE = 0.0
            try:
                send()
            except BaseException:
                send()
        else:
            exec("send()", {"send": send})
        time.sleep(5)
        return 0
    finally:
        print("cleaned")

main._run = play
main.main()
"""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("number", "codes"),
    [(signal.SIGINT, (130, -signal.SIGINT)), (signal.SIGTERM, (143,)), (signal.SIGHUP, (129,))],
)
def test_a_signal_takes_effect_wherever_it_comes(
    number: int, codes: tuple[int, ...], place: str
) -> None:
    """In a finalizer or the callback of a weak reference, where Python only reports an exception,
    and in exec(): the command cleans up, says a word, and ends.

    A second SIGTERM or SIGHUP does not end the cleanup. After one that foreign code swallowed, the
    next one takes effect.
    """
    if place == "cleanup" and number == signal.SIGINT:
        return
    done = subprocess.run(
        [sys.executable, "-c", MOMENT, str(int(number)), place],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode in codes
    assert done.stdout == "cleaned\n"
    # after an interrupt in exec() the interpreter ends itself
    assert done.stderr in ("local-dp: stopped; nothing was charged\n", "")


QUESTION = "curate median --records t.csv --column age --epsilon 0.01 --budget a.budget --seed 1"
CHARGING = (
    "run survey --clients 9 --hosts 1 --stores kept --seed 1",
    "budget b.budget --epsilon 1",
)


@pytest.mark.parametrize(
    "line",
    short(
        [
            f"{QUESTION} >&-",
            f"{QUESTION} 2>&1 | true",
            *(f"{line} > /dev/full" for line in CHARGING),
        ],
        lambda line: line.startswith("run") or ">&-" in line,
    ),
)
def test_nothing_is_charged_for_a_result_that_nobody_takes(line: str, tmp_path: Path) -> None:
    """Standard output closed, full, or without its reader: `curate`, `run` and `budget` end with
    one line and code 2 before a charge."""
    budget = _budget(tmp_path)
    done = _run_line(line, tmp_path)
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stderr.count("\n")) == (2, 0 if "2>" in line else 1), done
    assert budget.standing().spent == Pure(0)
    assert not (tmp_path / "kept").exists()
    assert not (tmp_path / "b.budget").exists()


def test_nothing_is_charged_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fstatvfs", lambda number: SimpleNamespace(f_bavail=0, f_blocks=1))
    done = local_dp("budget", str(tmp_path / "b.budget"), "--epsilon", "1")
    assert (done.returncode, done.stderr) == (
        2,
        "local-dp: cannot write the result to standard output: No space left on device\n",
    )
    assert not (tmp_path / "b.budget").exists()


def _budget(folder: Path) -> KeptBudget:
    """A budget, beside a table."""
    (folder / "t.csv").write_text("age\n" + "\n".join(map(str, range(18, 90))) + "\n")
    return KeptBudget.create(folder / "a.budget", Pure(10**12))


def _run_line(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """A line of a shell that begins with a command of ours."""
    shell = f"set -o pipefail; {shlex.join(COMMAND)} {line}"
    return subprocess.run(
        ["bash", "-c", shell], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@wrong(
    "local_dp.text.screen:Screen.tell",
    "warning or not isinstance(error.__cause__, BrokenPipeError)",
    "not isinstance(error.__cause__, BrokenPipeError)",
    "a charged release is lost, and no line says so",
)
def test_a_lost_release_says_that_it_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that leaves after the charge: one line says what was charged, code 2; and `--out` is
    written all the same."""
    monkeypatch.chdir(tmp_path)
    budget = _budget(tmp_path)

    def leave() -> None:
        """The reader of standard output leaves after it was asked for."""
        reader, writer = os.pipe()
        os.close(reader)
        OPEN.enter_context(suppress(BrokenPipeError))
        sys.stdout = OPEN.enter_context(open(writer, "w"))  # noqa: SIM115 - closed by OPEN

    monkeypatch.setattr(SCREEN, "check", leave)
    for more, place in (((), "lost"), (("--out", "out.json"), "written to 'out.json'")):
        done = local_dp(*QUESTION.split(), *more)
        line = (
            "local-dp: cannot write the result to standard output: Broken pipe; the release is "
            f"charged to 'a.budget' and {place}\n"
        )
        assert (done.returncode, done.stderr) == (2, line)
    assert len(budget.standing().charges) == 2
    assert Path("out.json").exists()


@wrong(
    "local_dp.cli.curate.curate:Curating.__call__",
    "SCREEN.working(f'releasing from {self.records.name}')",
    "SCREEN.tell('the release')",
    "a command that is killed once it has printed has not paid",
)
def test_a_release_is_charged_before_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever kills `curate` once a line is printed finds the charge in the budget's file."""
    monkeypatch.chdir(tmp_path)
    budget, charges, tell = _budget(tmp_path), list[int](), SCREEN.tell

    def look(text: str, ending: str = "") -> None:
        charges.append(len(budget.standing().charges))
        tell(text, ending)

    monkeypatch.setattr(SCREEN, "tell", look)
    assert local_dp(*QUESTION.split()).returncode == 0
    assert charges == [1]


@linux
@pytest.mark.parametrize(
    "words",
    [
        ("poll", "Really?"),
        pytest.param(
            ("run", "survey", "--records", "large.csv", "--question", "a > 1"),
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_killed_command_leaves_no_folder(words: tuple[str, ...], tmp_path: Path) -> None:
    """SIGKILL once the temporary folder and its shell are there: the folder and every process go,
    without a word."""
    if "large.csv" in words:  # a table that is copied before it is read
        (tmp_path / "large.csv").write_text("a,b\n" + "1,x\n2,y\n" * (LARGE // 8 + 1))
    victim = Victim(
        tmp_path / "at", *[str(tmp_path / word) if word == "large.csv" else word for word in words]
    )
    try:
        assert victim.wait(lambda: any((tmp_path / "at" / "tmp").iterdir()))
        assert victim.wait(lambda: len(victim.alive()) > 1)
        victim.process.kill()
        assert victim.left() == (0, [])
        assert "Traceback" not in (tmp_path / "at" / "text").read_text()
    finally:
        victim.end()
