"""Functions of one variable of each of t blocks: the odd-max-bit decision list, AND, majority and parity of variables that nobody knows (limits 12.4)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Bools, Counts
from local_dp.checks import check_whole
from local_dp.cube import parity, sign
from local_dp.errors import InputError, unknown
from local_dp.populations.concepts import MAX_ENTRIES, Signs

MAX_BLOCKS = 12
MAX_BLOCK = 1 << 20


def _last_place(u: Counts) -> Bools:
    """Whether the last block whose bit is set is the first, third, fifth, ...: `if u_t then (-1)^t else if u_(t-1) ... else +1`, a decision list."""
    return np.asarray(np.frexp(u.astype(np.float64))[1] % 2 == 1)


FUNCTIONS: dict[str, Callable[[Counts, int], Bools]] = {  # where f is -1, of every u below 2^t
    "odd-max-bit": lambda u, t: _last_place(u),
    "and": lambda u, t: u == (1 << t) - 1,
    "majority": lambda u, t: 2 * np.bitwise_count(u) > t,
    "parity": lambda u, t: parity(u.astype(np.uint64)) == 1,
}


@dataclass(frozen=True)
class BlockClass:
    """f(x_{1, j_1} xor w_1, ..., x_{t, j_t} xor w_t) and its negation, for all choices j of one of b variables in each of t blocks and all w in {0,1}^t.

    A concept labels x, which has t b bits, +1 or -1; there are 2 (2b)^t names of concepts. Closed under negation. Raises InputError.
    """

    function: str
    t: int
    b: int

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise InputError(unknown("no function named", str(self.function), tuple(FUNCTIONS)))
        check_whole("t", self.t, 1, MAX_BLOCKS)
        check_whole("b", self.b, 1, MAX_BLOCK)

    @property
    def variables(self) -> int:
        return self.t * self.b

    def signs(self) -> Signs:
        """f on {0,1}^t: bit i of the index u is what block i + 1 says."""
        return sign(FUNCTIONS[self.function](np.arange(1 << self.t), self.t)).astype(np.int8)

    def told(self) -> Counts:
        """What a concept reads of a point, as a number below 2^t, whose sign is the label: of all (j, w) and x, shape (b^t 2^t, 2^(t b)); no negations.

        For small classes: raises InputError for more than 2^28 entries.
        """
        if (self.b << (self.b + 1)) ** self.t > MAX_ENTRIES:
            raise InputError(f"(2b)^t 2^(t b) is more than 2^28 labels at t = {self.t}, b = {self.b}; take a smaller class")
        bits = np.arange(1 << self.variables) >> np.arange(self.variables)[:, None] & 1
        read = np.stack([(bits[np.arange(self.t) * self.b + j] << np.arange(self.t)[:, None]).sum(axis=0) for j in self.choices()])
        return np.asarray((read[:, None] ^ np.arange(1 << self.t)[:, None]).reshape(-1, read.shape[1]))

    def choices(self) -> Counts:
        """Every choice j of one variable a block, a row each."""
        return np.asarray(np.indices((self.b,) * self.t).reshape(self.t, -1).T)

    def masks(self, S: int) -> Counts:
        """For each choice j, the variables that it takes from the blocks of S, as a mask of t b bits: shape (b^t,)."""
        inside = np.array([S >> i & 1 for i in range(self.t)])
        return np.asarray((1 << self.choices() + np.arange(self.t) * self.b) @ inside)
