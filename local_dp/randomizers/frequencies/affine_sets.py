"""Affine sets: a report is a set of w of exactly k symbols, more often one that contains the
client's; it meets the minimax bound at every k up to 64."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Bools, Counts, Floats, Ints, Words
from local_dp.checks import check_whole
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.finite import FiniteChannel, too_narrow
from local_dp.randomizers.frequencies.base import OfSymbols
from local_dp.randomizers.frequencies.subset_selection import (
    PermutedSets,
    away,
    is_field,
    products,
    total_variance,
)
from local_dp.randomizers.table import Guide
from local_dp.tallies import Estimate, Tally

MAX_SYMBOLS = 64  # so few that a report is one of at most 1,696 sets


@dataclass(frozen=True, kw_only=True)
class AffineBlocks(OfSymbols, FiniteChannel):
    """Reports a set of w of k codes: a translate of {0, .., w - t - 1} in a group of order q, with
    t of the k - q codes outside, which are fixed.

    Sets with t fixed codes have weight C(q, w - t), so every code lies in the same weight of sets.
    The group is that of `Translates`, q the largest order up to k. Privacy: T <= e^eps s for each
    set's weights T from its own codes and s from others. One of the others takes the remainder of a
    row, fewer words than twice the sets. It estimates nothing by itself; `AffineSets` estimates
    under its coin. 2 <= k <= 64.
    """

    name = "affine-blocks"
    source = "Park, Nam, Lee 2023 (block designs); fixed points: limits 2"
    w: int = 1

    def check(self) -> None:
        super().check()
        check_whole("k", self.k, 2, MAX_SYMBOLS)
        check_whole("w", self.w, 1, self.k - 1)

    def prepare(self) -> None:
        weights, others, helds = self.weights, *self._steps
        if others.min() == 0 or (helds <= others).any() or (weights > helds).any():
            raise too_narrow(self)

    @cached_property
    def order(self) -> int:
        """q."""
        return largest_field(self.k)

    @cached_property
    def patterns(self) -> Counts:
        """Which fixed codes a set has, as 0 and 1, shape (patterns, k - q)."""
        fixed = self.k - self.order
        every = np.arange(1 << fixed)[:, None] >> np.arange(fixed) & 1
        inside = self.w - every.sum(axis=1)
        return np.asarray(every[(inside >= 0) & (inside <= self.order)])

    @cached_property
    def shares(self) -> list[int]:
        """C(q, w - t) of each pattern."""
        return [math.comb(self.order, self.w - int(pattern.sum())) for pattern in self.patterns]

    @property
    def alphabet(self) -> int:
        return len(self.patterns) * self.order

    @cached_property
    def own(self) -> Bools:
        """True where a set contains the code 0 of the group, and each fixed code: shape (1 + k - q,
        alphabet), by the sets' ranks."""
        inside = np.arange(self.order) < (self.w - self.patterns.sum(axis=1))[:, None]
        return np.array([inside.ravel(), *np.repeat(self.patterns.T == 1, self.order, axis=1)])

    @cached_property
    def _steps(self) -> tuple[Words, Words]:
        """s, rounded up, and T, rounded down, of each rank, shape (alphabet,)."""
        growth = exp_epsilon(self.nano)
        # so that what is rounded up does not make a row too long
        words = self.total - self.alphabet
        unit = Fraction(words * self.k, self.order * math.comb(self.k, self.w)) / (
            self.w * growth + self.k - self.w
        )
        others = [math.ceil(unit * share) for share in self.shares]
        helds = [math.floor(growth * unit * share) for share in self.shares]
        return np.repeat(np.array(others, dtype=np.uint64), self.order), np.repeat(
            np.array(helds, dtype=np.uint64), self.order
        )

    @cached_property
    def weights(self) -> Words:
        """The rows of the code 0 and of the fixed codes, shape (1 + k - q, alphabet), by the sets'
        ranks."""
        others, helds = self._steps
        weights = np.where(self.own, helds, others)
        likeliest = np.where(self.own, np.uint64(0), others).argmax(axis=1)
        rest = np.uint64(self.total % 2**64) - weights.sum(axis=1, dtype=np.uint64)  # modulo 2^64
        weights[np.arange(len(weights)), likeliest] += rest
        return weights

    @cached_property
    def _guide(self) -> Guide:
        return Guide.of(self.weights, self.word_bits)

    def row(self, codes: Ints) -> Ints:
        """The row that a code's law is read from."""
        return np.maximum(codes - (self.order - 1), 0)

    def moved(self, codes: Ints, sets: Ints) -> Ints:
        """The set of each rank for a code, and the rank of each set: for the codes of the group,
        its translate."""
        place, step = np.divmod(sets, self.order)
        return place * self.order + away(np.where(codes < self.order, codes, 0), step, self.order)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        codes = values.astype(np.int64)
        return self.moved(codes, self._guide(self.row(codes), words).astype(np.int64)).astype(
            self.report_dtype
        )

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        codes = np.asarray(values, dtype=np.int64)
        return self.weights[self.row(codes), self.moved(codes, np.asarray(reports, dtype=np.int64))]

    @property
    def own_chance(self) -> float:
        """The probability of a set that contains the value, the same for every value up to the
        remainder."""
        return float(self.weights[0][self.own[0]].astype(np.float64).sum()) / self.total

    def estimate(self, tally: Tally) -> Estimate:
        raise InputError("affine blocks do not show the codes' shares; ask with affine-sets")


