"""Statistical-query learners of masked parity: non-adaptive ones, which Theorem 5.1 of KLNRS says cannot be, and the adaptive one (limits 3.1)."""

from fractions import Fraction
from typing import TypeAlias

import numpy as np

from local_dp.cube import walsh_hadamard
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive
from local_dp.masked.concept import Concept
from local_dp.masked.midpoint import Spectrum
from local_dp.masked.signs import MaskedBit, MaskedCoset, MaskedRandom
from local_dp.oracles.statistical.oracles import Statistical, StatisticalPlay, StatisticalQuery, StatisticalRounds

MAX_RANDOM_D = 16  # the learner that asks random functions tabulates their 2^d coefficients

NonadaptiveLearner: TypeAlias = Statistical[Concept]
AdaptiveLearner: TypeAlias = StatisticalRounds[Concept]


def _bit_queries(d: int, tolerance: float) -> tuple[StatisticalQuery, ...]:
    return tuple(StatisticalQuery(MaskedBit(d, j), tolerance) for j in range(d))


def _read_bits(answers: tuple[float, ...]) -> int:
    return sum(1 << j for j, answer in enumerate(answers) if answer < 0)


def coset_learner(d: int, tolerance: float, k: int, cosets: int | None = None) -> NonadaptiveLearner:
    """d signed queries for r, and one bent-coset query for each of the first `cosets` endings s of r (all 2^(d-k) without it) for a.

    Exact against every legal oracle, for the share cosets / 2^(d-k) of all r, if tau < min(1/(2d), 2^(-k/2-1)). Cost: d + cosets queries, one round.
    """
    count = 1 << (d - k) if cosets is None else cosets
    if not 0 <= count <= 1 << (d - k):
        raise InputError(f"cosets is {count}; there are 2^{d - k} endings of r")
    asked = tuple(MaskedCoset(d, k, s) for s in range(count))

    def decode(answers: tuple[float, ...]) -> Concept:
        r = _read_bits(answers[:d])
        s = r >> k
        a = int(answers[d + s] * asked[s].coefficient(r) < 0) if s < count else 0
        return Concept(d, r, a)

    return Nonadaptive(_bit_queries(d, tolerance) + tuple(StatisticalQuery(query, tolerance) for query in asked), decode)


def bent_learner(d: int, tolerance: float) -> NonadaptiveLearner:
    """d signed queries for r, and one bent query for a (two for odd d): the counterexample to Theorem 5.1 as printed.

    Exact against every legal oracle if tau < min(1/(2d), 2^(-d/2-1)), so at the theorem's own tolerance 2^(-2d/3) for d = 5, 7 and every d >= 8.
    """
    return coset_learner(d, tolerance, d - d % 2)


def parity_learner(d: int, tolerance: float, parities: int | None = None) -> NonadaptiveLearner:
    """d signed queries for r, and the parity query of each of the first `parities` strings: what the printed theorem has in mind."""
    return coset_learner(d, tolerance, 0, parities)


def random_learner(d: int, tolerance: float, functions: int, seed: int) -> NonadaptiveLearner:
    """d signed queries for r, and `functions` random Boolean functions for a, read from the one with the largest coefficient at r."""
    if not 1 <= d <= MAX_RANDOM_D or functions < 1:
        raise InputError(f"d is {d} and there are {functions} functions; give d from 1 to {MAX_RANDOM_D} and at least one function")
    asked = tuple(MaskedRandom(d, seed + index) for index in range(functions))
    x = np.arange(1 << d, dtype=np.uint64)
    coefficients = np.stack([walsh_hadamard(query.function(x).astype(np.float64)) for query in asked]) / 2.0**d
    clearest = np.abs(coefficients).argmax(axis=0)

    def decode(answers: tuple[float, ...]) -> Concept:
        r = _read_bits(answers[:d])
        place = int(clearest[r])
        return Concept(d, r, int(answers[d + place] * coefficients[place, r] < 0))

    return Nonadaptive(_bit_queries(d, tolerance) + tuple(StatisticalQuery(query, tolerance) for query in asked), decode)


def two_round_learner(d: int, share: float = 0.9) -> AdaptiveLearner:
    """KLNRS Section 5.1 with signed queries: d queries for r, then the parity of r for a, at `share` of the tolerances 1/(2d) and 1/2 they allow.

    Exact against every legal oracle for every share below 1 (limits 3.1, E2). Cost: d + 1 queries, two rounds.
    """
    if not 0 < share < 1:
        raise InputError(f"the share of the tolerance is {share}; give a number strictly between 0 and 1")

    def play() -> StatisticalPlay[Concept]:
        r = _read_bits((yield _bit_queries(d, share / (2 * d))))
        (answer,) = yield (StatisticalQuery(MaskedCoset(d, 0, r), share / 2),)
        return Concept(d, r, int(answer < 0))

    return Adaptive(play)


def exact_success(learner: NonadaptiveLearner, spectra: tuple[Spectrum, ...]) -> Fraction:
    """The learner's success (error below 1/4) against the midpoint oracle over all 2^(d+1) concepts, each played once; `spectra` are those of its queries.

    Cost: 2^(d+1) calls of `decode`.
    """
    wins = 0
    size = len(spectra[0].centre)
    d = size.bit_length() - 1
    scales = np.array([[whole.scale] for whole in spectra], dtype=np.float64)
    for a in (0, 1):
        answers = (np.stack([whole.answers(a) for whole in spectra]) / scales).T.tolist()
        wins += sum(learner.decode(tuple(answers[r])).error(Concept(d, r, a)) < 0.25 for r in range(size))
    return Fraction(wins, 2 * size)
