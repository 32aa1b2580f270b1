"""Results as files: a table by the ending of its name, and beside it how it came about."""

import json
import shlex
from pathlib import Path
from typing import Any

import polars
import pytest

import local_dp as ldp
from local_dp.simulation.installation import provenance
from tests.support.runs.command import local_dp
from tests.support.wrong import wrong

HOW: dict[str, Any] = {"tier": "aggregate", "clients": 500, "seed": 7}
FACTS = {"command", "local-dp", "python", "numpy", "system", "processor", "cores", "seed", "code"}


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_a_result_is_written_by_its_ending(ending: str, tmp_path: Path) -> None:
    """The table of --out is the result's frame, and as JSON what --json prints; the file beside it
    says how to make it again."""
    out, result = tmp_path / f"t.{ending}", ldp.run("frequency", k=3, **HOW)
    line = f"run frequency --k 3 --tier aggregate --clients 500 --seed 7 --out {out} --json"
    done = local_dp(*shlex.split(line))
    if ending == "json":
        assert json.loads(out.read_text()) == json.loads(done.stdout)
    else:
        read = (
            polars.read_parquet(out)
            if ending == "parquet"
            else polars.read_csv(out, schema_overrides={"label": polars.String})
        )
        assert read.equals(result.to_polars())
    about = json.loads((tmp_path / "t.provenance.json").read_text())
    assert about.keys() == FACTS
    assert about["seed"] == 7
    assert about["command"] == f"local-dp {line}"
    assert all(about[name] for name in FACTS)
    assert {path.name for path in tmp_path.iterdir()} == {out.name, "t.provenance.json"}


def test_a_release_and_a_mixture_are_written_too(tmp_path: Path) -> None:
    """A private release has no seed; a password in an address is not written."""
    (tmp_path / "t.csv").write_text("age\n" + "".join(f"{20 + row % 40}\n" for row in range(400)))
    (tmp_path / "schema.json").write_text('{"age": "number"}')
    path = tmp_path / "t.csv"
    command = (
        f"curate mean --records {path} --column age --low 0 --high 100 --outside clip --missing "
        "exclude --private --epsilon 1"
    ).split()
    assert (
        local_dp(
            *command,
            "--schema",
            str(tmp_path / "schema.json"),
            "--out",
            str(tmp_path / "r.parquet"),
        ).returncode
        == 0
    )
    assert polars.read_parquet(tmp_path / "r.parquet").height == 1
    assert json.loads((tmp_path / "r.provenance.json").read_text())["seed"] is None
    assert (
        local_dp(
            *shlex.split(f"mix frequency --k 3 --clients 2000 --seed 1 --out {tmp_path}/m.csv")
        ).returncode
        == 0
    )
    assert len((tmp_path / "m.csv").read_text().splitlines()) == 4


@wrong(
    "local_dp.simulation.installation:provenance",
    "re.sub('//[^/@\\\\s]*@', '//', shlex.join(words))",
    "shlex.join(words)",
    "the file beside a table has the password of the broker",
)
def test_a_password_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.argv",
        ["/x/local_dp/__main__.py", "run", "survey", "--broker", "mqtts://me:secret@host:8883"],
    )
    assert provenance(None, "0")["command"] == "local-dp run survey --broker mqtts://host:8883"


def test_what_cannot_be_written_is_refused_before_it_is_paid(tmp_path: Path) -> None:
    """Another ending, no such folder, and a table of a result that is none: one line, and no
    run."""
    for words, line in (
        (("survey", "--out", "t.txt"), "ends in .parquet, .csv or .json"),
        (("survey", "--out", str(tmp_path / "no" / "t.csv")), "create it first"),
        (
            ("parity", "--out", str(tmp_path / "t.csv")),
            "there is no table; give an --out that ends in .json",
        ),
    ):
        done = local_dp("run", *words, "--tier", "aggregate", "--seed", "1")
        assert done.returncode == 2
        assert done.stdout == ""
        assert line in done.stderr
    assert (
        local_dp(
            *shlex.split(f"run parity --tier aggregate --seed 1 --out {tmp_path}/t.json")
        ).returncode
        == 0
    )
