"""Distributions on which a threshold is hard to learn: few thresholds are good, and as many as possible are slightly bad."""

from dataclasses import dataclass

import numpy as np

from local_dp.checks import check_share
from local_dp.curator.multisets import LabelledMultiset, check_bits

_OVER = 1 + 1e-9
"""A threshold with this many times alpha is bad."""


@dataclass(frozen=True)
class HardThreshold:
    """The points `points`, ascending, with probability `shares`; a point from `target` on is labelled 1, and a share `flipped` of labels is flipped."""

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
        positive = counts > 0
        values = np.array([point for point, occurs in zip(self.points, positive, strict=True) if occurs], dtype=np.uint64 if self.bits <= 64 else object)
        return LabelledMultiset(self.bits, values, (counts - ones)[positive].astype(np.int64), ones[positive].astype(np.int64))

    def good(self, alpha: float) -> tuple[int, int]:
        """The thresholds low..high, whose error exceeds that of the target by at most alpha."""
        spare = alpha / (1 - 2 * self.flipped)
        low, high = self.target, self.target
        below = [place for place, point in enumerate(self.points) if point < self.target]
        for toward, side in ((-1, below[::-1]), (1, range(len(below), len(self.points)))):
            error, end = 0.0, (0 if toward < 0 else 1 << self.bits)
            for place in side:
                error += self.shares[place]
                if error > spare:
                    end = self.points[place] + (1 if toward < 0 else 0)
                    break
            low, high = (end, high) if toward < 0 else (low, end)
        return low, high


def hard_thresholds(bits: int, alpha: float, target: int, flipped: float = 0.0) -> dict[str, HardThreshold]:
    """The five worst known, by name; `target` is in 2..2^bits - 2, best odd and random: the middle of the smallest dyadic interval.

    needle: a little more than alpha on target - 1 and on target, so that only the target is good, the rest at both ends. needle with staircase: the rest at
    distances 1, 2, 4, ... to both sides. staircase: all of it. plateaus: as the needle, without points within 2^(bits / 2) or 2^(3 bits / 4) of the target.
    With flipped labels alpha is divided by 1 - 2 `flipped`, as is an excess error.
    """
    check_bits(bits)
    check_share("alpha", alpha)
    over = min(0.4999, alpha / (1 - 2 * flipped) * _OVER)
    rest, top = 1 - 2 * over, (1 << bits) - 1
    steps = [point for step in range(bits) for point in (target - (1 << step), target + (1 << step) - 1) if 0 <= point >> bits < 1]
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


def random_target(bits: int, generator: np.random.Generator) -> int:
    """A random odd threshold in the middle half, so that there is room on both sides."""
    words = generator.integers(0, 1 << 32, -(-bits // 32), dtype=np.uint64)
    drawn = sum(int(word) << 32 * place for place, word in enumerate(words)) % (1 << (bits - 1))
    return (drawn + (1 << (bits - 2))) | 1
