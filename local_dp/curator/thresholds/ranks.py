"""A point of a given rank, found among few candidates: the middles of dyadic intervals, and the points that occur."""

import math
from dataclasses import dataclass

import numpy as np

from local_dp.checks import check_whole
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.multisets import Multiset, check_bits
from local_dp.curator.selection.groups import Groups, Joined, Listed
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.curator.thresholds.candidates import middles, spare, surely_within
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate

_FAILURE = 0.1


@dataclass(frozen=True)
class RankQuery(Mechanism[Multiset, int | None, Approximate]):
    """A number with about `rank` points below it, with weight e^(eps min(s, H - off) / 2); None, no answer, where there are too few points.

    Candidates: the middle t of each dyadic interval that holds s >= 1 points, off = |points below t - rank|; each point x that occurs s times, off the distance
    of `rank` from the interval [points below x, points up to x], so that a point of many records is found; and 0 and 2^bits. H = r + `spare`, where r is
    the smaller of `rank` and `surely_within`.
    Privacy: (eps, delta), also if the number of points changes by 1: a point is in `bits` + 1 candidates and moves a score by 1 at most.
    Utility: off by r at most nine times of ten, if `rank` is no less than `surely_within`. Cost: O(m log m).
    """

    bits: int
    rank: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_bits(self.bits)
        check_whole("rank", self.rank, 1, 1 << 53)
        self.choice.loss  # noqa: B018 - refuses what the choice refuses

    @property
    def choice(self) -> SparseChoice:
        """The choice among the candidates."""
        return SparseChoice(self.epsilon, self.delta, self.bits + 1)

    @property
    def loss(self) -> Approximate:
        return self.choice.loss

    def candidates(self, points: Multiset) -> Groups[int]:
        """With their scores; a number may be a candidate twice."""
        if points.bits != self.bits:
            raise InputError(f"the points are of {points.bits} bits, the query of {self.bits}")
        below = np.concatenate([[0], np.cumsum(points.counts)])
        within = min(self.rank, surely_within(self.bits + 1, self.epsilon, self.delta, _FAILURE))
        height = math.floor(within + spare(self.epsilon, self.delta))
        off = np.maximum(0, np.maximum(below[:-1] - self.rank, self.rank - below[1:]))
        return Joined(middles(points, height - np.abs(below - self.rank)), Listed(np.minimum(points.counts, height - off), points.values))

    def release(self, database: Multiset, draws: Draws) -> int | None:
        return self.choice.choose(self.candidates(database), draws)

    def law(self, database: Multiset) -> Law[int | None]:
        return self.choice.law(self.candidates(database))


@dataclass(frozen=True)
class EqualRanks(Mechanism[Multiset, tuple[int, ...], Approximate]):
    """Ascending distinct cuts into at most `parts` intervals of about equally many points: a rank query for each multiple of m / `parts`, m public.

    Privacy: the queries add up, epsilon and delta over `parts` - 1 each. Cost: O(parts m).
    """

    bits: int
    parts: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_whole("parts", self.parts, 2, 1 << 16)
        self._query(1)

    @property
    def loss(self) -> Approximate:
        one = self._query(1).loss
        return Approximate((self.parts - 1) * one.nano, (self.parts - 1) * one.atto)

    def release(self, database: Multiset, draws: Draws) -> tuple[int, ...]:
        ranks = [max(1, part * database.size // self.parts) for part in range(1, self.parts)]
        found = [self._query(rank).release(database, draws) for rank in ranks]
        return tuple(sorted({cut for cut in found if cut is not None and 0 < cut < 1 << self.bits}))

    def _query(self, rank: int) -> RankQuery:
        return RankQuery(self.bits, rank, self.epsilon / (self.parts - 1), self.delta / (self.parts - 1))
