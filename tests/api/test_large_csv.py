"""A large CSV table is copied to Parquet files some rows at a time, and read as a small one is: values, types, notice, digest and refusals."""

import gc
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import local_dp as ldp
from local_dp import records as slices
from local_dp.errors import InputError
from local_dp.experiments.api import large_csv
from local_dp.experiments.api.files import texts_of
from local_dp.experiments.api.tables import read_records, unsaid
from local_dp.experiments.tiers.outcome import table_digest
from local_dp.storage.scanned import Scanned
from tests.support.inputs.exports import EXPORTS, Export
from tests.support.inputs.malformed import damaged
from tests.support.long import short
from tests.support.runs.asked import QUESTIONS
from tests.support.runs.people import written

CLEAN = "a,b,c\n" + "1,x,0.5\n2,y,1\n" * 9
BLOCKS = (12, 40)  # characters
SEMI = CLEAN.replace(",", ";").replace("0.5", "5")
LATE: dict[str, str | bytes] = {
    "plain": CLEAN, "a fraction": CLEAN + "1.5,z,2\n", "a text": CLEAN + "z,z,2\n", "a missing word": CLEAN + "NA,NA,-\n", "groups": CLEAN + "2,z,1 000\n",
    "missing words": CLEAN + "n/a,z,2\nNA,z,3\nn/a,,\n", "beyond 64 bits": CLEAN + f"{2**70},z,2\n", "spaces": CLEAN + " 7 , z ,\t8\n",
    "a decimal comma": SEMI + "1,5;z;2\n", "both decimal signs": SEMI + "1.5;z;2,5\n", "1.234": SEMI + "1.234;z;2\n", "a long row": CLEAN + "1,2,3,4\n",
    "a short row": CLEAN + "1,2\n", "an open quote": CLEAN + '1,"2,3\n4,5,6\n', "a quote in a cell": CLEAN + '1,2" z,3\n',
    "two of them": CLEAN + '1,2" z,3\n1,2" y,3\n', "lines in quotes": "a,b,c\n" + '1,"x\n\n,""y",2\n' * 9, "lines in the header": '"a\n1",b,c\n' + "1,x,3\n",
    "empty rows": "a,b,c\n\n\n" + CLEAN[6:] + "\n,,\n\r\n1,x,\n\n\r\n\n", "one column": "a\n1\n\n2\n\n\n3\n\n", "a long text": CLEAN + f"1,{'z' * 300},2\n",
    "no name": "," + CLEAN.replace("\n", "\n9,")[:-2], "dates": "a,b,c\n" + "1,2020-01-02,3\n" * 9, "truth": "a,b\n" + "true,TRUE\n" * 9 + ",faux\nNA,true\n",
    "a mark": CLEAN.encode("utf-8-sig"), "windows": CLEAN.encode() + "1,Köln,2\n".encode("cp1252"), "UTF-16": CLEAN.encode("utf-16"), "NUL": CLEAN + "1,\0,2\n",
    "no line end": CLEAN + "1,z,2", "CR": CLEAN.replace("\n", "\r"), "a CR": CLEAN + "1,x,\n2,y,\rz\n", "patterns": "*,^b$\n1,x\n",
    "CRLF": CLEAN.replace("\n", "\r\n"), "no rows": "a,b,c\n\n", "two names": "a,b,a\n1,2,3\n",
    "beyond 64 bits at first": f"a,b,c\n{2**70},x,1\n{2**70},y,2\n", "nan": "a,b,c\n.5,x,1\n.5,x,2\nnan,x,3\n",
    "large among fractions": f"a,b,c\n.5,x,1\n1,x,2\n{2**70},x,3\n", "blanks": CLEAN + "  ,  ,3\n",
    "leading zeros": CLEAN + "-007,z,2\n", "leading zeros at once": "a,b,c\n01,x,1\n2,y,1\n", "leading zeros of a text": CLEAN + "1,01,-0.5\n",
    "fractions": CLEAN.replace("0.5", "1e3"), "empty at first": "a,b,c\n,,1\n" + CLEAN[6:], "an empty row at first": "a,b,c\n,,\n" + CLEAN[6:],
    "a short row in the middle": CLEAN + "1,2\n1,2,3,4\n",
}  # fmt: skip
FILES = {name: Export("t.csv", each.encode() if isinstance(each, str) else each) for name, each in LATE.items()}
FILES |= {name: each for name, each in EXPORTS.items() if not each.file.endswith((".xlsx", ".parquet", ".xls", "kinds"))}
WHOLE = {"dates", "a long text", "beyond 64 bits", "beyond 64 bits at first", "CR", "Macintosh, lines end in CR"}  # right, and read as small files are


def _read(path: Path, csv: str, only: Any, copy: bool) -> tuple[Any, bool]:
    """The columns with their types, names, digest and notices, or the refusal; and whether the table was copied."""
    said = list[str]()
    try:
        table = read_records(path, notice=said.append, csv=csv, only=only, copy=copy)
    except InputError as error:
        return str(error), False
    columns = {name: (values.dtype.kind, np.array(values, dtype="U").tolist()) for name, values in table.columns.items()}
    return (columns, table.known, table.odd, table_digest(table), said), isinstance(table, Scanned)


def _compare(path: Path, csv: str, monkeypatch: pytest.MonkeyPatch, blocks: tuple[int, ...] = BLOCKS, columns: Sequence[str] = "b") -> bool:
    """Compares both readers on all columns and on single ones; whether the copy was used for all."""
    copies = list[bool]()
    monkeypatch.setattr(large_csv, "LARGE", 1)
    monkeypatch.setattr(large_csv, "SAMPLE", 2)
    for only in (None, *([name] for name in columns)):
        expected, _ = _read(path, csv, only, copy=False)
        for block in blocks if only is None else blocks[-1:]:
            monkeypatch.setattr(large_csv, "BLOCK", block)
            found, used = _read(path, csv, only, copy=True)
            assert found == expected
            copies.append(used)
    return all(copies[: len(blocks)])


