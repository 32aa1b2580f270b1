"""Class 20, the curator: `local-dp curate` and `budget` as commands, killed at moments over their
whole length."""

import json
import random
from pathlib import Path

import pytest

from local_dp.errors import InputError
from local_dp.loss import Pure
from local_dp.storage.budget_file import KeptBudget
from tests.support.figures import figure
from tests.support.runs.command import local_dp
from tests.support.runs.killed import Command

QUESTIONS = (
    ("median", "--column", "age"),
    ("mean", "--column", "age", "--low", "0", "--high", "100"),
    ("histogram", "--column", "age", "--pure"),
)
PRICE = 10**7  # nano-nats of one answer


class Table:
    """A table with a budget, about which commands ask."""

    def __init__(self, line: str, folder: Path) -> None:
        self.line, self.folder, self.budget = line, folder, folder / "a.budget"
        (folder / "t.csv").write_text("age\n" + "\n".join(map(str, range(18, 90))) + "\n")
        KeptBudget.create(self.budget, Pure(10**12))

    def ask(self, *question: str) -> Command:
        words = (
            "--records",
            str(self.folder / "t.csv"),
            "--epsilon",
            "0.01",
            "--budget",
            str(self.budget),
            "--seed",
            "1",
            "--json",
        )
        return Command(self.line, self.folder, "curate", *question, *words)

    def charges(self) -> int:
        """How many answers are paid; the file is whole."""
        spent = KeptBudget(self.budget).standing().spent
        assert spent == Pure(PRICE * (spent.nano // PRICE))
        return spent.nano // PRICE

    def lengths(self) -> list[float]:
        """The seconds that each question takes where nobody kills it: the second time, when all of
        it is in memory."""
        for _ in range(2):
            lengths = []
            for question in QUESTIONS:
                command = self.ask(*question)
                assert command.code() == 0, command.err
                lengths.append(command.length)
        return lengths


@pytest.mark.parametrize("kills", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_a_killed_curate_has_paid(kills: int, interpreter: str, tmp_path: Path) -> None:
    """Killed at a moment of its length, or every third time at the first byte of its answer: what
    is printed is paid, and at most one answer more each time."""
    table, generator = Table(interpreter, tmp_path), random.Random(21)
    lengths, ends = table.lengths(), {"paid and printed": 0, "paid, not printed": 0, "not paid": 0}
    for turn in range(kills):
        before, which = table.charges(), turn // 3 % 3
        command = table.ask(*QUESTIONS[which])
        if turn % 3 == 0:
            command.kill_once_it_prints()
        else:
            command.kill_after(generator.uniform(0, 1.1 * lengths[which]))
        paid = table.charges() - before
        assert paid in (0, 1)
        assert paid or not command.out, "an answer without its charge"
        ends[
            "not paid" if not paid else "paid and printed" if command.out else "paid, not printed"
        ] += 1
    listing = json.loads(local_dp("budget", str(table.budget), "--json").stdout)
    assert len(listing["charges"]) == table.charges()
    assert round(1e9 * (1000 - listing["left"]["epsilon"])) == PRICE * table.charges()
    assert ends["paid and printed"] >= kills // 3
    assert table.ask(*QUESTIONS[0]).code() == 0
    figure("class 20", f"{kills} kills of `curate`, 0 unpaid")
    print(ends)


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_budget_is_whole_or_refused(kills: int, interpreter: str, tmp_path: Path) -> None:
    """`local-dp budget FILE --epsilon 1`, killed: no file, the whole budget, or a file that every
    command refuses with one line."""
    generator, length, ends = random.Random(22), 0.0, {"none": 0, "whole": 0, "refused": 0}
    for turn in range(kills + 1):
        path = tmp_path / f"{turn}.budget"
        command = Command(interpreter, tmp_path, "budget", str(path), "--epsilon", "1")
        if turn == 0:
            assert command.code() == 0, command.err
            length = command.length
            continue
        command.kill_after(generator.uniform(0, 1.1 * length))
        if not path.exists():
            ends["none"] += 1
            assert local_dp("budget", str(path), "--epsilon", "1").returncode == 0
            continue
        try:
            assert KeptBudget(path).standing().left == Pure(10**9)
            ends["whole"] += 1
        except InputError:
            done = local_dp("budget", str(path))
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
            ends["refused"] += 1
        assert local_dp("budget", str(path), "--epsilon", "2").returncode == 2, "begun again"
    figure("class 20", f"{kills} of `budget`")
    print(ends)
