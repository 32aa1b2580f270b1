"""The broker that docs/deployment.md configures, with certificates by the lines of OpenSSL
there."""

import re
import subprocess
from collections.abc import Sequence
from getpass import getuser
from pathlib import Path

from tests.support.inputs.documents import ROOT, blocks, typed

_PAGE = ROOT / "docs" / "deployment.md"
_LINES = [each.command for each in typed(_PAGE) if each.command.startswith(("openssl ", "cat "))]
_AUTHORITY, _MEMBER = _LINES[:4], _LINES[4:]


def certify(folder: Path, *names: str, asked: str = "") -> None:
    """A key and a certificate, NAME.pem, for each name, by the authority in the folder; with
    requests for another name if one is `asked`."""
    for name in names:
        request, *others = (line.replace("client-500", name) for line in _MEMBER)
        _run([request.replace(f"CN={name}", f"CN={asked or name}"), *others], folder)


def deployed(
    folder: Path,
    port: int,
    members: Sequence[str],
    servers: Sequence[str] = ("server",),
    websocket: int | None = None,
) -> Path:
    """The configuration, in a new folder with all certificates; its broker listens on loopback
    alone."""
    folder.mkdir()
    _run([line.replace("broker.example", "localhost") for line in _AUTHORITY], folder)
    certify(folder, *servers, *members)
    configuration, rules = blocks(_PAGE, "text")[:2]
    listener, rest = (
        re.sub(r"(?m)^(\w*file) ", rf"\1 {folder}/", configuration)
        .replace(" 8883", f" {port} 127.0.0.1")
        .split("\n\n")
    )
    second = (
        []
        if websocket is None
        else [listener.replace(f" {port} ", f" {websocket} "), "protocol websockets"]
    )
    (folder / "mosquitto.conf").write_text(
        "\n".join((f"user {getuser()}", listener, *second, rest))
    )
    of_members, of_server = rules.split("\n\n")
    (folder / "acl").write_text(
        "\n\n".join(
            (of_members, *(of_server.replace("user server", f"user {name}") for name in servers))
        )
    )
    return folder / "mosquitto.conf"


def _run(lines: Sequence[str], folder: Path) -> None:
    subprocess.run(["sh", "-ec", "\n".join(lines)], cwd=folder, check=True, capture_output=True)
