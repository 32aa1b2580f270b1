"""A draw from a law beside the thing itself: one small point run client by client, every record through its query and its randomizer."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from local_dp.errors import LocalDPError
from local_dp.experiments.lab.claim import Check, Measurement
from local_dp.experiments.lab.intervals import wilson
from local_dp.interaction import Algorithm, run
from local_dp.loss import exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.watched import Watched
from local_dp.populations.population import Population
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Tally

R = TypeVar("R")
DEPARTURE = 3.9  # standard errors: a right program fails one comparison in 10,000


@dataclass(frozen=True)
class Trial:
    """One small point of an experiment: a protocol, the people it asks and what counts as success."""

    algorithm: Algorithm[LocalQuery, Tally, Any]
    population: Callable[[int], Population]  # the clients of the run with this seed
    succeeds: Callable[[Any, Population], bool]
    clients: int
    epsilon: float
    everybody: bool = True  # whether every run asks all the clients; if not, only nobody else


def cross_check(make: Callable[[], Trial], seed: int, *, users: int = 400, laws: int = 1600) -> Measurement:
    """How often the trial succeeds client by client (`users` runs) and drawn from its law (`laws` runs), whom it asks, and its randomizers' largest exact loss.

    A protocol that a client or the library refuses, when it is made or when it runs (budget, cohort, loss), gives {"refused": why}, which
    `cross_check_shown` makes a check that is not shown.
    Cost: users * clients reports.
    """
    try:
        return _measured(make(), seed, users, laws)
    except LocalDPError as error:
        return {"refused": str(error)}


def _measured(trial: Trial, seed: int, users: int, laws: int) -> Measurement:
    generator = np.random.default_rng([seed, trial.clients])
    losses: dict[Randomizer, Fraction] = {}  # each randomizer is enumerated once
    asked, found, made = set(), {"users": 0, "law": 0}, [0, 0]
    for kind, runs in (("users", users), ("law", laws)):
        for drawn in generator.integers(1 << 62, size=runs).tolist():
            population = trial.population(drawn)
            oracle: AggregateOracle | PopulationOracle = AggregateOracle(population, generator, trial.epsilon)
            if kind == "users":
                oracle = PopulationOracle(population, KeyedNoise(drawn), drawn, trial.epsilon)
            queries: list[LocalQuery] = []
            watched = Watched(oracle, before=queries.extend)
            found[kind] += trial.succeeds(run(trial.algorithm, watched), population)
            clients = sum(len(query.cohort) for query in queries)
            asked.add((clients, max(query.cohort.stop for query in queries)))
            if kind == "users":
                made = [made[0] + sum(summary.n for summary in oracle.rounds if summary.digest), made[1] + clients]
            losses |= {randomizer: exact_ratio(randomizer) for randomizer in {query.randomizer for query in queries} - losses.keys()}
    return {
        "clients": trial.clients,
        "users": [found["users"], users],
        "law": [found["law"], laws],
        "asked": sorted(asked),  # (how many, one past the last) of every run: the budget sees to it that nobody is asked twice
        "everybody": trial.everybody,
        "made": made,  # reports that somebody made and the server digested, of those asked for client by client; a tally drawn from its law has no digest
        "loss": math.log(max(losses.values())),
        "charged": all(ratio <= exp_epsilon(randomizer.nano) for randomizer, ratio in losses.items()),  # decided in whole numbers
        "epsilon": trial.epsilon,
    }


def cross_check_shown(what: str, found: Measurement, least: float = 0.0, way: str = "client by client") -> Check:
    """Whether both ways succeed alike and at least with probability `least`, ask whom they should, and lose no more than epsilon; `what` names protocol and
    point. Rates are compared at 3.9 standard errors."""
    statement = f"{what}: {way} it succeeds as often as drawn from its law" + (f", not below {least:.0%}" if least else "")
    if "refused" in found:
        return Check(statement, False, f"refused: {found['refused']}")
    (users, user_runs), (laws, law_runs) = found["users"], found["law"]
    alike = agree(users, user_runs, laws, law_runs) and wilson(users, user_runs, DEPARTURE)[1] >= least
    counted = all(last <= found["clients"] and (asked == found["clients"] or not found["everybody"]) for asked, last in found.get("asked", []))
    made, owed = found.get("made", (0, 0))
    private = found.get("loss", 0.0) <= found.get("epsilon", math.inf) * (1 + 1e-12) and found.get("charged", True)
    low, high = wilson(users, user_runs)
    evidence = (
        f"{found['clients']:,} clients: {users / user_runs:.3f} of {user_runs} runs {way} [{low:.3f}, {high:.3f}], "
        f"{laws / law_runs:.3f} of {law_runs} from the law"
    )
    if "asked" in found:
        fewest, most = min(asked for asked, _ in found["asked"]), max(asked for asked, _ in found["asked"])
        evidence += f"; asked {f'{fewest:,} to ' if fewest < most else ''}{most:,} of {found['clients']:,}"
    if made < owed:
        evidence += f"; {made:,} of {owed:,} reports made by a client"
    if "loss" in found:
        evidence += f"; largest exact loss {found['loss']:.6f}"
    return Check(statement, alike and counted and made == owed and private, evidence)


def agree(first: int, first_runs: int, second: int, second_runs: int) -> bool:
    """Whether two success rates differ by less than 3.9 standard errors of their pooled rate, half a success each way allowed for rates near 0 and 1."""
    pooled = (first + second + 1) / (first_runs + second_runs + 2)
    error = math.sqrt(pooled * (1 - pooled) * (1 / first_runs + 1 / second_runs))
    return abs(first / first_runs - second / second_runs) <= DEPARTURE * error
