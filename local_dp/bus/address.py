"""The address of a broker, the patience of its clients, and the errors when it is away."""

import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

from local_dp.errors import BusError, InputError

LOCAL = "mqtt+unix"  # the scheme of a socket in a folder of this machine
FIRST_RETRY, SLOWEST_RETRY = 0.1, 2.0  # seconds
# the most after a connection that was cut soon: shorter than a server waits for a member that is
# gone
CUT_RETRY = 0.5
KEEPALIVE = 30
TIMEOUT = 10.0  # to connect, and to be answered then
_PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443, LOCAL: 1883}
_SCHEMES = {
    ("tcp", False): "mqtt",
    ("tcp", True): "mqtts",
    ("websockets", False): "ws",
    ("websockets", True): "wss",
}
_TLS, _WEB = ("mqtts", "wss"), ("ws", "wss")
_WEB_PATH = "/mqtt"


@dataclass(frozen=True)
class Address:
    """Where a broker is: mqtt://[user[:password]@]host[:port], or mqtts:// for TLS, with ?ca=FILE
    of its authority and &cert=FILE, our certificate and key.

    ws://...[/PATH] and wss:// are the same over WebSocket. mqtt+unix://[user[:password]@]/PATH is a
    socket of this machine; then `host` is its path.
    """

    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    ca: str | None = None
    cert: str | None = None
    transport: Literal["tcp", "unix", "websockets"] = "tcp"
    path: str | None = None  # of a WebSocket

    @classmethod
    def parse(cls, url: str) -> "Address":
        """The address in `url`. Raises InputError, without the password."""
        label = repr(re.sub(r"(?s)^([\w+.-]*://)?.*@", r"\1", url))
        parts, port = _split(url, label)
        _check_parts(parts, label)
        user = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        if parts.scheme == LOCAL:
            return cls(unquote(parts.path), port, user, password, transport="unix")
        host = _host(parts, label)
        ca, cert = _certificates(parts.query, label)
        address = cls(host, port, user, password, parts.scheme in _TLS, ca, cert)
        if parts.scheme not in _WEB:
            return address
        path = parts.path if len(parts.path) > 1 else _WEB_PATH
        return replace(address, transport="websockets", path=path)

    @property
    def options(self) -> tuple[tuple[int, int, int], ...]:
        """The options of a socket to it: small messages are not held back."""
        return ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),) if self.transport == "tcp" else ()

    def __str__(self) -> str:
        if self.transport == "unix":
            return f"{LOCAL}://{self.host}"
        return f"{_SCHEMES[self.transport, self.tls]}://{self.host}:{self.port}"

    def context(self) -> ssl.SSLContext:
        """The TLS settings. Raises InputError."""
        file = self.ca
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.cert is not None:
                file = self.cert
                context.load_cert_chain(self.cert)
        except ssl.SSLError as error:
            raise InputError(
                f"the certificate file {file!r} cannot be read as PEM: {error.reason}"
            ) from None
        return context


@dataclass(eq=False, repr=False)
class BrokerClient:
    """A client of a broker: its name there, the topics that it reads, and its will."""

    address: Address
    identifier: str
    filters: Sequence[str]
    will: tuple[str, bytes] | None = None


def _split(url: str, label: str) -> tuple[SplitResult, int]:
    """The parts of an address, and its port."""
    try:
        parts = urlsplit(url)
        usual = _PORTS[parts.scheme]
        return parts, parts.port or usual
    except KeyError:
        raise InputError(
            f"cannot use the broker {label}; begin it with mqtts:// or wss:// for TLS, else "
            f"with mqtt://, ws:// or {LOCAL}://"
        ) from None
    except ValueError:
        raise InputError(
            f"cannot use the broker {label}; write mqtts://user:password@host:port, and / of "
            "a password as %2F"
        ) from None


