"""Files of the kinds that a command reads, damaged at random: bytes, characters, and the values
inside."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from local_dp.experiments.lab.parts import Check, Curve, Figure, Finding, Table
from local_dp.experiments.lab.store import MeasurementStore, write_results
from local_dp.loss import NANO, Pure
from local_dp.masked.statistical import hidden_set_certificate, random_learner
from local_dp.sealing import KEY
from local_dp.server.members import Place, Roster
from local_dp.server.remote import Journal
from local_dp.storage.budget_file import KeptBudget
from tests.support.inputs.toy_experiment import Toy

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
    None,
    True,
    -1,
    10**400,
    float("nan"),
    "",
    [],
    {},
    [[]],
    {"a": [TITLE]},
    "../../outside.svg",
    *WORDS,
]
KINDS = (  # a file, and a command that reads it
    ("t.csv", "curate histogram --records t.csv --column b --epsilon 1 --seed 1"),
    ("t.csv", "run survey --records t.csv --question a>1 --tier population --seed 1"),
    ("hidden.json", "certify hidden.json"),
    ("roster", f"keys enrol roster {'ab' * KEY} --start 500 --clients 3"),
    ("kept", "budget kept"),
    ("r.run", "show r --journal ."),
    ("out/toy/results.json", "report out"),
    ("out/toy/error.svg", "report out"),
)


def write_all(folder: Path) -> dict[str, bytes]:
    """One good file of each kind, in `folder`; their bytes by name."""
    (folder / "t.csv").write_text("a,b\n" + "".join(f"{row % 7},x{row % 3}\n" for row in range(40)))
    (folder / "hidden.json").write_text(
        json.dumps(hidden_set_certificate(random_learner(4, 0.1, 2, 3).queries, 4))
    )
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
    KeptBudget.create(folder / "kept", Pure(NANO)).charge(Pure(NANO // 2), "replace", "histogram")
    Journal.begin(
        folder, "r", {"protocol": "survey", "at": "today", "given": {}, "options": {}}
    ).close()
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
    return {name: (folder / name).read_bytes() for name, _ in KINDS}


def write_toy(folder: Path, finding: Finding) -> None:
    """A folder of results of the toy experiment that found this."""
    shutil.rmtree(folder, ignore_errors=True)
    MeasurementStore(folder, "stamp")
    write_results(folder, Toy(), finding, "quick", 1, "stamp")


def damaged(data: bytes, name: str, generator: np.random.Generator) -> bytes:
    """The bytes of a file, changed in a few places, or of JSON with another value."""
    if name.endswith(".json") and generator.random() < 0.7:
        return json.dumps(_change(json.loads(data), generator)).encode()
    for _ in range(int(generator.integers(1, 4))):
        at, end = sorted(int(each) for each in generator.integers(0, len(data) + 1, 2))
        word = str(_any(WORDS, generator)).encode()
        damage = bytearray(data)
        damage[at - 1 : at] = bytes([int(generator.integers(256))])
        data = _any(
            [
                data[:at],
                data[:at] + data[end:],
                data[:end] + data[at:],
                data[:at] + word + data[at:],
                bytes(damage),
            ],
            generator,
        )
    return data


def _change(value: Any, generator: np.random.Generator) -> Any:
    """Plain data with one part left out, renamed or replaced."""
    if isinstance(value, list) and value:
        at = int(generator.integers(len(value)))
        return [*value[:at], _change(value[at], generator), *value[at + 1 :]]
    if not isinstance(value, dict) or not value or generator.random() < 0.1:
        return _any(VALUES, generator)
    key = str(_any(list(value), generator))
    others = {name: each for name, each in value.items() if name != key}
    return _any(
        [
            others,
            {**others, str(_any(WORDS, generator)): 1},
            {**value, key: _change(value[key], generator)},
        ],
        generator,
    )


def _any(values: list[Any], generator: np.random.Generator) -> Any:
    return values[int(generator.integers(len(values)))]
