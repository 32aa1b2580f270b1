"""Which code runs: digests of the source of installed packages."""

import platform
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from importlib.metadata import distributions, version
from importlib.util import find_spec
from pathlib import Path

OURS = "local_dp"
# of ours: no answer depends on them
_ROLES = ("api", "cli", "experiments", "server", "simulation", "text")


def code_digest(kinds: Iterable[type]) -> bytes:
    """A digest of the code by which queries and randomizers of these classes answer; equal for
    equal code alone.

    It covers the source of this library, Python and numpy. For classes of other packages it covers
    their source too, and the version of every installed distribution. It is empty for code without
    a source file, as in a notebook.
    """
    return _digest(_foreign(kinds))


def plug_in_digest(kinds: Iterable[type]) -> bytes:
    """A digest of the source of those of these classes that are not ours; empty if all are ours, or
    if one has no source file, as in a notebook."""
    packages = _foreign(kinds)
    sources = [source_digest(package) for package in packages]
    if not all(sources):
        return b""
    return blake2b(repr((packages, sources)).encode(), digest_size=16).digest() if sources else b""


def _foreign(kinds: Iterable[type]) -> tuple[str, ...]:
    """The packages of these classes, other than ours and Python's."""
    packages = {base.__module__.partition(".")[0] for kind in kinds for base in kind.__mro__}
    return tuple(sorted(packages - {OURS} - sys.stdlib_module_names))


@cache
def _digest(foreign: tuple[str, ...]) -> bytes:
    """The digest with the code of these other packages; empty where the source of one is not
    known."""
    sources = [source_digest(OURS, _ROLES), *map(source_digest, foreign)]
    if not all(sources):
        return b""
    versions = [f"numpy {version('numpy')}"]
    if foreign:
        versions = sorted(f"{each.name} {each.version}" for each in distributions())
    here = (platform.python_version(), platform.machine(), versions, foreign, sources)
    return blake2b(repr(here).encode(), digest_size=32).digest()


@cache
def source_digest(package: str, without: tuple[str, ...] = ()) -> bytes:
    """The digest of the source of a package without some parts, or of a single module; empty where
    there is no source."""
    digest, size = blake2b(digest_size=16), 0
    for name, path in sorted(_files(package, without)):
        source = path.read_bytes()
        digest.update(f"{name} {len(source)};".encode() + source)
        size += len(source)
    return digest.digest() if size else b""


def _files(package: str, without: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """The source files of a package, by their places in it."""
    try:
        spec = find_spec(package) if package != "__main__" else None
    except ValueError:  # of a module that was made by code
        return
    if spec is None:
        return
    folders = [Path(each) for each in spec.submodule_search_locations or ()]
    if not folders and spec.origin is not None and spec.origin.endswith(".py"):
        yield package, Path(spec.origin)
    for folder in folders:
        for path in folder.rglob("*.py"):
            place = path.relative_to(folder)
            if place.parts[0] not in without:
                yield place.as_posix(), path
