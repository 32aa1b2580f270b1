"""RSPM, report separator-perturbed minimum: private optimisation by one call of an oracle (Neel,
Roth, Wu 2019, Section 3.1).

And synthetic data as the equilibrium of a game: a private player of queries against a player of
data (Section 4).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_dimension, check_positive, check_whole
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.mechanism import Law, Mechanism, independent
from local_dp.curator.oracle_efficient.separated import (
    LISTED,
    Certified,
    Certifying,
    Fail,
    Perfect,
    Separated,
    Weighted,
    labelled,
)
from local_dp.curator.selection.exponential import Labelled
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play
from local_dp.loss import NANO, Pure, nano_epsilon

R = TypeVar("R")
_LISTED = 1 << 14  # noises


@dataclass(frozen=True, eq=False)
class Beside:
    """Public points with whole weights, whose totals are added to `scale` times those of the
    perturbed data."""

    scale: int
    data: Weighted

    def __post_init__(self) -> None:
        check_whole("scale", self.scale, 1, 1 << 20)


NOTHING = Beside(1, Weighted(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)))


@dataclass(frozen=True)
class Perturbation:
    """The examples as weighted points, and the m separators with whole weights eta_i, Pr[eta_i = y]
    prop. to e^(-eps |y| / shift).

    Privacy of the least query under ONE tie-break that ignores the data: epsilon, pure, on all
    databases, one example replaced (proof: docs/heuristics.md). The class's `shift` is enough: 2 m
    for conjunctions and parities, 2 for thresholds. Public points (`beside`) change all differences
    alike. Utility: two totals move by sum |eta_i| at most against each other,
    `bounds.curator.perturbed_excess`.
    """

    queries: Separated
    epsilon: float
    beside: Beside = NOTHING

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    @property
    def step(self) -> Fraction:
        """eps / shift: the loss of a step of one in one noise, in nano-nats."""
        return Fraction(nano_epsilon(self.epsilon), self.queries.shift)

    def draw(self, database: Labelled, draws: Draws) -> Weighted:
        noises = [draws.discrete_laplace(self.step / NANO) for _ in self.queries.separators]
        return self._with(database, noises)

    def law(self, database: Labelled, outcome_of: Callable[[Weighted], R]) -> Law[R]:
        """The law of a function `outcome_of` of the least query, by finitely many noises. Raises
        InputError where infinitely many are needed.

        Where every pattern on the separators is a query's, compare twins that are 1 and 0 on u_i.
        The first loses for eta_i > n and wins for eta_i < -n. So noise clipped to -(n + 1) .. n + 1
        has the same least query. The tails beyond are geometric sums. Public points count as more
        examples.
        """
        public = -(-int(np.abs(self.beside.data.weights).sum()) // self.beside.scale)
        most, m = len(database.x) + public + 1, len(self.queries.separators)
        if not self.queries.full or (2 * most + 1) ** m > _LISTED:
            raise InputError(
                f"{self.queries} has {m} separators; a law is listed up to {_LISTED} noises, for "
                "classes of 2^m queries"
            )
        clipped = ClippedLaplace(nano_epsilon(self.epsilon), self.queries.shift, 2 * most).law(most)
        law: Counter[R] = Counter()
        for noises, weight in independent([clipped] * m):
            law[outcome_of(self._with(database, [noise - most for noise in noises]))] += weight
        return law

    def _with(self, database: Labelled, noises: list[int]) -> Weighted:
        private = labelled(database.x, database.y).with_points(
            self.queries.separators, np.array(noises, dtype=np.int64)
        )
        return Weighted(private.points, self.beside.scale * private.weights).with_points(
            self.beside.data.points, self.beside.data.weights
        )


@dataclass(frozen=True)
class PerturbedMinimum(Mechanism[Labelled, int, Pure]):
    """The query that errs least on the perturbed data: RSPM. The oracle's type must promise that it
    never fails; a failure would not be private.

    Privacy: epsilon, exactly, on all databases (`Perturbation`). Utility, cost: as there, and one
    call. Source: Neel, Roth, Wu 2019, Theorems 4 to 6.
    """

    summary = "Releases the query that errs least on noisy data"
    perturbation: Perturbation
    oracle: Perfect

    @property
    def loss(self) -> Pure:
        return self.perturbation.loss

    def release(self, database: Labelled, draws: Draws) -> int:
        return self.oracle.minimise(self.perturbation.draw(database, draws)).choice

    def law(self, database: Labelled) -> Law[int]:
        return self.perturbation.law(database, lambda data: self.oracle.minimise(data).choice)


@dataclass(frozen=True)
class Attempt:
    """RSPM with an oracle that may fail: NOT private alone, since a failure may depend on one
    record. `robust.RobustRelease` makes it private."""

    perturbation: Perturbation
    oracle: Certifying

    @property
    def loss(self) -> Pure:
        return self.perturbation.loss

    def attempt(self, database: Labelled, draws: Draws) -> int | Fail:
        return self._outcome(self.perturbation.draw(database, draws))

    def law(self, database: Labelled) -> Law[int | Fail]:
        """With failures, where the oracle fails alike on noises beyond those of
        `Perturbation.law`."""
        return self.perturbation.law(database, self._outcome)

    def _outcome(self, data: Weighted) -> int | Fail:
        answer = self.oracle.minimise(data)
        return answer.choice if isinstance(answer, Certified) else answer


@dataclass(frozen=True)
class DataPlayer:
    """Follow the perturbed leader: `draws` points a round, each the least of the queries played so
    far plus Laplace noise of this scale on each coordinate.

    It sees no record. The queries' player must answer its distribution: with one draw a round the
    game does not settle.
    """

    d: int
    draws: int
    scale: float

    def __post_init__(self) -> None:
        check_dimension(self.d, LISTED)
        check_whole("draws", self.draws, 1, 1 << 20)
        check_positive("scale", self.scale)

    @property
    def universe(self) -> Ints:
        return np.arange(1 << self.d, dtype=np.int64)

    def points(self, plays: Floats | Counts, generator: np.random.Generator) -> Ints:
        """The draws of a round, shape (draws,); `plays` is how many of the queries played are 1 on
        each point."""
        bits = (self.universe[:, None] >> np.arange(self.d)) & 1
        noise = generator.laplace(0.0, self.scale, (self.draws, self.d))
        return np.asarray(np.argmin(plays - noise @ bits.T, axis=1))


@dataclass(frozen=True)
class SyntheticGame:
    """Synthetic data for queries that are closed under complement, from a table of n rows (examples
    of label 0): a curator's adaptive algorithm.

    In each of `rounds` rounds the data's player draws points. RSPM at `epsilon` finds the query
    that the table satisfies least often compared with them. The result is how often each point was
    drawn, shape (2^d,): a table on which all queries are nearly right. Privacy: the rounds' losses,
    composed; the data's player sees the queries played and nothing else. Cost: one call of the
    oracle a round. Source: Neel, Roth, Wu 2019, Section 4, with a sample of draws in place of one.
    """

    queries: Separated
    oracle: Perfect
    n: int
    rounds: int
    epsilon: float

    def __post_init__(self) -> None:
        check_whole("n", self.n, 1, 1 << 32)
        check_whole("rounds", self.rounds, 1, 1 << 20)

    def against(
        self, player: DataPlayer, generator: np.random.Generator
    ) -> Adaptive[PerturbedMinimum, int, Counts]:
        """The game; its data's player draws from `generator`."""
        return Adaptive(lambda: self._play(player, generator))

    def _play(
        self, player: DataPlayer, generator: np.random.Generator
    ) -> Play[PerturbedMinimum, int, Counts]:
        values = self.queries.values(player.universe)
        plays = np.zeros(len(player.universe), dtype=np.int64)
        counts = np.zeros(len(player.universe), dtype=np.int64)
        for _ in range(self.rounds):
            points = player.points(plays, generator)
            counts += np.bincount(points, minlength=len(counts))
            beside = Beside(
                player.draws, Weighted(points, np.full(len(points), -self.n, dtype=np.int64))
            )
            (choice,) = yield (
                PerturbedMinimum(Perturbation(self.queries, self.epsilon, beside), self.oracle),
            )
            plays += values[choice]
        return counts


def largest_error(queries: Separated, table: Counts, synthetic: Counts) -> float:
    """The largest difference of a query's frequency in two tables, given as how often each point
    occurs, shape (2^d,)."""
    points = np.arange(len(table), dtype=np.int64)
    shares = [
        queries.totals(Weighted(points, counts.astype(np.int64))) / counts.sum()
        for counts in (table, synthetic)
    ]
    return float(np.abs(shares[0] - shares[1]).max())
