"""The questions of a poll: their kinds, their randomizers, and the line that a malformed file
gets."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from local_dp.cli.run.poll import Ask
from local_dp.errors import InputError
from local_dp.loss import NANO
from local_dp.randomizers.frequencies.best import choices
from local_dp.server.poll.files import PAGES
from local_dp.server.poll.plan import Plan
from local_dp.server.poll.questions import MOST_EPSILON, Question, Questions, read
from tests.support.runs.command import local_dp
from tests.support.runs.polls import THREE
from tests.support.runs.polls import plan as planned


def test_each_kind_has_its_randomizer() -> None:
    """Yes/no by randomized response, a number by its one-bit mean, labels by the better one of two
    oracles."""
    asks = THREE.asks(10)
    assert [ask.randomizer.name for ask in asks] == ["binary-rr", "grr", "one-bit-mean"]
    assert [ask.query.name for ask in asks] == ["question", "category", "bounded"]
    assert THREE.epsilon == 2.5
    for k in (2, 3, 5, 8, 20, 100):
        question = Question("q1", "which?", 1.0, tuple(map(str, range(k))))
        name = question.ask(10).randomizer.name
        totals = {choice.kind.name: choice.total for choice in choices(1.0, k)}
        assert name in ("grr", "subset-selection")
        assert totals[name] == min(totals.get("grr", 1e9), totals.get("subset-selection", 1e9))


def test_a_question_and_a_file(tmp_path: Path) -> None:
    """One line is a yes/no question; a file has several, with an epsilon of their own or the one
    that is given. A plan is the same after its journal."""
    one = read("Did you ever cheat?", 0.5)
    assert one == Questions("Did you ever cheat?", (Question("q1", "Did you ever cheat?", 0.5),))
    file = tmp_path / "class.toml"
    file.write_text(
        'title = "A class"\n[[question]]\ntext = "a?"\n[[question]]\ntext = "b?"\nlow = '
        "-1\nhigh "
        "= 2.5\nepsilon = 2\n"
    )
    several = read(str(file), 0.5)
    assert several == Questions(
        "A class", (Question("q1", "a?", 0.5), Question("q2", "b?", 2.0, low=-1.0, high=2.5))
    )
    plan = planned(several, seed=7, demo=5)
    assert Plan.from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "0 questions"),
        ("question = 1", r"write \[\[question\]\]"),
        ("[[question]]", "has no text"),
        ('[[question]]\ntext = ""', "0 characters"),
        ('[[question]]\ntext = "a"\nlabel = ["x"]', "did you mean 'labels'"),
        ('[[questions]]\ntext = "a"', "did you mean 'question'"),
        ('[[question]]\ntext = "a"\nlabels = ["x"]', "1 labels; give 2 to 100"),
        ('[[question]]\ntext = "a"\nlabels = ["x y", " x  y"]', "not distinct on a screen"),
        ('[[question]]\ntext = "a"\nlabels = ["x", 2]', "labels are texts"),
        ('[[question]]\ntext = "a"\nlow = 1', "one bound"),
        ('[[question]]\ntext = "a"\nlow = "x"\nhigh = 1', "low"),
        ('[[question]]\ntext = "a"\nlabels = ["x", "y"]\nlow = 0\nhigh = 1', "labels and bounds"),
        ('[[question]]\ntext = "a"\nepsilon = "much"', "epsilon"),
        ('[[question]]\ntext = "a"\n' * 21, "21 questions"),
        ("title = 3\n", r"write \[\[question\]\]"),
        ("[[question]\n", "cannot read"),
        ("x = " + "1" * 70_000, "larger than"),
    ],
)
def test_a_malformed_file_gets_one_line(text: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "poll.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=fault) as error:
        read(str(file), 1.0)
    assert "\n" not in str(error.value)


REFUSED = {
    "": "a poll has a question: local-dp poll 'Did you",
    "'a?' --epsilon 8.1": "a person would pay epsilon 8.1, and the page pays at most 8;",
    "'a?' --people 0": "people is 0",
    "'a?' --people 10 --demo 11": "demo is 11",
    "'a?' --seed 1": "add --demo 200",
    "'a?' --broker ws://localhost/mqtt": "give its address with mqtt://",
    "'a?' --ask-again": "add a question with low = 0",
    "'a?' --game": "leave out QUESTION, --ask-again and --slow",
    "'a?' --until soon": "--until is 'soon'",
    "'a?' --host 256.1.1.1": "cannot listen on 256.1.1.1",
    "'a?' --port 70000": "the port is 70000",
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_wrong_command_gets_one_line(words: str, tmp_path: Path) -> None:
    done = local_dp("poll", *shlex.split(words), "--journal", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert REFUSED[words] in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_page_pays_what_the_command_allows() -> None:
    """The limit of both is one number."""
    (limit,) = re.findall(
        r"perRun: (\w+), life",
        (PAGES / "respondent.js").read_text().split("export const LIMITS")[1],
    )
    assert float(limit) == NANO * MOST_EPSILON


def test_what_is_missing_is_said_before_a_poll_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "segno", None)
    with pytest.raises(
        InputError, match=re.escape("the pages need segno: pip install 'local-dp[poll]'")
    ):
        Ask(question="a?", journal=tmp_path)()
    assert list(tmp_path.iterdir()) == []
