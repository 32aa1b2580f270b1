"""Made-up people, to rehearse a poll: clients of this process that answer over the poll's own
broker, with signatures; and one of them step by step."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from local_dp.bus.address import Address
from local_dp.bus.interface import SealedBus
from local_dp.bus.mqtt import MqttBus
from local_dp.clients.journal import MemoryStore
from local_dp.clients.member import filters, serve, will
from local_dp.clients.role import ClientRole
from local_dp.noise import KeyedNoise, Noise, SystemNoise
from local_dp.records import Records
from local_dp.sealing import Party, new_key, public
from local_dp.server.members import Place
from local_dp.server.pace import clock
from local_dp.server.poll.game import Game
from local_dp.server.poll.plan import Plan
from local_dp.server.poll.questions import Question, Questions
from local_dp.server.poll.web import Refused
from local_dp.simulation.over_bus import end

HOSTS = 40  # clients of a host so that about so many hosts come one after another
TAKES = 10.0  # seconds until all have come
YES = 0.3  # the share of yes


class _Bus(MqttBus):
    """With the clock of the event loop."""

    def now(self) -> float:
        return clock()

    async def rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def records_of(questions: Questions, people: int, generator: np.random.Generator) -> Records:
    """The answers of so many made-up people."""
    return Records(
        {question.name: _column(question, people, generator) for question in questions.questions}
    )


def _column(question: Question, people: int, generator: np.random.Generator) -> np.ndarray:
    if question.labels:
        weights = 1 / np.arange(1, len(question.labels) + 1)
        return np.array(question.labels)[
            generator.choice(len(weights), people, p=weights / weights.sum())
        ]
    if question.low is None or question.high is None:
        return (generator.random(people) < YES).astype(np.uint8)
    return question.low + (question.high - question.low) * generator.beta(2, 4, people)


def hosts(people: int) -> list[int]:
    """How many of so many made-up people each host has."""
    each = max(1, people // HOSTS)
    return [min(each, people - start) for start in range(0, people, each)]


class Demo:
    """The made-up people of a plan. With a seed, everybody can compute their answers and their
    noise."""

    def __init__(self, plan: Plan, epsilon: float, game: Game | None) -> None:
        self.people, self.seed = plan.demo, plan.seed
        self._run, self._server, self._epsilon = plan.run, public(plan.key), epsilon
        if game:
            self._records = game.deal(0, plan.people)
        else:
            generator = np.random.default_rng(plan.seed)
            self._records = records_of(plan.questions, plan.people, generator)

    async def come(self, address: Address, give: Callable[[bytes, int], Place]) -> None:
        """Has them join one after another, and answer until the poll is over. `give` gives places
        to a key."""
        sizes = hosts(self.people)
        # a TaskGroup cancels each only once, and one that is connecting may swallow that
        tasks = set[asyncio.Task[None]]()
        try:
            for size in sizes:
                key = new_key()
                with suppress(Refused):  # people who joined may have taken the last places
                    tasks.add(
                        asyncio.create_task(self._answer(address, key, give(public(key), size)))
                    )
                await asyncio.sleep(TAKES / len(sizes))
            await asyncio.gather(*tasks)
        finally:
            await end(tasks)

    async def _answer(self, address: Address, key: bytes, place: Place) -> None:
        noise: Noise = SystemNoise() if self.seed is None else KeyedNoise(self.seed)
        role = ClientRole(
            place.member,
            place.start,
            self._records.take(slice(place.start, place.stop)),
            noise,
            MemoryStore(self._epsilon),
        )
        envelopes = Party.member(self._run, server=self._server, own=key)
        last_words = will(self._run, place.group, place.member, envelopes)
        bus = _Bus(
            address, f"{self._run}-{place.member}", filters(self._run, place.group), last_words
        )
        await serve(role, SealedBus(bus, envelopes), self._run, place.group)
