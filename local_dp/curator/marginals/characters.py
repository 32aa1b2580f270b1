"""A few characters of a table with equal noise: a part of something larger."""

import math
from dataclasses import dataclass
from fractions import Fraction

from local_dp.arrays import Counts
from local_dp.checks import check_whole
from local_dp.curator.marginals.base import BinaryTable, character_masks
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.rounded_normal import rounded_normals
from local_dp.draws import Draws
from local_dp.loss import ATTO, Concentrated


@dataclass(frozen=True, eq=False)
class NoisySums:
    """n, and the noisy sums of the characters that were asked for, shape (k,)."""

    size: int
    sums: Counts


@dataclass(frozen=True)
class CharacterSums(Mechanism[BinaryTable, NoisySums, Concentrated]):
    """The sums over all records of the characters of k sets of columns, each plus round(N(0, V)), V = ceil(2 k / rho).

    Privacy: rho-zCDP: a replaced record moves each by at most 2, and 4 k / (2 V) <= rho (Bun, Steinke 2016, Proposition 1.6); tight where one change
    meets all sets oddly, as for the pairs of a tree. Cost: O(n k).
    """

    sets: tuple[tuple[int, ...], ...]
    atto_rho: int

    def __post_init__(self) -> None:
        check_whole("rho in units of 1e-18", self.atto_rho, 1, 100 * ATTO)
        check_whole("the number of sets", len(self.sets), 1, 1 << 22)

    @property
    def loss(self) -> Concentrated:
        return Concentrated(self.atto_rho)

    @property
    def variance(self) -> int:
        """V, before rounding."""
        return math.ceil(Fraction(2 * len(self.sets) * ATTO, self.atto_rho))

    def release(self, database: BinaryTable, draws: Draws) -> NoisySums:
        sums = database.characters(character_masks(self.sets))
        return NoisySums(database.size, sums + rounded_normals(draws, self.variance, len(sums)))
