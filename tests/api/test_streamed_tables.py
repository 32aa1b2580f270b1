"""A large table in Parquet files is read as it is used, by whom it is used; every bit of a run is
that of the same table in memory."""

import pickle
from collections import Counter
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from local_dp import records as slices
from local_dp.api import tables
from local_dp.api.asking import RunOptions, ask
from local_dp.api.tables import read_records, sample_rows, unsaid
from local_dp.clients.process import Shared
from local_dp.errors import InputError
from local_dp.populations.finite import Rows
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.protocols.surveys.survey import StatisticalQueries, Survey
from local_dp.records import Records
from local_dp.simulation.outcome import table_digest
from local_dp.storage.scanned import Scanned
from tests.support.inputs.launches import CITIES, RUNNING, TABLE
from tests.support.long import short
from tests.support.wrong import wrong

COLUMNS: dict[str, Any] = {
    "small": polars.Series([1, -2, 3, 4, 5, 6, 7], dtype=polars.Int8),
    "large": polars.Series([2**63 + place for place in range(7)], dtype=polars.UInt64),
    "lacks": [1, None, 3, 4, 5, 6, 7],
    "half": polars.Series([0.5, 1, 2, None, 4, 5, 6], dtype=polars.Float32),
    "yes": [True, False, True, True, True, False, True],
    "perhaps": [True, None, True, True, True, False, True],
    "day": [date(2026, 1, 1)] * 6 + [None],
    "hour": [datetime(2026, 1, 1, 2)] * 7,
    "word": ["a", "", "K\u00f6ln", None, "long text", "b", "c"],
    "kind": polars.Series(["x", "y", "x", "x", "x", "x", None], dtype=polars.Categorical),
    "money": polars.Series(["1.5", "2", "3", "4", "5", "6", "7"]).cast(polars.Decimal(10, 2)),
}
SCHEMA = {"lacks": "number", "word": "text 4", "small": "whole", "yes": "truth", "day": "date"}


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder of three files, one of them empty."""
    frame = polars.DataFrame(COLUMNS)
    for name, part in (("a", frame[:4]), ("b", frame[:0]), ("c", frame[4:])):
        part.write_parquet(tmp_path / f"{name}.parquet", row_group_size=2)
    return tmp_path


def _both(
    path: Path, monkeypatch: pytest.MonkeyPatch, *how: Any, **more: Any
) -> tuple[Records, Records]:
    """A table in memory, and as it is used."""
    whole = read_records(path, *how, notice=unsaid, **more)
    monkeypatch.setattr(tables, "MANY", 1)
    return whole, read_records(path, *how, notice=unsaid, **more)


@wrong(
    "local_dp.storage.scanned:Columns._read",
    "values.astype(of_type, copy=False)",
    "values",
    "a range without a missing value has whole numbers, and its neighbour fractions",
    at="how0",
)
@wrong(
    "local_dp.storage.scanned:Columns._read",
    "low - end + file.rows",
    "low",
    "rows of the second file are skipped, and clients have no record",
    at="how0",
)
@pytest.mark.parametrize("how", [{}, {"schema": SCHEMA, "total": True}, {"only": ["word", "half"]}])
def test_each_range_is_that_of_the_whole_table(
    how: dict[str, Any], parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns of every type, of any rows, have the values and types of the table in memory; also
    pickled, and with nothing but paths in the pickle."""
    whole, lazy = _both(parts, monkeypatch, **how)
    assert isinstance(lazy, Scanned)
    assert not isinstance(whole, Scanned)
    assert list(lazy.columns) == list(whole.columns)
    assert lazy.names == whole.names
    assert lazy.lengths == whole.lengths
    assert len(lazy) == 7
    copy = pickle.loads(pickle.dumps(lazy))  # noqa: S301 - our own
    for records in (lazy, copy, copy.take(slice(0, 7)), lazy.only(list(lazy.columns))):
        for rows in (slice(2, 6), slice(5, 5), slice(0, 99), np.array([6, 0, 4])):
            for name, values in whole.take(rows).columns.items():
                result = records.take(rows)[name]
                assert result.tolist() == values.tolist() or np.array_equal(
                    result, values, equal_nan=True
                )
                assert result.dtype == values.dtype or result.dtype.kind == values.dtype.kind == "U"
    assert {name: values.dtype for name, values in lazy.schema().columns.items()} == {
        n: values.dtype for n, values in whole.schema().columns.items()
    }
    assert lazy.digest() == whole.digest()
    with pytest.raises(InputError, match="no column 'absent'"):
        lazy["absent"]


