"""A number rounded at random twice: one report of which both the mean and the mean square are
estimated."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.checks import check_whole
from local_dp.domains import Domain, grouped_levels, levels
from local_dp.randomizers.finite import OfLevels
from local_dp.randomizers.numbers.rounded import RoundedResponse


@dataclass(frozen=True, kw_only=True)
class TwiceRounded(OfLevels, RoundedResponse):
    """Rounds x in [0, 1] at random to an end, twice, and reports the number of upper ends, 0 to 2,
    by randomized response.

    That number has the law (1 - x)^2, 2x(1 - x), x^2, so shares f give E[x] = f_2 + f_1 / 2 and
    E[x^2] = f_2. Numbers are v/steps. With `none` = 1 there is one value more, the last, with a
    symbol of its own. Privacy: rounding mixes rows of randomized response on k = 3 + none symbols,
    so each ratio is at most (s + slope steps^2 + rest) / s <= e^epsilon, s the least weight.
    Utility: shares have the variance of randomized response. Cost: 2 bits.
    """

    name = "twice-rounded"
    summary = "Rounds a number at random twice and reports the sum"
    source = "Duchi, Jordan, Wainwright 2013 (rounding); Kairouz, Oh, Viswanath 2014"
    none: int = 0

    def check(self) -> None:
        check_whole("none", self.none, 0, 1)
        check_whole("steps", self.steps, 1, 1 << 16)
        super().check()

    @property
    def domain(self) -> Domain:
        return grouped_levels(self.steps, 1) if self.none else levels(self.steps)

    @property
    def shares(self) -> int:
        return 3 + self.none

    @property
    def equal(self) -> int:
        return self.steps**2

    def truths(self, values: Ints) -> Floats:
        symbols = np.arange(self.shares)
        return np.asarray(self._parts(symbols, values[:, None]) / self.equal)

    def _parts(self, symbols: Ints, values: Ints) -> Words:
        """How many of steps^2 equal parts of its law each value has on each symbol."""
        up = np.minimum(values, self.steps).astype(np.uint64)
        down = np.uint64(self.steps) - up
        there = values <= self.steps
        return np.select(
            [(symbols == 0) & there, (symbols == 1) & there, (symbols == 2) & there],
            [down * down, np.uint64(2) * up * down, up * up],
            np.where((symbols == 3) & ~there, np.uint64(self.equal), np.uint64(0)),
        )

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        more = np.where(reports == self.shares - 1, np.uint64(self.over), np.uint64(0))
        parts = self._parts(np.asarray(reports), np.asarray(values))
        return np.uint64(self.each) + parts * np.uint64(self.slope) + more

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        """Cuts the words into a run for each symbol; the last one ends with the words."""
        wide = words.astype(np.uint64, copy=False)
        numbers = values.astype(np.int64)
        end = np.zeros(len(numbers), dtype=np.uint64)
        reports = np.zeros(len(numbers), dtype=self.report_dtype)
        for symbol in range(self.shares - 1):
            parts = self._parts(np.array(symbol), numbers)
            end = end + np.uint64(self.each) + parts * np.uint64(self.slope)
            reports += wide >= end
        return reports
