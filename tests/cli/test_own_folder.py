"""The installed package works in a folder of the user's own with names of ours, and its types reach
the user."""

import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.inputs.documents import ROOT

RUN = shlex.split("run survey --clients 5 --tier processes --json")
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
