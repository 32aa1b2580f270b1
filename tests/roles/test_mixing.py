"""Clients, a shuffler and a server: the server's result is as without it, and nothing that reaches
the server names a client."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from local_dp.bus.interface import Connected, Delivery
from local_dp.bus.memory import Fate, MemoryBroker, MemoryBus
from local_dp.clients.member import client_group, serve
from local_dp.clients.member import filters as member_filters
from local_dp.errors import InputError, QuorumError, RefusedError
from local_dp.interaction import run_async
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.populations.finite import Population, Rows
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.queries.tables import Question
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.sealing import UNSIGNED
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import filters as server_filters
from local_dp.server.mixer import Mixer, filters, will
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.server.shuffler import Passed
from local_dp.shuffle.central import Shuffler, with_coins
from local_dp.tallies import Tally
from local_dp.wire import Absent, Hello, Reply, behind, decode
from tests.support.inputs.builders import (
    RUN,
    SEED,
    in_population,
    request,
    role,
    small,
    survey_query,
    yes_records,
)
from tests.support.long import short
from tests.support.runs.virtual_time import run_virtually
from tests.support.wrong import wrong

PEOPLE = 60
M = TypeVar("M")


class Tapped(MemoryBus):
    """A connection that keeps what it was sent."""

    def __init__(self, broker: MemoryBroker, filters: list[str]) -> None:
        super().__init__(broker, filters)
        broker.buses.append(self)
        self.deliveries: list[Delivery] = []

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
        async for event in super().messages(patience):
            if isinstance(event, Delivery):
                self.deliveries.append(event)
            yield event


class World:
    """A run behind a shuffler: so many clients, of which some are mute or allow other randomizers,
    and what the server heard."""

    def __init__(
        self,
        population: Population,
        crowd: int = 20,
        quorum: float = 1.0,
        fate: Fate = lambda delivery: 1,
    ) -> None:
        self.population = population
        self.broker = MemoryBroker(fate)
        self.server = Tapped(self.broker, server_filters(behind(RUN)))
        self.coordinator = Coordinator(behind(RUN), population.size, SEED, 1.0, Terms(30.0, quorum))
        self.crowd = crowd
        self.mixing: asyncio.Task[None] | None = None
        self.passing: Callable[[], None] = lambda: None
        self.mute: set[int] = set()
        self.allowed: dict[int, frozenset[str]] = {}

    def messages(self, kind: type[M]) -> list[M]:
        """Those of this kind that the server has received."""
        messages = [decode(each.payload) for each in self.server.deliveries]
        return [message for message in messages if isinstance(message, kind)]

    def play(self, ask: Any) -> Any:
        """What `ask(oracle)` gives."""
        return run_virtually(self._play(ask))

    async def _play(self, ask: Any) -> Any:
        oracle = RemoteOracle(self.server, self.coordinator)
        front = RemoteOracle(
            self.broker.join(server_filters(RUN)),
            Coordinator(RUN, self.population.size, 0, 24.0, Terms(20.0)),
        )
        mixer = Mixer(
            front, self.broker.join(filters(RUN)), Shuffler.of(SEED, self.crowd), self.passing
        )
        ends = [
            asyncio.create_task(mixer.serve(10.0)),
            *(asyncio.create_task(self._client(index)) for index in range(self.population.size)),
        ]
        self.mixing, hearing = ends[0], asyncio.create_task(oracle.serve(1.0))
        try:
            await oracle.ready(20.0)
            return await ask(oracle)
        finally:
            await oracle.end()
            await asyncio.wait(ends, timeout=60.0)
            assert all(task.done() for task in ends), (
                "the end of the run does not reach everybody through the shuffler"
            )
            hearing.cancel()

    async def _client(self, index: int) -> None:
        member, group = f"client-{index}", client_group(index)
        bus = self.broker.join(member_filters(RUN, group))
        one = role(
            self.population.batch(index, index + 1),
            index,
            member=member,
            allowed=self.allowed.get(index),
        )
        if index in self.mute:
            one.handle = lambda request: ()  # type: ignore[method-assign]
        await serve(one, bus, RUN, group)


def lossy(seed: int) -> Fate:
    """Loses a fifth of these messages and repeats another fifth, but never the end of the run."""
    generator = np.random.default_rng(seed)

    def fate(delivery: Delivery) -> int:
        if b"\xa3end" in delivery.payload or not any(
            kind in delivery.topic for kind in ("/rep/", "/req/", "/hello/")
        ):
            return 1
        return int(generator.choice([0, 2, 1], p=[0.2, 0.2, 0.6]))

    return fate


def asked(protocol: LocalProtocol[Any], population: Population) -> Any:
    return lambda oracle: run_async(with_coins(protocol.algorithm(1.0, population.size)), oracle)


@pytest.mark.parametrize("loss", short([False, True], lambda loss: loss))
@pytest.mark.parametrize(
    "name",
    short(
        ["survey", "mean", "quantiles", "compare", "learn-conjunctions", "frequency"],
        lambda name: name in ("survey", "quantiles", "frequency"),
    ),
)
def test_results_are_those_without_a_shuffler(name: str, loss: bool) -> None:
    """Estimate and interval bit for bit, of one round and of several, with coins that clients draw,
    also where messages are lost and repeated."""
    protocol = small(name)
    population = protocol.synthetic(PEOPLE, SEED)
    world = World(population, crowd=2, fate=lossy(1) if loss else lambda delivery: 1)
    result = world.play(asked(protocol, population))
    expected, _ = in_population(with_coins(protocol.algorithm(1.0, PEOPLE)), population)
    assert (protocol.describe(result), world.coordinator.counts.conflicting) == (
        protocol.describe(expected),
        0,
    )


def survey(world: World, *queries: LocalQuery) -> tuple[Tally, ...]:
    tallies: tuple[Tally, ...] = world.play(
        lambda oracle: oracle.answer(queries or (survey_query(PEOPLE),))
    )
    return tallies


@wrong(
    "local_dp.server.shuffler:Mixer._of_ask",
    "self.shuffler.passed(part.reports[part.answered])",
    "part.reports[part.answered]",
    "reports go on as they came, in the clients' order and below the crowd",
)
def test_the_server_sees_no_client() -> None:
    """Whatever reaches it is the shuffler's, under one topic, of places in order, and holds no
    client's name; the clients' topics are another run's."""
    world = World(Rows(yes_records(PEOPLE)))
    survey(world)
    assert world.server.deliveries
    for delivery in world.server.deliveries:
        message = decode(delivery.payload)
        assert delivery.topic.split("/")[2:4] in ([behind(RUN), "hello"], [behind(RUN), "rep"])
        assert delivery.topic.split("/")[4:] == ["shuffler", "shuffler"]
        assert not any(part in delivery.payload for part in (b"client", b"host"))
        if isinstance(message, Hello):
            assert (message.member, message.start, message.stop) == ("shuffler", 0, PEOPLE)
    replies = world.messages(Reply)
    assert [(reply.member, reply.start, len(reply.reports)) for reply in replies] == [
        ("shuffler", 0, PEOPLE)
    ]
    (alone,) = (
        answer.reports
        for answer in role(world.population.batch(0, PEOPLE)).handle(request(survey_query(PEOPLE)))
        if isinstance(answer, Reply)
    )
    assert sorted(replies[0].reports) == sorted(alone)
    assert replies[0].reports != alone


