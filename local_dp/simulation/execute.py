"""Runs a protocol in its tier: over a broker, or in memory, where a randomizer is verified as real
clients verify it."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from local_dp.errors import InputError, RefusedError
from local_dp.interaction import run
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle, epsilon_of
from local_dp.populations.finite import Resampled, Rows
from local_dp.queries.query import fault_of
from local_dp.randomizers.with_coin import without_coin
from local_dp.registry import is_ours
from local_dp.server.progress import Interim, RoundProgress, Turnout
from local_dp.shuffle.central import Crowds
from local_dp.simulation.cluster import Cluster, ClusterOracle, Rounds
from local_dp.simulation.installation import rounds_folder
from local_dp.simulation.outcome import Outcome, table_digest
from local_dp.simulation.settings import OnProgress, Settings
from local_dp.tallies import Tally
from local_dp.verification.audit import verify


@dataclass(frozen=True)
class Verified:
    """Verifies every randomizer before it is used, as a client does (`local_dp.clients.role`).

    `allowed` is the clients' own list of names (None: all). With `anyway` a randomizer that fails
    is used all the same, and its failure is kept in `failures`.
    """

    allowed: tuple[str, ...] | None
    anyway: bool
    failures: list[str] = field(default_factory=list)

    def check(self, queries: tuple[LocalQuery, ...]) -> None:
        """Raises RefusedError as a client would."""
        for randomizer in {id(query.randomizer): query.randomizer for query in queries}.values():
            name = without_coin(randomizer).name
            if self.allowed is not None and name not in self.allowed:
                raise RefusedError(
                    "not-allowed",
                    f"randomizer {name!r} is not on the clients' list: "
                    f"{', '.join(sorted(self.allowed))}",
                )
            try:
                verify(randomizer)
            except RefusedError as error:
                if not self.anyway:
                    raise RefusedError(
                        error.code, f"{error}; a simulation may use it all the same (unverified)"
                    ) from None
                if str(error) not in self.failures:
                    self.failures.append(str(error))


FEW = 64  # clients whose values show what is wrong with a query


def check_asked(queries: tuple[LocalQuery, ...], settings: Settings) -> None:
    """Raises InputError for a query to clients that there are not, and in a simulation for a
    plug-in's whose values are not as it declares them."""
    population = settings.population
    for query in queries:
        start, stop = query.cohort.start, query.cohort.stop
        if stop > population.size:
            raise InputError(
                f"the round asks client {stop - 1}, but there are {population.size} clients"
            )
        if not (is_ours(type(query.query)) or settings.randomness.private):
            records = population.batch(start, min(stop, start + FEW))
            if fault := fault_of(query.query, records):
                raise InputError(f"query {query.query.name!r}: {fault}")


def execute(settings: Settings, on_progress: OnProgress) -> Outcome:
    """Runs the protocol. Raises QuorumError, RefusedError or BusError; no process outlives it."""
    if settings.tier in ("processes", "hosts"):
        from local_dp.simulation.over_bus import over_bus  # takes a while to import

        work = over_bus(settings, on_progress)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(work)
        return _beside_the_loop(work)
    with Cluster(settings.cluster) if settings.cluster else nullcontext() as cluster:
        rounds = _Rounds(settings, on_progress, cluster)
        result = run(settings.algorithm, rounds)
    oracle = rounds.oracle
    if isinstance(oracle, ClusterOracle):
        oracle.storage.over()
    answers = sum(summary.n for summary in oracle.rounds)
    central = None if rounds.crowds is None else rounds.crowds.central()
    return Outcome(
        result=result,
        interaction=oracle.interaction,
        rounds=oracle.rounds,
        seconds=rounds.seconds,
        counts=Turnout(asked=answers, answered=answers),
        max_epsilon_spent=oracle.ledger.max_spent,
        central=central,
        failures=tuple(rounds.verifier.failures),
    )


def _beside_the_loop(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """The outcome of a run beside this thread's event loop, as in a notebook: in a thread of its
    own, which an interrupt ends first."""
    cancels: list[Callable[[], object]] = []

    async def cancellable() -> Outcome:
        task = asyncio.ensure_future(work)
        cancels.append(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        return await task

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(asyncio.run, cancellable())
        try:
            return running.result()
        except BaseException:
            for cancel in cancels if not running.done() else ():
                cancel()
            raise


def _key_of(settings: Settings) -> str:
    """Equal for two simulations that the same code computes bit for bit alike, and else different
    (up to a collision)."""
    population = settings.population
    table = table_digest(population.whole) if isinstance(population, Rows | Resampled) else ""
    dealing = population.dealing if isinstance(population, Rows) else None
    about = (
        settings.protocol,
        settings.epsilon,
        population.size,
        table,
        dealing,
        settings.randomness.seed,
        settings.behind,
        settings.override,
    )
    return blake2b(repr(about).encode(), digest_size=16).hexdigest()


class _Rounds:
    """The oracle of a run in memory: verifies the randomizers of each round, shows its progress,
    and measures its time."""

    def __init__(
        self, settings: Settings, on_progress: OnProgress, cluster: Cluster | None
    ) -> None:
        self.settings, self.on_progress = settings, on_progress
        self.verifier = Verified(settings.allowed, settings.unverified)
        self.crowds = None if settings.behind is None else Crowds(settings.behind)
        self.seconds: list[float] = []
        self._now = RoundProgress(0, 0, 0, 0.0, math.inf)
        self._tallies: list[Tally] = []
        self._lock = threading.Lock()
        population, chance, budget = settings.population, settings.randomness, settings.epsilon
        self.oracle: PopulationOracle | AggregateOracle
        if settings.tier == "aggregate":
            self.oracle = AggregateOracle(population, np.random.default_rng(chance.seed), budget)
        elif cluster is not None:
            self.oracle = ClusterOracle(
                cluster,
                population,
                chance.seed,
                budget,
                self.answered,
                Rounds(rounds_folder() / _key_of(settings)),
            )
        else:
            self.oracle = PopulationOracle(
                population, chance.noise(), chance.coin_seed, budget, self.answered
            )

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """One round. Raises RefusedError, and behind a shuffler QuorumError, before anybody
        answers."""
        check_asked(queries, self.settings)
        if self.crowds is not None:
            self.crowds.check(queries)
        self.verifier.check(queries)
        began = time.perf_counter()
        so_far = self._tallies = [query.randomizer.empty() for query in queries]
        size = sum(len(query.cohort) for query in queries)
        interim = Interim(queries, lambda: tuple(so_far))
        self._show(
            RoundProgress(
                self._now.round + 1, 0, size, epsilon_of(queries), math.inf, interim=interim
            )
        )
        tallies = self.oracle.answer(queries)
        self.seconds.append(time.perf_counter() - began)
        so_far[:] = tallies
        self._show(replace(self._now, answered=self._now.asked))
        # the oracle refers back to this object, and tallies may be large
        self._tallies, self._now = [], replace(self._now, interim=None)
        if self.crowds is not None:
            self.crowds.add(queries, tallies)
        return tallies

    def answered(self, ask: int, tally: Tally) -> None:
        """More clients have answered one of the round's queries; called by several threads."""
        with self._lock:
            self._tallies[ask] += tally
            self._show(replace(self._now, answered=self._now.answered + tally.n))

    def _show(self, progress: RoundProgress) -> None:
        self._now = replace(progress, spent=self.oracle.ledger.max_spent)
        self.on_progress(self._now)
