"""Part two, class 3: a private curator never refuses by looking; and a person with several rows is
protected as one."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import local_dp as ldp
from local_dp.api.curate import QUESTIONS
from local_dp.api.curating.values import Histogram
from local_dp.errors import RefusedError
from local_dp.loss import approximate
from local_dp.storage.budget_file import KeptBudget
from tests.support.figures import figure
from tests.support.runs.command import local_dp

ROWS, NEIGHBOURS = 40, 24
SCHEMA = {
    "name": "text",
    "age": "number",
    "pay": "number",
    "n": "whole",
    "ill": "whole",
    "u": "whole",
    "v": "whole",
    "who": "text",
}
ORDINARY: dict[str, Sequence[str]] = {
    "name": ["Ann", "Bob", "Cid"], "age": ["31", "45.5", "60"], "pay": ["10", "20.25"],
    "n": ["0", "1", "2"], "ill": ["0", "1"],
    "u": ["0", "1", "2"], "v": ["3", "4", "5"], "who": ["x", "y", "z"],
}  # fmt: skip
STRANGE: dict[str, Sequence[str]] = {
    "text": ["", "p7", "x" * 3000, "\x1b]0;a\x07", "a,\"b\"\nc", "=1+1", "\u00e9\u0301", "0"],
    "number": ["", "nan", "inf", "-inf", "1e308", "-1e308", "5e-324", "word", "0", "2", "1e999",
    "0x10"],
    "whole": ["", "word", "99999999999999999999", "9223372036854775807", "-7", "2", "1.5", "0"],
}  # fmt: skip
# lines of a file
RAW = [
    b"",
    b",",
    b"\xff\xfe,5",
    b"1,2,3,4,5,6,7,8,9,10",
    b'a"b,5',
    b"\x00",
    b"# 4",
]
COLUMNS = [*SCHEMA, "nobody"]
ASKED = [
    "age > 30",
    "name == 'p7' and ill > 0",
    "n == 1",
    "pay > age or not ill == 1",
    "name > 3",
    "nobody == 1",
    "age >",
]
POLICIES = ["refuse", "category", "exclude", "middle", "clip", "wrong"]
VALUES: dict[str, Sequence[Sequence[str]]] = {  # of each option, the words that a search tries
    "--column": [[each] for each in COLUMNS], "--label": [[each] for each in (*ASKED, *COLUMNS)],
    "--feature": [["age"], ["pay"], ["age > 30"], ["name"]],
    "--bound": [["age=0..100"], ["pay=0..100"], ["age=9..1"]],
    "--cuts": [["age=30;50"], ["pay=15"], ["name=1"]], "--labels": [["name=Ann;Bob"], ["n=0;1"]],
    "--low": [["0"], ["90"]], "--high": [["50"], ["100"]], "--bins": [["16"], ["2"]],
    "--levels": [["1"], ["2"]], "--ways": [["1"], ["2"]],
    "--source": [["u"], ["v"], ["name"]], "--target": [["v"], ["u"]], "--nodes": [["6"], ["3"]],
    "--alpha": [["0.2"]],
    "--learner": [["logistic-regression"], ["linear-regression"], ["stump"]],
    "--set": [["steps=2"]],
}  # fmt: skip
FITTING: dict[str, list[str]] = {  # a question that is answered, with the policies of every value
    "median": ["--column", "age", "--missing", "exclude"],
    "quantiles": ["--column", "pay", "--levels", "1", "--missing", "exclude"],
    "mean": [
        "--column",
        "age",
        "--low",
        "0",
        "--high",
        "100",
        "--outside",
        "clip",
        "--missing",
        "exclude",
    ],
    "histogram": ["--column", "age", "--missing", "category"],
    "intervals": [
        "--column",
        "age",
        "--low",
        "0",
        "--high",
        "64",
        "--bins",
        "16",
        "--outside",
        "exclude",
        "--missing",
        "exclude",
    ],
    "marginals": [
        "--column",
        "ill",
        "--column",
        "age > 30",
        "--cuts",
        "pay=15",
        "--labels",
        "name=Ann;Bob",
        "--missing",
        "category",
        "--other",
        "category",
    ],
    "synthetic": [
        "--column",
        "ill",
        "--column",
        "age > 30",
        "--labels",
        "name=Ann;Bob",
        "--missing",
        "category",
        "--other",
        "category",
    ],
    "triangles": ["--source", "u", "--target", "v", "--nodes", "6", "--other", "exclude"],
    "threshold": [
        "--column",
        "age",
        "--label",
        "ill",
        "--missing",
        "exclude",
        "--other",
        "exclude",
    ],
    "point": ["--column", "name", "--label", "name == 'p7' and ill > 0", "--missing", "exclude"],
    "rectangle": [
        "--column",
        "age",
        "--column",
        "pay",
        "--label",
        "ill",
        "--missing",
        "exclude",
        "--other",
        "exclude",
    ],
    "learn": [
        "--label",
        "age > 30",
        "--feature",
        "pay",
        "--bound",
        "pay=0..100",
        "--set",
        "steps=2",
        "--missing",
        "exclude",
    ],
}


def _write(path: Path, rows: Sequence[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(SCHEMA))
        writer.writeheader()
        writer.writerows(rows)
    return path


class Tables:
    """A table, neighbours that differ in one row, and neighbours that differ in all rows of one
    person, as files."""

    def __init__(self, folder: Path) -> None:
        self.chance = np.random.default_rng(3)
        plain = [
            {name: str(self.chance.choice(list(values))) for name, values in ORDINARY.items()}
            | {"who": f"p{row % 10}"}
            for row in range(ROWS)
        ]
        self.table = _write(folder / "table.csv", plain)
        self.rows, self.people = list[Path](), list[Path]()
        for number in range(NEIGHBOURS):
            at = int(self.chance.integers(ROWS))
            self.rows.append(
                _write(
                    folder / f"row-{number}.csv",
                    [*plain[:at], self._strange(number), *plain[at + 1 :]],
                )
            )
            others = [row for row in plain if row["who"] != "p3"]
            own = [{**self._strange(number), "who": "p3"} for _ in range(1 + number % 6)]
            self.people.append(_write(folder / f"person-{number}.csv", [*own, *others]))
        lines = self.table.read_bytes().splitlines(keepends=True)
        for number, line in enumerate(RAW):
            self.rows.append(folder / f"raw-{number}.csv")
            self.rows[-1].write_bytes(b"".join([*lines[:9], line + b"\n", *lines[10:]]))
        self.schema = folder / "schema.json"
        self.schema.write_text(json.dumps(SCHEMA))

    def _strange(self, number: int) -> dict[str, str]:
        """A row of strange values, every second time among ordinary ones."""
        row = {name: str(self.chance.choice(list(STRANGE[kind]))) for name, kind in SCHEMA.items()}
        kept = self.chance.choice(list(SCHEMA), 6 * (number % 2), replace=False)
        return {
            **row,
            **{name: str(self.chance.choice(list(ORDINARY[name]))) for name in kept.tolist()},
        }


def _typed(chance: np.random.Generator, tables: Tables) -> list[str]:
    """A private command that fits, with up to three of its words changed by chance."""
    name = str(chance.choice(list(FITTING)))
    words, changes = list(FITTING[name]), int(chance.integers(4))
    for _ in range(changes):
        place = 2 * int(chance.integers(len(words) // 2))
        option = words[place]
        values = (
            [[each] for each in POLICIES]
            if option in ("--missing", "--other", "--outside")
            else VALUES[option]
        )
        words[place + 1 : place + 2] = values[int(chance.integers(len(values)))]
        if chance.random() < 0.2:
            del words[place : place + 2]
        if not words:
            break
    how = [
        "--epsilon",
        str(chance.choice(["0.5", "4", "30"])),
        *(["--pure"] if chance.random() < 0.2 else []),
    ]
    how += ["--delta", "1e-3"] if chance.random() < 0.5 else []
    how += ["--schema", str(tables.schema)] if chance.random() < 0.95 else []
    return [name, *words, *how, *(["--json"] if chance.random() < 0.8 else [])]


def _seen(words: Sequence[str], table: Path) -> tuple[int, str, Any]:
    """All of a command's outcome but the private result: its code, its errors, and the public parts
    of the release."""
    done = local_dp("curate", *words, "--private", "--records", str(table))
    errors = done.stderr.replace(table.name, "TABLE")
    if done.returncode or "--json" not in words:
        return done.returncode, errors, done.stdout.split("\n\n")[0]
    data = json.loads(done.stdout)
    data["result"] = [data["result"]["columns"], sorted(data["result"])]
    return done.returncode, errors, data


def _search(folder: Path, commands: int, seed: int) -> dict[str, int]:
    """Commands on neighbouring tables; how many were answered and refused. One in eight is paid by
    a budget of its own for each table."""
    tables, chance, counted = (
        Tables(folder),
        np.random.default_rng(seed),
        {"answered": 0, "refused": 0},
    )
    for number in range(commands):
        words = _typed(chance, tables)
        neighbours = tables.rows
        if chance.random() < 0.3:
            words += [
                "--person",
                str(chance.choice(["who", "who", "n", "nobody"])),
                "--rows",
                str(chance.choice(["1", "2", "3", "0"])),
            ]
            neighbours = tables.people if words[-3] == "who" else tables.rows[:0]
        pair = [
            tables.table,
            neighbours[int(chance.integers(len(neighbours)))] if neighbours else tables.table,
        ]
        paid = number % 8 == 0
        outcomes = []
        for place, table in enumerate(pair):
            budget = folder / f"{number}-{place}.budget"
            more = ["--budget", str(budget)] if paid else []
            if paid:
                KeptBudget.create(budget, approximate(24.0, 0.1))
            outcomes.append(_seen([*words, *more], table))
            if paid:
                assert len(KeptBudget(budget).standing().charges) == (outcomes[-1][0] == 0), words
                outcomes[-1] = (
                    outcomes[-1][0],
                    outcomes[-1][1].replace(budget.name, "BUDGET"),
                    outcomes[-1][2],
                )
        assert outcomes[0] == outcomes[1], (words, pair)
        counted["refused" if outcomes[0][0] else "answered"] += 1
    return counted


@pytest.mark.parametrize(
    ("commands", "seed"), [(50, 1), pytest.param(10_000, 3, marks=pytest.mark.slow)]
)
def test_private_commands_on_neighbours(commands: int, seed: int, tmp_path: Path) -> None:
    """Requests x neighbouring tables: the same refusals, the same bytes but the release, a charge
    for an answer and none for a refusal."""
    counted = _search(tmp_path, commands, seed)
    figure(
        "class 15",
        (
            f"{commands:,} private commands on neighbouring tables, {counted['answered']:,} of "
            "them answered: 0 differences"
        ),
    )
    assert min(counted.values()) > commands / 10


@pytest.mark.parametrize("name", FITTING)
def test_every_question_has_policies_for_every_value(name: str, tmp_path: Path) -> None:
    """With its policies it is answered on a table of strange rows; without them a line says what to
    declare, and what a look would count is not in it."""
    assert set(FITTING) == set(QUESTIONS)
    tables = Tables(tmp_path)
    strange = _write(tmp_path / "strange.csv", [tables._strange(0) for _ in range(ROWS)])
    how = ["--schema", str(tables.schema), "--delta", "1e-3", "--epsilon", "4"]
    code, errors, _ = _seen([name, *FITTING[name], *how, "--json"], strange)
    assert (code, errors) == (0, "")
    bare = [
        word
        for place, word in enumerate(FITTING[name])
        if FITTING[name][place - place % 2] not in ("--missing", "--other", "--outside")
    ]
    code, errors, _ = _seen([name, *bare, *how], strange)
    assert code == 2
    assert "does not look" in errors
    code, errors, _ = _seen([name, *FITTING[name], "--delta", "1e-3"], strange)
    assert (code, "--schema FILE" in errors) == (2, True)


def test_the_oracle_of_counts_is_closed(tmp_path: Path) -> None:
    """The attack: "no answer for 1 records" showed who is ill, without a charge. Now the line is
    the same whether p7 is ill, well or not there."""
    lines = set()
    for ill in ("1", "0", ""):
        rows = [
            {**dict.fromkeys(SCHEMA, ""), "name": f"p{row}", "ill": ill if row == 7 else "0"}
            for row in range(20)
        ]
        table = _write(tmp_path / "table.csv", rows)
        (tmp_path / "schema.json").write_text(json.dumps({"name": "text", "ill": "number"}))
        words = [
            "point",
            "--column",
            "name",
            "--label",
            "name == 'p7' and ill > 0",
            "--delta",
            "1e-3",
            "--schema",
            str(tmp_path / "schema.json"),
        ]
        lines.add(_seen(words, table))
    assert len(lines) == 1
    (line,) = lines
    assert "does not look" in line[1]


def test_types_in_python_are_declared_too() -> None:
    """Arrays have types of their own; the types of lists are read from values, so a schema declares
    them."""
    lists: dict[str, Any] = {"x": [1, 2, None, 3] * 10}
    with pytest.raises(ldp.InputError, match="declare them: schema="):
        ldp.curate.median(lists, "x", private=True, missing="exclude")
    assert ldp.curate.median(
        lists, "x", private=True, missing="exclude", schema={"x": "number"}
    ).rows
    assert ldp.curate.median({"x": np.arange(40)}, "x", private=True).rows
    with pytest.raises(ldp.InputError, match="declare them: schema="):
        ldp.curate.median(
            {"x": np.array(lists["x"], dtype=object)}, "x", private=True, missing="exclude"
        )
    with pytest.raises(ldp.InputError, match="is no schema"):
        ldp.curate.median(lists, "x", private=True, schema={"x": "float"})


def test_people_are_charged_for_all_their_rows(tmp_path: Path) -> None:
    """The mechanism has the part of one row, the budget pays for people, the screen names the unit;
    people and rows do not share a budget."""
    rows = {"who": np.repeat(np.arange(50), 3), "job": np.repeat(["baker", "smith"], [90, 60])}
    budget = tmp_path / "a.budget"
    KeptBudget.create(budget, approximate(4.0, 1e-2))
    asked: dict[str, Any] = {
        "epsilon": 3.0,
        "delta": 1e-3,
        "person": "who",
        "rows": 3,
        "budget": budget,
    }
    data = ldp.curate.histogram(rows, "job", seed=1, **asked).to_dict()
    assert (data["n"], data["neighbours"], data["rows"]) == (50, "person", 3)
    assert data["epsilon"] == 3.0
    assert 0.999e-3 < data["delta"] <= 1e-3
    inner = Histogram("job", epsilon=3.0, delta=1e-3, person="who", rows=3).of_rows()
    assert inner.epsilon == 1.0
    assert inner.delta == pytest.approx(1e-3 / (1 + np.e + np.e**2))
    assert "50 people, 3 rows of each" in repr(
        ldp.curate.histogram(rows, "job", seed=1, **{**asked, "epsilon": 0.5})
    )
    with pytest.raises(RefusedError, match="spent on 'person' neighbours"):
        ldp.curate.histogram(rows, "job", budget=budget, delta=1e-4, epsilon=0.1)
    assert "a person with k rows loses at least k times as much" in repr(
        ldp.curate.histogram(rows, "job", seed=1, delta=1e-3)
    )
    for wrong, words in (
        ({"rows": 3}, "person"),
        ({"rows": 0, "person": "who"}, "rows is 0"),
        ({"person": "whom"}, "no column 'whom'"),
    ):
        with pytest.raises(ldp.InputError, match=words):
            ldp.curate.histogram(rows, "job", delta=1e-3, **wrong)
