"""What the clients of a run in memory accept: as real clients would refuse, unless told otherwise aloud."""

import asyncio
import math
import threading
import time
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from local_dp.errors import RefusedError
from local_dp.experiments.tiers.cluster import Cluster, ClusterOracle
from local_dp.experiments.tiers.outcome import Outcome
from local_dp.experiments.tiers.settings import LocalAlgorithm, OnProgress, Settings
from local_dp.interaction import run
from local_dp.ledger import Ledger
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracle import epsilon_of
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.watched import Watched
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import without_coin
from local_dp.server.progress import Interim, RoundProgress, Turnout
from local_dp.shuffle.central import Crowds
from local_dp.tallies import Tally
from local_dp.verification.gate import verify


class Verified:
    """Verifies every randomizer before anybody answers by it, as a client does (`local_dp.clients.role`).

    `allowed` is the clients' own list of names (None: all). With `anyway` a randomizer that fails is used all the same, and its failure is kept in `failures`.
    """

    def __init__(self, allowed: tuple[str, ...] | None, anyway: bool) -> None:
        self.allowed, self.anyway = allowed, anyway
        self.failures: list[str] = []

    def check(self, queries: tuple[LocalQuery, ...]) -> None:
        """Raises RefusedError as a client would."""
        for randomizer in {id(query.randomizer): query.randomizer for query in queries}.values():
            name = without_coin(randomizer).name
            if self.allowed is not None and name not in self.allowed:
                raise RefusedError("not-allowed", f"randomizer {name!r} is not on the clients' list: {', '.join(sorted(self.allowed))}")
            self._verify(randomizer)

    def _verify(self, randomizer: Randomizer) -> None:
        try:
            verify(randomizer)
        except RefusedError as error:
            if not self.anyway:
                raise RefusedError(error.code, f"{error}; a simulation may use it all the same (unverified)") from None
            if str(error) not in self.failures:
                self.failures.append(str(error))


def execute(settings: Settings, on_progress: OnProgress) -> Outcome:
    """Runs the protocol. Raises QuorumError, RefusedError or BusError; whatever happens, no process outlives it."""
    started = time.perf_counter()
    algorithm = settings.algorithm()
    if settings.tier in ("processes", "hosts"):
        from local_dp.experiments.tiers.over_bus import over_bus  # brokers and messages take a while to import

        outcome = asyncio.run(over_bus(algorithm, settings, on_progress))
    else:
        outcome = _in_memory(algorithm, settings, on_progress)
    return replace(outcome, wall=time.perf_counter() - started)


class _Rounds:
    """The rounds of a run in memory: how far the one that is played is, and how long each took."""

    def __init__(self, on_progress: OnProgress) -> None:
        self.on_progress = on_progress
        self.times: list[float] = []
        self.ledger: Ledger | None = None
        self._now = RoundProgress(0, 0, 0, 0.0, math.inf)
        self._tallies: list[Tally] = []
        self._lock = threading.Lock()

    @property
    def seconds(self) -> list[float]:
        return [end - start for start, end in zip(self.times[::2], self.times[1::2], strict=True)]

    def begin(self, queries: tuple[LocalQuery, ...]) -> None:
        self.times.append(time.perf_counter())
        self._tallies = [query.randomizer.empty() for query in queries]
        asked = sum(len(query.cohort) for query in queries)
        interim = Interim(queries, lambda: tuple(self._tallies))
        self._tell(RoundProgress(self._now.round + 1, 0, asked, epsilon_of(queries), math.inf, interim=interim))

    def answered(self, ask: int, tally: Tally) -> None:
        """More clients have answered one of the round's queries; called by several threads."""
        with self._lock:
            self._tallies[ask] += tally
            self._tell(replace(self._now, answered=self._now.answered + tally.n))

    def end(self, queries: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> None:
        self.times.append(time.perf_counter())
        self._tallies = list(tallies)
        self._tell(replace(self._now, answered=self._now.asked))

    def _tell(self, progress: RoundProgress) -> None:
        self._now = progress if self.ledger is None else replace(progress, spent=self.ledger.max_spent)
        self.on_progress(self._now)


def _oracle(settings: Settings, rounds: _Rounds, cluster: Cluster | None) -> PopulationOracle | AggregateOracle:
    population, seed = settings.population, settings.randomness.seed
    if settings.tier == "aggregate":
        return AggregateOracle(population, np.random.default_rng(seed), settings.epsilon)
    if cluster is not None:
        return ClusterOracle(cluster, population, seed, settings.epsilon, rounds.answered)
    return PopulationOracle(population, settings.randomness.noise(), settings.randomness.coin_seed, settings.epsilon, rounds.answered)


def _in_memory(algorithm: LocalAlgorithm, settings: Settings, on_progress: OnProgress) -> Outcome:
    started, rounds, verified = time.perf_counter(), _Rounds(on_progress), Verified(settings.allowed, settings.unverified)
    with Cluster(settings.cluster) if settings.cluster else nullcontext() as cluster:
        oracle = _oracle(settings, rounds, cluster)
        rounds.ledger = oracle.ledger
        watched = Watched(Watched(oracle, before=rounds.begin, after=rounds.end), before=verified.check)
        crowds = None if settings.behind is None else Crowds(settings.behind)
        result = run(algorithm, watched if crowds is None else Watched(watched, before=crowds.check, after=crowds.add))
    counts = Turnout(asked=sum(summary.n for summary in oracle.rounds), answered=sum(summary.n for summary in oracle.rounds))
    wall = time.perf_counter() - started
    central = None if crowds is None else crowds.central()
    spent, failures = oracle.ledger.max_spent, tuple(verified.failures)
    return Outcome(result, oracle.interaction, oracle.rounds, rounds.seconds, counts, 0, spent, wall, central, unverified=failures)
