"""One way to ask: a protocol, a table or made-up clients, and how the run is to be."""

import asyncio
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, TypedDict

from local_dp.errors import InputError, unknown
from local_dp.experiments.api.result import Result
from local_dp.experiments.api.tables import Table, records_of, sample_rows
from local_dp.experiments.tiers.execute import execute
from local_dp.experiments.tiers.faults import Faults
from local_dp.experiments.tiers.outcome import Outcome, as_data
from local_dp.experiments.tiers.settings import EMBEDDED, OnProgress, Randomness, Settings, Tier
from local_dp.loss import nano_epsilon
from local_dp.populations.population import Population
from local_dp.populations.table import Resampled
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records
from local_dp.server.progress import Progress
from local_dp.server.quorum import Terms
from local_dp.shuffle.central import Behind

Announce: TypeAlias = Callable[[str], object]


class Options(TypedDict, total=False):
    """How a run is to be; each may be left out."""

    epsilon: float
    clients: int | None
    resample: bool
    tier: Tier
    hosts: int
    broker: str
    seed: int | None
    private: bool
    deadline: float
    quorum: float
    allow: tuple[str, ...] | None
    unverified: bool
    cluster: str
    shuffle: bool
    crowd: int
    delta: float
    fault: str
    worst_case: float | None
    stores: str
    progress: OnProgress | None
    watch: Announce | None
    notice: Callable[[str], None] | None


def _silence(progress: Progress) -> None:
    """Shows nothing."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is to be.

    `epsilon`: every client's budget, in nats. `clients`: how many; without it all rows, or what the bounds ask for 95 %; with `resample` rows are drawn with
    replacement. `tier`, `hosts`, `broker`: what the clients are, and where they meet. `seed` repeats a simulation; `private` draws the clients' noise from the
    operating system.
    `deadline` (seconds) and `quorum` (a share) end a round. `allow`: the clients' own list of randomizers; `unverified` uses one
    in memory that fails its verification, and the result says so.
    `shuffle` puts a shuffler between clients and server, which passes on what at least `crowd` clients have answered; the result then says what all reports
    lose together, beside `delta`. `worst_case` adds intervals that hold though clients are missing, for whatever reason, and this share of all of them lies.
    `cluster`: the address of a Dask scheduler whose workers simulate the population tier.
    `fault` is what goes wrong on purpose in tiers hosts and processes, as in "drop=.05,duplicate=.1,delay=.2,kill=3,lie=.01".
    `stores`: a folder in which processes or hosts keep what they have answered and spent: a second run on the same table is charged to the same budget.
    `progress` is called as the run goes on, and `notice` before it if the clients are fewer than the accuracy asks for (without it, that is a warning).
    `watch` is told the address of a page that shows it, as in `watch=print` or `watch=webbrowser.open`; the run
    waits some seconds for the browser if it returns True.
    """

    epsilon: float = 1.0
    clients: int | None = None
    resample: bool = False
    tier: Tier = "population"
    hosts: int = 2
    broker: str = EMBEDDED
    seed: int | None = None
    private: bool = False
    deadline: float = 30.0
    quorum: float = 0.9
    allow: tuple[str, ...] | None = None
    unverified: bool = False
    cluster: str = ""
    shuffle: bool = False
    crowd: int = Behind.crowd
    delta: float = Behind.delta
    fault: str = ""
    worst_case: float | None = None
    stores: str = ""
    progress: OnProgress | None = None
    watch: Announce | None = None
    notice: Callable[[str], None] | None = None

    @classmethod
    def of(cls, options: Options) -> "RunOptions":
        """Raises InputError for an option that there is not."""
        known = [each.name for each in fields(cls)]
        for name in options:
            if name not in known:
                raise InputError(unknown("no option", name, known))
        return cls(**options)

    def settings(self, protocol: LocalProtocol[Any], records: Records | None) -> Settings:
        """The run; says so where the clients are fewer than the accuracy asks for. Raises InputError."""
        nano_epsilon(self.epsilon)
        faults = Faults.parse(self.fault) if self.fault else None
        randomness = Randomness.choose(self.seed, self.private)
        population = self._population(protocol, records, randomness.seed)
        few = protocol.notice(self.epsilon, population.size)
        if few is not None:
            (self.notice or warnings.warn)(few)
        return Settings(
            protocol, population, self.epsilon, randomness, tier=self.tier, hosts=self.hosts, broker=self.broker, terms=Terms(self.deadline, self.quorum),
            allowed=self.allow, unverified=self.unverified, cluster=self.cluster, behind=Behind(self.crowd, self.delta) if self.shuffle else None,
            faults=faults, worst_case=self.worst_case, stores=self.stores,
        )  # fmt: skip

    def _population(self, protocol: LocalProtocol[Any], records: Records | None, seed: int) -> Population:
        """The table's rows, or a made-up population of as many clients as were asked for."""
        if records is None:
            return protocol.synthetic(protocol.clients(self.epsilon) if self.clients is None else self.clients, seed)
        clients = len(records) if self.clients is None else self.clients
        return Resampled(records, clients, seed) if self.resample else sample_rows(records, clients, seed)


def ask(protocol: LocalProtocol[Any], table: Table | None, how: RunOptions) -> Result:
    """Runs a protocol on a table, or without one on a made-up population, and gives its result. Raises what a run may raise, in one line.

    Works where an event loop is running too, as in a notebook.
    """
    records = None if table is None else records_of(table)
    told = protocol if records is None else protocol.for_table(Launch(records, how.private))
    settings = how.settings(told, records)
    return play(settings, how, lambda progress: _outside_loop(settings, progress))


def play(settings: Settings, how: RunOptions, run: Callable[[OnProgress], Outcome], truth_known: bool = True) -> Result:
    """The result of a run, which is shown on a page while it goes on if `how.watch` is there to be told of it.

    `truth_known` is whether the clients hold what the settings say they hold.
    """
    progress = how.progress or _silence
    if how.watch is None:
        return _result(settings, run(progress), truth_known)
    from local_dp.experiments.watch.events import Scene
    from local_dp.experiments.watch.server import watched

    scene = Scene(settings)

    def both(now: Progress) -> None:
        scene.show(now)
        progress(now)

    with watched(scene, how.watch):
        result = _result(settings, run(both), truth_known)
        scene.finish(result.data)
    return result


def _result(settings: Settings, outcome: Outcome, truth_known: bool) -> Result:
    return Result(as_data(settings, outcome, truth_known), settings.protocol, outcome.result)


def _outside_loop(settings: Settings, progress: OnProgress) -> Outcome:
    """The run itself; in a thread of its own where this one has a loop that runs. An interrupt ends the run before it goes on."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return execute(settings, progress)
    over = threading.Event()

    def watched(now: Progress) -> None:
        if over.is_set():
            raise InputError("the run was interrupted")
        progress(now)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(execute, settings, watched)
        try:
            return running.result()
        except BaseException:
            over.set()
            raise
