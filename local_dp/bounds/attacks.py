"""Limits by attack: reconstruction, tracing, and the influence of one record."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from local_dp.arrays import Counts, Floats, Words
from local_dp.bounds.tails import mean_tail, normal_tail
from local_dp.checks import check_share, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Algorithm, Nonadaptive
from local_dp.oracles.local.asked import LocalQuery
from local_dp.randomizers.finite import FiniteChannel, Mixed
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.randomizers.frequencies.unary import UnaryEncoding
from local_dp.randomizers.places import BitVector
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Z95, Estimate, Tally


def wrong_bits(n: int, k: int, sd: float) -> float:
    """Pr[a bit is wrong] by least squares on k random subset sums of n rows with noise of standard
    deviation `sd`: Phi(-sqrt(k - n + 1) / (4 sd)), to O(1/n).

    The normal error has variance sd^2 / s, s the squared part of a column that the others do not
    explain: about (k - n + 1) / 4. Raises InputError below k = n.
    """
    if not (1 <= n <= k and sd > 0):
        raise InputError(
            f"n = {n}, k = {k}, sd = {sd}; give k >= n >= 1 and a positive standard deviation"
        )
    return normal_tail(math.sqrt(k - n + 1) / (4 * sd))


def tardos_length(coalition: int, users: int, failure: float) -> int:
    """100 c^2 ln(N / failure): Tardos 2008, for his own accusation."""
    return _squared(100, coalition, users, failure)


def traced_length(coalition: int, users: int, failure: float) -> int:
    """6 c^2 ln(N / failure): enough for accusations by p-value against every pirate that was tried
    (`attacks.STRATEGIES`); measured, not proved."""
    return _squared(6, coalition, users, failure)


def _squared(factor: int, coalition: int, users: int, failure: float) -> int:
    check_whole("the coalition", coalition, 1, 1 << 12)
    check_whole("the number of users", users, coalition, 1 << 24)
    check_share("failure", failure)
    return math.ceil(factor * coalition**2 * math.log(users / failure))


def boneh_shaw_block(users: int, failure: float) -> int:
    """n^2 ln(n / failure) + 1: an innocent is accused with probability at most failure / n, by
    Serfling's bound (1974); exactly `boneh_shaw_false`."""
    check_whole("the number of users", users, 2, 1 << 10)
    check_share("failure", failure)
    return math.ceil(users**2 * math.log(users / failure)) + 1


def boneh_shaw_false(users: int, block: int) -> Fraction:
    """The most that the word's author can make of Pr[user i is accused] without i's row, exactly:
    the worst hypergeometric tail.

    Of T ones in blocks i - 1 and i, h fall into i with probability C(B, h) C(B, T - h) / C(2B, T),
    and i is accused if n (2 h - T) >= B.
    """
    return max(_tail(users, block, ones) for ones in range(2 * block + 1))


