"""Two network namespaces joined by one cable: two machines, as far as their networks go."""

import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

FIRST, SECOND = "10.231.7.1", "10.231.7.2"


@dataclass(frozen=True)
class Machines:
    """The names of the two namespaces; nothing but the cable leads from one to the other, and
    nothing out."""

    first: str
    second: str
    cable: str  # its end at the first

    def command(self, where: str, words: Sequence[str]) -> list[str]:
        """The words of a command that runs there."""
        return ["ip", "netns", "exec", where, *words]

    def joined(self, are: bool) -> None:
        """Cuts the cable, or joins it again."""
        _do("-n", self.first, "link", "set", self.cable, "up" if are else "down")


@contextmanager
def two_machines() -> Iterator[Machines]:
    """The two; skips the test, with the reason, where this user may not make any."""
    mark = secrets.token_hex(3)
    machines = Machines(f"ldp-a-{mark}", f"ldp-b-{mark}", f"va{mark}")
    ends = (machines.first, machines.cable, FIRST), (machines.second, f"vb{mark}", SECOND)
    try:
        for name, _, _ in ends:
            _do("netns", "add", name)
        _do(
            "link",
            "add",
            ends[0][1],
            "netns",
            ends[0][0],
            "type",
            "veth",
            "peer",
            "name",
            ends[1][1],
            "netns",
            ends[1][0],
        )
        for name, cable, address in ends:
            _do("-n", name, "addr", "add", f"{address}/30", "dev", cable)
            for device in ("lo", cable):
                _do("-n", name, "link", "set", device, "up")
        yield machines
    finally:
        for name, _, _ in ends:
            with suppress(subprocess.CalledProcessError, OSError):
                subprocess.run(["ip", "netns", "del", name], check=True, capture_output=True)


def _do(*words: str) -> None:
    try:
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
    except OSError:
        pytest.skip("there is no command ip (Debian: apt-get install iproute2)")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this user may not make network namespaces: {error.stderr.strip()}")
