"""The private Occam learner: the exponential mechanism learns any finite class, properly and agnostically (KLNRS Theorem 3.7)."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from local_dp.arrays import Counts, Ints, Words
from local_dp.checks import check_dimension
from local_dp.cube import walsh_hadamard
from local_dp.curator.selection.exponential import ByScore, numbered
from local_dp.curator.selection.groups import Groups
from local_dp.errors import InputError
from local_dp.records import Records

MAX_MASKED_DIMENSION = 22


class HypothesisClass(Protocol):
    """Finitely many numbered hypotheses, and the number of examples that each misclassifies."""

    @property
    def size(self) -> int:
        """|H|."""
        ...

    def errors(self, x: Ints, y: Ints) -> Counts:
        """The number of examples that each hypothesis misclassifies, shape (size,); x in the class's own encoding and y of 0/1, both of shape (n,)."""
        ...


@dataclass(frozen=True)
class Labelled:
    """n labelled points: x in the hypothesis class's own encoding and y of 0/1, both of shape (n,)."""

    x: Ints
    y: Ints

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or np.any((self.y != 0) & (self.y != 1)):
            raise InputError(f"there are {len(self.x)} points and {len(self.y)} labels; give one label of 0 or 1 for each point")

    @classmethod
    def of(cls, pairs: tuple[tuple[int, int], ...]) -> Self:
        x, y = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return cls(x, y)


@dataclass(frozen=True)
class OccamLearner(ByScore[Labelled, int]):
    """Chooses a hypothesis h, by its number, with probability proportional to e^(-eps (errors of h) / 2).

    Privacy: epsilon, exactly, on all databases; sampled in whole numbers. Utility: within alpha of the best hypothesis under any distribution, except with
    probability beta. That takes n >= `occam_examples` of `bounds.curator`, about 2 ln(|H| / beta) max(1 / (eps alpha), 1 / alpha^2).
    Cost: one score for each hypothesis. Source: KLNRS 2008, Theorem 3.7.
    """

    hypotheses: HypothesisClass
    epsilon: float

    def candidates(self, database: Labelled) -> Groups[int]:
        """One replaced example moves the errors of a hypothesis by at most 1."""
        return numbered(-self.hypotheses.errors(database.x, database.y))


@dataclass(frozen=True)
class MaskedParityClass:
    """The concepts c_{r,a} over {0,1}^d, number 2 r + a. An example (x, i, b) is encoded as (x d + i) 2 + b (KLNRS Section 5).

    All errors by one Walsh-Hadamard transform of the examples with b = 0 and d sums over those with b = 1: O(n + d 2^d).
    """

    d: int

    def __post_init__(self) -> None:
        check_dimension(self.d, MAX_MASKED_DIMENSION)

    @property
    def size(self) -> int:
        return 2 << self.d

    def encoded(self, records: Records) -> tuple[Ints, Ints]:
        """The examples of masked-parity records in this encoding: (x, y), y of 0/1, both of shape (n,)."""
        x, i, b = (records[name].astype(np.int64) for name in ("x", "i", "b"))
        return (x * self.d + i) * 2 + b, (records["y"] < 0).astype(np.int64)

    def errors(self, x: Ints | Words, y: Ints) -> Counts:
        codes, signs = x.astype(np.int64), 1.0 - 2.0 * y
        hinted = codes % 2 == 1
        bits = np.bincount(codes[hinted] // 2 % self.d, weights=signs[hinted], minlength=self.d)
        hints = np.zeros(1)
        for bit in bits:  # entry r: the sum over bits j of (-1)^(r_j) bits[j]
            hints = np.concatenate([hints + bit, hints - bit])
        parity = walsh_hadamard(np.bincount(codes[~hinted] // (2 * self.d), weights=signs[~hinted], minlength=1 << self.d).astype(np.float64))
        agreement = np.stack([hints + parity, hints - parity], axis=1).ravel()  # whole numbers up to n: exact in floats
        errors: Counts = ((len(y) - agreement) / 2).astype(np.int64)
        return errors
