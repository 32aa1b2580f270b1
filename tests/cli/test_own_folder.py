"""The installed package works in a folder of the user's own with names of ours, and its types reach
the user."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.inputs.documents import ROOT

RUN = ["run", "survey", "--clients", "5", "--tier", "processes", "--json"]
LINE = (
    "import local_dp as ldp; r = ldp.survey({'a': [0, 1] * 5}, 'a > 0', seed=1, tier='hosts', "
    "notice=str); print(type(r).__name__)"
)
OWN = (
    "import server, clients, experiments; assert server.MARK == clients.MARK == experiments.MARK "
    "== 'own'; "
)
# as the installed script, whose own folder comes first
START = "import sys; sys.path.pop(0); from local_dp.cli.main import main; main()"
WAYS = {
    "local-dp": ["-c", START, *RUN],
    "python -m": ["-m", "local_dp", *RUN],
    "python -c": ["-c", OWN + LINE],
    "script": ["ask.py"],
    "experiment": ["-c", START, "experiment", "reconstruction", "--quick", "--out", "results"],
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the tree, unpacked as in site-packages."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    assert {each.name for each in (folder / "site").iterdir() if each.suffix != ".dist-info"} == {
        "local_dp"
    }
    return folder / "site"


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_names_of_ours_are_free_for_the_user(way: str, installed: Path, tmp_path: Path) -> None:
    """In a folder with an own server.py, clients and experiments, everything works, and these names
    are the user's modules."""
    (tmp_path / "server.py").write_text("MARK = 'own'\n")
    for name in ("clients", "experiments"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("MARK = 'own'\n")
    (tmp_path / "ask.py").write_text(f"if __name__ == '__main__':\n    {OWN}{LINE}\n")
    surroundings = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, *WAYS[way]],
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Result" in done.stdout or way not in ("python -c", "script")


@pytest.mark.long
def test_types_reach_the_user(installed: Path, tmp_path: Path) -> None:
    """mypy --strict sees the results, and an unknown option is an error; as of any installed
    package, it does not look into function bodies."""
    pytest.importorskip("mypy")
    (tmp_path / "own.py").write_text(
        "import local_dp as ldp\nt = {'a': [1, 2]}\nreveal_type(ldp.survey(t, 'a > "
        "1'))\nreveal_type(ldp.curate.median(t, 'a', epsilon=1.0))\n"
        "ldp.survey(t, 'a > 1', epsilo=1.0)\nldp.curate.median(t, 'a', epsilo=1.0)\n"
    )
    surroundings = {**os.environ, "MYPYPATH": str(installed)}
    words = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports",
        "silent",
        "--cache-dir",
        str(tmp_path / "cache"),
        "own.py",
    ]
    output = subprocess.run(
        words,
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    ).stdout
    assert 'own.py:3: note: Revealed type is "local_dp.api.result.Result"' in output
    assert 'own.py:4: note: Revealed type is "local_dp.api.trusted.Release"' in output
    assert [
        line.split(":")[1] for line in output.splitlines() if "epsilo" in line and "error" in line
    ] == ["5", "6"]


@pytest.mark.long
def test_an_installed_bench_says_where_it_is(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "local_dp", "bench"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, len(done.stderr.splitlines()), "repository" in done.stderr) == (
        2,
        1,
        True,
    )