@pytest.mark.parametrize("answering", [1, 19])
def test_below_the_crowd_nothing_reaches_the_server(answering: int) -> None:
    """The server learns how many reports are held back and how many did not come, and the round
    ends with one clear line."""
    world = World(Rows(yes_records(PEOPLE)), quorum=0.1)
    world.mute = set(range(answering, PEOPLE))
    with pytest.raises(
        QuorumError,
        match=(
            f"the shuffler holds back the reports of {answering} of {PEOPLE} clients, fewer than "
            "its minimum crowd"
        ),
    ):
        survey(world)
    assert world.messages(Reply) == []
    absent = {(each.why, each.start, each.stop) for each in world.messages(Absent)}
    assert absent == {("crowd", 0, answering), ("missing", answering, PEOPLE)}
    counts = world.coordinator.counts
    assert (counts.answered, counts.held_back, counts.missing) == (0, answering, PEOPLE - answering)


def test_who_is_missing_or_refuses_is_counted_and_not_named() -> None:
    """Seven are mute and five refuse, scattered: the server hears of twelve places at the end,
    their number and the cause."""
    world = World(Rows(yes_records(PEOPLE)), quorum=0.5)
    world.mute = {0, 3, 9, 20, 33, 41, 59}
    world.allowed = dict.fromkeys((1, 2, 30, 31, 58), frozenset({"grr"}))
    (tally,) = survey(world)
    counts = world.coordinator.counts
    assert (counts.asked, counts.answered, counts.refused, counts.missing, counts.held_back) == (
        PEOPLE,
        48,
        5,
        7,
        0,
    )
    assert tally.n == 48
    absent = world.messages(Absent)
    assert {(each.why, each.start, each.stop, each.code) for each in absent} == {
        ("refused", 48, 53, "not-allowed"),
        ("missing", 53, 60, "unheard"),
    }


