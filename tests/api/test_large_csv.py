"""A large CSV table is copied to Parquet files some rows at a time, and read as a small one is: values, types, notice, digest and refusals."""

import gc
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import local_dp as ldp
from local_dp import records as slices
from local_dp.errors import InputError
from local_dp.experiments.api import large_csv
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
}  # fmt: skip
FILES = {name: Export("t.csv", each.encode() if isinstance(each, str) else each) for name, each in LATE.items()}
FILES |= {name: each for name, each in EXPORTS.items() if not each.file.endswith((".xlsx", ".parquet", ".xls", "kinds"))}
WHOLE = {"dates", "a long text", "beyond 64 bits", "CR", "Macintosh, lines end in CR"}  # read by the reader of small files, though they are right


def _read(path: Path, csv: str, only: Any, copy: bool) -> tuple[Any, bool]:
    """The columns with their types, names, digest and notices, or the refusal; and whether the table was copied."""
    said = list[str]()
    try:
        table = read_records(path, notice=said.append, csv=csv, only=only, copy=copy)
    except InputError as error:
        return str(error), False
    columns = {name: (values.dtype.kind, np.array(values, dtype="U").tolist()) for name, values in table.columns.items()}
    return (columns, table.known, table.odd, table_digest(table), said), isinstance(table, Scanned)


def _compare(path: Path, csv: str, monkeypatch: pytest.MonkeyPatch, blocks: tuple[int, ...] = BLOCKS) -> bool:
    """Compares both readers on all columns and on one; whether the copy was used for all."""
    copies = list[bool]()
    monkeypatch.setattr(large_csv, "LARGE", 1)
    for only in (None, ["b"]):
        expected, _ = _read(path, csv, only, copy=False)
        for block in blocks:
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
    assert _compare(path, FILES[name].csv, monkeypatch) == (right and name not in WHOLE)


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
    monkeypatch.setattr(large_csv, "TemporaryDirectory", None)
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
