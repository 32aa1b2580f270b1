"""The one-bit mean of a number; and means within groups: a number is rounded at random to an end,
and a frequency oracle reports group and end."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.checks import check_built
from local_dp.domains import Domain, grouped_levels
from local_dp.errors import InputError
from local_dp.randomizers.finite import (
    FiniteChannel,
    Mixed,
    OfLevels,
    flip_weight,
    too_narrow,
)
from local_dp.randomizers.frequencies.base import DirectOracle, FiniteOracle
from local_dp.randomizers.frequencies.best import NEAR, choices
from local_dp.randomizers.frequencies.grr import GRR, other_weight
from local_dp.randomizers.frequencies.local_hashing import OLH
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.tallies import Estimate, Joint, Tally


@dataclass(frozen=True, kw_only=True)
class OneBitMean(OfLevels, FiniteChannel):
    """Reports 1 with a probability linear in the value x in [0, 1]: Pr[1] = 1/2 + (2x - 1) / (2C).

    Values lie on a lattice of `steps` steps; the two extreme thresholds differ by a multiple of
    `steps`, so every mean on the lattice is estimated without any bias. Privacy: thresholds lie
    between those of binary randomized response. Utility: variance (C^2 - (2x - 1)^2) / 4n,
    first-order minimax (limits 1, Theorem 1). Cost: 1 bit.
    """

    name = "one-bit-mean"
    summary = "Reports one bit whose chance grows with the number"
    source = "Duchi, Jordan, Wainwright 2013"
    alphabet = 2

    def prepare(self) -> None:
        if self.slope < 1:
            raise too_narrow(self)

    @cached_property
    def slope(self) -> int:
        """How much one lattice step adds to the weight of a reported 1."""
        return (self.total - 2 * flip_weight(self.nano, self.word_bits)) // self.steps

    @property
    def base(self) -> int:
        """The weight of a reported 1 at x = 0."""
        return (self.total - self.slope * self.steps) // 2

    def _ones(self, values: Ints) -> Words:
        return np.uint64(self.base) + values.astype(np.uint64) * np.uint64(self.slope)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return (words < self._ones(values)).view(np.uint8)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        ones = self._ones(values)
        # 2^64 does not fit a word, but 2^64 - ones does: unsigned arithmetic wraps to it
        zeros = np.uint64(self.total % 2**64) - ones
        return np.where(reports == 1, ones, zeros)

    def estimate(self, tally: Tally) -> Estimate:
        n = tally.answered
        gain = self.total / (self.slope * self.steps)
        return Estimate.between(
            ((1 - gain) / 2, (1 + gain) / 2), 0.5 + gain * (float(tally.counts[0, 1]) / n - 0.5), n
        )


@dataclass(frozen=True, kw_only=True)
class Rounded(Mixed, FiniteOracle):
    """Estimates the 2 groups + 1 shares of (group, lower end), (group, upper end), ..., none.

    A value v/steps in group g counts as the upper end with probability v/steps, else as the lower
    one. So the share of (g, upper) is E[1(group g) v/steps]. The mean within g is its quotient by
    the share of g.
    """

    groups: int = 1
    steps: int = 1 << 16

    @property
    def domain(self) -> Domain:
        return grouped_levels(self.steps, self.groups)

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"groups": size, "steps": 4}

    @property
    def shares(self) -> int:
        return 2 * self.groups + 1

    def truths(self, values: Ints) -> Floats:
        """How much of each share a number counts for."""
        lower, level = self._split(values)
        symbols = np.arange(self.shares)
        upper = (level / self.steps)[:, None]
        return np.asarray(
            (1 - upper) * (lower[:, None] == symbols) + upper * (lower[:, None] + 1 == symbols)
        )

    @property
    def equal(self) -> int:
        return self.steps

    @property
    def corners(self) -> Ints:
        """Both ends of every group, and none."""
        lower = np.arange(self.groups + 1, dtype=np.int64) * (self.steps + 1)
        return np.append(np.stack([lower[:-1], lower[:-1] + self.steps], axis=1).ravel(), lower[-1])

    def between(self, values: Ints) -> tuple[Ints, Ints, Ints]:
        lower, level = self._split(values)
        first = lower // 2 * (self.steps + 1)
        return first, np.minimum(first + self.steps, self.domain.high), level

    def _split(self, values: Ints) -> tuple[Ints, Ints]:
        """The lower end's symbol and the level of each value; `none` is symbol 2 groups at level
        0."""
        group, level = np.divmod(values.astype(np.int64), self.steps + 1)
        return 2 * group, level


@dataclass(frozen=True)
class RoundedResponse(DirectOracle):
    """Randomized response of a symbol whose law has `equal` equal parts; of `shares` symbols."""

    @property
    @abstractmethod
    def equal(self) -> int:
        """The number of equal parts of a symbol's law."""

    def prepare(self) -> None:
        if self.slope < 1:
            raise too_narrow(self)

    @cached_property
    def slope(self) -> int:
        """The weight that one equal part of a symbol's law adds."""
        least = other_weight(self.nano, self.shares, self.word_bits)
        return (self.total - self.shares * least) // self.equal

    @property
    def kept(self) -> int:
        """The weight that a certain symbol has beyond every other one's."""
        return self.slope * self.equal

    @property
    def alphabet(self) -> int:
        return self.shares

    @property
    def each(self) -> int:
        """The weight of every symbol whatever the value."""
        return (self.total - self.kept) // self.shares

    @property
    def over(self) -> int:
        """The rest of rounding, less than the number of symbols: the last symbol in the sampler's
        order has it."""
        return (self.total - self.kept) % self.shares

    @property
    def chances(self) -> tuple[float, float]:
        return (self.each + self.kept) / self.total, self.each / self.total


