"""Class 12: whatever is typed, and wherever it is written to, is answered in one line: never a
traceback, never exit code 1."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from types import FrameType
from typing import Any

import click
import numpy as np
import pytest

from local_dp.bus.blocking import BlockingBus
from local_dp.bus.mqtt import MqttBus
from local_dp.cli.commands import APP
from local_dp.cli.main import INTERRUPTED
from local_dp.randomizers.registry import RANDOMIZERS
from tests.support.figures import figure
from tests.support.long import short
from tests.support.runs.command import Done, local_dp

LONG = "x" * 300
NASTY = [
    "nan", "inf", "-inf", "1e-300", "1e300", "-1", "0", "1e999", str(1 << 63), "9" * 5000, "", " ",
    LONG, f"{LONG}.csv", f"{LONG}.json", "/dev/full",
    "/dev/null", ".", "/proc/self/mem", "a\x00b", "a=b", "=", ";;;", "\ud800", "é", "mqtt://a..b",
    "mqtt://[::1", "mqtt://x:99999", "%s{}", "big.csv",
    "twins.csv", "empty.csv", "bytes.csv", "ragged.csv", "bytes.parquet", "list.json", "ok.csv",
]  # fmt: skip
SECONDS = 4  # that one command may compute: what is longer is no error
BROKER = ["--broker", "mqtt://127.0.0.1:1"]
# words that a command accepts, or nearly: an option with a nasty value is put behind
BASE: dict[str, list[list[str]]] = {
    "run": [
        ["survey", "--clients", "9", "--tier", "population"],
        [
            "mean",
            "--records",
            "ok.csv",
            "--column",
            "a",
            "--low",
            "0",
            "--high",
            "9",
            "--tier",
            "population",
        ],
        [
            "frequency",
            "--records",
            "ok.csv",
            "--column",
            "b",
            "--labels",
            "2;4",
            "--tier",
            "population",
        ],
    ],
    "plan": [["survey"], ["mean"]],
    "compare": [["survey", "--clients", "9", "--runs", "2", "--epsilon", "1"]],
    "curate": [
        ["median", "--records", "ok.csv", "--column", "a", "--low", "0", "--high", "9"],
        ["histogram", "--records", "ok.csv", "--column", "b"],
    ],
    "budget": [["kept.json", "--epsilon", "1"]],
    "price": [["pure 0.1 x 3"]],
    "shuffle": [["binary-rr", "--clients", "100"]],
    "mix": [["frequency", "--clients", "100"]],
    "attack": [["reconstruct", "--records", "ok.csv", "--question", "a > 1", "--noise", "1"]],
    "describe": [["survey"]],
    "audit": [["binary-rr"]],
    "server": [["survey", "--clients", "2", "--run", "r", *BROKER]],
    "host": [
        ["survey", "--clients", "2", "--run", "r", *BROKER],
        ["survey", "--records", "ok.csv", "--schema", "list.json", "--run", "r", *BROKER],
    ],
    "client": [["survey", "--index", "2", "--run", "r", *BROKER]],
    "shuffler": [["--run", "r", "--clients", "200", *BROKER]],
    "dimension": [["parities", "--d", "3"]],
    "certify": [["list.json"]],
    "export": [["fair", "written.csv"]],
    "report": [["."]],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files that are hard to read, where the commands are typed, and brokers that nobody waits
    for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    texts = {
        "ok": "a,b\n1,2\n3,4\n",
        "big": f"a,b\n{10**22},2\n1,2\n",
        "twins": "a,a\n1,2\n",
        "empty": "",
        "ragged": "a,b\n1,2,3\n4\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    for name in ("bytes.csv", "bytes.parquet"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 3)
    (tmp_path / "list.json").write_text("[1, 2]")
    for bus in (MqttBus, BlockingBus):
        monkeypatch.setattr(bus, "messages", _impatient(bus.messages))
    return tmp_path


def _impatient(messages: Any) -> Any:
    return lambda bus, patience: messages(bus, min(patience, 0.2))


@contextmanager
def _limited() -> Iterator[None]:
    """As if a person pressed Ctrl-C after a while."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _options(command: str, words: list[str]) -> list[str]:
    """The options of a command, or of the one of its commands that the words name, that take a
    value."""
    context = click.Context(APP)
    target = APP.get_command(context, command)
    if isinstance(target, click.Group):
        target = target.get_command(context, words[0])
    assert target is not None
    return [
        each.opts[0]
        for each in target.params
        if isinstance(each, click.Option) and not each.is_flag and each.opts[0] != "--tier"
    ]


