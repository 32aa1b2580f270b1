"""What several tests build: a small table, requests, and runs over a bus in memory."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from local_dp.bus.memory import MemoryBroker
from local_dp.clients.journal import MemoryStore
from local_dp.clients.member import HOSTS, client_group, filters, serve
from local_dp.clients.role import ClientRole, Policy
from local_dp.interaction import run, run_async
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalAlgorithm, LocalQuery
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.queries.tables import Question
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import filters as server_filters
from local_dp.server.progress import Progress
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.server.round import Round
from local_dp.wire import Hello, Reply, Request, topic
from tests.support.runs.virtual_time import beside, run_virtually

SEED = 20080402
RUN = "test-run"
PATIENT = Terms(deadline=20.0, quorum=1.0)
# no law of a cost independent of n, or who may ask a client again
WITHOUT_LAW = {"heavy-hitters", "heavy-hitters-asked", "mean-vector", "longitudinal", "ladder"}
# parameters at which a few clients can play a protocol that gives every query its own, or check its
# randomizer at once
SMALL = """
prefix-sums: k=16
workload: k=8
marginals: columns=a;b;c
heavy-hitters: bits=8, share=0.09
heavy-hitters-asked: bits=14, share=0.09
mean-vector: d=2
mean-found: resolved=1000
quantiles: bins=32, tolerance=0.05
learn-conjunctions: d=3
learn-thresholds: bits=3, alpha=0.3
learn-naive-bayes: d=3
learn-low-degree: d=3
learn-linear-regression: d=2
learn-decision-lists: d=2
learn-perceptron: d=2, gamma=0.9
learn-trees: d=3, depth=2
learn-k-means: rounds_asked=3
learn-logistic-regression: d=2, alpha=0.4
learn: parameters=steps=4, bounds=age=20..79; visits=0..9
local-sgd: d=2, gamma=0.9, alpha=0.9, rounds=5, told=one-bit-mean
"""


def with_law() -> list[str]:
    """The protocols that run in the aggregate tier."""
    return [name for name in PROTOCOLS if name not in WITHOUT_LAW]


def small(name: str) -> LocalProtocol[Any]:
    """The protocol at a size that 20 clients can play."""
    settings = dict(line.split(": ", 1) for line in SMALL.strip().splitlines()).get(name, "")
    return PROTOCOLS[name].from_settings(
        dict(setting.split("=", 1) for setting in settings.split(", ") if setting)
    )


def yes_records(count: int, share: float = 0.3) -> Records:
    """A column `yes` of which the first `share` are 1."""
    return Records({"yes": (np.arange(count) < share * count).astype(np.uint8)})


def survey_query(stop: int, start: int = 0, randomizer: Randomizer | None = None) -> LocalQuery:
    """Whether `yes == 1`, asked of the clients start..stop."""
    return LocalQuery(Question("yes == 1"), randomizer or BinaryRR(1.0), Cohort(start, stop))


def request(*queries: LocalQuery, number: int = 1, run: str = RUN) -> Request:
    return Round(run, number, queries, SEED).request()


def reply_of(round: int, member: str, start: int, reports: bytes, ask: int = 0) -> Reply:
    """A member's reports of one byte each."""
    return Reply(
        run=RUN, round=round, member=member, ask=ask, start=start, width=1, reports=reports
    )


def arrive(
    coordinator: Coordinator,
    member: str,
    start: int,
    stop: int,
    now: float = 0.0,
    group: str = HOSTS,
) -> None:
    """A member of a simulation says hello."""
    coordinator.receive(
        topic(RUN, "hello", group, member),
        Hello(run=RUN, member=member, start=start, stop=stop, private=False),
        now,
    )


def role(
    records: Records,
    start: int = 0,
    budget: float = 1.0,
    member: str = "host-0",
    allowed: frozenset[str] | None = None,
) -> ClientRole:
    return ClientRole(
        member, start, records, KeyedNoise(SEED), MemoryStore(budget), Policy(allowed)
    )


def population_oracle(population: Population, budget: float = 1.0) -> PopulationOracle:
    return PopulationOracle(population, KeyedNoise(SEED), SEED, budget)


def play_in_memory(
    algorithm: LocalAlgorithm[Any],
    population: Population,
    members: int,
    broker: MemoryBroker,
    terms: Terms = PATIENT,
    as_processes: bool = False,
    after: float = 0.0,
    look: Callable[[Progress], None] = lambda progress: None,
) -> tuple[Any, Coordinator]:
    """A whole run over a bus in memory and in virtual time, the population shared out among
    `members`, and so many seconds in which late messages come."""

    async def play() -> tuple[Any, Coordinator]:
        coordinator = Coordinator(RUN, population.size, SEED, 1.0, terms)
        oracle = RemoteOracle(broker.join(server_filters(RUN)), coordinator, look)
        ends, living = [population.size * index // members for index in range(members + 1)], []
        for index, (start, stop) in enumerate(pairwise(ends)):
            group = client_group(index) if as_processes else HOSTS
            member = role(population.batch(start, stop), start, member=f"member-{index}")
            living.append(serve(member, broker.join(filters(RUN, group)), RUN, group))
        async with beside(oracle.serve(1.0), *living):
            await oracle.ready(20.0)
            result = await run_async(algorithm, oracle)
            await asyncio.sleep(after)
            return result, coordinator

    return run_virtually(play())


def in_population(
    algorithm: LocalAlgorithm[Any], population: Population
) -> tuple[Any, list[str | None]]:
    oracle = population_oracle(population)
    return run(algorithm, oracle), [summary.digest for summary in oracle.rounds]
