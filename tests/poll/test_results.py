"""The result of a poll as JSON, CSV and a page: the same numbers, labels as text only, and what was
and was not promised."""

import asyncio
import csv
import io
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local_dp.cli.run import poll as command
from local_dp.errors import InputError
from local_dp.server.poll.questions import Question, Questions
from local_dp.server.poll.results import data_of, page_of, table_of, text_of, write
from local_dp.server.poll.run import Poll
from local_dp.server.remote import Journal
from local_dp.simulation.settings import EMBEDDED
from tests.support.runs.command import local_dp
from tests.support.runs.polls import Person, plan, serving

HOSTILE = ("<script>alert(1)</script>", "=1+1", "x\u202ey")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A poll with hostile labels, which one person answered."""
    questions = Questions(
        "<b>title</b>",
        (
            Question("q1", "Did you?", 1.0),
            Question("q2", HOSTILE[0], 1.0, HOSTILE),
            Question("q3", "How long?", 1.0, low=0.0, high=9.0),
        ),
    )

    async def play() -> dict[str, Any]:
        async with serving(tmp_path_factory.mktemp("poll"), plan(questions)) as server:
            task = asyncio.create_task(Person.of(1, HOSTILE[1]).answer(server.link))
            await server.until(1, 1, 1)
            result = await server.close()
            await task
            return data_of(result)

    return asyncio.run(play())


def test_the_three_forms_agree(data: dict[str, Any], tmp_path: Path) -> None:
    write(data, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == data
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "result.csv").read_text())))
    assert [float(row["value"]) for row in rows] == [
        each["value"] for question in data["questions"] for each in question["estimates"]
    ]
    page = (tmp_path / "out" / "result.html").read_text()
    assert all(line in page for line in (*data["promised"], *data["not_promised"]))
    assert all(line in text_of(data) for line in (*data["promised"], *data["not_promised"]))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="give another --out"):
        write(data, tmp_path / "file" / "out")


def test_where_the_result_goes_is_tried_before_anybody_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the place of the folder of --out, and a folder that cannot be made: no poll is
    begun."""
    monkeypatch.setattr(command, "continued", lambda *_: pytest.fail("the poll was opened"))
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", Path("/proc/x")):
        done = local_dp("poll", "Did you?", "--out", str(out), "--journal", str(tmp_path / "polls"))
        assert (done.returncode, "give another --out" in done.stderr, done.stderr.count("\n")) == (
            2,
            True,
            1,
        )
    assert not (tmp_path / "polls").exists()


def test_a_result_that_cannot_be_written_is_printed(
    data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The folder became a file while people answered."""

    async def play(*_: object) -> None:
        (tmp_path / "out").write_text("")

    monkeypatch.setattr(Poll, "play", play)
    monkeypatch.setattr(command, "data_of", lambda _: data)
    settings = plan()
    with (
        closing(Journal.begin(tmp_path, settings.run, settings.to_dict())) as journal,
        pytest.raises(InputError, match="cannot write the result"),
    ):
        command.continued(journal, EMBEDDED, tmp_path / "out", as_json=True)
    assert json.loads(capsys.readouterr().out) == data


def test_labels_are_text_only(data: dict[str, Any]) -> None:
    """No tag, script or handler of a label in the page; no formula of one in the table; no
    character that turns text around on a screen."""
    assert not re.search(r"(?i)<(script|b)\b|\b(onclick|src|href)=", page_of(data))
    assert "default-src 'none'" in page_of(data)
    assert "'=1+1" in table_of(data)
    assert "\u202e" not in page_of(data)


def test_what_was_promised(data: dict[str, Any]) -> None:
    """A real poll was private; with made-up people the result says so."""
    assert (data["private"], data["epsilon"], data["accounts"]) == (
        True,
        3.0,
        {"given": 1, "agree": True},
    )
    assert "epsilon 3." in data["promised"][0]


@pytest.mark.long
def test_a_rehearsal_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up people of one seed give the same reports in every rehearsal, and the result is not
    said to be private."""
    monkeypatch.setattr("local_dp.server.poll.demo.TAKES", 0.5)

    async def play(folder: Path) -> dict[str, Any]:
        async with serving(folder, plan(demo=60, seed=7)) as server:
            await server.until(60, 60, 60)
            return data_of(await server.close())

    first, second = (asyncio.run(play(tmp_path / name)) for name in ("a", "b"))
    assert first["questions"] == second["questions"]
    assert (first["private"], first["demo"], first["promised"][0]) == (
        False,
        60,
        "60 of these people were made up by this program, for a rehearsal.",
    )
