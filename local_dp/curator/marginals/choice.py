"""Which mechanism answers all t-way marginals: by closed form, from public numbers alone, and why."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from local_dp.checks import check_dimension, check_whole
from local_dp.curator.marginals.base import DENSE
from local_dp.curator.marginals.weights import best_shares, odd_meetings
from local_dp.curator.rounded_normal import least_variance
from local_dp.loss import approximate

Kind: TypeAlias = Literal["fourier", "mwem", "mst"]
MOST_CHARACTERS = 1 << 22
NOISY = 8
"""Noise of more than one part in so many of the average cell: on `fair`, where a spanning tree of pairs errs as much as the noise of all characters."""
_SQUARE = 10**12


@dataclass(frozen=True)
class MarginalTask:
    """All marginals of t of d binary columns of a table of `size` records, within (epsilon, delta)."""

    d: int
    t: int
    size: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_dimension(self.d)
        check_whole("t", self.t, 1, min(self.d, 16))
        check_whole("the number of records", self.size, 1, 1 << 50)
        approximate(self.epsilon, self.delta)

    @property
    def characters(self) -> int:
        """How many sums the Fourier mechanism takes noise for."""
        return sum(math.comb(self.d, s) for s in range(1, self.t + 1))

    @property
    def deviation(self) -> float:
        """The standard error of each cell of the Fourier mechanism, in records: (4 / mu^2) (sum_s C(t, s) / a_s) max_w sum_s K_s(w) a_s over 4^t, its root.

        `FourierGaussian.deviation` is this but for the rounding of its variances.
        """
        shares = best_shares(self.d, self.t).tolist()
        move = max(sum(a * odd_meetings(self.d, s, w) for s, a in enumerate(shares, 1)) for w in range(1, self.d + 1))
        held = sum(math.comb(self.t, s) / a for s, a in enumerate(shares, 1))
        square = move * held * least_variance(_SQUARE, approximate(self.epsilon, self.delta)) / _SQUARE
        return 2.0 ** (1 - self.t) * math.sqrt(square)


@dataclass(frozen=True)
class Choice:
    """The mechanism, and the reason in one sentence."""

    kind: Kind
    reason: str


def choose(task: MarginalTask) -> Choice:
    """The Fourier mechanism where its noise is small against the average cell; else what models the data: MWEM on up to 2^22 rows, MST beyond.

    It sees no record, so it costs nothing, and the reason may be told.
    """
    if task.characters > MOST_CHARACTERS:
        return Choice("mst", f"{task.characters:,} characters are too many to release; a tree of pairs takes {2 * task.d - 1}")
    share, cell = task.deviation / task.size, 2.0**-task.t
    told = f"noise of {share:.2g} of the records on a cell, {cell:g} on average"
    if share * NOISY <= cell:
        return Choice("fourier", f"all characters at once have {told}: little, and no bias")
    if task.d <= DENSE:
        return Choice("mwem", f"all characters at once would have {told}: too much, and the 2^{task.d} rows can be weighed")
    return Choice("mst", f"all characters at once would have {told}: too much, and the 2^{task.d} rows cannot be weighed")
