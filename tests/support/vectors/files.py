"""The files of vectors: cases with what is given and what is expected, as JSON that every language
reads alike.

The files themselves have the cases. To add one, write its line with any `expect`, and run
scripts/vectors.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from local_dp.records import Records
from local_dp.wire import VERSION

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "vectors"
INDEX = "index.json"
SAFE = 1 << 53  # beyond it, whole numbers of JavaScript are not exact
Json: TypeAlias = Any
Case: TypeAlias = dict[str, Json]


@dataclass(frozen=True)
class File:
    """One file: its name, and what is expected of what a case gives."""

    name: str
    expected: Callable[[Case], Case]

    def read(self) -> Json:
        return json.loads((FOLDER / f"{self.name}.json").read_text())

    def text(self) -> str:
        """The whole file, with all that is expected computed now: a line for each case."""
        data = self.read()
        lines = [_line({**case, "expect": self.expected(case["given"])}) for case in data["cases"]]
        common = f'\n"common":{_line(data["common"])},' if "common" in data else ""
        head = f'{{"wire":{_line(VERSION)},"about":{_line(data["about"])},{common}\n"cases":['
        return head + "\n" + ",\n".join(lines) + "\n]}\n"


def index(texts: Mapping[str, str]) -> str:
    """The file that lists the others, with the SHA-256 of each."""
    digests = {f"{name}.json": sha256(text.encode()).hexdigest() for name, text in texts.items()}
    return json.dumps({"wire": VERSION, "sha256": digests}, indent=1) + "\n"


def _line(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def plain(value: Any) -> Json:
    """A value of a message as JSON. What JSON or JavaScript would change has a tag: {"float":
    "1.0"}, {"bytes": "00ff"}, {"int": "2^53 or more"}."""
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, float):
        return {"float": repr(value)}
    return {"int": str(value)} if type(value) is int and abs(value) >= SAFE else value


def unplain(value: Json) -> Any:
    """The inverse of `plain`."""
    match value:
        case {"bytes": str(digits), **none} if not none:
            return bytes.fromhex(digits)
        case {"float": str(digits), **none} if not none:
            return float(digits)
        case {"int": str(digits), **none} if not none:
            return int(digits)
        case dict():
            return {name: unplain(each) for name, each in value.items()}
        case list():
            return tuple(unplain(each) for each in value)
    return value


# hex digits, or pieces of them each with the number of times that it is repeated
Pieces: TypeAlias = str | list[list[Json]]


def joined(pieces: Pieces) -> bytes:
    """The bytes of hex digits, or of pieces of these with the number of times of each."""
    return (
        bytes.fromhex(pieces)
        if isinstance(pieces, str)
        else b"".join(bytes.fromhex(digits) * times for digits, times in pieces)
    )


Cell: TypeAlias = list[Json]  # a type and a value, None where it is missing
_TYPES = {
    "number": np.dtype("f8"),
    "whole": np.dtype("i8"),
    "truth": np.dtype("?"),
    "date": np.dtype("M8[us]"),
}
_MISSING = {"number": "nan", "date": "NaT", "text": ""}


def records_of(rows: list[dict[str, Cell]]) -> Records:
    """Records from rows in which each value has its type: "number" (a double) and "whole" in
    digits, "truth", "date", "text"."""
    return Records({name: _column([row[name] for row in rows]) for name in rows[0]})


def _column(cells: list[Cell]) -> np.ndarray:
    (kind,) = {kind for kind, _ in cells}
    values = [_MISSING[kind] if value is None else value for _, value in cells]
    if kind == "text":
        return np.array(values, dtype=np.str_)
    kind_of = {"number": float, "whole": int, "truth": bool, "date": str}[kind]
    return np.array([kind_of(value) for value in values], dtype=_TYPES[kind])
