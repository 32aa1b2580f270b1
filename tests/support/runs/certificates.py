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


def certify(folder: Path, *names: str, alias: str = "") -> None:
    """A key and a certificate, NAME.pem, for each name, by the authority in the folder; with
    the requests for `alias` if there is one."""
    for name in names:
        request, *others = (line.replace("client-500", name) for line in _MEMBER)
        _run([request.replace(f"CN={name}", f"CN={alias or name}"), *others], folder)


def deployed(folder: Path, port: int, members: Sequence[str]) -> Path:
    """The configuration, in a new folder with all certificates; its broker listens on loopback
    alone."""
    folder.mkdir()
    _run([line.replace("broker.example", "localhost") for line in _AUTHORITY], folder)
    certify(folder, "server", *members)
    configuration, rules = blocks(_PAGE, "text")[:2]
    lines = re.sub(r"(?m)^(\w*file) ", rf"\1 {folder}/", configuration).replace(
        " 8883", f" {port} 127.0.0.1"
    )
    (folder / "mosquitto.conf").write_text(f"user {getuser()}\n{lines}")
    (folder / "acl").write_text(rules)
    return folder / "mosquitto.conf"


def _run(lines: Sequence[str], folder: Path) -> None:
    subprocess.run(["sh", "-ec", "\n".join(lines)], cwd=folder, check=True, capture_output=True)
