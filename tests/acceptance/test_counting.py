"""Acceptance tests 19 and 23: a report counts once, in its own round; and a round with silent and late clients ends in time and says whom it counted."""

import asyncio
import random
from typing import Any

import numpy as np
import pytest

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import client_group, filters, serve
from local_dp.errors import QuorumError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Category
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.server import listening
from local_dp.server.coordinator import Coordinator
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.tallies import Tally
from local_dp.wire import Hello, Reply, decode, encode, topic
from tests.support.figures import figure
from tests.support.inputs.builders import RUN, SEED, role, survey_query, yes_records
from tests.support.runs.virtual_time import beside, run_virtually

CANARIES = 100  # clients, and symbols: each client reports one that no other reports in that round
CANARY = LocalQuery(Category("c", tuple(f"s{place}" for place in range(CANARIES))), GRR(1.0, k=CANARIES), Cohort(0, CANARIES))


def _reply(client: int, round: int) -> tuple[str, bytes]:
    symbol = np.array([(client + 7 * round) % CANARIES]).astype(CANARY.randomizer.report_dtype)
    reply = Reply(run=RUN, round=round, member=f"m{client}", ask=0, start=client, width=symbol.itemsize, reports=symbol.tobytes())
    return topic(RUN, "rep", "g0", f"m{client}"), encode(reply)


def _once(rounds: int, seed: int) -> tuple[int, int]:
    """Each reply five times, in any order, with replies of other rounds, and after the end: the reports accepted, and those that came beside."""
    chance, coordinator = random.Random(seed), Coordinator(RUN, CANARIES, SEED, 24.0, Terms(20.0, 0.5))
    for client in range(CANARIES):
        coordinator.receive(topic(RUN, "hello", "g0", f"m{client}"), Hello(run=RUN, member=f"m{client}", start=client, stop=client + 1, private=False), 0.0)
    sent: list[tuple[str, bytes]] = []
    accepted, tallies = 0, list[Tally]()
    for number in range(1, rounds + 1):
        now = 30.0 * number
        coordinator.open((CANARY,), now)
        answering = chance.sample(range(CANARIES), chance.randint(60, CANARIES))
        fresh = [_reply(client, number) for client in answering for _ in range(5)]
        ahead = [_reply(client, number + 1) for client in range(0, CANARIES, 9)]  # for a round that nobody has asked
        coming = fresh + ahead + chance.sample(sent, min(len(sent), 300))
        chance.shuffle(coming)
        for where, payload in coming:
            coordinator.receive(where, decode(payload), now + 1.0)
        sent += fresh
        (tally,) = coordinator.close(now + 20.0)
        tallies.append(tally)
        for where, payload in chance.sample(fresh, 100):
            coordinator.receive(where, decode(payload), now + 21.0)
        symbols = {(client + 7 * number) % CANARIES for client in answering}
        assert {int(cell) for cell in tally.counts[0].nonzero()[0]} == symbols, "a report of somebody else's, or of another round"
        assert set(tally.counts[0].tolist()) <= {0, 1}, "a report counts twice"
        assert tally.n == len(answering) == coordinator.rounds[-1].n
        accepted += len(answering)
    for where, payload in sent:
        coordinator.receive(where, decode(payload), 1e6)
    assert coordinator.counts.answered == accepted == sum(int(tally.counts.sum()) for tally in tallies)
    assert coordinator.counts.conflicting == 0
    return accepted, coordinator.counts.duplicate + coordinator.counts.late + coordinator.rejected


@pytest.mark.parametrize("seeds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_report_counts_once(seeds: int) -> None:
    """100 clients that each report a symbol of their own, 20 rounds, every reply five times and again in later rounds: each cell is 0 or 1."""
    accepted, beside = np.sum([_once(20, seed) for seed in range(seeds)], axis=0)
    figure(19, f"{CANARIES} clients x 20 rounds x {seeds} seeds: {accepted:,} reports accepted, each once, beside {beside:,} repeated, late and replayed ones")


CLIENTS, DEADLINE = 100, 20.0
SILENT, LATE = set(range(0, CLIENTS, 10)) | set(range(1, CLIENTS, 10)) | set(range(2, CLIENTS, 10)), {*range(3, CLIENTS, 10), *range(4, CLIENTS, 10)}


class _Slow(MemoryBroker):
    """Loses all that silent clients answer, and delays what late ones do until the round is over."""

    def route(self, delivery: Delivery) -> None:
        _, _, _, leaf, *others = delivery.topic.split("/")
        client = int(others[-1].removeprefix("client-")) if leaf == "rep" else -1
        if client in LATE:
            asyncio.get_running_loop().call_later(DEADLINE + 3.0, super().route, delivery)
        elif client not in SILENT:
            super().route(delivery)


def _partial(quorum: float) -> tuple[Any, Coordinator, float]:
    """A round of which 30 % are never heard and 20 % too late: its tally or its error, the server, and how long it took."""

    async def play() -> tuple[Any, Coordinator, float]:
        broker, records, loop = _Slow(), yes_records(CLIENTS), asyncio.get_running_loop()
        shuffled = records.take(np.random.default_rng(SEED).permutation(CLIENTS))
        coordinator = Coordinator(RUN, CLIENTS, SEED, 4.0, Terms(DEADLINE, quorum))
        oracle = RemoteOracle(broker.join(listening.filters(RUN)), coordinator)
        members = [(role(shuffled.take(slice(at, at + 1)), at, 4.0, f"client-{at}"), client_group(at)) for at in range(CLIENTS)]
        living = (serve(member, broker.join(filters(RUN, group)), RUN, group) for member, group in members)
        async with beside(oracle.serve(1.0), *living):
            await oracle.ready(5.0)
            began, result = loop.time(), list[Any]()
            try:
                result += await oracle.answer((survey_query(CLIENTS),))
            except QuorumError as error:
                result.append(error)
            took = loop.time() - began
            await asyncio.sleep(2 * DEADLINE)  # in which the late ones come
        return result[0], coordinator, took

    return run_virtually(play())


def test_a_round_ends_without_the_silent_and_the_late() -> None:
    """It closes at its deadline, within a second; counts the late ones and does not use them; and its error is that of the reports that it used."""
    tally, coordinator, took = _partial(0.4)
    counts, used = coordinator.counts, CLIENTS - len(SILENT) - len(LATE)
    estimate = survey_query(CLIENTS).randomizer.estimate(tally)
    error, sigma = abs(float(estimate.value) - 0.3), float(estimate.standard_error)
    figure(
        23,
        f"closed after {took:.2f} s of {DEADLINE:.0f}; {counts.answered} of {counts.asked} answered, {counts.late} late, {counts.missing} missing; "
        f"error {error:.3f} = {error / sigma:.1f} sigma of {estimate.n} reports",
    )
    assert abs(took - DEADLINE) <= 1.0
    assert (counts.answered, counts.late, counts.missing) == (used, len(LATE), CLIENTS - used)
    assert (estimate.n, tally.n) == (used, used)
    assert error <= 5 * sigma
    assert sigma == pytest.approx((np.e + 1) / (np.e - 1) / used**0.5 / 2, rel=0.2), "that of the reports that were used, at epsilon 1"


def test_under_the_least_batch_there_is_no_result() -> None:
    """Half of the clients where 60 % are asked for: an error that says so, at the same time, and nothing among the rounds that were finished."""
    refused, coordinator, took = _partial(0.6)
    assert isinstance(refused, QuorumError)
    assert f"{CLIENTS // 2} of {CLIENTS}" in str(refused)
    assert abs(took - DEADLINE) <= 1.0
    assert coordinator.rounds == []
