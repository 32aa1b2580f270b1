"""The command line as a person uses it: output, exit codes, one-line errors, Ctrl-C; and what
outlives a process."""

import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from local_dp.api.costs import budget
from local_dp.cli.run.stored import MOST, SETTING, store
from local_dp.curator.mechanism import mechanisms
from local_dp.oracles.local.memory import Memoised
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.server.remote import Journal
from local_dp.simulation.installation import runs_folder
from tests.support.inputs.builders import request, survey_query
from tests.support.runs.brokers import mosquitto, needs_mosquitto
from tests.support.runs.command import local_dp, outcome_of, together
from tests.support.runs.stores import CLIENTS, asked, member
from tests.support.wrong import wrong

pytestmark = pytest.mark.usefixtures("warm")


def lines_of(text: str) -> list[str]:
    """What went wrong, line by line: without the rounds that were played and the notice that the
    clients are few."""
    return [
        line
        for line in text.strip().splitlines()
        if not line.startswith("round ") and not line.startswith("You have ")
    ]


def test_the_json_outcome_has_what_is_promised() -> None:
    """A default masked-parity run: two rounds of one bit, nobody missing, the budget spent and not
    exceeded."""
    data = outcome_of("masked-parity", "--seed", "7", "--tier", "hosts")
    assert data["protocol"] == "masked-parity"
    assert data["model"] == "LI"
    assert data["tier"] == "hosts"
    assert data["seed"] == 7
    assert data["private"] is False
    assert data["stamp"] == "simulation: not private"
    assert [round["bits_per_client"] for round in data["rounds"]] == [1, 1]
    assert (
        sum(round["n"] for round in data["rounds"])
        == data["clients"]["asked"]
        == data["clients"]["answered"]
    )
    assert data["max_epsilon_spent"] == data["epsilon"] == 1.0
    assert {"hypothesis", "true_error"} <= data["result"].keys()


@wrong(
    "local_dp.simulation.outcome:as_data",
    "truth_known and (not settings.randomness.private)",
    "truth_known",
    "beside a private estimate stands the exact answer",
)
def test_private_runs_show_no_seed() -> None:
    data = outcome_of("survey", "--private", "--clients", "200")
    assert data["private"] is True
    assert data["seed"] is None
    assert data["result"]["true_error"] is None, (
        "beside the estimate it would give the exact answer away"
    )
    assert "stamp" not in data


@needs_mosquitto
def test_a_wrong_password_is_told_in_a_line(tmp_path: Path) -> None:
    """A broker that wants a password: the right one runs, a wrong one gets exit code 5 and a line
    that names the user, not the password."""
    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "lab", "right"], check=True)
    passwords.chmod(0o644)
    tmp_path.chmod(0o755)
    with mosquitto(
        tmp_path, "allow_anonymous false", f"password_file {passwords}", "user root"
    ) as broker:
        host = broker.url.removeprefix("mqtt://")
        right = local_dp(
            "run", "survey", "--clients", "50", "--broker", f"mqtt://lab:right@{host}", "--json"
        )
        assert right.returncode == 0, right.stderr
        for user in ("lab:wrong@", ""):
            wrong = local_dp("run", "survey", "--clients", "50", "--broker", f"mqtt://{user}{host}")
            assert wrong.returncode == 5, wrong.stderr
            assert len(lines_of(wrong.stderr)) == 1, wrong.stderr
            assert "refused" in wrong.stderr
            assert ":wrong" not in wrong.stderr


@pytest.mark.long
@needs_mosquitto
def test_a_shuffler_joins_from_a_command_of_its_own(tmp_path: Path) -> None:
    """Between two brokers: the estimate is the same as without a shuffler, and both epsilons are
    printed."""
    folders = [tmp_path / name for name in ("clients", "server")]
    for folder in folders:
        folder.mkdir()
    with mosquitto(folders[0]) as near, mosquitto(folders[1]) as far:
        run = ["--run", "mixed", "--seed", "3"]
        commands = [
            *(
                [
                    "host",
                    "survey",
                    *run,
                    *shlex.split(f"--broker {near.url} --start {start} --clients 60"),
                ]
                for start in (0, 60)
            ),
            [
                "shuffler",
                *run,
                *shlex.split(f"--broker {near.url} --clients 120 --server-broker {far.url}"),
            ],
            [
                "server",
                "survey",
                *run,
                *shlex.split(f"--broker {far.url} --clients 120 --quorum 1 --shuffle --json"),
            ],
        ]
        processes = together(*commands)
    assert [each.returncode for each in processes] == [0, 0, 0, 0], processes
    data = json.loads(processes[-1].stdout)
    alone = outcome_of(*shlex.split("survey --clients 120 --seed 3 --tier population"))
    assert data["result"]["estimate"] == alone["result"]["estimate"]
    assert data["rounds"][0]["digest"] != alone["rounds"][0]["digest"]
    assert data["shuffled"]["upper"] < data["shuffled"]["local"] == 1.0
    assert "the run is over" in processes[0].stderr


