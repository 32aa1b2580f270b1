"""The access rules of docs/deployment.md on a real broker: with the server's password nobody sees a client, under any subscription."""

import json
import subprocess
from pathlib import Path

import pytest

from local_dp.bus.interface import Delivery
from local_dp.bus.mqtt import MqttBus
from local_dp.wire import Absent, Hello, Reply, decode
from tests.support.runs.brokers import listening, mosquitto, needs_mosquitto
from tests.support.runs.command import together

RULES = """topic readwrite ldp/1/first/#

user shuffler
topic readwrite ldp/1/first/#
topic readwrite ldp/1/first.behind/#

user server
topic readwrite ldp/1/first.behind/#
"""


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
        heard: list[Delivery] = []

        async def spy(bus: MqttBus, delivery: Delivery) -> None:
            heard.append(delivery)

        with listening(urls["server"], "spy", spy):
            ended = together(*([*words, "--run", "first"] for words in commands))
    assert [each.returncode for each in ended] == [0, 0, 0, 0], ended
    assert json.loads(ended[-1].stdout)["clients"]["answered"] == 120
    assert {delivery.topic.split("/")[2] for delivery in heard} == {"first.behind"}
    messages = [decode(delivery.payload) for delivery in heard if "/req/" not in delivery.topic]
    assert {type(message) for message in messages} == {Hello, Reply}
    assert all(isinstance(message, Hello | Reply | Absent) and message.member == "shuffler" for message in messages)
    assert not any(b"host" in delivery.payload for delivery in heard)
