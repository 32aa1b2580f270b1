"""A whole poll: people join over WebSocket, the server counts exactly the bits that they sent, once
each, and estimates from them."""

import asyncio
import re
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from local_dp.protocols.local_protocol import possible_result
from local_dp.server.poll.results import data_of, page_of, table_of, text_of
from local_dp.server.poll.run import Result
from local_dp.simulation.settings import EMBEDDED
from tests.support.runs.brokers import free_port, mosquitto, needs_mosquitto
from tests.support.runs.polls import THREE, Person, Served, asked, plan, serving
from tests.support.wrong import wrong


def _people(count: int) -> list[Person]:
    return [
        Person.of(place % 2, ("red", "green", "blue")[place % 3], place % 10)
        for place in range(count)
    ]


def _reports(server: Served) -> list[dict[int, int]]:
    """The stored reports to each question, by place."""
    questions = [server.poll.reports(place) for place in range(3)]
    return [
        {place: int(bits, 2) for place, bits in zip(each["places"], each["reports"], strict=True)}
        for each in questions
    ]


def _replies(people: Sequence[Person]) -> list[dict[int, int]]:
    replies = [(person.place["start"], person.reports()) for person in people]
    return [
        {start: int.from_bytes(reports[place], "little") for start, reports in replies}
        for place in range(3)
    ]


def _check_estimates(result: Result) -> None:
    """The estimates are the decoder's of the stored reports."""
    data = data_of(result)
    for question, part, entry in zip(
        THREE.questions, result.round.parts, data["questions"], strict=True
    ):
        estimate = possible_result(
            question.protocol, question.algorithm(result.plan.people).decode((part.tally(),))
        )
        assert [row["value"] for row in entry["estimates"]] == [
            float(value) for value in estimate.value.reshape(-1)
        ]


async def _whole(folder: Path, broker: str = EMBEDDED, address: str = "") -> Result:
    """Twelve people answer; half of them over another way to the broker, if there is one."""
    people = _people(12)
    for person in people[::2]:
        person.address = address
    async with serving(folder, plan(broker=broker)) as server:
        answering = server.answers(people)
        await server.until(12, 12, 12)
        assert _reports(server) == _replies(people)
        result = await server.close()
        await asyncio.gather(*answering)
    for person in people:
        assert person.role is not None
        assert person.role.confirmations == {(result.plan.run, 1)}
    return result


def test_the_server_counts_the_bits_that_were_sent(tmp_path: Path) -> None:
    """Each report that is counted is the one sent, every member has a receipt and gives an account
    that agrees, and the estimate is the decoder's."""
    result = asyncio.run(_whole(tmp_path))
    assert (result.places, result.accounts.silent, result.accounts.accepted_not_charged) == (
        12,
        0,
        0,
    )
    _check_estimates(result)


@needs_mosquitto
def test_over_mosquitto_and_over_its_own_websocket(tmp_path: Path) -> None:
    """The same with Mosquitto as the broker, and with half of the people on Mosquitto's own
    WebSocket, which knows nothing of the page."""
    port = free_port()
    with mosquitto(
        tmp_path, "allow_anonymous true", f"listener {port} 127.0.0.1", "protocol websockets"
    ) as broker:
        _check_estimates(asyncio.run(_whole(tmp_path, broker.url, f"ws://127.0.0.1:{port}/mqtt")))


def test_one_key_counts_once(tmp_path: Path) -> None:
    """Who comes late is asked; who comes twice, or on two connections, has the same place, sends
    the same bytes, and counts once."""

    async def play() -> None:
        early, late = _people(2)
        async with serving(tmp_path, plan()) as server:
            tasks = [asyncio.create_task(early.answer(server.link))]
            await server.until(1, 1, 1)
            before, place = early.reports(), early.place
            tasks += server.answers([early, late])
            await server.until(2, 2, 2)
            tasks[0].cancel()
            tasks.append(asyncio.create_task(early.answer(server.link)))
            await asyncio.sleep(1)
            assert (early.reports(), early.place) == (before, place)
            assert _reports(server) == _replies([early, late])
            result = await server.close()
            assert (
                result.places,
                result.round.counts.answered,
                result.round.counts.conflicting,
            ) == (2, 6, 0)
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(play())


