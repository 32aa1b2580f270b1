"""The acceptance run, and the table that it writes, whose rows name tests that there are."""

import re
from pathlib import Path

import pytest

from tests.support import acceptance
from tests.support.acceptance import CLAIMS, ROOT, Row, named_in, rows, write


def _told(text: str) -> set[str]:
    """The numbers whose figures the source of a test tells."""
    return {
        number.removeprefix("test ") for found in re.findall(r"""figure\(\s*"?((?:class )?\d+)\b|"((?:test|class) \d+): """, text) for number in found if number
    }


def test_the_table_names_tests_that_tell_their_figure() -> None:
    """docs/security.md has a row for each number, with its claim and promises; it names tests that are there, of each file that tells its figure."""
    table, told = rows(), {path.relative_to(ROOT).as_posix(): _told(path.read_text()) for path in (ROOT / "tests").glob("*/test_*.py")}
    classes = [int(name.removeprefix("class ")) for name in CLAIMS if name.startswith("class ")]
    assert [*table] == [*CLAIMS] == [*map(str, range(1, 30)), *(f"class {number}" for number in classes)]
    assert set().union(*told.values()) == CLAIMS.keys()
    for number, row in table.items():
        assert (row.promises, row.claim) == CLAIMS[number]
        assert {test.partition("::")[0] for test in named_in(row.tests)} == {file for file, numbers in told.items() if number in numbers}, number
        for file, _, name in (test.partition("::") for test in named_in(row.tests)):
            assert f"def {name}(" in (ROOT / file).read_text(), name
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
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_wrong.py").write_text(
        'def test_fails():\n    print("test 3: all is well")\n    assert False\n\n\ndef test_is_silent():\n    pass\n'
    )
    (tmp_path / "tests" / "test_right.py").write_text('def test_holds():\n    print("test 3: 5 of 5")\n    print("test 3: 5,000 of 5,000")\n')
    monkeypatch.setattr(acceptance, "ROOT", tmp_path)
    assert acceptance.run("3", "`test_wrong.py: test_fails`")[0] is None
    assert acceptance.run("3", "`test_wrong.py: test_is_silent`")[0] is None
    assert acceptance.run("3", "`test_right.py: test_holds`")[0] == Row("3", *CLAIMS["3"], "`test_right.py: test_holds`", "5,000 of 5,000")
