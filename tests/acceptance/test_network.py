"""Reliability 24: what the configuration of a broker in docs/deployment.md keeps out. Each test
prints its figure."""

import asyncio
import re
import socket
import subprocess
import threading
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from local_dp.bus.address import Address
from local_dp.bus.interface import Connected
from local_dp.bus.mqtt import MqttBus
from local_dp.clients.member import HOSTS
from local_dp.errors import BusError, InputError
from local_dp.simulation.outcome import Outcome
from local_dp.wire import End, Gone, Hello, encode, topic
from tests.support.figures import figure
from tests.support.inputs.builders import RUN, reply_of
from tests.support.runs.brokers import configured, free_port, joins, needs_mosquitto
from tests.support.runs.certificates import certify, deployed
from tests.support.runs.parties import CLIENTS, Cast, play_on

pytestmark = needs_mosquitto
# rounds of members in private, who take a tenth of a second each, so that an attack has time
LONG = 15


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The folder of docs/deployment.md for the four hosts and an intruder, and the port."""
    folder, port = tmp_path_factory.mktemp("shipped") / "broker", free_port()
    deployed(folder, port, ["intruder", *(member.place.member for member in Cast.of().members)])
    return folder, port


def _url(folder: Path, port: int, name: str, authority: Path | None = None) -> str:
    certificate = f"&cert={folder / name}.pem" if name else ""
    return f"mqtts://localhost:{port}?ca={(authority or folder) / 'ca.crt'}{certificate}"


@needs_mosquitto
def test_the_configuration_has_a_websocket_on_demand(tmp_path: Path) -> None:
    """With another listener the same certificates are good for WebSocket, with the same rules;
    without a certificate nobody comes in."""
    port, websocket = free_port(), free_port()
    config = deployed(tmp_path / "broker", port, ["host-0"], websocket=websocket)
    url = _url(tmp_path / "broker", websocket, "host-0").replace("mqtts", "wss")

    async def hear() -> None:
        bus = MqttBus(Address.parse(url), "x", [topic(RUN, "req", HOSTS)])
        async with aclosing(bus.messages(5.0)) as events:
            assert isinstance(await anext(events), Connected)
        stranger = MqttBus(Address.parse(url.partition("&")[0]), "x", [topic(RUN, "req", HOSTS)])
        with pytest.raises(BusError):
            await anext(stranger.messages(0.5))

    with configured(config, port):
        asyncio.run(hear())


@dataclass
class Intruder:
    """A member with a certificate of its own, which is after the others; in no roster of a run,
    which it could not be in under another name."""

    url: str
    heard: list[str] = field(default_factory=list)
    joined: int = 0

    def client(self, identifier: str, gone: str = "") -> paho.Client:
        """One connection, which reads everything; with the will that a member is gone."""
        address = Address.parse(self.url)
        client = paho.Client(CallbackAPIVersion.VERSION2, identifier, protocol=paho.MQTTv311)
        client.tls_set_context(address.context())
        if gone:
            client.will_set(
                topic(RUN, "gone", HOSTS, gone), encode(Gone(run=RUN, member=gone)), qos=1
            )
        client.on_message = lambda client, data, message: self.heard.append(message.topic)
        client.on_connect = self._on_connect
        client.connect(address.host, address.port)
        for _ in range(4):
            client.loop(0.05)
        return client

    def _on_connect(
        self, client: paho.Client, data: object, flags: object, reason: object, properties: object
    ) -> None:
        self.joined += 1
        client.subscribe(
            [
                (pattern, 2)
                for pattern in (
                    "#",
                    "ldp/#",
                    "ldp/1/+/rep/#",
                    "+/+/+/+/+/+",
                    f"ldp/1/{RUN}/hello/+/+",
                    "$SYS/#",
                )
            ]
        )

    def attack(self, over: threading.Event) -> int:
        """Forges by every QoS, retained, by will, under a client id of somebody else, until it is
        over; how many messages that were."""
        messages = 0
        while not over.is_set():
            client = self.client(f"{RUN}-host-0" if self.joined % 2 else "intruder", gone="host-0")
            for batch in range(4):
                for qos, (where, payload) in product((0, 1, 2), _FORGED):
                    client.publish(where, payload, qos, retain=batch == 3)
                    messages += 1
                for _ in range(10):
                    client.loop(0.005)
            _break(client)
        return messages


def _break(client: paho.Client) -> None:
    """Breaks its connection, so that its will is said."""
    line: Any = client.socket()
    if line is not None:
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)


_FORGED = [
    (topic(RUN, "rep", HOSTS, "host-0"), encode(reply_of(1, "host-0", 0, bytes([1]) * 10))),
    (
        topic(RUN, "hello", HOSTS, "host-0"),
        encode(Hello(run=RUN, member="host-0", start=0, stop=CLIENTS, private=True)),
    ),
    (topic(RUN, "gone", HOSTS, "host-0"), encode(Gone(run=RUN, member="host-0"))),
    (topic(RUN, "req", "all"), encode(End(run=RUN))),
    (topic(RUN, "req", HOSTS), encode(End(run=RUN))),
]


def _attacked(config: Path, folder: Path, port: int) -> tuple[Outcome, Cast, Intruder, int]:
    cast, intruder, over, messages = (
        Cast.of(seeded=(), rounds=LONG),
        Intruder(_url(folder, port, "intruder")),
        threading.Event(),
        list[int](),
    )
    attacking = threading.Thread(target=lambda: messages.append(intruder.attack(over)))
    others = [_url(folder, port, member.place.member) for member in cast.members]
    with configured(config, port):
        attacking.start()
        try:
            while not intruder.joined:
                time.sleep(0.01)
            outcome = play_on(cast, _url(folder, port, "server"), others)
        finally:
            over.set()
            attacking.join()
    return outcome, cast, intruder, sum(messages)


def _without_rules(folder: Path, at: Path) -> Path:
    lines = (folder / "mosquitto.conf").read_text().splitlines()
    config = at / "open.conf"
    config.write_text("\n".join(line for line in lines if not line.startswith("acl_file")) + "\n")
    return config


def test_a_member_gone_bad_reaches_nobody(shipped: tuple[Path, int]) -> None:
    """Reliability 24: it forges by every QoS, by wills, retained, takes client ids, subscribes to
    everything: nobody sees it, it hears nobody."""
    folder, port = shipped
    outcome, cast, intruder, messages = _attacked(folder / "mosquitto.conf", folder, port)
    assert (outcome.counts.answered, outcome.counts.conflicting) == (LONG * CLIENTS, 0)
    assert outcome.bus is not None
    forged = outcome.bus.forged + sum(bus.forged for bus in cast.heard)
    topics = [where for where in intruder.heard if "/req/" not in where]
    assert (forged, outcome.rejected, topics) == (0, 0, [])
    assert intruder.joined > 2
    assert intruder.heard, "requests are for everybody"
    figure(
        24,
        (
            f"{messages} messages forged by {intruder.joined} connections of a member: 0 reached "
            "anybody, 0 of others read, 0 accepted"
        ),
    )


def test_without_the_rules_signatures_are_left(shipped: tuple[Path, int], tmp_path: Path) -> None:
    """The twin: the same attack where the access rules are left out reaches server and members, is
    read by nobody, and the intruder hears everything."""
    folder, port = shipped
    outcome, cast, intruder, _ = _attacked(_without_rules(folder, tmp_path), folder, port)
    assert (outcome.counts.answered, outcome.counts.conflicting) == (LONG * CLIENTS, 0)
    assert outcome.bus is not None
    assert outcome.bus.forged > 0
    assert sum(bus.forged for bus in cast.heard) > 0
    assert any("/rep/" in where for where in intruder.heard)


def test_strangers_do_not_get_in(
    shipped: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reliability 24: without a certificate, or with one of another authority in a member's name,
    nobody joins; nor a member such a broker."""
    monkeypatch.setattr("local_dp.bus.mqtt.TIMEOUT", 1.0)
    folder, port = shipped
    deployed(tmp_path / "other", port, ["host-0"])
    urls = {
        "a certificate of ours": _url(folder, port, "host-0"),
        "no certificate": _url(folder, port, ""),
        "another authority": _url(tmp_path / "other", port, "host-0", authority=folder),
        "no trust in the broker": _url(folder, port, "host-0", authority=tmp_path / "other"),
        "no TLS": f"mqtt://localhost:{port}",
    }
    with configured(folder / "mosquitto.conf", port):
        joined = {what for what, url in urls.items() if asyncio.run(joins(url))}
    assert joined == {"a certificate of ours"}
    figure(24, f"of {len(urls)} ways to join {len(joined)} lets in: {', '.join(joined)}")


