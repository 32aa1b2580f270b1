"""The acceptance run, and the table that it writes, whose rows name tests that there are."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import acceptance
from tests.support.acceptance import ROOT, Row, named_in, rows, write


def _told(text: str) -> set[str]:
    """The numbers whose figures the source of a test tells."""
    return {
        number.removeprefix("test ")
        for found in re.findall(
            r"""figure\(\s*"?((?:class )?\d+)\b|"((?:test|class) \d+): """, text
        )
        for number in found
        if number
    }


def test_the_table_names_tests_that_tell_their_figure() -> None:
    """docs/security.md has a row for each number, with its promises; it names tests that are there,
    of each file that tells its figure."""
    table, told = (
        rows(),
        {
            path.relative_to(ROOT).as_posix(): _told(path.read_text())
            for path in (ROOT / "tests").glob("*/test_*.py")
        },
    )
    assert [*table] == [
        *map(str, range(1, 30)),
        *(f"class {number}" for number in range(1, len(table) - 28)),
    ]
    assert set().union(*told.values()) == table.keys()
    for number, row in table.items():
        assert re.fullmatch(r"P[1-8]( P[1-8])*", row.promises)
        assert {test.partition("::")[0] for test in named_in(row.tests)} == {
            file for file, numbers in told.items() if number in numbers
        }, number
        for file, _, name in (test.partition("::") for test in named_in(row.tests)):
            assert f"def {name}(" in (ROOT / file).read_text(), name
        assert row.figure


ROW = Row("3", "P5", "It holds", "`test_right.py: test_holds`", "old")


def test_a_row_is_written_in_its_place(tmp_path: Path) -> None:
    """The new figure replaces the old one; other rows and the rest of the page stay; a bar in a
    figure is no column."""
    page, other = tmp_path / "page.md", replace(ROW, number="class 3")
    page.write_text(f"before\n\n{ROW}\n{other}\n\nafter\n")
    write(new := replace(ROW, figure="new \\| er"), page)
    assert page.read_text() == f"before\n\n{new}\n{other}\n\nafter\n"
    assert rows(page) == {"3": new, "class 3": other}


@pytest.mark.long
def test_a_failing_test_has_no_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The wrong twin: a test that fails, or prints nothing, leaves no figure behind. Of a short and
    a long form the long one's figure stays."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_wrong.py").write_text(
        'def test_fails():\n    print("test 3: all is well")\n    assert False\n\n\ndef '
        "test_is_silent():\n    pass\n"
    )
    (tmp_path / "tests" / "test_right.py").write_text(
        'def test_holds():\n    print("test 3: 5 of 5")\n    print("test 3: 5,000 of 5,000")\n'
    )
    monkeypatch.setattr(acceptance, "ROOT", tmp_path)
    assert acceptance.run(replace(ROW, tests="`test_wrong.py: test_fails`"))[0] is None
    assert acceptance.run(replace(ROW, tests="`test_wrong.py: test_is_silent`"))[0] is None
    assert acceptance.run(ROW)[0] == replace(ROW, figure="5,000 of 5,000")