def _check_parts(parts: SplitResult, label: str) -> None:
    """Raises InputError for parts that an address of this scheme cannot have."""
    # as of a password that has a slash
    astray = "@" in parts.path if parts.scheme in _WEB else parts.path.strip("/")
    if parts.fragment or (astray and parts.scheme != LOCAL):
        raise InputError(
            f"cannot use the broker {label}; write / of a password as %2F, # as %23, and "
            "nothing but ?ca=FILE&cert=FILE behind host:port"
        )
    if parts.query and parts.scheme not in _TLS:
        raise InputError(
            f"the broker {label} has options, which only TLS has; write mqtts:// or wss://, "
            "or leave them out"
        )
    if parts.scheme == LOCAL and (parts.hostname or len(parts.path) < 2):
        raise InputError(
            f"the broker {label} is no socket of this machine; write {LOCAL}:///PATH, or "
            "mqtts://host:port"
        )


def _host(parts: SplitResult, label: str) -> str:
    if not parts.hostname:
        raise InputError(f"the broker {label} names no host; write {parts.scheme}://host:port")
    try:
        parts.hostname.encode("idna")
    except UnicodeError:
        raise InputError(
            f"the broker's host {parts.hostname!r:.80} is no host name; write mqtt://host:port"
        ) from None
    return parts.hostname


def _certificates(query: str, label: str) -> tuple[str | None, str | None]:
    """The files of the authority and of our certificate."""
    options = dict(each.partition("=")[::2] for each in query.split("&") if each)
    if not options.keys() <= {"ca", "cert"}:
        raise InputError(
            f"the broker {label} has options other than ?ca=FILE and &cert=FILE; leave them out"
        )
    ca, cert = options.get("ca"), options.get("cert")
    if ca is not None and not _is_file(ca):
        raise InputError(
            f"the certificate file {ca!r:.80} of the broker does not exist; correct ?ca=FILE"
        )
    if cert is not None and not _is_file(cert):
        raise InputError(f"our certificate file {cert!r:.80} does not exist; correct cert=FILE")
    return ca, cert


def without_user(url: str) -> str:
    """An address that can be read, as it is stored: without its user and password."""
    return re.sub("//[^/?#]*@", "//", url)


def pause_after(pause: float, uptime: float) -> float:
    """The seconds before the next try, from those before the last one and the seconds that its
    connection lasted, below 0 if there was none.

    Only a connection that lasted makes the pause short again. A broker cuts two clients of one name
    in turn; with short pauses neither has the time to answer.
    """
    if uptime > SLOWEST_RETRY:
        return FIRST_RETRY
    return min(2 * pause, SLOWEST_RETRY if uptime < 0 else CUT_RETRY)


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def refused_who(address: Address) -> BusError:
    """The error of a broker that does not know us, or not our password."""
    who = f"user {address.user!r}" if address.user else "a client without a user name"
    return BusError(
        f"the broker {address} refused {who}; correct the user and password in "
        "mqtt://user:password@host:port"
    )


def refused_topics(address: Address, identifier: str, filters: Sequence[str]) -> BusError:
    """The error of a broker that refuses our topics."""
    return BusError(
        f"the broker {address} does not let {identifier} read {' and '.join(filters)}; correct "
        "its access rules"
    )


def unreachable(address: Address, error: Exception) -> BusError:
    """The error of a broker that cannot be joined, with what to do about its cause."""
    # aiomqtt has the cause in the context
    cause = error if isinstance(error, OSError) else error.__context__
    if isinstance(cause, ConnectionRefusedError | FileNotFoundError):
        advice = "start it, or correct --broker"
    elif isinstance(cause, socket.gaierror):
        advice = "correct the host in --broker"
    elif isinstance(cause, ssl.SSLError):
        advice = "correct ?ca=FILE&cert=FILE in --broker, or the broker's certificate"
    elif isinstance(cause, OSError) and cause.args and not isinstance(cause, ConnectionError):
        advice = "let the network through, or correct --broker"
    else:  # the connection was made, and then closed or left without an answer
        what = "port or the certificate" if address.tls else "port"
        return BusError(
            f"the broker {address} takes no connection ({error}); read its log, raise its "
            f"max_connections, or correct the {what} in --broker"
        )
    return BusError(f"cannot reach the broker {address} ({error}); {advice}")
