"""The address of a broker, the patience of its clients, and the errors when it is away."""

import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from local_dp.errors import BusError, InputError

LOCAL = "mqtt+unix"  # the scheme of a socket in a folder of this machine
FIRST_RETRY, SLOWEST_RETRY = 0.1, 2.0  # seconds
CUT_RETRY = 0.5  # the most after a connection that was cut soon: shorter than a server waits for a member that is gone
KEEPALIVE = 30
TIMEOUT = 10.0  # to connect, and to be answered then
AGAIN = 2.5  # the same, of the first try after a connection was lost: a broker that was killed as it accepted one answers none; twice as long each time
_PORTS = {"mqtt": 1883, "mqtts": 8883, LOCAL: 1883}


@dataclass(frozen=True)
class Address:
    """Where a broker is: mqtt://[user[:password]@]host[:port], or mqtts:// for TLS, with ?ca=FILE of its authority and &cert=FILE, our certificate and key.

    mqtt+unix://[user[:password]@]/PATH is a socket of this machine; then `host` is its path.
    """

    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    ca: str | None = None
    cert: str | None = None
    transport: Literal["tcp", "unix"] = "tcp"

    @classmethod
    def parse(cls, url: str) -> "Address":
        """The address in `url`. Raises InputError."""
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS[parts.scheme]
        except (ValueError, KeyError):
            raise InputError(f"cannot use the broker {url!r}; write mqtt://host:port or mqtts://user:password@host:port") from None
        user = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        if parts.scheme == LOCAL and len(parts.path) > 1 and not parts.hostname:
            return cls(unquote(parts.path), port, user, password, transport="unix")
        if not parts.hostname:
            raise InputError(f"the broker {url!r} names no host; write mqtt://host:port")
        try:
            parts.hostname.encode("idna")
        except UnicodeError:
            raise InputError(f"the broker's host {parts.hostname!r:.80} is no host name; write mqtt://host:port") from None
        options = {name: file for name, _, file in (each.partition("=") for each in parts.query.split("&") if each)}
        if not options.keys() <= {"ca", "cert"}:
            raise InputError(f"the broker {url!r} has options other than ?ca=FILE and &cert=FILE; leave them out")
        ca, cert = options.get("ca"), options.get("cert")
        if ca is not None and not _is_file(ca):
            raise InputError(f"the certificate file {ca!r:.80} of the broker does not exist; correct ?ca=FILE")
        if cert is not None and not _is_file(cert):
            raise InputError(f"our certificate file {cert!r:.80} does not exist; correct cert=FILE")
        return cls(parts.hostname, port, user, password, parts.scheme == "mqtts", ca, cert)

    @property
    def options(self) -> tuple[tuple[int, int, int], ...]:
        """The options of a socket to it: small messages are not held back."""
        return ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),) if self.transport == "tcp" else ()

    def __str__(self) -> str:
        if self.transport == "unix":
            return f"{LOCAL}://{self.host}"
        return f"{'mqtts' if self.tls else 'mqtt'}://{self.host}:{self.port}"

    def context(self) -> ssl.SSLContext:
        """The TLS settings. Raises InputError."""
        file = self.ca
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.cert is not None:
                file = self.cert
                context.load_cert_chain(self.cert)
        except ssl.SSLError as error:
            raise InputError(f"the certificate file {file!r} cannot be read as PEM: {error.reason}") from None
        return context


def pause_after(pause: float, lasted: float) -> float:
    """The seconds before the next try, from those before the last one and the seconds that its connection lasted, below 0 if there was none.

    Only a connection that lasted makes the pause short again. A broker cuts two clients of one name in turn; with short pauses neither has the time to answer.
    """
    if lasted > SLOWEST_RETRY:
        return FIRST_RETRY
    return min(2 * pause, SLOWEST_RETRY if lasted < 0 else CUT_RETRY)


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def refused_who(address: Address) -> BusError:
    """The error of a broker that does not know us, or not our password."""
    who = f"user {address.user!r}" if address.user else "a client without a user name"
    return BusError(f"the broker {address} refused {who}; correct the user and password in mqtt://user:password@host:port")


def refused_topics(address: Address, identifier: str, filters: Sequence[str]) -> BusError:
    """The error of a broker that refuses our topics."""
    return BusError(f"the broker {address} does not let {identifier} read {' and '.join(filters)}; correct its access rules")


def unreachable(address: Address, error: Exception) -> BusError:
    return BusError(f"cannot reach the broker {address} ({error}); start it, or correct --broker")
