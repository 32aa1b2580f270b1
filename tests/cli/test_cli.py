"""The command line as a person uses it: output, exit codes, one-line errors, Ctrl-C."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from local_dp.bus.mqtt import MqttBus
from local_dp.curator.mechanism import mechanisms
from local_dp.protocols.registry import PROTOCOLS
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from tests.support.long import short
from tests.support.runs.brokers import mosquitto, needs_mosquitto
from tests.support.runs.command import command, local_dp, outcome_of

pytestmark = pytest.mark.usefixtures("warm")


def lines_of(text: str) -> list[str]:
    """What went wrong, line by line: without the rounds that were played and the notice that the clients are few."""
    return [line for line in text.strip().splitlines() if not line.startswith("round ") and not line.startswith("You have ")]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that gives up a broker it cannot reach after a fifth of a second, not after five."""
    patiently = MqttBus.messages
    monkeypatch.setattr(MqttBus, "messages", lambda bus, patience: patiently(bus, min(patience, 0.2)))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A small sorted table with numbers and text."""
    path = tmp_path / "people.csv"
    rows = [f"{20 + index % 50},{'yes' if index < 150 else 'no'},{('north', 'south', 'east')[index % 3]}" for index in range(500)]
    path.write_text("age,smokes,home town\n" + "\n".join(rows) + "\n")
    return path


def test_the_json_outcome_has_what_is_promised() -> None:
    """A default masked-parity run: every promised key, two rounds of one bit, nobody missing, the budget spent and not exceeded."""
    data = outcome_of("masked-parity", "--seed", "7", "--tier", "hosts")
    assert {"protocol", "model", "tier", "epsilon", "clients", "rounds", "result", "max_epsilon_spent", "private", "seed", "wall_s"} <= data.keys()
    assert {"asked", "answered", "refused", "late", "duplicate", "missing"} <= data["clients"].keys()
    assert (data["protocol"], data["model"], data["tier"], data["seed"], data["private"]) == ("masked-parity", "LI", "hosts", 7, False)
    assert data["stamp"] == "simulation: not private"
    assert [{"n", "bits_per_client", "seconds"} <= round.keys() for round in data["rounds"]] == [True, True]
    assert [round["bits_per_client"] for round in data["rounds"]] == [1, 1]
    assert sum(round["n"] for round in data["rounds"]) == data["clients"]["asked"] == data["clients"]["answered"]
    assert data["max_epsilon_spent"] == data["epsilon"] == 1.0
    assert {"hypothesis", "true_error"} <= data["result"].keys()


def test_private_runs_show_no_seed() -> None:
    """A private run reports private and no seed, and carries no simulation stamp."""
    data = outcome_of("survey", "--private", "--clients", "200")
    assert (data["private"], data["seed"]) == (True, None)
    assert data["result"]["true_error"] is None, "beside the estimate it would give the exact answer away"
    assert "stamp" not in data


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["survey", "--question", "smokes == 'yes' and age < 60"], "estimate"),
        (["frequency", "--column", "home town", "--labels-from-data"], "estimate"),
        (["mean", "--column", "age", "--set", "low=0", "--set", "high=100"], "estimate"),
        (["sq", "--set", "queries=age >= 30; smokes == 'yes'", "--set", "tolerances=0.1; 0.2"], "estimate"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_tables_run_through_every_protocol(table: Path, arguments: list[str], key: str) -> None:
    """A CSV table with numbers and text runs through each protocol, all rows by default, and the truth is within 5 standard errors."""
    data = outcome_of(*arguments, "--records", str(table), "--seed", "1", "--tier", "population")
    assert data["clients"]["asked"] == 500
    errors = data["result"]["standard_error"]
    worst = max(errors) if isinstance(errors, list) else errors
    assert data["result"][key]
    assert data["result"]["true_error"] <= 5 * worst


def test_a_sorted_table_is_dealt_at_random(table: Path) -> None:
    """Fewer clients than rows are a random sample, the same in every tier: the first rows of a sorted table would all say yes."""
    arguments = ["survey", "--records", str(table), "--question", "smokes == 'yes'", "--clients", "120", "--seed", "5", "--epsilon", "8"]
    runs = [outcome_of(*arguments, "--tier", tier) for tier in ("population", "hosts")]
    assert len({run["rounds"][0]["digest"] for run in runs}) == 1
    assert runs[0]["result"]["true_error"] < 0.2


WRONG: dict[str, tuple[list[str], int, str]] = {
    "protocol": (["telepathy"], 2, "telepathy"),
    "epsilon zero": (["survey", "--epsilon", "0"], 2, "epsilon is 0"),
    "epsilon negative": (["survey", "--epsilon", "-1"], 2, "epsilon is -1"),
    "epsilon nan": (["survey", "--epsilon", "nan"], 2, "epsilon is 'nan'; give a number"),
    "epsilon infinite": (["survey", "--epsilon", "inf"], 2, "epsilon is inf"),
    "clients": (["survey", "--clients", "0"], 2, "clients is 0"),
    "hosts": (["survey", "--hosts", "0"], 2, "hosts is 0"),
    "k": (["frequency", "--set", "k=1"], 2, "k is 1"),
    "d": (["masked-parity", "--set", "d=65"], 2, "d is 65"),
    "d zero": (["masked-parity", "--set", "d=0"], 2, "d is 0"),
    "parameter": (["survey", "--set", "q=1"], 2, "no parameter 'q'"),
    "parameter form": (["survey", "--set", "p"], 2, "KEY=VALUE"),
    "parameter value": (["survey", "--set", "p=many"], 2, "p is 'many'"),
    "share": (["survey", "--set", "p=1.5"], 2, "p is 1.5"),
    "question": (["survey", "--question", "yes >"], 2, "cannot read the question"),
    "quorum": (["survey", "--quorum", "2"], 2, "the quorum is 2"),
    "deadline": (["survey", "--deadline", "-1"], 2, "the deadline is -1"),
    "seed and private": (["survey", "--seed", "1", "--private"], 2, "takes no seed"),
    "private aggregate": (["survey", "--tier", "aggregate", "--private"], 2, "cannot be private"),
    "seed": (["survey", "--seed", "-1"], 2, "seed is -1"),
    "missing file": (["survey", "--records", "nowhere.csv", "--question", "a > 1"], 2, "no file 'nowhere.csv'"),
    "randomizer": (["survey", "--set", "randomizer=telepathy"], 4, "telepathy"),
    "allow-list": (["survey", "--clients", "20", "--allow", "grr"], 4, "not on the clients' list"),
    "broker url": (["survey", "--broker", "http://x"], 2, "cannot use the broker 'http://x'"),
    "broker": (["survey", "--broker", "mqtt://127.0.0.1:1"], 5, "cannot reach the broker mqtt://127.0.0.1:1"),
    "plot": (["survey", "--plot", "figure.txt"], 2, "figure.txt"),
    "too many hosted": (["survey", "--epsilon", "0.0001"], 2, "use --tier aggregate"),
    "too many simulated": (["survey", "--tier", "population", "--clients", "100000000000"], 2, "at most 10,000,000,000"),
    "too many at all": (["survey", "--tier", "aggregate", "--clients", "10000000000000000"], 2, "use fewer clients"),
    "too many processes": (["survey", "--tier", "processes", "--clients", "100000"], 2, "too many"),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_gets_one_line(name: str) -> None:
    """What is wrong, with which value: one line on standard error, the documented exit code, no traceback."""
    arguments, code, words = WRONG[name]
    done = local_dp("run", *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert len(lines_of(done.stderr)) == 1
    assert done.stdout == ""


def test_wrong_tables_get_one_line(table: Path, tmp_path: Path) -> None:
    """Empty tables, unknown columns, other formats, missing bounds and too many clients are explained in a line."""
    empty, odd, broken = tmp_path / "empty.csv", tmp_path / "table.xlsx", tmp_path / "broken.parquet"
    empty.write_text("a,b\n")
    odd.write_text("x")
    broken.write_bytes(b"PAR1 not really")
    for arguments, words in (
        (["survey", "--records", str(empty), "--question", "a > 1"], "0 rows"),
        (["survey", "--records", str(odd), "--question", "a > 1"], ".csv or .parquet"),
        (["survey", "--records", str(broken), "--question", "a > 1"], "cannot read 'broken.parquet'"),
        (["survey", "--records", str(table), "--question", "income > 1"], "no column 'income'"),
        (["survey", "--records", str(table), "--question", "smokes > 1"], "compare like with like"),
        (["mean", "--records", str(table), "--column", "age"], "public bounds"),
        (["mean", "--records", str(table), "--column", "smokes", "--set", "low=0", "--set", "high=1"], "is text"),
        (["frequency", "--records", str(table), "--column", "income"], "no column 'income'"),
        (["frequency", "--records", str(table), "--column", "smokes", "--private"], "list them"),
        (["frequency", "--records", str(table), "--column", "smokes", "--private", "--set", "labels_from_data=true"], "declare the labels"),
        (["survey", "--records", str(table), "--question", "age > 1", "--clients", "501"], "has 500 rows"),
        (["masked-parity", "--records", str(table)], "leave out --records"),
    ):
        done = local_dp("run", *arguments)
        assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1), done.stderr
        assert words in done.stderr


@needs_mosquitto
def test_a_wrong_password_is_told_in_a_line(tmp_path: Path) -> None:
    """A broker that wants a password: the right one runs, a wrong one gets exit code 5 and a line that names the user, not the password."""
    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "lab", "right"], check=True)
    passwords.chmod(0o644)
    tmp_path.chmod(0o755)
    with mosquitto(tmp_path, "allow_anonymous false", f"password_file {passwords}", "user root") as broker:
        host = broker.url.removeprefix("mqtt://")
        right = local_dp("run", "survey", "--clients", "50", "--broker", f"mqtt://lab:right@{host}", "--json")
        assert right.returncode == 0, right.stderr
        for user in ("lab:wrong@", ""):
            wrong = local_dp("run", "survey", "--clients", "50", "--broker", f"mqtt://{user}{host}")
            assert (wrong.returncode, len(lines_of(wrong.stderr))) == (5, 1), wrong.stderr
            assert "refused" in wrong.stderr
            assert ":wrong" not in wrong.stderr


@pytest.mark.long
@needs_mosquitto
@pytest.mark.usefixtures("impatient")
def test_tls_with_a_private_authority(tmp_path: Path) -> None:
    """Over mqtts:// a run trusts the authority it is given, and without it refuses the broker: exit code 5, one line."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    made += ["-keyout", str(key), "-out", str(certificate), *subject]
    subprocess.run(made, check=True, capture_output=True)
    with mosquitto(tmp_path, "allow_anonymous true", f"certfile {certificate}", f"keyfile {key}", "user root") as broker:
        url = broker.url.replace("mqtt://", "mqtts://")
        trusted = local_dp("run", "survey", "--clients", "20", "--tier", "processes", "--broker", f"{url}?ca={certificate}", "--json")
        assert trusted.returncode == 0, trusted.stderr
        assert json.loads(trusted.stdout)["clients"]["answered"] == 20
        stranger = local_dp("run", "survey", "--clients", "50", "--broker", url)
        assert (stranger.returncode, len(lines_of(stranger.stderr))) == (5, 1), stranger.stderr
        assert "certificate" in stranger.stderr
        missing = local_dp("run", "survey", "--clients", "50", "--broker", f"{url}?ca=nowhere.pem")
        assert (missing.returncode, len(lines_of(missing.stderr))) == (2, 1), missing.stderr


