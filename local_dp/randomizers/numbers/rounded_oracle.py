"""Means within groups by a better frequency oracle: a number is rounded at random to an end of its range, and the oracle reports the group and the end."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.checks import check_built
from local_dp.errors import InputError
from local_dp.randomizers.finite import too_narrow
from local_dp.randomizers.frequencies.base import FiniteOracle
from local_dp.randomizers.frequencies.best import NEAR, choices
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.local_hashing import OLH
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.numbers.rounded import Rounded, RoundedGRR
from local_dp.tallies import Estimate, Joint, Tally

_ORACLES: dict[str, type[OLH] | type[SubsetSelection]] = {kind.name: kind for kind in (OLH, SubsetSelection)}
_INNER = 32  # bits of a word that the oracle has, at most


@dataclass(frozen=True, kw_only=True)
class RoundedOracle(Rounded):
    """`oracle`'s report of the group and a randomly rounded number, as one of 2 groups + 1 symbols.

    The leading bits of a word round the number, the next ones are the oracle's word. Privacy: each row is a mixture of the oracle's rows of two symbols.
    Utility: shares have the variance of the oracle for 2 groups + 1 symbols. Cost: the oracle's report. `steps` is a power of two.
    """

    name: ClassVar[str] = "rounded-oracle"
    source: ClassVar[str] = "Duchi, Jordan, Wainwright 2013 (rounding); Ye, Barg 2018, Wang et al. 2017 (the oracles)"
    steps: int = 1 << 12
    oracle: str = "subset-selection"

    def check(self) -> None:
        super().check()
        if self.steps.bit_count() != 1:
            raise InputError(f"steps is {self.steps}; give a power of two")
        if self.oracle not in _ORACLES:
            raise InputError(f"the oracle is {self.oracle!r}; choose from {', '.join(_ORACLES)}")
        if self._inner_bits < 1:
            raise too_narrow(self)
        check_built(self.inner)

    @property
    def _level_bits(self) -> int:
        return self.steps.bit_length() - 1

    @property
    def _inner_bits(self) -> int:
        return min(_INNER, self.word_bits - self._level_bits)

    @cached_property
    def inner(self) -> FiniteOracle:
        """The oracle, of both ends of every group and none."""
        return _ORACLES[self.oracle](self.epsilon, word_bits=self._inner_bits, k=self.shares)

    @property
    def alphabet(self) -> int:
        return self.inner.alphabet

    @property
    def cells(self) -> int:
        return self.inner.cells

    @property
    def uses_coins(self) -> bool:
        return self.inner.uses_coins

    def cells_of(self, coins: Words) -> Words:
        return self.inner.cells_of(coins)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        lower, level = self._split(values)
        wide = words.astype(np.uint64, copy=False)
        upper = (wide >> np.uint64(self.word_bits - self._level_bits)).astype(np.int64) < level
        own = wide >> np.uint64(self.word_bits - self._level_bits - self._inner_bits) & np.uint64((1 << self._inner_bits) - 1)
        return self.inner.respond(lower + upper, own.astype(np.uint32), cells)

    def corner_weight(self, reports: Ints, corners: Ints, cells: Ints) -> Words:
        lower, level = self._split(corners)
        weights: Words = self.inner.weight(reports, lower + (level > 0), cells).astype(np.uint64) << np.uint64(self.word_bits - self._inner_bits)
        return weights

    def estimate(self, tally: Tally) -> Estimate:
        """The shares, unbiased, shape (2 groups + 1,)."""
        return self.inner.estimate(tally)

    def values(self, counts: Counts) -> Floats:
        return self.inner.values(counts)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        return self.inner.joint(tally, weights)


def rounded_randomizer(epsilon: float, groups: int, steps: int) -> Rounded:
    """The one of least total variance for 2 groups + 1 symbols, by closed form, to 1 %: the simplest. Raises InputError."""
    known = [choice for choice in choices(epsilon, 2 * groups + 1, joint=True) if choice.kind is GRR or choice.kind.name in _ORACLES]
    best = next(choice for choice in known if choice.total <= NEAR * min(each.total for each in known))
    if best.kind is GRR:
        return RoundedGRR(epsilon, steps=steps, groups=groups)
    return RoundedOracle(epsilon, steps=steps, groups=groups, oracle=best.kind.name)
