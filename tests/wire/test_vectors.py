"""docs/vectors: each vector and the index are what this library computes now."""

import pytest

from tests.support.vectors.__main__ import main
from tests.support.vectors.all import FILES
from tests.support.vectors.files import FOLDER, File
from tests.support.wrong import wrong


@wrong(
    "local_dp.sealing",
    "TAG = b'local-dp envelope 1\\x00'",
    "TAG = b'local-dp envelope 2\\x00'",
    "messages of clients in other languages are forged to this server",
)
@wrong(
    "local_dp.wire:checksum",
    "f'{reply.round} {reply.ask} {reply.start} {reply.width} '",
    "f'{reply.round} {reply.ask} {reply.start} '",
    "accounts of clients in other languages never agree",
)
@wrong(
    "local_dp.noise:public_coins",
    "philox_words(key, start, stop, 64)",
    "philox_words(key, start + 1, stop + 1, 64)",
    "clients in other languages compute other public coins",
)
def test_the_files_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    """`scripts/vectors --check`, which computes every file and the index anew, finds no other byte;
    each file has its cases; and the files stay small."""
    assert main(["--check"]) == 0, capsys.readouterr().err
    assert all(len(file.read()["cases"]) >= 20 for file in FILES)
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 430_000


@wrong(
    "tests.support.vectors.__main__:main",
    "files.get(name) != there.get(name)",
    "False",
    "files of an older library pass as current",
)
def test_an_old_file_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` ends with code 1 and the names of the files that are not current; an unknown option
    with 2."""
    monkeypatch.setattr(File, "text", lambda file: "{}")
    assert main(["--check"]) == 1
    assert "coins.json" in capsys.readouterr().err
    assert main(["--chek"]) == 2
