"""Synthetic binary tables that answer a workload of marginals: MWEM, pure or concentrated, and
DualQuery, pure."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, Self, TypeAlias

import numpy as np

from local_dp.accounting.losses import rho_within
from local_dp.arrays import Counts, Floats
from local_dp.checks import check_positive, check_share, check_whole
from local_dp.curator.account import PaidOracle
from local_dp.curator.counts import NoisyCounts
from local_dp.curator.inversion import rounded_normals
from local_dp.curator.marginals.base import (
    DENSE,
    BinaryTable,
    Marginals,
    Synthetic,
    Weights,
    spread,
)
from local_dp.curator.marginals.baselines import OneMarginal
from local_dp.curator.mechanism import L_co, Mechanism
from local_dp.curator.selection.exponential import (
    BoundedRange,
    ByScore,
    ExponentialChoice,
    numbered,
)
from local_dp.curator.selection.groups import Listed
from local_dp.curator.selection.sampled import Sampled
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play, run
from local_dp.loss import ATTO, NANO, Approximate, Concentrated, Pure, nano_epsilon


@dataclass(frozen=True, eq=False)
class WorstMarginal(ByScore[BinaryTable, int]):
    """The number of a marginal that `expected`, whole counts of all cells, answers badly: the score
    is the sum of its cells' errors.

    Privacy: epsilon, pure: a replaced record moves two cells of a marginal by 1, so its score by at
    most 2. `BoundedRange` gives it in rho. Utility: within 4 ln(k / beta) / eps of the worst of k,
    except with probability beta. Cost: one transform of the table.
    """

    summary = "Chooses the marginal that is answered worst"
    workload: Marginals
    expected: Counts
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.workload.check_counts(self.expected)

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.epsilon, 2)

    def candidates(self, database: BinaryTable) -> Listed:
        errors = np.abs(self.workload.counts(database) - self.expected)
        return numbered(np.add.reduceat(errors, self.workload.starts[:-1]))


@dataclass(frozen=True)
class GaussianMarginal(Mechanism[BinaryTable, NoisyCounts, Concentrated]):
    """All cells of one marginal, the columns of `mask`, each with rounded normal noise of this
    whole variance.

    Privacy: rho = 1 / variance: a replaced record moves two cells by 1, so the vector by sqrt(2).
    """

    summary = "Releases one marginal with normal noise"
    d: int
    mask: int
    variance: int

    def __post_init__(self) -> None:
        Marginals(self.d, (self.mask,))
        check_whole("the variance", self.variance, 1, 1 << 36)

    @property
    def loss(self) -> Concentrated:
        return Concentrated(-(-ATTO // self.variance))

    def release(self, database: BinaryTable, draws: Draws) -> NoisyCounts:
        cells = Marginals(self.d, (self.mask,)).counts(database)
        return NoisyCounts(cells + rounded_normals(draws, self.variance, len(cells)))


Answer: TypeAlias = int | NoisyCounts
_MOST_ROUNDS = 1 << 16
_REPLAYS = 200


@dataclass(frozen=True)
class Rounds(Generic[L_co]):
    """The number of rounds, and the price of each choice and each measurement: its type is the
    privacy of MWEM."""

    rounds: int

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds, 1, _MOST_ROUNDS)

    @property
    @abstractmethod
    def loss(self) -> L_co:
        """Of all rounds, fixed beforehand."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation of the noise on a measured cell, in records."""

    def replays(self, size: int) -> int:
        """How often all measurements are replayed after each round: n / (T deviation) times, so
        that noise is not learned; from 1 to 200 / T times."""
        return max(1, min(_REPLAYS // self.rounds, round(size / (self.rounds * self.deviation))))

    @abstractmethod
    def choose(self, workload: Marginals, expected: Counts) -> Mechanism[BinaryTable, int, L_co]:
        """Asks for the marginal with the worst answer."""

    @abstractmethod
    def measure(
        self, workload: Marginals, number: int
    ) -> Mechanism[BinaryTable, NoisyCounts, L_co]:
        """Asks for all cells of one."""


def _split(whole: int, rounds: int, share: float) -> tuple[int, int]:
    """The budget of a round, and the share of it that chooses."""
    check_share("the share that chooses", share)
    check_whole("rounds", rounds, 1, _MOST_ROUNDS)
    return whole // rounds, math.floor(whole // rounds * share)


@dataclass(frozen=True)
class PureRounds(Rounds[Pure]):
    """Epsilons add up: `choosing` for each choice and `measuring` for each measurement, with
    discrete Laplace noise."""

    choosing: float
    measuring: float

    @classmethod
    def within(cls, epsilon: float, rounds: int, share: float = 0.5) -> Self:
        """As many rounds within epsilon; this share of it chooses. Raises InputError where too
        little is left for a round."""
        each, part = _split(nano_epsilon(epsilon), rounds, share)
        if part < 1:
            raise InputError(
                f"epsilon is {epsilon:g} for {rounds:,} rounds; give a larger epsilon or fewer "
                "rounds"
            )
        return cls(rounds, part / NANO, (each - part) / NANO)

    @property
    def loss(self) -> Pure:
        return Pure(self.rounds * (nano_epsilon(self.choosing) + nano_epsilon(self.measuring)))

    @property
    def deviation(self) -> float:
        # the root of 1 / (cosh(e / 2) - 1)
        return 1 / (math.sqrt(2) * math.sinh(self.measuring / 4))

    def choose(self, workload: Marginals, expected: Counts) -> WorstMarginal:
        return WorstMarginal(workload, expected, self.choosing)

    def measure(self, workload: Marginals, number: int) -> OneMarginal:
        return OneMarginal(workload.d, workload.masks[number], self.measuring)


@dataclass(frozen=True)
class ConcentratedRounds(Rounds[Concentrated]):
    """Rhos add up: choices of epsilon `choosing`, of rho choosing^2 / 8, and measurements with
    rounded normal noise of this whole variance, of rho 1 / variance."""

    choosing: float
    variance: int

    @classmethod
    def within(cls, rho: Concentrated, rounds: int, share: float = 0.3) -> Self:
        """As many rounds within rho; this share of it chooses. Raises InputError where too little
        is left for a round."""
        each, choice = _split(rho.atto_rho, rounds, share)
        nano = math.isqrt(8 * choice)
        if nano < 1 or each - choice < 1:
            raise InputError(f"{rho} for {rounds:,} rounds; give a larger rho or fewer rounds")
        return cls(rounds, nano / NANO, -(-ATTO // (each - choice)))

    @property
    def loss(self) -> Concentrated:
        return Concentrated(
            self.rounds * (-(-(nano_epsilon(self.choosing) ** 2) // 8) - (-ATTO // self.variance))
        )

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)

    def choose(self, workload: Marginals, expected: Counts) -> BoundedRange[BinaryTable, int]:
        return BoundedRange(WorstMarginal(workload, expected, self.choosing))

    def measure(self, workload: Marginals, number: int) -> GaussianMarginal:
        return GaussianMarginal(workload.d, workload.masks[number], self.variance)


@dataclass(frozen=True)
class Mwem(Mechanism[BinaryTable, Synthetic, L_co], Generic[L_co]):
    """A synthetic table of d <= 22 binary columns that answers a workload of marginals:
    multiplicative weights, exponential mechanism.

    Each round chooses the marginal with the worst answer, and measures it whole. Then it replays
    all measurements so far, the newest first. A row's weight is multiplied by e^(the share that its
    cell should have, less the share that it has). Steps are short, so measurements are not fitted
    to the last digit. A marginal that is chosen twice counts twice. Privacy: the loss of its
    rounds, adaptively chosen; all else is post-processing. Utility: measured. Cost: O(d 2^d) a
    round and O(2^d) a replay. Source: Hardt, Ligett, McSherry 2012; whole marginals and rho as in
    McKenna, Mullins, Sheldon, Miklau 2022; lecture notes 3.2.3.
    """

    summary = "Releases a synthetic table by multiplicative weights"
    workload: Marginals
    rounds: Rounds[L_co]

    def __post_init__(self) -> None:
        check_whole("d", self.workload.d, 1, DENSE)

    @property
    def loss(self) -> L_co:
        return self.rounds.loss

    def algorithm(
        self, size: int
    ) -> Adaptive[Mechanism[BinaryTable, Answer, L_co], Answer, Synthetic]:
        """As a curator's algorithm for a table of `size` records, which are public."""
        check_whole("the number of records", size, 1, 1 << 52)
        return Adaptive(lambda: self._play(size))

    def release(self, database: BinaryTable, draws: Draws) -> Synthetic:
        return run(self.algorithm(database.size), PaidOracle(database, draws))

    def _play(self, size: int) -> Play[Mechanism[BinaryTable, Answer, L_co], Answer, Synthetic]:
        weights, measurements = Weights(self.workload.d), list[tuple[int, Floats]]()
        for _ in range(self.rounds.rounds):
            expected = np.rint(size * self.workload.of_histogram(weights.flat)).astype(np.int64)
            (number,) = yield (self.rounds.choose(self.workload, expected),)
            # a choice is answered by a number, a measurement by counts
            assert isinstance(number, int)
            (cells,) = yield (self.rounds.measure(self.workload, number),)
            assert isinstance(cells, NoisyCounts)
            measurements.insert(0, (self.workload.masks[number], cells.counts / size))
            for _ in range(self.rounds.replays(size)):
                for mask, shares in measurements:
                    weights.move(mask, shares)
                weights.normalise()
        return Synthetic(self.workload.d, size * weights.flat)


def pure_mwem(workload: Marginals, size: int, epsilon: float) -> Mwem[Pure]:
    """With `pure_rounds` rounds, half of epsilon for the choices."""
    return Mwem(workload, PureRounds.within(epsilon, pure_rounds(workload.d, size, epsilon)))


def concentrated_mwem(workload: Marginals, size: int, budget: Approximate) -> Mwem[Concentrated]:
    """With `concentrated_rounds` rounds, 3/10 of rho for the choices; for a `ConcentratedAccount`
    of this budget."""
    rho = rho_within(budget)
    return Mwem(
        workload, ConcentratedRounds.within(rho, concentrated_rounds(workload.d, size, rho.rho))
    )


def concentrated_rounds(d: int, size: int, rho: float) -> int:
    """T = n sqrt(rho d ln 2) / 70, from 1 to 200: balances the distance of the weights from T
    measurements with the noise of these."""
    return min(200, max(1, round(size * math.sqrt(rho * d * math.log(2)) / 70)))


def pure_rounds(d: int, size: int, epsilon: float) -> int:
    """T = (n eps)^(2/3) (d ln 2)^(1/3) / 40, from 1 to 200: as `concentrated_rounds`, for noise of
    T / (n eps)."""
    rounds = math.pow(size * epsilon, 2 / 3) * math.pow(d * math.log(2), 1 / 3) / 40
    return min(200, max(1, round(rounds)))


@dataclass(frozen=True, eq=False)
class SampledQueries(Sampled[BinaryTable]):
    """`count` independent choices among the cells of a workload and their complements, numbered
    cells first, each by the exponential mechanism.

    The score of a cell is its number of records above the `expected` one, a whole number; of its
    complement, the opposite. Privacy: count times `each`, pure: a replaced record moves a score by
    at most 1.
    """

    summary = "Chooses several badly answered queries"
    workload: Marginals
    expected: Counts
    count: int
    each: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.workload.check_counts(self.expected)

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.each)

    def candidates(self, database: BinaryTable) -> Listed:
        above = self.workload.counts(database) - self.expected
        return numbered(np.concatenate([above, -above]))


@dataclass(frozen=True)
class DualQuery:
    """A synthetic table of `rounds` rows from queries that are drawn where the rows so far have too
    few records: a curator's adaptive algorithm, pure.

    Each round draws `samples` cells or complements: query q with weight e^(eta sum (q(x) - q(row))
    over the rows so far), in whole counts. It then adds the row that satisfies most of them.
    Privacy: eta samples rounds (rounds - 1) / n: the exponential mechanism of 2 eta t / n in the
    round after t rows, adaptively chosen. Utility: measured; a table of few rows. Cost: O(samples
    2^d + cells) a round. Source: Gaboardi, Gallego Arias, Hsu, Roth, Wu 2014, Algorithm 1.
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
        eta = nano_epsilon(epsilon) / NANO * size / (samples * rounds * (rounds - 1))
        return cls(workload, rounds, samples, eta)

    def losses(self, size: int) -> tuple[Pure, ...]:
        """Of all rounds but the first, which sees no record: fixed beforehand."""
        return tuple(
            Pure(self.samples * nano_epsilon(2 * self.eta * rows / size))
            for rows in range(1, self.rounds)
        )

    def algorithm(
        self, size: int, seed: int
    ) -> Adaptive[SampledQueries, tuple[int, ...], Synthetic]:
        """For a table of `size` records; a seed's public coins decide the first round's queries and
        all ties."""
        return Adaptive(lambda: self._play(size, np.random.default_rng(seed)))

    def _play(
        self, size: int, coins: np.random.Generator
    ) -> Play[SampledQueries, tuple[int, ...], Synthetic]:
        d = self.workload.d
        rows = np.zeros(1 << d)
        sample = tuple(coins.integers(0, 2 * self.workload.cells, self.samples).tolist())
        for row in range(self.rounds):
            if row:
                cells = self.workload.of_histogram(rows) * (self.rounds / row)
                expected, each = np.rint(cells).astype(np.int64), 2 * self.eta * row / size
                (sample,) = yield (SampledQueries(self.workload, expected, self.samples, each),)
            best = int(np.argmax(self._count_satisfied(sample) + coins.random(1 << d) / 2))
            rows[best] += size / self.rounds
        return Synthetic(d, rows)

    def _count_satisfied(self, sample: tuple[int, ...]) -> Floats:
        """How many of the queries each row satisfies, up to a number that all rows share."""
        numbers, d, cells = np.array(sample), self.workload.d, self.workload.cells
        weights = np.where(numbers < cells, 1.0, -1.0)
        signs = np.bincount(numbers % cells, weights, cells).astype(np.float64)
        total = np.zeros((2,) * d)
        for mask, start in zip(
            self.workload.masks, self.workload.starts[:-1].tolist(), strict=True
        ):
            own = signs[start : start + (1 << mask.bit_count())]
            if own.any():
                total += spread(d, mask, own)
        return total.ravel()


def dual_terms(size: int, epsilon: float) -> tuple[int, int]:
    """4/3 and 1/2 of (n eps)^(1/3) rounds and samples, so that eta of `within` does not depend on
    n. Public."""
    scale = math.pow(size * epsilon, 1 / 3)
    return max(2, round(4 * scale / 3)), max(1, round(scale / 2))
