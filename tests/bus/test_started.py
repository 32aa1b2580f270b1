"""The broker that a run starts: Mosquitto where there is one, else amqtt; each ends with the run,
however that ends."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from local_dp.bus import broker as broker_module
from local_dp.bus import mosquitto
from local_dp.bus.broker import SETTING, USER, EmbeddedBroker
from local_dp.bus.children import environment, python
from local_dp.bus.door import packed
from local_dp.errors import BusError, InputError
from tests.support.runs.brokers import needs_mosquitto
from tests.support.wrong import wrong


@pytest.mark.parametrize(
    ("places", "name"),
    [
        ("", "amqtt"),
        ("failing", "amqtt"),
        pytest.param(mosquitto._PLACES, "Mosquitto", marks=needs_mosquitto),
    ],
    ids=["none", "failing", "found"],
)
def test_amqtt_stands_in_for_a_mosquitto_that_is_missing_or_fails(
    places: str, name: str, tmp_path: Path
) -> None:
    """Without a Mosquitto, and with one that ends at once, the process is amqtt; it ends with its
    standard input, and leaves no other process."""
    program = tmp_path / "failing" / "mosquitto"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o700)
    text = (
        "import local_dp.bus.mosquitto as m; m._PLACES = "
        f"{places.replace('failing', str(program.parent))!r}; m.main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", text, str(tmp_path / "b")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        print("secret", file=process.stdin, flush=True)
        assert process.stdout.readline().strip() == name
        family = psutil.Process(process.pid).children(recursive=True)
        process.stdin.close()
        process.wait(timeout=20)
    assert not psutil.wait_procs(family, timeout=10)[1]


@needs_mosquitto
def test_a_killed_mosquitto_comes_again_and_outlives_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed itself, or with its keeper, it listens again at the same address; a stranger without
    the password never enters; at the end nothing runs."""
    monkeypatch.setenv(SETTING, "")

    def enters(path: Path, password: str) -> bool:
        """Whether MQTT's first message is answered with a welcome."""
        body = b"\0\4MQTT\4\xc2\0\x3c\0\2me" + packed(USER, password)
        with socket.socket(socket.AF_UNIX) as line, suppress(OSError):
            line.connect(str(path))
            line.sendall(bytes((0x10, len(body))) + body)
            return line.recv(4) == b"\x20\2\0\0"
        return False

    async def life() -> list[psutil.Process]:
        broker, processes = EmbeddedBroker(tmp_path), list[psutil.Process]()
        await broker.start()
        for kill_keeper in (False, True, False):
            (child,) = psutil.Process(broker.pid).children()
            processes += [psutil.Process(broker.pid), child]
            os.kill(broker.pid if kill_keeper else child.pid, signal.SIGKILL)
            psutil.wait_procs([child], timeout=10)
            await _until(lambda: enters(broker.path, broker._password))
        assert not enters(broker.path, "guess")
        processes += [psutil.Process(broker.pid), *psutil.Process(broker.pid).children()]
        await broker.stop()
        return processes

    assert not psutil.wait_procs(asyncio.run(life()), timeout=10)[1]


async def _until(condition: Callable[[], bool]) -> None:
    latest = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < latest
        await asyncio.sleep(0.05)


@wrong(
    "local_dp.bus.broker:EmbeddedBroker.start",
    "await self._process.wait() >= 0",
    "await self._process.wait()",
    "a run is lost whose broker is killed in its first second",
)
def test_a_broker_that_is_killed_at_its_first_start_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that ends by itself then is an error: it would end so again."""
    monkeypatch.setattr(broker_module, "_PAUSE", 0.0)
    ends = ["import os; os.kill(os.getpid(), 9)", "raise SystemExit(1)"]
    monkeypatch.setattr(
        broker_module,
        "python",
        lambda *words: [sys.executable, "-I", "-S", "-c", ends.pop(0)] if ends else python(*words),
    )

    async def life() -> None:
        broker = EmbeddedBroker(tmp_path)
        await broker.start()
        await _until(lambda: broker.name == "amqtt")
        await broker.stop()
        ends.append("raise SystemExit(1)")
        with pytest.raises(BusError, match="did not start"):
            await EmbeddedBroker(tmp_path).start()

    asyncio.run(life())


def test_amqtt_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the environment, and for phones, whose floods only amqtt paces."""
    homes = []
    for setting, fair in (("", False), ("amqtt", False), ("AMQTT", False), ("", True)):
        monkeypatch.setenv(SETTING, setting)
        homes.append(EmbeddedBroker(tmp_path, fair=fair)._home.rpartition(".")[2])
    assert homes == ["mosquitto", "embedded", "embedded", "embedded"]
    monkeypatch.setenv(SETTING, "amqt")
    with pytest.raises(InputError, match="LOCAL_DP_BROKER is 'amqt'"):
        EmbeddedBroker(tmp_path)
