"""What shuffled reports tell of one client: its two laws, and what the others send.

Let a client report w with probability first[w] or second[w], and each of n - 1 others with probability others[w], or something that does not matter with what
is missing to 1. With G(w) = (first[w] - e^eps second[w]) / others[w], W_1 .. W_n of the others' law, and G = 0 for what does not matter,

    delta = E[(G(W_1) + ... + G(W_n))_+] / n + the sum of (first[w] - e^eps second[w])_+ over reports w that nobody else sends.

Source: Balle, Bell, Gascon, Nissim 2019, Section 5, for their blanket. Proof: docs/shuffle.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from local_dp.accounting.convolution import OnMesh
from local_dp.arrays import Counts, Floats
from local_dp.shuffle.roots import bracket
from local_dp.shuffle.tilted import Tilted

_MOST = 1 << 19  # points of a window
_FINE = 64  # points to a standard deviation of one G
_REACH = 26.0  # standard deviations that a window is wide
_MARGIN = 1e-9  # of a delta: more than the rounding of n products of probabilities
_CLOSE = 1e-5  # of an epsilon


@dataclass(frozen=True)
class Pair:
    """Three laws on one alphabet, shape (reports,) each; that of the others may miss probability."""

    first: Floats
    second: Floats
    others: Floats

    @property
    def reversed(self) -> "Pair":
        """The client had the second law and might have had the first."""
        return Pair(self.second, self.first, self.others)

    @property
    def kind(self) -> bytes:
        """The same for pairs that differ in the names of their reports, or in which of the two laws is the first."""
        return min(_sorted(self.first, self.second, self.others).tobytes(), _sorted(self.second, self.first, self.others).tobytes())

    @property
    def symmetric(self) -> bool:
        """Whether the reports can be renamed so that the two laws change places and the others' stays."""
        return bool((_sorted(self.first, self.second, self.others) == _sorted(self.second, self.first, self.others)).all())

    @property
    def apart(self) -> float:
        """The chi-square of one report: how far the two laws are from one another beside what the others send."""
        sent = self.others > 0
        return float(((self.first - self.second)[sent] ** 2 / self.others[sent]).sum())

    def over(self, epsilon: float) -> Floats:
        """first - e^eps second."""
        return self.first - math.exp(epsilon) * self.second

    def epsilon_at_most(self, clients: int, delta: float, most: float) -> float:
        """No less than the least epsilon (nats) beside `delta`, in both directions; `most` is one that is enough beside any."""
        return max(bracket(partial(delta_at_most, way, clients), delta, most, _CLOSE)[1] for way in self._ways)

    def epsilon_at_least(self, groups: Sequence[tuple[Floats, int]], delta: float, most: float) -> float:
        """No more than the least epsilon beside `delta` when the others are groups of clients, each with its law; `others` is their average."""
        return max(bracket(partial(delta_at_least, way, groups), delta, most, _CLOSE)[0] for way in self._ways)

    @property
    def _ways(self) -> list["Pair"]:
        return [self] if self.symmetric else [self, self.reversed]


def delta_at_most(pair: Pair, clients: int, epsilon: float) -> float:
    """No less than delta: each G is split between two points of a mesh so that its mean is kept, and x_+ is convex."""
    over, sent = pair.over(epsilon), pair.others > 0
    told, masses = float(np.maximum(over[~sent], 0.0).sum()), pair.others[sent]
    gains = over[sent] / masses
    if gains.max(initial=0.0) <= 0:
        return told
    mesh = _mesh(gains, masses, clients)
    places = np.floor(gains / mesh).astype(np.int64)
    upper = masses * (gains / mesh - places)
    part = _on_mesh(np.concatenate([places, places + 1, [0]]), np.concatenate([masses - upper, upper, [max(0.0, 1 - math.fsum(masses))]]), clients)
    return told + Tilted.near([part], 0).mean_above(0) * mesh / clients * (1 + _MARGIN)


def delta_at_least(pair: Pair, groups: Sequence[tuple[Floats, int]], epsilon: float) -> float:
    """No more than delta: how much more probable, less e^eps times, a set of outcomes is in the one case; the set is that of a large sum of rounded G."""
    over, clients = pair.over(epsilon), 1 + sum(count for _, count in groups)
    gains = over / pair.others
    mesh = _mesh(gains, pair.others, clients)
    places = np.rint(gains / mesh).astype(np.int64)
    middle = round(clients * float(pair.others @ (places - gains / mesh)))
    law = Tilted.near([_on_mesh(places, masses, count) for masses, count in groups], middle)
    reach = math.ceil(2 / law.tilt) + 2 if law.tilt > 1e-6 else 2
    limits = middle + np.arange(-reach, reach + 1, max(1, reach // 50))
    found = np.zeros(len(limits))
    for place in np.unique(places):
        weight = float(over[places == place].sum())
        least, most = law.tails(middle, limits - place)
        found += weight * (least if weight > 0 else most) - _MARGIN * abs(weight) * most
    return max(0.0, float(found.max())) * law.unit(middle)


def _sorted(*rows: Floats) -> Floats:
    """The columns of these rows in lexicographic order."""
    stacked = np.stack(rows)
    found: Floats = stacked[:, np.lexsort(stacked)]
    return found


def _mesh(gains: Floats, masses: Floats, clients: int) -> float:
    """So fine that splitting adds little variance, and so coarse that a window is not too long."""
    mean = float(masses @ gains)
    neutral = max(0.0, 1 - math.fsum(masses))
    deviation = math.sqrt(float(masses @ (gains - mean) ** 2) + neutral * mean**2)
    return deviation * max(1 / _FINE, _REACH * math.sqrt(clients) / _MOST)


def _on_mesh(places: Counts, masses: Floats, count: int) -> OnMesh:
    low = int(places.min())
    held: Floats = np.bincount(places - low, masses).astype(np.float64, copy=False)
    used = np.flatnonzero(held)
    return OnMesh(used + low, held[used], count)
