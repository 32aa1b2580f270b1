"""The local oracles of KLNRS Section 4.1 in memory: every client simulated, or the tally drawn from
its law; and the record that each keeps."""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from threading import Event
from typing import Literal, TypeAlias

import numpy as np

from local_dp.errors import RefusedError
from local_dp.ledger import Ledger, Steps
from local_dp.loss import NANO
from local_dp.noise import COINS, Draw, KeyedNoise, Noise
from local_dp.oracles.local.asked import (
    CHUNK,
    Asking,
    Cohort,
    LocalQuery,
    cells_of,
    chunk_digest,
    round_digest,
)
from local_dp.oracles.local.memory import FRESH, Fresh, Memoised, Memory, Session
from local_dp.populations.finite import Population
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import without_coin
from local_dp.records import chunks
from local_dp.tallies import Tally

Interaction: TypeAlias = Literal["non-interactive", "sequentially interactive", "fully interactive"]


@dataclass(frozen=True)
class RoundSummary:
    """What happened in one round, however it was run: n reports to its queries."""

    n: int
    digest: str | None
    queries: tuple[LocalQuery, ...] = ()

    @property
    def epsilon(self) -> float:
        """The most epsilon that any one client was asked for, in nats."""
        return epsilon_of(self.queries)

    @property
    def bits_per_client(self) -> int:
        """The most bits that any one client was asked for."""
        return _sums(self.queries, [query.randomizer.bits for query in self.queries]).maximum

    @property
    def randomizers(self) -> tuple[Randomizer, ...]:
        """Each once."""
        return tuple(dict.fromkeys(query.randomizer for query in self.queries))


class LocalOracle:
    """The asker's own account: checks and charges each round before anybody is asked, at most
    `budget` nats a client, and keeps the summaries of the rounds. A real client charges its own
    ledger too (`ClientRole`)."""

    def __init__(self, budget: float, run: str = "run") -> None:
        self.run = run
        self.ledger = Ledger(budget)
        self.rounds: list[RoundSummary] = []
        self._round_count = 0
        self._rounds_of = Steps()  # in how many rounds each client was asked

    def begin(self, queries: tuple[LocalQuery, ...], repeats: bool = True) -> int:
        """The number of the round, from 1, once it is charged. Leaves no trace where it raises.

        Raises RefusedError("budget"), and without `repeats` RefusedError("asked-twice") if a client
        is asked two things, now or in two rounds.
        """
        spans = list(_sums(queries, [1] * len(queries)).spans())
        for start, stop, times in () if repeats else spans:
            if times + self._rounds_of.most(start, stop) > 1:
                raise RefusedError(
                    "asked-twice",
                    (
                        f"client {start} is asked more than once, and tallies drawn from their "
                        "law forget its record; use --tier population"
                    ),
                )
        self.ledger.charge(self.run, [query.charge() for query in queries])
        self._round_count += 1
        for start, stop, _ in spans:
            self._rounds_of.add(start, stop, 1)
        return self._round_count

    def finish(self, queries: tuple[LocalQuery, ...], n: int, digest: str | None) -> None:
        """The round is over, with n reports."""
        self.rounds.append(RoundSummary(n, digest, queries))

    @property
    def interaction(self) -> Interaction:
        """One round is non-interactive; several are sequentially interactive if nobody was asked in
        two of them, else fully interactive."""
        if self._round_count <= 1:
            return "non-interactive"
        return "sequentially interactive" if self._rounds_of.maximum <= 1 else "fully interactive"


def epsilon_of(queries: tuple[LocalQuery, ...]) -> float:
    """The most epsilon that one client pays for all that it is asked, in nats; for what a cohort is
    asked again under a label it pays once."""
    due = []
    payments = set[tuple[str, Cohort]]()
    for query in queries:
        payment = query.label, query.cohort
        due.append(0 if query.label and payment in payments else query.randomizer.nano)
        payments.add(payment)
    return _sums(queries, due).maximum / NANO


def _sums(queries: tuple[LocalQuery, ...], amounts: list[int]) -> Steps:
    """The sum over each client's asks."""
    sums = Steps()
    for query, amount in zip(queries, amounts, strict=True):
        sums.add(query.cohort.start, query.cohort.stop, amount)
    return sums


_KEPT = 24 << 20  # bytes
_TOGETHER = 4  # chunks answered by one thread without a look at the others
_SHARES = 8  # parts for each worker at least, where there are chunks enough

OnChunk: TypeAlias = Callable[[int, Tally], object]


def keep_memory() -> None:
    """Has the allocator keep a chunk's memory for the next: glibc gives it back, and paying for its
    pages again takes a third of all time."""
    np.empty(_KEPT, dtype=np.uint8)  # never touched, so it takes no memory