def _line(generator: np.random.Generator) -> list[str]:
    """A command with a nasty value or two, as one of its options or in the place of one of its
    words."""
    command = str(generator.choice(list(BASE)))
    words = list(BASE[command][int(generator.integers(len(BASE[command])))])
    options = _options(command, words)
    for _ in range(int(generator.integers(1, 3))):
        nasty = NASTY[int(generator.integers(len(NASTY)))]
        if options and generator.random() < 0.8:
            words += [str(generator.choice(options)), nasty]
        else:
            words[int(generator.integers(len(words)))] = nasty
    return [command, *words]


def _check(done: Done, line: list[str]) -> None:
    context = f"{line!r:.600}\n{done.stderr[-1500:]}"
    assert "Traceback" not in done.stderr, context
    assert done.returncode in (0, 2, 3, 4, 5, INTERRUPTED), context
    complaints = [each for each in done.stderr.splitlines() if each.startswith("local-dp: ")]
    assert len(complaints) == (done.returncode not in (0, INTERRUPTED)) or line[0] == "audit", (
        context
    )


def _fuzzed(lines: int, seed: int) -> dict[int, int]:
    generator, codes = np.random.default_rng(seed), dict[int, int]()
    for _ in range(lines):
        line = _line(generator)
        with _limited():
            done = local_dp(*line)
        _check(done, line)
        codes[done.returncode] = codes.get(done.returncode, 0) + 1
    return codes


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("lines", [80, pytest.param(2_000, marks=pytest.mark.slow)])
def test_no_command_line_makes_a_traceback(lines: int) -> None:
    figure(
        "class 12",
        f"{lines:,} command lines by exit code: {_fuzzed(lines, 1)}; 0 tracebacks, 0 of code 1",
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "line",
    short(
        [
            ["randomizers"],
            ["--help"],
            ["run", "survey", "--clients", "9", "--seed", "1", "--tier", "population", "--json"],
        ],
        lambda line: line == ["--help"],
    ),
)
def test_a_full_disk_is_a_line(line: list[str]) -> None:
    """Standard output that takes nothing: exit code 2, one line, and the interpreter adds none;
    where nothing can be said either, the code alone."""
    words = [sys.executable, "-m", "local_dp", *line]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
        assert done.returncode == 2
        assert (
            done.stderr.splitlines()[-1]
            == "local-dp: cannot write the result to standard output: No space left on device"
        )
        assert not any(part in done.stderr for part in ("Traceback", "Exception"))
        assert (
            subprocess.run(words, stdout=full, stderr=full, check=False, timeout=60).returncode == 2
        )


BROKEN = {
    "value": "raise ValueError('two\\nlines')", "exit": "import sys; sys.exit(3)",
    "syntax": "def (", "name": "nothing",
    "base": "class Loud(BaseException): pass\nraise Loud", "none": "",
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_package_takes_nothing_with_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that raises anything, or exits, while it is imported: the list holds all others,
    and of it a line; asked for by name it is refused, code 4."""
    (tmp_path / f"broken_{kind}.py").write_text(BROKEN[kind])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(
        RANDOMIZERS._points,
        "broken-rr",
        EntryPoint("broken-rr", f"broken_{kind}:Broken", RANDOMIZERS.group),
    )
    done = local_dp("randomizers")
    assert (done.returncode, done.stderr) == (0, "")
    for name in RANDOMIZERS.built_in:
        assert f"\n  {name} " in done.stdout
    assert "broken-rr" in done.stdout
    for line in (
        ["describe", "broken-rr"],
        ["audit", "broken-rr"],
        ["run", "survey", "--clients", "9", "--randomizer", "broken-rr", "--tier", "population"],
    ):
        refused = local_dp(*line)
        assert refused.returncode == 4, refused.stderr
        assert "Traceback" not in refused.stderr
        assert len([each for each in refused.stderr.splitlines() if "broken-rr" in each]) == 1
    planned = local_dp("plan", "survey", "--best")
    assert planned.returncode in (0, 2), planned.stderr
    assert "Traceback" not in planned.stderr


def test_a_pipe_that_closes_is_no_traceback() -> None:
    """As `local-dp randomizers | head -c 1` leaves one: it ends in silence, with the code of a
    program that SIGPIPE ended."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "local_dp", "randomizers"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