@dataclass(frozen=True, kw_only=True)
class RoundedGRR(Rounded, RoundedResponse):
    """k-ary randomized response of the group and a randomly rounded number, k = 2 groups + 1.

    Privacy: rounding mixes rows of randomized response, so every ratio is at most (s + slope steps)
    / s <= e^epsilon. Utility: the variance of randomized response; better than one
    Hadamard sign for k < e^(2 eps) + e^eps + 3 (limits 2). Cost: log2 k bits.
    """

    name = "rounded-grr"
    summary = "Rounds a number at random and reports it with its group"
    source = "Duchi, Jordan, Wainwright 2013 (rounding); Kairouz, Oh, Viswanath 2014"

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        """Cuts the words into a run for each symbol, from the value's lower end on: it, the upper
        end, all others in a circle."""
        lower, level = self._split(values)
        wide = words.astype(np.uint64, copy=False)
        first = np.uint64(self.each + self.kept) - level.astype(np.uint64) * np.uint64(self.slope)
        ends = np.uint64(2 * self.each + self.kept)
        other = 2 + np.minimum(
            (wide - ends) // np.uint64(self.each), np.uint64(self.shares - 3)
        ).astype(np.int64)
        place = np.where(wide < first, 0, np.where(wide < ends, 1, other))
        return ((lower + place) % self.shares).astype(self.report_dtype)

    def corner_weight(self, reports: Ints, corners: Ints, cells: Ints) -> Words:
        lower, level = self._split(corners)
        place, end = (reports - lower) % self.shares, (level > 0).astype(np.int64)
        more: Words = np.select(
            [place == end, place == self.shares - 1],
            [np.uint64(self.kept), np.uint64(self.over)],
            np.uint64(0),
        )
        return np.uint64(self.each) + more


_ORACLES: dict[str, type[OLH] | type[SubsetSelection]] = {
    kind.name: kind for kind in (OLH, SubsetSelection)
}
_INNER = 32  # bits of a word that the oracle has, at most


@dataclass(frozen=True, kw_only=True)
class RoundedOracle(Rounded):
    """`oracle`'s report of the group and a randomly rounded number, as one of 2 groups + 1 symbols.

    The leading bits of a word round the number, the next ones are the oracle's word. Privacy: each
    row is a mixture of the oracle's rows of two symbols. Utility: shares have the variance of the
    oracle for 2 groups + 1 symbols. Cost: the oracle's report. `steps` is a power of two.
    """

    name = "rounded-oracle"
    summary = "Rounds a number at random and reports it by any oracle"
    source = (
        "Duchi, Jordan, Wainwright 2013 (rounding); Ye, Barg 2018, Wang et al. 2017 (the oracles)"
    )
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

    def cells_of(self, coins: Words) -> Words:
        return self.inner.cells_of(coins)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        lower, level = self._split(values)
        wide = words.astype(np.uint64, copy=False)
        upper = (wide >> np.uint64(self.word_bits - self._level_bits)).astype(np.int64) < level
        own = wide >> np.uint64(self.word_bits - self._level_bits - self._inner_bits) & np.uint64(
            (1 << self._inner_bits) - 1
        )
        return self.inner.respond(lower + upper, own.astype(np.uint32), cells)

    def corner_weight(self, reports: Ints, corners: Ints, cells: Ints) -> Words:
        lower, level = self._split(corners)
        return self.inner.weight(reports, lower + (level > 0), cells).astype(
            np.uint64
        ) << np.uint64(self.word_bits - self._inner_bits)

    def estimate(self, tally: Tally) -> Estimate:
        return self.inner.estimate(tally)

    def values(self, counts: Counts) -> Floats:
        return self.inner.values(counts)

    def variance(self, values: Ints, law: Floats) -> Floats:
        return self.inner.variance(np.arange(self.shares), law @ self.truths(values))

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        return self.inner.joint(tally, weights)


def rounded_randomizer(epsilon: float, groups: int, steps: int) -> Rounded:
    """The one of least total variance for 2 groups + 1 symbols, by closed form; the simplest within
    1 %. Raises InputError."""
    candidates = [
        choice
        for choice in choices(epsilon, 2 * groups + 1, joint=True)
        if choice.kind is GRR or choice.kind.name in _ORACLES
    ]
    best = next(
        choice
        for choice in candidates
        if choice.total <= NEAR * min(each.total for each in candidates)
    )
    if best.kind is GRR:
        return RoundedGRR(epsilon, steps=steps, groups=groups)
    return RoundedOracle(epsilon, steps=steps, groups=groups, oracle=best.kind.name)
