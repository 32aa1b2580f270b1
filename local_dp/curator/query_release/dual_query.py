"""DualQuery: weights on the queries in place of weights on the rows, and a row that answers a sample of them; pure."""

import math
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.checks import check_positive, check_whole
from local_dp.curator.marginals.base import DENSE, BinaryTable, Marginals, Synthetic, spread
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.curator.selection.groups import Listed
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play
from local_dp.loss import NANO, Pure, nano_epsilon

_LISTED = 1 << 12  # outcomes


@dataclass(frozen=True, eq=False)
class SampledQueries(Mechanism[BinaryTable, tuple[int, ...], Pure]):
    """`count` independent choices among the cells of a workload and their complements, numbered cells first, each by the exponential mechanism.

    The score of a cell is its number of records above the `expected` one, a whole number; of its complement, the opposite.
    Privacy: count times `each`, pure: a replaced record moves a score by at most 1.
    """

    workload: Marginals
    expected: Counts
    count: int
    each: float

    def __post_init__(self) -> None:
        check_whole("count", self.count, 1, 1 << 16)
        if self.expected.shape != (self.workload.cells,) or self.expected.dtype.kind != "i":
            raise InputError(f"the expected counts have shape {self.expected.shape}; give a whole number for each of {self.workload.cells} cells")
        self.choice  # noqa: B018 - refuses a wrong epsilon

    @property
    def choice(self) -> ExponentialChoice:
        """Of one of them."""
        return ExponentialChoice(self.each)

    @property
    def loss(self) -> Pure:
        return Pure(self.count * self.choice.loss.nano)

    def release(self, database: BinaryTable, draws: Draws) -> tuple[int, ...]:
        return self.choice.choose_many(self._candidates(database), self.count, draws)

    def law(self, database: BinaryTable) -> Law[tuple[int, ...]]:
        """Raises InputError above 2^12 outcomes."""
        if (2 * self.workload.cells) ** self.count > _LISTED:
            raise InputError(f"there are {2 * self.workload.cells} queries to choose {self.count} of; a law is listed up to {_LISTED} outcomes")
        law = self.choice.law(self._candidates(database))
        return {tuple(cell for cell, _ in choices): prod(weight for _, weight in choices) for choices in product(law.items(), repeat=self.count)}

    def _candidates(self, database: BinaryTable) -> Listed:
        counts = np.rint(self.workload.answers(database)).astype(np.int64)
        scores = np.concatenate([counts - self.expected, self.expected - counts])
        return Listed(scores, np.arange(len(scores)))


@dataclass(frozen=True)
class DualQuery:
    """A synthetic table of `rounds` rows from queries that are drawn where the rows so far have too few records: a curator's adaptive algorithm, pure.

    Each round draws `samples` cells or complements: query q with weight e^(eta sum (q(x) - q(row)) over the rows so far), in whole counts. It then adds the
    row that satisfies most of them. Only the drawing sees records. It is over the queries, so any solver may find the row; here all 2^d are tried.
    Privacy: eta samples rounds (rounds - 1) / n: the exponential mechanism of 2 eta t / n in the round after t rows, adaptively chosen.
    Utility: measured; a table of few rows. Cost: O(samples 2^d + cells) a round.
    Source: Gaboardi, Gallego Arias, Hsu, Roth, Wu 2014, Algorithm 1.
    """

    workload: Marginals
    rounds: int
    samples: int
    eta: float

    def __post_init__(self) -> None:
        check_whole("d", self.workload.d, 1, DENSE)
        check_whole("rounds", self.rounds, 1, 1 << 16)
        check_whole("samples", self.samples, 1, 1 << 16)
        check_positive("eta", self.eta)

    @classmethod
    def within(cls, workload: Marginals, size: int, epsilon: float) -> "DualQuery":
        """The largest eta for epsilon and n records, with `dual_terms` rounds and samples."""
        rounds, samples = dual_terms(size, epsilon)
        return cls(workload, rounds, samples, nano_epsilon(epsilon) / NANO * size / (samples * rounds * (rounds - 1)))

    def losses(self, size: int) -> tuple[Pure, ...]:
        """Of all rounds but the first, which sees no record: fixed beforehand."""
        return tuple(Pure(self.samples * nano_epsilon(self._each(rows, size))) for rows in range(1, self.rounds))

    def algorithm(self, size: int, seed: int) -> Adaptive[SampledQueries, tuple[int, ...], Synthetic]:
        """For a table of `size` records; a seed's public coins decide the first round's queries and all ties."""
        return Adaptive(lambda: self._play(size, np.random.default_rng(seed)))

    def _each(self, rows: int, size: int) -> float:
        """The epsilon of one draw after this many rows."""
        return 2 * self.eta * rows / size

    def _play(self, size: int, coins: np.random.Generator) -> Play[SampledQueries, tuple[int, ...], Synthetic]:
        d = self.workload.d
        rows = np.zeros(1 << d)
        sample = tuple(coins.integers(0, 2 * self.workload.cells, self.samples).tolist())
        for row in range(self.rounds):
            if row:
                expected = np.rint(self.workload.of_histogram(rows) * (self.rounds / row)).astype(np.int64)
                (sample,) = yield (SampledQueries(self.workload, expected, self.samples, self._each(row, size)),)
            best = int(np.argmax(self._satisfied(sample) + coins.random(1 << d) / 2))
            rows[best] += size / self.rounds
        return Synthetic(d, rows)

    def _satisfied(self, sample: tuple[int, ...]) -> Floats:
        """How many of the queries each row satisfies, up to a number that all rows share."""
        cells, d = np.array(sample), self.workload.d
        signs = np.bincount(cells % self.workload.cells, np.where(cells < self.workload.cells, 1.0, -1.0), self.workload.cells).astype(np.float64)
        total = np.zeros((2,) * d)
        for mask, start in zip(self.workload.masks, self.workload.starts[:-1].tolist(), strict=True):
            own = signs[start : start + (1 << mask.bit_count())]
            if own.any():
                total += spread(d, mask, own)
        return total.ravel()


def dual_terms(size: int, epsilon: float) -> tuple[int, int]:
    """4/3 and 1/2 of (n eps)^(1/3) rounds and samples, so that eta of `within` does not depend on n. Public."""
    scale = math.pow(size * epsilon, 1 / 3)
    return max(2, round(4 * scale / 3)), max(1, round(scale / 2))
