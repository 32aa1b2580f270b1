"""The list of wrong twins holds, and the run that applies them can tell a caught one from a survivor."""

from pathlib import Path

import pytest

from local_dp.experiments.lab.catalogue import NAMES
from tests.support.mutation import Mutant, load, lost, run

MUTANTS = load()


def test_every_mutant_can_still_be_applied() -> None:
    """Each wrong twin's old text occurs exactly once in its file, its new text is another, its tests and experiments exist, and its name is its own."""
    assert {mutant.name: reason for mutant in MUTANTS if (reason := lost(mutant))} == {}
    assert all(mutant.old != mutant.new and mutant.why and mutant.tests for mutant in MUTANTS)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert {name for mutant in MUTANTS for name in mutant.verdicts} <= set(NAMES)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project of one function and two tests, of which one looks."""
    (tmp_path / "double.py").write_text("def double(x: int) -> int:\n    return 2 * x\n")
    (tmp_path / "test_double.py").write_text(
        "from double import double\n\n\ndef test_it() -> None:\n    assert double(3) == 6\n\n\ndef test_nothing() -> None:\n    assert double(0) == 0\n"
    )
    return tmp_path


def _mutant(name: str, old: str, new: str, test: str) -> Mutant:
    return Mutant(name, "double.py", old, new, "it is wrong", (f"test_double.py::{test}",))


@pytest.mark.long
def test_the_run_tells_them_apart(tree: Path) -> None:
    """A twin that a test fails on is caught; one that no test sees, that does not even parse, or that has nothing to change fails the run."""
    mutants = [
        _mutant("lost", "4 * x", "3 * x", "test_it"),
        _mutant("caught", "2 * x", "3 * x", "test_it"),
        _mutant("unseen", "2 * x", "3 * x", "test_nothing"),
        _mutant("broken", "2 * x", "2 *", "test_it"),
    ]
    told: list[str] = []
    assert not run(mutants, with_verdicts=False, tell=told.append, root=tree)
    said = "lost: its old text occurs 0 times", "caught  ok", "unseen  SURVIVES  tests: passed", "broken  SURVIVES  tests: pytest ended with"
    assert all(line.startswith(start) for line, start in zip(told, said, strict=True)), told
    assert run(mutants[1:2], with_verdicts=False, tell=told.append, root=tree)
    assert "2 * x" in (tree / "double.py").read_text(), "the tree itself is never changed"


def test_nothing_is_proven_by_tests_that_fail_anyway(tree: Path) -> None:
    """A run whose tests fail without any mutant fails."""
    (tree / "double.py").write_text("def double(x: int) -> int:\n    return 5\n\n\n# 2 * x\n")
    told: list[str] = []
    assert not run([_mutant("any", "2 * x", "3 * x", "test_it")], with_verdicts=False, tell=told.append, root=tree)
    assert told[0].startswith("without any mutant, test_double.py: caught")
