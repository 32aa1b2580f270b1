"""The access rules of docs/deployment.md on a real broker: with the server's password nobody sees a client, under any subscription."""

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from local_dp.bus.address import Address
from local_dp.bus.interface import Delivery
from local_dp.bus.mqtt import MqttBus
from local_dp.wire import Absent, Hello, Reply, decode
from tests.support.runs.brokers import mosquitto, needs_mosquitto

RULES = """topic readwrite ldp/1/first/#

user shuffler
topic readwrite ldp/1/first/#
topic readwrite ldp/1/first.behind/#

user server
topic readwrite ldp/1/first.behind/#
"""


class Spy:
    """Somebody with the server's password who subscribes to everything, until the block ends."""

    def __init__(self, url: str) -> None:
        self.heard: list[Delivery] = []
        self._bus = MqttBus(Address.parse(url), "spy", ["#"])
        self._joined, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._listen()))

    def __enter__(self) -> "Spy":
        self._thread.start()
        assert self._joined.wait(10)
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join()

    async def _listen(self) -> None:
        reading = asyncio.create_task(self._read())
        while not self._over.is_set():
            await asyncio.sleep(0.05)
        reading.cancel()

    async def _read(self) -> None:
        async for event in self._bus.messages(5.0):
            if isinstance(event, Delivery):
                self.heard.append(event)
            else:
                self._joined.set()


@pytest.mark.long
@needs_mosquitto
def test_who_is_the_server_hears_of_no_client(tmp_path: Path) -> None:
    """Two hosts of 60 clients, a shuffler and a server, as commands: all answer, and the spy hears the server's requests and the shuffler's words alone."""
    rules, passwords = tmp_path / "acl", tmp_path / "passwords"
    rules.write_text(RULES)
    for place, user in enumerate(("shuffler", "server")):
        subprocess.run(["mosquitto_passwd", "-b", *(["-c"] if place == 0 else []), str(passwords), user, "PASSWORD"], check=True)
    for file in (rules, passwords):
        file.chmod(0o600)
    with mosquitto(tmp_path, "allow_anonymous true", f"acl_file {rules}", f"password_file {passwords}", "user root") as broker:
        urls = {user: broker.url.replace("mqtt://", f"mqtt://{user}:PASSWORD@") for user in ("shuffler", "server")}
        commands = [
            *(["host", "survey", "--broker", broker.url, "--start", str(start), "--clients", "60"] for start in (0, 60)),
            ["shuffler", "--broker", urls["shuffler"], "--clients", "120"],
            ["server", "survey", "--broker", urls["server"], "--clients", "120", "--quorum", "1", "--shuffle", "--json"],
        ]
        with Spy(urls["server"]) as spy:
            running = [
                subprocess.Popen([sys.executable, "-m", "local_dp", *words, "--run", "first"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for words in commands
            ]
            outputs = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0, 0], outputs
    assert json.loads(outputs[-1][0])["clients"]["answered"] == 120
    assert {delivery.topic.split("/")[2] for delivery in spy.heard} == {"first.behind"}
    messages = [decode(delivery.payload) for delivery in spy.heard if "/req/" not in delivery.topic]
    assert {type(message) for message in messages} == {Hello, Reply}
    assert all(isinstance(message, Hello | Reply | Absent) and message.member == "shuffler" for message in messages)
    assert not any(b"host" in delivery.payload for delivery in spy.heard)
