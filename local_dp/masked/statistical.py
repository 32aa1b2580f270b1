"""Statistical-query learners of masked parity, non-adaptive (which Theorem 5.1 of KLNRS rules out)
and adaptive; and the worst-case oracle (limits 3.1)."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, TypeAlias

import numpy as np

from local_dp.arrays import Bools, Counts
from local_dp.cube import walsh_hadamard
from local_dp.errors import InputError
from local_dp.hardness.adversary import FORMAT, allowed_gap, described, survivors_certificate
from local_dp.interaction import Adaptive, Nonadaptive
from local_dp.masked.population import Concept
from local_dp.masked.queries import MaskedBit, MaskedCoset, MaskedRandom
from local_dp.oracles.statistical.oracles import (
    SQOracle,
    Statistical,
    StatisticalPlay,
    StatisticalQuery,
    StatisticalRounds,
)
from local_dp.records import Records

MAX_D = 20
_KEPT_D = 12


@dataclass(frozen=True)
class Spectrum:
    """The expectation of one query under every concept: E_{r,a} = (centre[r] + (-1)^a half[r]) /
    scale, in whole numbers; arrays of shape (2^d,)."""

    query: StatisticalQuery
    centre: Counts
    half: Counts
    scale: int

    @property
    def margin(self) -> int:
        """The largest |half| that a legal answer can hide: scale times the tolerance, rounded down
        exactly."""
        return allowed_gap(self.query.tolerance, self.scale) // 2

    @property
    def hidden(self) -> Bools:
        """The r for which the midpoint is legal for both values of a: |E_{r,0} - E_{r,1}| <= 2
        tau."""
        return np.abs(self.half) <= self.margin

    def answers(self, a: int) -> Counts:
        """scale times the answer for each r: the legal value nearest to the midpoint, so the
        midpoint itself where a can be hidden."""
        excess = np.sign(self.half) * np.maximum(np.abs(self.half) - self.margin, 0)
        return np.asarray(self.centre + (1 - 2 * a) * excess)


def spectrum(query: StatisticalQuery, d: int) -> Spectrum:
    """A query's expectations under all 2^(d+1) concepts: one pass over the examples and one
    Walsh-Hadamard transform."""
    if not 1 <= d <= MAX_D:
        raise InputError(f"d is {d}; the examples are enumerated for d from 1 to {MAX_D}")
    x = np.arange(1 << d, dtype=np.uint64)

    def numerators(i: int, b: int, y: int) -> Counts:
        ones = np.ones(len(x), dtype=np.int8)
        return query.numerators(
            Records(
                {"x": x, "i": i * ones.view(np.uint8), "b": b * ones.view(np.uint8), "y": y * ones}
            )
        )

    both = 0
    difference = np.zeros(1 << d, dtype=np.int64)
    bits = []
    for i in range(d):
        plus = numerators(i, 0, 1)
        minus = numerators(i, 0, -1)
        both += int((plus + minus).sum())
        difference += plus - minus
        bits.append(tuple(2 * int(numerators(i, 1, y).sum()) for y in (1, -1)))
    start = np.array([both], dtype=np.int64)
    centre = reduce(lambda sums, bit: np.concatenate([sums + bit[0], sums + bit[1]]), bits, start)
    # whole numbers far below 2^53: exact
    half = np.rint(walsh_hadamard(difference)).astype(np.int64)
    return Spectrum(query, centre, half, 4 * d * query.span << d)


_spectra = lru_cache(maxsize=256)(
    spectrum
)  # for one learner played on many concepts; 16 MB at most


@dataclass
class MidpointOracle(SQOracle):
    """The oracle for (r, a) that gives the same answers for both a wherever its tolerance allows
    (limits 3.1, E5). Cost: O(d 2^d) a query."""

    d: int
    r: int
    a: int
    log: list[tuple[StatisticalQuery, Fraction]] = field(default_factory=list, init=False)
    is_hidden: bool = field(default=True, init=False)

    def answer_one(self, query: StatisticalQuery) -> float:
        whole = (_spectra if self.d <= _KEPT_D else spectrum)(query, self.d)
        answer = Fraction(int(whole.answers(self.a)[self.r]), whole.scale)
        self.is_hidden &= bool(whole.hidden[self.r])
        self.log.append((query, answer))
        return float(answer)

    def certificate(self) -> dict[str, Any] | None:
        """A proof that these answers fit (r, 0) and (r, 1), so that no output has error below 1/4
        for both. None once a is revealed."""
        if not self.is_hidden:
            return None
        return survivors_certificate(
            "masked-parity", {"d": self.d}, 0.25, self.log, [2 * self.r, 2 * self.r + 1]
        )


def hidden_set(spectra: tuple[Spectrum, ...]) -> Bools:
    """The r whose mask no query of a non-adaptive list reveals, shape (2^d,)."""
    return reduce(np.logical_and, (whole.hidden for whole in spectra))


def hidden_set_certificate(queries: tuple[StatisticalQuery, ...], d: int) -> dict[str, Any]:
    """A proof that against the midpoint oracle a learner with these queries succeeds with
    probability 1 - rho / 2 at most, rho the share of hidden r."""
    mask = hidden_set(tuple(spectrum(query, d) for query in queries))
    count = int(mask.sum())
    share = Fraction(count, 1 << d)
    return {
        "format": FORMAT,
        "kind": "hidden-set",
        "d": d,
        "queries": [described(query) for query in queries],
        "hidden": np.packbits(mask, bitorder="little").tobytes().hex(),
        "rho": str(share),
        "success_at_most": str(1 - Fraction(count, 2 << d)),
    }


SHARE = 0.9  # of the tolerances of two rounds
MAX_RANDOM_D = 16  # the learner that asks random functions tabulates their 2^d coefficients

NonadaptiveLearner: TypeAlias = Statistical[Concept]
AdaptiveLearner: TypeAlias = StatisticalRounds[Concept]


def _bit_queries(d: int, tolerance: float) -> tuple[StatisticalQuery, ...]:
    return tuple(StatisticalQuery(MaskedBit(d, j), tolerance) for j in range(d))


def _read_bits(answers: tuple[float, ...]) -> int:
    return sum(1 << j for j, answer in enumerate(answers) if answer < 0)


def coset_learner(
    d: int, tolerance: float, k: int, cosets: int | None = None
) -> NonadaptiveLearner:
    """d signed queries for r, a bent-coset query for each of the first `cosets` endings of r for a;
    exact if tau < min(1/(2d), 2^(-k/2-1)). One round."""
    count = 1 << (d - k) if cosets is None else cosets
    if not 0 <= count <= 1 << (d - k):
        raise InputError(f"cosets is {count}; there are 2^{d - k} endings of r")
    questions = tuple(MaskedCoset(d, k, s) for s in range(count))

    def decode(answers: tuple[float, ...]) -> Concept:
        r = _read_bits(answers[:d])
        s = r >> k
        a = int(answers[d + s] * questions[s].coefficient(r) < 0) if s < count else 0
        return Concept(d, r, a)

    return Nonadaptive(
        _bit_queries(d, tolerance)
        + tuple(StatisticalQuery(query, tolerance) for query in questions),
        decode,
    )


def bent_learner(d: int, tolerance: float) -> NonadaptiveLearner:
    """d signed queries for r and one bent query for a, two for odd d: at tau = 2^(-2d/3) the
    counterexample to Theorem 5.1, for d = 5, 7 and d >= 8."""
    return coset_learner(d, tolerance, d - d % 2)


def parity_learner(d: int, tolerance: float, parities: int | None = None) -> NonadaptiveLearner:
    """d signed queries for r, and the parity query of each of the first `parities` strings: what
    the printed theorem has in mind."""
    return coset_learner(d, tolerance, 0, parities)


def random_learner(d: int, tolerance: float, functions: int, seed: int) -> NonadaptiveLearner:
    """d signed queries for r, and `functions` random Boolean functions for a, read from the one
    with the largest coefficient at r."""
    if not 1 <= d <= MAX_RANDOM_D or functions < 1:
        raise InputError(
            f"d is {d} and there are {functions} functions; give d from 1 to {MAX_RANDOM_D} and "
            "at least one function"
        )
    questions = tuple(MaskedRandom(d, seed + index) for index in range(functions))
    x = np.arange(1 << d, dtype=np.uint64)
    coefficients = (
        np.stack([walsh_hadamard(query.function(x).astype(np.float64)) for query in questions])
        / 2.0**d
    )
    clearest = np.abs(coefficients).argmax(axis=0)

    def decode(answers: tuple[float, ...]) -> Concept:
        r = _read_bits(answers[:d])
        place = int(clearest[r])
        return Concept(d, r, int(answers[d + place] * coefficients[place, r] < 0))

    return Nonadaptive(
        _bit_queries(d, tolerance)
        + tuple(StatisticalQuery(query, tolerance) for query in questions),
        decode,
    )


def two_round_learner(d: int) -> AdaptiveLearner:
    """KLNRS Section 5.1: d signed queries for r, then its parity for a, at .9 of the
    tolerances 1/(2d) and 1/2; exact (limits 3.1, E2)."""

    def play() -> StatisticalPlay[Concept]:
        r = _read_bits((yield _bit_queries(d, SHARE / (2 * d))))
        (answer,) = yield (StatisticalQuery(MaskedCoset(d, 0, r), SHARE / 2),)
        return Concept(d, r, int(answer < 0))

    return Adaptive(play)


def exact_success(learner: NonadaptiveLearner, spectra: tuple[Spectrum, ...]) -> Fraction:
    """Pr[error below 1/4] against the midpoint oracle over all 2^(d+1) concepts; `spectra` of its
    queries. Cost: 2^(d+1) calls of `decode`."""
    wins = 0
    size = len(spectra[0].centre)
    d = size.bit_length() - 1
    scales = np.array([[whole.scale] for whole in spectra], dtype=np.float64)
    for a in (0, 1):
        answers = (np.stack([whole.answers(a) for whole in spectra]) / scales).T.tolist()
        wins += sum(
            learner.decode(tuple(answers[r])).error(Concept(d, r, a)) < 0.25 for r in range(size)
        )
    return Fraction(wins, 2 * size)
