"""Shuffled bits, exactly: the worst over all data sets of the other clients is found, and proved to be the worst.

A report is 1 with probability p = `high` or q = `low` at the two extreme values. The server sees how many ones there are; with s_k = Pr[the others send k],

    delta = sum over k of [a s_(k-1) - b s_k]_+ = max over t of (a Pr[S = t - 1] - (e^eps - 1) Pr[S >= t]),  a = p - e^eps q, b = e^eps (1 - q) - (1 - p),

because s is log-concave, so that the terms change their sign once. Proofs: docs/shuffle.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from local_dp.arrays import Floats
from local_dp.shuffle.pair import bracket

_ULP = 2.0**-52
_REACH = 7.0  # times sqrt(count): beyond it lies a probability below 2 e^-98 (Hoeffding)
_BEYOND = 1e-42
_SEEN = 1e-25  # where a probability is smaller it is only bounded
_CLOSE = (1e-4, 1e-5, 1e-6)  # of an epsilon: how near the upper end of a proof is to the lower
_ENOUGH = 3000  # bounds: a search that took more is not repeated more closely


@dataclass(frozen=True)
class _Binomial:
    """Of so many bits, Pr[X = low + i], each within `error` of itself relatively, and Pr[X >= low + i]; what lies outside is below `_BEYOND` together."""

    count: int
    low: int
    masses: Floats
    tails: Floats

    @property
    def high(self) -> int:
        return self.low + len(self.masses) - 1

    @property
    def error(self) -> float:
        """Eight roundings for each factor from the mode on."""
        return 8 * _ULP * (len(self.masses) + 1)


@lru_cache(maxsize=256)
def _binomial(count: int, share: float) -> _Binomial:
    mode, reach = min(count, math.floor((count + 1) * share)), math.ceil(_REACH * math.sqrt(count)) + 1
    low, high, odds = max(0, mode - reach), min(count, mode + reach), share / (1 - share)
    up, down = np.arange(mode, high, dtype=np.float64), np.arange(mode, low, -1, dtype=np.float64)
    masses = np.concatenate([np.cumprod(down / (count - down + 1) / odds)[::-1], [1.0], np.cumprod((count - up) / (up + 1) * odds)])
    masses /= masses.sum()
    return _Binomial(count, low, masses, np.append(np.cumsum(masses[::-1])[::-1], 0.0))


@dataclass(frozen=True)
class Bits:
    """A report is 1 with probability `high` at one extreme value and `low` < `high` at the other; 0 < low, high < 1."""

    high: float
    low: float

    @property
    def mirrored(self) -> "Bits":
        """What the zeros are."""
        return Bits(1 - self.low, 1 - self.high)

    @property
    def epsilon(self) -> float:
        """ln(high / low): more than this, no order of the reports gives away."""
        return math.log(self.high / self.low) * (1 + 4 * _ULP) + 4 * _ULP

    def others(self, ones: int, zeros: int) -> "Others":
        """So many clients of each extreme value."""
        return Others(self, _binomial(ones, self.high), _binomial(zeros, self.low))


@dataclass(frozen=True)
class Others:
    """The sum of the other clients' bits: two binomial counts."""

    bits: Bits
    first: _Binomial
    second: _Binomial

    @property
    def error(self) -> float:
        """Relative, of every probability above `_SEEN`."""
        return 2 * (self.first.error + self.second.error) + 2 * _BEYOND / _SEEN

    def at(self, place: int) -> float:
        """Pr[S = place]."""
        low, high = max(self.first.low, place - self.second.high), min(self.first.high, place - self.second.low)
        if low > high:
            return 0.0
        start = place - high - self.second.low
        return float((self.first.masses[low - self.first.low : high - self.first.low + 1] * self.second.masses[start : start + high - low + 1][::-1]).sum())

    def tail(self, place: int) -> float:
        """Pr[S >= place]."""
        from_second = np.clip(place - self.second.low - np.arange(self.first.low, self.first.high + 1), 0, len(self.second.masses))
        return float((self.first.masses * self.second.tails[from_second]).sum())  # a dot product of this length would start threads

    def deltas(self, epsilon: float) -> tuple[float, float]:
        """At least and at most the delta of one more client, whose bit is 1 with probability `high` against `low`, in this order."""
        growth, p, q = math.exp(epsilon), self.bits.high, self.bits.low
        rounding = 4 * _ULP * (1 + growth)
        gain, loss = p - growth * q, growth * (1 - q) - (1 - p)
        if gain <= rounding:
            return 0.0, 2 * rounding
        first, last, top = self._crossing(gain, loss)
        tests = [(self.at(place - 1), self.tail(place)) for place in range(first, last + 1)]
        least = max((gain - rounding) * here * (1 - self.error) - (growth - 1 + rounding) * beyond * (1 + self.error) for here, beyond in tests)
        most = max((gain + rounding) * here * (1 + self.error) - (growth - 1 - rounding) * beyond * (1 - self.error) for here, beyond in tests)
        unseen = (gain + rounding) * self.tail(top - 1) * (1 + self.error) if last == top <= self.first.count + self.second.count else 0.0
        return max(0.0, least - 2 * _BEYOND), min(1.0, max(0.0, most) + unseen + 2 * _BEYOND)

    def _crossing(self, gain: float, loss: float) -> tuple[int, int, int]:
        """The first and the last place at which a s_(k-1) - b s_k may turn positive, and the last that is looked at, where it may not have turned yet."""
        mean = round(self.bits.high * self.first.count + self.bits.low * self.second.count)
        top = _first(mean, self.first.high + self.second.high + 1, lambda place: self.at(place) < _SEEN)
        margin = 2 * self.error + 16 * _ULP
        last = _first(mean, top, lambda place: gain * self.at(place - 1) > loss * self.at(place) * (1 + margin))
        first = last
        while first > 0 and gain * self.at(first - 2) * (1 + margin) >= loss * self.at(first - 1) > 0.0:
            first -= 1
        return first, last, top

    def epsilon(self, delta: float) -> tuple[float, float]:
        """At least and at most the least epsilon (nats) beside this delta."""
        most = self.bits.epsilon
        least = bracket(lambda epsilon: self.deltas(epsilon)[0], delta, most)[0]
        return least, bracket(lambda epsilon: self.deltas(epsilon)[1], delta, most)[1]


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The least place in low..high from which on a monotone property holds; `high` if nowhere below."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


