"""The tutorials, executed: every block of a page, in order, in one session and one folder, and what is shown is what is printed."""

import contextlib
import io
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.inputs.documents import TUTORIALS, fenced, perform, typed_in
from tests.support.long import short

ENOUGH = {"survey": (3, 3), "separation": (3, 1), "randomizer": (5, 0)}  # Python blocks and commands that there are at least
LONG = "local-dp experiment"  # some 20 s: the slow suite runs it


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A Python session of its own, as `python` starts one."""
    module = ModuleType("tutorial")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def follow(text: str, folder: Path, session: ModuleType, long: bool) -> tuple[int, int]:
    """Does what a tutorial says; how many Python blocks and commands there were. Raises AssertionError where another thing happens than is shown."""
    python, commands, printed = 0, 0, ""
    for language, body in fenced(text):
        if language == "python":
            assert not printed, f"the page does not show what is printed before {body!r}: {printed}"
            printed, python = _printed_by(body, session), python + 1
        elif language == "text":
            assert body == printed
            printed = ""
        elif language in ("sh", "console"):
            for each in typed_in(body):
                commands += 1
                if each.command.startswith(LONG) != long:
                    continue
                done = perform(each.command, folder)
                assert done.returncode == 0, f"{each.command}: {done.stderr}"
                for line in each.shown:
                    assert line in done.stdout, f"{each.command} does not say {line!r}"
        else:
            assert language == "toml", f"nobody checks a block in {language}"
    assert not printed, f"the page does not show what its last block prints: {printed}"
    return python, commands


def _printed_by(body: str, session: ModuleType) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, "tutorial", "exec"), session.__dict__)
    return printed.getvalue()


@pytest.mark.parametrize("page", short(list(TUTORIALS), lambda page: page.stem == "randomizer"), ids=[page.stem for page in TUTORIALS])
def test_a_tutorial_shows_what_happens(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: ModuleType) -> None:
    monkeypatch.chdir(tmp_path)
    python, commands = follow(page.read_text(), tmp_path, session, long=False)
    assert (python >= ENOUGH[page.stem][0]) & (commands >= ENOUGH[page.stem][1])


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorials_long_commands_run(page: Path, tmp_path: Path) -> None:
    for language, body in fenced(page.read_text()):
        for each in typed_in(body) if language in ("sh", "console") else ():
            if each.command.startswith(LONG):
                done = perform(each.command, tmp_path)
                assert done.returncode == 0, done.stderr
                assert "not shown" not in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n```\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```python\nprint(1)\n```\n```python\nx = 1\n```\n",
        "```python\nassert 1 == 2\n```\n",
        "```console\n$ local-dp schema\nno command says this\n```\n",
        "```console\n$ local-dp nothing\n```\n",
        "```ruby\nputs 1\n```\n",
    ],
)
def test_a_wrong_tutorial_is_noticed(text: str, tmp_path: Path, session: ModuleType) -> None:
    """Another output than the one shown, an output that is not shown, a failing block or command, a language that nobody checks: each fails."""
    with pytest.raises(AssertionError):
        follow(text, tmp_path, session, long=False)
