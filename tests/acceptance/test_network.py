"""P5: what the configuration of a broker in docs/deployment.md keeps out."""

import asyncio
import re
import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from local_dp.bus.address import Address
from local_dp.clients.member import HOSTS
from local_dp.errors import InputError
from local_dp.wire import End, Gone, Hello, encode, topic
from tests.support.inputs.builders import RUN, reply_of
from tests.support.runs.brokers import configured, free_port, joins, needs_mosquitto
from tests.support.runs.certificates import certify, deployed
from tests.support.runs.parties import CLIENTS, Cast, play_on

pytestmark = needs_mosquitto
# rounds of members in private, who take a tenth of a second each, so that an attack has time
LONG = 15


@pytest.fixture(scope="module")
def broker_place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The folder of docs/deployment.md for the four hosts and an intruder, and the port."""
    folder, port = tmp_path_factory.mktemp("broker") / "broker", free_port()
    deployed(folder, port, ["intruder", *(member.place.member for member in Cast.of().members)])
    return folder, port


def _url(folder: Path, port: int, name: str, authority: Path | None = None) -> str:
    certificate = f"&cert={folder / name}.pem" if name else ""
    return f"mqtts://localhost:{port}?ca={(authority or folder) / 'ca.crt'}{certificate}"


FORGED = [
    (topic(RUN, "gone", HOSTS, "host-0"), encode(Gone(run=RUN, member="host-0"))),
    (topic(RUN, "rep", HOSTS, "host-0"), encode(reply_of(1, "host-0", 0, bytes([1]) * 10))),
    (
        topic(RUN, "hello", HOSTS, "host-0"),
        encode(Hello(run=RUN, member="host-0", start=0, stop=CLIENTS, private=True)),
    ),
    (topic(RUN, "req", "all"), encode(End(run=RUN))),
    (topic(RUN, "req", HOSTS), encode(End(run=RUN))),
]


class Intruder:
    """A member with a certificate of its own, which is after the others; in no roster of a run,
    which it could not be in under another name."""

    def __init__(self, url: str) -> None:
        self.address, self.messages, self.connections = Address.parse(url), list[str](), 0

    def attack(self, over: threading.Event) -> None:
        """Reads everything, and forges by every QoS, retained, by will and under a client id of
        somebody else, until it is over."""
        while not over.is_set():
            client = paho.Client(
                CallbackAPIVersion.VERSION2,
                f"{RUN}-host-0" if self.connections % 2 else "intruder",
                protocol=paho.MQTTv311,
            )
            client.tls_set_context(self.address.context())
            client.will_set(*FORGED[0], qos=1)
            client.on_message = lambda client, data, message: self.messages.append(message.topic)
            client.on_connect = self._on_connect
            client.connect(self.address.host, self.address.port)
            for qos in (0, 1, 2):
                for _ in range(10):
                    client.loop(0.02)
                for where, payload in FORGED:
                    client.publish(where, payload, qos, retain=qos == 2)
            line: Any = client.socket()
            if line is not None:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)  # so that its will is said

    def _on_connect(
        self, client: paho.Client, data: object, flags: object, reason: object, properties: object
    ) -> None:
        self.connections += 1
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


def test_a_member_gone_bad_reaches_nobody(broker_place: tuple[Path, int]) -> None:
    """It forges by every QoS, by wills, retained, takes client ids, subscribes to everything:
    nobody sees it, it hears nobody."""
    folder, port = broker_place
    cast, intruder, over = (
        Cast.of(seeded=(), rounds=LONG),
        Intruder(_url(folder, port, "intruder")),
        threading.Event(),
    )
    attacking = threading.Thread(target=intruder.attack, args=(over,))
    with configured(folder / "mosquitto.conf", port):
        attacking.start()
        try:
            while not intruder.connections:
                time.sleep(0.01)
            outcome = play_on(
                cast,
                _url(folder, port, "server"),
                [_url(folder, port, member.place.member) for member in cast.members],
            )
        finally:
            over.set()
            attacking.join()
    assert (outcome.counts.answered, outcome.counts.conflicting) == (LONG * CLIENTS, 0)
    assert outcome.bus is not None
    forgeries = outcome.bus.forgeries + sum(bus.forgeries for bus in cast.buses)
    topics = [where for where in intruder.messages if "/req/" not in where]
    assert (forgeries, outcome.rejected, topics) == (0, 0, [])
    assert intruder.connections > 2
    assert intruder.messages, "requests are for everybody"


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # of paho, which connects in vain
def test_strangers_do_not_get_in(
    broker_place: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a certificate, or with one of another authority in a member's name, nobody joins; nor
    a member such a broker."""
    monkeypatch.setattr("local_dp.bus.mqtt.TIMEOUT", 1.0)
    folder, port = broker_place
    deployed(tmp_path / "other", port, ["host-0"])
    urls = {
        "a certificate of ours": _url(folder, port, "host-0"),
        "no certificate": _url(folder, port, ""),
        "another authority": _url(tmp_path / "other", port, "host-0", authority=folder),
        "no trust in the broker": _url(folder, port, "host-0", authority=tmp_path / "other"),
        "no TLS": f"mqtt://localhost:{port}",
    }
    with configured(folder / "mosquitto.conf", port):
        guests = {what for what, url in urls.items() if asyncio.run(joins(url))}
    assert guests == {"a certificate of ours"}


def test_a_request_chooses_no_name(broker_place: tuple[Path, int]) -> None:
    """A member that asks for the name `server` gets its own, and a certificate is no use with
    another member's key."""
    folder, port = broker_place
    certify(folder, "greedy", alias="server")
    output = subprocess.run(
        ["openssl", "x509", "-noout", "-subject", "-in", "greedy.crt"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.sub(r"\s", "", output.stdout) == "subject=CN=greedy"
    (folder / "both.pem").write_text(
        (folder / "host-0.crt").read_text()
        + (folder / "greedy.pem").read_text().partition("-----BEGIN CERTIFICATE")[0]
    )
    with pytest.raises(InputError, match="certificate"):
        Address.parse(_url(folder, port, "both")).context()
