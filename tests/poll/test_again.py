"""The second question: who is asked what, what the interval of the median covers, and what the
screen says of so few answers."""

import asyncio

import numpy as np
import pytest

from local_dp.arrays import Counts, Floats
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Asking, LocalQuery
from local_dp.protocols.search.quantiles import Located
from local_dp.records import Records
from local_dp.server.poll.again import Median
from local_dp.server.poll.questions import Question, Questions
from local_dp.tallies import Tally
from tests.support.long import short

PEOPLE = 1000
COINS = bytes(16)


def _again(epsilon: float) -> Median:
    return Median.of(
        Questions(
            "a poll",
            (
                Question("q1", "Did you?", 1.0),
                Question("q2", "How long?", epsilon, low=0.0, high=10.0),
            ),
        )
    )


class Phones:
    """Answers for the people at these places, who have these numbers."""

    def __init__(self, places: Counts, numbers: Floats, seed: int) -> None:
        self.places, self.numbers, self.noise = places, numbers, KeyedNoise(seed)
        self.queries: list[LocalQuery] = []
        self.rounds = 0

    async def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        self.rounds += 1
        self.queries += queries
        return tuple(self._tally(place, query) for place, query in enumerate(queries))

    def _tally(self, ask: int, query: LocalQuery) -> Tally:
        mine = (self.places >= query.cohort.start) & (self.places < query.cohort.stop)
        values = query.query.values(Records({"q2": self.numbers[mine]}))
        asking = Asking(query, 0, self.noise, query.draw(self.rounds, ask), COINS)
        return query.randomizer.tally(asking.randomize(values), np.zeros(len(values), np.uint16))


def _play(again: Median, phones: Phones) -> tuple[float, float, float]:
    asyncio.run(again.play(phones.places, PEOPLE, phones))
    return again.ends


@pytest.mark.parametrize("people", [3, 30, 200, PEOPLE])
def test_each_person_is_asked_once(people: int) -> None:
    """Wherever those who answered sit, each has one question."""
    again, words = _again(1.0), np.random.default_rng(people)
    phones = Phones(
        np.sort(words.choice(PEOPLE, people, replace=False)), words.random(people) * 10, 1
    )
    _play(again, phones)
    counts = sum(
        ((phones.places >= query.cohort.start) & (phones.places < query.cohort.stop)).astype(int)
        for query in phones.queries
    )
    assert np.all(counts == 1)


class Silent:
    """Answers for phones that are all gone."""

    rounds = 0

    async def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        self.rounds += 1
        return tuple(query.randomizer.empty() for query in queries)


def test_a_threshold_without_an_answer_ends_the_search() -> None:
    """Phones that are gone leave a threshold without an answer: the poll goes on, and everything is
    open."""
    again, phones = _again(1.0), Silent()
    asyncio.run(again.play(np.arange(100), PEOPLE, phones))
    assert (phones.rounds, again.steps) == (1, [])
    assert again.state()["text"] == "Too few answers for an interval: the median may be anywhere."


def _count_misses(polls: int, people: int, epsilon: float, by_value: bool = False) -> int:
    """How many of these polls have an interval without the median; the numbers are of a skew law on
    0 to 10, with median 3.138."""
    again, words, misses = _again(epsilon), np.random.default_rng(7), 0
    for seed in range(polls):
        numbers = 10 * words.beta(2, 4, people)
        phones = Phones(
            np.sort(words.choice(PEOPLE, people, replace=False)),
            np.sort(numbers) if by_value else numbers,
            seed,
        )
        _, low, high = _play(again, phones)
        misses += not low <= 3.1381 <= high
    return misses


@pytest.mark.parametrize(
    ("people", "epsilon"),
    short(
        [(30, 1.0), (200, 1.0), (200, 4.0), (PEOPLE, 2.0)],
        lambda each: each[1] == 1.0,
        several=True,
    ),
)
def test_the_interval_covers_the_median(people: int, epsilon: float) -> None:
    """In 100 polls at most 16 intervals are wrong: with coverage 95 % more are so once in 100,000
    runs."""
    assert _count_misses(100, people, epsilon) <= 16


def test_places_by_value_would_break_the_interval() -> None:
    """The wrong twin: were places in the order of the numbers, as in the order of joining they can
    be, more than 16 of 100 intervals would be wrong."""
    assert _count_misses(100, 200, 4.0, by_value=True) > 16


def test_the_screen_says_what_few_answers_show() -> None:
    """One line before the question: too few, or how near; and open ends are named as such."""
    again = _again(1.0)
    assert again.offer(30)[1].startswith("30 answers are too few for a median; ")
    assert again.offer(2000)[1].startswith("2,000 answers place the median within ")
    assert again.offer(2) == ("", "")
    again.over = True
    for place, words in (
        ((33, 1, 64), "Too few answers for an interval: the median may be anywhere."),
        ((17, 0, 32), "about 2.578; 95 % interval: at most 5"),
        ((49, 33, 65), "about 7.578; 95 % interval: at least 5"),
        ((49, 33, 64 - 8), "about 7.578; 95 % interval: 5 to 8.75"),
    ):
        again.result = Located((place,), 30, "several", {})
        assert again.state()["text"] == words
