"""One member's process, from its first word to the launcher to the end of the run."""

import os
import socket
import struct

from local_dp.bus.address import Address
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.bus.sealed import SealedClientBus
from local_dp.clients.config import MemberConfig
from local_dp.clients.member import PARTING, filters, serve, will
from local_dp.errors import BusError, InputError

READY = b"+"
FAILED = b"-"
_BROKER_LOST = 5  # the exit code for the bus, as on the command line


def introduce(line: socket.socket, index: int) -> MemberConfig | None:
    """Says who is there, and waits for the configuration of member `index`; None if the launcher goes away first."""
    line.sendall(struct.pack("<II", index, os.getpid()))
    size = int.from_bytes(_read(line, 4), "little")
    data = _read(line, size)
    return MemberConfig.from_bytes(data) if data and len(data) == size else None


def _read(line: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer if the other side goes away."""
    data = b""
    while len(data) < size and (more := line.recv(size - len(data), socket.MSG_WAITALL)):
        data += more
    return data


def live(line: socket.socket, config: MemberConfig, parting: float = PARTING) -> int:
    """Joins the broker, tells the launcher so, answers until the run ends or the launcher is gone; the exit code."""
    envelopes = config.envelopes()
    bus = BlockingBus(
        Address.parse(config.broker),
        f"{config.run}-{config.member}",
        filters(config.run, config.group),
        will(config.run, config.group, config.member, envelopes),
        line,
        lambda: os._exit(0),  # the launcher is gone: there is nothing to save
    )

    async def connected() -> None:
        line.sendall(READY)

    try:
        finish(serve(config.role(), SealedClientBus(bus, envelopes), config.run, config.group, connected, parting))
    except (BusError, InputError) as error:
        line.sendall(FAILED + str(error).encode())
        return _BROKER_LOST
    return 0
