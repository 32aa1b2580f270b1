"""Whole runs over a bus in memory that loses, repeats and reorders messages."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from local_dp.bus.interface import CONNECTED, Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.interaction import Nonadaptive
from local_dp.populations.finite import Rows
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.pace import ASK_AGAIN
from local_dp.server.progress import Progress, RoundProgress
from local_dp.wire import Hello, encode, topic
from tests.support.inputs.builders import (
    RUN,
    SEED,
    in_population,
    play_in_memory,
    reply_of,
    small,
    survey_query,
    yes_records,
)
from tests.support.long import short
from tests.support.runs.virtual_time import VirtualLoop
from tests.support.wrong import wrong


def _tally_of(count: int, epsilon: float = 1.0) -> Nonadaptive[Any, Any, Any]:
    return Nonadaptive(
        (survey_query(count, randomizer=BinaryRR(epsilon)),),
        lambda answers: answers[0].counts.tolist(),
    )


LATE = (("heavy-hitters", 3), ("survey", 300), ("masked-parity", 300))  # what takes long


@pytest.mark.parametrize(
    ("name", "members"),
    short(
        [
            *((name, 3) for name in PROTOCOLS),
            ("survey", 1),
            ("survey", 300),
            ("masked-parity", 300),
        ],
        lambda each: each not in LATE,
        several=True,
    ),
)
def test_every_protocol_gives_the_populations_result(name: str, members: int) -> None:
    """However many members share the clients, results and report digests equal the population
    tier's bit for bit."""
    protocol = small(name)
    population = protocol.synthetic(300, SEED)
    algorithm = protocol.algorithm(1.0, 300)
    result, oracle = play_in_memory(
        algorithm, population, members, MemoryBroker(), as_processes=members == 300
    )
    expected, digests = in_population(algorithm, population)
    assert protocol.describe(result) == protocol.describe(expected)
    assert [summary.digest for summary in oracle.rounds] == digests


def test_a_round_ends_before_its_end_is_shown() -> None:

    def look(progress: Progress) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        if isinstance(progress, RoundProgress):
            loop.work(100.0 if progress.answered == progress.asked else 1.0)

    _, coordinator = play_in_memory(
        _tally_of(5), Rows(yes_records(5)), 1, MemoryBroker(), look=look
    )
    assert coordinator.seconds == [1.0]


@wrong(
    "local_dp.server.members:Members.speaker",
    "member is None or not member.start <= start <= stop <= member.stop",
    "member is None",
    "a member may speak for clients that are not its own",
)
def test_forged_and_foreign_messages_are_rejected_and_counted() -> None:
    """A reply under another member's topic, for clients that are not its own, of an unknown member
    or run: counted as rejected, never as a report."""
    reply = reply_of(1, "member-0", 0, b"\x01")
    forgeries: list[tuple[str, str, BaseModel]] = [
        ("rep", "member-0", reply_of(1, "member-1", 0, b"\x01")),
        ("rep", "member-0", reply_of(1, "member-0", 7, b"\x01")),
        ("rep", "stranger", reply_of(1, "stranger", 0, b"\x01")),
        ("rep", "member-0", reply.model_copy(update={"run": "other"})),
        ("rep", "member-0", reply_of(9, "member-0", 0, b"\x01")),
        ("hello", "twin", Hello(run=RUN, member="twin", start=0, stop=5, private=False)),
        ("hello", "beyond", Hello(run=RUN, member="beyond", start=5, stop=99, private=False)),
    ]
    broker = MemoryBroker()
    original = broker.route
    done = False

    def route(delivery: Delivery) -> None:
        nonlocal done
        if "/req/hosts" in delivery.topic and not done:
            done = True
            for leaf, member, message in forgeries:
                original(Delivery(topic(RUN, leaf, "hosts", member), encode(message)))
            original(Delivery(topic(RUN, "rep", "hosts", "member-0"), b"\xc1 not a message"))
        original(delivery)

    broker.route = route  # type: ignore[method-assign]
    population = Rows(yes_records(10))
    counts, oracle = play_in_memory(_tally_of(10), population, 2, broker)
    assert (oracle.rejected, counts) == (
        len(forgeries) + 1,
        in_population(_tally_of(10), population)[0],
    )


def test_reconnection_asks_again() -> None:
    down = True

    def fate(delivery: Delivery) -> int:
        return 0 if down and "/rep/" in delivery.topic else 1

    broker = MemoryBroker(fate)
    original = broker.route

    def route(delivery: Delivery) -> None:
        nonlocal down
        original(delivery)
        if down and "/rep/" in delivery.topic:
            down = False
            broker.buses[0].queue.put_nowait(CONNECTED)

    broker.route = route  # type: ignore[method-assign]
    _, oracle = play_in_memory(_tally_of(10), Rows(yes_records(10)), 2, broker)
    assert oracle.counts.answered == 10
    assert oracle.seconds[0] < ASK_AGAIN
