"""A law of the total loss on a mesh, and the prices that are read off it."""

import math
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats

_MARGIN = 1 + 1e-9  # more than the rounding of sums and exponentials
_REACH = 600.0  # exponents that a float holds


@dataclass(frozen=True)
class Curve:
    """The loss l is lowest + i step with probability weights[i] e^(scale - tilt l), and infinite with probability `infinite`; in nats.

    Tilting keeps weights that matter near 1, so that delta has a small relative error however small it is. Weights are rounded up by whoever makes them.
    """

    lowest: float
    step: float
    weights: Floats
    tilt: float = 0.0
    scale: float = 0.0
    infinite: float = 0.0

    def delta(self, epsilon: float) -> float:
        """The least delta beside this epsilon (nats), rounded up: Pr[infinite] + the sum of Pr[loss] (1 - e^(eps - loss)) over losses above it.

        Below the lowest loss, where more may have been left out, 1.
        """
        if epsilon < self.lowest:
            return 1.0
        start = max(0, math.floor((epsilon - self.lowest) / self.step) + 1)
        over = (self.lowest - epsilon) + np.arange(start, len(self.weights)) * self.step
        shares = self.weights[start:] * np.exp(-self.tilt * over) * -np.expm1(-np.maximum(over, 0.0))
        return min(1.0, self.infinite + float(shares.sum()) * math.exp(min(self.scale - self.tilt * epsilon, _REACH)) * _MARGIN)

    def epsilon(self, delta: float) -> float:
        """The least epsilon (nats) beside this delta, rounded up; infinite where no loss is as rare. Between two losses delta is linear in e^epsilon."""
        left = (delta - self.infinite) / _MARGIN
        if left <= 0:
            return math.inf
        at = self._near(left)
        over = (np.arange(len(self.weights)) - at) * self.step
        kept = over * (self.tilt + 1) > -_REACH  # far below the answer nothing is asked
        over, weights = over[kept], self.weights[kept]
        here = weights * np.exp(-self.tilt * over)
        sums, others = _above(here), _above(here * np.exp(-over))
        scale = math.exp(min(self.scale - self.tilt * (self.lowest + at * self.step), _REACH))
        found = np.maximum(sums - np.exp(np.minimum(over, _REACH)) * others, 0.0) * scale
        lowest = int(np.argmax(found <= left))  # the last one is 0
        loss = self.lowest + at * self.step + float(over[lowest])
        if lowest:
            part = (left - found[lowest]) / (found[lowest - 1] - found[lowest])
            loss += math.log1p(part * math.expm1(-self.step))
        return max(0.0, loss + 1e-12 * abs(loss) + 1e-15 * abs(self.lowest))

    def _near(self, delta: float) -> int:
        """The first place from which on there is no more probability than delta: exponentials are taken around it."""
        mode = int(np.argmax(self.weights))
        away = (np.arange(len(self.weights)) - mode) * self.step * self.tilt
        beyond = _above(self.weights * np.exp(np.minimum(-away, _REACH)))
        scale = math.exp(min(self.scale - self.tilt * (self.lowest + mode * self.step), _REACH))
        return min(int(np.searchsorted(-beyond * scale, -delta)), len(self.weights) - 1)


def _above(values: Floats) -> Floats:
    """The sum of what lies above each place."""
    return np.append(np.cumsum(values[:0:-1])[::-1], 0.0)
