"""Compressed channels: a client names one of a few public samples, and the law of its choice is
enumerated."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.checks import check_built, check_whole
from local_dp.domains import Domain
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.noise import public_coins, stream_key
from local_dp.optimise import least_whole
from local_dp.randomizers.finite import FiniteChannel, too_narrow
from local_dp.randomizers.registry import build_named
from local_dp.randomizers.table import Guide
from local_dp.tallies import Estimate, Tally

_UNIT = 30  # bits of a ratio of two probabilities below 1
_FINE = 40  # bits that the part common to all choices is counted finer
_MOST = 1 << 18  # entries of a table
_BIAS = 1e-8  # of an estimate that is called unbiased


@dataclass(frozen=True, kw_only=True)
class OfChannel(FiniteChannel):
    """Reports by a table of whole weights that a subclass makes from the channel of another
    randomizer.

    `inner` is a randomizer's name and `setting` its parameters, "name=value" each; its epsilon is
    `inner_epsilon` unless `setting` gives it. Utility: of all unbiased estimates that are sums over
    reports, the one of least variance at the uniform law. Values are symbols, estimated as shares,
    or a lattice of numbers, estimated as their mean.
    """

    inner: str = "grr"
    setting: tuple[str, ...] = ("k=8",)

    @cached_property
    @abstractmethod
    def weights(self) -> Words:
        """The channel, shape (cells, values, alphabet)."""

    @property
    def inner_epsilon(self) -> float:
        """Of `inner`, in nats."""
        return self.epsilon

    def prepare(self) -> None:
        check_built(self.decoded)

    @cached_property
    def _channel(self) -> FiniteChannel:
        return inner_channel(self.inner, self.setting, self.inner_epsilon)

    @cached_property
    def _guide(self) -> Guide:
        return Guide.of(self.weights.reshape(-1, self.alphabet), self.word_bits)

    @property
    def domain(self) -> Domain:
        return self._channel.domain

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        rows = values.astype(np.int64) + cells.astype(np.int64) * self.domain.size
        return self._guide(rows - self.domain.low, words).astype(self.report_dtype, copy=False)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        entries = cells, np.asarray(values) - self.domain.low, reports
        return self.weights[tuple(np.asarray(each, dtype=np.int64) for each in entries)]

    @cached_property
    def _law(self) -> Floats:
        """Pr[list and choice | value], shape (values, cells alphabet)."""
        weights = np.moveaxis(self.weights.astype(np.float64), 1, 0)
        return weights.reshape(self.domain.size, -1) / self.total / self.cells

    @cached_property
    def decoded(self) -> Floats:
        """The value of each report, (cells, alphabet), or (cells, alphabet, k) for symbols: the a
        of least mean square with P a = truth, P the law."""
        law = self._law
        ratios = law / law.mean(axis=0)
        truth = (
            np.eye(len(law))
            if self.domain.kind == "symbols"
            else np.arange(len(law)) / self.domain.high
        )
        inverse = np.linalg.pinv(law @ ratios.T, rcond=1e-13, hermitian=True)
        solution = ratios.T @ (inverse @ truth)
        solution += ratios.T @ (inverse @ (truth - law @ solution))  # once more, against rounding
        if abs(law @ solution - truth).max() > _BIAS:
            raise InputError(
                f"{self.name}: {self.cells} lists of {self.alphabet} samples do not tell the "
                f"values of {self.inner} apart; give more of them"
            )
        return np.asarray(solution.reshape(self.cells, self.alphabet, *truth.shape[1:]))

    def estimate(self, tally: Tally) -> Estimate:
        """The k shares, shape (k,), or the mean, unbiased."""
        n, counts = tally.answered, tally.counts.ravel()
        stands = self.decoded.reshape(len(counts), *self.decoded.shape[2:])
        mean = counts @ stands / n
        return Estimate(np.asarray(mean), np.sqrt(counts @ (stands - mean) ** 2) / n, n)


@dataclass(frozen=True, kw_only=True)
class Compressed(OfChannel):
    """Reports which of N = `alphabet` public samples the client picks. A coin picks one of
    `streams` lists; samples are of the mean law of `inner` over values.

    A subclass gives the law of the choice. Privacy: a part common to all choices and values is
    added or taken off until the worst ratio is e^epsilon, enumerated over all lists.
    """

    work = "short reports"
    streams: int = 64

    @abstractmethod
    def parts(self, ratios: Ints) -> Ints:
        """The law of the choice in whole parts below 2^62, from each sample's ratio to the mean in
        2^-30; both (streams, values, N), rows of one sum."""

    def check(self) -> None:
        check_whole("streams", self.streams, 1, 1 << 10)
        if self.streams & (self.streams - 1):
            raise InputError(f"streams is {self.streams}; give a power of two")

    @cached_property
    def weights(self) -> Words:
        channel = self._channel
        if channel.domain.size * self.streams * self.alphabet > _MOST:
            raise InputError(
                f"{self.streams} lists of {self.alphabet} samples for {channel.domain.size} "
                "values make too large a table; give less"
            )
        # of 32 bits: which law is chosen by is free, and only that is enumerated
        weights = channel.channel() >> np.uint64(max(0, channel.word_bits - 32))
        parts = self.parts(_ratios(weights, self.streams, self.alphabet))
        rows = [private_weights(each, exp_epsilon(self.nano), self.word_bits) for each in parts]
        if any(row is None for row in rows):
            raise too_narrow(self)
        return np.array(rows, dtype=np.uint64)

    @property
    def cells(self) -> int:
        return self.streams


def inner_channel(name: str, setting: tuple[str, ...], epsilon: float) -> FiniteChannel:
    """The randomizer of that name and parameters. Raises InputError unless it is a small finite
    channel without public coins."""
    channel = build_named(name, setting, epsilon=epsilon)
    if (
        not isinstance(channel, FiniteChannel)
        or channel.uses_coins
        or channel.domain.kind not in ("symbols", "levels")
    ):
        raise InputError(
            f"{name} cannot be the inner one; give a finite channel of symbols or of numbers that "
            "uses no public coin"
        )
    if channel.domain.size > 1 << 12 or channel.domain.size * channel.alphabet > 1 << 22:
        raise InputError(
            f"{name}: a channel of {channel.domain.size} values and {channel.alphabet} reports is "
            "too large for another one to be made of it"
        )
    return channel


def _ratios(channel: Words, streams: int, choices: int) -> Ints:
    """Samples of the channel's mean law, and their probability for each value in 2^-30 of the mean;
    shape (streams, values, choices)."""
    pool = channel.sum(axis=0, dtype=np.uint64)
    ends = np.cumsum(pool, dtype=np.uint64)
    coins = public_coins(stream_key("samples", 0), 0, streams * choices) % ends[-1]
    places = np.searchsorted(ends, coins, side="right")
    mean = -(-pool.astype(np.int64) // len(channel)).astype(np.uint64)
    ratios = (channel[:, places] << np.uint64(_UNIT)) // mean[places]
    return np.asarray(
        np.moveaxis(ratios.reshape(len(channel), streams, choices), 0, 1).astype(np.int64)
    )


def private_weights(parts: Ints, growth: Fraction, bits: int) -> Words | None:
    """Whole parts, shape (values, N) and of one sum, as weights of 2^bits within a factor `growth`
    in each column; None if words are too narrow.

    A common number a is added to all parts: the least, perhaps negative, with (high + a + u) <=
    growth (low + a - u) in every column. u is the part that a weight of 1 is worth, and rounding
    moves a weight by less.
    """
    total, choices, exact = 1 << bits, parts.shape[1], parts.astype(object) << _FINE
    alike = bool((parts == parts[0]).all())  # samples that tell nothing: as they are
    most = (growth.numerator << 64) // growth.denominator  # in 2^-64: floor, towards privacy
    one = 1 << 64
    over = max(
        one * high - most * low
        for high, low in zip(exact.max(axis=0), exact.min(axis=0), strict=True)
    )
    sums = int(exact[0].sum())
    slope = (most - one) * total - (most + one) * choices
    if slope <= 0:
        return None
    common = 0 if alike else -(-(over * total + (most + one) * sums) // slope)
    spread = (exact + common) * total // (sums + choices * common)
    left = total - spread.sum(axis=1)
    return np.asarray((spread + (np.arange(choices)[None, :] < left[:, None])).astype(np.uint64))


MAX_BITS = 12


@dataclass(frozen=True, kw_only=True)
class SeededRejection(Compressed):
    """Reports a short seed. The mean law makes a report from it, which is accepted in proportion to
    its likelihood under the value.

    Seeds are tried until one is accepted; after the number of tries that the least lucky value
    needs, any seed is taken. So the law stays linear in the channel's rows. Privacy: enumerated
    over all seeds and lists. Utility: the channel's own variance as seeds grow longer
    (`variances`). Cost: `seed_bits` bits, whatever the size of the channel's report. 1 <= seed_bits
    <= 12.
    """

    name = "seeded-rejection"
    summary = "Reports a short seed from which the report is made"
    source = "Feldman, Talwar 2021"
    seed_bits: int = 2

    @property
    def alphabet(self) -> int:
        return 1 << self.seed_bits

    def check(self) -> None:
        check_whole("seed_bits", self.seed_bits, 1, MAX_BITS)
        super().check()

    def parts(self, ratios: Ints) -> Ints:
        acceptance = ratios.sum(axis=2, keepdims=True)
        return np.asarray(
            ratios * np.int64(self.alphabet) + (acceptance.max(axis=1, keepdims=True) - acceptance)
        )


MAX_SAMPLES = 64
_GRID = 1 << 24  # steps of the limit on ratios
_PART = 1 << 40


@dataclass(frozen=True, kw_only=True)
class GenProt(Compressed):
    """Marks each of T public samples with probability h min(max(r, 1/L), L) and names a marked one,
    or any if none is marked.

    r is the sample's probability over the mean, h is 1/2, or 1/L where that is less. L is the
    largest with a `worst_ratio` of e^epsilon, whatever the channel and the samples; the paper has L
    = 1. Privacy: PURE, also for an approximate channel; the law of these samples is enumerated, and
    the rest of epsilon is spent on less noise. Cost: log2 T bits. 2 <= samples <= 64.
    """

    name = "genprot"
    summary = "Names one of several public samples of another report"
    source = "Bun, Nelson, Stemmer 2018"
    samples: int = 4

    @property
    def alphabet(self) -> int:
        return self.samples

    def check(self) -> None:
        check_whole("samples", self.samples, 2, MAX_SAMPLES)
        super().check()

    @property
    def limit(self) -> float:
        """L."""
        return largest_limit(self.nano, self.samples)

    def parts(self, ratios: Ints) -> Ints:
        limit = self.limit
        marks = min(0.5, 1 / limit) * np.clip(ratios / 2.0**30, 1 / limit, limit)
        parts = np.rint(chosen(marks) * _PART).astype(np.int64)
        parts[..., 0] += _PART - parts.sum(axis=-1)  # what rounding left over
        return parts


def chosen(marks: Floats) -> Floats:
    """How likely each of T samples is named, by chances of marks, (..., T), O(T^3): p_t E[1 / (1 +
    B)] + Pr[no mark] / T, B the number of other marked ones."""
    samples, shares = marks.shape[-1], []
    for place in range(samples):
        zero = np.zeros(marks.shape[:-1])
        others = [zero + 1]  # Pr[B = b]
        for other in range(samples):
            if other != place:
                p = marks[..., other]
                pairs = zip([*others, zero], [zero, *others], strict=True)
                others = [low * (1 - p) + high * p for low, high in pairs]
        own = marks[..., place]
        marked_chance = sum(own * each / (1 + count) for count, each in enumerate(others))
        shares.append(marked_chance + (1 - own) * others[0] / samples)
    return np.stack(shares, axis=-1)


def worst_ratio(samples: int, low: float, high: float) -> float:
    """The largest ratio of the chances that a sample is named, over all chances of marks in [low,
    high]: about (high / low)^2 for many samples.

    The chance of t rises with p_t, for E[1 / (1 + B)] >= Pr[B = 0] / T, and falls with every other
    chance. So it is largest at (high, low, ..., low) and least at (low, high, ..., high). For n
    others with one p, E[1 / (1 + B)] = (1 - (1 - p)^(n + 1)) / ((n + 1) p).
    """
    return _at(samples, high, low) / _at(samples, low, high)


def _at(samples: int, own: float, others: float) -> float:
    if others < 1:
        chance = -math.expm1(samples * math.log1p(-others)) / (samples * others)
    else:
        chance = 1 / samples
    return own * chance + (1 - own) * (1 - others) ** (samples - 1) / samples


@lru_cache(maxsize=256)
def largest_limit(nano: int, samples: int) -> float:
    """The largest L, a multiple of 2^-24 up to 2^16, for which `worst_ratio` of chances within a
    factor L of their middle is at most e^epsilon."""

    def beyond(steps: int) -> bool:
        limit = 1 + steps / _GRID
        own = min(0.5, 1 / limit)
        return worst_ratio(samples, own / limit, own * limit) > float(exp_epsilon(nano))

    return 1 + (least_whole(1, _GRID << 16, beyond) - 1) / _GRID