@needs_mosquitto
def test_the_roles_join_from_separate_commands(tmp_path: Path) -> None:
    """A server, a host with 90 clients and a client of its own, started as three commands, meet at a broker and finish the run."""
    with mosquitto(tmp_path) as broker:
        common = ["survey", "--broker", broker.url, "--run", "meeting"]
        commands = [
            ["host", *common, "--start", "0", "--clients", "90", "--seed", "3"],
            ["client", *common, "--index", "90", "--seed", "3"],
            ["server", *common, "--clients", "91", "--seed", "3", "--json", "--quorum", "1"],
        ]
        running = [subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for words in commands]
        outputs = [process.communicate(timeout=60) for process in running]
        assert [process.returncode for process in running] == [0, 0, 0], outputs
        data = json.loads(outputs[2][0])
        assert data["clients"]["answered"] == 91
        alone = outcome_of("survey", "--clients", "91", "--seed", "3", "--tier", "population")
        assert data["rounds"][0]["digest"] == alone["rounds"][0]["digest"]
        assert "epsilon spent 1" in outputs[0][1]


@pytest.mark.long
@needs_mosquitto
@pytest.mark.parametrize("brokers", [1, 2])
def test_a_shuffler_joins_from_a_command_of_its_own(brokers: int, tmp_path: Path) -> None:
    """Over one broker or two, the estimate is the same as without a shuffler, and both epsilons are printed."""
    folders = [tmp_path / name for name in ("clients", "server")]
    for folder in folders:
        folder.mkdir()
    with mosquitto(folders[0]) as near, mosquitto(folders[1]) as far:
        server = far if brokers == 2 else near
        run = ["--run", "mixed", "--seed", "3"]
        commands = [
            *(["host", "survey", *run, "--broker", near.url, "--start", str(start), "--clients", "60"] for start in (0, 60)),
            ["shuffler", *run, "--broker", near.url, "--clients", "120", *(["--server-broker", far.url] if brokers == 2 else [])],
            ["server", "survey", *run, "--broker", server.url, "--clients", "120", "--quorum", "1", "--shuffle", "--json"],
        ]
        running = [subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for words in commands]
        outputs = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0, 0], outputs
    data = json.loads(outputs[-1][0])
    alone = outcome_of("survey", "--clients", "120", "--seed", "3", "--tier", "population")
    assert data["result"]["estimate"] == alone["result"]["estimate"]
    assert data["rounds"][0]["digest"] != alone["rounds"][0]["digest"]
    assert data["shuffled"]["upper"] < data["shuffled"]["local"] == 1.0
    assert "the run is over" in outputs[0][1]


