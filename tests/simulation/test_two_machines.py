"""Broker, server and a host on one machine, another host on a second one, as far as their networks
tell: the bits of one process."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from local_dp.bus.children import environment
from tests.support.namespaces import FIRST, SECOND, Machines, two_machines
from tests.support.runs.brokers import MOSQUITTO, needs_mosquitto
from tests.support.runs.command import command, outcome_of

pytestmark = [pytest.mark.long, needs_mosquitto]
PORT = 18830
CLIENTS, NEAR = 1500, 1000  # of all, and of the first host


@contextmanager
def _running(words: list[str]) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@dataclass(frozen=True)
class Town:
    """The two machines, with a broker on the first."""

    machines: Machines

    def server(self, *words: str) -> list[str]:
        return self._role(
            self.machines.first, "server", "--clients", str(CLIENTS), "--json", *words
        )

    def near(self) -> list[str]:
        return self._role(self.machines.first, "host", "--start", "0", "--clients", str(NEAR))

    def far(self) -> list[str]:
        return self._role(
            self.machines.second, "host", "--start", str(NEAR), "--clients", str(CLIENTS - NEAR)
        )

    def _role(self, where: str, role: str, *words: str) -> list[str]:
        common = f"{role} survey --run two --broker mqtt://{FIRST}:{PORT} --seed 3"
        return self.machines.command(where, command(*common.split(), *words))

    def reaches(self) -> bool:
        probe = f"import socket; socket.create_connection(({FIRST!r}, {PORT}), 1).close()"
        return (
            subprocess.run(
                self.machines.command(self.machines.second, [sys.executable, "-c", probe]),
                capture_output=True,
                check=False,
            ).returncode
            == 0
        )


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    config = tmp_path / "mosquitto.conf"
    config.write_text(f"listener {PORT} {FIRST}\npersistence false\nallow_anonymous true\n")
    with (
        two_machines() as machines,
        _running(machines.command(machines.first, [str(MOSQUITTO), "-c", str(config)])),
    ):
        town = Town(machines)
        for _ in range(50):
            if town.reaches():
                break
            time.sleep(0.1)
        else:
            raise RuntimeError("mosquitto did not start")
        yield town


def _as_one_process(output: str) -> None:
    data = json.loads(output)
    words = f"survey --tier population --clients {CLIENTS} --seed 3"
    alone = outcome_of(*words.split())
    assert data["rounds"][0]["digest"] == alone["rounds"][0]["digest"]
    assert (data["result"]["estimate"], data["clients"]["answered"]) == (
        alone["result"]["estimate"],
        CLIENTS,
    )


def test_hosts_on_two_machines_are_one_run(town: Town) -> None:
    """Estimate and digest are those of the population tier on one machine. Neither address is of
    this machine itself."""
    for address in (FIRST, SECOND):
        with socket.socket() as probe, pytest.raises(OSError, match="assign"):
            probe.bind((address, 0))
    with _running(town.server()) as server, _running(town.near()), _running(town.far()) as far:
        output, _ = server.communicate(timeout=60)
        _, last = far.communicate(timeout=20)
    assert "epsilon spent 1" in last
    _as_one_process(output)
