"""P8: whatever is typed is answered in one line: never a traceback, never exit code 1."""

import signal
from importlib.metadata import EntryPoint
from pathlib import Path
from types import FrameType

import click
import numpy as np
import pytest

from local_dp.bus.blocking import BlockingBus
from local_dp.bus.mqtt import MqttBus
from local_dp.cli.commands import APP
from local_dp.cli.main import INTERRUPTED
from local_dp.randomizers.registry import RANDOMIZERS
from tests.support.runs.command import local_dp

NASTY = [
    "nan", "-inf", "1e300", "-1", "0", str(1 << 63), "=", ";;;", "a\x00b", "\ud800", "/dev/full",
    ".", "mqtt://a..b", "mqtt://x:99999", "big.csv", "twins.csv",
    "bytes.csv", "list.json", "", " ", "x" * 300, "9" * 5000,
]  # fmt: skip
SECONDS = 4  # that one command may compute: what is longer is no error
BROKER = "--run r --broker mqtt://127.0.0.1:1"
BASE = [  # commands that are accepted, or nearly: an option with a nasty value is put behind
    "run mean --records ok.csv --column a --low 0 --high 9 --tier population",
    "plan survey",
    "curate median --records ok.csv --column a --low 0 --high 9",
    "budget kept.json --epsilon 1",
    "price pure",
    "shuffle binary-rr --clients 100",
    "attack reconstruct --records ok.csv --question a --noise 1",
    f"server survey --clients 2 {BROKER}",
    f"host survey --records ok.csv --schema list.json {BROKER}",
    f"client survey --index 2 {BROKER}",
    "certify list.json",
    "report .",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files that are hard to read, where the commands are typed, and brokers that nobody waits
    for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, text in {
        "ok": "a,b\n1,2\n3,4\n",
        "big": f"a,b\n{10**22},2\n1,2\n",
        "twins": "a,a\n1,2\n",
    }.items():
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "bytes.csv").write_bytes(bytes(range(256)) * 3)
    (tmp_path / "list.json").write_text("[1, 2]")
    for bus in (MqttBus, BlockingBus):
        monkeypatch.setattr(
            bus,
            "messages",
            lambda bus, patience, messages=bus.messages: messages(bus, min(patience, 0.2)),
        )
    return tmp_path


def _line(generator: np.random.Generator) -> list[str]:
    """A command with a nasty value, as one of its options or in the place of one of its words."""
    words = str(generator.choice(BASE)).split()
    context = click.Context(APP)
    target = APP.get_command(context, words[0])
    if isinstance(target, click.Group):
        target = target.get_command(context, words[1])
    assert target is not None
    taking = [each for each in target.params if isinstance(each, click.Option) and not each.is_flag]
    options = [each.opts[0] for each in taking if each.opts[0] != "--tier"]
    nasty = NASTY[int(generator.integers(len(NASTY)))]
    if options and generator.random() < 0.8:
        return [*words, str(generator.choice(options)), nasty]
    words[int(generator.integers(1, len(words)))] = nasty
    return words


def _stop(number: int, frame: FrameType | None) -> None:
    """As if a person pressed Ctrl-C after a while."""
    raise KeyboardInterrupt


@pytest.mark.usefixtures("folder")
def test_no_command_line_makes_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 lines, each ends with an exit code of the list and with one complaint, if it is no
    success."""
    generator, before = np.random.default_rng(1), signal.signal(signal.SIGALRM, _stop)
    for _ in range(60):
        line = _line(generator)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        done = local_dp(*line)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert "Traceback" not in done.stderr, line
        assert done.returncode in (0, 2, 3, 4, 5, INTERRUPTED), line
        complaints = [each for each in done.stderr.splitlines() if each.startswith("local-dp: ")]
        assert len(complaints) == (done.returncode not in (0, INTERRUPTED)), line
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("source", ["raise ValueError('two\\nlines')", "import sys; sys.exit(3)"])
def test_a_broken_package_takes_nothing_with_it(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that raises, or exits, while it is imported: the list holds it beside all others;
    asked for by name it is refused in a line, code 4."""
    (tmp_path / f"broken_{len(source)}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(
        RANDOMIZERS._points,
        "broken-rr",
        EntryPoint("broken-rr", f"broken_{len(source)}:Broken", RANDOMIZERS.group),
    )
    done = local_dp("randomizers")
    assert (
        done.returncode,
        done.stderr,
        "broken-rr" in done.stdout,
        "\n  grr " in done.stdout,
    ) == (0, "", True, True)
    audit = local_dp("audit", "broken-rr")
    assert (audit.returncode, "Traceback" in audit.stderr) == (4, False)
    assert len([each for each in audit.stderr.splitlines() if "broken-rr" in each]) == 1
