"""k-means by noisy sums (SuLQ)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_whole
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.learners.learner import Learner, features
from local_dp.oracles.statistical.oracles import StatisticalPlay, StatisticalQuery, StatisticalRounds
from local_dp.queries.numbers import check_weights, matrix, written
from local_dp.queries.vectors import CentreSum, NearestCentre, nearest
from local_dp.records import Records


@dataclass(frozen=True)
class Centres:
    """k centres in d dimensions."""

    points: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        for point in self.points or ((),):
            check_weights(point, len(self.points[0]) if self.points else 0)

    def __str__(self) -> str:
        return "; ".join(f"({', '.join(f'{value:.4g}' for value in point)})" for point in self.points)

    def predict(self, records: Records) -> Ints:
        """The nearest centre of each record, shape (n,)."""
        return nearest(matrix(records, features(len(self.points[0]))), np.array(self.points))

    def square_distance(self, records: Records) -> Floats:
        """The square distance of each record to its nearest centre, shape (n,)."""
        points = matrix(records, features(len(self.points[0])))
        centres = np.array(self.points)[nearest(points, np.array(self.points))].T
        squares: Floats = ((points - centres) ** 2).sum(axis=0)
        return squares

    def distance(self, other: "Centres") -> float:
        """The largest difference of a coordinate between centres of the same index."""
        return float(np.abs(np.array(self.points) - np.array(other.points)).max())


@dataclass(frozen=True, kw_only=True)
class KMeans(Learner[Centres]):
    """Lloyd's iteration from the given `start` on records in [-1, 1]^d: each coordinate of each new centre is within alpha of the exact step.

    A round asks for the share of records nearest to each centre and for the sum of their d coordinates. A centre is a sum over a share, so the tolerance
    2 alpha c / 3 is enough where every cluster holds a share of at least c = `least_share`. Source: Blum, Dwork, McSherry, Nissim 2005 (SuLQ); limits 9.
    """

    name: ClassVar[str] = "k-means"
    source: ClassVar[str] = "Blum, Dwork, McSherry, Nissim 2005"
    start: tuple[tuple[float, ...], ...] = ((-0.5, 0.0), (0.5, 0.0))
    rounds_asked: int = 5
    least_share: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.start) < 2 or len({len(point) for point in self.start}) != 1:
            raise InputError(f"start is {self.start!r}; give at least two centres of one dimension")
        check_whole("rounds_asked", self.rounds_asked, 1, 1000)
        if not 0 < self.least_share <= 1 / len(self.start):
            raise InputError(f"least_share is {self.least_share}; give a number above 0 and at most {1 / len(self.start):g} for {len(self.start)} clusters")

    @property
    def proven(self) -> float:
        return 2 * self.alpha * self.least_share / 3

    @property
    def queries(self) -> int:
        return self.rounds_asked * len(self.start) * (len(self.start[0]) + 1)

    @property
    def rounds(self) -> int:
        return self.rounds_asked

    def algorithm(self) -> StatisticalRounds[Centres]:
        return Adaptive(self._play)

    def _play(self) -> StatisticalPlay[Centres]:
        centres = np.array(self.start)
        for _ in range(self.rounds_asked):
            answers = np.array((yield self._questions(centres))).reshape(len(centres), -1)
            held = np.maximum((1 + answers[:, :1]) / 2, self.tolerance / 2)
            centres = np.clip(answers[:, 1:] / held, -1, 1)
        return Centres(tuple(map(tuple, centres.tolist())))

    def _questions(self, centres: Floats) -> tuple[StatisticalQuery, ...]:
        columns, texts, d = features(centres.shape[1]), written(centres.ravel()), centres.shape[1]
        return tuple(
            self.ask(CentreSum(columns, texts, centre, place) if place < d else NearestCentre(columns, texts, centre))
            for centre in range(len(centres))
            for place in (d, *range(d))
        )