def test_one_table_has_one_digest(
    parts: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a folder, a pattern, one Parquet or CSV file, and a frame, used or in memory, in slices of
    any size where it is the same; others have others."""
    plain = (
        polars.read_parquet(parts / "*.parquet")
        .select("small", "lacks", "half", "yes", "day", "word")
        .with_columns(polars.col("word").fill_null(""))
    )
    (tmp_path / "one").mkdir()
    plain.write_parquet(one := tmp_path / "one" / "t.parquet")
    plain.write_csv(csv := tmp_path / "one" / "t.csv", quote_style="non_numeric")
    names = plain.columns
    digests = {
        table_digest(tables.records_of(table, notice=unsaid, only=names))
        for table in (parts, parts / "*.parquet", one, csv, plain)
    }
    monkeypatch.setattr(tables, "MANY", 1)
    digests |= {
        table_digest(read_records(table, notice=unsaid, only=names))
        for table in (parts, parts / "*.parquet", one)
    }
    assert len(digests) == 1
    others = (
        plain.with_columns(small=polars.lit(1)),
        plain.reverse(),
        plain.rename({"half": "other"}),
        plain[:6],
        plain.with_columns(yes=polars.lit(1)),
    )
    assert (
        len(digests | {table_digest(tables.records_of(each, notice=unsaid)) for each in others})
        == 6
    )


@pytest.mark.parametrize("name", short(RUNNING, lambda name: name != "heavy-hitters"))
def test_every_protocol_gives_the_same_bits(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Result, truth, digests and the table's own digest, or the refusal, whether the table is in
    memory or used in slices of seven rows."""
    polars.DataFrame(TABLE.columns).write_parquet(path := tmp_path / "t.parquet")
    groups = (
        {"by": "city", "labels": CITIES, "other": "exclude", "missing": "exclude"}
        if name == "survey"
        else {}
    )

    def outcome() -> Any:
        data = ask(
            PROTOCOLS[name](**{**RUNNING[name], **groups}), path, RunOptions(seed=5, notice=unsaid)
        ).to_dict()
        return {**data, "wall_s": 0, "rounds": [{**each, "seconds": 0} for each in data["rounds"]]}

    expected = outcome()
    monkeypatch.setattr(tables, "MANY", 1)
    assert outcome() == expected
    monkeypatch.setattr(slices, "PART", 7)
    del expected["table"]["digest"]
    assert {
        **(result := outcome()),
        "table": {key: value for key, value in result["table"].items() if key != "digest"},
    } == expected


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["2026-01-01", None], "read as dates"),
        (["6/1/2020", "6/2/2020"], "is text, not dates"),
        (["x" * 300, "y"], "texts cut"),
    ],
)
def test_a_column_whose_values_decide_is_read_whole(
    column: list[Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that may be dates, or are to be cut, are read as before, with their notice; so is a
    column of lists."""
    notices = list[str]()
    polars.DataFrame({"a": column, "b": [1, 2], "odd": [[1], [2]]}).write_parquet(
        path := tmp_path / "t.parquet"
    )
    monkeypatch.setattr(tables, "MANY", 1)
    assert not isinstance(read_records(path, notice=notices.append), Scanned)
    assert any(words in each for each in notices)
    assert isinstance(read_records(path, notice=unsaid, only=["b"]), Scanned)


SQ = StatisticalQueries(queries=("age > 30", "n == 1"))  # two cohorts, so its rows are dealt
SURVEY = Survey(question="age > 30")


def _ask(protocol: LocalProtocol[Any], table: Path, **how: Any) -> Any:
    data = ask(protocol, table, RunOptions(seed=3, notice=unsaid, **how)).to_dict()
    return data["result"], data["table"], [each["digest"] for each in data["rounds"]]


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    "protocol",
    [pytest.param(SURVEY, id="in order"), pytest.param(SQ, id="dealt", marks=pytest.mark.long)],
)
def test_hosts_read_the_files_themselves(
    protocol: LocalProtocol[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts are sent no row, and give the digests of the tier population, also of a sample of the
    rows."""
    frame = polars.DataFrame(TABLE.columns).sample(3_000, with_replacement=True, seed=1)
    for first in range(0, 3_000, 1_000):
        frame[first : first + 1_000].write_parquet(tmp_path / f"{first}.parquet")
    in_memory = [_ask(protocol, tmp_path), _ask(protocol, tmp_path, clients=2_000)]
    monkeypatch.setattr(tables, "MANY", 1)
    records = read_records(tmp_path, notice=unsaid, only=protocol.reads)
    shared = Shared.of(sample_rows(records, 3_000, 1 << 127))
    assert shared is not None
    assert len(repr(shared)) < 1_000
    assert (
        shared.records(1_000, 2_000, {}, {})["age"].tolist()
        == sample_rows(records, 3_000, 1 << 127).batch(1_000, 2_000)["age"].tolist()
    )
    assert [
        _ask(protocol, tmp_path, tier="hosts", hosts=3),
        _ask(protocol, tmp_path, tier="hosts", clients=2_000),
    ] == in_memory


@wrong(
    "local_dp.populations.finite:Rows._counts",
    "(*starts, self.size) == (0, *stops) and self.size == len(self.whole)",
    "bool(parts)",
    "the truth is that of the last clients who were asked",
)
def test_what_everybody_was_asked_is_not_read_again(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law of a question that all rows were asked, in spans that meet, and the digest of its
    column need the files no more; otherwise they are read."""
    whole, lazy = _both(parts, monkeypatch, only=["small"])
    monkeypatch.setattr(slices, "PART", 2)
    question = Survey("small > 3").query
    law, digest = Rows(whole).law(question), table_digest(whole)
    for spans in ([(0, 4), (3, 7)], [(0, 4)], [(2, 7)], [(0, 2), (4, 7)], [(0, 7), (4, 7)], []):
        rows = Rows(lazy)
        assert sum(len(rows.values(question, *span)) for span in spans) == sum(
            stop - start for start, stop in spans
        )
        assert rows.law(question).tolist() == law.tolist() == [3 / 7, 4 / 7]
    assert Rows(lazy, 3).law(question).tolist() == law.tolist(), (
        "of fewer clients than rows the law is the table's"
    )
    rows = Rows(read_records(parts, notice=unsaid, only=["small"]))
    for span in ((4, 7), (0, 4), (4, 7)):
        rows.values(question, *span)
    for file in parts.iterdir():
        file.unlink()
    assert rows.law(question).tolist() == law.tolist()
    assert table_digest(rows.whole) == digest


@wrong(
    "local_dp.storage.scanned:_verify",
    "_digest(Path(file.path)) != file.digest",
    "Path(file.path).stat().st_size == 0",
    "a host counts the rows of another table",
)
def test_another_file_at_the_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its size or its footer, when it is read by a host or a worker, or after it was opened."""
    polars.DataFrame({"a": range(100)}).write_parquet(path := tmp_path / "t.parquet")
    monkeypatch.setattr(tables, "MANY", 1)
    lazy = read_records(path, notice=unsaid)
    polars.DataFrame({"a": range(1, 101)}).write_parquet(path)
    with pytest.raises(InputError, match="is another file than the one that the run began with"):
        lazy.take(slice(0, 10))["a"]


@wrong(
    "local_dp.simulation.settings:Settings.__post_init__",
    (
        "isinstance(population, Rows) and population.dealing is not None and (not self.stores) "
        "and asks_everybody(self.algorithm, population.size)"
    ),
    "isinstance(population, Rows) and population.dealing is not None and (not self.stores)",
    "each cohort has the rows of one end of a sorted table",
)
def test_only_a_protocol_that_asks_all_alike_keeps_the_order() -> None:
    """Rows are dealt for cohorts, for a sample and for stores; else client i is row i."""
    table = TABLE.only(["age", "n"])

    def clients(protocol: LocalProtocol[Any], **how: Any) -> Rows:
        population = RunOptions(seed=1, notice=unsaid, **how).settings(protocol, table).population
        assert isinstance(population, Rows)
        return population

    ages = table["age"].tolist()
    assert clients(SURVEY).batch(0, 60)["age"].tolist() == ages
    for population in (clients(SQ), clients(SURVEY, stores="x"), clients(SURVEY, clients=59)):
        sample = population.batch(0, population.size)["age"].tolist()
        assert sample != ages[: len(sample)]
        assert not Counter(sample) - Counter(ages)
