"""The law of a sum of independent whole numbers near a place that it seldom reaches, to a small relative error."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from local_dp.accounting.convolution import OnMesh, Window, transformed
from local_dp.arrays import Floats, Ints

_APART = 7.75  # over the deviation: how far the exponents of Chernoff's inequality are from the tilt
_OUTSIDE = 1e-12  # more than what lies outside of a window, of the tilted law
_TURNS = 40


@dataclass(frozen=True)
class Tilted:
    """Pr[S = low + i] is weights[i] e^(scale - tilt (low + i)); a weight may be too large by `lost`, never too small."""

    low: int
    weights: Floats
    tilt: float
    scale: float
    lost: float

    @classmethod
    def near(cls, parts: Sequence[OnMesh], place: int) -> Self:
        """So tilted, upwards, that its mean is `place`, or not at all where it is larger anyway."""
        tilt, high = 0.0, 1e-9
        while _moments(parts, high)[0] < place and high < 700:
            high *= 2
        if _moments(parts, 0.0)[0] < place:
            tilt = high / 2 if high > 1e-9 else 0.0
            for _ in range(_TURNS):
                middle = (tilt + high) / 2
                tilt, high = (middle, high) if _moments(parts, middle)[0] < place else (tilt, middle)
        apart = _APART / max(_moments(parts, tilt)[1], 1e-3)
        window = Window.of(parts, tilt, [tilt + apart * times for times in (-2, -1, -0.5, 0.5, 1, 2)])
        weights, lost = transformed(parts, tilt, window)
        return cls(window.low, weights, tilt, window.scale, lost)

    def mean_above(self, place: int) -> float:
        """No less than E[(S - place)_+]."""
        over = self.low - place + np.arange(len(self.weights))
        kept = over > 0
        shares = over[kept] * np.exp(-self.tilt * over[kept])
        unseen = _OUTSIDE / (math.e * self.tilt) if self.tilt else math.inf
        return float(self.weights[kept] @ shares + unseen) * self.unit(place)

    def tails(self, place: int, places: Ints) -> tuple[Floats, Floats]:
        """Pr[S > each of `places`], at least and at most, in units of e^(scale - tilt place)."""
        over = self.low - place + np.arange(len(self.weights))
        shares = np.exp(-np.clip(self.tilt * over, -600.0, 600.0))
        starts = np.clip(places - self.low + 1, 0, len(self.weights))
        outside = _OUTSIDE * np.exp(-np.clip(self.tilt * (places - place), -600.0, 600.0))
        most, lost = _above(self.weights * shares)[starts], 2 * self.lost * _above(shares)[starts]
        return np.maximum(most - lost - outside, 0.0), most + outside

    def unit(self, place: int) -> float:
        """e^(scale - tilt place)."""
        return math.exp(self.scale - self.tilt * place)


def _moments(parts: Sequence[OnMesh], tilt: float) -> tuple[float, float]:
    """The mean and the standard deviation of the tilted sum."""
    mean = variance = 0.0
    for part in parts:
        _, masses = part.tilted(tilt)
        here = float(masses @ part.places)
        mean, variance = mean + part.count * here, variance + part.count * float(masses @ (part.places - here) ** 2)
    return mean, math.sqrt(variance)


def _above(values: Floats) -> Floats:
    """The sum from each place on."""
    sums: Floats = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    return sums
