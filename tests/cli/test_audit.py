"""`local-dp audit`: what it says of randomizers that are right, that are broken, and that cannot be made."""

import json
from pathlib import Path

import pytest

from tests.support.runs.command import local_dp

MODULE = """
from dataclasses import dataclass
from local_dp.randomizers.frequencies.grr import GRR

@dataclass(frozen=True, kw_only=True)
class Truth(GRR):
    def respond(self, values, words, cells):
        return values.astype(self.report_dtype)

class Bare: ...

@dataclass(frozen=True, kw_only=True)
class Angry(GRR):
    def prepare(self):
        raise ZeroDivisionError("no\\nway")
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the user's own with a module, from which the command is called."""
    (tmp_path / "audited_here.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # taken off the path again at the end


def test_right_and_broken_classes_are_told_apart() -> None:
    """The grade, the exact loss and the two inputs that reach it, exit code 0; of a broken class the witness, and exit code 4."""
    done = local_dp("audit", "grr", "--set", "k=8", "--epsilon", "0.5", "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, data["grade"], data["holds"]) == (0, "exact", True)
    assert 0.5 - 1e-6 < data["loss"] <= 0.5
    assert len(data["findings"][0]["witness"]["inputs"]) == 2
    assert "8 of 8 inputs" in local_dp("audit", "grr", "--set", "k=8").stdout
    done = local_dp("audit", "audited_here:Truth", "--set", "k=3")
    assert done.returncode == 4
    assert all(part in done.stdout for part in ("IT DOES NOT HOLD", "ratio infinite"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["grrr"], "did you mean 'grr'"),
        (["grr", "--set", "k=1"], "k is 1"),
        (["grr", "--set", "j=1"], "unexpected keyword"),
        (["grr", "--set", "k"], "KEY=VALUE"),
        (["grr", "--epsilon", "40"], "epsilon is 40.0"),
        (["nowhere_at_all:Class"], "No module named"),
        (["audited_here:Missing"], "has no attribute"),
        (["audited_here:Bare"], "is no randomizer"),
        (["audited_here:Angry"], "ZeroDivisionError: no way"),
    ],
)
def test_what_cannot_be_made_is_said_in_one_line(arguments: list[str], words: str) -> None:
    done = local_dp("audit", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
