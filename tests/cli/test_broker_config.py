"""Certificates by request: a member's private key stays with the member."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from local_dp.bus.address import Address
from local_dp.errors import InputError
from tests.support.runs.brokers import configured, free_port, joins, needs_mosquitto
from tests.support.runs.command import local_dp

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
NAMES = ("host-0", "client-7")


def request(folder: Path, name: str, *, common: str = "", curve: str = "P-256") -> Path:
    """As docs/deployment.md has a member make it: the key, and beside it the request."""
    folder.mkdir(exist_ok=True)
    kind = ["ec", "-pkeyopt", f"ec_paramgen_curve:{curve}"] if curve else ["rsa:2048"]
    words = ["openssl", "req", "-new", "-newkey", *kind, "-nodes", "-subj", f"/CN={common or name}", "-keyout", f"{name}.pem", "-out", f"{name}.csr"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return folder / f"{name}.csr"


def test_no_private_key_of_a_member_is_made(tmp_path: Path) -> None:
    """Each member's certificate has the key of its request; the folder holds the private keys of authority, broker and server alone."""
    asked = {name: request(tmp_path / "members", name) for name in NAMES}
    done = local_dp(
        "broker-config", str(tmp_path / "broker"), "--requests", str(tmp_path / "members"), *(word for name in NAMES for word in ("--member", name))
    )
    assert done.returncode == 0, done.stderr
    assert {file.name for file in (tmp_path / "broker").iterdir() if "PRIVATE" in file.read_text()} == {"ca.key", "broker.pem", "server.pem"}
    authority = x509.load_pem_x509_certificate((tmp_path / "broker" / "ca.crt").read_bytes())
    for name, file in asked.items():
        certificate = x509.load_pem_x509_certificate((tmp_path / "broker" / f"{name}.crt").read_bytes())
        certificate.verify_directly_issued_by(authority)
        assert certificate.public_key() == x509.load_pem_x509_csr(file.read_bytes()).public_key()
        assert certificate.subject.rfc4514_string() == f"CN={name}"


@needs_mosquitto
def test_a_member_joins_by_its_own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the certificate put behind its key; with another member's key it does not."""
    monkeypatch.setattr("local_dp.bus.mqtt.TIMEOUT", 1.0)
    port, folder = free_port(), tmp_path / "broker"
    for name in NAMES:
        request(tmp_path, name)
    done = local_dp("broker-config", str(folder), "--port", str(port), "--requests", str(tmp_path), "--member", NAMES[0], "--member", NAMES[1])
    assert done.returncode == 0, done.stderr
    both = tmp_path / "both.pem"
    with configured(folder / "mosquitto.conf", port):
        both.write_text((tmp_path / f"{NAMES[0]}.pem").read_text() + (folder / f"{NAMES[0]}.crt").read_text())
        url = f"mqtts://localhost:{port}?ca={folder / 'ca.crt'}&cert={both}"
        assert asyncio.run(joins(url))
        both.write_text((tmp_path / f"{NAMES[1]}.pem").read_text() + (folder / f"{NAMES[0]}.crt").read_text())
        with pytest.raises(InputError, match="certificate"):
            Address.parse(url).context()


def _damaged(folder: Path) -> None:
    folder.mkdir()
    (folder / "host-0.csr").write_text("-----BEGIN CERTIFICATE REQUEST-----\nnone\n-----END CERTIFICATE REQUEST-----\n")


def _signed_by_another(folder: Path) -> None:
    """The public key of one request, the signature of another."""
    file = request(folder, "host-0")
    data = bytearray(x509.load_pem_x509_csr(file.read_bytes()).public_bytes(Encoding.DER))
    data[-5] ^= 1
    file.write_bytes(x509.load_der_x509_csr(bytes(data)).public_bytes(Encoding.PEM))


@pytest.mark.parametrize(("make", "line"), [
    (lambda folder: folder.mkdir(), "lacks 'host-0.csr' (missing in all: 1)"),
    (lambda folder: [request(folder, "host-0"), request(folder, "client-9")], "client-9.csr' is the request of no member"),
    (lambda folder: request(folder, "host-0", common="server"), "asks for the name 'CN=server'; it must be 'CN=host-0'"),
    (lambda folder: request(folder, "host-0", curve=""), "is not signed by an elliptic-curve key of its own"),
    (_damaged, "it is no certificate request"),
    (_signed_by_another, "is not signed by an elliptic-curve key of its own"),
])  # fmt: skip
def test_wrong_requests_are_refused(tmp_path: Path, make: Callable[[Path], object], line: str) -> None:
    """In one line, before anything is written."""
    make(tmp_path / "members")
    done = local_dp("broker-config", str(tmp_path / "broker"), "--requests", str(tmp_path / "members"), "--member", "host-0")
    assert (done.returncode, len(done.stderr.splitlines()), (tmp_path / "broker").exists()) == (2, 1, False), done.stderr
    assert line in done.stderr


@pytest.mark.parametrize(("words", "line"), [
    (("--member", "../x"), "a member's name is '../x'"),
    (("--member", "/x"), "a member's name is '/x'"),
    (("--member", "none/z"), "a member's name is 'none/z'"),
    (("--member", "broker"), "whose files are the broker's"),
    (("--member", "CA"), "whose files are the broker's"),
    (("--member", "server"), "or the server's"),
    (("--member", "receiver-1", "--receivers", "2"), "or the server's"),
    (("--member", "host-0", "--websocket", "8883"), "--websocket is 8883"),
    (("--member", "host-0", "--host", ""), "'' is no host name"),
    (("--member", "host-0", "--host", "a b"), "'a b' is no host name"),
    (("--member", "host-0", "--bind", "a b"), "'a b' is no host name"),
    (("--member", "host-0", "--receivers", "-1"), "receivers is -1"),
])  # fmt: skip
def test_unusable_names_are_refused(tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    """In one line, before anything is written, inside the folder or beside it."""
    done = local_dp("broker-config", str(tmp_path / "broker"), *words)
    assert (done.returncode, len(done.stderr.splitlines()), list(tmp_path.iterdir())) == (2, 1, []), done.stderr
    assert line in done.stderr


def test_usual_names_of_a_host_are_taken(tmp_path: Path) -> None:
    for place, host in enumerate(("broker.example", "192.0.2.7", "::1", "my_host", "bücher.example")):
        assert local_dp("broker-config", str(tmp_path / str(place)), "--member", "host-0", "--host", host).returncode == 0
