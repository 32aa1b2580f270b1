"""Worst-case oracles: one for a finite class, and the adversary of the SQ-parity game on which
KLNRS Corollary 4.6 rests (Blum et al. 1994).

The first commits to no target, and keeps as many concepts as it can consistent with its answers
(limits 5.1). The second hides a parity. A query g has the expectation base + h^(r) under the parity
r, base that under random labels and h(x) = (g(x, +1) - g(x, -1)) / 2. `base` is a legal answer
unless |h^(r)| > tau. By Parseval fewer than 1 / tau^2 parities r have that. All others get the same
answers, whatever the next query: `bounds.parity.parity_sq_success`. For a correlation with y, base
is 0.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from local_dp.arrays import Bools, Counts
from local_dp.checks import check_share
from local_dp.cube import walsh_hadamard
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive, Play
from local_dp.oracles.statistical.oracles import SQOracle, StatisticalQuery
from local_dp.populations.concepts import ConceptClass, label, parities
from local_dp.queries.examples import ParityCoset
from local_dp.records import Records

FORMAT = "local-dp certificate 1"
MAX_PAIRS = 4096  # concepts alive at once, where pairs are counted: a table of that many squared

Potential: TypeAlias = Literal["count", "pairs"]
# the potential of the windows start..stop of the sorted survivors
Score: TypeAlias = Callable[[Counts, Counts], Counts]


def allowed_gap(tolerance: float, scale: int) -> int:
    """The largest whole g with g / scale <= 2 tolerance, exactly: values that far apart have a
    common legal answer."""
    return int(2 * Fraction(tolerance) * scale)


def by_label(query: StatisticalQuery, points: Records) -> tuple[Counts, Counts]:
    """The numerators of a query on all points labelled +1, and labelled -1."""
    plus, minus = (
        query.numerators(label(points, np.full(len(points), y, dtype=np.int8))) for y in (1, -1)
    )
    return plus, minus


def described(query: StatisticalQuery) -> dict[str, Any]:
    return {"name": query.query.name, "params": query.query.params(), "tolerance": query.tolerance}


def survivors_certificate(
    name: str,
    params: Mapping[str, Any],
    alpha: float,
    log: Sequence[tuple[StatisticalQuery, Fraction]],
    survivors: Sequence[int],
) -> dict[str, Any]:
    """That these answers are legal for all these concepts of a named class, as JSON data for
    `certificates.verify_certificate`."""
    return {
        "format": FORMAT,
        "kind": "survivors",
        "class": {"name": name, "params": dict(params)},
        "alpha": alpha,
        "queries": [described(query) for query, _ in log],
        "answers": [str(answer) for _, answer in log],
        "survivors": list(survivors),
    }


class VersionSpaceOracle(SQOracle):
    """Answers each query with the centre of the window of width 2 tau, over the surviving concepts'
    expectations, that has the greatest potential.

    Potential: the number of survivors ("count"), or of pairs of survivors that differ with
    probability at least 2 alpha ("pairs"). Every answer is legal for every survivor. The learner
    fails while two survivors differ by 2 alpha: no hypothesis has error below alpha for both. Works
    for adaptive learners. Cost: O(|S| log |S|) a query for "count", O(|S|^2) for "pairs", after one
    product of the label matrix with the query.
    """

    def __init__(
        self, concepts: ConceptClass, alpha: float, potential: Potential = "pairs"
    ) -> None:
        check_share("alpha", alpha)
        if potential == "pairs" and concepts.size > MAX_PAIRS:
            raise InputError(
                f"{concepts.name} has {concepts.size} concepts; pairs are counted up to "
                f"{MAX_PAIRS}, so use the potential 'count'"
            )
        self.concepts = concepts
        self.alpha = alpha
        self.potential = potential
        self.alive: Counts = np.arange(concepts.size)
        self.log: list[tuple[StatisticalQuery, Fraction]] = []
        self._signs = concepts.labels.astype(np.float64)
        # on the scale of `_apart`
        self._far_apart = math.ceil(4 * Fraction(alpha) * concepts.total)
        self._far: Bools | None = (
            self._apart(self.alive) >= self._far_apart if potential == "pairs" else None
        )

    def expectations(self, query: StatisticalQuery) -> tuple[Counts, int]:
        """Each concept's expectation as (whole numerators, denominator), exact."""
        points, weights = self.concepts.points, self.concepts.weights
        plus, minus = by_label(query, points)
        slopes = self._signs @ (weights * (plus - minus)).astype(np.float64)  # below 2^53: exact
        sums = (weights * (plus + minus)).sum()
        return np.rint(slopes).astype(np.int64) + int(sums), 2 * self.concepts.total * query.span

    def answer_one(self, query: StatisticalQuery) -> float:
        values, scale = self.expectations(query)
        order = self.alive[np.argsort(values[self.alive], kind="stable")]
        ordered = values[order]
        starts = np.arange(len(order))
        stops = np.searchsorted(
            ordered, ordered + allowed_gap(query.tolerance, scale), side="right"
        )
        best = int(np.argmax(self._scores(order)(starts, stops)))
        first = int(ordered[best])
        last = int(ordered[stops[best] - 1])
        centre = Fraction(first + last, 2 * scale)
        self.alive = np.sort(order[best : stops[best]])
        self.log.append((query, centre))
        return float(centre)

    def _scores(self, order: Counts) -> Score:
        if self._far is None:
            return lambda starts, stops: stops - starts
        sums = np.zeros((len(order) + 1, len(order) + 1), dtype=np.int64)
        sums[1:, 1:] = self._far[np.ix_(order, order)].cumsum(axis=0).cumsum(axis=1)

        def pairs(starts: Counts, stops: Counts) -> Counts:
            inside = (
                sums[stops, stops]
                - sums[starts, stops]
                - sums[stops, starts]
                + sums[starts, starts]
            )
            return inside * len(order) + (stops - starts)  # more survivors decide a tie

        return pairs

    def _apart(self, concepts: Counts) -> Counts:
        """2 total Pr[c != c'] of all pairs of these concepts: whole numbers, exact."""
        signs = self._signs[concepts]
        return self.concepts.total - np.rint((signs * self.concepts.weights) @ signs.T).astype(
            np.int64
        )

    def certificate(self, survivors: Literal["pair", "all"] = "pair") -> dict[str, Any] | None:
        """That the learner has not won, as JSON data for `verify_certificate`, by "all" survivors
        or a "pair" 2 alpha apart; None if it has."""
        apart = self._apart(self.alive)
        first, second = np.unravel_index(int(np.argmax(apart)), apart.shape)
        if apart[first, second] < self._far_apart:
            return None
        members = self.alive if survivors == "all" else self.alive[[first, second]]
        return survivors_certificate(
            self.concepts.name, self.concepts.params, self.alpha, self.log, members.tolist()
        )


