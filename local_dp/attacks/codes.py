"""Fingerprinting codes: rows of bits such that whoever mixes some of them into one word can be told from the word (lecture notes 5.1 and 5.2)."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Bools, Counts, Floats
from local_dp.bounds.attacks import boneh_shaw_block, tardos_length
from local_dp.checks import check_whole
from local_dp.interaction import Nonadaptive
from local_dp.noise import stream_key
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.queries.packed import Bit


@dataclass(frozen=True, eq=False)
class Code:
    """`rows` of d bits, one a user, shape (N, d), of which bit j is 1 with probability `shares`[j], shape (d,), independently; both are secret."""

    shares: Floats
    rows: Bools


def tardos(users: int, length: int, cutoff: float, generator: np.random.Generator) -> Code:
    """Tardos's code: shares sin^2(r), r uniform where the share is in [`cutoff`, 1 - `cutoff`]. He takes the cutoff 1 / (300 c), `tracing` needs 1 / (20 c).

    Traced by `tracing`, whose accusations are proved for the very shares and word. Source: Tardos 2008.
    """
    angle = math.asin(math.sqrt(cutoff))
    shares = np.sin(generator.uniform(angle, math.pi / 2 - angle, length)) ** 2
    return Code(shares, generator.random((users, length)) < shares)


def tardos_accused(code: Code, word: Bools, coalition: int, failure: float) -> Bools:
    """His own accusation, shape (N,): a score over the ones of the word above 20 c ln(N / failure), which takes 100 c^2 ln(N / failure) bits to reach."""
    users = len(code.rows)
    high, low = np.sqrt((1 - code.shares) / code.shares), -np.sqrt(code.shares / (1 - code.shares))
    scores = np.where(code.rows, high, low) @ word
    guilty: Bools = scores > 20 * coalition * math.log(users / failure)
    return guilty


def tardos_code(users: int, coalition: int, failure: float, generator: np.random.Generator) -> Code:
    """The code with his own length and cutoff."""
    return tardos(users, tardos_length(coalition, users, failure), 1 / (300 * coalition), generator)


@dataclass(frozen=True)
class BonehShaw:
    """The code of n users in n + 1 blocks of equal columns: user i, from 1 on, has ones in the blocks from i on; the columns' secret order is drawn by `seed`.

    Security: users i - 1 and i differ in one block only, so without user i nobody can tell blocks i - 1 and i apart. Length (n + 1) B, B of
    `bounds.fingerprinting.boneh_shaw_block`. Source: Boneh, Shaw 1998; lecture notes 5.2.
    """

    users: int
    block: int
    seed: int

    def __post_init__(self) -> None:
        check_whole("the number of users", self.users, 2, 1 << 10)
        check_whole("the block", self.block, 1, 1 << 20)

    @classmethod
    def safe(cls, users: int, failure: float, seed: int) -> "BonehShaw":
        """With blocks as long as a false accusation of probability `failure` needs."""
        return cls(users, boneh_shaw_block(users, failure), seed)

    @cached_property
    def order(self) -> Counts:
        """Which column of the code stands at each place."""
        generator = np.random.Generator(np.random.Philox(key=int.from_bytes(stream_key("boneh-shaw", self.seed), "little")))
        places: Counts = generator.permutation((self.users + 1) * self.block)
        return places

    @property
    def rows(self) -> Bools:
        """Shape (users, d)."""
        blocks = np.repeat(np.arange(self.users + 1), self.block)
        rows: Bools = blocks[self.order] >= np.arange(1, self.users + 1)[:, None]
        return rows

    def tracing(self, tolerance: float) -> Nonadaptive[StatisticalQuery, float, int]:
        """The attack: the first user i with a mean of block i at least 1/n above that of block i - 1, counted from 0. A feasible word always accuses one."""
        queries = tuple(StatisticalQuery(Bit(number), tolerance) for number in range(len(self.order)))
        return Nonadaptive(queries, lambda answers: self.accused(np.array(answers) >= 0))

    def accused(self, word: Bools) -> int:
        """Who is accused of the word, shape (d,), or -1 for a word that nobody could have made. In whole numbers: n (ones_i - ones_(i - 1)) >= B."""
        ones = np.bincount(self.order // self.block, weights=word, minlength=self.users + 1).astype(np.int64)
        guilty = np.flatnonzero(self.users * np.diff(ones) >= self.block)
        return int(guilty[0]) if len(guilty) else -1
