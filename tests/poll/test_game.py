"""The class game: the learner of the library over phones, with records that follow the rule; a
second round when the presenter says so; and its figures."""

import asyncio
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_dp.cli.run.poll import Ask
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.masked.protocols import MaskedParityList
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.records import Records
from local_dp.server.poll.game import BITS, TITLE, Game, chance
from local_dp.server.poll.plan import Plan
from local_dp.server.poll.questions import Questions
from local_dp.server.poll.results import data_of, page_of, table_of, text_of
from local_dp.server.poll.run import Result
from local_dp.server.remote import Journal
from tests.support.runs.polls import PATIENCE, Person, Served, asked, plan, serving
from tests.support.wrong import wrong

PEOPLE, SEED, EPSILON = 30, 3, 5.0


def _game(**options: Any) -> Plan:
    return plan(Questions(TITLE, ()), **{"game": EPSILON, "people": PEOPLE, **options})


async def _press(server: Served, what: str) -> int:
    return (
        await asked(
            server.poll.site.presenter, what, b"", Origin=server.poll.site.origin("127.0.0.1")
        )
    ).status


async def _until(server: Served, button: str, people: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while (server.poll.state()["offer"][0], server.poll.state()["here"]) != (button, people):
            if server.playing.done():
                server.playing.result()
            await asyncio.sleep(0.05)


@wrong(
    "local_dp.server.poll.game:Game.answer",
    "await self.go_on.wait()",
    "pass",
    "the class does not see that the second round depends on the first",
)
def test_the_class_plays_what_the_library_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty made-up phones with a seed find bit for bit what the learner finds in memory; the
    second round waits for the presenter."""
    monkeypatch.setattr("local_dp.server.poll.demo.TAKES", 0.3)

    async def play() -> Result:
        async with serving(tmp_path, _game(demo=PEOPLE, seed=SEED)) as server:
            await _until(server, "", PEOPLE)
            assert await _press(server, "again") == 409
            assert await _press(server, "close") == 200
            await _until(server, "Ask round 2", PEOPLE)
            await asyncio.sleep(0.3)
            assert server.poll.coordinator.round(2) is None
            assert await _press(server, "again") == 200
            return await server.playing

    result = asyncio.run(play())
    assert result.again is not None
    game = Game.of(EPSILON, PEOPLE, SEED)
    oracle = PopulationOracle(game.population, KeyedNoise(SEED), SEED, EPSILON)
    assert result.again.result == run(MaskedParityList(d=BITS).algorithm(EPSILON, PEOPLE), oracle)
    assert (
        [summary.n for summary in oracle.rounds]
        == [int(re.findall(r"^\d+", step)[0]) for step in result.again.steps if "answered" in step]
        == [19, 11]
    )
    data = data_of(result)
    assert (data["epsilon"], data["joined"], data["private"]) == (EPSILON, PEOPLE, False)
    for text in (text_of(data), page_of(data), table_of(data)):
        assert re.search(
            (
                r"Found: r = [01]{8}|Not found. The class says r = [01]{8}, a = [01]; hidden is r "
                r"= [01]{8}"
            ),
            text,
        )
    assert "so 16 rules are left" in text_of(data).lower()
    assert "the best known question takes 161 phones" in text_of(data)


@dataclass
class Player(Person):
    """A phone that plays: its record comes with its place."""

    async def join(self, link: str) -> dict[str, Any]:
        poll = await super().join(link)
        self.record = Records(
            {
                name: np.array([value], dtype=np.int64)
                for name, value in self.place["record"].items()
            }
        )
        return poll


def test_the_game_goes_on_after_a_crash(tmp_path: Path) -> None:
    """A server that is started again between the rounds repeats the first from its journal, and
    asks the second: each phone reports once."""

    async def play() -> tuple[Result, list[Player]]:
        game, people = _game(), [Player(Records({"x": np.zeros(1)})) for _ in range(6)]
        async with serving(tmp_path, game) as server:
            tasks = server.answers(people)
            await _until(server, "", 6)
            assert await _press(server, "close") == 200
            await _until(server, "Ask round 2", 6)
            steps = list(server.poll.state()["again"]["steps"])
        async with serving(tmp_path, game, Journal.open(tmp_path, game.run)) as server:
            await _until(server, "Ask round 2", 6)
            assert server.poll.state()["again"]["steps"] == steps
            assert (
                await asked(server.link, "join", b'{"key": "' + b"ab" * 32 + b'"}')
            ).status == 410
            assert await _press(server, "again") == 200
            result = await server.playing
            await asyncio.gather(*tasks)
            return result, people

    result, people = asyncio.run(play())
    assert (result.places, result.accounts.accepted_not_charged) == (6, 0)
    assert [len(person.store.commits) for person in people] == [1] * 6
    assert {person.store.ledger.max_spent for person in people} == {EPSILON}


@wrong(
    "local_dp.server.poll.game:Game.record",
    "self.deal(place, place + 1)",
    "self.deal(0, 1)",
    "all phones have the same record, and the class learns nothing",
)
def test_a_record_follows_the_rule_and_no_page_has_the_rule() -> None:
    """The label of each place's record is the rule's, the records are of every kind, and what all
    pages are given is the same for every rule."""
    game = Game.of(EPSILON, 400, 1)
    r, a = game.population.concept.r, game.population.concept.a
    records = [game.record(place) for place in range(400)]
    assert all(
        each["y"]
        == (-1) ** ((r >> each["i"] & 1) if each["b"] else (each["x"] & r).bit_count() + a)
        for each in records
    )
    assert len({(each["x"], each["i"], each["b"]) for each in records}) > 350
    assert game.public() == Game.of(EPSILON, 400, 2).public()


def test_what_the_screens_say_of_a_class_is_so() -> None:
    """The help's figures are those of the simulation within four standard errors, and a second
    round makes the difference that the page shows."""
    (text,) = [field.metadata["help"] for field in fields(Ask) if field.name == "game"]
    for phones, of_ten in re.findall(
        r"(\d+)(?: phones find the hidden rule)? in (\d+) of 10", text
    ):
        assert abs(chance(EPSILON, int(phones)) - int(of_ten) / 10) < 0.1
    game = Game.of(EPSILON, 60, 1)
    assert re.search("9[0-9] % with 60, more than 99 % with 100", game.offer(0)[1])
    assert "161 phones for 90 %" in game.state()["beside"]
    for epsilon in (2.9, 8.1):
        with pytest.raises(InputError, match="a game needs 3 to 8"):
            Game.of(epsilon, 60, 1)
