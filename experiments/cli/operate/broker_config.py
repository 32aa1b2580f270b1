"""`local-dp broker-config`: Mosquitto for a run over a network: configuration, access rules, an authority and its certificates."""

import datetime
import re
from dataclasses import dataclass
from getpass import getuser
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from local_dp.checks import check_whole
from local_dp.errors import InputError, reading
from local_dp.experiments.api.declare import argument, option
from local_dp.experiments.cli.operate.keys import read_roster, write_new
from local_dp.experiments.text.screen import SCREEN
from local_dp.sealing import SIGNATURE
from local_dp.wire import MAX_BYTES, VERSION, check_name

SERVER = "server"
_OWN, _ALL = 0o600, 0o644
_PACKET = MAX_BYTES + SIGNATURE + (1 << 12)  # the largest message, with its topic
_QUEUED, _QUEUED_BYTES = 100_000, 1 << 28
_STRANGERS = 1 << 12  # connections that have shown no certificate yet, of some 45 kB each
_LIFE = datetime.timedelta(days=365)
_HOST = re.compile(r"(\*\.)?[\w-]+(\.[\w-]+)*", re.ASCII)
_SKEW = datetime.timedelta(hours=1)  # between clocks

CONFIGURATION = f"""\
# A broker for runs of local-dp: TLS, and a certificate for each member, with access to its own topics only.
# Start it with: mosquitto -c {{folder}}/mosquitto.conf

# If started as root, it becomes the owner of these files.
user {{user}}

listener {{port}} {{bind}}
protocol mqtt

# The broker's certificate. Only clients with a certificate of this authority can connect.
cafile {{folder}}/ca.crt
certfile {{folder}}/broker.pem
keyfile {{folder}}/broker.pem
tls_version tlsv1.2
require_certificate true
allow_anonymous false

# The name in the certificate is the user and the client id, so that no client can take another's place.
use_identity_as_username true
use_username_as_clientid true
acl_file {{folder}}/acl

# No message is retained and no session is stored. A client that reconnects is asked again.
retain_available false
persistence false
persistent_client_expiration 1h

# A burst of replies is queued (0 drops everything in some releases); larger packets than any role sends are refused.
max_queued_messages {_QUEUED}
max_queued_bytes {_QUEUED_BYTES}
max_packet_size {_PACKET}

# Without this, small messages stall for 40 ms.
set_tcp_nodelay true

# Strangers: a silent connection is closed after 90 seconds. Allow more open files than this (`ulimit -n`).
max_connections {{connections}}
# Only faults are logged, not each connection.
connection_messages false
log_type error
log_type warning
"""

WEBSOCKET = """
# The same over WebSocket: wss://HOST:{websocket}/mqtt
listener {websocket} {bind}
protocol websockets
cafile {folder}/ca.crt
certfile {folder}/broker.pem
keyfile {folder}/broker.pem
tls_version tlsv1.2
require_certificate true
use_identity_as_username true
use_username_as_clientid true
max_connections {connections}
"""

RULES = f"""\
# Messages that no rule allows are dropped silently.

# Every member reads the server's requests, and writes under its own name only (%u is the name in the certificate).
# Mosquitto warns that the first pattern has no name; this is intended.
pattern read {VERSION}/+/req/+
pattern write {VERSION}/+/rep/+/%u
pattern write {VERSION}/+/hello/+/%u
pattern write {VERSION}/+/gone/+/%u
"""

OF_SERVER = f"""
# A server writes requests, and reads all replies.
user {{name}}
topic write {VERSION}/+/req/+
topic read {VERSION}/+/rep/+/+
topic read {VERSION}/+/hello/+/+
topic read {VERSION}/+/gone/+/+
"""


