"""A trusted curator's marginals and synthetic records of a user's table."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import local_dp as ldp
from local_dp.api.curating.tables import OTHER, Attribute, Attributes, read_listed
from local_dp.records import Records
from tests.support.runs.asked import COLUMNS
from tests.support.runs.people import people


def counted(rows: Records) -> dict[tuple[str, str, str], int]:
    """Every marginal of two of the columns, by a loop over the records: the value of each of the
    three, an empty text where it is not asked for."""
    names = [
        ["yes" if old else "no" for old in rows["old"].tolist()],
        [
            ["< 30", "30 to < 50", "50 to < 65", ">= 65"][(age >= 30) + (age >= 50) + (age >= 65)]
            for age in rows["age"].tolist()
        ],
        [job if job in ("baker", "smith") else OTHER for job in rows["job"].tolist()],
    ]
    result: dict[tuple[str, str, str], int] = {}
    for old, age, job in zip(*names, strict=True):
        for cell in ((old, age, ""), (old, "", job), ("", age, job)):
            result[cell] = result.get(cell, 0) + 1
    return result


def test_every_cell_is_told_once_and_nearly_right() -> None:
    """8 + 6 + 12 cells, each within 1.5 % of the records of what a loop counts; the error that is
    said is theirs."""
    output = ldp.curate.marginals(people(), **COLUMNS, seed=1)
    cells = {tuple(row[:3]): row[3] for row in output.rows}
    expected = counted(people())
    ages, jobs = ("< 30", "30 to < 50", "50 to < 65", ">= 65"), ("baker", "smith", OTHER)
    assert len(output.rows) == len(cells) == 26
    assert cells.keys() == {
        *product(("no", "yes"), ages, [""]),
        *product(("no", "yes"), [""], jobs),
        *product([""], ages, jobs),
    }
    errors = [abs(cells[cell] - expected.get(cell, 0)) / 4000 for cell in cells]
    assert max(errors) < 0.015
    assert output.data["truth"]["largest_error_of_a_cell"] == pytest.approx(max(errors))


@pytest.mark.parametrize(
    ("how", "mechanism"),
    [
        ({"epsilon": 5}, "FourierGaussian"),
        ({"delta": None}, "MWEM of"),
        ({"epsilon": 0.5}, "FourierGaussian"),
    ],
)
def test_the_mechanism_is_chosen_without_the_table(how: dict[str, Any], mechanism: str) -> None:
    """Little noise is released as it is, much noise as the nearest table; without a delta the rows
    are weighed; the records do not matter."""
    shuffled = Records(
        {
            name: values[::-1].copy() if name != "old" else np.zeros(4000, dtype=np.int64)
            for name, values in people().columns.items()
        }
    )
    for rows in (people(), shuffled):
        output = ldp.curate.marginals(rows, **COLUMNS, seed=1, **how)
        assert output.data["mechanism"].startswith(mechanism)
        assert ("fitting a table" in output.data["result"]["explanation"]) == (
            how == {"epsilon": 0.5}
        )
        assert (output.data["delta"] == 0) == ("delta" in how)


def test_columns_beyond_all_rows_have_a_tree() -> None:
    """40 columns of few records: no table of 2^40 rows, and too much noise for all characters;
    synthetic records are refused."""
    generator = np.random.default_rng(1)
    first = generator.integers(0, 2, 700)
    rows = {
        f"c{place}": np.where(generator.random(700) < 0.1, 1 - first, first) for place in range(40)
    }
    output = ldp.curate.marginals(rows, list(rows), seed=1)
    assert output.data["mechanism"] == "SpanningTree"
    # independent columns would err by .16
    assert output.data["truth"]["mean_error_of_a_cell"] < 0.14
    with pytest.raises(ldp.InputError, match="up to 22"):
        ldp.curate.synthetic(rows, list(rows), seed=1)


def test_synthetic_records_are_as_many_as_the_tables() -> None:
    """Each has a value of every column; the summary counts all of them."""
    output = ldp.curate.synthetic(people(), **COLUMNS, seed=2)
    assert output.data["result"]["columns"] == ["old == 1", "age", "job"]
    assert len(output.rows) == 4000
    assert sum(row[-1] for row in output.data["result"]["brief"]["rows"]) == 4000


def test_values_are_coded_and_back() -> None:
    """Six values take three bits: every value has its word, and the two words left over are no
    record."""
    every = Attributes((Attribute("x", cuts=(1.0, 2.0, 3.0, 4.0, 5.0)), Attribute("y")))
    assert every.d == 4
    words = np.arange(16, dtype=np.uint64)
    assert every.possible().sum() == 12
    names = every.names(words[every.possible()])
    assert names == [
        [x, y]
        for y in ("0", "1")
        for x in ("< 1", "1 to < 2", "2 to < 3", "3 to < 4", "4 to < 5", ">= 5")
    ]
    table = every.table(
        Records({"x": np.array([0.5, 1.0, 4.99, 5.0, 9.0]), "y": np.array([0, 1, 0, 1, 0])})
    )
    assert [[*each] for each in every.names(table.rows)] == [
        ["< 1", "0"],
        ["1 to < 2", "1"],
        ["4 to < 5", "0"],
        [">= 5", "1"],
        [">= 5", "0"],
    ]
    assert Attribute.cut_at(*read_listed("age = 27;32.5")) == Attribute("age", cuts=(27.0, 32.5))
    assert read_listed("job=baker; smith") == ("job", ["baker", "smith"])
    for wrong in ("age", "age=", "=1", "age=1;;2"):
        with pytest.raises(ldp.InputError, match="names no column"):
            read_listed(wrong)
    with pytest.raises(ldp.InputError, match="are no numbers"):
        Attribute.cut_at("age", ["young"])
