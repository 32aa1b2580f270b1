"""The client's own distribution: how large its environment is, and that its clients and hosts are
those of a whole installation."""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_dp.api import tables
from local_dp.cli.main import HEAVY
from local_dp.errors import InputError
from local_dp.protocols.surveys.survey import Survey
from tests.support.inputs.documents import ROOT
from tests.support.runs.brokers import embedded
from tests.support.runs.command import command, local_dp
from tests.support.wrong import wrong

SCHEMA = {"age": "number", "n": "whole", "smokes": "truth", "city": "text 8"}
WRITTEN = {
    "plain": ("age,n,smokes,city\n34.5,7,true,Rome\n-1e3,-2,0,\n,0,1,Lake Constance\n", ""),
    "excel": (
        "age;n;smokes;city;other\n34,5;7;TRUE;Köln;x\n1.234,5;0;false;'a;y\n",
        "sep=; decimal=, encoding=latin-1",
    ),
    "quoted": ('city,age,n,smokes\n"a ""b"", c",nothing,3,1\n" d",+.5,4,FALSE\n', ""),
}


def _parts(path: Path) -> tuple[str, dict[str, str]]:
    project = tomllib.loads(path.read_text())["project"]
    return project["requires-python"], {
        line.partition(">")[0]: line for line in project["dependencies"]
    }


def test_the_client_needs_less_of_the_same() -> None:
    """Each dependency is written as in the whole package, and none is one that the message about a
    missing package names."""
    (python, whole), (same, client) = (
        _parts(ROOT / "pyproject.toml"),
        _parts(ROOT / "clients" / "pyproject.toml"),
    )
    assert same == python
    assert client.items() <= whole.items()
    assert whole.keys() - client.keys() == HEAVY


@wrong(
    "local_dp.api.plain_rows:_number",
    "cell.replace(',', '.')",
    "cell.replace(',', '')",
    "a client without Polars reports another number than its own",
    at="False-excel",
)
@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("total", [False, True])
def test_a_declared_table_is_the_same_without_polars(
    name: str, total: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns of a CSV file with a schema have the values and types that Polars reads."""
    text, form = WRITTEN[name]
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="latin-1" if form else "utf-8")
    whole = tables.read_records(path, SCHEMA, total=total, notice=tables.unsaid, csv=form)
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    alone = tables.read_records(path, SCHEMA, total=total, notice=tables.unsaid, csv=form)
    assert alone.lengths == whole.lengths
    assert [*alone.columns] == [*whole.columns]
    for column, values in whole.columns.items():
        assert alone.columns[column].dtype == values.dtype
        assert (
            np.array_equal(alone.columns[column], values, equal_nan=values.dtype.kind == "f")
            is True
        )


@pytest.mark.parametrize(
    ("text", "schema", "words"),
    [
        ("age\n1\n", None, "--schema FILE declares"),
        ("born\n1\n", {"born": "date"}, "none a date"),
        ("age\n1\n", {"size": "number"}, "lacks; there are age"),
        ("n\nmany\n", {"n": "whole"}, "another value"),
        ("yes\nmaybe\n", {"yes": "truth"}, "another value"),
        ("a,b\n1\n", {"a": "number"}, "line 2 .* has 1 cell"),
        ("a;b\n1;2\n", {"a": "number"}, "say which: csv"),
        ("a\n", {"a": "number"}, "0 rows"),
    ],
)
def test_what_cannot_be_read_without_polars_is_one_line(
    text: str, schema: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        tables.read_records(tmp_path / "t.csv", schema)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment with the client's distribution alone."""
    folder = tmp_path_factory.mktemp("client")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run(
        [folder / "bin" / "pip", "install", "-q", str(ROOT / "clients")],
        check=True,
        capture_output=True,
    )
    return folder / "bin"


@pytest.mark.long
def test_its_client_and_host_are_counted(installed: Path, tmp_path: Path) -> None:
    """A host and a client with a row of its own, from that environment, answer a server of the
    whole package: the digest is that of the population tier."""
    (row,) = Survey().synthetic(41, 3).batch(40, 41)["yes"]
    (tmp_path / "row.csv").write_text(f"yes\n{row}\n")
    (tmp_path / "schema.json").write_text('{"yes": "whole"}')
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    common = shlex.split("survey --run r --seed 3 --broker")
    with embedded() as url:
        own_command = str(installed / "local-dp")
        roles = [
            [own_command, "host", *common, url, "--clients", "40"],
            [own_command, "client", *common, url, "--index", "40"],
        ]
        roles[1] += [
            "--records",
            str(tmp_path / "row.csv"),
            "--schema",
            str(tmp_path / "schema.json"),
            "--question",
            "yes == 1",
        ]
        processes = [
            subprocess.Popen(words, env=own, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
            for words in roles
        ]
        answer = subprocess.run(
            command("server", *common, url, "--clients", "41", "--json"),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        errors = [process.communicate(timeout=30)[1] for process in processes]
    assert answer.returncode == 0, answer.stderr + "".join(errors)
    alone = json.loads(
        local_dp(*shlex.split("run survey --tier population --clients 41 --seed 3 --json")).stdout
    )
    data = json.loads(answer.stdout)
    assert data["clients"]["answered"] == 41
    assert all("epsilon spent 1" in each for each in errors)
    assert data["rounds"][0]["digest"] == alone["rounds"][0]["digest"]
