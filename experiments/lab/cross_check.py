"""A draw from a law beside the thing itself: one small point run client by client, every record
through its query and its randomizer."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from local_dp.errors import LocalDPError
from local_dp.experiments.lab.checks import alike
from local_dp.experiments.lab.shapes import ALPHA, Check
from local_dp.experiments.lab.statistics import Rate
from local_dp.interaction import Algorithm, Watched, run
from local_dp.loss import exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Tally


@dataclass(frozen=True)
class CrossCheck:
    """How often a trial succeeded client by client and drawn from its law, and whom it asked."""

    clients: int
    users: tuple[int, int]  # (successes, runs) client by client
    law: tuple[int, int]  # the same, drawn from the law
    # (how many, one past the last) of every run: the budget sees to it that nobody is asked twice
    asked: tuple[tuple[int, int], ...] = ()
    everybody: bool = True
    # reports that a client made and the server digested, of those requested; a tally drawn from its
    # law has no digest
    made: tuple[int, int] = (0, 0)
    loss: float = 0.0  # the largest exact one of its randomizers
    # whether no randomizer loses more than is charged, decided in whole numbers
    charged: bool = True
    epsilon: float = math.inf


@dataclass(frozen=True)
class Refusal:
    """A protocol that a client or the library refused, and why."""

    refused: str


Crossing = CrossCheck | Refusal


@dataclass(frozen=True)
class Trial:
    """One small point of an experiment: a protocol, the people it asks and what counts as
    success."""

    algorithm: Algorithm[LocalQuery, Tally, Any]
    population: Callable[[int], Population]  # the clients of the run with this seed
    succeeds: Callable[[Any, Population], bool]
    clients: int
    epsilon: float
    everybody: bool = True  # whether every run asks all the clients; if not, it may ask fewer


def exact_trial(protocol: LocalProtocol[Any], epsilon: float, clients: int) -> Trial:
    """A protocol with synthetic clients, which succeeds if it finds their concept exactly."""

    def exact(result: Any, population: Population) -> bool:
        return protocol.true_error(result, population) == 0

    return Trial(
        protocol.algorithm(epsilon, clients),
        lambda seed: protocol.synthetic(clients, seed),
        exact,
        clients,
        epsilon,
    )


def cross_check(
    make: Callable[[], Trial], seed: int, *, users: int = 400, laws: int = 1600
) -> Crossing:
    """How often the trial succeeds client by client (`users` runs) and drawn from its law (`laws`
    runs).

    A protocol that a client or the library refuses, when it is made or when it runs, gives a
    Refusal: a check that is not shown. Cost: users * clients reports.
    """
    try:
        return _measure(make(), seed, users, laws)
    except LocalDPError as error:
        return Refusal(str(error))


def _measure(trial: Trial, seed: int, users: int, laws: int) -> CrossCheck:
    generator = np.random.default_rng([seed, trial.clients])
    losses: dict[Randomizer, Fraction] = {}  # each randomizer is enumerated once
    cohorts, successes = set(), {"users": 0, "law": 0}
    reports = requests = 0
    for kind, runs in (("users", users), ("law", laws)):
        for draw in generator.integers(1 << 62, size=runs).tolist():
            population = trial.population(draw)
            oracle: AggregateOracle | PopulationOracle
            if kind == "users":
                oracle = PopulationOracle(population, KeyedNoise(draw), draw, trial.epsilon)
            else:
                oracle = AggregateOracle(population, generator, trial.epsilon)
            queries: list[LocalQuery] = []
            watcher = Watched(oracle, before=queries.extend)
            successes[kind] += trial.succeeds(run(trial.algorithm, watcher), population)
            clients = sum(len(query.cohort) for query in queries)
            cohorts.add((clients, max(query.cohort.stop for query in queries)))
            if kind == "users":
                reports += sum(summary.n for summary in oracle.rounds if summary.digest)
                requests += clients
            for randomizer in {query.randomizer for query in queries} - losses.keys():
                losses[randomizer] = exact_ratio(randomizer)
    return CrossCheck(
        clients=trial.clients,
        users=(successes["users"], users),
        law=(successes["law"], laws),
        asked=tuple(sorted(cohorts)),
        everybody=trial.everybody,
        made=(reports, requests),
        loss=math.log(max(losses.values())),
        charged=all(ratio <= exp_epsilon(randomizer.nano) for randomizer, ratio in losses.items()),
        epsilon=trial.epsilon,
    )


def cross_check_shown(
    what: str, crossing: Crossing, least: float = 0.0, way: str = "client by client"
) -> Check:
    """Whether both ways succeed alike and at least with probability `least`, ask the right clients,
    and lose no more than epsilon.

    `what` names protocol and point.
    """
    statement = f"{what}: {way} it succeeds as often as drawn from its law"
    if least:
        statement += f", not below {least:.0%}"
    if isinstance(crossing, Refusal):
        return Check(statement, False, f"refused: {crossing.refused}")
    users, law = Rate(*crossing.users), Rate(*crossing.law)
    same, difference = alike(users, law, ALPHA / 2)
    reports, requests = crossing.made
    passes = same and not users.below(least, ALPHA / 2) and reports == requests
    evidence = f"{crossing.clients:,} clients: {users} runs {way}, {law} from the law"
    if crossing.asked:
        sizes, ends = zip(*crossing.asked, strict=True)
        fewest, most = min(sizes), max(sizes)
        passes = passes and max(ends) <= crossing.clients
        if crossing.everybody:
            passes = passes and fewest == most == crossing.clients
        number = f"{fewest:,} to {most:,}" if fewest < most else f"{most:,}"
        evidence += f"; asked {number} of {crossing.clients:,}"
    if reports < requests:
        evidence += f"; {reports:,} of {requests:,} reports made by a client"
    if crossing.loss:
        evidence += f"; largest exact loss {crossing.loss:.6f}"
    private = crossing.loss <= float(crossing.epsilon) * (1 + 1e-12) and crossing.charged
    catches = f"a difference of {difference:.3f}"
    return Check(statement, passes and private, evidence, ALPHA, catches)