@pytest.mark.long
@needs_mosquitto
def test_a_server_without_the_table_tells_no_true_error(table: Path, tmp_path: Path) -> None:
    """A server without the clients' table runs their question and prints no true error; a run's name must fit a topic."""
    with mosquitto(tmp_path) as broker:
        common = ["survey", "--broker", broker.url, "--run", "tableless", "--question", "age > 40"]
        host = subprocess.Popen(command("host", *common, "--records", str(table), "--seed", "1"), stderr=subprocess.DEVNULL)
        served = local_dp("server", *common, "--clients", "500", "--json")
        assert host.wait(timeout=30) == 0
        assert served.returncode == 0, served.stderr
        assert json.loads(served.stdout)["result"]["true_error"] is None
        assert json.loads(served.stdout)["clients"]["answered"] == 500
    wrong = local_dp("server", "survey", "--broker", "mqtt://127.0.0.1:1", "--run", "a b")
    assert (wrong.returncode, len(wrong.stderr.strip().splitlines())) == (2, 1), wrong.stderr
    assert "'a b'" in wrong.stderr


@pytest.mark.long
@needs_mosquitto
def test_members_are_let_go_when_a_run_fails(tmp_path: Path) -> None:
    """When the clients refuse and the server stops (exit code 4), the host ends as well."""
    with mosquitto(tmp_path) as broker:
        common = ["survey", "--broker", broker.url, "--run", "refusing"]
        host = subprocess.Popen(command("host", *common, "--clients", "50", "--allow", "grr"), stderr=subprocess.DEVNULL)
        assert local_dp("server", *common, "--clients", "50").returncode == 4
        assert host.wait(timeout=20) == 0


