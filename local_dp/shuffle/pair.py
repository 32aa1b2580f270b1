"""The two laws of one client's shuffled report, beside the reports of the others.

The client reports w with probability first[w] or second[w]. Each of n - 1 others reports w with
probability others[w]; the rest to 1 does not matter. With G(w) = (first[w] - e^eps second[w]) /
others[w], W_1 .. W_n of the others' law, and G = 0 for the rest,

    delta = E[(G(W_1) + ... + G(W_n))_+] / n + the sum of (first[w] - e^eps second[w])_+ over
    reports w that nobody else sends.

Source: Balle, Bell, Gascon, Nissim 2019, Section 5, for their blanket. Proof: docs/shuffle.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from local_dp.accounting.laws import OnMesh, Window, transformed
from local_dp.arrays import Counts, Floats, Ints
from local_dp.optimise import crossing

_CLOSEST = 1e-9  # of an epsilon
_LEAST = 1e-4  # nats: below, closeness is absolute
_PARTS = 64  # of the interval: the first that is tried
# of an epsilon, and nats: more than the rounding of exponentials and of probabilities that are
# fractions
_ROUNDING = 1e-12


def bracket(
    delta_of: Callable[[float], float], delta: float, most: float, close: float = _CLOSEST
) -> tuple[float, float]:
    """Two epsilons (nats) close together: beside the first `delta_of` is above `delta` or it is 0;
    beside the second it is not, or that is `most`."""
    low = 0.0
    at_low = _over(1.0, delta)
    high = most / _PARTS
    while (at_high := _over(delta_of(high), delta)) > 0 and high < most:
        low = high
        at_low = at_high
        high = min(most, 4 * high)
    if at_high > 0:
        low = high
    elif not low and _over(delta_of(close * _LEAST), delta) <= 0:
        high = close * _LEAST
    turns = 0
    while high - low > close * max(high, _LEAST) and at_high <= 0:
        turns += 1
        step = close * max(high, _LEAST) / 3
        secant = low + (high - low) * (at_low / (at_low - at_high) if turns % 3 else 0.5)
        side = math.copysign(step, low + high - 2 * secant)
        middle = min(max(secant + side, low + step), high - step)
        at_middle = _over(delta_of(middle), delta)
        low, at_low, high, at_high = (
            (middle, at_middle, high, at_high)
            if at_middle > 0
            else (low, at_low, middle, at_middle)
        )
    least = max(0.0, low * (1 - _ROUNDING) - _ROUNDING)
    largest = min(most, high * (1 + _ROUNDING) + _ROUNDING)
    return least, largest


def _over(value: float, delta: float) -> float:
    """Positive if the value is above delta; nearly linear in epsilon, since delta falls as e^-(c
    eps^2)."""
    if value <= delta:
        return math.sqrt(-math.log(delta)) - math.sqrt(-math.log(max(value, 1e-300)))
    limit = math.sqrt(-math.log(delta))
    return max(1e-12, limit - math.sqrt(-math.log(min(value, 1.0))))


_APART = (
    7.75  # over the deviation: how far the exponents of Chernoff's inequality are from the tilt
)
_OUTSIDE = 1e-12  # more than what lies outside of a window, of the tilted law
_TURNS = 40


@dataclass(frozen=True)
class Tilted:
    """The law of a sum of whole numbers near a rare place: Pr[S = low + i] is weights[i] e^(scale -
    tilt (low + i)), a weight too large by `error` at most."""

    low: int
    weights: Floats
    tilt: float
    scale: float
    error: float

    @classmethod
    def near(cls, parts: Sequence[OnMesh], place: int) -> Self:
        """Tilted so that its mean is `place`, or not at all where the mean is larger anyway."""
        tilt, high = 0.0, 1e-9
        while _moments(parts, high)[0] < place and high < 700:
            high *= 2
        if _moments(parts, 0.0)[0] < place:
            tilt = high / 2 if high > 1e-9 else 0.0
            tilt, _ = crossing(tilt, high, lambda each: _moments(parts, each)[0] < place, _TURNS)
        apart = _APART / max(_moments(parts, tilt)[1], 1e-3)
        tilts = [tilt + apart * times for times in (-2, -1, -0.5, 0.5, 1, 2)]
        window = Window.of(parts, tilt, tilts)
        weights, error = transformed(parts, tilt, window)
        return cls(window.low, weights, tilt, window.scale, error)

    def mean_above(self, place: int) -> float:
        """An upper bound on E[(S - place)_+]."""
        over = self.low - place + np.arange(len(self.weights))
        above = over > 0
        shares = over[above] * np.exp(-self.tilt * over[above])
        outside = _OUTSIDE / (math.e * self.tilt) if self.tilt else math.inf
        return float(self.weights[above] @ shares + outside) * self.unit(place)

    def tails(self, place: int, places: Ints) -> tuple[Floats, Floats]:
        """Bounds on Pr[S > each of `places`], in units of e^(scale - tilt place)."""
        over = self.low - place + np.arange(len(self.weights))
        shares = np.exp(-np.clip(self.tilt * over, -600.0, 600.0))
        starts = np.clip(places - self.low + 1, 0, len(self.weights))
        outside = _OUTSIDE * np.exp(-np.clip(self.tilt * (places - place), -600.0, 600.0))
        most = _above(self.weights * shares)[starts]
        error = 2 * self.error * _above(shares)[starts]
        return np.maximum(most - error - outside, 0.0), most + outside

    def unit(self, place: int) -> float:
        return math.exp(self.scale - self.tilt * place)


def _moments(parts: Sequence[OnMesh], tilt: float) -> tuple[float, float]:
    """The mean and the standard deviation of the tilted sum."""
    mean = variance = 0.0
    for part in parts:
        _, masses = part.tilted(tilt)
        here = float(masses @ part.places)
        mean = mean + part.count * here
        variance = variance + part.count * float(masses @ (part.places - here) ** 2)
    return mean, math.sqrt(variance)


def _above(values: Floats) -> Floats:
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


_MOST = 1 << 19  # points of a window
_FINE = 64  # points to a standard deviation of one G
_REACH = 26.0  # standard deviations that a window is wide
_MARGIN = 1e-9  # of a delta: more than the rounding of n products of probabilities
_CLOSE = 1e-5  # of an epsilon


@dataclass(frozen=True)
class Pair:
    """Three laws on one alphabet, shape (reports,) each; that of the others may miss
    probability."""

    first: Floats
    second: Floats
    others: Floats

    @property
    def reversed(self) -> "Pair":
        return Pair(self.second, self.first, self.others)

    @property
    def _columns(self) -> tuple[Floats, Floats]:
        """The laws with sorted reports, in either order of the two."""
        there = _sort_columns(self.first, self.second, self.others)
        return there, _sort_columns(self.second, self.first, self.others)

    @property
    def kind(self) -> bytes:
        """Equal for pairs that differ in the names of reports, or in the order of the two laws."""
        return min(each.tobytes() for each in self._columns)

    @property
    def symmetric(self) -> bool:
        """True if renaming the reports can swap the two laws and keep that of the others."""
        there, back = self._columns
        return bool((there == back).all())

    @property
    def apart(self) -> float:
        """The chi-square of one report: how different the two laws are beside the reports of the
        others."""
        support = self.others > 0
        return float(((self.first - self.second)[support] ** 2 / self.others[support]).sum())

    def over(self, epsilon: float) -> Floats:
        """first - e^eps second."""
        return self.first - math.exp(epsilon) * self.second

    def epsilon_at_most(self, clients: int, delta: float, most: float) -> float:
        """An upper bound on the least epsilon (nats) beside `delta`, in both directions; `most` is
        enough beside any."""
        return max(
            bracket(partial(delta_at_most, way, clients), delta, most, _CLOSE)[1]
            for way in self._ways
        )

    def epsilon_at_least(
        self, groups: Sequence[tuple[Floats, int]], delta: float, most: float
    ) -> float:
        """A lower bound where the others are groups of clients, each with its law; `others` is
        their average."""
        return max(
            bracket(partial(delta_at_least, way, groups), delta, most, _CLOSE)[0]
            for way in self._ways
        )

    @property
    def _ways(self) -> list["Pair"]:
        return [self] if self.symmetric else [self, self.reversed]


def delta_at_most(pair: Pair, clients: int, epsilon: float) -> float:
    """An upper bound on delta: each G is split between two points of a mesh so that its mean stays,
    and x_+ is convex."""
    over = pair.over(epsilon)
    support = pair.others > 0
    alone = float(np.maximum(over[~support], 0.0).sum())
    masses = pair.others[support]
    gains = over[support] / masses
    if gains.max(initial=0.0) <= 0:
        return alone
    mesh = _mesh(gains, masses, clients)
    places = np.floor(gains / mesh).astype(np.int64)
    upper = masses * (gains / mesh - places)
    rest = max(0.0, 1 - math.fsum(masses))
    part = _on_mesh(
        np.concatenate([places, places + 1, [0]]),
        np.concatenate([masses - upper, upper, [rest]]),
        clients,
    )
    return alone + Tilted.near([part], 0).mean_above(0) * mesh / clients * (1 + _MARGIN)


def delta_at_least(pair: Pair, groups: Sequence[tuple[Floats, int]], epsilon: float) -> float:
    """A lower bound on delta: the difference of the two probabilities, the second times e^eps, of a
    large sum of rounded G."""
    over = pair.over(epsilon)
    clients = 1 + sum(count for _, count in groups)
    gains = over / pair.others
    mesh = _mesh(gains, pair.others, clients)
    places = np.rint(gains / mesh).astype(np.int64)
    middle = round(clients * float(pair.others @ (places - gains / mesh)))
    law = Tilted.near([_on_mesh(places, masses, count) for masses, count in groups], middle)
    reach = math.ceil(2 / law.tilt) + 2 if law.tilt > 1e-6 else 2
    limits = middle + np.arange(-reach, reach + 1, max(1, reach // 50))
    deltas = np.zeros(len(limits))
    for place in np.unique(places):
        weight = float(over[places == place].sum())
        least, most = law.tails(middle, limits - place)
        deltas += weight * (least if weight > 0 else most) - _MARGIN * abs(weight) * most
    return max(0.0, float(deltas.max())) * law.unit(middle)


def _sort_columns(*rows: Floats) -> Floats:
    """The columns in lexicographic order."""
    matrix = np.stack(rows)
    return matrix[:, np.lexsort(matrix)]


def _mesh(gains: Floats, masses: Floats, clients: int) -> float:
    """Fine enough that splitting adds little variance, and coarse enough for a short window."""
    mean = float(masses @ gains)
    neutral = max(0.0, 1 - math.fsum(masses))
    deviation = math.sqrt(float(masses @ (gains - mean) ** 2) + neutral * mean**2)
    return deviation * max(1 / _FINE, _REACH * math.sqrt(clients) / _MOST)


def _on_mesh(places: Counts, masses: Floats, count: int) -> OnMesh:
    low = int(places.min())
    sums: Floats = np.bincount(places - low, masses).astype(np.float64, copy=False)
    support = np.flatnonzero(sums)
    return OnMesh(support + low, sums[support], count)
