"""Hosts on two machines, as far as their networks tell: in two network namespaces, whose only way to each other is one cable."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local_dp.bus.children import environment
from tests.support.namespaces import FIRST, SECOND, Machines, two_machines
from tests.support.runs.brokers import MOSQUITTO, needs_mosquitto
from tests.support.runs.command import command, local_dp

PORT = 18830


@contextmanager
def _running(words: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def _reaches(machines: Machines, where: str) -> bool:
    probe = f"import socket; socket.create_connection(({FIRST!r}, {PORT}), 1).close()"
    return subprocess.run(machines.command(where, [sys.executable, "-c", probe]), capture_output=True, check=False).returncode == 0


@pytest.mark.long
@needs_mosquitto
def test_hosts_on_two_machines_are_one_run(tmp_path: Path) -> None:
    """Broker, server and one host on the first, another host on the second: estimate and digest are those of the population tier on one machine.

    Neither address is of this machine itself.
    """
    config = tmp_path / "mosquitto.conf"
    config.write_text(f"listener {PORT} {FIRST}\npersistence false\nallow_anonymous true\n")
    common = ["survey", "--run", "two", "--broker", f"mqtt://{FIRST}:{PORT}"]

    def role(*words: str) -> list[str]:
        return command(words[0], *common, *words[1:], "--seed", "3")

    with two_machines() as machines, _running(machines.command(machines.first, [str(MOSQUITTO), "-c", str(config)])):
        for _ in range(50):
            if _reaches(machines, machines.second):
                break
            time.sleep(0.1)
        else:
            raise RuntimeError("mosquitto did not start")
        for address in (FIRST, SECOND):
            with socket.socket() as probe, pytest.raises(OSError, match="assign"):
                probe.bind((address, 0))
        with (
            _running(machines.command(machines.first, role("server", "--clients", "1500", "--json"))) as server,
            _running(machines.command(machines.first, role("host", "--start", "0", "--clients", "1000"))),
            _running(machines.command(machines.second, role("host", "--start", "1000", "--clients", "500"))) as far,
        ):
            output, _ = server.communicate(timeout=60)
            _, last = far.communicate(timeout=20)
    assert "epsilon spent 1" in last
    data = json.loads(output)
    alone = json.loads(local_dp("run", "survey", "--tier", "population", "--clients", "1500", "--seed", "3", "--json").stdout)
    assert data["rounds"][0]["digest"] == alone["rounds"][0]["digest"]
    assert (data["result"]["estimate"], data["clients"]["answered"]) == (alone["result"]["estimate"], 1500)
