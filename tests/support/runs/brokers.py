"""Real brokers for tests, in processes of their own on free loopback ports: Mosquitto, and the
embedded broker shared by several runs."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from paho.mqtt.publish import single

from local_dp.bus.address import Address
from local_dp.bus.children import environment, python
from local_dp.bus.mqtt import MqttBus
from local_dp.errors import BusError

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
needs_mosquitto = pytest.mark.skipif(
    MOSQUITTO is None and "CI" not in os.environ,
    reason="mosquitto is not installed (Debian: apt-get install mosquitto); CI installs it",
)


_NUMBERS = count(os.getpid() * 101)  # each process of tests begins at another


def free_port() -> int:
    """A port of the loopback address on which nobody listens, never the same twice, and below those
    that the system gives to connections."""
    return next(
        port for port in (20_000 + number % 10_000 for number in _NUMBERS) if not _listens(port)
    )


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


_BOUNDS = (
    "max_connections 2000",
    "connection_messages false",
    "set_tcp_nodelay true",
    "log_type error",
    "log_type warning",
)


class Mosquitto:
    """One broker process with a configuration file; `restart` kills it and starts it again on its
    port."""

    def __init__(self, config: Path, port: int) -> None:
        self.config, self.port = config, port
        self.process = self._start()

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def _start(self) -> subprocess.Popen[bytes]:
        assert MOSQUITTO is not None, "mosquitto is not installed"
        process = subprocess.Popen([MOSQUITTO, "-c", str(self.config)], stderr=subprocess.DEVNULL)
        ports = {self.port, *map(int, re.findall(r"(?m)^listener (\d+)", self.config.read_text()))}
        for _ in range(500):
            ports = {port for port in ports if not _listens(port)}
            if not ports:
                return process
            time.sleep(0.01)
        raise RuntimeError("mosquitto did not start")

    def restart(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process = self._start()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def mosquitto(folder: Path, *lines: str) -> Iterator[Mosquitto]:
    """A Mosquitto with these configuration lines; anonymous unless they say otherwise."""
    port, config = free_port(), folder / "mosquitto.conf"
    lines = lines or ("allow_anonymous true",)
    words = (f"listener {port} 127.0.0.1", "persistence false", *_BOUNDS, *lines)
    config.write_text("\n".join(words) + "\n")
    with configured(config, port) as broker:
        yield broker


@contextmanager
def configured(config: Path, port: int) -> Iterator[Mosquitto]:
    """A Mosquitto with this configuration, which listens there."""
    broker = Mosquitto(config, port)
    try:
        yield broker
    finally:
        broker.stop()


@contextmanager
def embedded() -> Iterator[str]:
    """The embedded broker as a run would start it, for several runs; gives its URL."""
    folder = tempfile.mkdtemp(prefix="broker-")
    path = f"{folder}/broker"
    words = python("local_dp.bus.embedded", path)
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            print("secret", file=process.stdin, flush=True)
            assert process.stdout.readline()
            yield f"mqtt+unix://run:secret@{path}"
        finally:
            process.kill()
            shutil.rmtree(folder)


@contextmanager
def a_broker(kind: str, folder: Path, *lines: str) -> Iterator[str]:
    """One of the kind "embedded" or "mosquitto", with these configuration lines; gives its URL."""
    if kind == "embedded":
        with embedded() as url:
            yield url
    else:
        with mosquitto(folder, *lines) as broker:
            yield broker.url


def retain(url: str, topic: str, payload: bytes) -> None:
    """Has the broker keep a message for later subscribers of its topic."""
    at = Address.parse(url)
    login = None if at.user is None else {"username": at.user, "password": at.password or ""}
    single(
        topic,
        payload,
        qos=1,
        retain=True,
        hostname=at.host,
        port=at.port,
        auth=login,  # type: ignore[arg-type]
        transport=at.transport,  # type: ignore[arg-type]
    )


async def joins(url: str) -> bool:
    """Whether the broker lets somebody in."""
    try:
        async for _ in MqttBus(Address.parse(url), "somebody", ["ldp/1/x/req/all"]).messages(0.5):
            return True
    except BusError:
        pass
    return False
