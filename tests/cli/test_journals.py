"""What outlives a process, on the command line: runs that are listed, shown and resumed, and what a client's store was spent on."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from local_dp.experiments.api.budget import budget
from local_dp.experiments.tiers.installation import runs_folder, stores_folder
from local_dp.server.journal import Journal
from tests.support.inputs.builders import request, survey_query
from tests.support.runs.brokers import mosquitto, needs_mosquitto
from tests.support.runs.command import command, enrolled, local_dp
from tests.support.runs.stores import CLIENTS, asked, member


@pytest.mark.long
@needs_mosquitto
def test_a_private_run_is_kept_and_its_members_remember(tmp_path: Path) -> None:
    """A private run: its members' stores and its journal lie in the user's folder; `runs` and `show` tell it, its name is used up, and so is the budget."""
    with mosquitto(tmp_path) as broker:
        enrolled(tmp_path, 0, clients=40)
        common = ["survey", "--broker", broker.url, "--private"]
        served = [*common, "--quorum", "0.1", "--key", str(tmp_path / "server.key"), "--roster", str(tmp_path / "roster"), "--clients", "40"]
        options = [*common, "--key", str(tmp_path / "host-0.key"), "--server-key", str(tmp_path / "server.key.pub"), "--clients", "40"]
        for run, replies in (("first", True), ("second", False)):
            host = subprocess.Popen(command("host", *options, "--run", run), stderr=subprocess.PIPE, text=True)
            done = local_dp("server", *served, "--run", run)
            assert (done.returncode, host.wait(timeout=20)) == (0 if replies else 4, 0), done.stderr
            assert host.stderr is not None
            assert ("1 of 1 rounds confirmed" if replies else "epsilon spent 0") in host.stderr.read()
        again = local_dp("server", *served, "--run", "first")
        assert (again.returncode, "resume first" in again.stderr) == (2, True)
    assert "Budgets match: all 40 reports are accounted for." in " ".join(local_dp("show", "first").stdout.split())
    assert json.loads(local_dp("show", "first", "--json").stdout)["clients"]["answered"] == 40
    listed = local_dp("runs").stdout
    assert all(part in listed for part in ("done", "0 of 1 rounds closed"))
    assert "0 of 1 rounds closed" in local_dp("show", "second").stdout
    assert (local_dp("resume", "first").returncode, local_dp("show", "third").returncode) == (2, 2)
    spent = local_dp("budget", str(stores_folder() / "host-0.store"))
    assert "epsilon 1 of 1 spent for life; 0 is left" in " ".join(spent.stdout.split())
    assert "first" in spent.stdout


def test_a_run_in_which_nothing_was_asked_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that finds no broker leaves nothing, and can be started again under the same name; of a run that is kept, the password is not."""
    for _ in range(2):
        done = local_dp("server", "survey", "--broker", "mqtt://127.0.0.1:1", "--run", "lost", "--clients", "5", "--joining", "0.1")
        assert done.returncode in (3, 5), done.stderr
    assert not list(runs_folder().glob("*"))
    monkeypatch.setattr(Journal, "standing", lambda journal: (0, 1, 0))
    local_dp("server", "survey", "--broker", "mqtt://me:secret-word@127.0.0.1:1", "--run", "lost", "--clients", "5", "--joining", "0.1")
    (kept,) = runs_folder().glob("*.run")
    assert b"127.0.0.1:1" in kept.read_bytes()
    assert b"secret-word" not in kept.read_bytes()
    assert kept.stat().st_mode & 0o077 == 0


def test_a_budget_tells_runs_and_labels(tmp_path: Path) -> None:
    """What a store was spent on, by run and by label, and what is left for life; the curator's budgets are printed as before."""
    path = tmp_path / "a.store"
    role = member(path, 1.0, 3.0)
    for number, run in ((1, "spring"), (2, "spring"), (1, "autumn")):
        role.handle(asked(number, 0.25, run))
    role.handle(request(replace(survey_query(CLIENTS), memo="weekly"), number=3, run="autumn"))
    role.handle(request(replace(survey_query(CLIENTS), memo="monthly"), number=4, run="winter"))
    assert local_dp("budget", str(path)).returncode == 2, "the client has it open"
    role.store.close()  # type: ignore[attr-defined]
    output = budget(path)
    assert (output.data["spent"], output.data["lifetime"], output.data["left"]) == (1.75, 3.0, 1.25)
    assert output.data["runs"] == [
        {"run": "spring", "epsilon": 0.5, "rounds": 2},
        {"run": "autumn", "epsilon": 0.25, "rounds": 1},
        {"run": "winter", "epsilon": 1.0, "rounds": 1},
    ]
    assert output.data["labels"] == [{"label": "monthly", "run": "winter", "epsilon": 1.0}]
    assert "1.25 is left" in " ".join(output.text().split())
    made = local_dp("budget", str(tmp_path / "table.budget"), "--epsilon", "2")
    assert (made.returncode, "a budget of epsilon 2" in " ".join(made.stdout.split())) == (0, True)
