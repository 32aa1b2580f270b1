"""Every protocol by name."""

from typing import Any

from local_dp.errors import InputError, unknown
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.registry import Registry

_FILES = ("protocols/surveys/*.py", "protocols/vectors/*.py", "protocols/search/*.py", "masked/protocols.py", "protocols/*/*.py")
PROTOCOLS: Registry[LocalProtocol[Any]] = Registry("protocol", "local_dp.protocols", LocalProtocol, _FILES, check=lambda kind: kind.model())


def find_protocol(name: str) -> type[LocalProtocol[Any]]:
    if name not in PROTOCOLS:
        raise InputError(unknown("no protocol named", name, PROTOCOLS, "local-dp protocols"))
    return PROTOCOLS[name]
