"""Noise on a lattice: discrete Laplace noise, clamped or cut off; the staircase; and discrete
Gaussian noise, of approximate privacy."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, repeat
from operator import mul

import numpy as np

from local_dp.arrays import Floats, Words
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, atto_delta, exp_epsilon, nano_epsilon
from local_dp.optimise import least_whole
from local_dp.randomizers.table import Law, NumberTable, as_decimal, precise

_ROUNDING = Decimal("1e-7")  # nats kept back so that rounded tables never exceed epsilon


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(NumberTable):
    """Adds two-sided geometric noise of ratio a = e^(-eps/steps) to a lattice value and clamps the
    sum to the lattice.

    Pr[w | v] = a^|w - v| (1 - a) / (1 + a) inside and a^|w - v| / (1 + a) at either end: a ratio of
    at most a^(-steps), so eps-local. Decoding adds a / (1 - a) beyond the ends. Because the
    geometric law has no memory, the estimate is unbiased at every point, with less variance than
    unclamped noise. At v of S = steps it is (2 a - a (a^v + a^(S - v)) / (1 + a)) / ((1 - a) S)^2,
    in units of [0, 1]. The table is built for epsilon - 1e-7, which covers the rounding to whole
    numbers over 2^64; narrow words round with a bias. Cost: log2(steps + 1) bits.
    """

    name = "discrete-laplace"
    summary = "Adds geometric noise to a number, and clamps the sum"
    source = "KLNRS 2008, Claim 4.1, on a lattice; Ghosh, Roughgarden, Sundararajan 2009"

    @property
    def _ratio(self) -> Decimal:
        """a."""
        epsilon = Decimal(self.nano) / NANO
        return (-(epsilon - min(_ROUNDING, epsilon / 10)) / self.steps).exp()

    def law(self) -> Law:
        a, points = self._ratio, range(self.steps + 1)
        return [
            [a ** abs(w - value) / (1 + a) * (1 if w in (0, self.steps) else 1 - a) for w in points]
            for value in points
        ]

    def rounded(self, law: Law) -> Words:
        """Whole weights; of 2^64 what rounding down left over goes to the likeliest report."""
        if self.word_bits < 64:
            return super().rounded(law)
        rows = [[int(p * 2**64) for p in row] for row in law]
        for value, row in enumerate(rows):
            row[value] += 2**64 - sum(row)
        return np.array(rows, dtype=np.uint64)

    @cached_property
    def decoded(self) -> Floats:
        with precise():
            a = self._ratio
            beyond = float(a / (1 - a)) / self.steps
        values = np.arange(self.steps + 1) / self.steps
        values[0] -= beyond
        values[-1] += beyond
        return values


@dataclass(frozen=True, kw_only=True)
class BoundedLaplace(NumberTable):
    """Reports lattice point w with probability a^|w - v| / Z(v), a^S = e^-eps for S = steps, Z(v)
    the sum over the lattice.

    Privacy: at w = 0 the ratio against value d is a^-d Z(d) / Z(0). It rises with d up to a^-S at d
    = S, where Z is the same again: eps. Only values that differ by less than the range would need a
    larger scale than unbounded noise. Utility: the channel's inverse, three diagonals, decodes
    without bias, at a price: clamped noise, `discrete-laplace`, is better for a mean. Cost:
    log2(steps + 1) bits.
    """

    name = "bounded-laplace"
    summary = "Reports a number near the true one, within the bounds"
    source = "Holohan, Antonatos, Braghin, Mac Aonghusa 2020, on a lattice"

    @property
    def _decay(self) -> Decimal:
        """a."""
        return (-as_decimal(self.growth).ln() / self.steps).exp()

    def law(self) -> Law:
        decay, points = self._decay, range(self.steps + 1)
        sums, powers = _sums(decay, self.steps), [decay**away for away in points]
        return [
            [powers[abs(report - value)] / sums[value] for report in points] for value in points
        ]

    @cached_property
    def decoded(self) -> Floats:
        with precise():
            decay = self._decay
            sums = _sums(decay, self.steps)
            return _inverse(
                [sums[value] * value / self.steps for value in range(self.steps + 1)], decay
            )


def _sums(decay: Decimal, steps: int) -> list[Decimal]:
    """Z(v) for every v."""
    powers = accumulate(repeat(decay, steps), mul, initial=Decimal(1))
    upward = list(accumulate(powers, initial=Decimal(0)))
    return [upward[value + 1] + upward[steps - value + 1] - 1 for value in range(steps + 1)]


def _inverse(targets: list[Decimal], decay: Decimal) -> Floats:
    """g with sum over w of a^|w - v| g(w) = wanted(v): the inverse of that matrix has three
    diagonals, over 1 - a^2."""
    last, square = len(targets) - 1, decay * decay
    values = []
    for place, here in enumerate(targets):
        beside = sum(targets[other] for other in (place - 1, place + 1) if 0 <= other <= last)
        values.append(
            float(
                (here * (1 if place in (0, last) else 1 + square) - decay * beside) / (1 - square)
            )
        )
    return np.array(values)


@dataclass(frozen=True, kw_only=True)
class Staircase(NumberTable):
    """Adds whole noise i of weight 1 for |i| < r, b = e^-eps for r <= |i| < S and b times less at
    each further S = steps, and folds the tails.

    Beyond the lattice the sums y and y + S differ by the factor b whatever the value, so the number
    of steps S reveals nothing. The report is the place modulo S, one of 3 S, and stands for the
    mean of the sums folded there. So the estimate is unbiased, with P[tail] S^2 b / (1 - b)^2 less
    variance than the noise, which is optimal among additive noise. Privacy: weights of two values
    have a ratio of at most e^eps. Utility: `folded_variance` at the best r; the noise alone, on the
    [-1, 1] scale, 4 ((b (1 + b) / 2)^(2/3) + b) / (1 - b)^2, b = e^-eps. Cost: log2(3 steps) bits.
    """

    name = "staircase"
    summary = "Adds noise in stairs to a number, of least variance"
    source = "Geng, Viswanath 2014 (Geng, Kairouz, Oh, Viswanath 2015), on a lattice"

    @property
    def stair(self) -> int:
        """r, the length of the first stair."""
        return best_stair(self.nano, self.steps)

    def law(self) -> Law:
        """Reports 0..S-1 are sums -S..-1 with what is below them, S..2S-1 are 0..S-1, 2S..3S-1 are
        S..2S-1 with what is above."""
        steps, stair, decay = self.steps, self.stair, 1 / as_decimal(self.growth)
        stairs = [Decimal(1) if place < stair else decay for place in range(steps)]
        weight = [each * decay**times for times in range(2) for each in stairs] + [decay**2]
        first = (1 - decay) / (2 * sum(stairs) - (1 - decay))
        fold = 1 / (1 - decay)
        rows = []
        for value in range(steps + 1):
            below = [first * fold * weight[value - place] for place in range(-steps, 0)]
            inside = [first * weight[abs(place - value)] for place in range(steps)]
            above = [first * fold * weight[place - value] for place in range(steps, 2 * steps)]
            rows.append([*below, *inside, *above])
        return rows

    @cached_property
    def decoded(self) -> Floats:
        with precise():
            decay = 1 / as_decimal(self.growth)
            beyond = self.steps * float(decay * (1 / (1 - decay)))
        places = np.arange(-self.steps, 2 * self.steps, dtype=np.float64)
        places[: self.steps] -= beyond
        places[-self.steps :] += beyond
        return places / self.steps


def _first(growth: float, steps: int, stair: int) -> float:
    """The probability of noise 0: (1 - b) / (2 (r + b (S - r)) - (1 - b))."""
    decay = 1 / growth
    return (1 - decay) / (2 * (stair + decay * (steps - stair)) - (1 - decay))


def added_variance(growth: float, steps: int, stair: int) -> float:
    """The variance of the unfolded noise, in units of [0, 1]: 2 Pr[0] times the sum over k and s <
    S of b^k f(s) (k S + s)^2, f the two stairs."""
    decay = 1 / growth
    places = np.arange(steps)
    stairs = np.where(places < stair, 1.0, decay)
    moments = [float(stairs @ places**power) for power in range(3)]
    far = (
        steps**2 * moments[0] * decay * (1 + decay) / (1 - decay) ** 3
        + 2 * steps * moments[1] * decay / (1 - decay) ** 2
        + moments[2] / (1 - decay)
    )
    return 2 * _first(growth, steps, stair) * far / steps**2


def folded_variance(growth: float, steps: int, stair: int) -> Floats:
    """The variance of one report's value, in units of [0, 1], at every lattice point: the noise's
    less that of the folding; shape (steps + 1,)."""
    decay = 1 / growth
    stairs = np.where(np.arange(steps) < stair, 1.0, decay)
    further = float(stairs.sum()) * decay / (1 - decay)
    # Pr[noise >= u] / Pr[0], u = 0..S+1
    reach = np.append(further + np.append(np.cumsum(stairs[::-1])[::-1], 0.0), further - decay)
    tails = _first(growth, steps, stair) * (reach[steps::-1] + reach[1:])
    return np.asarray(added_variance(growth, steps, stair) - tails * decay / (1 - decay) ** 2)


@lru_cache(maxsize=1024)
def best_stair(nano: int, steps: int) -> int:
    """The first stair of least worst-case variance."""
    growth = float(exp_epsilon(nano))
    return min(
        range(1, steps + 1), key=lambda stair: float(folded_variance(growth, steps, stair).max())
    )


_UNIT = 64  # the noise's variance is a multiple of 1 / 64 of a squared step
_MOST = 1 << 22  # entries of a table


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(NumberTable):
    """Adds whole noise y of weight e^(-y^2 / (2 V)) to a lattice value; V is the least with which
    (epsilon, delta) holds, found in the whole weights.

    Privacy: APPROXIMATE: Pr[S | u] <= e^eps Pr[S | u'] + delta, enumerated over all pairs of
    values. A ledger of pure losses refuses it. Weights below 2^-word_bits are 0, so some values
    never send some reports. Utility: unbiased, variance V / steps^2 at every value. Cost: log2 of
    some 18 sqrt V reports.
    """

    name = "discrete-gaussian"
    summary = "Adds whole normal noise to a number"
    source = "Canonne, Kamath, Steinke 2020, on one record"
    delta: float = 1e-6
    steps: int = 15

    @staticmethod
    def example_params(size: int) -> dict[str, float]:
        return {"steps": min(size, 8) - 1, "delta": 0.01}

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
    """The whole weights of noise -R..R of variance `spread` / _UNIT, rounded down; 0 takes the
    rest, so the mean is exactly 0."""
    with precise():
        decay = (-Decimal(_UNIT) / (2 * spread)).exp()
        sides, ratio, least = [Decimal(1)], decay, Decimal(2) ** -(bits + 8)
        while sides[-1] > least:
            sides.append(sides[-1] * ratio)
            ratio *= decay * decay
        scale = (1 << bits) / (2 * sum(sides, Decimal(0)) - 1)
        whole = [each for each in (int(side * scale) for side in sides) if each] or [0]
    whole[0] = (1 << bits) - 2 * sum(whole[1:])
    return np.array([*whole[:0:-1], *whole], dtype=np.uint64)


def _delta(spread: int, distances: range, growth: float, bits: int) -> float:
    """The largest delta over these distances of two values, as `evidence.delta_above` has it."""
    noise = _noise(spread, bits).astype(np.float64)
    excess = [
        np.maximum(
            np.append(noise, np.zeros(away)) * (1 + 2**-52)
            - growth * (1 - 2**-50) * np.append(np.zeros(away), noise),
            0.0,
        ).sum()
        for away in distances
    ]
    return float(max(excess)) / 2.0**bits * (1 + 2e-9)


@lru_cache(maxsize=64)
def _least_spread(loss: Approximate, steps: int, bits: int) -> int:
    """V in units of 1 / _UNIT: by doubling and halving; from there on some more would do as
    well.

    Apart from the rounding of weights the largest distance has the largest delta. So it is searched
    alone, and the others are checked at the end.
    """
    growth = float(exp_epsilon(loss.nano))
    farthest, all_distances = range(steps, steps + 1), range(1, steps + 1)
    low, high = 0, 1
    while _delta(high, farthest, growth, bits) > loss.delta:
        low, high = high, 2 * high
        deviation = math.sqrt(high / _UNIT)
        if steps * 18 * deviation > _MOST or 16 * deviation > 1 << bits:
            raise InputError(
                f"discrete Gaussian noise for {loss} on {steps} steps takes too large a table or "
                f"wider words than {bits} bits; give fewer steps"
            )
    spread = least_whole(
        low, high, lambda spread: _delta(spread, farthest, growth, bits) <= loss.delta
    )
    while _delta(spread, all_distances, growth, bits) > loss.delta:
        spread += 1
    return spread
