"""A poll's server is killed with -9 and resumed: the same address, the same places, nothing lost
and nothing counted twice."""

import asyncio
import json
import signal
from pathlib import Path
from urllib.request import urlopen

import pytest

from local_dp.errors import InputError
from local_dp.server.remote import Journal
from local_dp.simulation.over_bus import end
from tests.support.runs.command import local_dp
from tests.support.runs.poll_pages import Running, result, running
from tests.support.runs.polls import PATIENCE, Person, asked


async def _until(poll: Running, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while [len(await asyncio.to_thread(poll.counted, place)) for place in range(3)] != [
            count
        ] * 3:
            await asyncio.sleep(0.1)


async def _present(poll: Running, people: int) -> None:
    """Waits until so many are connected: who is away at the end does not learn of it."""

    def here() -> int:
        with urlopen(f"{poll.presenter}state", timeout=PATIENCE) as states:
            state: dict[str, int] = json.loads(states.readline().removeprefix(b"data: "))
        return state["here"]

    async with asyncio.timeout(PATIENCE):
        while await asyncio.to_thread(here) != people:
            await asyncio.sleep(0.2)


def _of(person: Person, question: int) -> str:
    return format(
        int.from_bytes(person.reports()[question], "little"), "02b" if question == 1 else "01b"
    )


@pytest.mark.long
def test_kill_and_resume(tmp_path: Path) -> None:
    """Killed after five answers and again after nine: the people stay, connect again by themselves,
    and each counts once with the bits that it sent."""
    journal = ("--journal", str(tmp_path / "journal"))

    async def play() -> None:
        people = [Person.of(place % 2, "nothing of these", place) for place in range(10)]
        with running(tmp_path) as first:
            tasks = [asyncio.create_task(person.answer(first.link)) for person in people[:5]]
            await _until(first, 5)
            first.kill()
        with running(tmp_path, "--resume", first.name) as second:
            assert (second.link, second.presenter) == (first.link, first.presenter)
            tasks += [asyncio.create_task(person.answer(second.link)) for person in people[5:9]]
            await _until(second, 9)
            spare = (
                await asked(second.link, "join", json.dumps({"key": "ab" * 32}).encode())
            ).data["start"]
            second.kill()
        with running(tmp_path, "--resume", first.name) as third:
            tasks.append(asyncio.create_task(people[9].answer(third.link)))
            await _until(third, 10)
            reports = [third.counted(place) for place in range(3)]
            assert reports == [
                {person.place["start"]: _of(person, question) for person in people}
                for question in range(3)
            ]
            assert len({spare, *(person.place["start"] for person in people)}) == 11
            await _present(third, 10)
            await asyncio.to_thread(third.close)
            await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
        data = result(tmp_path)
        assert [each["answered"] for each in data["questions"]] == [10, 10, 10]
        assert (data["joined"], data["accounts"]) == (11, {"given": 10, "agree": True})
        assert [len(person.store.commits) for person in people] == [1] * 10

    async def play_out() -> None:
        try:
            await play()
        finally:
            await end([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])

    asyncio.run(play_out())
    (run,) = (path.stem for path in (tmp_path / "journal").glob("*.run"))
    screen = local_dp("show", run, *journal)
    assert "Did you ever cheat in an exam? (10 answers)" in screen.stdout
    assert "Not promised:" in screen.stdout
    again = local_dp("poll", "--resume", run, *journal)
    assert (again.returncode, "is over; `local-dp show" in again.stderr) == (2, True)
    assert json.loads(local_dp("show", run, *journal, "--json").stdout)["joined"] == 11


@pytest.mark.long
def test_an_interrupted_poll_names_the_command_that_continues_it(tmp_path: Path) -> None:
    with running(tmp_path) as poll:
        poll.process.send_signal(signal.SIGINT)
        assert poll.process.wait(timeout=PATIENCE) == 130
    (errors,) = tmp_path.glob("errors-*")
    assert (
        f"`local-dp poll --resume {poll.name} --journal {tmp_path / 'journal'}` continues it"
        in errors.read_text()
    )


def test_what_is_no_poll_is_not_resumed(tmp_path: Path) -> None:
    Journal.begin(tmp_path, "other", {"protocol": "survey"}).close()
    done = local_dp("poll", "--resume", "other", "--journal", str(tmp_path))
    assert (done.returncode, "'other' is no poll" in done.stderr) == (2, True)
    with pytest.raises(InputError, match="no journal of run"):
        Journal.open(tmp_path, "none")