NAMED = 512  # survivors in a certificate
ALPHA = 0.25  # two parities differ on half of all points, so an error below 1/4 names the parity


@dataclass(frozen=True)
class ParityExpectations:
    """One query's expectation under every parity: E_r = (base + half[r]) / scale, in whole numbers;
    `half` has shape (2^d,)."""

    base: int
    half: Counts
    scale: int
    margin: int  # scale times the tolerance, rounded down exactly

    @property
    def revealed(self) -> Bools:
        """The parities for which `base` is no legal answer."""
        return np.abs(self.half) > self.margin

    def answers(self) -> Counts:
        """scale times the adversary's answer for every target: the legal value nearest to
        `base`."""
        excess = np.maximum(np.abs(self.half) - self.margin, 0)
        return np.asarray(self.base + np.sign(self.half) * excess)


@lru_cache(maxsize=1024)
def parity_expectations(query: StatisticalQuery, d: int) -> ParityExpectations:
    """A query's expectations under all 2^d parities: one pass over the cube and one Walsh-Hadamard
    transform, exact."""
    plus, minus = by_label(query, parities(d).points)
    half = np.rint(walsh_hadamard(plus - minus)).astype(np.int64)  # whole numbers far below 2^53
    scale = 2 * query.span << d
    return ParityExpectations(
        int((plus + minus).sum()), half, scale, allowed_gap(query.tolerance, scale) // 2
    )


class SilentOracle(SQOracle):
    """The adversary for one hidden parity: `base` while it is legal, and the nearest legal value
    afterwards. Works against adaptive learners."""

    def __init__(self, d: int, target: int) -> None:
        self.d, self.target = d, target
        self.log: list[tuple[StatisticalQuery, Fraction]] = []
        self.alive: Bools = np.ones(1 << d, dtype=np.bool_)

    def answer_one(self, query: StatisticalQuery) -> float:
        whole = parity_expectations(query, self.d)
        answer = int(whole.answers()[self.target])
        self.alive &= np.abs(whole.base + whole.half - answer) <= whole.margin
        self.log.append((query, Fraction(answer, whole.scale)))
        return float(self.log[-1][1])

    def certificate(self) -> dict[str, Any] | None:
        """That these answers are legal for the first 512 surviving parities; no output is good for
        two of them. None once one is left."""
        alive = np.flatnonzero(self.alive)[:NAMED]
        return (
            survivors_certificate("parities", {"d": self.d}, ALPHA, self.log, alive.tolist())
            if len(alive) > 1
            else None
        )


def all_parities(d: int, tolerance: float, count: int) -> Nonadaptive[StatisticalQuery, float, int]:
    """The learner that asks how y correlates with each of the first `count` parities, and returns
    the one that does; if none, the next parity."""
    if not 0 < count <= 1 << d:
        raise InputError(f"asked is {count}; there are 2^{d} parities to ask about")

    def decode(answers: tuple[float, ...]) -> int:
        return next(
            (s for s, answer in enumerate(answers) if answer != 0), min(count, (1 << d) - 1)
        )

    return Nonadaptive(
        tuple(StatisticalQuery(ParityCoset(d, 0, s), tolerance) for s in range(count)), decode
    )


def bent_cosets(d: int, tolerance: float, k: int) -> Adaptive[StatisticalQuery, float, int]:
    """The bound's equal up to k queries: a bent query a coset for r's last d - k bits, k shifts for
    the others. Exact for tau < 2^(-k/2). Two rounds."""

    def play() -> Play[StatisticalQuery, float, int]:
        answers = yield tuple(
            StatisticalQuery(ParityCoset(d, k, s), tolerance) for s in range(1 << (d - k))
        )
        s = next((place for place, answer in enumerate(answers) if answer != 0), None)
        if s is None:
            return 0
        replies = yield tuple(
            StatisticalQuery(ParityCoset(d, k, s, 1 << j), tolerance) for j in range(k)
        )
        # shift j flips the bent function's dual if the bit that j is paired with is set
        flips = [answer * answers[s] < 0 for answer in replies]
        low_bits = sum(flip << ((j + k // 2) % k) for j, flip in enumerate(flips))
        return (s << k) + low_bits

    return Adaptive(play)


def exact_success(learner: Nonadaptive[StatisticalQuery, float, int], d: int) -> Fraction:
    """The learner's success against the adversary over all 2^d targets, each played once."""
    expectations = [parity_expectations(query, d) for query in learner.queries]
    answers = np.stack([each.answers() / each.scale for each in expectations]).T.tolist()
    wins = sum(learner.decode(tuple(row)) == target for target, row in enumerate(answers))
    return Fraction(wins, 1 << d)
