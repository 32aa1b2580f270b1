"""P6: what a message costs the server does not grow with the clients, and secrets are not
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
from local_dp.wire import AnyMessage, Gone, Hello, encode, topic
from tests.support.effort import Effort
from tests.support.inputs.builders import RUN, SEED, reply_of, survey_query
from tests.support.wrong import wrong


class Server:
    """A server of n client processes, and the most lines of Python for a message of each kind."""

    def __init__(self, clients: int) -> None:
        self.clients, self.now, self.most = clients, 0.0, dict[str, int]()
        self.coordinator = Coordinator(RUN, clients, SEED, 1.0, Terms(1000.0, 0.01))
        self.oracle = RemoteOracle(MemoryBroker().join([]), self.coordinator)

    def tell(self, kind: str, client: int, message: AnyMessage) -> None:
        self.now += 0.001
        delivery = Delivery(
            topic(RUN, kind, f"g{client // 250}", f"client-{client}"), encode(message)
        )
        with Effort() as effort:
            self.oracle._deliver(delivery)
            if kind == "hello":
                self.coordinator.due(self.now)
            self.coordinator.wake(self.now)
        self.most[kind] = max(self.most.get(kind, 0), effort.steps)

    async def play(self) -> dict[str, int]:
        """Everybody joins in any order, half answer, and all go."""
        self.coordinator.gather(100.0, 0.0)
        order = random.Random(1).sample(range(self.clients), self.clients)
        for client in order:
            self.tell(
                "hello",
                client,
                Hello(
                    run=RUN, member=f"client-{client}", start=client, stop=client + 1, private=False
                ),
            )
        self.coordinator.open((survey_query(self.clients),), self.now)
        self.coordinator.due(self.now)
        for client in order[::2]:
            self.tell("rep", client, reply_of(1, f"client-{client}", client, b"\1"))
        for client in order:
            self.tell("gone", client, Gone(run=RUN, member=f"client-{client}"))
        return self.most


@wrong(
    "local_dp.server.phases:called",
    "rolls.wake() > now",
    "False",
    "each hello looks at all members, to call those that are missing",
)
def test_no_message_costs_more_where_there_are_more_clients() -> None:
    """The attack was a hello that looked at all others: a message takes as many steps with 16 times
    the clients."""
    few, many = (asyncio.run(Server(clients).play()) for clients in (60, 960))
    assert all(many[kind] <= 2 * few[kind] + 40 for kind in ("hello", "rep", "gone")), (few, many)


@wrong(
    "local_dp.simulation.settings:Randomness.choose",
    "cls(secrets.randbits(SECRET_BITS), True, secrets.randbits(SECRET_BITS))",
    "cls(secrets.randbits(SECRET_BITS), True)",
    "the keys of the public coins tell of the secret that chose the rows",
)
def test_each_use_of_chance_has_a_secret_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a private run the public coins, which go out to everybody, are of another secret than rows
    and records, each of 128 bits; a seed is one for all."""
    choices = [Randomness.choose(None, private=True) for _ in range(200)]
    assert len({each.seed for each in choices} | {each.coin_seed for each in choices}) == 400
    assert max(each.coin_seed for each in choices).bit_length() > SECRET_BITS - 16
    seeded = Randomness.choose(7, private=False)
    assert (seeded.seed, seeded.coin_seed) == (7, 7)
    secrets_used: list[int] = []

    class Told(Exception):
        pass

    def note(*arguments: Any) -> Any:
        secrets_used.append(arguments[2])
        raise Told

    protocol = Survey()
    monkeypatch.setattr(execute, "PopulationOracle", note)
    monkeypatch.setattr(over_bus, "Coordinator", note)
    in_memory, over = (
        Settings(protocol, protocol.synthetic(4, 1), 1.0, choices[0], tier=tier)
        for tier in TIERS[2:0:-1]
    )
    with pytest.raises(Told):
        execute.execute(in_memory, lambda progress: None)
    with pytest.raises(Told):
        asyncio.run(over_bus.serve_run(over, "r", None, 1.0, lambda progress: None))  # type: ignore[arg-type]
    assert secrets_used == [choices[0].coin_seed] * 2
    assert Draw(1).key(COINS, secrets_used[0]) != Draw(1).key(COINS, choices[0].seed)
