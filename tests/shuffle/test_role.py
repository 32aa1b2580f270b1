"""The shuffler: a crowd or nothing, every client once, an order that says nothing, and no senders."""

import asyncio
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from local_dp.bus.base import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.draws import Draws
from local_dp.errors import InputError, QuorumError, RefusedError
from local_dp.noise import KeyedNoise
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.records import Records
from local_dp.shuffle.role import Batch, Shuffler, check_shufflable
from local_dp.wire import Reply, Request, decode, encode, topic
from tests.support.builders import RUN, request, role, survey_query, yes_records
from tests.support.virtual_time import run_virtually

PEOPLE = 40
BEHIND = f"{RUN}-behind"  # where what the shuffler passes on is read: the server has no other topic


async def client(broker: MemoryBroker, index: int, records: Records) -> None:
    """One client process: hears the request, replies to where the shuffler listens."""
    member, bus = role(records, index, member=f"client-{index}"), broker.join([topic(RUN, "req", "all")])
    async for heard in bus.messages(1.0):
        if isinstance(heard, Delivery) and isinstance(asked := decode(heard.payload), Request):
            for reply in member.handle(asked):
                await bus.publish(topic(RUN, "rep", "all", member.member), encode(reply))


async def between(broker: MemoryBroker, shuffling: Shuffler, due: int) -> None:
    """The shuffler on the bus: passes a batch on when `due` clients have replied."""
    bus = broker.join([topic(RUN, "rep", "all", "+")])
    async for heard in bus.messages(1.0):
        if isinstance(heard, Delivery) and isinstance(reply := decode(heard.payload), Reply):
            shuffling.take(reply.start, Batch(reply.width, reply.reports))
        if shuffling.clients == due:
            passed = shuffling.release()
            sent = Reply(run=RUN, round=1, member="shuffler", ask=0, start=0, width=passed.width, reports=passed.reports)
            await bus.publish(topic(BEHIND, "rep", "all", "shuffler"), encode(sent))


def test_a_round_over_the_bus() -> None:
    """Forty clients, a shuffler and a server: the server reads one message, of nobody's, with the reports that the clients would have sent it themselves."""
    records, query = yes_records(PEOPLE), survey_query(PEOPLE)

    async def play() -> Reply:
        broker = MemoryBroker()
        server = broker.join([topic(BEHIND, "rep", "all", "+")])
        tasks = [asyncio.create_task(client(broker, index, records.take(slice(index, index + 1)))) for index in range(PEOPLE)]
        tasks.append(asyncio.create_task(between(broker, shuffler(PEOPLE), PEOPLE)))
        await asyncio.sleep(0.1)
        await server.publish(topic(RUN, "req", "all"), encode(request(query)))
        async for heard in server.messages(1.0):
            if isinstance(heard, Delivery):
                found = decode(heard.payload)
                break
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found, Reply)
        return found

    heard, alone = run_virtually(play()), role(records).handle(request(query))[0]
    assert isinstance(alone, Reply)
    assert (heard.member, heard.start) == ("shuffler", 0)
    assert sorted(heard.reports) == sorted(alone.reports)
    assert heard.reports != alone.reports
    reports, coins = np.frombuffer(heard.reports, dtype=query.randomizer.report_dtype), np.zeros(PEOPLE, dtype=np.uint8)
    assert query.randomizer.tally(reports, coins).counts.sum() == PEOPLE


def shuffler(crowd: int, seed: int = 1) -> Shuffler:
    """One with reproducible draws."""
    return Shuffler(Draws(KeyedNoise(seed)), crowd)


def test_below_the_crowd_nothing_is_passed_on() -> None:
    """And with one more client all of it is, once."""
    role = shuffler(3)
    role.take(0, Batch(2, b"aabb"))
    with pytest.raises(QuorumError, match="2 of the 3 clients"):
        role.release()
    role.take(5, Batch(2, b"cc"))
    released = role.release()
    assert sorted(released.reports[place : place + 2] for place in (0, 2, 4)) == [b"aa", b"bb", b"cc"]
    with pytest.raises(QuorumError):
        role.release()


def test_a_client_counts_once() -> None:
    """By its first report, so that repeating oneself makes no crowd."""
    role = shuffler(2)
    for report in (b"a", b"a", b"b"):
        role.take(7, Batch(1, report))
    assert (role.clients, role.duplicate, role.conflicting) == (1, 1, 1)
    with pytest.raises(QuorumError):
        role.release()


def test_every_order_is_as_likely() -> None:
    """The six orders of three reports over 6,000 batches: chi-square of 5 degrees below 30.9, which a uniform order exceeds once in 100,000."""
    draws = Draws(KeyedNoise(3))
    seen: Counter[bytes] = Counter()
    for _ in range(6000):
        role = Shuffler(draws, 3)
        role.take(0, Batch(1, b"abc"))
        seen[role.release().reports] += 1
    assert set(seen) == {bytes(order) for order in permutations(b"abc")}
    assert sum((count - 1000) ** 2 / 1000 for count in seen.values()) < 30.9


def test_reports_of_another_width_are_refused() -> None:
    """A width would be a name."""
    role = shuffler(2)
    role.take(0, Batch(1, b"a"))
    with pytest.raises(RefusedError, match="do not fit"):
        role.take(1, Batch(2, b"bb"))
    with pytest.raises(RefusedError, match="do not fit"):
        shuffler(2).take(0, Batch(2, b"abc"))


def test_nothing_of_a_record_is_shown() -> None:
    """Neither in its own words nor in a refusal."""
    role = shuffler(5)
    role.take(0, Batch(6, b"secret"))
    with pytest.raises(QuorumError) as refused:
        role.release()
    assert "secret" not in repr(role) + str(refused.value)


def test_public_coins_cannot_be_shuffled() -> None:
    """Their reports mean nothing without a client; and a crowd of one is none."""
    check_shufflable(GRR(1.0, k=4))
    with pytest.raises(InputError, match="public coin"):
        check_shufflable(Hadamard(1.0, k=4))
    with pytest.raises(InputError, match="crowd"):
        shuffler(1)