@dataclass(frozen=True)
class BrokerConfig:
    """Writes a Mosquitto configuration for a run over a network into DIR: TLS, access rules, limits, certificates.

    Each PEM file, of the server and of the members, has a certificate and its private key, for
    `--broker 'mqtts://HOST?ca=ca.crt&cert=MEMBER.pem'`. The members of a roster get certificates; add others with --member. With a shuffler, make one folder
    for the clients' broker and one for the server's. With receivers, keep their files beside the server's. With --requests no member's private key is made
    here: each makes its own, and gets MEMBER.crt.
    """

    folder: Path = argument("A folder that does not exist yet", metavar="DIR")
    host: str = option("localhost", "Name or address of the broker", metavar="HOST")
    port: int = option(8883, "Its port", metavar="PORT")
    websocket: int | None = option(None, "Port for MQTT over WebSocket, beside the other", metavar="PORT")
    bind: str = option("0.0.0.0", "Address of this machine that it listens on", metavar="ADDRESS")
    roster: Path | None = option(None, "Roster whose members get certificates; `local-dp keys enrol` writes it", metavar="FILE")
    member: tuple[str, ...] = option((), "A member that gets a certificate; may be repeated", metavar="NAME")
    requests: Path | None = option(None, "Folder of the members' certificate requests, MEMBER.csr each", metavar="FOLDER")
    receivers: int = option(0, "Receivers of the server that get certificates", metavar="R")

    def __call__(self) -> None:
        for port in (self.port, *(() if self.websocket is None else (self.websocket,))):
            check_whole("the port", port, 1, 65535)
        if self.websocket == self.port:
            raise InputError(f"--websocket is {self.websocket}, which is the other port; give another one")
        for host in (self.host, self.bind):
            _general(host)
        check_whole("receivers", self.receivers, 0, 1000)
        servers = [SERVER, *(f"receiver-{at}" for at in range(self.receivers))]
        members = [*(place.member for place in read_roster(self.roster).places), *self.member] if self.roster else list(self.member)
        if not members:
            raise InputError("no member can join this broker; name members with --roster FILE or --member NAME")
        for name in members:
            check_name(name, "a member's name")
            if name.lower() in ("ca", "broker", *servers):  # not by case: some file systems know none
                raise InputError(f"a member's name is {name!r}, whose files are the broker's or the server's; give it another name")
        requested = {} if self.requests is None else read_requests(self.requests, members)
        folder = self.folder.absolute()
        try:
            folder.mkdir(mode=0o755)
        except FileExistsError:
            raise InputError(f"{str(self.folder)!r:.80} exists; give a new folder") from None
        connections = _STRANGERS + 2 * len({*servers, *members})  # a member that comes again may have its old connection still
        values = {"folder": folder, "port": self.port, "bind": self.bind, "user": getuser(), "connections": connections, "websocket": self.websocket}
        configuration = CONFIGURATION if self.websocket is None else CONFIGURATION + WEBSOCKET
        write_new(folder / "mosquitto.conf", configuration.format(**values), _ALL)
        write_new(folder / "acl", RULES + "".join(OF_SERVER.format(name=name) for name in servers), _ALL)
        authority = Authority.new()
        write_new(folder / "ca.crt", authority.certificate.public_bytes(Encoding.PEM).decode(), _ALL)
        write_new(folder / "ca.key", _pem(authority.key), _OWN)
        write_new(folder / "broker.pem", authority.issue("broker", self.host), _OWN)
        for name in dict.fromkeys([*servers, *members]):
            if name in requested:
                write_new(folder / f"{name}.crt", authority.certify(name, requested[name]), _ALL)
            else:
                write_new(folder / f"{name}.pem", authority.issue(name), _OWN)
        SCREEN.tell(f"mosquitto -c {folder / 'mosquitto.conf'}")


@dataclass(frozen=True)
class Authority:
    """A certificate authority: its key and its own certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def new(cls) -> "Authority":
        key, name = ec.generate_private_key(ec.SECP256R1()), _named("local-dp authority")
        builder = _begun(name, name, key.public_key()).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        return cls(key, builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()))

    def issue(self, name: str, host: str = "") -> str:
        """A certificate and its new private key, as PEM: for a client, or for the broker at `host`."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self.certify(name, key.public_key(), host) + _pem(key)

    def certify(self, name: str, key: ec.EllipticCurvePublicKey, host: str = "") -> str:
        """A certificate of a public key, as PEM."""
        builder = _begun(_named(name), self.certificate.subject, key)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        use = ExtendedKeyUsageOID.SERVER_AUTH if host else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        if host:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general(host)]), critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def read_requests(folder: Path, members: list[str]) -> dict[str, ec.EllipticCurvePublicKey]:
    """The public key that each member asks a certificate for, by MEMBER.csr in the folder. Raises InputError unless there is one for each, and no other."""
    files = {file.stem: file for file in sorted(folder.glob("*.csr"))}
    if lacking := [name for name in members if name not in files]:
        raise InputError(f"{str(folder)!r:.80} lacks {lacking[0] + '.csr'!r} (missing in all: {len(lacking):,}); `openssl req` makes a request")
    if strange := sorted(files.keys() - set(members)):
        raise InputError(f"{files[strange[0]].name!r:.80} is the request of no member; enrol it, or name it with --member")
    return {name: _requested(name, files[name]) for name in members}


def _requested(name: str, file: Path) -> ec.EllipticCurvePublicKey:
    with reading(file, f"make it by `openssl req -new ... -subj /CN={name}`", "it is no certificate request"):
        request = x509.load_pem_x509_csr(file.read_bytes())
        key = request.public_key()
    if request.subject != _named(name):
        raise InputError(f"{file.name!r:.80} asks for the name {request.subject.rfc4514_string()!r:.80}; it must be 'CN={name}'")
    if not request.is_signature_valid or not isinstance(key, ec.EllipticCurvePublicKey):
        raise InputError(f"{file.name!r:.80} is not signed by an elliptic-curve key of its own; make it again by `openssl req`")
    return key


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _SKEW).not_valid_after(now + _LIFE)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(host: str) -> x509.GeneralName:
    """The host's name in a certificate."""
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        name = host.encode("idna").decode()
    except UnicodeError:
        name = ""
    if not _HOST.fullmatch(name):
        raise InputError(f"{host!r:.80} is no host name; give the name or address of the broker")
    return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
