"""How clients tell the gradients of a loss in one round: a coordinate each, or all of it at once; the least error by closed form is taken."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.means import Body, VectorChoice, vector_choices
from local_dp.bounds.response import response_gain
from local_dp.domains import MAX_DIMENSION
from local_dp.errors import InputError
from local_dp.learners.learner import features
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.margins import Descent, DescentVector
from local_dp.queries.numbers import STEPS
from local_dp.randomizers.numbers.one_bit_mean import OneBitMean
from local_dp.randomizers.vectors.coordinates import SampledSigns
from local_dp.randomizers.vectors.nearest_direction import NearestDirection
from local_dp.tallies import Tally

WAYS = ("best", "one-bit-mean", "sampled-signs", "nearest-direction")
GRID = 1 << 14  # steps of the lattice of a vector, to either side


@dataclass(frozen=True)
class Gradients(ABC):
    """Minus the gradient of the hinge loss at given weights, of records of norm at most 1 whose d coordinates are at most `scale`, from one report a client.

    n times the expected square norm of the noise of a round is at most `moment`, n its clients, who are dealt out over `cohorts` cohorts.
    """

    epsilon: float
    d: int
    scale: float
    moment: float

    @property
    @abstractmethod
    def cohorts(self) -> int:
        """How many cohorts a round has."""

    @abstractmethod
    def asked(self, weights: tuple[float, ...], ends: Sequence[int]) -> tuple[LocalQuery, ...]:
        """What is asked of the clients between these ends, one cohort between any two."""

    @abstractmethod
    def read(self, tallies: tuple[Tally, ...]) -> Floats:
        """The mean of the told directions, unbiased up to the grid, shape (d,)."""


@dataclass(frozen=True)
class ByCoordinate(Gradients):
    """Each cohort tells one coordinate in one bit: a moment of (d scale C)^2."""

    @property
    def cohorts(self) -> int:
        return self.d

    @cached_property
    def randomizer(self) -> OneBitMean:
        return OneBitMean(self.epsilon, steps=STEPS)

    def asked(self, weights: tuple[float, ...], ends: Sequence[int]) -> tuple[LocalQuery, ...]:
        queries = (Descent("hinge", features(self.d), "y", weights, place, self.scale) for place in range(self.d))
        return tuple(LocalQuery(query, self.randomizer, Cohort(*cut)) for query, cut in zip(queries, pairwise(ends), strict=True))

    def read(self, tallies: tuple[Tally, ...]) -> Floats:
        return self.scale * np.array([2 * float(self.randomizer.estimate(tally).value) - 1 for tally in tallies])


@dataclass(frozen=True)
class ByVector(Gradients):
    """All clients of a round tell of the whole gradient: signs of some coordinates (of the cube of `scale`), or the nearest direction (of the unit ball)."""

    choice: VectorChoice

    @property
    def cohorts(self) -> int:
        return 1

    @cached_property
    def randomizer(self) -> SampledSigns | NearestDirection:
        made: Callable[..., SampledSigns | NearestDirection] = SampledSigns if self.choice.name == "sampled-signs" else NearestDirection
        return made(self.epsilon, d=self.d, steps=GRID, **dict(self.choice.settings))

    @property
    def reach(self) -> float:
        """What a coordinate of 1 stands for."""
        return self.scale if self.choice.name == "sampled-signs" else 1.0

    def asked(self, weights: tuple[float, ...], ends: Sequence[int]) -> tuple[LocalQuery, ...]:
        randomizer = self.randomizer
        query = DescentVector("hinge", features(self.d), "y", weights, self.reach, randomizer.ball, GRID)
        return (LocalQuery(query, randomizer, Cohort(*ends)),)

    def read(self, tallies: tuple[Tally, ...]) -> Floats:
        (tally,), randomizer = tallies, self.randomizer
        return self.reach * (randomizer.average(tally) if isinstance(randomizer, SampledSigns) else randomizer.estimate(tally).value)


@lru_cache(maxsize=64)
def gradients_of(epsilon: float, d: int, scale: float, told: str = "best") -> Gradients:
    """The way called `told`, or that of the least moment; where they are equal a bit of one coordinate, whose cohorts are of a fixed size."""
    ways: dict[str, Gradients] = {"one-bit-mean": ByCoordinate(epsilon, d, scale, (d * scale * response_gain(epsilon)) ** 2)}
    if d <= MAX_DIMENSION:
        bodies: tuple[tuple[Body, str, float], ...] = (("cube", "sampled-signs", scale), ("ball", "nearest-direction", 1.0))
        for body, name, reach in bodies:
            choice = next(choice for choice in vector_choices(epsilon, body, d) if choice.name == name)
            ways[name] = ByVector(epsilon, d, scale, choice.moment * reach**2, choice)
    if told != "best" and told not in ways:
        raise InputError(f"{told} tells of at most {MAX_DIMENSION} coordinates, and d is {d}")
    return ways[told] if told in ways else min(ways.values(), key=lambda way: way.moment * (1 + 1e-9 * (way.cohorts == 1)))