def started(clients: int) -> psutil.Popen:
    """A run over client processes that has just begun to start them."""
    running = psutil.Popen(command("run", "survey", "--tier", "processes", "--clients", str(clients)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    end = time.monotonic() + 30
    while not running.children() and time.monotonic() < end:
        time.sleep(0.02)
    return running


@pytest.mark.parametrize("after", short([0.1, 0.6, 1.2], lambda after: after == 0.1))
def test_ctrl_c_ends_everything(after: float) -> None:
    """Interrupted while its processes start or run, the command ends by itself and leaves no process."""
    running = started(300)
    time.sleep(after)
    family = running.children(recursive=True)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=20)
    assert running.returncode == 130, errors
    assert b"Traceback" not in errors
    _, alive = psutil.wait_procs(family, timeout=6)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.long
def test_a_killed_command_leaves_nothing() -> None:
    """When the command itself is killed without a word, its broker, its helper and its clients end by themselves."""
    running = started(100)
    time.sleep(0.7)
    family = running.children(recursive=True)
    running.kill()
    running.communicate()
    _, alive = psutil.wait_procs(family, timeout=15)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_what_there_is_can_be_listed() -> None:
    """Each list has one line an entry under the name of its theme, and every entry is described by itself."""
    for listing, names, row in (
        ("protocols", list(PROTOCOLS), r"^  masked-parity +LI +Learns"),
        ("randomizers", list(RANDOMIZERS), r"^  discrete-laplace +Adds"),
        ("queries", list(QUERIES), r"^  bounded +A numeric column"),
        ("mechanisms", [kind.__name__ for kind in mechanisms()], r"^  ExponentialMechanism +pure +The"),
    ):
        shown = local_dp(listing).stdout.splitlines()
        assert sorted(re.findall(r"^  (\S+)", "\n".join(shown), re.MULTILINE)) == sorted(names)
        assert max(map(len, shown)) <= 80
        assert re.search(row, "\n".join(shown), re.MULTILINE), listing
    assert "mechanism, pure" in local_dp("describe", "ExponentialMechanism").stdout
    assert "Privacy" in local_dp("describe", "grr").stdout
    assert "protocol, model LI" in local_dp("describe", "masked-parity").stdout
    assert local_dp("describe", "telepathy").returncode == 2
