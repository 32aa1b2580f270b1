"""Distributions on which a threshold is hard to learn: few thresholds are good, and as many as possible are hardly bad."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from local_dp.checks import check_share
from local_dp.curator.multisets import LabelledMultiset, check_bits

_OVER = 1 + 1e-9
"""How little more than alpha makes a threshold bad."""


@dataclass(frozen=True)
class HardThreshold:
    """The points `points`, ascending, with probability `shares`; a point from `target` on is labelled 1, and a share `flipped` of labels is turned round."""

    bits: int
    target: int
    points: tuple[int, ...]
    shares: tuple[float, ...]
    flipped: float = 0.0

    def sample(self, n: int, generator: np.random.Generator) -> LabelledMultiset:
        """n labelled points."""
        counts = generator.multinomial(n, np.array(self.shares) / sum(self.shares))
        turned = generator.binomial(counts, self.flipped)
        truth = np.array([point >= self.target for point in self.points])
        ones = np.where(truth, counts - turned, turned)
        kept = counts > 0
        values = np.array([point for point, held in zip(self.points, kept, strict=True) if held], dtype=np.uint64 if self.bits <= 64 else object)
        return LabelledMultiset(self.bits, values, (counts - ones)[kept].astype(np.int64), ones[kept].astype(np.int64))

    def good(self, alpha: float) -> tuple[int, int]:
        """The thresholds low..high, which err by at most alpha more than the target does."""
        spare = alpha / (1 - 2 * self.flipped)
        low, high = self.target, self.target
        below = [place for place, point in enumerate(self.points) if point < self.target]
        for toward, side in ((-1, below[::-1]), (1, range(len(below), len(self.points)))):
            missed, reached = 0.0, (0 if toward < 0 else 1 << self.bits)
            for place in side:
                missed += self.shares[place]
                if missed > spare:
                    reached = self.points[place] + (1 if toward < 0 else 0)
                    break
            low, high = (reached, high) if toward < 0 else (low, reached)
        return low, high


def hard_thresholds(bits: int, alpha: float, target: int, flipped: float = 0.0) -> dict[str, HardThreshold]:
    """The five worst known, by name; `target` is in 2..2^bits - 2, best odd and random: the middle of the smallest dyadic interval.

    needle: a little more than alpha on target - 1 and on target, so that only the target is good, the rest at both ends. needle with staircase: the rest at
    distances 1, 2, 4, ... to both sides. staircase: all of it. plateaus: as the needle, with nobody within 2^(bits / 2) or 2^(3 bits / 4) around the target.
    With flipped labels alpha is divided by 1 - 2 `flipped`, as is an error in excess.
    """
    check_bits(bits)
    check_share("alpha", alpha)
    over = min(0.4999, alpha / (1 - 2 * flipped) * _OVER)
    rest, top = 1 - 2 * over, (1 << bits) - 1
    steps = _staircase(bits, target)
    stairs = [(point, 1 / len(steps)) for point in steps]

    def law(*parts: tuple[int, float]) -> HardThreshold:
        shares: dict[int, float] = {}
        for point, share in parts:
            shares[point] = shares.get(point, 0.0) + share
        points = sorted(shares)
        return HardThreshold(bits, target, tuple(points), tuple(shares[point] for point in points), flipped)

    def plateau(log_width: int) -> HardThreshold:
        half = min(1 << max(log_width - 1, 0), target, top + 1 - target)
        return law((target - half, over), (target + half - 1, over), (0, rest / 2), (top, rest / 2))

    return {
        "needle": plateau(0),
        "needle with staircase": law((target - 1, over), (target, over), *((point, rest * share) for point, share in stairs)),
        "staircase": law(*stairs),
        "narrow plateau": plateau(bits // 2),
        "wide plateau": plateau(3 * bits // 4),
    }


def _staircase(bits: int, target: int) -> list[int]:
    """The points at distance 1, 2, 4, ... from the threshold, to both sides."""
    return [point for step in range(bits) for point in (target - (1 << step), target + (1 << step) - 1) if 0 <= point >> bits < 1]


def random_target(bits: int, generator: np.random.Generator) -> int:
    """A random odd threshold in the middle half, so that there is room on both sides."""
    words = generator.integers(0, 1 << 32, -(-bits // 32), dtype=np.uint64)
    drawn = sum(int(word) << 32 * place for place, word in enumerate(words)) % (1 << (bits - 1))
    return (drawn + (1 << (bits - 2))) | 1


def mean_chance(
    chance: Callable[[LabelledMultiset, int, int], float], laws: Sequence[HardThreshold], n: int, alpha: float, generator: np.random.Generator
) -> tuple[float, float]:
    """The mean over one sample of n from each law of the chance of a good threshold, and its standard error."""
    found = [chance(law.sample(n, generator), *law.good(alpha)) for law in laws]
    return float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(len(found)))
