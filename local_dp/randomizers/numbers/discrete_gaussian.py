"""Discrete Gaussian noise on a lattice: approximate privacy, as its loss says."""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Words
from local_dp.errors import InputError
from local_dp.loss import Approximate, atto_delta, exp_epsilon, nano_epsilon
from local_dp.randomizers.numbers.base import NumberTable

_UNIT = 64  # the noise's variance is a multiple of 1 / 64 of a squared step
_MOST = 1 << 22  # entries of a table


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(NumberTable):
    """Adds whole noise y of weight e^(-y^2 / (2 V)) to a lattice value; V is the least with which (epsilon, delta) holds, found in the whole weights.

    Privacy: APPROXIMATE: Pr[S | u] <= e^eps Pr[S | u'] + delta, enumerated over all pairs of values. A ledger of pure losses refuses it. Weights below
    2^-word_bits are 0, so some values never send some reports. Utility: unbiased, variance V / steps^2 at every value. Cost: log2 of some 18 sqrt V reports.
    """

    name: ClassVar[str] = "discrete-gaussian"
    source: ClassVar[str] = "Canonne, Kamath, Steinke 2020, on one record"
    delta: float = 1e-6
    steps: int = 15

    @property
    def loss(self) -> Approximate:
        return Approximate(nano_epsilon(self.epsilon), atto_delta(self.delta))

    @property
    def spread(self) -> Fraction:
        """V, in squared steps."""
        return Fraction(_least_spread(self.loss, self.steps, self.word_bits), _UNIT)

    def table(self) -> Words:
        noise = _noise(_least_spread(self.loss, self.steps, self.word_bits), self.word_bits)
        table = np.zeros((self.steps + 1, len(noise) + self.steps), dtype=np.uint64)
        for value in range(self.steps + 1):
            table[value, value : value + len(noise)] = noise
        return table

    @cached_property
    def decoded(self) -> Floats:
        width = (self.alphabet - self.steps) // 2
        return (np.arange(self.alphabet) - width) / self.steps


@lru_cache(maxsize=256)
def _noise(spread: int, bits: int) -> Words:
    """The whole weights of noise -R..R of variance `spread` / _UNIT, rounded down; 0 takes the rest, so the mean is exactly 0."""
    with localcontext() as context:
        context.prec = 60
        decay = (-Decimal(_UNIT) / (2 * spread)).exp()
        sides, ratio, least = [Decimal(1)], decay, Decimal(2) ** -(bits + 8)
        while sides[-1] > least:
            sides.append(sides[-1] * ratio)
            ratio *= decay * decay
        scale = (1 << bits) / (2 * sum(sides, Decimal(0)) - 1)
        whole = [each for each in (int(side * scale) for side in sides) if each] or [0]
    whole[0] = (1 << bits) - 2 * sum(whole[1:])
    return np.array([*whole[:0:-1], *whole], dtype=np.uint64)


def _delta(spread: int, steps: int, growth: float, bits: int) -> float:
    """The largest delta over all distances of two values, as `evidence.delta_above` has it."""
    noise = _noise(spread, bits).astype(np.float64)
    excess = [
        np.maximum(np.append(noise, np.zeros(away)) * (1 + 2**-52) - growth * (1 - 2**-50) * np.append(np.zeros(away), noise), 0.0).sum()
        for away in range(1, steps + 1)
    ]
    return float(max(excess)) / 2.0**bits * (1 + 2e-9)


@lru_cache(maxsize=64)
def _least_spread(loss: Approximate, steps: int, bits: int) -> int:
    """V in units of 1 / _UNIT: by doubling and halving; from there on some more would do as well."""
    growth = float(exp_epsilon(loss.nano))
    low, high = 0, 1
    while _delta(high, steps, growth, bits) > loss.delta:
        low, high = high, 2 * high
        deviation = math.sqrt(high / _UNIT)
        if steps * 18 * deviation > _MOST or 16 * deviation > 1 << bits:
            raise InputError(f"discrete Gaussian noise for {loss} on {steps} steps takes too large a table or wider words than {bits} bits; give fewer steps")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _delta(middle, steps, growth, bits) <= loss.delta else (middle, high)
    return high