def shared(work: range, workers: int, most: int) -> list[range]:
    """Splits the chunks into tasks: several per worker, at most `most` chunks each, so that no
    worker waits long for the last."""
    each = max(1, min(most, len(work) // (_SHARES * workers)))
    return [work[first : first + each] for first in range(0, len(work), each)]


@dataclass(frozen=True)
class AskedOf:
    """One ask of simulated clients: `which` of their words answer it, `coins` the key of public
    coins, `memory` what the clients remember.

    A simulation draws memoised answers again, from the words of the label, since its records never
    change: such a query is asked as if it were `Fresh`.
    """

    population: Population
    noise: Noise
    query: LocalQuery
    which: Draw
    coins: bytes
    memory: Memory = field(default_factory=Memory)

    @property
    def pieces(self) -> range:
        """The numbers of the cohort's chunks: no list of them is kept, which would grow with the
        cohort."""
        return range(self.query.cohort.start // CHUNK, -(-self.query.cohort.stop // CHUNK))

    @property
    def together(self) -> int:
        """How many chunks are best answered at a time: several of one bit, for after each step of a
        computation a thread may have to wait for another."""
        return _TOGETHER if self.query.randomizer.bits == 1 else 1

    def answers(self, span: range) -> tuple[Tally, bytes]:
        """The tally of some chunks of clients that follow each other, and their digests, one after
        the other: the same on every thread."""
        query, randomizer = self.query, self.query.randomizer
        start = max(query.cohort.start, span[0] * CHUNK)
        stop = min(query.cohort.stop, (span[-1] + 1) * CHUNK)
        values = self.population.values(query.query, start, stop)
        most = stop - start if len(span) > 1 else 0
        asking = Asking(query, start, self.noise, self.which, self.coins, most)
        reports = asking.report(lambda: values, self.memory, np.arange(start, stop))
        digests = b"".join(
            chunk_digest(randomizer, reports[low - start : high - start])
            for low, high in chunks(start, stop, CHUNK)
        )
        return randomizer.tally(reports, cells_of(randomizer, self.coins, start, stop)), digests


class PopulationOracle(LocalOracle):
    """Simulates every client, a chunk at a time, on all cores, or by so many `threads`. Memory is
    flat in n; bit for bit what client processes would reply.

    `on_chunk(ask, tally)` gets the tally of every chunk of clients, or of some together, that have
    answered one ask, on the thread that asked them.
    """

    def __init__(
        self,
        population: Population,
        noise: Noise,
        coin_seed: int,
        budget: float,
        on_chunk: OnChunk = lambda ask, tally: None,
        threads: int = 0,
    ) -> None:
        super().__init__(budget)
        self.population = population
        self.noise = noise
        self.coin_seed = coin_seed
        self.on_chunk = on_chunk
        self.threads = threads
        self.memory = Memory()

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """The tally of each query's cohort. Raises RefusedError("budget") before anything is
        sampled."""
        number = self.begin(queries)
        tallies, digests = [], []
        for ask, query in enumerate(queries):
            which = query.draw(number, ask)
            own = self._prepare(query)
            coins = which.key(COINS, self.coin_seed)
            tally, parts = self.gather(
                AskedOf(self.population, self.noise, own, which, coins, self.memory)
            )
            tallies.append(tally)
            digests += parts
        self.finish(queries, sum(tally.n for tally in tallies), round_digest(digests))
        return tuple(tallies)

    def _prepare(self, query: LocalQuery) -> LocalQuery:
        """Makes room in memory for what threads note. A simulation remembers no answers."""
        match query.repeat:
            case Session(label):
                self.memory.speakers.reserve(label, query.cohort.stop)
            case Memoised(label) if isinstance(self.noise, KeyedNoise):
                return replace(query, repeat=FRESH)
            case Memoised(label):
                width = query.randomizer.report_dtype.itemsize
                self.memory.memo.reserve(label, query.cohort.stop, width)
        return query

    def gather(self, task: AskedOf) -> tuple[Tally, list[bytes]]:
        """The tally of all chunks, and their digests in their order, of some chunks together."""
        keep_memory()
        work = task.pieces
        # counting the cores takes longer than a small cohort
        workers = min(self.threads or os.cpu_count() or 1, len(work)) if len(work) > 1 else 1
        waiting = deque(shared(work, workers, task.together))
        digests = [b""] * len(work)
        over = Event()

        def ask() -> Tally:
            tally = task.query.randomizer.empty()
            while not over.is_set():
                try:
                    span = waiting.popleft()
                except IndexError:  # another thread took the last
                    break
                part, digests[span.start - work.start] = task.answers(span)
                tally += part
                self.on_chunk(task.which.ask, part)
            return tally

        if workers == 1:
            return ask(), digests
        with ThreadPoolExecutor(workers) as pool:
            try:
                asking = [pool.submit(ask) for _ in range(workers)]
                return reduce(add, (each.result() for each in asking)), digests
            finally:
                # the pool waits for its threads: an interrupted run must not wait for chunks that
                # have not begun
                over.set()


class AggregateOracle(LocalOracle):
    """Draws each tally from its law, at a cost independent of n where the population knows it. Only
    the rows of a table can be asked again."""

    def __init__(
        self, population: Population, generator: np.random.Generator, budget: float
    ) -> None:
        super().__init__(budget)
        self.population = population
        self.generator = generator

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """The tally of each query's cohort. Raises RefusedError("budget", "asked-twice" or
        "no-law") before anything is sampled."""
        for query in queries:
            if query.label or not without_coin(query.randomizer).has_tally_law:
                match query.repeat:
                    case Session():
                        what = "a session"
                    case Memoised():
                        what = "memoised answers"
                    case Fresh():
                        what = repr(query.randomizer.name)
                raise RefusedError(
                    "no-law", f"the tally of {what} has no closed law here; use --tier population"
                )
        self.begin(queries, repeats=self.population.remembers)
        tallies = tuple(map(self._draw, queries))
        self.finish(queries, sum(tally.n for tally in tallies), None)
        return tallies

    def _draw(self, query: LocalQuery) -> Tally:
        channel = without_coin(query.randomizer)
        law = self.population.tally_law(query.query, channel)
        if law is not None:
            # nobody's own value was drawn: the clients' average is not known
            nothing = np.full(query.query.domain.size, np.nan)
            self.population.latest = query.query, nothing
            return Tally(
                self.generator.multinomial(len(query.cohort), law.ravel()).reshape(law.shape)
            )
        counts = self.population.value_counts(
            query.query, query.cohort.start, query.cohort.stop, self.generator
        )
        return channel.draw_tally(counts, self.generator)