def _tail(users: int, block: int, ones: int) -> Fraction:
    least = -(-(block + users * ones) // (2 * users))
    first = max(least, 0, ones - block)
    last = min(block, ones)
    ways = sum(
        math.comb(block, high) * math.comb(block, ones - high) for high in range(first, last + 1)
    )
    return Fraction(ways, math.comb(2 * block, ones))


MOST = 1 << 11  # reports that are decoded one by one
ALPHA = 1e-4  # the probability with which honest reports are said to be irregular


@dataclass(frozen=True)
class WorstCase(Estimate):
    """An estimate that may be wrong in any way that its clients' number allows: `low` and `high`
    are its interval, and a value that no data can have is NaN."""

    low: Floats = field(default_factory=lambda: np.array(-np.inf))
    high: Floats = field(default_factory=lambda: np.array(np.inf))

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        """The one of 95 %."""
        return self.low, self.high


@dataclass(frozen=True)
class Influence:
    """One report adds from `low` to `high` to n times the estimate, each of its shape. Of any data
    the estimate's mean lies between `least` and `most`."""

    low: Floats
    high: Floats
    least: Floats | float = -np.inf
    most: Floats | float = np.inf

    def chance(self, estimate: Estimate) -> tuple[float, float]:
        """How many standard errors the farthest coordinate is from its nearest possible value, and
        the chance of such an estimate by honest reports, at most.

        Reports are independent, each within [low, high], and their mean is possible: Hoeffding's
        bound at the nearest possible value, for all coordinates and both sides together. The
        standard error is the largest that reports within these ends have there.
        """
        value = np.atleast_1d(estimate.value)
        width = self.high - self.low
        nearest = np.clip(value, self.least, self.most)
        certain = (value == nearest) | (width == 0)  # possible, or the same whatever is reported
        scale = np.where(certain, 1.0, width)
        share, at = (np.clip((each - self.low) / scale, 0.0, 1.0) for each in (value, nearest))
        n = estimate.n
        upper = mean_tail(share, n, at)
        lower = mean_tail(1 - share, n, 1 - at)
        tails = np.where(value > nearest, upper, lower)
        with np.errstate(all="ignore"):
            variance = (self.high - nearest) * (nearest - self.low) / n
            away = np.nan_to_num(abs(value - nearest) / np.sqrt(variance), nan=0.0)
        chance = np.where(certain, 1.0, tails).min()
        return float(away[~certain].max(initial=0.0)), float(min(1.0, 2 * len(value) * chance))

    def worst_case(self, estimate: Estimate, missing: int, lying: float) -> WorstCase:
        """The estimate by its possible values alone: `interval` within them, or all of them where
        these reports allow none."""
        low, high = (
            np.clip(end, self.least, self.most) for end in self.interval(estimate, missing, lying)
        )
        possible = (estimate.value >= self.least) & (estimate.value <= self.most)
        none = ~possible & (low == high)
        low = np.where(none, self.least, low)
        high = np.where(none, self.most, high)
        return WorstCase(
            np.where(possible, estimate.value, np.nan),
            estimate.standard_error,
            estimate.n,
            estimate.ends,
            low,
            high,
        )

    def had_all_answered(self, value: Floats, n: int, missing: int) -> tuple[Floats, Floats]:
        """Between which ends the estimate of n reports would lie had `missing` more clients
        answered, whatever they held and said."""
        total = n + missing
        return (n * value + missing * self.low) / total, (n * value + missing * self.high) / total

    def of_share(self, share: float) -> Floats:
        """How far at most a share of the clients who lie can have moved the estimate, to either
        side."""
        return share * (self.high - self.low)

    def interval(self, estimate: Estimate, missing: int, lying: float) -> tuple[Floats, Floats]:
        """An interval at the estimate's level if `missing` clients did not answer and a share
        `lying` of all lied, 0 <= lying < 1. Raises InputError."""
        if not 0 <= lying < 1:
            raise InputError(
                f"the share of clients that may lie is {lying}; give a number from 0 to below 1"
            )
        low, high = self.had_all_answered(estimate.value, estimate.n, missing)
        shift = self.of_share(lying)
        n = estimate.n + missing
        lower = np.maximum(low - shift, self.low)
        upper = np.minimum(high + shift, self.high)
        return replace(estimate, value=lower, n=n).interval()[0], replace(
            estimate, value=upper, n=n
        ).interval()[1]


def influence_of(algorithm: Algorithm[LocalQuery, Tally, Any]) -> Influence | None:
    """The influence of one report on the result, in the result's own units.

    Of a frequency oracle it is the two values that its estimate of one report takes. Else every
    report of every coin is decoded, alone. None where that is too many, or where the result is no
    average over the reports of one query: a quotient, a hypothesis, an estimate by several rounds
    or cohorts.
    """
    if not isinstance(algorithm, Nonadaptive) or len(algorithm.queries) != 1:
        return None
    randomizer = algorithm.queries[0].randomizer

    def decode(tally: Tally) -> Estimate:
        result = algorithm.decode((tally,))
        if type(result) is not Estimate:
            raise InputError("the result is no average")
        return result

    try:
        empty = randomizer.empty()
        ones = replace(empty, counts=np.ones_like(empty.counts), n=int(empty.counts.size))
        if (
            isinstance(randomizer, FiniteChannel)
            and not isinstance(randomizer, FrequencyOracle)
            and empty.counts.shape == (randomizer.cells, randomizer.alphabet)
            and empty.counts.size <= MOST  # its tally counts each report of each coin
        ):
            each = single_estimates(lambda counts: decode(Tally(counts)).value, empty.counts.shape)
            return (
                None
                if each is None
                else Influence(each.min(axis=0), each.max(axis=0), *_possible(randomizer, each))
            )
        estimate = decode(ones)  # to see of which kind it is
    except InputError:
        return None
    own = randomizer.estimate(ones).ends if isinstance(randomizer, FrequencyOracle) else None
    if estimate.ends is None or own is None:
        return None
    low, high = (
        np.broadcast_to(end, estimate.value.shape).astype(np.float64) for end in estimate.ends
    )
    width = (high - low) / (own[1] - own[0])  # of the shares, which are from 0 to 1
    least = low - width * own[0]
    most = low + width * (1 - own[0])
    return Influence(low, high, _rounded(least, width), _rounded(most, width))


def _possible(randomizer: FiniteChannel, each: Floats) -> tuple[Floats | float, Floats | float]:
    """The least and the largest mean that any data have; unknown where there are too many
    values."""
    values = randomizer.corners if isinstance(randomizer, Mixed) else randomizer.domain.values()
    if len(values) * len(each) > MOST * MOST:
        return -np.inf, np.inf
    parts = each.reshape(randomizer.cells, randomizer.alphabet, -1)
    cells = range(randomizer.cells)
    sums = [randomizer.rows(values, cell).astype(np.float64) @ parts[cell] for cell in cells]
    means = np.mean(sums, axis=0) / 2.0**randomizer.word_bits
    least, most = (end.reshape(each.shape[1:]) for end in (means.min(axis=0), means.max(axis=0)))
    return _rounded(least, most - least), _rounded(most, most - least)


def _rounded(end: Floats, width: Floats) -> Floats:
    """Without the rounding errors of sums, which are far below a millionth of a millionth of the
    width: 0 and not -4e-16."""
    unit = 10.0 ** (math.floor(math.log10(float(np.max(width)) or 1.0)) - 12)
    return np.round(end / unit) / (1 / unit) + 0.0


def single_estimates(estimate: Callable[[Counts], Floats], shape: tuple[int, ...]) -> Floats | None:
    """What each report alone is an estimate of, with counts of this shape; None where the estimate
    of many reports is not the mean of theirs."""
    one = np.zeros(math.prod(shape), dtype=np.int64)
    one[0] = 1
    each = np.array([estimate(np.roll(one, place).reshape(shape)) for place in range(len(one))])
    mixed = 1 + np.arange(len(one), dtype=np.int64) % 7
    mean = np.tensordot(mixed, each, axes=1) / mixed.sum()
    return each if np.allclose(mean, estimate(mixed.reshape(shape)), rtol=1e-9, atol=1e-9) else None


def irregularity(randomizer: Randomizer, counts: Counts) -> float | None:
    """At most the probability that of honest bit vectors so many, or more, have some one number of
    ones: the least p-value, times how many numbers there are.

    `counts` is how many of the reports have each number of ones, shape (places + 1,), as by
    `ones_seen`. Each bit of a unary encoding is flipped on its own, and one bit differs from the
    others: so the number of ones in an honest report has the same law for every value, and the
    number of reports with c ones is binomial; its upper tail is summed. An attacker who sends only
    the bit that is to be made frequent is seen; one who adds as many others as honest reports have
    is not, and no test can see that. None for other randomizers. Source: Cao, Jia, Gong 2021 (the
    attack, padded and not).
    """
    if not isinstance(randomizer, UnaryEncoding) or not counts.any():
        return None
    from scipy.stats import binom

    law = ones_law(randomizer)
    return float(min(1.0, len(law) * binom.sf(counts - 1, counts.sum(), law).min()))


def ones_seen(randomizer: UnaryEncoding, reports: Words) -> Counts:
    """How many of the reports have 0, 1, 2 ... ones, shape (places + 1,)."""
    ones = np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
    return np.bincount(ones, minlength=randomizer.places + 1)


def ones_law(randomizer: BitVector) -> Floats:
    """The law of the number of ones in an honest report, shape (places + 1,): the convolution of
    its bits' laws, alike for all values."""
    shares = np.array(randomizer.ones, dtype=np.float64)[randomizer.code[0]] / randomizer.total
    symbols, times = np.unique(shares, return_counts=True)
    from scipy.stats import binom  # imported when a round of bit vectors is over

    law = np.ones(1)
    for share, many in zip(symbols.tolist(), times.tolist(), strict=True):
        law = np.convolve(law, binom.pmf(np.arange(many + 1), many, share))
    return law
