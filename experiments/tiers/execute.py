"""Runs a protocol in its tier: over a broker, or in memory, where a randomizer is verified as real clients verify it."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from local_dp.errors import RefusedError
from local_dp.experiments.tiers.cluster import Cluster, ClusterOracle
from local_dp.experiments.tiers.outcome import Outcome
from local_dp.experiments.tiers.settings import OnProgress, Settings
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
    """Verifies every randomizer before it is used, as a client does (`local_dp.clients.role`).

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
    """Runs the protocol. Raises QuorumError, RefusedError or BusError; no process outlives it."""
    started = time.perf_counter()
    if settings.tier in ("processes", "hosts"):
        from local_dp.experiments.tiers.over_bus import over_bus  # brokers and messages take a while to import

        outcome = asyncio.run(over_bus(settings, on_progress))
    else:
        outcome = _in_memory(settings, on_progress)
    return replace(outcome, wall=time.perf_counter() - started)


class _Rounds:
    """The rounds of a run in memory: the progress of the open one, and how long each took."""

    def __init__(self, on_progress: OnProgress, checks: Sequence[Callable[[tuple[LocalQuery, ...]], None]]) -> None:
        self.on_progress = on_progress
        self.checks = checks
        self.seconds: list[float] = []
        self.ledger: Ledger | None = None
        self._began = 0.0
        self._now = RoundProgress(0, 0, 0, 0.0, math.inf)
        self._tallies: list[Tally] = []
        self._lock = threading.Lock()

    def begin(self, queries: tuple[LocalQuery, ...]) -> None:
        for check in self.checks:
            check(queries)
        self._began = time.perf_counter()
        self._tallies = [query.randomizer.empty() for query in queries]
        size = sum(len(query.cohort) for query in queries)
        interim = Interim(queries, lambda: tuple(self._tallies))
        self._show(RoundProgress(self._now.round + 1, 0, size, epsilon_of(queries), math.inf, interim=interim))

    def answered(self, ask: int, tally: Tally) -> None:
        """More clients have answered one of the round's queries; called by several threads."""
        with self._lock:
            self._tallies[ask] += tally
            self._show(replace(self._now, answered=self._now.answered + tally.n))

    def end(self, queries: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> None:
        self.seconds.append(time.perf_counter() - self._began)
        self._tallies = list(tallies)
        self._show(replace(self._now, answered=self._now.asked))

    def _show(self, progress: RoundProgress) -> None:
        self._now = progress if self.ledger is None else replace(progress, spent=self.ledger.max_spent)
        self.on_progress(self._now)


def _oracle(settings: Settings, rounds: _Rounds, cluster: Cluster | None) -> PopulationOracle | AggregateOracle:
    population, seed = settings.population, settings.randomness.seed
    if settings.tier == "aggregate":
        return AggregateOracle(population, np.random.default_rng(seed), settings.epsilon)
    if cluster is not None:
        return ClusterOracle(cluster, population, seed, settings.epsilon, rounds.answered)
    return PopulationOracle(population, settings.randomness.noise(), settings.randomness.coin_seed, settings.epsilon, rounds.answered)


def _in_memory(settings: Settings, on_progress: OnProgress) -> Outcome:
    started, verified = time.perf_counter(), Verified(settings.allowed, settings.unverified)
    crowds = None if settings.behind is None else Crowds(settings.behind)
    rounds = _Rounds(on_progress, [verified.check] if crowds is None else [crowds.check, verified.check])

    def end(queries: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> None:
        rounds.end(queries, tallies)
        if crowds is not None:
            crowds.add(queries, tallies)

    with Cluster(settings.cluster) if settings.cluster else nullcontext() as cluster:
        oracle = _oracle(settings, rounds, cluster)
        rounds.ledger = oracle.ledger
        result = run(settings.algorithm, Watched(oracle, rounds.begin, end))
    answered = sum(summary.n for summary in oracle.rounds)
    return Outcome(
        result=result,
        interaction=oracle.interaction,
        rounds=oracle.rounds,
        seconds=rounds.seconds,
        counts=Turnout(asked=answered, answered=answered),
        max_epsilon_spent=oracle.ledger.max_spent,
        wall=time.perf_counter() - started,
        central=None if crowds is None else crowds.central(),
        unverified=tuple(verified.failures),
    )