def test_passwords_take_the_place_of_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/deployment.md says: with its password a member joins over TLS, with a wrong one or
    none it does not."""
    monkeypatch.setattr("local_dp.bus.mqtt.TIMEOUT", 1.0)
    folder, port = tmp_path / "broker", free_port()
    config = deployed(folder, port, [])
    lines = [
        line
        for line in config.read_text().splitlines()
        if not line.startswith(("require_certificate", "use_identity"))
    ]
    config.write_text("\n".join((*lines, f"password_file {folder}/passwords")))
    subprocess.run(
        ["mosquitto_passwd", "-b", "-c", "passwords", "host-0", "word"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    urls = [
        f"mqtts://{login}localhost:{port}?ca={folder}/ca.crt"
        for login in ("host-0:word@", "host-0:other@", "")
    ]
    with configured(config, port):
        assert [asyncio.run(joins(url)) for url in urls] == [True, False, False]


def test_a_request_chooses_no_name(shipped: tuple[Path, int]) -> None:
    """A member that asks for the name `server` gets its own, and a certificate is no use with
    another member's key."""
    folder, port = shipped
    certify(folder, "greedy", asked="server")
    shown = subprocess.run(
        ["openssl", "x509", "-noout", "-subject", "-in", "greedy.crt"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.sub(r"\s", "", shown.stdout) == "subject=CN=greedy"
    (folder / "both.pem").write_text(
        (folder / "host-0.crt").read_text()
        + (folder / "greedy.pem").read_text().partition("-----BEGIN CERTIFICATE")[0]
    )
    with pytest.raises(InputError, match="certificate"):
        Address.parse(_url(folder, port, "both")).context()
