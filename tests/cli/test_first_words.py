"""Every command says something within a second: what an interpreter computes before the first sign on the screen, and the pause before a line is drawn."""

from pathlib import Path

import psutil
import pytest

from local_dp.experiments.cli.commands import COMMANDS
from local_dp.experiments.lab.runner import run_experiments
from local_dp.experiments.text.screen import SCREEN
from tests.support.long import short
from tests.support.runs.terminal import Terminal

SECOND = 1.0
AWAY = ("--broker", "mqtt://127.0.0.1:1", "--run", "nowhere")  # nobody listens there
TYPED: dict[str, list[tuple[str, ...]]] = {
    "run": [("survey", "--seed", "1"), ("masked-parity", "--tier", "processes", "--clients", "300"), ("mean", "--tier", "population", "--clients", "1e8")],
    "plan": [("quantiles", "--clients", "1e5")],
    "compare": [("survey", "--out", "compared")],
    "curate": [("histogram", "--records", "fair.csv", "--column", "age")],
    "budget": [("fair.budget", "--epsilon", "1")],
    "price": [("pure 0.1 x 100",)],
    "shuffle": [("grr", "--set", "k=16")],
    "mix": [("frequency", "--clients", "100000")],
    "attack": [("reconstruct", "--records", "fair.csv", "--question", "age > 30", "--noise", "1")],
    **{name: [()] for name in ("protocols", "randomizers", "queries", "mechanisms", "runs", "bench", "schema")},
    "describe": [("masked-parity",)],
    "audit": [("prefix-signs", "--set", "k=512")],
    "server": [("survey", *AWAY, "--clients", "10")],
    "resume": [("nowhere",)],
    "show": [("nowhere",)],
    "shuffler": [(*AWAY, "--clients", "10", "--crowd", "5")],
    "host": [("survey", *AWAY, "--clients", "10")],
    "client": [("survey", *AWAY, "--index", "0")],
    "experiment": [("parity",)],
    "report": [("results",)],
    "dimension": [("signed-conjunctions",)],
    "certify": [("certificate.json",)],
    "coverage": [("survey",)],
    "export": [("fair", "fair.csv")],
    "docs": [("--no-gallery", "--no-open")],
    "keys": [("create", "host.key")],
    "broker-config": [("broker", "--member", "host-0")],
}
EVERY = [(name, arguments) for name, many in TYPED.items() for arguments in many]


def test_every_command_is_timed() -> None:
    assert TYPED.keys() == COMMANDS.keys()


def first_words(*arguments: str) -> float:
    """The processor time of a command in a terminal until something is drawn there, in seconds; then it is killed, with all that it started."""
    terminal = Terminal(*arguments)
    terminal.wait_for(r"\S")
    try:
        used = terminal.process.cpu_times()
    except psutil.NoSuchProcess:
        pytest.fail(f"local-dp {' '.join(arguments)} had ended before it could be timed")
    for each in (*terminal.process.children(recursive=True), terminal.process):
        each.kill()
    terminal.end()
    return float(used.user + used.system)


@pytest.mark.parametrize(
    ("name", "arguments"),
    short(EVERY, lambda each: each[0] in ("curate", "bench") and each[1] == TYPED[each[0]][0], several=True),
    ids=[" ".join((name, *arguments[:1])) for name, arguments in EVERY],
)
def test_a_command_says_something_within_a_second(name: str, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "report":
        run_experiments(["tests.support.inputs.toy_experiment"], "quick", 1, tmp_path / "results", workers=1)
    turns = (first_words(name, *arguments) for _ in range(3))
    assert any(used + SCREEN.delay <= SECOND for used in turns)