def test_what_there_is_can_be_listed() -> None:
    """Each list has one line an entry under the name of its theme, and every entry is described by
    itself."""
    for listing, names, row in (
        ("protocols", list(PROTOCOLS), r"^  masked-parity +LI +Learns"),
        ("randomizers", list(RANDOMIZERS), r"^  discrete-laplace +[\d.]+ +Adds"),
        ("queries", list(QUERIES), r"^  bounded +Clips"),
        (
            "mechanisms",
            [kind.__name__ for kind in mechanisms()],
            r"^  ExponentialMechanism +pure +Chooses",
        ),
    ):
        text = local_dp(listing).stdout.splitlines()
        assert sorted(re.findall(r"^  (\S+)", "\n".join(text), re.MULTILINE)) == sorted(names)
        assert re.search(row, "\n".join(text), re.MULTILINE), listing
    for name, line in (
        ("ThresholdedHistogram", "approximate, neighbours: replace"),
        ("LabelPrivateLearner", "pure, neighbours: labels"),
    ):
        assert local_dp("describe", name).stdout.startswith(f"{name} (mechanism, {line})\n")
    assert "Privacy" in local_dp("describe", "grr").stdout
    assert "protocol, model LI" in local_dp("describe", "masked-parity").stdout
    assert local_dp("describe", "telepathy").returncode == 2


@wrong(
    "local_dp.api.asking:play",
    "False",
    "True",
    "the log of a run has the exact answer and a digest of the table",
)
def test_ordinary_runs_are_listed_and_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`runs` lists what `run` ended with, and `show` prints it: without truth and table, readable
    by its owner alone. One setting turns it off."""
    table = tmp_path / "ages.csv"
    table.write_text("age\n" + "31\n62\n" * 20_000)
    arguments = shlex.split(f"mean-found --records {table} --column age --seed 1 --epsilon 4")
    data = outcome_of(*arguments)
    (log,) = runs_folder().glob("*")
    assert log.stat().st_mode & 0o077 == 0
    run = log.stem
    lines = local_dp("runs").stdout
    assert run in lines
    assert "mean-found" in lines
    assert "done" in lines
    text = json.loads(local_dp("show", run, "--json").stdout)
    result = {**data["result"], "truth": None, "true_error": None}
    assert "mean_of_column" in result, "the truth of more than the estimate"
    assert text == {
        **data,
        "table": None,
        "wall_s": text["wall_s"],
        "result": {name: result[name] for name in text["result"]},
    }
    assert {*result} - {*text["result"]} == {"mean_of_column", "true_outside"}
    assert str(int(text["result"]["estimate"])) in local_dp("show", run).stdout
    assert local_dp("resume", run).returncode == 2
    assert local_dp("show", f"{run}-2").returncode == 2
    log.write_text("{")
    assert "unreadable" in local_dp("runs").stdout
    assert local_dp("show", run).returncode == 2
    assert local_dp("show", "../x").returncode == 2
    monkeypatch.setenv(SETTING, "off")
    outcome_of(*arguments)
    assert [*runs_folder().glob("*")] == [log]


def test_the_log_keeps_the_last_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many runs within a second each has its own name; beyond the limit the oldest go; a folder
    that cannot be written is a note."""
    for place in range(MOST + 3):
        store({"protocol": f"p{place}"})
        store({"protocol": "p"})
    names = {path.name[: path.name.index("-")] for path in runs_folder().glob("*")}
    assert len([*runs_folder().glob("*")]) == MOST
    assert {f"p{MOST + 2}", "p"} <= names
    assert "p0" not in names
    monkeypatch.setattr(
        Path, "touch", lambda *_, **__: (_ for _ in ()).throw(PermissionError("no"))
    )
    store({"protocol": "p"})


def test_a_run_in_which_nothing_was_asked_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that finds no broker leaves nothing, and can be started again under the same name;
    of a run that is kept, the password is not."""
    for _ in range(2):
        done = local_dp(
            *shlex.split(
                "server survey --broker mqtt://127.0.0.1:1 --run lost --clients 5 --joining 0.1"
            )
        )
        assert done.returncode in (3, 5), done.stderr
    assert not list(runs_folder().glob("*"))
    monkeypatch.setattr(Journal, "standing", lambda journal: (0, 1, 0))
    local_dp(
        *shlex.split(
            "server survey --broker mqtt://me:secret-word@127.0.0.1:1 --run lost --clients "
            "5 --joining 0.1"
        )
    )
    (file,) = runs_folder().glob("*.run")
    assert b"127.0.0.1:1" in file.read_bytes()
    assert b"secret-word" not in file.read_bytes()
    assert file.stat().st_mode & 0o077 == 0


def test_a_budget_tells_runs_and_labels(tmp_path: Path) -> None:
    """What a store was spent on, by run and by label, and what is left for life; the curator's
    budgets are printed as before."""
    path = tmp_path / "a.store"
    role = member(path, 1.0, 3.0)
    for number, run in ((1, "spring"), (2, "spring"), (1, "autumn")):
        role.handle(asked(number, 0.25, run))
    role.handle(
        request(replace(survey_query(CLIENTS), repeat=Memoised("weekly")), number=3, run="autumn")
    )
    role.handle(
        request(replace(survey_query(CLIENTS), repeat=Memoised("monthly")), number=4, run="winter")
    )
    assert local_dp("budget", str(path)).returncode == 2, "the client has it open"
    role.store.close()  # type: ignore[attr-defined]
    output = budget(path)
    assert output.data["spent"] == 1.75
    assert output.data["lifetime"] == 3.0
    assert output.data["left"] == 1.25
    assert output.data["runs"] == [
        {"run": "spring", "epsilon": 0.5, "rounds": 2},
        {"run": "autumn", "epsilon": 0.25, "rounds": 1},
        {"run": "winter", "epsilon": 1.0, "rounds": 1},
    ]
    assert output.data["labels"] == [{"label": "monthly", "run": "winter", "epsilon": 1.0}]
    assert "1.25 is left" in " ".join(output.text().split())
    done = local_dp("budget", str(tmp_path / "table.budget"), "--epsilon", "2")
    assert done.returncode == 0
    assert "a budget of epsilon 2" in " ".join(done.stdout.split())
