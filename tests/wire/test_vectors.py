"""docs/vectors: each vector is what this library does, and one changed bit of any of them is found."""

import json
from hashlib import sha256
from typing import Any

import pytest

from tests.support.vectors.__main__ import main
from tests.support.vectors.all import FILES
from tests.support.vectors.files import FOLDER, INDEX, Case, File


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest) -> list[tuple[Case, Case]]:
    """Each case as it is written down, and what is expected of its givens by this library."""
    return [(case, request.param.expected(case["given"])) for case in request.param.read()]


by_file = pytest.mark.parametrize("cases", FILES, indirect=True, ids=lambda file: file.name)


@by_file
def test_every_vector_holds(cases: list[tuple[Case, Case]]) -> None:
    """The library does what the files say."""
    assert len(cases) >= 20
    for case, found in cases:
        assert case["expect"] == found, case["name"]


@by_file
def test_one_changed_bit_of_an_expectation_is_found(cases: list[tuple[Case, Case]]) -> None:
    """No expectation is beside the point: with the lowest bit of any character, number or truth value changed, it differs from what is found."""
    for case, found in cases:
        changed = list(_changed(case["expect"]))
        assert changed, case["name"]
        assert all(each != found for each in changed), case["name"]


def _changed(value: Any) -> Any:
    """The value with one bit changed, at each place in turn."""
    match value:
        case dict():
            yield from ({**value, name: each} for name, part in value.items() for each in _changed(part))
        case list():
            yield from ([*value[:at], each, *value[at + 1 :]] for at, part in enumerate(value) for each in _changed(part))
        case str():
            yield from (value[:at] + chr(ord(letter) ^ 1) + value[at + 1 :] for at, letter in enumerate(value))
        case bool():
            yield not value
        case int():
            yield value ^ 1
        case None:
            yield 0


def test_one_changed_bit_of_a_file_is_found() -> None:
    """The index has the SHA-256 of every file, so that a client in another language finds any change, of givens too."""
    listed: dict[str, str] = json.loads((FOLDER / INDEX).read_text())["sha256"]
    assert listed == {path.name: sha256(path.read_bytes()).hexdigest() for path in FOLDER.glob("*.json") if path.name != INDEX}
    assert listed.keys() == {f"{file.name}.json" for file in FILES}


def test_the_files_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    """`scripts/vectors --check` finds nothing, and the files stay small."""
    assert main(["--check"]) == 0, capsys.readouterr().err
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 430_000


def test_an_old_file_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--check` ends with code 1 and the names of the files that are not current; an unknown option with 2."""
    monkeypatch.setattr(File, "text", lambda file: "{}")
    assert main(["--check"]) == 1
    assert "coins.json" in capsys.readouterr().err
    assert main(["--chek"]) == 2
