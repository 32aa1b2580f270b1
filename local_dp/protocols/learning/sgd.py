"""Locally private stochastic gradient descent: an interactive local algorithm, not a
statistical-query one; and the reports of its gradients."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.means import Body, VectorChoice, vector_choices
from local_dp.bounds.response import response_gain
from local_dp.checks import check_share, check_whole
from local_dp.domains import MAX_DIMENSION
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.learners.examples import BARELY, error_rate, skewed_examples
from local_dp.learners.halfspaces import Halfspace, check_margin
from local_dp.learners.learner import features
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import LocalProtocol, PlainData, parameter
from local_dp.queries.query import STEPS, written
from local_dp.queries.vectors import Descent, DescentVector
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.vectors.coordinates import NearestDirection, SampledSigns
from local_dp.tallies import Tally

GRID = 1 << 14  # steps of the lattice of a vector, to either side


@dataclass(frozen=True)
class Gradients(ABC):
    """Minus the hinge loss's gradient, for records of norm 1 and coordinates `scale`, by `cohorts`
    a round; its noise's n E||.||^2 is at most `moment`."""

    epsilon: float
    d: int
    scale: float
    moment: float

    @property
    @abstractmethod
    def cohorts(self) -> int:
        """The number of cohorts of a round."""

    @abstractmethod
    def queries(self, weights: tuple[float, ...], ends: Sequence[int]) -> tuple[LocalQuery, ...]:
        """The queries of a round, one cohort between any two ends."""

    @abstractmethod
    def read(self, tallies: tuple[Tally, ...]) -> Floats:
        """The mean of the reported directions, unbiased up to the grid, shape (d,)."""


@dataclass(frozen=True)
class ByCoordinate(Gradients):
    """Each cohort reports one coordinate in one bit: a moment of (d scale C)^2."""

    @property
    def cohorts(self) -> int:
        return self.d

    @cached_property
    def randomizer(self) -> OneBitMean:
        return OneBitMean(self.epsilon, steps=STEPS)

    def queries(self, weights: tuple[float, ...], ends: Sequence[int]) -> tuple[LocalQuery, ...]:
        descents = (
            Descent("hinge", features(self.d), "y", weights, place, self.scale)
            for place in range(self.d)
        )
        return tuple(
            LocalQuery(query, self.randomizer, Cohort(*cut))
            for query, cut in zip(descents, pairwise(ends), strict=True)
        )

    def read(self, tallies: tuple[Tally, ...]) -> Floats:
        return self.scale * np.array(
            [2 * float(self.randomizer.estimate(tally).value) - 1 for tally in tallies]
        )


@dataclass(frozen=True)
class ByVector(Gradients):
    """Each client reports the whole gradient: signs of some coordinates (of the cube of `scale`),
    or the nearest direction (of the unit ball)."""

    cohorts = 1
    choice: VectorChoice

    @cached_property
    def randomizer(self) -> SampledSigns | NearestDirection:
        make: Callable[..., SampledSigns | NearestDirection] = (
            SampledSigns if self.choice.name == "sampled-signs" else NearestDirection
        )
        return make(self.epsilon, d=self.d, steps=GRID, **dict(self.choice.settings))

    @property
    def reach(self) -> float:
        """The value of a coordinate of 1."""
        return self.scale if self.choice.name == "sampled-signs" else 1.0

    def queries(self, weights: tuple[float, ...], ends: Sequence[int]) -> tuple[LocalQuery, ...]:
        randomizer = self.randomizer
        query = DescentVector(
            "hinge", features(self.d), "y", weights, self.reach, randomizer.ball, GRID
        )
        return (LocalQuery(query, randomizer, Cohort(*ends)),)

    def read(self, tallies: tuple[Tally, ...]) -> Floats:
        (tally,) = tallies
        if isinstance(self.randomizer, SampledSigns):
            return self.reach * self.randomizer.average(tally)
        return self.reach * self.randomizer.estimate(tally).value


@lru_cache(maxsize=64)
def gradients_of(epsilon: float, d: int, scale: float, name: str = "best") -> Gradients:
    """The way called `name`, or that of least moment; ties go to one bit of one coordinate, whose
    cohorts have fixed sizes."""
    ways: dict[str, Gradients] = {
        "one-bit-mean": ByCoordinate(epsilon, d, scale, (d * scale * response_gain(epsilon)) ** 2)
    }
    if d <= MAX_DIMENSION:
        bodies: tuple[tuple[Body, str, float], ...] = (
            ("cube", "sampled-signs", scale),
            ("ball", "nearest-direction", 1.0),
        )
        for body, way, reach in bodies:
            choices = vector_choices(epsilon, body, d)
            choice = next(choice for choice in choices if choice.name == way)
            ways[way] = ByVector(epsilon, d, scale, choice.moment * reach**2, choice)
    if name != "best" and name not in ways:
        raise InputError(
            f"{name} takes at most {MAX_DIMENSION} coordinates, and d is {d}; choose one-bit-mean "
            "or best"
        )
    if name in ways:
        return ways[name]
    return min(ways.values(), key=lambda way: way.moment * (1 + 1e-9 * (way.cohorts == 1)))


