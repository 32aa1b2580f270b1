"""Where and how long a poll is: the names in its link, its socket, its certificate, and the time of
its end."""

import hashlib
import os
import re
import shlex
import socket
import ssl
import tempfile
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from local_dp.errors import InputError
from local_dp.server.pages import LOOPBACK
from local_dp.server.poll.plan import Plan
from local_dp.server.poll.web import Site

_EVERYWHERE = ("0.0.0.0", "::")
# an address of documentation (RFC 5737): a socket is bound towards it, and nothing is sent
_ELSEWHERE = "192.0.2.1"
_LEFT = re.compile(r"(\d{1,5})([smh])")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")


def is_loopback(host: str) -> bool:
    """True if only this machine reaches the host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises InputError."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server(
            (host, port), family=family, backlog=1024, dualstack_ipv6=host == "::"
        )
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host}, port {port}: {getattr(error, 'strerror', None) or error}; "
            "give another --host or --port"
        ) from None


def own_name(host: str) -> str:
    """The name in the link: the host itself, or this machine's address in its network."""
    if host not in _EVERYWHERE:
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_ELSEWHERE, 9))
            name: str = probe.getsockname()[0]
        except OSError:
            return LOOPBACK
    return name


def site_of(plan: Plan) -> Site:
    """The poll's names, paths and certificate. Raises InputError for a certificate that cannot be
    read."""
    names = dict.fromkeys(
        (plan.name, *(() if plan.host in _EVERYWHERE else (plan.host,)), LOOPBACK, "localhost")
    )
    return Site(
        tuple(names),
        plan.port,
        plan.token,
        plan.host_token,
        context_of(plan.certificate) if plan.certificate else None,
    )


def context_of(pem: str) -> ssl.SSLContext:
    """TLS with this certificate and key. Raises InputError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    number, path = tempfile.mkstemp()  # readable by its owner only
    try:
        with os.fdopen(number, "w") as file:
            file.write(pem)
        context.load_cert_chain(path)
    except ssl.SSLError as error:
        raise InputError(
            f"--cert is no certificate with its key, in PEM: {error.reason}; give a file that has "
            "both"
        ) from None
    finally:
        Path(path).unlink()
    return context


def self_signed(name: str) -> str:
    """The command that makes cert.pem: a key, and a certificate of this name or address."""
    try:
        kind = f"IP:{ip_address(name)}"
    except ValueError:
        kind = f"DNS:{name}"
    curve = "-newkey ec -pkeyopt ec_paramgen_curve:P-256"
    return (
        f"openssl req -x509 {curve} -nodes -days 30 -subj /CN=poll -addext "
        f"{shlex.quote('subjectAltName=' + kind)} -keyout cert.pem -out cert.pem"
    )


def fingerprint(pem: str) -> str:
    """The SHA-256 of the first certificate, as browsers show it."""
    begin, end = pem.index("-----BEGIN CERTIFICATE-----"), pem.index("-----END CERTIFICATE-----")
    digest = (
        hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem[begin:end] + "-----END CERTIFICATE-----\n"))
        .hexdigest()
        .upper()
    )
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


def moment(text: str, now: datetime) -> datetime:
    """The time that `--until` names: 12:30 today or tomorrow, or 90s, 10m, 2h from now. Raises
    InputError."""
    if left := _LEFT.fullmatch(text):
        unit = {"s": "seconds", "m": "minutes", "h": "hours"}[left[2]]
        return now + timedelta(**{unit: int(left[1])})
    clock = _CLOCK.fullmatch(text)
    if clock is None or int(clock[1]) > 23 or int(clock[2]) > 59:
        raise InputError(
            f"--until is {text!r:.80}; give a time such as 12:30, or a span such as 10m, 90s or 2h"
        )
    then = now.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
    return then if then > now else then + timedelta(days=1)
