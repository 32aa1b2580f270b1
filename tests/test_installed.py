"""The distributions in an empty environment, and a newcomer's first hour."""

import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.inputs.documents import ROOT, blocks

pytestmark = pytest.mark.slow
PATIENCE = 1200.0  # seconds for an installation, on a machine that has much else to do


def _type(command: str, folder: Path) -> str:
    """What a command prints that is typed into a shell. Raises AssertionError where it fails."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as archive_file:
        archive_file.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def test_the_wheel_runs_in_an_empty_environment(source: Path, tmp_path: Path) -> None:
    """A wheel made of the source distribution, in an environment with nothing else: version, and a
    mean in a line of Python."""
    make = [
        sys.executable,
        *shlex.split(f"-m pip wheel -q --no-deps --no-build-isolation -w {tmp_path} {source}"),
    ]
    subprocess.run(make, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    _type(f"{sys.executable} -m venv empty && empty/bin/pip install -q '{wheel}'", tmp_path)
    version = _type(
        "empty/bin/python -c 'import local_dp; print(local_dp.__version__)'", tmp_path
    ).strip()
    assert _type("empty/bin/local-dp --version", tmp_path).split() == ["local-dp", version]
    line = (
        "import local_dp as ldp; print(ldp.mean({'age': [20, 30, 40] * 2000}, 'age', bounds=(0, "
        "50), epsilon=4, seed=1).estimate)"
    )
    assert abs(float(_type(f'empty/bin/python -c "{line}"', tmp_path)) - 30) < 3


def test_a_newcomers_first_hour(source: Path) -> None:
    """The README's first commands print what stands there, those of the tests for one room; then a
    CSV file of one's own, asked in shell and in Python."""
    first, test = (
        next(each for each in blocks(ROOT / "README.md", "sh") if word in each)
        for word in ("run survey", "pytest -q")
    )
    output = " ".join(_type(first.strip(), source).split())
    assert all(
        " ".join(line.split()) in output
        for line in blocks(ROOT / "README.md", "text")[0].splitlines()
    )
    assert re.search(r"\d+ passed", _type(f"{test.strip()} -n 0 tests/text", source))
    rows = [f"{'Bern' if place % 3 else 'Basel'},{18 + place % 50}" for place in range(3000)]
    (source / "own.csv").write_text("\n".join(("town,age", *rows)) + "\n")
    question = "town == 'Bern'"
    assert question in _type(
        (
            f'.venv/bin/local-dp run survey --records own.csv --question "{question}" --epsilon 2 '
            "--seed 1"
        ),
        source,
    )
    assert "Basel" in _type(
        (
            ".venv/bin/local-dp run frequency --records own.csv --column town --labels "
            "'Basel;Bern' --seed 1"
        ),
        source,
    )
    line = "import local_dp as ldp; print(ldp.mean('own.csv', 'age', bounds=(18, 67), seed=1))"
    assert "3,000 answered" in _type(f'.venv/bin/python -c "{line}"', source)
