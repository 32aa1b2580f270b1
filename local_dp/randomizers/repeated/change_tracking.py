"""Bits for intervals of time or for buckets: when a value changes, and which bucket it lies in,
asked again and again."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.checks import check_whole
from local_dp.domains import MAX_SYMBOLS, Domain, symbols
from local_dp.randomizers.finite import flip_weight, loses_little
from local_dp.randomizers.frequencies.base import OfSymbols, support_variance
from local_dp.randomizers.frequencies.unary import OwnPlace
from local_dp.randomizers.places import PerCoin
from local_dp.tallies import Estimate, Joint, Tally


@dataclass(frozen=True, kw_only=True)
class ChangeTracking(OwnPlace):
    """Reports a bit for each interval of time: 1 with probability p where the client's one change
    falls into it, else with q; the change may never come.

    Bit j depends on the value up to the end of interval j alone, so a report may be sent a bit at a
    time. All bits together are one report of one loss. Privacy: two lives differ at two places, by
    p / q and (1 - q) / (1 - p), with p = 1/2, q = 1 / (e^eps + 1); a single interval is a plain
    bit, 1 - p = q. Utility: the share of changes in m intervals, S of all, has variance (m q (1 -
    q) + S (p (1 - p) - q (1 - q))) / (n (p - q)^2) + S (1 - S) / n
    (`bounds.longitudinal.events_variance`). Cost: a bit an interval. Values: the interval, or
    `intervals` for never.
    """

    name = "change-tracking"
    summary = "Reports a bit for each interval in which a value may change"
    source = (
        "Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta 2019 (one sampled order and "
        "change); unary in place of signs"
    )
    work = "repeated surveys"
    intervals: int = 2

    def check(self) -> None:
        check_whole("intervals", self.intervals, 1, MAX_SYMBOLS - 1)

    def _fits(self, bits: int) -> bool:
        (flip, _), total = self._weights(bits), 1 << bits
        return loses_little(total - flip, flip, self.nano)

    def _weights(self, bits: int) -> tuple[int, int]:
        flip = flip_weight(self.nano, bits)
        return flip, 2**bits - flip if self.intervals == 1 else 2**bits // 2

    @cached_property
    def code(self) -> Ints:
        return np.eye(self.intervals + 1, self.intervals, dtype=np.uint8)

    @property
    def domain(self) -> Domain:
        return symbols(self.intervals + 1)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        """Linear functions of the shares of each interval and of never; (b - q) / (p - q) at two
        places multiply to 0 on average, as in unary encoding."""
        # the share of never is 1 less the intervals'
        joint = super().joint(tally, weights[:, :-1] - weights[:, -1:])
        low, high = joint.ends or (0.0, 0.0)
        return replace(
            joint,
            value=joint.value + weights[:, -1],
            ends=(low + weights[:, -1], high + weights[:, -1]),
        )

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"intervals": size - 1}

    def variance(self, values: Ints, law: Floats) -> Floats:
        """Of an interval a bit by itself; of never all bits together."""
        share, (p, q) = law @ self.truths(values), self.chances
        within = np.append(share[..., :-1], 1 - share[..., -1:], axis=-1)
        spread = q * (1 - q)
        many = np.append(np.ones(self.intervals), self.intervals)
        return np.asarray(
            (many * spread + within * (p * (1 - p) - spread)) / (p - q) ** 2 + within * (1 - within)
        )

    def estimate(self, tally: Tally) -> Estimate:
        """The share of each interval and of never, unbiased, shape (intervals + 1,)."""
        each, square = self._moments(tally)
        mean, squares = np.append(each, -each.sum()), np.append(square, square.sum())
        value = np.append(each, 1 - each.sum())
        return Estimate(value, np.sqrt(np.maximum(squares - mean**2, 0.0) / tally.n), tally.n)


@dataclass(frozen=True, kw_only=True)
class BitFlip(PerCoin, OfSymbols):
    """Reports for each of d of k buckets, picked by a public coin, whether the value lies there, by
    unary encoding; the same bits for ever under a label.

    The buckets are a, a + s, ..., a + (d - 1) s modulo k, for a random a and a random s without a
    common factor with k: each is picked with chance d / k. Privacy: whatever the coin, `epsilon`
    for all reports under a label, paid once, whatever the record becomes: a client keeps the bits
    of its first record, since bits that changed would show a change. Utility: a bucket's share has
    variance l (1 - l) / (n' (p - q)^2), l = q + f (p - q), n' the clients asked about it, n d / k
    on average; p = 1/2 and q = 1 / (e^eps + 1), or a plain bit for d = 1. Cost: d bits. 2 <= k <=
    4096.
    """

    name = "d-bit-flip"
    summary = "Reports lasting bits about a few buckets of a number"
    source = (
        "Ding, Kulkarni, Yekhanin 2017 (dBitFlipPM); bits of optimised unary encoding: Wang, "
        "Blocki, Li, Jha 2017"
    )
    work = "repeated surveys"
    d: int = 1

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"k": size, "d": 2}

    def variance(self, values: Ints, law: Floats) -> Floats:
        """To O(k^2 / (n d^2)): that of the n d / k clients that are asked about a bucket."""
        return (
            self.k
            / self.d
            * support_variance(*self.inner.chances, np.asarray(law @ self.truths(values)))
        )

    def check(self) -> None:
        check_whole("d", self.d, 1, symbols(self.k).size)
        super().check()

    @cached_property
    def inner(self) -> ChangeTracking:
        return ChangeTracking(self.epsilon, word_bits=self.word_bits, intervals=self.d)

    @cached_property
    def _strides(self) -> tuple[Counts, Counts]:
        """The steps that share no factor with k, and their inverses modulo k."""
        steps = [step for step in range(1, self.k) if gcd(step, self.k) == 1]
        return np.array(steps), np.array([pow(step, -1, self.k) for step in steps])

    def _pick(self, coins: Words) -> tuple[Ints, Ints]:
        """The first bucket and the number of the step, each with its chance up to 2^-20."""
        word, many = coins.astype(np.uint64), len(self._strides[0])
        first = (word >> np.uint64(32)) * np.uint64(self.k) >> np.uint64(32)
        step = (word & np.uint64(2**32 - 1)) * np.uint64(many) >> np.uint64(32)
        return first.astype(np.int64), step.astype(np.int64)

    def encode(self, values: Ints, coins: Words) -> Ints:
        """The place of the client's bucket among those picked, or d."""
        first, step = self._pick(coins)
        places = (values.astype(np.int64) - first) * self._strides[1][step] % self.k
        return np.asarray(np.minimum(places, self.d))

    def tally(self, reports: Words, cells: Words) -> Tally:
        """For each bucket the number of zeros and of ones, shape (k, 2)."""
        bits = np.unpackbits(reports, axis=1, count=self.d, bitorder="little")
        first, step = self._pick(cells)
        buckets = (first[:, None] + np.arange(self.d) * self._strides[0][step][:, None]) % self.k
        return Tally(
            np.bincount((2 * buckets + bits).ravel(), minlength=2 * self.k).reshape(self.k, 2),
            len(reports),
        )

    def estimate(self, tally: Tally) -> Estimate:
        """The k frequencies, unbiased, shape (k,); 0 with infinite error for a bucket that no
        client was asked about."""
        n, clients, (p, q) = tally.answered, tally.counts.sum(axis=1), self.inner.chances
        rate = tally.counts[:, 1] / np.maximum(clients, 1)
        share: Floats = np.where(clients > 0, (rate - q) / (p - q), 0.0)
        # a share beyond is noise and must not make the error look small
        chance = q + np.clip(share, 0.0, 1.0) * (p - q)
        error = np.sqrt(chance * (1 - chance) / np.maximum(clients, 1)) / (p - q)
        return Estimate(share, np.where(clients > 0, error, np.inf), n)