def test_a_refusal_of_all_reaches_the_server() -> None:
    """With its code, and in the server's words for it: those of a client could be somebody's."""
    world = World(Rows(yes_records(PEOPLE)))
    world.allowed = dict.fromkeys(range(PEOPLE), frozenset({"grr"}))
    with pytest.raises(RefusedError, match="60 of 60 clients refused") as error:
        survey(world)
    assert error.value.code == "not-allowed"
    assert str(error.value).endswith(
        "not-allowed: a randomizer of binary-rr is not on this client's list; ask by another, or "
        "--allow it there"
    )


def test_each_cohort_is_a_batch() -> None:
    world = World(Rows(yes_records(PEOPLE)), crowd=25)
    with pytest.raises(
        QuorumError,
        match="holds back the reports of 20 of 20 clients to ask 1 from the clients 40 to 59",
    ):
        survey(world, survey_query(40), survey_query(60, 40))
    assert world.coordinator.counts.answered == 40


def test_the_shuffler_refuses_what_cannot_be_shuffled() -> None:
    world = World(Rows(yes_records(PEOPLE)))
    with pytest.raises(RefusedError, match="hadamard uses a public coin for each client") as error:
        survey(world, LocalQuery(Question("yes == 1"), Hadamard(1.0, k=2), Cohort(0, PEOPLE)))
    assert error.value.code == "not-shuffled"


@wrong(
    "local_dp.server.mixer:Mixer.serve",
    "not over",
    "False",
    "a shuffler that is interrupted says nothing, and the server waits for it",
    at="False",
)
@pytest.mark.parametrize("kill", [False, True])
def test_a_shuffler_that_dies_ends_the_round(kill: bool) -> None:
    """While it waits for mute clients the broker says that it is gone, or it does so itself when
    interrupted: two seconds later the round is over."""
    world = World(Rows(yes_records(PEOPLE)), quorum=0.5)
    world.mute = set(range(PEOPLE))

    async def ask(oracle: RemoteOracle) -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()

        def die() -> None:
            assert world.mixing is not None
            world.mixing.cancel()
            if kill:
                world.broker.route(Delivery(*will(RUN, UNSIGNED)))

        loop.call_later(5.0, die)
        with pytest.raises(
            QuorumError, match=r"closed with 0 of 60 replies, .*: 60 left \(shuffler\); start"
        ):
            await oracle.answer((survey_query(PEOPLE),))
        return loop.time() - began

    assert 5.0 < world.play(ask) < 8.0
    assert world.coordinator.counts.missing == PEOPLE


@wrong(
    "local_dp.server.mixer:Mixer._works",
    "self._number > 0 and self._number not in self._answers",
    "False",
    "a roll in a round makes the server take the shuffler's answer for lost",
)
def test_a_shuffler_at_work_answers_no_roll() -> None:
    """The server closes its round before the shuffler does: that is a matter of its deadline, and
    not of a reply that is lost."""
    world = World(Rows(yes_records(PEOPLE)))
    world.coordinator.terms = Terms(16.0, 1.0)
    world.mute = {0}
    with pytest.raises(
        QuorumError, match=r": 60 present but silent \(shuffler\); give it a longer --deadline$"
    ):
        survey(world)


@wrong(
    "local_dp.server.mixer:Mixer._play",
    "self.passing()",
    "pass",
    "a second shuffler passes on the batch once more, in another order",
)
def test_a_second_shuffler_passes_on_nothing(tmp_path: Path) -> None:
    """Started again for a run whose reports were passed on, when five more have answered: the
    server does not get the batch that would reveal the five."""
    record = Passed(tmp_path / f"{RUN}.passed")
    worlds = [World(Rows(yes_records(PEOPLE)), quorum=0.5) for _ in range(2)]
    worlds[0].mute = {0, 3, 9, 20, 33}
    for world in worlds:
        world.passing = record.note
    (tally,) = survey(worlds[0])
    assert tally.n == PEOPLE - 5
    with pytest.raises(QuorumError):
        survey(worlds[1])
    assert worlds[1].mixing is not None
    with pytest.raises(InputError, match="a second batch would reveal"):
        worlds[1].mixing.result()
    assert worlds[1].messages(Reply) == []
    assert worlds[1].messages(Absent) == []
    with pytest.raises(InputError, match=f"reports of run '{RUN}' were passed on before"):
        record.check()


def test_a_shuffler_without_work_answers_the_roll() -> None:
    """Its first hello is lost: it comes again at the roll that names it, before the first round."""
    hellos = list[Delivery]()

    def fate(delivery: Delivery) -> int:
        first = "/hello/shuffler/" in delivery.topic and not hellos
        hellos.extend([delivery] * first)
        return int(not first)

    world = World(Rows(yes_records(PEOPLE)), fate=fate)

    async def ask(oracle: RemoteOracle) -> int:
        assert world.coordinator.members.present == PEOPLE
        (tally,) = await oracle.answer((survey_query(PEOPLE),))
        return tally.n

    assert world.play(ask) == PEOPLE
    assert hellos
