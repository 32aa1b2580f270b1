"""The worst-case oracle for masked parity: it reveals r and hides a wherever the tolerance lets it (limits 3.1, E5)."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from local_dp.arrays import Bools, Counts
from local_dp.cube import walsh_hadamard
from local_dp.errors import InputError
from local_dp.hardness.adversary import FORMAT, allowed_gap, described, survivors_certificate
from local_dp.oracles.statistical.oracles import SQOracle, StatisticalQuery
from local_dp.records import Records

MAX_D = 20
_KEPT_D = 12


@dataclass(frozen=True)
class Spectrum:
    """The expectation of one query under every concept: E_{r,a} = (centre[r] + (-1)^a half[r]) / scale, in whole numbers; arrays of shape (2^d,)."""

    query: StatisticalQuery
    centre: Counts
    half: Counts
    scale: int

    @property
    def margin(self) -> int:
        """The largest |half| that a legal answer can hide: scale times the tolerance, rounded down exactly."""
        return allowed_gap(self.query.tolerance, self.scale) // 2

    @property
    def hidden(self) -> Bools:
        """The r for which the midpoint is legal for both values of a: |E_{r,0} - E_{r,1}| <= 2 tau."""
        return np.abs(self.half) <= self.margin

    def answers(self, a: int) -> Counts:
        """scale times the answer for each r: the legal value nearest to the midpoint, so the midpoint itself where a can be hidden."""
        revealed = np.sign(self.half) * np.maximum(np.abs(self.half) - self.margin, 0)
        answers: Counts = self.centre + (1 - 2 * a) * revealed
        return answers


def spectrum(query: StatisticalQuery, d: int) -> Spectrum:
    """A query's expectations under all 2^(d+1) concepts: one pass over the examples and one Walsh-Hadamard transform."""
    if not 1 <= d <= MAX_D:
        raise InputError(f"d is {d}; the examples are enumerated for d from 1 to {MAX_D}")
    x = np.arange(1 << d, dtype=np.uint64)

    def numerators(i: int, b: int, y: int) -> Counts:
        ones = np.ones(len(x), dtype=np.int8)
        return query.numerators(Records({"x": x, "i": i * ones.view(np.uint8), "b": b * ones.view(np.uint8), "y": y * ones}))

    both, difference = 0, np.zeros(1 << d, dtype=np.int64)
    bits = []
    for i in range(d):
        plus, minus = numerators(i, 0, 1), numerators(i, 0, -1)
        both += int((plus + minus).sum())
        difference += plus - minus
        bits.append(tuple(2 * int(numerators(i, 1, y).sum()) for y in (1, -1)))
    centre = reduce(lambda sums, bit: np.concatenate([sums + bit[0], sums + bit[1]]), bits, np.array([both], dtype=np.int64))
    half = np.rint(walsh_hadamard(difference.astype(np.float64))).astype(np.int64)  # whole numbers far below 2^53: exact
    return Spectrum(query, centre, half, 4 * d * query.span << d)


_kept = lru_cache(maxsize=256)(spectrum)  # one learner's queries, played for concept after concept; 16 MB at most


class MidpointOracle(SQOracle):
    """The oracle for the concept (r, a) that says as little of a as legality allows: for a hidden r its answers are the same for a = 0 and a = 1.

    Cost: O(d 2^d) a query.
    """

    def __init__(self, d: int, r: int, a: int) -> None:
        super().__init__()
        self.d, self.r, self.a = d, r, a
        self.log: list[tuple[StatisticalQuery, Fraction]] = []
        self.hidden = True

    def answer_one(self, query: StatisticalQuery) -> float:
        whole = (_kept if self.d <= _KEPT_D else spectrum)(query, self.d)
        answer = Fraction(int(whole.answers(self.a)[self.r]), whole.scale)
        self.hidden &= bool(whole.hidden[self.r])
        self.log.append((query, answer))
        return float(answer)

    def certificate(self) -> dict[str, Any] | None:
        """That these answers fit (r, 0) and (r, 1) alike, half of the examples apart: no output has error below 1/4 for both. None once a is revealed."""
        if not self.hidden:
            return None
        return survivors_certificate("masked-parity", {"d": self.d}, 0.25, self.log, [2 * self.r, 2 * self.r + 1])


def hidden_set(spectra: tuple[Spectrum, ...]) -> Bools:
    """The r whose mask no query of a non-adaptive list reveals, shape (2^d,)."""
    return reduce(np.logical_and, (whole.hidden for whole in spectra))


def hidden_set_certificate(queries: tuple[StatisticalQuery, ...], d: int) -> dict[str, Any]:
    """That the midpoint oracle holds every non-adaptive learner that asks these queries to success 1 - rho / 2, rho the share of hidden r."""
    hidden = hidden_set(tuple(spectrum(query, d) for query in queries))
    count = int(hidden.sum())
    return {
        "format": FORMAT,
        "kind": "hidden-set",
        "d": d,
        "queries": [described(query) for query in queries],
        "hidden": np.packbits(hidden, bitorder="little").tobytes().hex(),
        "rho": str(Fraction(count, 1 << d)),
        "success_at_most": str(1 - Fraction(count, 2 << d)),
    }
