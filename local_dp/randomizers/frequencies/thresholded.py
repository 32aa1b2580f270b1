"""Thresholded histogram encoding: Laplace noise on each of k counts of 0 or 1, of which only what exceeds a threshold is told."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.randomizers.finite import ceil_fraction
from local_dp.randomizers.frequencies.unary import UnaryEncoding

STEPS = 128  # of the thresholds between 0 and 1 that are tried


@dataclass(frozen=True, kw_only=True)
class THE(UnaryEncoding):
    """Reports at each symbol whether its count, 1 at the own one and 0 elsewhere, plus Laplace noise of scale 2 / eps exceeds a threshold t.

    A report is 1 with probability p = 1 - e^(-(1 - t) eps / 2) / 2 at the own symbol and q = e^(-t eps / 2) / 2 elsewhere; the noise itself is never drawn.
    t is the multiple of 1/128 with the least variance for a rare symbol. Privacy: the two noisy counts that change lose eps in all, of which the bits keep
    less: ln(p (1 - q) / (q (1 - p))), which a client enumerates, is below eps / 2 + ln 4. So optimised unary encoding, which spends all, is never worse:
    this one is here to be compared with. Utility: variance l (1 - l) / (n (p - q)^2), l = q + f (p - q) (`bounds.frequencies.thresholded_variance`).
    Cost: k bits.
    """

    name: ClassVar[str] = "the"
    source: ClassVar[str] = "Wang, Blocki, Li, Jha 2017"

    def _weights(self, bits: int) -> tuple[int, int]:
        nano = nano_epsilon(self.epsilon)
        other, missed = _tails(nano, best_threshold(nano))
        return ceil_fraction(2**bits * other), 2**bits - ceil_fraction(2**bits * missed)

    def _fits(self, bits: int) -> bool:
        return self.epsilon <= 16  # beyond, a 1 elsewhere is too rare for 32 bits


def _tails(nano: int, step: int) -> tuple[Fraction, Fraction]:
    """q and 1 - p at the threshold step / STEPS, each rounded up by a nano-nat or two."""

    def tail(part: int) -> Fraction:
        return 1 / (2 * exp_epsilon(max(1, nano * part // (2 * STEPS))))

    return tail(step), tail(STEPS - step)


@lru_cache(maxsize=1024)
def best_threshold(nano: int) -> int:
    """The step of least q (1 - q) / (p - q)^2: half of them at small epsilon, more and more at large."""

    def spread(step: int) -> Fraction:
        other, missed = _tails(nano, step)
        return other * (1 - other) / (1 - missed - other) ** 2

    return min(range(STEPS // 2, STEPS), key=spread)
