"""A broker that says what a test has it say."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from local_dp.bus.address import Address

WELCOME, BUSY, PASSWORD, UNKNOWN = (bytes((0x20, 2, 0, code)) for code in (0, 3, 4, 5))
AB, CD = b"\x30\x05\x00\x01tab", b"\x30\x05\x00\x01tcd"  # "ab" and "cd" on the topic "t"


Answer = Callable[[bytes], bytes]  # what a broker says to a packet


def said(answer: bytes) -> Answer:
    return lambda packet: answer


def granted(*deliveries: bytes, code: int = 0) -> Answer:
    """The answer to a subscription to one topic, and what is delivered with it."""
    return lambda packet: b"\x90\x03" + packet[2:4] + bytes((code,)) + b"".join(deliveries)


@contextmanager
def scripted(*lives: tuple[Answer, ...]) -> Iterator[tuple[Address, list[bytes]]]:
    """A broker that plays one life for each connection: its answers, one to each packet, and then
    it listens for a moment; and what it hears then."""
    packets: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5.0)

        def play() -> None:
            for answers in lives:
                with suppress(OSError), listener.accept()[0] as line:  # the test may be over
                    for answer in answers:
                        line.sendall(answer(line.recv(1 << 16)))
                    line.settimeout(0.2)
                    while more := line.recv(1 << 20):
                        packets.append(more)

        playing = threading.Thread(target=play)
        playing.start()
        yield Address("127.0.0.1", listener.getsockname()[1]), packets
        playing.join()
