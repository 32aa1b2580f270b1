"""The files of the JavaScript client: the published libraries, their types, and their lengths."""

import json
import re
from hashlib import sha256

import pytest

from tests.support.web import ROOT, types

WEB = ROOT / "clients" / "web"
VENDOR = WEB / "vendor"
PINS = json.loads((VENDOR / "pins.json").read_text())
OWN = sorted(path for path in WEB.rglob("*.js") if VENDOR not in path.parents)


def test_each_library_is_the_pinned_one() -> None:
    """Every file below vendor has its SHA-256 in pins.json, and every library its licence; the
    types of MQTT.js are our own."""
    pins = {name: digest for pin in PINS.values() for name, (_, digest) in pin["files"].items()}
    digests = {
        path.relative_to(VENDOR).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file()
    }
    assert {
        name: digest
        for name, digest in digests.items()
        if name not in ("pins.json", "mqtt/mqtt.esm.d.ts")
    } == pins
    for package, pin in PINS.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", pin["version"])
        assert pin["licence"] == "MIT"
        assert any("LICENSE" in name for name in pin["files"]), package


def test_nothing_is_loaded_from_elsewhere() -> None:
    """A module imports files of its own folder alone, and no code is made of text."""
    for path in OWN:
        source = path.read_text()
        imports = re.findall(r"(?:from|import)\s*\(?\s*[\"']([^\"']+)[\"']", source)
        assert all(
            name.startswith(("./", "../")) and (path.parent / name).resolve().is_relative_to(WEB)
            for name in imports
        ), path.name
        assert not re.search(
            r"\beval\(|new Function|innerHTML|document\.write|https?://", source
        ), path.name


@pytest.mark.long
def test_the_types_hold() -> None:
    """TypeScript accepts every module, strictly."""
    assert types(WEB) == ""