@dataclass(frozen=True, kw_only=True)
class LocalSGD(LocalProtocol[Halfspace]):
    """Projected descent on the hinge loss max(0, 1 - y <w, x> / gamma) over norm(w) <= 1; every
    client answers once, in one of `rounds` rounds.

    A client reports one coordinate of its gradient in a bit, the signs of several, or the nearest
    of a few directions: the one of least error V. Privacy: epsilon-locally private. Utility, for
    records of norm at most 1 with abs(x_j) <= bound and a halfspace of margin gamma: the expected
    hinge loss of the averaged weights bounds the expected error. It is at most sqrt(1 / rounds + V
    / n) / gamma, V <= d^2 bound^2 C^2, C = (e^eps + 1) / (e^eps - 1). Features +-1 / sqrt d need n
    about d C^2 / (alpha gamma)^2, at epsilon 4 a third of it. The default number of clients is for
    an expected error of `alpha`. Cost: one to twelve bits a client, `rounds` rounds. Source: Duchi,
    Jordan, Wainwright 2013; limits 9.
    """

    name = "local-sgd"
    summary = "Learns a halfspace by gradient descent on private reports"
    figureless = "a hypothesis"
    source = "Duchi, Jordan, Wainwright 2013"
    error_unit = "share of examples labelled wrongly"
    d: int = parameter(4, "Dimension: the features of a record")
    gamma: float = parameter(0.5, "Margin of the examples to the halfspace")
    alpha: float = parameter(
        0.2,
        "Expected error; sets the default number of clients",
        unit="share of examples",
    )
    rounds: int = parameter(200, "Number of rounds, each with clients of its own")
    bound: float | None = parameter(
        None, "Bound on every feature; default: by the dimension", help="Default: 1 / sqrt(d)"
    )
    told: str = parameter(
        "best",
        "Randomizer of a gradient; best: the one of least error",
        help="Tier aggregate needs one-bit-mean",
        choices=("best", "one-bit-mean", "sampled-signs", "nearest-direction"),
    )

    def check(self) -> None:
        check_margin(self.d, self.gamma, self.bound)
        check_share("alpha", self.alpha)
        check_whole("rounds", self.rounds, 1, 1_000_000)

    @property
    def scale(self) -> float:
        return check_margin(self.d, self.gamma, self.bound)

    def gradients(self, epsilon: float) -> Gradients:
        return gradients_of(epsilon, self.d, self.scale, self.told)

    def gradient_norm(self, epsilon: float, clients: int) -> float:
        """The root of the expected square norm of a round's gradient estimate, at most."""
        return math.sqrt(1 + self.gradients(epsilon).moment * self.rounds / clients) / self.gamma

    def clients(self, epsilon: float) -> int:
        """Clients for an expected error of alpha; raises InputError if the rounds are too few for
        any number."""
        room = (self.alpha * self.gamma) ** 2 - 1 / self.rounds
        if room <= 0:
            least = 1 / (self.alpha * self.gamma) ** 2
            raise InputError(
                f"{self.rounds} rounds cannot promise error {self.alpha} at margin {self.gamma}; "
                f"give more than {least:.0f}"
            )
        return math.ceil(self.gradients(epsilon).moment / room)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Halfspace]:
        gradients = self.gradients(epsilon)
        parts = self.rounds * gradients.cohorts
        if clients < parts:
            raise InputError(
                f"{self.rounds} rounds of {gradients.cohorts} cohorts need {parts} clients; "
                f"{clients} are too few"
            )
        ends = [clients * part // parts for part in range(parts + 1)]
        step = 1 / (self.gradient_norm(epsilon, clients) * math.sqrt(self.rounds))

        def play() -> LocalPlay[Halfspace]:
            weights = np.zeros(self.d)
            total = np.zeros(self.d)
            for round in range(self.rounds):
                cut = ends[round * gradients.cohorts : (round + 1) * gradients.cohorts + 1]
                tallies = yield gradients.queries(written(weights / self.gamma), cut)
                total += weights
                weights = weights + step / self.gamma * gradients.read(tallies)
                # the nearest vector of norm at most 1
                weights /= max(1.0, float(np.linalg.norm(weights)))
            return Halfspace(tuple((total / self.rounds).tolist()))

        return Adaptive(play)

    def synthetic(self, clients: int, seed: int) -> Population:
        return skewed_examples(self.d, self.gamma, min(BARELY * self.alpha, 0.45), clients, seed)

    def describe(self, result: Halfspace) -> PlainData:
        return {"hypothesis": {"rule": str(result)}, "parameters": asdict(result)}

    def explain(self, result: Halfspace) -> str:
        return f"The learned rule predicts the label of a record: it is +1 where {result}; else -1."

    def true_error(self, result: Halfspace, population: Population) -> float:
        """Pr[the halfspace mislabels an example], exactly."""
        assert isinstance(population, Finite)
        return error_rate(result, population)
