"""Class 9 once more: every long command, ended in every way at any moment, ends in order; a signal
is never lost, and nothing is charged for a lost result."""

import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from local_dp.api.tables import LARGE
from local_dp.clients.journal import SqliteStore
from local_dp.errors import InputError
from local_dp.loss import Pure
from local_dp.storage.budget_file import KeptBudget
from local_dp.text.screen import SCREEN
from tests.support.figures import figure
from tests.support.long import short
from tests.support.runs.brokers import mosquitto, needs_mosquitto
from tests.support.runs.command import local_dp
from tests.support.runs.signalled import COMMAND, WAYS, Trial, Victim, Way

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
MOMENTS = 3  # in each way: the first, and random ones
LONGEST = 6.0  # seconds; a command may go on for longer
QUIET, KILLED = Way("nothing", 0, (0,)), next(way for way in WAYS if way.number == signal.SIGKILL)

_SGD = "local-sgd --d 2 --gamma 0.9 --alpha 0.9 --rounds 30"
_ON = "--broker {url} --run {run}"
# a command, and those that it needs beside it; `{files}` is a folder that none of them changes
LONG = {
    "population": "run mean --tier population --clients 5e7 --seed 1",
    "aggregate": "run local-sgd --tier aggregate --rounds 1e5 --clients 1e6 --seed 1",
    "processes": (
        "run quantiles --clients 12 --tier processes --seed 1 --deadline 60 --tolerance 0.05"
    ),
    "hosts": "run quantiles --clients 20000 --tier hosts --seed 1 --deadline 60 --tolerance 0.05",
    "watch": f"run {_SGD} --clients 360 --tier hosts --seed 1 --watch",
    "watch in memory": "run local-sgd --tier aggregate --rounds 1e5 --clients 1e6 --seed 1 --watch",
    "stores": f"run {_SGD} --clients 60 --hosts 3 --tier hosts --seed 1 --stores kept",
    "behind a shuffler": "run survey --clients 5000 --tier hosts --seed 1 --shuffle",
    "records": "run survey --records {files}/large.csv --question 'a > 1' --seed 1",
    "cluster": "run mean --tier population --clients 2e7 --seed 1 --cluster {cluster}",
    "server": f"server {_SGD} {_ON} --clients 60 --seed 1 --journal .",
    "server in rounds": (
        f"server {_SGD} {_ON} --clients 60 --seed 1 --journal . | host {_SGD} {_ON} --clients 60 "
        "--seed 1"
    ),
    "receivers": (
        f"server survey {_ON} --clients 2 --seed 1 --journal . --receivers 1 | client survey "
        f"{_ON} --index 0 | client survey {_ON} --index 1"
    ),
    "host": f"host {_SGD} {_ON} --clients 60 --seed 1 --store kept/a.store",
    "host in rounds": (
        f"host {_SGD} {_ON} --clients 60 --seed 1 --store kept/a.store | server {_SGD} {_ON} "
        "--clients 60 --seed 1 --journal ."
    ),
    "client": (
        f"client survey --question 'x == 1' {_ON} --index 0 --seed 1 --records {{files}}/one.csv "
        "--store kept/a.store"
    ),
    "shuffler": f"shuffler {_ON} --clients 100",
    "poll": "poll Really? --journal .",
    "poll demo": "poll Really? --demo 200 --seed 1 --journal .",
    "poll game": "poll --game --demo 30 --seed 1 --journal .",
    "curate": (
        "curate histogram --records {files}/t.csv --column a --pure --epsilon 0.01 --budget "
        "a.budget --seed 1 --json"
    ),
    "curate large": (
        "curate mean --records {files}/large.csv --column a --low 0 --high 9 --pure --epsilon "
        "0.01 --budget a.budget --seed 1"
    ),
    "budget": "budget a.budget --json",
    "new budget": "budget b.budget --epsilon 1",
    "attack": "attack reconstruct --records {files}/t.csv --question 'a > 30' --noise 1",
    "plan": "plan quantiles --clients 1e5",
    "compare": "compare survey --out compared.csv",
    "sweep": "sweep {files}/grid.toml --out swept.csv --workers 2",
    "sweep not stored": "compare survey",
    "mix": "mix frequency --clients 1000000",
    "price": "price 'discrete-laplace 0.01 x 10000 + gaussian 5 x 3'",
    "shuffle": "shuffle grr --set k=16",
    "audit": "audit prefix-signs --set k=512",
    "dimension": "dimension signed-conjunctions",
    "experiment": "experiment parity --out results",
    "report": "report {files}/results",
    "bench": "bench --processes 40",
    "protocols": "protocols",
}


