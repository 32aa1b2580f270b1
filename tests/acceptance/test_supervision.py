"""P5, P6: a run leaves nothing behind however it ends, and goes on whatever becomes of its
broker."""

import os
import shlex
import signal
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_dp.bus.broker import EmbeddedBroker
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.server.progress import Progress, RoundProgress
from local_dp.server.quorum import Terms
from local_dp.simulation import over_bus
from local_dp.simulation.execute import execute
from local_dp.simulation.settings import Randomness, Settings
from tests.support.runs.signalled import PATIENCE, marked
from tests.support.wrong import wrong

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


RUN = shlex.split(
    "run quantiles --clients 12 --tier processes --seed 1 --deadline 60 --tolerance 0.05"
)


@linux
@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long), (signal.SIGKILL, -9)],
)
def test_a_signal_leaves_nothing_behind(tmp_path: Path, number: int, code: int) -> None:
    """Once eight processes of a run are there: after the signal no process and no file of it is
    left."""
    with marked(tmp_path, *RUN) as command:
        assert command.wait(lambda: len(command.alive()) >= 8)
        command.process.send_signal(number)
        _, errors = command.process.communicate(timeout=PATIENCE)
        assert "Traceback" not in errors
        assert (command.process.returncode, command.left()) == (code, (0, []))


@wrong(
    "local_dp.simulation.over_bus:over_bus",
    "Path(fleet.folder.name)",
    "Path(fleet.folder.name).parent",
    "every user of the machine can connect to the embedded broker",
)
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # of paho, which connects in vain
def test_a_killed_broker_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the first two rounds while replies are under way: every report counts once, as in
    an undisturbed run, bit for bit."""
    brokers, struck = list[EmbeddedBroker](), list[int]()

    def new_broker(folder: Path) -> EmbeddedBroker:
        brokers.append(EmbeddedBroker(folder))
        return brokers[-1]

    def strike(progress: Progress) -> None:
        if (
            isinstance(progress, RoundProgress)
            and len(struck) < min(2, progress.round)
            and progress.answered < progress.asked
        ):
            struck.append(progress.round)
            assert stat.S_IMODE(brokers[-1].path.parent.stat().st_mode) == 0o700, (
                "others can reach the broker"
            )
            os.kill(brokers[-1].pid, signal.SIGKILL)

    monkeypatch.setattr(over_bus, "EmbeddedBroker", new_broker)
    protocol = PROTOCOLS["local-sgd"].from_settings(
        {"d": "2", "gamma": "0.9", "alpha": "0.9", "rounds": "6", "told": "one-bit-mean"}
    )
    how: dict[str, Any] = {"terms": Terms(deadline=60.0, quorum=1.0)}
    run = Settings(
        protocol, protocol.synthetic(24, 1), 4.0, Randomness(1, False), tier="processes", **how
    )
    outcome, alone = (
        execute(run, strike),
        execute(replace(run, tier="population"), lambda progress: None),
    )
    assert struck == [1, 2]
    assert (outcome.counts.answered, outcome.counts.conflicting) == (outcome.counts.asked, 0)
    assert [each.digest for each in outcome.rounds] == [each.digest for each in alone.rounds]
