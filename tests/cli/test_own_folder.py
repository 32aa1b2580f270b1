"""The command works from a folder of the user's own that holds folders with the names of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local_dp.experiments.lab.catalogue import load, module_of
from local_dp.experiments.lab.store import MeasurementStore, code_stamp

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A researcher's folder with packages called experiments, clients and server, and a module called multiprocessing, each of which ends a program."""
    for name in ("experiments", "clients", "server"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported from the folder of the user')\n")
    (tmp_path / "multiprocessing.py").write_text("raise SystemExit('imported from the folder of the user')\n")
    return tmp_path


def _measured_but_for_two(results: Path) -> None:
    """A stopped run of the experiment: enough is left for two workers, and no more than that."""
    module = module_of("randomized-response")
    experiment = load(module)
    store = MeasurementStore(results / experiment.name, code_stamp(module))
    missing = [experiment.points("quick")[place] for place in (0, -1)]
    for point in experiment.points("quick"):
        if point not in missing:
            store.add(point, 1, {"mean_square": 1.0, "relative_error": 0.1})


@pytest.mark.parametrize(
    "command",
    [
        ["run", "survey", "--clients", "5", "--tier", "processes", "--json"],
        ["run", "survey", "--clients", "5", "--json"],
        pytest.param(["experiment", "randomized-response", "--quick", "--seed", "1", "--out", "results"], marks=pytest.mark.long),
    ],
    ids=["processes", "hosts", "experiment"],
)
def test_folders_of_the_same_name_do_no_harm(folder: Path, command: list[str]) -> None:
    """Runs over processes and hosts, and an experiment that goes on with its workers, import ours: nothing of the user's folder is touched."""
    _measured_but_for_two(folder / "results")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = "import sys; sys.path.pop(0); from local_dp.experiments.cli.main import main; main()"  # as the installed script does, whose own folder is first
    done = subprocess.run([sys.executable, "-c", start, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "imported from the folder" not in done.stderr + done.stdout