def _large(path: Path) -> None:
    """A table that is copied before it is read."""
    path.write_text("a,b\n" + "1,x\n2,y\n" * (LARGE // 8 + 1))


class Field:
    """What the commands need: files, and on request a broker and a cluster."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack, self._runs, self._url, self._cluster = folder, stack, 0, "", ""
        (folder / "t.csv").write_text("a\n" + "\n".join(map(str, range(18, 90))) + "\n")
        (folder / "one.csv").write_text("x\n1\n")
        (folder / "grid.toml").write_text(
            "epsilon = [0.5, 1]\nclients = [1000, 2000]\nseed = [1, 2]\nruns = "
            "2000\n[frequency]\nk = [8, 16]\n"
        )

    def url(self) -> str:
        if not self._url:
            (broker := self.folder / "broker").mkdir()
            self._url = self._stack.enter_context(mosquitto(broker)).url
        return self._url

    def cluster(self) -> str:
        if not self._cluster:
            from distributed import LocalCluster

            near = {
                "host": "127.0.0.1",
                "dashboard_address": "127.0.0.1:0",
                "worker_dashboard_address": "127.0.0.1:0",
            }
            self._cluster = self._stack.enter_context(
                LocalCluster(n_workers=1, threads_per_worker=1, silence_logs=50, **near)
            ).scheduler_address
        return self._cluster

    def lines(self, text: str) -> list[tuple[str, ...]]:
        """The words of a command, and of those beside it."""
        self._runs += 1
        if "large.csv" in text and not (self.folder / "large.csv").exists():
            _large(self.folder / "large.csv")
        if "/results" in text and not (self.folder / "results").exists():
            assert local_dp(
                "experiment", "coins", "--out", str(self.folder / "results")
            ).returncode in (0, 1)
        given = {"files": str(self.folder), "run": f"r{self._runs}"}
        given |= {
            name: getattr(self, name)() for name in ("url", "cluster") if f"{{{name}}}" in text
        }
        return [tuple(shlex.split(line.format(**given))) for line in text.split("|")]

    def place(self, folder: Path) -> Path:
        """The folder of a command, with a budget and a place for stores."""
        (folder / "kept").mkdir(parents=True)
        KeptBudget.create(folder / "a.budget", Pure(10**12))
        return folder


@contextmanager
def _beside(lines: list[tuple[str, ...]], folder: Path) -> Iterator[None]:
    """Further commands that run meanwhile."""
    started = [
        subprocess.Popen(
            [*COMMAND, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for words in lines
    ]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def _whole(folder: Path) -> str:
    """What is wrong with the budgets, stores and journals of a folder; empty if nothing."""
    try:
        assert KeptBudget(folder / "a.budget").standing().budget == Pure(10**12)
        for each in folder.glob("kept/*.store"):
            SqliteStore(each, 1.0).close()
    except InputError as error:
        return f"corrupt: {error}"
    done = local_dp("runs", "--journal", str(folder))
    return "" if done.returncode == 0 else f"corrupt: {done}"


def _lengths(field: Field, text: str, folder: Path) -> tuple[float, int | None]:
    """How long a command takes after it can handle signals, and its exit code; None if it goes on
    for longer."""
    words, *others = field.lines(text)
    with _beside(others, field.place(folder)):
        victim = Victim(folder, QUIET, *words)
        try:
            assert victim.ready()
            began = time.monotonic()
            over = victim.over(LONGEST)
            code = victim.process.returncode if over else None
            assert code in (None, 0, 1), victim.text()[-1000:]
            return time.monotonic() - began, code
        finally:
            victim.close()


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


ENDING = [
    way
    for way in WAYS
    if way.number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) and not way.group
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", ENDING, ids=lambda way: way.name)
def test_a_signal_takes_effect_wherever_it_comes(way: Way, place: str) -> None:
    """In a finalizer or the callback of a weak reference, where Python only reports an exception,
    and in exec(): the command cleans up, and ends silently.

    A second SIGTERM or SIGHUP does not end the cleanup. After one that foreign code swallowed, the
    next one takes effect.
    """
    if place == "cleanup" and way.number == signal.SIGINT:
        return
    done = subprocess.run(
        [sys.executable, "-c", MOMENT, str(way.number), place],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode in way.codes
    assert (done.stdout, done.stderr) == ("cleaned\n", "")


QUESTION = "curate median --records t.csv --column age --epsilon 0.01 --budget a.budget --seed 1"
CHARGING = (
    QUESTION,
    "run survey --clients 9 --hosts 1 --stores kept --seed 1",
    "budget b.budget --epsilon 1",
)
TAKES_NOTHING = (">&-", "2>&1 | true", "> /dev/full", ">&- 2>&-", "<&- >&-")


LINES = short(
    [f"{words} {to}" for words in CHARGING for to in TAKES_NOTHING],
    lambda line: line in (f"{QUESTION} >&-", f"{QUESTION} 2>&1 | true"),
)


@pytest.mark.parametrize("line", LINES)
def test_nothing_is_charged_for_a_result_that_nobody_takes(line: str, tmp_path: Path) -> None:
    """Standard output closed, full, or without its reader: `curate`, `run` and `budget` end with
    one line and code 2 before a charge."""
    budget = _budget(tmp_path)
    done = _typed(line, tmp_path)
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


@pytest.mark.long
@pytest.mark.parametrize("redirection", ["2>&-", "2> /dev/full"])
def test_a_result_needs_no_standard_error(redirection: str, tmp_path: Path) -> None:
    _budget(tmp_path)
    done = _typed(f"{QUESTION} {redirection}", tmp_path)
    assert (done.returncode, "median by a trusted curator" in done.stdout) == (0, True)


def _budget(folder: Path) -> KeptBudget:
    """A budget, beside a table."""
    (folder / "t.csv").write_text("age\n" + "\n".join(map(str, range(18, 90))) + "\n")
    return KeptBudget.create(folder / "a.budget", Pure(10**12))


def _typed(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """A line of a shell that begins with a command of ours."""
    shell = f"set -o pipefail; {shlex.join(COMMAND)} {line}"
    return subprocess.run(
        ["bash", "-c", shell], cwd=folder, capture_output=True, text=True, timeout=60, check=False
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
        sys.stdout = open(writer, "w")  # noqa: SIM115 - the command's

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
    """SIGKILL once the temporary folder is there: the folder and every process go, without a
    word."""
    if "large.csv" in words:
        _large(tmp_path / "large.csv")
    victim = Victim(
        tmp_path / "at",
        KILLED,
        *[str(tmp_path / word) if word == "large.csv" else word for word in words],
    )
    try:
        assert victim.wait(lambda: any((tmp_path / "at" / "tmp").iterdir()))
        victim.strike()
        assert victim.over(5.0)
        assert victim.left() == (0, [])
        assert "Traceback" not in victim.text()
    finally:
        victim.close()


def _played(name: str, ways: list[Way], moments: int, folder: Path) -> list[Trial]:
    """A command, ended in each way at so many moments."""
    trials, generator = list[Trial](), random.Random(name)
    with ExitStack() as stack:
        (files := folder / "files").mkdir()
        field = Field(files, stack)
        length, code = _lengths(field, LONG[name], folder / "length")
        for way in ways:
            for moment in range(moments):
                words, *others = field.lines(LONG[name])
                seconds = generator.uniform(0, 1.05 * length) if moment else 0.0
                with _beside(others, field.place(place := folder / "trial")):
                    trials.append(Trial(words, way, seconds).play(place, code, _whole))
                shutil.rmtree(place)
    return trials


@linux
@needs_mosquitto
@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_no_command_no_way_and_no_moment_leaves_anything(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long command, ended in every way at the first moment and at random ones.

    It prints no traceback and at most one error, and has the right exit code. No process and no
    temporary file is left; budgets, stores and journals are whole.
    """
    if name == "cluster":
        pytest.importorskip("distributed")
    monkeypatch.delenv("LOCAL_DP_BROKER")
    trials = _played(name, WAYS, MOMENTS, tmp_path)
    faults = [
        f"{each.way.name} after {each.seconds:.2f} s: {fault}"
        for each in trials
        for fault in each.faults
    ]
    ended = sum(each.ended for each in trials)
    figure(
        "class 9",
        (
            f"{name}: {len(WAYS)} ways to be ended, {MOMENTS} moments: {len(trials)} runs, "
            f"{ended} ended early, {len(faults)} faults"
        ),
    )
    assert not faults, "\n".join(faults)
