"""Synthetic data as the equilibrium of a game: a private player of queries against a player of data (Neel, Roth, Wu 2019, Section 4)."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_dimension, check_positive, check_whole
from local_dp.curator.oracle_efficient.oracles import Perfect
from local_dp.curator.oracle_efficient.perturbed import Beside, Perturbation, PerturbedMinimum
from local_dp.curator.oracle_efficient.separated import LISTED, Separated, Weighted
from local_dp.interaction import Adaptive, Play


@dataclass(frozen=True)
class DataPlayer:
    """Follow the perturbed leader: `draws` points a round, each the least of the queries played so far plus Laplace noise of this scale on each coordinate.

    It sees no record. The queries' player must answer its distribution: with one draw a round the game does not settle.
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
        """All points."""
        return np.arange(1 << self.d, dtype=np.int64)

    def points(self, played: Floats | Counts, generator: np.random.Generator) -> Ints:
        """The draws of a round, shape (draws,); `played` is how many of the queries played are 1 on each point."""
        bits = (self.universe[:, None] >> np.arange(self.d)) & 1
        noise = generator.laplace(0.0, self.scale, (self.draws, self.d))
        least: Ints = np.argmin(played - noise @ bits.T, axis=1)
        return least


@dataclass(frozen=True)
class SyntheticGame:
    """Synthetic data for a class of queries that is closed under complement, of a table of n rows (examples of label 0): a curator's adaptive algorithm.

    In each of `rounds` rounds the data's player draws points, and RSPM at `epsilon` finds the query that the table satisfies least often compared with them,
    which the data's player then avoids. The result is how often each point was drawn, shape (2^d,): a table on which all queries are nearly those of the data.
    Privacy: the rounds' losses, composed; the data's player sees the queries played and nothing else. Cost: one call of the oracle a round.
    Source: Neel, Roth, Wu 2019, Section 4, with a sample of draws in place of one.
    """

    queries: Separated
    oracle: Perfect
    n: int
    rounds: int
    epsilon: float

    def __post_init__(self) -> None:
        check_whole("n", self.n, 1, 1 << 32)
        check_whole("rounds", self.rounds, 1, 1 << 20)

    def against(self, player: DataPlayer, generator: np.random.Generator) -> Adaptive[PerturbedMinimum, int, Counts]:
        """The game, its data's player drawing from `generator`."""
        return Adaptive(lambda: self._play(player, generator))

    def _play(self, player: DataPlayer, generator: np.random.Generator) -> Play[PerturbedMinimum, int, Counts]:
        values = self.queries.values(player.universe)
        played = np.zeros(len(player.universe), dtype=np.int64)
        drawn = np.zeros(len(player.universe), dtype=np.int64)
        for _ in range(self.rounds):
            points = player.points(played, generator)
            drawn += np.bincount(points, minlength=len(drawn))
            compared = Beside(player.draws, Weighted(points, np.full(len(points), -self.n, dtype=np.int64)))
            (choice,) = yield (PerturbedMinimum(Perturbation(self.queries, self.epsilon, compared), self.oracle),)
            played += values[choice]
        return drawn


def largest_error(queries: Separated, table: Counts, synthetic: Counts) -> float:
    """The largest difference of a query's frequency in two tables, given as how often each point occurs, shape (2^d,)."""
    points = np.arange(len(table), dtype=np.int64)
    shares = [queries.totals(Weighted(points, counts.astype(np.int64))) / counts.sum() for counts in (table, synthetic)]
    return float(np.abs(shares[0] - shares[1]).max())
