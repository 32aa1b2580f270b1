"""The LR oracle of KLNRS Section 4.1, in memory: every client simulated."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add

from local_dp.ledger import Ledger
from local_dp.noise import Noise, stream_key
from local_dp.oracles.local.asked import (
    CHUNK,
    LocalQuery,
    RoundSummary,
    cells_of,
    charges_of,
    check_disjoint,
    chunk_digest,
    respond,
    round_digest,
    round_summary,
)
from local_dp.populations.base import Population
from local_dp.records import chunks
from local_dp.tallies import Tally


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
