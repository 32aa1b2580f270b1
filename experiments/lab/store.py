"""Measurements on disk, a JSON line each, so that a stopped run resumes where it stopped; and the
results of an experiment as files."""

import ast
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from local_dp.errors import InputError
from local_dp.experiments.lab.claim import Experiment
from local_dp.experiments.lab.figure_text import alt_text, key
from local_dp.experiments.lab.figures import save
from local_dp.experiments.lab.shapes import Data, Finding, Regions, Scale
from local_dp.experiments.lab.stored import RESULTS
from local_dp.experiments.lab.style import DEFAULT, Drawing
from local_dp.simulation.installation import provenance
from local_dp.text.layout import as_csv

Key = tuple[int, str]
_OURS = "local_dp"


def plain(value: Any) -> Any:
    """`value` as plain JSON data: of dataclasses a mapping, of numpy values Python ones; the
    numbers JSON lacks become "inf", "-inf" or "nan"."""
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
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; choose another folder, or make room"
        ) from None


def write_bytes(path: Path, data: bytes) -> None:
    """Replaces the file at once: a reader sees the old bytes or the new, never a part. Raises
    InputError if it cannot."""
    partial = path.with_name(path.name + ".partial")
    with writing(path):
        partial.unlink(missing_ok=True)  # it may be a link, and would be followed
        with partial.open("xb") as file:
            file.write(data)
        os.replace(partial, path)


def write_text(path: Path, text: str) -> None:
    """The same, of a text."""
    write_bytes(path, text.encode())


def write_provenance(path: Path, seed: Any, code: str) -> None:
    """Writes how this result came about into the file `path`; files of results have no fact of a
    machine, so that equal results are equal bytes."""
    write_text(path, json.dumps(provenance(seed, code), indent=1, ensure_ascii=False) + "\n")


@cache
def _module(module: str) -> tuple[str, frozenset[str]] | None:
    """A module's source and the project's modules that it imports, at its top or inside a function;
    None of what is no module, such as a name inside one."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # `module` is a name inside a module that is not a package
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    source = Path(spec.origin).read_text(encoding="utf-8")
    imports: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            imports |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return source, frozenset(name for name in imports if name.split(".")[0] == _OURS)


@cache
def code_stamp(module: str) -> str:
    """A digest of everything that decides what `module` measures: its source, every module of the
    project it imports, directly or not, and numpy's version."""
    texts: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        read = _module(name)
        if name not in texts and read is not None:
            texts[name], imports = read
            waiting += imports
    return blake2b(canonical([version("numpy"), texts]).encode(), digest_size=8).hexdigest()


class MeasurementStore:
    """The file measurements.jsonl of one experiment: measurements by (seed, point), of one version
    of the code.

    The scale is no part of the key, since a measurement is a function of (point, seed) alone: a
    full run uses again what a quick one measured. One process writes. A line that a stopped run
    left unfinished is dropped, as are the measurements of other code.
    """

    def __init__(self, folder: Path, stamp: str, name: str = "measurements.jsonl") -> None:
        self.path = folder / name
        self.stamp = stamp
        self._measurements: dict[Key, Data] = {}
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        text = ""
        if self.path.exists():
            text = self.path.read_text(encoding="utf-8", errors="replace")
        valid = [line for line in text.splitlines() if self._read(line)]
        write_text(self.path, "".join(line + "\n" for line in valid))

    def _read(self, line: str) -> bool:
        try:
            # which takes no NaN: none was ever written
            entry = json.loads(line, parse_constant=int)
            if entry["code"] != self.stamp:
                return False
            self._measurements[entry["seed"], canonical(entry["point"])] = entry["measurement"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        return True

    def sort(self) -> None:
        """Puts the file into an order that does not depend on which measurement was done first."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        write_text(self.path, "".join(line + "\n" for line in sorted(lines)))

    def get(self, point: Data, seed: int) -> Data | None:
        """What was measured at `point`, or None."""
        return self._measurements.get((seed, canonical(point)))

    def add(self, point: Data, seed: int, measurement: Data) -> None:
        """Stores one measurement at once, as one appended line."""
        line = canonical(
            {"code": self.stamp, "seed": seed, "point": point, "measurement": measurement}
        )
        with writing(self.path), self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(line + "\n")
        entry: dict[str, Any] = json.loads(line)  # what a resumed run would read
        self._measurements[seed, canonical(point)] = entry["measurement"]


_SIGNS = {"ε": "epsilon", "τ": "tau", "α": "alpha", "%": "percent"}


def file_name(title: str) -> str:
    """A title as the stem of a file name: all its words in lower case, joined by hyphens."""
    for sign, word in _SIGNS.items():
        title = title.replace(sign, f" {word} ")
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "untitled"


def _distinct(titles: list[str]) -> list[str]:
    """The stems of these titles, numbered where two are equal."""
    stems = [file_name(title) for title in titles]
    numbers = enumerate(stems, 1)
    return [stem if stems.count(stem) == 1 else f"{stem}-{number}" for number, stem in numbers]


def write_results(
    folder: Path,
    experiment: Experiment,
    finding: Finding,
    scale: Scale,
    seed: int,
    stamp: str,
    drawing: Drawing = DEFAULT,
) -> None:
    """Writes every file. Nothing in them but the figures' drawing depends on anything except the
    measurements, the scale and the seed: no time, no machine."""
    tables, figures = [], []
    stems = _distinct([table.title for table in finding.tables])
    for stem, table in zip(stems, finding.tables, strict=True):
        write_text(folder / f"{stem}.csv", as_csv(table.columns, plain(table.rows)))
        tables.append({"csv": f"{stem}.csv", **asdict(table)})
    stems = _distinct([figure.name for figure in finding.figures])
    for stem, figure in zip(stems, finding.figures, strict=True):
        files = {ending: f"{stem}.{ending}" for ending in ("svg", "png", "pdf")}
        save(figure, *(folder / file for file in files.values()), drawing=drawing)
        kind = "regions" if isinstance(figure, Regions) else "curves"
        words = {"alt": alt_text(figure), "key": key(figure)}
        figures.append({"kind": kind, **files, **words, **asdict(figure)})
    certificates = []
    for name, certificate in finding.certificates.items():
        certificates.append(f"{file_name(name)}.json")
        write_text(folder / certificates[-1], json.dumps(plain(certificate)) + "\n")
    results = {
        "name": experiment.name,
        "chapter": experiment.chapter.name,
        "title": experiment.title,
        "claim": experiment.claim,
        "source": experiment.source,
        "verdict": finding.verdict,
        "headline": finding.headline,
        "checks": finding.checks,
        # that repeats the run
        "command": f"local-dp experiment {experiment.name} --{scale} --seed {seed}",
        "scale": scale,
        "seed": seed,
        "code": stamp,
        "tables": tables,
        "figures": figures,
        "notes": finding.notes,
        "certificates": certificates,
    }
    text = json.dumps(plain(results), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / RESULTS, text + "\n")
