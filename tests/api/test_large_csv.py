"""A large CSV table becomes a Parquet file of a temporary folder, and is read as a small one is:
values, types, notice, digest and refusals."""

import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import local_dp as ldp
from local_dp import records as slices
from local_dp.api import tables
from local_dp.api.tables import read_records, unsaid
from local_dp.errors import InputError
from local_dp.simulation.outcome import table_digest
from local_dp.storage.scanned import Scanned
from tests.support.inputs.exports import READ, REFUSED
from tests.support.long import short
from tests.support.runs.asked import QUESTIONS
from tests.support.runs.people import written
from tests.support.wrong import wrong

FORMS = {name: (data, csv) for files in (READ, REFUSED) for name, (data, csv, *_) in files.items()}
FORMS |= {
    "dates": (b"a,b\n2020-01-02,1\n", ""),
    "a long text": (b"a,b\n" + b"x" * 300 + b",1\n", ""),
}
WHOLE = {"dates", "dates in spaces", "a long text", "a code page"}  # read as small files are


def _read(path: Path, csv: str, only: Any, copy: bool) -> tuple[Any, bool]:
    """The columns with their types, names, digest and notices, or the refusal; and whether the
    table was copied."""
    notices = list[str]()
    try:
        table = read_records(path, notice=notices.append, csv=csv, only=only, copy=copy)
    except InputError as error:
        return str(error), False
    columns = {
        name: (values.dtype.kind, np.array(values, dtype="U").tolist())
        for name, values in table.columns.items()
    }
    return (columns, table.names, table.odd, table_digest(table), notices), isinstance(
        table, Scanned
    )


@wrong(
    "local_dp.api.tables:read_records",
    "_copy_of(source, frame, names)",
    "None",
    "memory grows with the rows of a CSV file",
    at="leading zeros",
)
@pytest.mark.parametrize("name", FORMS)
def test_a_large_file_is_read_as_a_small_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns and one, with the same notice, or the same refusal."""
    data, csv = FORMS[name]
    (path := tmp_path / "t.csv").write_bytes(data)
    monkeypatch.setattr(tables, "LARGE", 1)
    for only in (None, ["b"]):
        expected, _ = _read(path, csv, only, copy=False)
        result, lazy = _read(path, csv, only, copy=True)
        assert result == expected
        assert lazy or name in WHOLE or isinstance(result, str)


MEMORY = """
import resource, sys
from pathlib import Path
from local_dp.api.tables import read_records
table = read_records(Path(sys.argv[1]), notice=print, only=["a"], copy=True)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(sum(int(part["a"].sum()) for part in table.parts()), len(table), memory)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows_of_a_csv_file(tmp_path: Path) -> None:
    """Four times as many rows, 0.3 GB and 1.1 GB in two files of a folder, take at most 64 MiB
    more."""
    part = "".join(
        f"{n % 97},{n * 0.37:.3f},Oslo,{n * 31 % 1009},{'x' * 40}\n" for n in range(1 << 16)
    ).encode()
    peaks = []
    for rows in (2 << 21, 8 << 21):
        (folder := tmp_path / str(rows)).mkdir()
        for name in "ab":
            with (folder / f"{name}.csv").open("wb") as file:
                file.write(b"a,b,c,d,e\n")
                file.writelines([part] * (rows >> 17))
        two = {**os.environ, "POLARS_MAX_THREADS": "2"}  # each thread has buffers of its own
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, str(folder)],
            env=two,
            capture_output=True,
            text=True,
            check=True,
        )
        total, length, peak = map(int, done.stdout.splitlines()[-1].split())
        assert total == sum(n % 97 for n in range(1 << 16)) * (rows >> 16)
        assert length == rows
        peaks.append(peak)
    assert peaks[1] <= peaks[0] + 64, peaks


@wrong(
    "local_dp.curator.multisets:Multiset._merge",
    "np.add",
    "np.maximum",
    "a value in many parts of a table counts as in one of them",
    at="intervals",
)
@pytest.mark.parametrize("name", short(QUESTIONS, lambda name: name in ("intervals", "mean")))
def test_every_release_is_the_same_in_slices(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the curator has the table in memory or reads a hundred rows at a time; the sums of a
    truth are rounded otherwise."""
    path = str(written(tmp_path))
    releases = [QUESTIONS[name][0](path, seed=3).to_dict()]
    monkeypatch.setattr(tables, "LARGE", 1)
    monkeypatch.setattr(slices, "PART", 101)
    releases.append(QUESTIONS[name][0](path, seed=3).to_dict())
    expected, result = ({**each, "wall_s": 0, "truth": 0} for each in releases)
    assert result == expected
    for key, value in releases[0]["truth"].items():
        assert releases[1]["truth"][key] == (
            pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float | list) else value
        )


@wrong(
    "local_dp.api.asking:RunOptions.copied",
    "self.private or self.cluster",
    "self.cluster",
    "a private table lies in a temporary folder",
)
def test_the_copy_goes_when_nobody_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices keep it, a pickled table has its rows; no private table is copied, nor one for a
    cluster."""
    (path := tmp_path / "t.csv").write_text("a,b\n" + "1,x\n2,y\n" * 9)
    monkeypatch.setattr(tables, "LARGE", 1)
    table = read_records(path, notice=unsaid, copy=True)
    assert isinstance(table, Scanned)
    home = Path(table.columns.files[0].path).parent
    assert home.stat().st_mode & 0o777 == 0o700
    part = table.only(["a"]).take(slice(2, 4))
    copy = pickle.loads(pickle.dumps(part))  # noqa: S301 - our own
    del table
    gc.collect()
    assert part["a"].tolist() == copy["a"].tolist() == [1, 2]
    del part
    gc.collect()
    assert not home.exists()
    monkeypatch.setattr(tables, "Folder", None)
    ldp.survey(path, "a > 1", private=True)
    ldp.curate.mean(
        path,
        "a",
        bounds=(0, 3),
        private=True,
        schema={"a": "number"},
        missing="exclude",
        outside="clip",
    )
    with pytest.raises(TypeError):
        ldp.survey(path, "a > 1", seed=1)
