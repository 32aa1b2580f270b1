"""docs/vectors: each vector and the index are what this library computes now."""

import pytest

from tests.support.vectors.__main__ import main
from tests.support.vectors.all import FILES
from tests.support.vectors.files import FOLDER, File


def test_the_files_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    """`scripts/vectors --check`, which computes every file and the index anew, finds no other byte;
    each file has its cases; and the files stay small."""
    assert main(["--check"]) == 0, capsys.readouterr().err
    assert all(len(file.read()["cases"]) >= 20 for file in FILES)
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 430_000


def test_an_old_file_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` ends with code 1 and the names of the files that are not current; an unknown option
    with 2."""
    monkeypatch.setattr(File, "text", lambda file: "{}")
    assert main(["--check"]) == 1
    assert "coins.json" in capsys.readouterr().err
    assert main(["--chek"]) == 2
