"""The acceptance run finds each figure's test, and the table that it writes names tests that there are."""

import re
from pathlib import Path

import pytest

from tests.support import acceptance
from tests.support.acceptance import CLAIMS, Row, found_in, named, rows, write

SOURCE = """
import pytest
from tests.support.figures import figure

def _told(times):
    figure(7, f"{times} times")

def test_it():
    _told(3)

@pytest.mark.slow
def test_it_for_long():
    _told(3000)

def test_another():
    print(f"class 4: {2} of 3; test 9: is no figure here")

def test_nothing():
    print("nothing: 3", 4)
    figure()
"""


def test_the_tests_of_a_figure_are_found(tmp_path: Path) -> None:
    """By the call of `figure`, also in a shared function; the long form stands for the short one."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(SOURCE)
    assert found_in(tmp_path) == {"7": ["tests/test_it.py::test_it_for_long"], "class 4": ["tests/test_it.py::test_another"]}


def test_every_figure_has_its_claim() -> None:
    """No test prints the figure of a number that is not on the list; the list has 29 tests and the classes in their order, each with a promise."""
    assert found_in().keys() <= CLAIMS.keys()
    classes = [int(name.removeprefix("class ")) for name in CLAIMS if name.startswith("class ")]
    assert classes == sorted({*range(1, 13), *classes})
    assert [*CLAIMS] == [*map(str, range(1, 30)), *(f"class {number}" for number in classes)]
    assert all(re.fullmatch(r"P[1-8]( P[1-8])*", promises) for promises, _ in CLAIMS.values())


def test_the_table_names_tests_that_are_there() -> None:
    """docs/security.md has a row for each number, with its claim and promises, which names just the tests that tell its figure now."""
    tests, table = found_in(), rows()
    assert [*table] == [*CLAIMS]
    for number, row in table.items():
        assert (row.promises, row.claim) == CLAIMS[number]
        assert row.tests == named(tests.get(number, [])), f"run scripts/acceptance --write {number}"
        assert row.figure


def test_rows_are_written_in_their_place(tmp_path: Path) -> None:
    """A new row replaces the old one of its number, in the list's order; the others and the rest of the page stay; a bar in a figure is no column."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{acceptance.BEGIN}\n{acceptance.END}\n\nafter\n")
    first, second, other = (Row("2", *CLAIMS["2"], "`a`", text) for text in ("old", "new | er".replace("|", "\\|"), "x"))
    write({"2": first, "class 3": Row("class 3", *CLAIMS["class 3"], "`b`", "1 of 2")}, page)
    write({"2": second, "1": Row("1", *CLAIMS["1"], "`c`", other.figure)}, page)
    assert [*rows(page)] == ["1", "2", "class 3"]
    assert rows(page)["2"] == second
    assert page.read_text().startswith("before\n\n<!--")
    assert page.read_text().endswith("-->\n\nafter\n")


@pytest.mark.long
def test_a_failing_test_has_no_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The wrong twin: a test that fails, or prints nothing, leaves no figure behind. Of a short and a long form the long one's figure stays."""
    (tmp_path / "test_wrong.py").write_text('def test_fails():\n    print("test 3: all is well")\n    assert False\n\n\ndef test_is_silent():\n    pass\n')
    (tmp_path / "test_right.py").write_text('def test_holds():\n    print("test 3: 5 of 5")\n    print("test 3: 5,000 of 5,000")\n')
    monkeypatch.setattr(acceptance, "ROOT", tmp_path)
    assert acceptance.run("3", ["test_wrong.py::test_fails"])[0] is None
    assert acceptance.run("3", ["test_wrong.py::test_is_silent"])[0] is None
    assert acceptance.run("3", ["test_right.py::test_holds"])[0] == Row("3", *CLAIMS["3"], "`test_right.py: test_holds`", "5,000 of 5,000")