@dataclass(frozen=True, kw_only=True)
class AffineSets(PermutedSets):
    """Reports a set of w of k symbols: each set that contains the client's symbol e^eps times as
    likely as each other one.

    The public coin multiplies the first q symbols in the field of order q, the largest prime or
    power of two up to k. The report names a translate of {0, .., w - t - 1} and t of the k - q
    fixed symbols, with weight C(q, w - t). Over the coins two symbols lie together as often as in
    uniformly random sets. Privacy: T <= e^eps s for every coin. Utility: that of `SubsetSelection`
    at K = k, so at the uniform law the total variance is the least of all unbiased estimates, at
    every k and epsilon (limits 2). Cost: one of 2^(k - q) q sets, at most 1,696, and one word;
    decoding O(n + 2^(k - q) q^2 k). 2 <= k <= 64.
    """

    name = "affine-sets"
    summary = "Reports an affine set of symbols, likely with the client's"
    source = "Ye, Barg 2018; Park, Nam, Lee 2023 (block designs); fixed points: limits 2"

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"k": min(size, MAX_SYMBOLS)}

    @cached_property
    def inner(self) -> AffineBlocks:
        check_whole("k", symbols(self.k).size, 2, MAX_SYMBOLS)
        return AffineBlocks(
            self.epsilon,
            word_bits=self.word_bits,
            k=self.k,
            w=best_size(self.nano, self.k),
        )

    @property
    def sets(self) -> tuple[int, int]:
        return self.k, self.inner.w

    @property
    def own_chance(self) -> float:
        return self.inner.own_chance

    @cached_property
    def codes(self) -> Counts:
        order = self.inner.order
        # -1 turns a block over, which is a translate of it
        rows = products(order)[: order - 1 if order % 2 == 0 else (order - 1) // 2]
        return np.concatenate(
            [rows, np.broadcast_to(np.arange(order, self.k), (len(rows), self.k - order))], axis=1
        )

    @cached_property
    def holds(self) -> Floats:
        codes, reports = np.arange(self.k), np.arange(self.inner.alphabet)[:, None]
        return self.inner.own[self.inner.row(codes), self.inner.moved(codes, reports)].astype(
            np.float64
        )


def largest_field(k: int) -> int:
    """The largest number up to k that is a prime or a power of two."""
    return next(order for order in range(k, 1, -1) if is_field(order))


@lru_cache(maxsize=1024)
def best_size(nano: int, k: int) -> int:
    """The w of least total variance at the uniform law, of all sets of w of k symbols: next to k /
    (e^eps + 1)."""
    growth = Fraction(float(exp_epsilon(nano)))
    middle = int(k / (growth + 1))
    return min(
        {max(1, middle), min(k - 1, middle + 1)}, key=lambda w: total_variance(growth, k, w, k)
    )
