"""Files of every kind that a command reads, damaged at random: bytes, characters, and the values
inside."""

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars

from local_dp.experiments.lab.claim import Check, Curve, Figure, Finding, Table
from local_dp.experiments.lab.store import MeasurementStore, write_results
from local_dp.hardness.certificates import FORMAT
from local_dp.loss import NANO, Pure
from local_dp.masked.statistical import hidden_set_certificate, random_learner
from local_dp.sealing import KEY
from local_dp.server.members import Place, Roster
from local_dp.server.remote import Journal
from local_dp.storage.budget_file import KeptBudget
from tests.support.inputs.toy_experiment import Toy
from tests.support.runs.stores import asked, member

# what a terminal obeys; what turns letters around
TITLE, RED, TURNED = (
    "\x1b]0;owned\x07",
    "\x9b31m",
    "\u202egnp.exe",
)
WORDS = [
    TITLE,
    RED,
    TURNED,
    "\r",
    "\n",
    "\x00",
    "\x7f",
    "\x1b[2J",
    "<script>alert(1)</script>",
    "=1+1",
    "é",
    "a" * 3000,
]
VALUES: list[Any] = [
    None, True, -1, 0, 10**400, 1e308, float("nan"), float("inf"), "", [], {}, [[]], {"a": [TITLE]},
    "../../outside.svg", "a/b.svg", *WORDS,
]  # fmt: skip
CELLS: list[Callable[[], polars.Series]] = [
    lambda: polars.Series("b", [[1], [2, 3], []]),
    lambda: polars.Series("b", [b"\xff\x1b", b"", None]),
    lambda: polars.Series("b", [{"x": 1}, {"x": 2}, None]),
    lambda: polars.Series("b", [date(2020, 1, 1), None, date(1, 1, 1)]),
    lambda: polars.Series("b", [timedelta(days=1), None, timedelta()]),
    lambda: polars.Series("b", [None, None, None]),
    lambda: polars.Series("b", [TITLE, RED, TURNED]),
    lambda: polars.Series("b", ["x", "y", "x"]).cast(polars.Categorical),
    lambda: polars.Series("b", [float("nan"), float("inf"), -0.0]),
    lambda: polars.Series("b", [1, 2, 3]).cast(polars.Decimal(10, 2)),
    lambda: polars.Series("b", [[["x"]], [], None]),
    lambda: polars.Series("b", [1, 2, 3]).cast(polars.Int128),
    lambda: polars.Series("b", [True, None, False]),
    lambda: polars.Series("b", [2**63 - 1, -(2**63), 0]),
    lambda: polars.Series(TITLE, ["x", "y", "z"]), lambda: polars.Series("a" * 5000, [1, 2, 3]),
]  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One kind of file: its name in the folder, the commands that read it, and whether it is JSON
    or other text."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    form: str = "bytes"


_TABLE = ("--epsilon", "1", "--seed", "1")
_RUN = ("--tier", "population", "--seed", "1")
KINDS = (
    Kind("t.csv", (
        ("curate", "histogram", "--records", "t.csv", "--column", "b", *_TABLE),
        ("curate", "median", "--records", "t.csv", "--column", "a", "--low", "0", "--high", "9",
        *_TABLE),
        ("run", "frequency", "--records", "t.csv", "--column", "b", "--labels-from-data", *_RUN),
        ("run", "survey", "--records", "t.csv", "--question", "a > 1", *_RUN),
    ), "text"),
    Kind("t.parquet", (
        ("curate", "histogram", "--records", "t.parquet", "--column", "b", *_TABLE),
        ("run", "frequency", "--records", "t.parquet", "--column", "b", "--labels-from-data",
        *_RUN),
    ), "parquet"),
    Kind("schema.json", (("host", "survey", "--records", "u.csv", "--schema", "schema.json",
    "--run", "r", "--broker", "mqtt://127.0.0.1:1"),), "json"),
    Kind("matrix.csv", (("dimension", "matrix.csv"),), "text"),
    Kind("hidden.json", (("certify", "hidden.json"),), "json"),
    Kind("roster", (("keys", "enrol", "roster", "ab" * KEY, "--start", "500", "--clients", "3"),),
    "text"),
    Kind("key.pub", (("keys", "enrol", "fresh", "key.pub", "--clients", "3"),), "text"),
    Kind("store", (("budget", "store"),)),
    Kind("kept", (("budget", "kept"),)),
    Kind("r.run", (("show", "r", "--journal", "."), ("runs", "--journal", "."))),
    Kind("out/toy/results.json", (("report", "out"),), "json"),
    Kind("out/toy/error.svg", (("report", "out"),), "text"),
)  # fmt: skip


