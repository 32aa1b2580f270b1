"""The LR oracle of KLNRS Section 4.1, in memory: every client simulated, or the tally drawn from its law."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from hashlib import blake2b
from itertools import pairwise
from operator import add

import numpy as np

from local_dp.arrays import Bools, Words
from local_dp.budget import NANO, Ledger
from local_dp.errors import InputError
from local_dp.noise import Noise, public_coins, stream_key
from local_dp.populations import Population
from local_dp.queries.base import Query
from local_dp.randomizers.base import Randomizer, Tally
from local_dp.records import Records, chunks

CHUNK = 1 << 16  # clients at a time: the arrays of a chunk stay in cache, and a digest is over chunks of this size


@dataclass(frozen=True, order=True)
class Cohort:
    """The clients start..stop by index."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise InputError(f"the cohort {self.start}..{self.stop} is empty; give 0 <= start < stop")

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class LocalQuery:
    """LR_z(i, R) for every client i of a cohort: evaluate `query` on the record, randomize the value with `randomizer`."""

    query: Query
    randomizer: Randomizer
    cohort: Cohort

    def __post_init__(self) -> None:
        if self.query.domain != self.randomizer.domain:
            raise InputError(
                f"query {self.query.name!r} has values in {self.query.domain}, but randomizer {self.randomizer.name!r} takes {self.randomizer.domain}"
            )


@dataclass(frozen=True)
class RoundSummary:
    """What happened in one round, however it was run."""

    n: int
    epsilon: float
    bits_per_client: int
    digest: str | None


def round_summary(queries: tuple[LocalQuery, ...], n: int, digest: str | None) -> RoundSummary:
    """The summary of a round of these queries in which n clients were counted."""
    dearest = max(query.randomizer.nano for query in queries) / NANO
    return RoundSummary(n, dearest, max(query.randomizer.bits for query in queries), digest)


def check_disjoint(queries: tuple[LocalQuery, ...]) -> None:
    """A client answers one question a round: raises InputError where two cohorts of the round meet."""
    cohorts = sorted(query.cohort for query in queries)
    for first, second in pairwise(cohorts):
        if second.start < first.stop:
            raise InputError(f"two queries of one round ask client {second.start}; give them disjoint cohorts or two rounds")


def charges_of(queries: Sequence[LocalQuery]) -> list[tuple[int, int, int]]:
    """What a round of these queries costs whom: (start, stop, nano-nats) each."""
    return [(query.cohort.start, query.cohort.stop, query.randomizer.nano) for query in queries]


def respond(query: LocalQuery, records: Records, start: int, noise: Noise, round: int, coin_key: bytes) -> Words:
    """The reports of the clients start..start + len(records): record -> value -> report. Every tier's clients answer through this function."""
    randomizer, stop = query.randomizer, start + len(records)
    values = query.query.values(records)
    width = 64 if randomizer.word_bits > 32 else 32
    words = noise.words(round, start, stop, width)
    if randomizer.word_bits < width:  # a narrow randomizer reads its word's leading bits: a longer word would never fall below its thresholds
        words = words >> words.dtype.type(width - randomizer.word_bits)
    return randomizer.respond(values, words, cells_of(randomizer, coin_key, start, stop))


def cells_of(randomizer: Randomizer, coin_key: bytes, start: int, stop: int) -> Words:
    """The public-coin cells of the clients start..stop; no coin is drawn for a randomizer that uses none."""
    if randomizer.cells == 1:
        return np.zeros(1, dtype=np.uint8)
    return randomizer.cells_of(public_coins(coin_key, start, stop))


def chunk_digest(reports: Words, answered: Bools | None = None) -> bytes:
    """A digest of one chunk of reports; of those that came, and of who sent them, where some are missing."""
    if answered is None or bool(answered.all()):
        return blake2b(reports.tobytes(), digest_size=16).digest()
    return blake2b(np.packbits(answered).tobytes() + reports[answered].tobytes(), digest_size=16).digest()


def round_digest(parts: list[bytes]) -> str:
    """The digest of a round: equal for two runs if and only if every report of every client is (up to a collision)."""
    return blake2b(b"".join(parts), digest_size=16).hexdigest()


class PopulationOracle:
    """Simulates every client, a chunk at a time, on all cores. Memory is flat in n; bit for bit what client processes would reply."""

    def __init__(self, population: Population, noise: Noise, coin_seed: int, budget: float) -> None:
        self.population = population
        self.noise = noise
        self.coin_seed = coin_seed
        self.ledger = Ledger(budget)
        self.rounds: list[RoundSummary] = []

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """The tally of each query's cohort. Raises RefusedError("budget") before anything is sampled."""
        check_disjoint(queries)
        self.ledger.charge_all("run", charges_of(queries))
        round = len(self.rounds) + 1
        coin_key = stream_key("coins", self.coin_seed, round)
        tallies, digests = [], []
        for query in queries:
            tally, parts = self._ask(query, round, coin_key)
            tallies.append(tally)
            digests += parts
        self.rounds.append(round_summary(queries, sum(tally.n for tally in tallies), round_digest(digests)))
        return tuple(tallies)

    def _ask(self, query: LocalQuery, round: int, coin_key: bytes) -> tuple[Tally, list[bytes]]:
        work = list(chunks(query.cohort.start, query.cohort.stop, CHUNK))
        digests = [b""] * len(work)

        def ask(worker: int) -> Tally:
            tally = query.randomizer.empty()
            for place in range(worker, len(work), workers):
                start, stop = work[place]
                reports = respond(query, self.population.batch(start, stop), start, self.noise, round, coin_key)
                tally += query.randomizer.tally(reports, cells_of(query.randomizer, coin_key, start, stop))
                digests[place] = chunk_digest(reports)
            return tally

        workers = min(os.cpu_count() or 1, len(work))
        if workers == 1:
            return ask(0), digests
        with ThreadPoolExecutor(workers) as pool:
            return reduce(add, pool.map(ask, range(workers))), digests


class AggregateOracle:
    """Draws each tally from its law: exact in distribution, at a cost that does not depend on n where the population knows its own law.

    Exact for protocols that ask each synthetic client once; one that is asked twice draws a fresh record.
    """

    def __init__(self, population: Population, generator: np.random.Generator, budget: float) -> None:
        self.population = population
        self.generator = generator
        self.ledger = Ledger(budget)
        self.rounds: list[RoundSummary] = []

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """The tally of each query's cohort. Raises RefusedError("budget") before anything is sampled."""
        check_disjoint(queries)
        self.ledger.charge_all("run", charges_of(queries))
        tallies = tuple(self._draw(query) for query in queries)
        self.rounds.append(round_summary(queries, sum(tally.n for tally in tallies), None))
        return tallies

    def _draw(self, query: LocalQuery) -> Tally:
        law = self.population.tally_law(query.query, query.randomizer)
        if law is not None:
            return Tally(self.generator.multinomial(len(query.cohort), law.ravel()).reshape(law.shape))
        counts = self.population.value_counts(query.query, query.cohort.start, query.cohort.stop, self.generator)
        return query.randomizer.draw_tally(counts, self.generator)
