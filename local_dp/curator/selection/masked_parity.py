"""Masked parity under a trusted curator: the class of all 2^(d+1) concepts, scored at once for the exponential mechanism (KLNRS Theorem 3.7, Section 5)."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Ints, Words
from local_dp.cube import walsh_hadamard
from local_dp.errors import InputError
from local_dp.records import Records

MAX_DIMENSION = 22


@dataclass(frozen=True)
class MaskedParityClass:
    """The concepts c_{r,a} over {0,1}^d, number 2 r + a; an example (x, i, b) in whole numbers as (x d + i) 2 + b (`encoded`).

    All errors by one Walsh-Hadamard transform of the examples with b = 0 and d sums over those with b = 1: O(n + d 2^d).
    """

    d: int

    def __post_init__(self) -> None:
        if type(self.d) is not int or not 1 <= self.d <= MAX_DIMENSION:
            raise InputError(f"d is {self.d!r}; the class of all masked parities can be scored for d from 1 to {MAX_DIMENSION}")

    @property
    def size(self) -> int:
        return 2 << self.d

    def encoded(self, records: Records) -> tuple[Ints, Ints]:
        """The examples of masked-parity records as this class takes them: (x, y), y of 0/1, both of shape (n,)."""
        x, i, b = (records[name].astype(np.int64) for name in ("x", "i", "b"))
        return (x * self.d + i) * 2 + b, (records["y"] < 0).astype(np.int64)

    def errors(self, x: Ints | Words, y: Ints) -> Counts:
        codes, signs = x.astype(np.int64), 1.0 - 2.0 * y
        hinted = codes % 2 == 1
        bits = np.bincount(codes[hinted] // 2 % self.d, weights=signs[hinted], minlength=self.d)
        told = np.zeros(1)
        for bit in bits:  # entry r: the sum over bits j of (-1)^(r_j) bits[j]
            told = np.concatenate([told + bit, told - bit])
        parity = walsh_hadamard(np.bincount(codes[~hinted] // (2 * self.d), weights=signs[~hinted], minlength=1 << self.d).astype(np.float64))
        agreement = np.stack([told + parity, told - parity], axis=1).ravel()  # whole numbers up to n: exact in floats
        errors: Counts = ((len(y) - agreement) / 2).astype(np.int64)
        return errors