def write_all(folder: Path) -> dict[str, bytes]:
    """One good file of each kind, in `folder`; their bytes by name."""
    (folder / "t.csv").write_text("a,b\n" + "".join(f"{row % 7},x{row % 3}\n" for row in range(40)))
    (folder / "u.csv").write_text("a,b\n1,x\n2,y\n")
    polars.read_csv(folder / "t.csv").write_parquet(folder / "t.parquet")
    (folder / "schema.json").write_text('{"a": "number", "b": "text"}')
    (folder / "matrix.csv").write_text("1,-1,1\n-1,1,1\n1,1,-1\n")
    certificate = hidden_set_certificate(random_learner(4, 0.1, 2, 3).queries, 4)
    (folder / "hidden.json").write_text(json.dumps(certificate))
    assert FORMAT in (folder / "hidden.json").read_text()
    (folder / "roster").write_text(
        str(
            Roster(
                [
                    Place("host-0", "hosts", 0, 20, bytes(KEY)),
                    Place("host-20", "hosts", 20, 40, bytes([1]) * KEY),
                ]
            )
        )
    )
    (folder / "key.pub").write_text("cd" * KEY + "\n")
    store = member(folder / "store")
    store.handle(asked(1))
    store.store.close()  # type: ignore[attr-defined]
    KeptBudget.create(folder / "kept", Pure(NANO)).charge(Pure(NANO // 2), "replace", "histogram")
    journal = Journal.begin(
        folder, "r", {"protocol": "survey", "at": "today", "given": {}, "options": {}}
    )
    journal.close()
    points = ([100.0, 400.0], [0.1, 0.05])
    figure = Figure(
        "error",
        "Error",
        "n",
        "error",
        [
            Curve("measured", *points, low=[0.05, 0.04], high=[0.15, 0.06]),
            Curve("bound", *points, "bound"),
        ],
    )
    table = Table("Error", ("n", "error", "comment"), [(100, 0.1, "x"), (400, None, "y")])
    write_toy(
        folder / "out" / "toy",
        Finding(
            [Check("True", True, "yes", 1e-5, "any")],
            [table],
            [figure],
            ["A note."],
            headline="It holds.",
        ),
    )
    return {kind.name: (folder / kind.name).read_bytes() for kind in KINDS}


def write_toy(folder: Path, finding: Finding) -> None:
    """A folder of results of the toy experiment that found this."""
    shutil.rmtree(folder, ignore_errors=True)
    MeasurementStore(folder, "stamp")
    write_results(folder, Toy(), finding, "quick", 1, "stamp")


def damaged(data: bytes, form: str, generator: np.random.Generator) -> bytes:
    """The bytes of a file, changed in a few places, or replaced by others of its kind."""
    if form == "parquet" and generator.random() < 0.4:
        made, columns = (
            io.BytesIO(),
            [_any(CELLS, generator)() for _ in range(int(generator.integers(1, 3)))],
        )
        polars.DataFrame(
            {each.name if place == 0 else "a": each for place, each in enumerate(columns)}
        ).write_parquet(made)
        return made.getvalue()
    if form == "json" and generator.random() < 0.7:
        return json.dumps(
            _changed(json.loads(data), generator), ensure_ascii=bool(generator.random() < 0.5)
        ).encode(errors="surrogatepass")
    for _ in range(int(generator.integers(1, 4))):
        data = _hit(data, form, generator)
    return data


def _hit(data: bytes, form: str, generator: np.random.Generator) -> bytes:
    at, end = sorted(int(each) for each in generator.integers(0, len(data) + 1, 2))
    way = int(generator.integers(6))
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + data[end:]
    if way == 2:
        return data[:end] + data[at:]
    if way == 3 or form == "bytes":
        flipped = bytearray(data)
        for place in generator.integers(0, max(len(data), 1), int(generator.integers(1, 9)))[
            : len(data)
        ]:
            flipped[place] ^= 1 << int(generator.integers(8))
        return bytes(flipped)
    if way == 4:
        return data[:at] + bytes(generator.integers(0, 256, 8, dtype=np.uint8)) + data[at:]
    return data[:at] + str(_any(WORDS, generator)).encode() + data[at:]


def _changed(value: Any, generator: np.random.Generator) -> Any:
    """Plain data with one part left out, repeated or replaced."""
    if isinstance(value, dict) and value and generator.random() < 0.9:
        key = str(_any(list(value), generator))
        way = generator.random()
        if way < 0.15:
            return {name: each for name, each in value.items() if name != key}
        if way < 0.25:
            return {**value, str(_any(WORDS, generator)): value[key]}
        return {**value, key: _changed(value[key], generator)}
    if isinstance(value, list) and value and generator.random() < 0.8:
        at = int(generator.integers(len(value)))
        return [
            *value[:at],
            _changed(value[at], generator),
            *value[at + int(generator.random() < 0.7) :],
        ]
    return _any(VALUES, generator)


def _any(values: list[Any], generator: np.random.Generator) -> Any:
    return values[int(generator.integers(len(values)))]
