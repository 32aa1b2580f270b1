"""A poll's server is killed with -9 and resumed: the same address, the same places, nothing lost and nothing counted twice."""

import asyncio
import json
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from local_dp.errors import InputError
from local_dp.experiments.tiers.over_bus import end
from local_dp.server.remote import Journal
from tests.support.runs.command import command, local_dp
from tests.support.runs.polls import PATIENCE, Person, asked

FILE = """
[[question]]
text = "Did you ever cheat?"
[[question]]
text = "Which colour?"
labels = ["red", "green", "blue"]
[[question]]
text = "How many hours?"
low = 0
high = 10
"""


class Command:
    """`local-dp poll` in a process of its own."""

    def __init__(self, process: "asyncio.subprocess.Process", said: str) -> None:
        self.process = process
        self.link, self.presenter, self.run = (re.search(pattern, said)[1] for pattern in (r"answer at +(\S+)", r"presenter has +(\S+)", r"poll (\S+)"))  # type: ignore[index]

    async def counted(self) -> list[dict[int, str]]:
        found = [(await asked(self.presenter, f"reports?question={place}")).data for place in range(3)]
        return [dict(zip(each["places"], each["reports"], strict=True)) for each in found]

    async def until(self, answered: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while [len(each) for each in await self.counted()] != [answered] * 3:
                await asyncio.sleep(0.1)

    async def present(self, people: int) -> None:
        """Waits until so many are connected: who is away at the end does not learn of it."""

        def here() -> int:
            with urlopen(f"{self.presenter}state", timeout=PATIENCE) as states:
                state: dict[str, int] = json.loads(states.readline().removeprefix(b"data: "))
            return state["here"]

        async with asyncio.timeout(PATIENCE):
            while await asyncio.to_thread(here) != people:
                await asyncio.sleep(0.2)

    async def close(self) -> dict[str, Any]:
        """Its result, once the presenter has closed it."""
        origin = self.presenter[: self.presenter.index("/", 8)]
        assert (await asked(self.presenter, "close", b"", Origin=origin)).status == 200
        out, _ = await asyncio.wait_for(self.process.communicate(), PATIENCE)
        data: dict[str, Any] = json.loads(out)
        return data


@asynccontextmanager
async def _started(*arguments: str) -> AsyncIterator[Command]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command("poll", *arguments, "--json"), **pipes)  # type: ignore[arg-type]
    assert process.stderr is not None
    said = ""
    try:
        async with asyncio.timeout(PATIENCE):
            while "after a crash" not in said:
                line = (await process.stderr.readline()).decode()
                assert line, said
                said += line
        yield Command(process, said)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _of(person: Person, question: int) -> str:
    return format(int.from_bytes(person.reports()[question], "little"), "02b" if question == 1 else "01b")


@pytest.mark.long
def test_kill_and_resume(tmp_path: Path) -> None:
    """Killed after five answers and again after nine: the people stay, connect again by themselves, and each counts once with the bits that it sent."""
    (tmp_path / "three.toml").write_text(FILE)
    journal = ("--journal", str(tmp_path))

    async def play() -> None:
        people = [Person.of(place % 2, "blue", place) for place in range(10)]
        async with _started(str(tmp_path / "three.toml"), *journal) as first:
            tasks = [asyncio.create_task(person.answer(first.link)) for person in people[:5]]
            await first.until(5)
            first.process.send_signal(signal.SIGKILL)
            await first.process.wait()
        async with _started("--resume", first.run, *journal) as second:
            assert (second.link, second.presenter) == (first.link, first.presenter)
            tasks += [asyncio.create_task(person.answer(second.link)) for person in people[5:9]]
            await second.until(9)
            spare = (await asked(second.link, "join", json.dumps({"key": "ab" * 32}).encode())).data["start"]
            second.process.send_signal(signal.SIGKILL)
            await second.process.wait()
        async with _started("--resume", first.run, *journal) as third:
            tasks.append(asyncio.create_task(people[9].answer(third.link)))
            await third.until(10)
            counted = await third.counted()
            assert counted == [{person.place["start"]: _of(person, question) for person in people} for question in range(3)]
            assert len({spare, *(person.place["start"] for person in people)}) == 11
            await third.present(10)
            data = await third.close()
            await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
        assert [each["answered"] for each in data["questions"]] == [10, 10, 10]
        assert (data["joined"], data["accounts"]) == (11, {"given": 10, "agree": True})
        assert [len(person.store.commits) for person in people] == [1] * 10

    async def played() -> None:
        try:
            await play()
        finally:
            await end([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])

    asyncio.run(played())
    (run,) = (path.stem for path in tmp_path.glob("*.run"))
    shown = local_dp("show", run, *journal)
    assert "Did you ever cheat? (10 answers)" in shown.stdout
    assert "Not promised:" in shown.stdout
    again = local_dp("poll", "--resume", run, *journal)
    assert (again.returncode, "is over; `local-dp show" in again.stderr) == (2, True)
    assert json.loads(local_dp("show", run, *journal, "--json").stdout)["joined"] == 11


@pytest.mark.long
def test_an_interrupted_poll_names_the_command_that_continues_it(tmp_path: Path) -> None:
    async def play() -> tuple[int | None, str, str]:
        async with _started("Did you ever cheat?", "--journal", str(tmp_path)) as poll:
            poll.process.send_signal(signal.SIGINT)
            _, said = await asyncio.wait_for(poll.process.communicate(), PATIENCE)
            return poll.process.returncode, said.decode(), poll.run

    code, said, run = asyncio.run(play())
    assert code == 130
    assert f"`local-dp poll --resume {run}` continues it" in said


def test_what_is_no_poll_is_not_resumed(tmp_path: Path) -> None:
    Journal.begin(tmp_path, "other", {"protocol": "survey"}).close()
    done = local_dp("poll", "--resume", "other", "--journal", str(tmp_path))
    assert (done.returncode, "'other' is no poll" in done.stderr) == (2, True)
    with pytest.raises(InputError, match="no journal of run"):
        Journal.open(tmp_path, "none")
