"""Where and how long a poll is: names, TLS with a certificate whose fingerprint is printed, and the
time of its end."""

import asyncio
import hashlib
import socket
import ssl
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from local_dp.cli.run.poll import Ask
from local_dp.errors import InputError
from local_dp.server.pages import LOOPBACK
from local_dp.server.poll.place import (
    context_of,
    fingerprint,
    is_loopback,
    moment,
    own_name,
    site_of,
)
from tests.support.runs.command import local_dp
from tests.support.runs.polls import Person, plan, serving

NOON = datetime(2030, 5, 1, 12, 0, 30)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("12:01", 30),
        ("12:00", 86_370),
        ("23:59", 43_110),
        ("00:00", 43_170),
    ],
)
def test_the_time_of_the_end(text: str, seconds: int) -> None:
    assert (moment(text, NOON) - NOON).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "10", "10 m", "24:00", "12:60", "noon", "-1m", "1d"])
def test_no_time(text: str) -> None:
    with pytest.raises(InputError, match="--until is"):
        moment(text, NOON)


def self_made(folder: Path, name: str) -> Path:
    """cert.pem, by the line with which a poll on a network refuses to begin without a
    certificate."""
    with pytest.raises(InputError, match="needs a certificate") as error:
        Ask(question="a?", host="0.0.0.0", name=name)._plan()
    subprocess.run(
        ["sh", "-ec", str(error.value).split("`")[1]], cwd=folder, check=True, capture_output=True
    )
    return folder / "cert.pem"


def test_only_loopback_goes_without_tls(tmp_path: Path) -> None:
    """Beyond this machine a poll has a certificate; on loopback there is none. A file that is no
    certificate is refused in one line."""
    assert [
        is_loopback(host)
        for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "192.168.1.4", "class.example")
    ] == [True] * 3 + [False] * 3
    assert Ask(question="a?")._plan().certificate == ""
    beyond = Ask(
        question="a?", host="0.0.0.0", cert=self_made(tmp_path, own_name("0.0.0.0"))
    )._plan()
    assert beyond.name == own_name("0.0.0.0")
    assert site_of(beyond).link.startswith(f"https://{beyond.name}:")
    assert "0.0.0.0" not in site_of(beyond).names
    with pytest.raises(InputError, match="--cert is no certificate"):
        context_of("nothing")
    (tmp_path / "none.pem").write_text("")
    for name in ("none.pem", "missing.pem"):
        done = local_dp("poll", "a?", "--cert", str(tmp_path / name), "--journal", str(tmp_path))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert list(tmp_path.glob("*.run")) == []


def test_a_poll_over_tls(tmp_path: Path) -> None:
    """People join over https and wss; the certificate that the server shows has the fingerprint
    that is printed."""
    file = self_made(tmp_path, LOOPBACK)
    ca, pem = str(file), file.read_text()

    def certificate_at(port: int) -> bytes:
        with (
            socket.create_connection((LOOPBACK, port)) as line,
            ssl.create_default_context(cafile=ca).wrap_socket(
                line, server_hostname=LOOPBACK
            ) as tls,
        ):
            return tls.getpeercert(binary_form=True) or b""

    async def play() -> None:
        people = [Person.of(1), Person.of(0)]
        async with serving(tmp_path, plan(certificate=pem)) as server:
            assert server.link.startswith("https://")
            digest = hashlib.sha256(
                await asyncio.to_thread(certificate_at, server.poll.site.port)
            ).hexdigest()
            assert fingerprint(pem).replace(":", "").lower() == digest
            for person in people:
                person.ca = ca
            await server.hear(*people)

    asyncio.run(play())
