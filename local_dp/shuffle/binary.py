"""The exact loss of shuffled bits: the worst data set of the other clients, with a proof that it is
the worst.

A report is 1 with probability p = `high` or q = `low` at the two extreme values. The server sees
the number of ones. With s_k = Pr[the others send k ones]:

    delta = sum over k of [a s_(k-1) - b s_k]_+;
    delta = max over t of (a Pr[S = t - 1] - (e^eps - 1) Pr[S >= t]);
    a = p - e^eps q;  b = e^eps (1 - q) - (1 - p).

The terms change sign once because s is log-concave. Proofs: docs/shuffle.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from local_dp.accounting.laws import around_mode
from local_dp.arrays import Floats
from local_dp.optimise import least_whole
from local_dp.shuffle.pair import bracket

_ULP = 2.0**-52
_REACH = 7.0  # times sqrt(count): beyond it lies a probability below 2 e^-98 (Hoeffding)
_BEYOND = 1e-42
_SEEN = 1e-25  # where a probability is smaller it is only bounded
_CLOSE = (1e-4, 1e-5, 1e-6)  # of an epsilon: how near the upper end of a proof is to the lower
_ENOUGH = 3000  # bounds: a search that took more is not repeated more closely


@dataclass(frozen=True)
class _Binomial:
    """Pr[X = low + i] for `count` bits, each within a relative `error`, and Pr[X >= low + i];
    places outside have less than `_BEYOND` together."""

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
    low, falls, rises = around_mode(count, share, _REACH)
    odds = share / (1 - share)
    falling = np.cumprod(falls / odds)
    rising = np.cumprod(rises * odds)
    masses = np.concatenate([falling[::-1], [1.0], rising])
    masses /= masses.sum()
    return _Binomial(count, low, masses, np.append(np.cumsum(masses[::-1])[::-1], 0.0))


@dataclass(frozen=True)
class Bits:
    """A report is 1 with probability `high` at one extreme value and `low` < `high` at the other; 0
    < low, high < 1."""

    high: float
    low: float

    @property
    def mirrored(self) -> "Bits":
        """The zeros."""
        return Bits(1 - self.low, 1 - self.high)

    @property
    def epsilon(self) -> float:
        """ln(high / low): the loss of a single report, which no order of reports exceeds."""
        return math.log(self.high / self.low) * (1 + 4 * _ULP) + 4 * _ULP

    def others(self, ones: int, zeros: int) -> "Others":
        return Others(self, _binomial(ones, self.high), _binomial(zeros, self.low))


@dataclass(frozen=True)
class Others:
    """The sum of the other clients' bits: two binomial counts."""

    bits: Bits
    first: _Binomial
    second: _Binomial

    @property
    def error(self) -> float:
        """The relative error of every probability above `_SEEN`."""
        return 2 * (self.first.error + self.second.error) + 2 * _BEYOND / _SEEN

    def at(self, place: int) -> float:
        """Pr[S = place]. A search over epsilon asks for the same places again and again."""
        if place not in self._memo:
            self._memo[place] = self._at(place)
        return self._memo[place]

    @cached_property
    def _memo(self) -> dict[int, float]:
        return {}

    def _at(self, place: int) -> float:
        low = max(self.first.low, place - self.second.high)
        high = min(self.first.high, place - self.second.low)
        if low > high:
            return 0.0
        start = place - high - self.second.low
        first = self.first.masses[low - self.first.low : high - self.first.low + 1]
        second = self.second.masses[start : start + high - low + 1]
        return float((first * second[::-1]).sum())

    def tail(self, place: int) -> float:
        """Pr[S >= place]."""
        places = np.arange(self.first.low, self.first.high + 1)
        from_second = np.clip(place - self.second.low - places, 0, len(self.second.masses))
        # a dot product of this length would start threads
        return float((self.first.masses * self.second.tails[from_second]).sum())

    def deltas(self, epsilon: float) -> tuple[float, float]:
        """Bounds on the delta of one more client, whose bit is 1 with probability `high` against
        `low`, in this order."""
        growth = math.exp(epsilon)
        p = self.bits.high
        q = self.bits.low
        rounding = 4 * _ULP * (1 + growth)
        gain = p - growth * q
        loss = growth * (1 - q) - (1 - p)
        if gain <= rounding:
            return 0.0, 2 * rounding
        first, last, top = self._crossing(gain, loss)
        tests = [(self.at(place - 1), self.tail(place)) for place in range(first, last + 1)]
        above = 1 + self.error
        below = 1 - self.error
        least = max(
            (gain - rounding) * here * below - (growth - 1 + rounding) * beyond * above
            for here, beyond in tests
        )
        most = max(
            (gain + rounding) * here * above - (growth - 1 - rounding) * beyond * below
            for here, beyond in tests
        )
        most = max(0.0, most)
        if last == top <= self.first.count + self.second.count:
            most += (gain + rounding) * self.tail(top - 1) * above
        return max(0.0, least - 2 * _BEYOND), min(1.0, most + 2 * _BEYOND)

    def _crossing(self, gain: float, loss: float) -> tuple[int, int, int]:
        """The first and the last place where a s_(k-1) - b s_k may turn positive, and the last
        place examined."""
        mean = round(self.bits.high * self.first.count + self.bits.low * self.second.count)
        end = self.first.high + self.second.high
        top = least_whole(mean - 1, end + 1, lambda place: self.at(place) < _SEEN)
        margin = 2 * self.error + 16 * _ULP
        last = least_whole(
            mean - 1,
            top,
            lambda place: gain * self.at(place - 1) > loss * self.at(place) * (1 + margin),
        )
        first = last
        while (
            first > 0
            and gain * self.at(first - 2) * (1 + margin) >= loss * self.at(first - 1) > 0.0
        ):
            first -= 1
        return first, last, top

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Bounds on the least epsilon (nats) beside this delta."""
        most = self.bits.epsilon
        least = bracket(lambda epsilon: self.deltas(epsilon)[0], delta, most)
        upper = bracket(lambda epsilon: self.deltas(epsilon)[1], delta, most)
        return least[0], upper[1]


@dataclass(frozen=True)
class Worst:
    """The epsilon (nats) of the worst data set lies between `least` and `most`; there `ones` of the
    others have the value that sends more ones."""

    least: float
    most: float
    ones: int


def worst_directed(bits: Bits, clients: int, delta: float) -> Worst:
    """Over all data sets of the others, for a client with the value that sends more ones against
    the other value; ever more closely."""
    others = clients - 1
    ends = (Worst(*bits.others(ones, others - ones).epsilon(delta), ones) for ones in (0, others))
    worst = max(ends, key=lambda end: end.least)
    for close in _CLOSE:
        worst, bounds = _search(bits, clients, delta, worst, close)
        if bounds > _ENOUGH:
            break
    return Worst(worst.least, worst.most * (1 + close), worst.ones)


def _search(
    bits: Bits, clients: int, delta: float, worst: Worst, close: float
) -> tuple[Worst, int]:
    """The worst data set to within `close` of epsilon, if `worst` is one of the worst so far, and
    how many bounds that took.

    Leaving out reports of other clients weakens nothing: data sets with `low` to `high` ones have
    at most the delta of their common clients alone. A block whose bound is small enough is
    finished; another one is halved.
    """
    others = clients - 1
    blocks = [(0, clients - 1)]
    bounds = 0
    while blocks:
        low, high = blocks.pop()
        bounds += 1
        if bits.others(low, others - high).deltas(worst.most * (1 + close))[1] <= delta:
            continue
        if low == high:
            worst = Worst(*bits.others(low, others - low).epsilon(delta), low)
            continue
        middle = (low + high) // 2
        blocks += [(low, middle), (middle + 1, high)]
    return worst, bounds


def worst(bits: Bits, clients: int, delta: float) -> Worst:
    """The worst in both directions: the client had the one value or the other."""
    there = worst_directed(bits, clients, delta)
    if bits.mirrored == bits:
        return there
    back = worst_directed(bits.mirrored, clients, delta)
    back = Worst(back.least, back.most, clients - 1 - back.ones)
    larger = max(there, back, key=lambda each: each.least)
    return Worst(larger.least, max(there.most, back.most), larger.ones)
