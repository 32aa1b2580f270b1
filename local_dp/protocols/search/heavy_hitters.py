"""Heavy hitters: the frequent strings of a domain too large to list, found prefix by prefix in one round."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from local_dp.bounds.frequencies import KEPT, heavy_hitters_clients, level_lengths, noise_height
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.protocols.local_protocol import BETA
from local_dp.protocols.search.frequent_strings import Found, FrequentStrings, level_of
from local_dp.protocols.search.prefix_search import Search
from local_dp.queries.strings import HashedPrefix, Prefix
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.tallies import Tally

WIDTH, HASHES = 18, 8  # bits of a hashed prefix, and hash functions a level


@dataclass(frozen=True)
class HeavyHitters(FrequentStrings):
    """Finds the frequent strings of `column` among all 2^`bits`, without a list of them; without a table, of ten that `share` hold each among uniform ones.

    The clients are split over levels: those of the first tell of the first 20 bits, those of each further one of 12 bits more, hashed to 18 bits by one of
    eight hash functions, all by local hashing. The server follows the 512 best prefixes from level to level, and then takes the best string, subtracts it
    from all levels, and so on, as long as its mean over the levels stands higher than noise does anywhere among 2^`bits` strings with probability 1 %.
    A number counts by its last `bits` bits, a text by its first `bits` / 8 bytes; `text` says which it is, and is read off a table.
    Privacy: each client answers once, epsilon-locally private. Utility: a string of share s is found if s is above about 9.5 standard errors of one frequency
    oracle over all clients (`bounds.frequencies`). `share` sets the default number of clients: all strings that have it are found in 95 % of runs, if there
    are ten. Cost: at most 3 bits a client, one round; the server O(n + 2^21) a level.
    """

    name: ClassVar[str] = "heavy-hitters"

    @property
    def lengths(self) -> tuple[int, ...]:
        """The bits of the prefix at each level."""
        return level_lengths(self.bits)

    def clients(self, epsilon: float) -> int:
        return heavy_hitters_clients(epsilon, self.bits, self.share, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[Found]:
        levels = self._levels(epsilon, clients)
        queries = tuple(query for level in levels for query in level)

        def decode(answers: tuple[Tally, ...]) -> Found:
            tallies = iter(answers)
            search = Search(KEPT)
            for length, level in zip(self.lengths, levels, strict=True):
                search = search.deeper(level_of(length, level, tallies), noise_height(self.bits))
            return Found(*search.found())

        return Nonadaptive(queries, decode)

    def _levels(self, epsilon: float, clients: int) -> list[tuple[LocalQuery, ...]]:
        """The queries of each level: one to all clients of the first, one to each of the eight parts of the clients of each further one."""
        parts = 1 + HASHES * (len(self.lengths) - 1)
        if clients < parts:
            raise InputError(
                f"{clients} clients are too few for strings of {self.bits} bits: give at least {parts}, and {self.clients(epsilon):,} for a result"
            )
        ends = np.linspace(0, clients, len(self.lengths) + 1).astype(int).tolist()
        first = Prefix(self.column, self.bits, self.lengths[0])
        levels: list[tuple[LocalQuery, ...]] = [(LocalQuery(first, WideHashing(epsilon, length=first.length), Cohort(0, ends[1])),)]
        hashed = WideHashing(epsilon, length=WIDTH)
        for level, (start, stop) in enumerate(pairwise(ends[1:]), 1):
            cuts = np.linspace(start, stop, HASHES + 1).astype(int).tolist()
            asked = [HashedPrefix(self.column, self.bits, self.lengths[level], WIDTH, seed) for seed in _seeds(level)]
            cohorts = [Cohort(*part) for part in pairwise(cuts)]
            levels.append(tuple(LocalQuery(query, hashed, cohort) for query, cohort in zip(asked, cohorts, strict=True)))
        return levels


def _seeds(level: int) -> list[int]:
    """The multipliers of a level's hash functions: public, and the same in every run."""
    return [word >> 2 for word in map(int, philox_words(stream_key("hashed prefixes", level), 0, HASHES))]
