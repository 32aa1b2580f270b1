"""The tutorials, executed: each block of Python prints what stands after it, each command what it
shows."""

import contextlib
import io
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.inputs.documents import TUTORIALS, fenced, perform, typed_in
from tests.support.long import short

# Python blocks and commands that there are at least
ENOUGH = {
    "survey": (3, 3),
    "separation": (3, 1),
    "curator": (3, 1),
    "randomizer": (5, 0),
    "poll": (0, 1),
}
LONG = "local-dp experiment"  # some 20 s: the slow suite runs it


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A Python session of its own, as `python` starts one."""
    module = ModuleType("tutorial")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def follow(text: str, folder: Path, session: ModuleType, long: bool) -> tuple[int, int]:
    """Runs the blocks of a tutorial in order; how many Python blocks and commands there are. Raises
    AssertionError where they print other lines."""
    python, commands, parts = 0, 0, fenced(text)
    assert {language for language, _ in parts} <= {"python", "text", "sh", "console", "toml"}, (
        "nobody checks a block in another language"
    )
    for (language, body), (following, block) in pairwise([*parts, ("", "")]):
        if language == "python":
            assert _printed_by(body, session) == (block if following == "text" else ""), body
            python += 1
        for each in typed_in(body) if language in ("sh", "console") else ():
            commands += 1
            if each.command.startswith(LONG) == long:
                done = perform(each.command, folder)
                assert done.returncode == 0, f"{each.command}: {done.stderr}"
                missing = [line for line in each.output if line not in done.stdout]
                assert not missing, f"{each.command} does not say {missing}"
    return python, commands


def _printed_by(body: str, session: ModuleType) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(body, "tutorial", "exec"), session.__dict__)
    return output.getvalue()


@pytest.mark.parametrize(
    "page",
    short(list(TUTORIALS), lambda page: page.stem == "randomizer"),
    ids=[page.stem for page in TUTORIALS],
)
def test_a_tutorial_shows_what_happens(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: ModuleType
) -> None:
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
        "```ruby\nputs 1\n```\n",
    ],
)
def test_a_wrong_tutorial_is_noticed(text: str, tmp_path: Path, session: ModuleType) -> None:
    """Another output than the one shown, an output that is not shown, a failing block or command, a
    language that nobody checks: each fails."""
    with pytest.raises(AssertionError):
        follow(text, tmp_path, session, long=False)
