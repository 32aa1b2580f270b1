"""P4: a private curator never refuses by looking; and a person with several rows is protected as
one."""

import csv
import json
import re
import shlex
from collections.abc import Mapping, Sequence
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
from tests.support.runs.command import local_dp
from tests.support.wrong import wrong

ROWS = 40
SCHEMA = {
    "name": "text",
    "age": "number",
    "pay": "number",
    "ill": "whole",
    "u": "whole",
    "v": "whole",
    "who": "text",
}
ORDINARY = {
    "name": ("Ann", "Bob"),
    "age": ("31", "45.5"),
    "pay": ("10", "20.25"),
    "ill": ("0", "1"),
    "u": ("0", "1", "2"),
    "v": ("3", "4"),
    "who": ("x",),
}
STRANGE = {
    "text": ("", "p7", "x" * 3000, "\x1b]0;a\x07", 'a,"b"\nc', "=1+1"),
    "number": ("", "nan", "-inf", "1e308", "5e-324", "word", "1e999"),
    "whole": ("", "word", "99999999999999999999", "-7", "1.5"),
}
RAW = [b"", b"\xff\xfe,5", b"1,2,3,4,5,6,7,8,9,10", b'a"b,5', b"\x00"]  # lines of a file
FITTING = {  # a question that is answered, with the policies of every value
    "median": "--column age --missing exclude",
    "quantiles": "--column pay --levels 1 --missing exclude",
    "mean": "--column age --low 0 --high 100 --outside clip --missing exclude",
    "histogram": "--column age --missing category",
    "intervals": "--column age --low 0 --high 64 --bins 16 --outside exclude --missing exclude",
    "marginals": (
        "--column ill --column 'age > 30' --cuts pay=15 --labels 'name=Ann;Bob' --missing "
        "category --other category"
    ),
    "synthetic": (
        "--column ill --column 'age > 30' --labels 'name=Ann;Bob' --missing category --other "
        "category"
    ),
    "triangles": "--source u --target v --nodes 6 --other exclude",
    "threshold": "--column age --label ill --missing exclude --other exclude",
    "point": "--column name --label 'name == '\"'\"'p7'\"'\"' and ill > 0' --missing exclude",
    "rectangle": "--column age --column pay --label ill --missing exclude --other exclude",
    "learn": "--label 'age > 30' --feature pay --bound pay=0..100 --set steps=2 --missing exclude",
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
        self.chance, self.folder = np.random.default_rng(3), folder
        plain = [self._row(ORDINARY, f"p{row % 10}") for row in range(ROWS)]
        self.table = _write(folder / "table.csv", plain)
        others = [row for row in plain if row["who"] != "p3"]
        self.rows = [
            _write(folder / f"row-{at}.csv", [*plain[:at], self.strange(), *plain[at + 1 :]])
            for at in range(8)
        ]
        self.people = [
            _write(folder / f"person-{rows}.csv", [*[self.strange()] * rows, *others])
            for rows in range(1, 5)
        ]
        lines = self.table.read_bytes().splitlines(keepends=True)
        for number, line in enumerate(RAW):
            self.rows.append(folder / f"raw-{number}.csv")
            self.rows[-1].write_bytes(b"".join([*lines[:9], line + b"\n", *lines[10:]]))
        self.schema = folder / "schema.json"
        self.schema.write_text(json.dumps(SCHEMA))

    def strange(self) -> dict[str, str]:
        """A row of strange values, of the person p3."""
        return self._row({name: STRANGE[kind] for name, kind in SCHEMA.items()}, "p3")

    def _row(self, values: Mapping[str, Sequence[str]], who: str) -> dict[str, str]:
        return {name: str(self.chance.choice(list(some))) for name, some in values.items()} | {
            "who": who
        }


def _command_line(chance: np.random.Generator, tables: Tables) -> list[str]:
    """A private command that fits, or lacks a policy or the types."""
    name = str(chance.choice(list(FITTING)))
    words = shlex.split(FITTING[name])
    if chance.random() < 0.3:
        del words[-2:]
    how = ["--epsilon", str(chance.choice(["0.5", "4"])), "--delta", "1e-3"]
    how += ["--schema", str(tables.schema)] if chance.random() < 0.9 else []
    return [name, *words, *how, *(["--json"] if chance.random() < 0.8 else [])]


def _observe(words: Sequence[str], table: Path) -> tuple[int, str, Any]:
    """All of a command's outcome but the private result: its code, its errors, and the public parts
    of the release."""
    done = local_dp("curate", *words, "--private", "--records", str(table))
    errors = re.sub(r"\d+-\d\.budget", "BUDGET", done.stderr.replace(table.name, "TABLE"))
    if done.returncode or "--json" not in words:
        return done.returncode, errors, done.stdout.split("\n\n")[0]
    data = json.loads(done.stdout)
    data["result"] = [data["result"]["columns"], sorted(data["result"])]
    return done.returncode, errors, data


def test_private_commands_on_neighbours(tmp_path: Path) -> None:
    """Requests x neighbouring tables: the same refusals, the same bytes but the release, a charge
    for an answer and none for a refusal."""
    tables, chance, codes = Tables(tmp_path), np.random.default_rng(1), list[int]()
    for number in range(36):
        words, neighbours = _command_line(chance, tables), tables.rows
        if number % 3 == 0:
            words, neighbours = (
                [*words, "--person", "who", "--rows", str(1 + number % 2)],
                tables.people,
            )
        outcomes = []
        for table in (tables.table, neighbours[int(chance.integers(len(neighbours)))]):
            if number % 8:
                outcomes.append(_observe(words, table))
                continue
            budget = tmp_path / f"{number}-{len(outcomes)}.budget"
            KeptBudget.create(budget, approximate(24.0, 0.1))
            outcomes.append(_observe([*words, "--budget", str(budget)], table))
            assert len(KeptBudget(budget).standing().charges) == (outcomes[-1][0] == 0), words
        assert outcomes[0] == outcomes[1], words
        codes.append(outcomes[0][0])
    assert 6 < codes.count(0) < 30


@wrong(
    "local_dp.api.tables:records_of",
    "not _has_types(table)",
    "table is None",
    "one cell decides the type of a column, and so a refusal",
    at="median",
)
@wrong(
    "local_dp.api.trusted:release",
    "Launch(records, question.private)",
    "Launch(records, False)",
    "a refusal shows an exact count, uncharged",
    at="point",
)
@pytest.mark.parametrize("name", FITTING)
def test_every_question_has_policies_for_every_value(name: str, tmp_path: Path) -> None:
    """With its policies it is answered on a table of strange rows; without them a line says what to
    declare, and what a look would count is not in it."""
    assert set(FITTING) == set(QUESTIONS)
    tables = Tables(tmp_path)
    strange = _write(tmp_path / "strange.csv", [tables.strange() for _ in range(ROWS)])
    how, words = (
        ["--schema", str(tables.schema), "--delta", "1e-3", "--epsilon", "4"],
        shlex.split(FITTING[name]),
    )
    code, errors, _ = _observe([name, *words, *how, "--json"], strange)
    assert (code, errors) == (0, "")
    bare = [
        word
        for place, word in enumerate(words)
        if words[place - place % 2] not in ("--missing", "--other", "--outside")
    ]
    code, errors, _ = _observe([name, *bare, *how], strange)
    assert code == 2
    assert "does not look" in errors
    code, errors, _ = _observe([name, *words, "--delta", "1e-3"], strange)
    assert (code, "--schema FILE" in errors) == (2, True)


def test_types_in_python_are_declared_too() -> None:
    """Arrays have types of their own; the types of lists are read from values, so a schema declares
    them."""
    lists: dict[str, Any] = {"x": [1, 2, None, 3] * 10}
    for table in (lists, {"x": np.array(lists["x"], dtype=object)}):
        with pytest.raises(ldp.InputError, match="declare them: schema="):
            ldp.curate.median(table, "x", private=True, missing="exclude")
    assert ldp.curate.median(
        lists, "x", private=True, missing="exclude", schema={"x": "number"}
    ).rows


@wrong(
    "local_dp.api.trusted:_price_of",
    "loss_of_group(account.budget, question.counted)",
    "account.budget",
    "the budget pays for one row of each person",
)
@wrong(
    "local_dp.api.trusted:Question.of_rows",
    "loss_of_row(self.loss, self.counted)",
    "self.loss",
    "a person with M rows loses M times epsilon",
)
def test_people_are_charged_for_all_their_rows(tmp_path: Path) -> None:
    """The mechanism has the part of one row, the budget pays for people, the screen names the unit;
    people and rows do not share a budget."""
    rows = {"who": np.repeat(np.arange(50), 3), "job": np.repeat(["baker", "smith"], [90, 60])}
    budget = tmp_path / "a.budget"
    KeptBudget.create(budget, approximate(4.0, 1e-2))
    settings: dict[str, Any] = {
        "epsilon": 3.0,
        "delta": 1e-3,
        "person": "who",
        "rows": 3,
        "budget": budget,
    }
    data = ldp.curate.histogram(rows, "job", seed=1, **settings).to_dict()
    assert (data["n"], data["neighbours"], data["rows"]) == (50, "person", 3)
    assert data["epsilon"] == 3.0
    assert 0.999e-3 < data["delta"] <= 1e-3
    inner = Histogram("job", epsilon=3.0, delta=1e-3, person="who", rows=3).of_rows()
    assert inner.epsilon == 1.0
    assert inner.delta == pytest.approx(1e-3 / (1 + np.e + np.e**2))
    assert "50 people, 3 rows of each" in repr(
        ldp.curate.histogram(rows, "job", seed=1, **{**settings, "epsilon": 0.5})
    )
    with pytest.raises(RefusedError, match="spent on 'person' neighbours"):
        ldp.curate.histogram(rows, "job", budget=budget, delta=1e-4, epsilon=0.1)
    assert "a person with k rows loses at least k times as much" in repr(
        ldp.curate.histogram(rows, "job", seed=1, delta=1e-3)
    )