@dataclass(frozen=True)
class Worst:
    """The epsilon (nats) of the worst data set lies between `least` and `most`; `ones` of the other clients have the value of more ones there."""

    least: float
    most: float
    ones: int


def worst_directed(bits: Bits, clients: int, delta: float) -> Worst:
    """Over all data sets of the others, of a client whose value was that of more ones and might have been the other: more and more closely."""
    others = clients - 1
    ends = (Worst(*bits.others(ones, others - ones).epsilon(delta), ones) for ones in (0, others))
    found = max(ends, key=lambda end: end.least)
    for close in _CLOSE:
        found, bounds = _searched(bits, clients, delta, found, close)
        if bounds > _ENOUGH:
            break
    return Worst(found.least, found.most * (1 + close), found.ones)


def _searched(bits: Bits, clients: int, delta: float, found: Worst, close: float) -> tuple[Worst, int]:
    """The worst data set to within `close` of epsilon, if `found` is one of the worst so far, and how many bounds that took.

    Whoever leaves out the reports of some others weakens nothing: the delta of every data set with `low` to `high` ones is at most that of low ones and no
    others than those whose value is the same in all of them. A block whose bound is small enough is done with; another one is halved.
    """
    others, blocks, bounds = clients - 1, [(0, clients - 1)], 0
    while blocks:
        low, high = blocks.pop()
        bounds += 1
        if bits.others(low, others - high).deltas(found.most * (1 + close))[1] <= delta:
            continue
        if low == high:
            found = Worst(*bits.others(low, others - low).epsilon(delta), low)
            continue
        middle = (low + high) // 2
        blocks += [(low, middle), (middle + 1, high)]
    return found, bounds


def worst(bits: Bits, clients: int, delta: float) -> Worst:
    """In both directions: a client had the one value or the other."""
    there = worst_directed(bits, clients, delta)
    if bits.mirrored == bits:
        return there
    back = worst_directed(bits.mirrored, clients, delta)
    back = Worst(back.least, back.most, clients - 1 - back.ones)
    larger = max(there, back, key=lambda each: each.least)
    return Worst(larger.least, max(there.most, back.most), larger.ones)
