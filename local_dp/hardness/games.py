"""The SQ-parity game on which KLNRS Corollary 4.6 rests (Blum et al. 1994): an adversary that tells nothing of a hidden parity while that is legal.

A query g has the expectation base + h^(r) under the parity r, base that under random labels and h(x) = (g(x, +1) - g(x, -1)) / 2. `base` is a legal
answer unless |h^(r)| > tau, and by Parseval that holds for fewer than 1 / tau^2 parities r. All others get the same answers, whatever is asked next:
`bounds.parity.parity_sq_success`. Asked for a correlation with y, base is 0.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from local_dp.arrays import Bools, Counts
from local_dp.cube import walsh_hadamard
from local_dp.errors import InputError
from local_dp.hardness.adversary import allowed_gap, survivors_certificate
from local_dp.interaction import Adaptive, Nonadaptive, Play
from local_dp.oracles.statistical.oracles import SQOracle, StatisticalQuery
from local_dp.populations.concepts import label, parities
from local_dp.queries.examples import ParityCoset

NAMED = 512  # survivors in a certificate
ALPHA = 0.25  # two parities differ on half of all points, so an error below 1/4 names the parity


@dataclass(frozen=True)
class Told:
    """One query's expectation under every parity: E_r = (base + half[r]) / scale, in whole numbers; `half` has shape (2^d,)."""

    base: int
    half: Counts
    scale: int
    margin: int  # scale times the tolerance, rounded down exactly

    @property
    def revealed(self) -> Bools:
        """The parities for which `base` is no legal answer."""
        return np.abs(self.half) > self.margin

    def answers(self) -> Counts:
        """scale times the adversary's answer for every target: the legal value nearest to `base`."""
        answers: Counts = self.base + np.sign(self.half) * np.maximum(np.abs(self.half) - self.margin, 0)
        return answers


@lru_cache(maxsize=1024)
def told(query: StatisticalQuery, d: int) -> Told:
    """A query's expectations under all 2^d parities: one pass over the cube and one Walsh-Hadamard transform, exact."""
    points = parities(d).points
    plus, minus = (query.numerators(label(points, np.full(len(points), y, dtype=np.int8))) for y in (1, -1))
    half = np.rint(walsh_hadamard((plus - minus).astype(np.float64))).astype(np.int64)  # whole numbers far below 2^53
    scale = 2 * query.span << d
    return Told(int((plus + minus).sum()), half, scale, allowed_gap(query.tolerance, scale) // 2)


class SilentOracle(SQOracle):
    """The adversary for one hidden parity: `base` while it is legal, and the legal value nearest to it after. Works against adaptive learners."""

    def __init__(self, d: int, target: int) -> None:
        super().__init__()
        self.d, self.target = d, target
        self.log: list[tuple[StatisticalQuery, Fraction]] = []
        self.alive: Bools = np.ones(1 << d, dtype=np.bool_)

    def answer_one(self, query: StatisticalQuery) -> float:
        whole = told(query, self.d)
        answer = int(whole.answers()[self.target])
        self.alive &= np.abs(whole.base + whole.half - answer) <= whole.margin
        self.log.append((query, Fraction(answer, whole.scale)))
        return float(self.log[-1][1])

    def certificate(self) -> dict[str, Any] | None:
        """That all these answers are legal for the parities still alive, the first 512 of them, of which no output is good for two. None once one is left."""
        alive = np.flatnonzero(self.alive)[:NAMED]
        return survivors_certificate("parities", {"d": self.d}, ALPHA, self.log, alive.tolist()) if len(alive) > 1 else None


def all_parities(d: int, tolerance: float, asked: int) -> Nonadaptive[StatisticalQuery, float, int]:
    """The learner that asks how y correlates with each of the first `asked` parities and says which does; if none, the first one it did not ask."""
    if not 0 < asked <= 1 << d:
        raise InputError(f"asked is {asked}; there are 2^{d} parities to ask about")

    def decode(answers: tuple[float, ...]) -> int:
        return next((s for s, answer in enumerate(answers) if answer != 0), min(asked, (1 << d) - 1))

    return Nonadaptive(tuple(StatisticalQuery(ParityCoset(d, 0, s), tolerance) for s in range(asked)), decode)


def bent_cosets(d: int, tolerance: float, k: int) -> Adaptive[StatisticalQuery, float, int]:
    """The learner that meets the bound up to k queries: one bent query a coset finds the last d - k bits of r, k shifts of it the others.

    Exact against every adversary of this kind for tau < 2^(-k/2), and knows nothing from there on. Cost: 2^(d - k) + k queries in two rounds.
    """

    def play() -> Play[StatisticalQuery, float, int]:
        answers = yield tuple(StatisticalQuery(ParityCoset(d, k, s), tolerance) for s in range(1 << (d - k)))
        s = next((place for place, answer in enumerate(answers) if answer != 0), None)
        if s is None:
            return 0
        shifted = yield tuple(StatisticalQuery(ParityCoset(d, k, s, 1 << j), tolerance) for j in range(k))
        flips = [answer * answers[s] < 0 for answer in shifted]  # shift j flips the bent function's dual if the bit that j is paired with is set
        return (s << k) + sum(flip << ((j + k // 2) % k) for j, flip in enumerate(flips))

    return Adaptive(play)


def exact_success(learner: Nonadaptive[StatisticalQuery, float, int], d: int) -> Fraction:
    """The learner's success against the adversary over all 2^d targets, each played once."""
    whole = [told(query, d) for query in learner.queries]
    answers = np.stack([each.answers() / each.scale for each in whole]).T.tolist()
    return Fraction(sum(learner.decode(tuple(row)) == target for target, row in enumerate(answers)), 1 << d)
