"""Compressed channels: a client names one of a few public samples, and the law by which it chooses is enumerated."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.checks import check_whole
from local_dp.domains import Domain
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.noise import public_coins, stream_key
from local_dp.randomizers.finite import FiniteChannel, too_narrow
from local_dp.randomizers.in_blocks import in_blocks
from local_dp.randomizers.named import build_named
from local_dp.randomizers.randomizer import Work
from local_dp.randomizers.table import Guide
from local_dp.tallies import Estimate, Tally

_UNIT = 30  # bits of a ratio of two probabilities below 1
_FINE = 40  # bits that the part common to all choices is counted finer
_MOST = 1 << 18  # entries of a table
_BIAS = 1e-8  # of an estimate that is called unbiased


@dataclass(frozen=True, kw_only=True)
class Compressed(FiniteChannel):
    """Names one of N samples that a public coin picks one of `streams` lists of, drawn from the mean law of the channel `inner` over its values.

    `inner` is a randomizer's name and `setting` its parameters, "name=value" each; its epsilon is this one's unless said otherwise. A subclass says by
    which law a value chooses. To the law a part common to all choices and values is added, or taken off, until the worst ratio is e^epsilon: the loss is
    enumerated, over all lists. Utility: of all unbiased estimates that add up over reports, the one with the least variance where all values are held
    equally often; `variances` has it exactly. Values: symbols, estimated as shares, or a lattice of numbers, as their mean.
    """

    work: ClassVar[Work] = "short reports"
    inner: str = "grr"
    setting: tuple[str, ...] = ("k=8",)
    streams: int = 64

    @property
    @abstractmethod
    def choices(self) -> int:
        """N, the number of samples in a list."""

    @abstractmethod
    def parts(self, ratios: Ints) -> Ints:
        """The law of the choice in whole parts, every row of a list with one sum, from how likely each value makes each sample, in 2^-30 of the mean.

        Both are of shape (streams, values, N); parts are below 2^62.
        """

    def check(self) -> None:
        check_whole("streams", self.streams, 1, 1 << 10)
        if self.streams & (self.streams - 1):
            raise InputError(f"streams is {self.streams}; give a power of two")

    def prepare(self) -> None:
        channel = inner_channel(self.inner, self.setting, self.epsilon)
        object.__setattr__(self, "_domain", channel.domain)
        if channel.domain.size * self.streams * self.choices > _MOST:
            raise InputError(f"{self.streams} lists of {self.choices} samples for {channel.domain.size} values make too large a table; give less")
        weights = channel.channel() >> np.uint64(max(0, channel.word_bits - 32))  # of 32 bits: which law is chosen by is free, and only that is enumerated
        parts = self.parts(_ratios(weights, self.streams, self.choices))
        rows = [private_weights(each, exp_epsilon(self.nano), self.word_bits) for each in parts]
        if any(row is None for row in rows):
            raise too_narrow(self)
        object.__setattr__(self, "_weights", np.array(rows, dtype=np.uint64))
        object.__setattr__(self, "_guide", Guide.of(self.weights.reshape(-1, self.choices), self.word_bits))
        object.__setattr__(self, "_decoded", self._least_variance())

    @property
    def weights(self) -> Words:
        """The channel, shape (streams, values, N)."""
        table: Words = self.__dict__["_weights"]
        return table

    @property
    def decoded(self) -> Floats:
        """What each choice stands for, shape (streams, N), or (streams, N, k) of k symbols."""
        table: Floats = self.__dict__["_decoded"]
        return table

    @property
    def domain(self) -> Domain:
        held: Domain = self.__dict__["_domain"]
        return held

    @property
    def alphabet(self) -> int:
        return self.choices

    @property
    def cells(self) -> int:
        return self.streams

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return in_blocks(self._respond, values, words, cells)

    def _respond(self, values: Ints, words: Words, cells: Words) -> Words:
        guide: Guide = self.__dict__["_guide"]
        rows = cells.astype(np.int64) * self.domain.size + (values.astype(np.int64) - self.domain.low)
        return guide(rows, words).astype(self.report_dtype, copy=False)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        places = np.asarray(cells, dtype=np.int64), np.asarray(values, dtype=np.int64) - self.domain.low, np.asarray(reports, dtype=np.int64)
        weights: Words = self.weights[places]
        return weights

    def _least_variance(self) -> Floats:
        """Lagrange: of all tables a with P a = truth, P the law given each value, the one with the least mean square under the mean law."""
        law = np.moveaxis(self.weights.astype(np.float64), 1, 0).reshape(self.domain.size, -1) / self.total / self.streams
        shown = law / law.mean(axis=0)
        truth = np.eye(len(law)) if self.domain.kind == "symbols" else np.arange(len(law)) / self.domain.high
        inverse = np.linalg.pinv(law @ shown.T, rcond=1e-13, hermitian=True)
        decoded = shown.T @ (inverse @ truth)
        decoded += shown.T @ (inverse @ (truth - law @ decoded))  # once more, against rounding
        if abs(law @ decoded - truth).max() > _BIAS:
            raise InputError(f"{self.name}: {self.streams} lists of {self.choices} samples do not tell the values of {self.inner} apart; give more of them")
        stands: Floats = decoded.reshape(self.streams, self.choices, *truth.shape[1:])
        return stands

    def variances(self) -> Floats:
        """The variance of what one report stands for, at every value, from the whole table: shape (values,), or (values, k)."""
        law = np.moveaxis(self.weights.astype(np.float64), 1, 0).reshape(self.domain.size, -1) / self.total / self.streams
        stands = self.decoded.reshape(law.shape[1], -1)
        spread: Floats = law @ stands**2 - (law @ stands) ** 2
        return spread if self.decoded.ndim == 3 else spread[:, 0]

    def estimate(self, tally: Tally) -> Estimate:
        """The k shares, shape (k,), or the mean, unbiased."""
        n, seen = tally.answered, tally.counts.ravel()
        stands = self.decoded.reshape(len(seen), *self.decoded.shape[2:])
        mean = seen @ stands / n
        return Estimate(np.asarray(mean), np.sqrt(seen @ (stands - mean) ** 2) / n, n)


def inner_channel(name: str, setting: tuple[str, ...], epsilon: float) -> FiniteChannel:
    """The randomizer of that name and parameters. Raises InputError unless it is a small finite channel without public coins."""
    channel = build_named(name, setting, epsilon=epsilon)
    if not isinstance(channel, FiniteChannel) or channel.uses_coins or channel.domain.kind not in ("symbols", "levels"):
        raise InputError(f"{name} cannot be compressed; give a finite channel of symbols or of numbers that uses no public coin")
    if channel.domain.size > 1 << 12 or channel.domain.size * channel.alphabet > 1 << 22:
        raise InputError(f"{name}: a channel of {channel.domain.size} values and {channel.alphabet} reports is too large to compress")
    return channel


def _ratios(channel: Words, streams: int, choices: int) -> Ints:
    """Samples of the channel's mean law, and how likely each value makes each, in 2^-30 of the mean; shape (streams, values, choices)."""
    pooled = channel.sum(axis=0, dtype=np.uint64)
    ends = np.cumsum(pooled, dtype=np.uint64)
    coins = public_coins(stream_key("samples", 0), 0, streams * choices) % ends[-1]
    drawn = np.searchsorted(ends, coins, side="right")
    mean = -(-pooled.astype(np.int64) // len(channel)).astype(np.uint64)
    ratios = (channel[:, drawn] << np.uint64(_UNIT)) // mean[drawn]
    by_list: Ints = np.moveaxis(ratios.reshape(len(channel), streams, choices), 0, 1).astype(np.int64)
    return by_list


def private_weights(parts: Ints, growth: Fraction, bits: int) -> Words | None:
    """Whole parts, shape (values, N) and of one sum, as weights of 2^bits of which none exceeds `growth` times another of its column; None if too narrow.

    The least number is added to all parts, or the most taken off, for which (high + a + u) <= growth (low + a - u) in every column, where u is the part that
    a weight of 1 is worth: rounding moves a weight by less.
    """
    total, choices, exact = 1 << bits, parts.shape[1], parts.astype(object) << _FINE
    alike = bool((parts == parts[0]).all())  # samples that tell nothing: as they are
    most = (growth.numerator << 64) // growth.denominator  # in 2^-64: floor, towards privacy
    one = 1 << 64
    over = max(one * high - most * low for high, low in zip(exact.max(axis=0), exact.min(axis=0), strict=True))
    sums = int(exact[0].sum())
    slope = (most - one) * total - (most + one) * choices
    if slope <= 0:
        return None
    common = 0 if alike else -(-(over * total + (most + one) * sums) // slope)
    spread = (exact + common) * total // (sums + choices * common)
    left = total - spread.sum(axis=1)
    weights: Words = (spread + (np.arange(choices)[None, :] < left[:, None])).astype(np.uint64)
    return weights
