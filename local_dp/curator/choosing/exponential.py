"""The exponential mechanism (McSherry, Talwar 2007; KLNRS Definition 3.5 and Theorem 3.6): sampled in whole numbers, analysed in the log domain."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.curator.base import Law, Mechanism
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, nano_epsilon

D = TypeVar("D")

_RATIO_BITS = 40
_GUARD_BITS = 128
_FORGOTTEN = 45.0  # nats: candidates less than e^-45 / |H| times as likely as the best are not told apart


def log_probabilities(scores: Ints | Floats, epsilon: float, sensitivity: float = 1.0) -> Floats:
    """ln Pr[h] with Pr[h] proportional to e^(eps score(h) / (2 sensitivity)): log-sum-exp, finite for every finite score. For analysis; never sampled from."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or not len(scores) or not np.all(np.isfinite(scores)):
        raise InputError("the scores are not one finite number for each of at least one candidate")
    with np.errstate(over="ignore"):
        exponents = (scores - scores.max()) * (epsilon / (2 * sensitivity))
    exponents = np.maximum(exponents, -np.finfo(np.float64).max)
    shifted: Floats = exponents - math.log(float(np.exp(exponents).sum()))
    return shifted


@dataclass(frozen=True)
class ExponentialMechanism(Mechanism[D, int, Pure]):
    """Chooses candidate h with probability proportional to a^(best - score(h)), a = e^(-eps / (2 sensitivity)), for whole scores.

    `score` gives a whole number for each of the candidates, shape (|H|,), higher is better; no neighbour moves one by more than `sensitivity`.
    Privacy: epsilon. No float touches the choice: a is a multiple of 2^-40, the weights are whole numbers within 2^-96 of its powers, and a is rounded up by
    more than that costs, so the realised law (`law`) keeps to epsilon exactly. Scores more than `reach` below the best count as `reach` below it: score and
    best change by at most the sensitivity, so does the larger of score and best - reach, and privacy is as before.
    Utility: the clamped ones have total probability below e^-45. Cost: O(|H| + reach), reach about (ln |H| + 45) 2 sensitivity / eps.
    Source: KLNRS 2008, Definition 3.5 and Theorem 3.6.
    """

    score: Callable[[D], Ints]
    epsilon: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)
        if type(self.sensitivity) is not int or self.sensitivity < 1:
            raise InputError(f"the sensitivity is {self.sensitivity!r}; give a positive whole number")

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    @cached_property
    def decay(self) -> Fraction:
        """a: how much less likely one point of score less makes a candidate."""
        return _decay(self.epsilon, self.sensitivity)

    def reach(self, candidates: int) -> int:
        """How far below the best a score may lie before it counts no lower."""
        return math.ceil((math.log(candidates) + _FORGOTTEN) / -math.log1p(float(self.decay - 1)))

    def release(self, database: D, draws: Draws) -> int:
        """The number of the chosen candidate. Raises InputError where the scores are not whole numbers, one for each of at least one candidate."""
        gaps = self._gaps(database)
        counts = np.bincount(gaps).tolist()
        shares = [count * weight for count, weight in zip(counts, self._weights(len(gaps)), strict=False)]
        drawn = draws.below(sum(shares))
        for gap, share in enumerate(shares):
            if drawn < share:
                tied = np.flatnonzero(gaps == gap)
                return int(tied[draws.below(len(tied))])
            drawn -= share
        raise AssertionError("a draw below the sum of the shares falls into one of them")

    def law(self, database: D) -> Law[int]:
        gaps = self._gaps(database)
        table = self._weights(len(gaps))
        return {candidate: table[gap] for candidate, gap in enumerate(gaps.tolist())}

    def _weights(self, candidates: int) -> tuple[int, ...]:
        return _powers(self.decay, self.reach(candidates))

    def _gaps(self, database: D) -> Ints:
        """How far each score lies below the best, at most `reach`."""
        scores = self.score(database)
        if scores.ndim != 1 or not len(scores) or scores.dtype.kind != "i":
            raise InputError(f"the scores have shape {scores.shape} and type {scores.dtype}; give a signed whole number for each of at least one candidate")
        best = int(scores.max())
        floor = max(best - self.reach(len(scores)), int(np.iinfo(np.int64).min))
        gaps: Ints = np.int64(best) - np.maximum(scores.astype(np.int64, copy=False), np.int64(floor))
        return gaps


@lru_cache(maxsize=64)
def _decay(epsilon: float, sensitivity: int) -> Fraction:
    """e^(-eps / (2 sensitivity)), rounded up to a multiple of 2^-40. Raises InputError where that leaves no difference."""
    with localcontext() as context:
        context.prec = 60
        exact = (-Decimal(nano_epsilon(epsilon)) / NANO / (2 * sensitivity)).exp()
    numerator = math.floor(exact * (1 << _RATIO_BITS)) + 2  # one for rounding up, one that pays for the rounded weights
    if numerator >= 1 << _RATIO_BITS:
        raise InputError(f"epsilon {epsilon} over sensitivity {sensitivity} is too small to weigh; give a larger epsilon or a smaller sensitivity")
    return Fraction(numerator, 1 << _RATIO_BITS)


@lru_cache(maxsize=8)
def _powers(decay: Fraction, reach: int) -> tuple[int, ...]:
    """decay^0 .. decay^reach as whole numbers, rounded down, the last still of more than 128 bits."""
    numerator, shift = decay.numerator, (decay.denominator - 1).bit_length()
    weight = 1 << (_GUARD_BITS + math.ceil(-reach * math.log2(decay)) + 1)
    powers = [weight]
    for _ in range(reach):
        weight = (weight * numerator) >> shift
        powers.append(weight)
    return tuple(powers)
