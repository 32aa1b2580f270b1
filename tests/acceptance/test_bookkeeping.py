"""Class 11: what a message costs the server does not grow with the clients, and secrets are not
shared."""

import asyncio
import random
from typing import Any

import pytest

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.noise import COINS, Draw
from local_dp.protocols.surveys.survey import Survey
from local_dp.server.coordinator import Coordinator
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.simulation import execute, over_bus
from local_dp.simulation.settings import SECRET_BITS, TIERS, Randomness, Settings
from local_dp.wire import AnyMessage, Gone, Hello, Refusal, Reply, encode, topic
from tests.support.effort import Effort
from tests.support.inputs.builders import RUN, SEED, survey_query


class Server:
    """A server of n client processes under a schedule of events, and the lines of Python for each
    message."""

    def __init__(self, clients: int, seed: int) -> None:
        self.chance, self.clients, self.now = random.Random(seed), clients, 0.0
        self.coordinator = Coordinator(RUN, clients, SEED, 1.0, Terms(1000.0, 0.01))
        self.oracle = RemoteOracle(MemoryBroker().join([]), self.coordinator)
        self.most: dict[str, int] = {}

    def tell(self, kind: str, client: int, leaf: str, payload: bytes) -> None:
        self.now += 0.001
        where = topic(RUN, leaf, f"g{client // 250}", f"client-{client}")
        with Effort() as effort:
            self.oracle._deliver(Delivery(where, payload))
            self.coordinator.wake(self.now)
        self.most[kind] = max(self.most.get(kind, 0), effort.steps)

    def say(self, kind: str, client: int) -> None:
        messages: dict[str, tuple[str, AnyMessage]] = {
            "hello": (
                "hello",
                Hello(
                    run=RUN, member=f"client-{client}", start=client, stop=client + 1, private=False
                ),
            ),
            "clash": (
                "hello",
                Hello(
                    run=RUN, member=f"client-{client}", start=0, stop=self.clients, private=False
                ),
            ),
            "gone": ("gone", Gone(run=RUN, member=f"client-{client}")),
            "reply": (
                "rep",
                Reply(
                    run=RUN,
                    round=1,
                    member=f"client-{client}",
                    ask=0,
                    start=client,
                    width=1,
                    reports=b"\x01",
                ),
            ),
            "refusal": (
                "rep",
                Refusal(
                    run=RUN,
                    round=1,
                    member=f"client-{client}",
                    start=client,
                    stop=client + 1,
                    code="budget",
                    text="x",
                ),
            ),
        }
        leaf, message = messages.get(kind, messages["gone"])
        self.tell(
            kind,
            client,
            "rep" if kind == "junk" else leaf,
            b"\xc1junk" if kind == "junk" else encode(message),
        )

    def play(self, flapping: int) -> dict[str, int]:
        """Everybody joins, in any order, most go, some answer, and messages of all kinds come, of
        one client above all."""
        self.coordinator.gather(100.0, 0.0)
        order = list(range(self.clients))
        self.chance.shuffle(order)
        for client in order:
            self.say("hello", client)
        self.coordinator.open((survey_query(self.clients),), self.now)
        for _ in range(1 + self.clients // 500):
            self.now += 6.0
            self.coordinator.due(self.now)
        kinds = ["hello", "clash", "gone", "reply", "refusal", "junk"]
        for client in order[: self.clients - 5]:
            self.say(self.chance.choice(["gone", "gone", "gone", "reply"]), client)
        for _ in range(flapping):
            client = order[0] if self.chance.random() < 0.7 else self.chance.choice(order)
            self.say(self.chance.choice(kinds), client)
        for client in order:
            self.say("gone", client)
        for _ in range(50):
            self.say("junk", order[0])
        return self.most


async def _played(clients: int, seed: int, flapping: int) -> dict[str, int]:
    return Server(clients, seed).play(flapping)


@pytest.mark.parametrize(
    ("few", "many"), [(60, 960), pytest.param(200, 12_000, marks=pytest.mark.slow)]
)
def test_no_message_costs_more_where_there_are_more_clients(few: int, many: int) -> None:
    """The attack slowed a round 22 times, and 12,000 hellos took 14 s: now a message takes as many
    steps with 16 times the clients, in any order, by search."""
    worst: dict[str, tuple[int, int]] = {}
    for seed in range(1 if many < 1_000 else 2):
        small, large = (asyncio.run(_played(clients, seed, 200)) for clients in (few, many))
        for kind, lines in large.items():
            before = worst.get(kind, (0, 0))
            worst[kind] = max(before[0], small.get(kind, 0)), max(before[1], lines)
    print(
        f"class 11: the most lines of Python for a message, with {few} and with {many:,} clients: "
        f"{worst}"
    )
    assert all(with_many <= 2 * with_few + 40 for with_few, with_many in worst.values()), worst


def test_each_use_of_chance_has_a_secret_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a private run the public coins, which go out to everybody, are of another secret than rows
    and records, each of 128 bits; a seed is one for all."""
    drawn = [Randomness.choose(None, private=True) for _ in range(200)]
    assert len({each.seed for each in drawn} | {each.coin_seed for each in drawn}) == 400
    assert max(each.coin_seed for each in drawn).bit_length() > SECRET_BITS - 16
    seeded = Randomness.choose(7, private=False)
    assert (seeded.seed, seeded.coin_seed) == (7, 7)
    used: list[int] = []

    class Told(Exception):
        pass

    def told(*arguments: Any) -> Any:
        used.append(arguments[2])
        raise Told

    protocol = Survey()
    monkeypatch.setattr(execute, "PopulationOracle", told)
    monkeypatch.setattr(over_bus, "Coordinator", told)
    in_memory, over = (
        Settings(protocol, protocol.synthetic(4, 1), 1.0, drawn[0], tier=tier)
        for tier in TIERS[2:0:-1]
    )
    with pytest.raises(Told):
        execute.execute(in_memory, lambda progress: None)
    with pytest.raises(Told):
        asyncio.run(over_bus.serve_run(over, "r", None, 1.0, lambda progress: None))  # type: ignore[arg-type]
    assert used == [drawn[0].coin_seed] * 2
    assert Draw(1).key(COINS, used[0]) != Draw(1).key(COINS, drawn[0].seed)
