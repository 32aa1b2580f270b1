"""This installation: its version, what decides the bits of a simulation on it, and the default
folders of files that outlive a process."""

import os
import platform
import re
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from local_dp.verification.sources import OURS, source_digest

# of ours: what a simulated client does not run
_APART = (
    "api",
    "cli",
    "clients",
    "experiments",
    "server",
    "simulation",
    "text",
)


@cache  # it reads a file, for every run
def installed_version() -> str:
    """The version of the installed package, or "unknown" in a checkout that is not installed."""
    for name in ("local-dp", "local-dp-client"):
        with suppress(PackageNotFoundError):
            return version(name)
    return "unknown"


@dataclass(frozen=True)
class Installation:
    """What decides the bits of a simulation beside its seed: machines where it is equal compute
    equal bits. `sources` are digests of packages, by name."""

    python: str
    numpy: str
    sources: tuple[tuple[str, str], ...]

    @classmethod
    def here(cls, plug_ins: Iterable[str] = ()) -> Self:
        """That of this process, for work that needs ours and these packages. A package that is not
        there has an empty digest."""
        python = ".".join(platform.python_version_tuple()[:2])
        packages = (OURS, *sorted(set(plug_ins)))
        return cls(python, version("numpy"), tuple((name, _digest(name)) for name in packages))

    def difference(self, other: Self) -> str:
        """The first difference of the other one, in words; empty if there is none."""
        versions = [("Python", self.python, other.python), ("numpy", self.numpy, other.numpy)]
        for name, own, its in versions:
            if own != its:
                return f"has {name} {its}, and the run has {name} {own}"
        for (name, own), (_, its) in zip(self.sources, other.sources, strict=True):
            if own != its:
                return (
                    f"has other code of {name} than the run"
                    if its
                    else f"does not have the package {name}"
                )
        return ""


def _digest(package: str) -> str:
    """The digest of a package's source; of ours, of what a simulated client or a worker of a
    cluster runs. Empty for a package that is not there."""
    cluster = Path(__file__).with_name("cluster.py").read_bytes() if package == OURS else b""
    digest = source_digest(package, _APART if package == OURS else ())
    return blake2b(digest + cluster, digest_size=8).hexdigest() if digest else ""


def stamp_of(plug_ins: Iterable[str] = ()) -> str:
    """Equal for equal code: ours, that of these packages, Python and numpy."""
    return blake2b(repr(Installation.here(plug_ins)).encode(), digest_size=8).hexdigest()


def provenance(seed: Any, code: str) -> dict[str, Any]:
    """How the result of this process came about: command, versions, machine, seed (None: private),
    stamp of the code. Without the password of an address."""
    program = Path(sys.argv[0])
    words = ["local-dp" if program.stem == "__main__" else program.name, *sys.argv[1:]]
    return {
        "command": re.sub(r"//[^/@\s]*@", "//", shlex.join(words)),
        "local-dp": installed_version(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "seed": seed,
        "code": code,
    }


def _processor() -> str:
    with suppress(OSError):  # Linux alone names it in a file
        for line in (
            Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        ):
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def state_folder() -> Path:
    """In the user's folder for state."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "local-dp"


def stores_folder() -> Path:
    return state_folder() / "stores"


def runs_folder() -> Path:
    return state_folder() / "runs"


def named(run: str, folder: Path) -> str:
    """The name of a stored run as commands take it: with its folder, if that is not the user's."""
    return run if folder == runs_folder() else f"{run} --journal {shlex.quote(str(folder))}"


def rounds_folder() -> Path:
    return state_folder() / "rounds"