@pytest.mark.parametrize("name", FILES)
def test_both_readers_agree(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On files of every program, and where a late row decides; in blocks of some rows. What is right is copied, but what is rare."""
    path = FILES[name].write(tmp_path)
    right = not isinstance(_read(path, FILES[name].csv, None, copy=False)[0], str)
    assert _compare(path, FILES[name].csv, monkeypatch, columns="abc" if name in LATE else "b") == (right and name not in WHOLE)


SPELT = ("+7", "-0", "007", "1.", ".5", "-.5e-3", "1E5", "1e+5", "1e", "e5", "1_000", "0x10", "inf", "-Infinity", "NaN", "1e999", "1e-320", "- 1", "1 2", "--1",
         "5%", str(2**63), str(-(2**63)), str(2**53 + 1), "0." + "1" * 60, "1" * 25 + ".5", "true", "T", "-", ".", "+", "\t3", "4 ", "2020-01-02", "Na",
         "x")  # fmt: skip


@pytest.mark.parametrize("other", short(("2.5", "3", "y"), lambda other: other == "2.5"))
def test_both_readers_agree_on_every_spelling(other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the first cell, which shows the kind of its column, and as a late one; among fractions, whole numbers and texts."""
    for word in SPELT:
        (path := tmp_path / "t.csv").write_text("".join(f"{each}\n" for each in ("a,b", f"{word},{other}", f"{other},1", f"{other},2", f"{word},{other}")))
        _compare(path, "", monkeypatch, blocks=(10,), columns="a")


def test_both_readers_agree_on_every_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of long decimal fractions, large and small."""
    path, generator = tmp_path / "t.csv", np.random.default_rng(1)
    digits = ["".join(map(str, generator.integers(10, size=generator.integers(1, 30)))) for _ in range(400)]
    path.write_text("a,b\n" + "".join(f"{one}.{other}e{len(other) - 9 * len(one)},1\n" for one, other in pairwise(digits)))
    assert _compare(path, "", monkeypatch, blocks=(1000,), columns="a")


def test_plain_cells_are_read_by_the_parser_of_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And all others by the rules of small files."""
    monkeypatch.setattr(large_csv, "LARGE", 1)
    path, asked = tmp_path / "t.csv", Mock(wraps=texts_of)
    monkeypatch.setattr(large_csv, "texts_of", asked)
    for text, only in product((CLEAN, CLEAN + ",,1\n1,x,\n"), ("a", "b", "c", "ab")):
        path.write_text(text)
        _read(path, "", only, copy=True)
        asked.assert_not_called()
    path.write_text(CLEAN + "1,NA,1\n")
    _read(path, "", "b", copy=True)
    asked.assert_called()


@pytest.mark.parametrize("seed", short(range(12), lambda seed: seed < 2))
def test_both_readers_agree_on_damaged_files(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes and characters changed at random: one outcome, read or refused."""
    generator, good = np.random.default_rng(seed), [each for each in LATE.values() if isinstance(each, str)]
    for _ in range(20):
        (path := tmp_path / "t.csv").write_bytes(damaged(str(generator.choice(good)).encode(), "text", generator))
        _compare(path, "", monkeypatch, blocks=(25,))


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_release_is_the_same_in_slices(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the curator has the table in memory or reads a hundred rows at a time; the sums of a truth are rounded otherwise."""
    path = str(written(tmp_path))
    asked = [QUESTIONS[name][0](path, seed=3).to_dict()]
    monkeypatch.setattr(large_csv, "LARGE", 1)
    monkeypatch.setattr(slices, "PART", 101)
    asked.append(QUESTIONS[name][0](path, seed=3).to_dict())
    expected, found = ({**each, "wall_s": 0, "truth": 0} for each in asked)
    assert found == expected
    for key, value in asked[0]["truth"].items():
        assert asked[1]["truth"][key] == (pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float | list) else value)


def test_the_copy_goes_when_nobody_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices keep it, a pickled table has its rows; no private table is copied, nor one for a cluster."""
    (path := tmp_path / "t.csv").write_text(CLEAN)
    monkeypatch.setattr(large_csv, "LARGE", 1)
    table = read_records(path, notice=unsaid, copy=True)
    assert isinstance(table, Scanned)
    home = Path(table.columns.files[0].path).parent
    assert home.stat().st_mode & 0o777 == 0o700
    part = table.only(["a"]).take(slice(2, 4))
    sent = pickle.loads(pickle.dumps(part))  # noqa: S301 - our own
    del table
    gc.collect()
    assert part["a"].tolist() == sent["a"].tolist() == [1, 2]
    del part
    gc.collect()
    assert not home.exists()
    monkeypatch.setattr(large_csv, "Folder", None)
    ldp.survey(path, "a > 1", private=True)
    ldp.curate.mean(path, "a", bounds=(0, 3), private=True, schema={"a": "number"}, missing="exclude", outside="clip")
    with pytest.raises(TypeError):
        ldp.survey(path, "a > 1", seed=1)


@pytest.mark.long
def test_the_copy_goes_with_an_interrupted_command(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text("a,b\n" + "1,x\n" * (large_csv.LARGE // 4))
    (made := tmp_path / "made").mkdir()
    command = [sys.executable, "-m", "local_dp", "run", "survey", "--records", str(path), "--question", "a > 1"]
    with subprocess.Popen(command, env={"TMPDIR": str(made)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        while not list(made.glob("*/*.parquet")):
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
    assert running.returncode != 0
    assert list(made.iterdir()) == []