def test_places_and_time_end(tmp_path: Path) -> None:
    """When all places are taken, the next person is refused in words; at its time the poll closes
    by itself, and nobody joins any more."""

    async def play() -> None:
        (first,) = _people(1)
        async with serving(tmp_path, plan(people=1, until=time.time() + 3)) as server:
            await first.join(server.link)
            answer = await asked(server.link, "join", b'{"key": "' + b"ab" * 32 + b'"}')
            assert (answer.status, answer.data) == (
                409,
                {"error": "all 1 places of this poll are taken"},
            )
            result = await server.playing
            assert (result.places, result.round.counts.answered) == (1, 0)
            assert [row["value"] for row in data_of(result)["questions"][0]["estimates"]] == [None]

    asyncio.run(play())


def test_a_person_takes_a_place_of_the_made_up_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three places, three made-up people and a person who is faster than the last of them: three
    answer, and the poll goes on."""
    monkeypatch.setattr("local_dp.server.poll.demo.TAKES", 3.0)

    async def play() -> None:
        (person,) = _people(1)
        async with serving(tmp_path, plan(people=3, demo=3)) as server:
            task = asyncio.create_task(person.answer(server.link))
            await server.until(3, 3, 3)
            await asyncio.sleep(1.2)
            assert (await server.close()).places == 3
            await task
        assert len(person.store.commits) == 1

    asyncio.run(play())


def test_the_presenter_sees_the_interval_narrow(tmp_path: Path) -> None:
    """The states of the page: answers, an interval that narrows, the next answer's weight, and how
    many more an accuracy of 5 % takes."""

    async def play() -> list[dict[str, Any]]:
        people = _people(8)
        async with serving(tmp_path, plan()) as server, AsyncExitStack() as tasks:
            states = []
            for count in (2, 8):
                for person in people[0 if count == 2 else 2 : count]:
                    task = asyncio.create_task(person.answer(server.link))
                    tasks.callback(task.cancel)
                await server.until(count, count, count)
                states.append(server.poll.state())
            return states

    first, last = asyncio.run(play())
    few, many = first["questions"][0], last["questions"][0]
    assert (few["answered"], many["answered"]) == (2, 8)
    assert many["width"] < few["width"]
    assert many["more"] > 1000
    assert len(many["history"]) >= 2


def test_a_second_question_depends_on_the_first(tmp_path: Path) -> None:
    """The median: each person is asked once more, about one of three thresholds, and pays for
    it."""

    async def play() -> None:
        people = _people(9)
        async with serving(tmp_path, plan(ask_again=True)) as server:
            answering = server.answers(people)
            await server.until(9, 9, 9)
            origin = server.poll.site.origin("127.0.0.1")
            assert (
                await asked(server.poll.site.presenter, "again", b"", Origin=origin)
            ).status == 200
            assert (
                await asked(server.poll.site.presenter, "again", b"", Origin=origin)
            ).status == 409
            result = await server.playing
            await asyncio.gather(*answering)
        assert result.again is not None
        assert [re.findall(r"of (\d) people", step) for step in result.again.steps] == [
            ["2"],
            ["5"],
            ["2"],
        ]
        assert [len(person.store.commits) for person in people] == [2] * 9
        assert {person.store.ledger.max_spent for person in people} == {3.0}
        data = data_of(result)
        assert data["epsilon"] == 3.0
        assert "How many hours?,median" in table_of(data)
        assert "The second question: the median</h2><p>How many hours?" in page_of(data)
        assert "The second question: the median\n  Below " in text_of(data)
        value, low, high = (data["again"][name] for name in ("value", "low", "high"))
        assert 0 <= low <= value <= high <= 10

    asyncio.run(play())


@wrong(
    "local_dp.server.poll.run:Poll.__init__",
    "plan.questions.epsilon + (self._again.epsilon if self._again else 0.0)",
    "plan.questions.epsilon",
    "people are shown less than they pay",
)
def test_the_page_shows_the_whole_cost(tmp_path: Path) -> None:
    """The words and numbers that a respondent is shown, the budget of all rounds together, and no
    secret; no parameter of a query that a screen lacks."""

    async def play() -> dict[str, Any]:
        async with serving(tmp_path, plan(ask_again=True)) as server:
            data: dict[str, Any] = (await asked(server.link, "poll.json")).data
            assert server.poll.plan.key.hex() not in str(data)
            assert server.poll.plan.host_token not in str(data)
            return data

    data = asyncio.run(play())
    assert (data["epsilon"], data["again"]) == (3.0, {"question": "q3", "epsilon": 0.5})
    assert data["questions"] == [
        {**question.to_dict(), "randomizer": name}
        for question, name in zip(
            THREE.questions, ("binary-rr", "grr", "one-bit-mean"), strict=True
        )
    ]
