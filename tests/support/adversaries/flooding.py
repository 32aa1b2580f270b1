"""Somebody who floods a topic: a process that sends one ready-made message over and over through a
socket, for which it needs no time to speak of."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from local_dp.bus.address import Address

_PROGRAM = """
import socket, struct, sys, time
host, who, topic, rate, port = sys.argv[1:]
port, who, topic, rate = int(port), who.split(), topic.encode(), float(rate)
text = lambda said: struct.pack(">H", len(said)) + said
line = socket.socket(socket.AF_UNIX if port == 0 else socket.AF_INET)
line.connect(host if port == 0 else (host, port))
hello = text(b"MQTT") + bytes([4, 0xC2 if who else 2, 0, 0]) + text(b"bad")
hello += b"".join(text(each.encode()) for each in who)
line.sendall(bytes([0x10, len(hello)]) + hello)
line.recv(4)
body = text(topic) + bytes(80)
packet = bytes([0x30, len(body)]) + body
print("ready", flush=True)
began, sent = time.monotonic(), 0
while True:
    due = int((time.monotonic() - began) * rate)
    line.sendall(packet * min(due - sent, 500))
    sent = due
    time.sleep(0.002)
"""


class Flood:
    """A flood that stands until it is let flow."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.flow(False)

    def flow(self, flows: bool) -> None:
        self.process.send_signal(signal.SIGCONT if flows else signal.SIGSTOP)


@contextmanager
def flood(url: str, topic: str, rate: int) -> Iterator[Flood]:
    """One over the broker at `url`, of so many messages a second under a topic."""
    address = Address.parse(url)
    port = address.port if address.transport == "tcp" else 0
    words = [
        sys.executable,
        "-c",
        _PROGRAM,
        address.host,
        f"{address.user} {address.password}" if address.user else "",
        topic,
        str(rate),
        str(port),
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield Flood(process)
        finally:
            process.kill()
