"""Heavy hitters in several rounds: each asks fresh clients about the prefixes that those before them have kept."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from local_dp.bounds.frequencies import NARROW, Schedule, best_schedule
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.protocols.local_protocol import BETA
from local_dp.protocols.search.frequent_strings import Found, FrequentStrings, level_of
from local_dp.protocols.search.prefix_search import Search
from local_dp.protocols.surveys.shares import frequency_randomizer
from local_dp.queries.strings import KeptPrefix, Prefix
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.randomizers.randomizer import Randomizer


@dataclass(frozen=True)
class HeavyHittersAsked(FrequentStrings):
    """Finds the frequent strings of `column` among all 2^`bits` round by round; without a table, of ten that `share` hold each among uniform ones.

    The first clients tell the first 20 bits, those of each further round which of the 511 best prefixes so far their string begins with and the next 12 bits,
    by local hashing; or, at a large epsilon, 12 bits, 31 prefixes and 7 bits, by the best oracle for 4,096 symbols: whichever needs fewer clients. Scores,
    subtraction and the height of noise are those of `heavy-hitters`, which asks everybody at once, and nothing below half of `share` is taken. Up to epsilon
    4 this one needs about as many clients, beyond that fewer.
    Privacy: each client answers once, epsilon-locally private. Utility: `bounds.frequencies.Schedule`; `share` sets the default number of clients: all
    strings that have it are found in 95 % of runs, if there are ten. Cost: at most 12 bits a client, two rounds for 32 bits, or four.
    """

    name: ClassVar[str] = "heavy-hitters-asked"

    def schedule(self, epsilon: float) -> Schedule:
        """How long the prefixes of each round are, and how many are kept."""
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        return best_schedule(epsilon, self.bits, self.share, BETA)

    def clients(self, epsilon: float) -> int:
        return self.schedule(epsilon).clients(epsilon, self.bits, self.share, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Found]:
        schedule = self.schedule(epsilon)
        lengths, needs = schedule.lengths(self.bits), np.array(schedule.needs(self.bits, BETA))
        if clients < len(lengths):
            raise InputError(f"{clients} clients are too few for {len(lengths)} rounds: give {self.clients(epsilon):,} for a result")
        ends = [0, *(np.rint(needs / needs[-1] * (clients - len(needs))).astype(int) + np.arange(1, len(needs) + 1)).tolist()]

        def play() -> LocalPlay[Found]:
            search = Search(schedule.kept, self.tolerance)
            for length, cohort in zip(lengths, pairwise(ends), strict=True):
                query = self._query(length, search, schedule)
                asked = LocalQuery(query, _oracle(epsilon, query, schedule), Cohort(*cohort))
                tallies = yield (asked,)
                search = search.deeper(level_of(length, (asked,), iter(tallies)), schedule.height(length, self.bits))
            return Found(*search.found())

        return Adaptive(play)

    def _query(self, length: int, search: Search, schedule: Schedule) -> Prefix | KeptPrefix:
        if not search.levels:
            return Prefix(self.column, self.bits, length)
        kept = tuple(f"{prefix:x}" for prefix in np.sort(search.beam.strings).tolist())
        return KeptPrefix(self.column, self.bits, length, length - search.levels[-1].length, schedule.width, kept)


def _oracle(epsilon: float, query: Prefix | KeptPrefix, schedule: Schedule) -> Randomizer:
    if schedule is NARROW:
        return frequency_randomizer(epsilon, query.domain.size)
    return WideHashing(epsilon, length=query.width if isinstance(query, KeptPrefix) else query.length)
