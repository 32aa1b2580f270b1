"""Rejection from a pseudorandom seed: a report of any channel told by the seed that makes it."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_whole
from local_dp.loss import exp_epsilon
from local_dp.randomizers.compressed.base import Compressed

MAX_BITS = 12


@dataclass(frozen=True, kw_only=True)
class SeededRejection(Compressed):
    """Reports a short seed from which the channel's mean law makes a report that is accepted as often as the value makes it likelier than the mean.

    Seeds are tried until one is accepted, and after as many tries as the least lucky value needs any seed is taken: so what is chosen stays linear in the
    channel's rows, and the mean of a number whose chances are linear in it stays so. Privacy: enumerated over all seeds and lists. Utility: the channel's own
    variance as seeds grow longer (`variances`). Cost: `seed_bits` bits, whatever the size of a report of the channel. 1 <= seed_bits <= 12.
    """

    name: ClassVar[str] = "seeded-rejection"
    source: ClassVar[str] = "Feldman, Talwar 2021"
    seed_bits: int = 2

    @property
    def choices(self) -> int:
        return 1 << self.seed_bits

    def check(self) -> None:
        check_whole("seed_bits", self.seed_bits, 1, MAX_BITS)
        super().check()

    def parts(self, ratios: Ints) -> Ints:
        accepted = ratios.sum(axis=2, keepdims=True)
        parts: Ints = ratios * np.int64(self.choices) + (accepted.max(axis=1, keepdims=True) - accepted)
        return parts


MAX_SAMPLES = 64
_GRID = 1 << 24  # steps of the limit on ratios
_PART = 1 << 40


@dataclass(frozen=True, kw_only=True)
class GenProt(Compressed):
    """Marks each of T public samples with probability h min(max(r, 1/L), L), r how much likelier the value makes it than the mean, and names a marked one.

    If none is marked, any. h is 1/2, or 1/L where that is less, and L the largest for which `worst_ratio` is e^epsilon: whatever the channel, of which a
    delta may be all, and whatever the samples. Ratios beyond L are moved to it; the paper puts 1. Privacy: PURE, also of an approximate channel; for the
    samples that there are the law is enumerated, and what the proof leaves over is spent on less noise. Cost: log2 T bits. 2 <= samples <= 64.
    """

    name: ClassVar[str] = "genprot"
    source: ClassVar[str] = "Bun, Nelson, Stemmer 2018"
    samples: int = 4

    @property
    def choices(self) -> int:
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
        marked = min(0.5, 1 / limit) * np.clip(ratios / 2.0**30, 1 / limit, limit)
        parts = np.rint(chosen(marked) * _PART).astype(np.int64)
        parts[..., 0] += _PART - parts.sum(axis=-1)  # what rounding left over
        return parts


def chosen(marked: Floats) -> Floats:
    """Which of T samples is named, from the chances that each is marked, by itself; shapes (..., T). O(T^3), exact up to rounding.

    Pr[t] = p_t E[1 / (1 + B)] + Pr[nobody] / T, with B how many of the others are marked.
    """
    samples, named = marked.shape[-1], []
    for place in range(samples):
        others = [np.ones(marked.shape[:-1])]  # Pr[B = b]
        for other in range(samples):
            if other == place:
                continue
            p, zero = marked[..., other], np.zeros(marked.shape[:-1])
            others = [low * (1 - p) + high * p for low, high in zip([*others, zero], [zero, *others], strict=True)]
        own = marked[..., place]
        named.append(sum(own * each / (1 + count) for count, each in enumerate(others)) + (1 - own) * others[0] / samples)
    return np.stack(named, axis=-1)


def worst_ratio(samples: int, low: float, high: float) -> float:
    """The largest ratio of the chances that a sample is named, over all chances of marks in [low, high].

    The chance of t rises with p_t, for E[1 / (1 + B)] >= Pr[B = 0] / T, and falls with every other: so it is largest at (high, low, ..., low) and least at
    (low, high, ..., high). For n others with one p, E[1 / (1 + B)] = (1 - (1 - p)^(n + 1)) / ((n + 1) p). About (high / low)^2 for many samples.
    """
    return _at(samples, high, low) / _at(samples, low, high)


def _at(samples: int, own: float, others: float) -> float:
    named = -math.expm1(samples * math.log1p(-others)) / (samples * others) if others < 1 else 1 / samples
    return own * named + (1 - own) * (1 - others) ** (samples - 1) / samples


@lru_cache(maxsize=256)
def largest_limit(nano: int, samples: int) -> float:
    """The largest L, a multiple of 2^-24 up to 2^16, for which `worst_ratio` of chances within a factor L of their middle is at most e^epsilon."""
    growth, low, high = float(exp_epsilon(nano)), 1, _GRID << 16
    while high - low > 1:
        middle = (low + high) // 2
        limit = 1 + middle / _GRID
        own = min(0.5, 1 / limit)
        low, high = (middle, high) if worst_ratio(samples, own / limit, own * limit) <= growth else (low, middle)
    return 1 + low / _GRID
