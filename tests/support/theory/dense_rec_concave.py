"""RecConcave on a list of scores, in floats, as the text describes it: no runs, no shortcuts. The twin that the lazy one is compared with, and searched by."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from local_dp.arrays import Floats


@dataclass(frozen=True)
class DenseRecConcave:
    """`accepted` gives the probability that a stable choice answers, by its gap."""

    low: float
    high: float
    inner: float
    final: float
    accepted: Callable[[int], float]

    def law(self, scores: Sequence[int], levels: int = 2) -> Floats:
        """The probability of each candidate 0..T, T = len(scores) - 1."""
        if levels == 1:
            return softmax(np.array(scores), self.inner)
        last = len(scores) - 1
        steps = math.ceil(math.log2(max(last, 1)))
        wide = [*scores, *[min(0, scores[-1])] * ((1 << steps) - last)]
        heights = [max(min(wide[at : at + (1 << j)]) for at in range(len(wide) - (1 << j) + 1)) for j in range(steps + 1)]
        heights.append(min(0, heights[-1]))
        lengths = [min(heights[j] - self.low, self.high - heights[j + 1]) for j in range(steps + 1)]
        high = max(1, (self.high - self.low) // 2)
        inner = DenseRecConcave(min(math.ceil(0.75 * high), high - 1), high, self.inner, self.final, self.accepted).law([int(q) for q in lengths], levels - 1)
        found = np.zeros(last + 1)
        for j, share in enumerate(inner.tolist()):
            for told, kept in self._kept(wide, 1 << j):
                found += share * told * self._last(scores, {candidate for candidate in kept if candidate <= last})
        return found

    def _kept(self, wide: list[int], length: int) -> list[tuple[float, set[int]]]:
        """The candidates that both stable choices leave, with probabilities."""
        ways = []
        for offset in (0, 4 * length):
            if offset >= len(wide):
                ways.append([(1.0, set[int]())])
                continue
            intervals = [range(start, min(start + 8 * length, len(wide))) for start in range(offset, len(wide), 8 * length)]
            best = [max(wide[at] for at in interval) for interval in intervals]
            chosen = best.index(max(best))
            others = best[:chosen] + best[chosen + 1 :]
            told = self.accepted(best[chosen] - max(others)) if others else 1.0
            ways.append([(told, set(intervals[chosen])), (1 - told, set())])
        return [(one * other, first | second) for (one, first), (other, second) in product(*ways)]

    def _last(self, scores: Sequence[int], kept: set[int]) -> Floats:
        law = np.zeros(len(scores))
        if kept:
            places = sorted(kept)
            law[places] = softmax(np.array([scores[place] for place in places]), self.final)
        else:
            law[(len(scores) - 1) // 2] = 1
        return law


def softmax(scores: Floats, epsilon: float) -> Floats:
    weights = np.exp(epsilon / 2 * (scores - scores.max()))
    law: Floats = weights / weights.sum()
    return law
