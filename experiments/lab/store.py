"""Measurements on disk: one JSON line each, written as soon as it is made, so that a stopped run resumes where it stopped."""

import ast
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from local_dp.errors import InputError
from local_dp.experiments.lab.claim import Data

Key = tuple[int, str]
_OURS = "local_dp"


def plain(value: Any) -> Any:
    """`value` as plain JSON data: of dataclasses a mapping, of numpy values Python ones; the numbers JSON lacks become "inf", "-inf" or "nan"."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def canonical(value: Any) -> str:
    """One line of JSON, the same for equal values."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises InputError if what is done inside cannot write `path`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}; choose another folder, or make room") from None


def write_text(path: Path, text: str) -> None:
    """Replaces the file at once: a reader sees the old text or the new, never a part. Raises InputError if it cannot."""
    partial = path.with_name(path.name + ".partial")
    with writing(path):
        partial.write_text(text, encoding="utf-8", newline="\n")
        os.replace(partial, path)


def _source(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # `module` is a name inside a module that is not a package
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None and spec.origin.endswith(".py") else None


def _imports(source: str) -> set[str]:
    """The project's modules that a source text imports, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == _OURS}


@cache
def code_stamp(module: str) -> str:
    """A digest of everything that decides what `module` measures: its source, every module of the project it imports, directly or not, and numpy's version."""
    texts: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _source(name)
        if name not in texts and path is not None:
            texts[name] = path.read_text(encoding="utf-8")
            waiting += _imports(texts[name])
    return blake2b(canonical([version("numpy"), texts]).encode(), digest_size=8).hexdigest()


class MeasurementStore:
    """The file measurements.jsonl of one experiment: measurements by (seed, point), of one version of the code.

    The scale is no part of the key, since a measurement is a function of (point, seed) alone: a full run uses again what a quick one measured.
    One process writes. A line that a stopped run left unfinished is dropped, as are the measurements of other code.
    """

    def __init__(self, folder: Path, stamp: str) -> None:
        self.path = folder / "measurements.jsonl"
        self.stamp = stamp
        self._known: dict[Key, Data] = {}
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        kept = [line for line in lines if self._read(line)]
        write_text(self.path, "".join(line + "\n" for line in kept))

    def _read(self, line: str) -> bool:
        try:
            entry = json.loads(line)
            if entry["code"] != self.stamp:
                return False
            self._known[entry["seed"], canonical(entry["point"])] = entry["measurement"]
        except (ValueError, KeyError, TypeError):
            return False
        return True

    def sort(self) -> None:
        """Puts the file into an order that does not depend on which measurement was done first."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        write_text(self.path, "".join(line + "\n" for line in sorted(lines)))

    def get(self, point: Data, seed: int) -> Data | None:
        """What was measured at `point`, or None."""
        return self._known.get((seed, canonical(point)))

    def add(self, point: Data, seed: int, measurement: Data) -> None:
        """Stores one measurement at once, as one appended line."""
        line = canonical({"code": self.stamp, "seed": seed, "point": point, "measurement": measurement})
        with writing(self.path), self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(line + "\n")
        entry: dict[str, Any] = json.loads(line)  # what a resumed run would read
        self._known[seed, canonical(point)] = entry["measurement"]
