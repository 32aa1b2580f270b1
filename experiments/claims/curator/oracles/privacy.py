"""What `oracles` computes of privacy: the loss of RSPM, the leaks of a solver that lies, and the
price of PRSMA."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from local_dp.curator.mechanism import SmallDatabases, epsilon_of, hockey_stick
from local_dp.curator.oracle_efficient import separated
from local_dp.curator.oracle_efficient.perturbed import Attempt, Perturbation, PerturbedMinimum
from local_dp.curator.oracle_efficient.robust import RobustRelease, Terms
from local_dp.curator.oracle_efficient.separated import (
    Conjunctions,
    Exhaustive,
    Parities,
    Separated,
    Thresholds,
    Weighted,
)
from local_dp.curator.selection.exponential import Labelled
from local_dp.experiments.lab.parts import Row
from local_dp.loss import ATTO, exp_epsilon, nano_epsilon

EPSILON = 1.0
CLASSES: dict[str, tuple[Separated, int]] = {  # and how many points they have
    "conjunctions of 2 bits": (Conjunctions(2), 4),
    "parities of 2 bits": (Parities(2), 4),
    "thresholds on 1 point": (Thresholds(1), 1),
}
WHOLE, HALF = "whole noise", "half the noise"
BELIEVED, CHECKED, ROBUST = "believed", "checked", "checked, with PRSMA"
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


class Largest(Row):
    loss: float  # over all databases of two examples


class Loss(Row):
    """The loss of RSPM; its law at 2 eps is that of noise of half the scale."""

    queries: str
    noise: str

    def measure(self, seed: int) -> Largest:
        queries, points = CLASSES[self.queries]
        release = PerturbedMinimum(
            Perturbation(queries, EPSILON * (2 if self.noise == HALF else 1)), Exhaustive(queries)
        )
        databases = SmallDatabases([(x, y) for x in range(points) for y in (0, 1)], 2, Labelled.of)
        return Largest(epsilon_of(max(databases.worst_ratios(release).values())))


@dataclass(frozen=True)
class Liar:
    """Right, but where the first example's label is 1 it claims a query that there is not."""

    exact: Exhaustive

    def minimise(self, data: Weighted) -> separated.Claimed:
        return separated.Claimed(
            self.exact.queries.size if data.weights[0] < 0 else self.exact.minimise(data).choice
        )


@dataclass(frozen=True)
class Trusting:
    solver: separated.Plain

    def minimise(self, data: Weighted) -> separated.Certified:
        """Takes claims for proofs."""
        return separated.Certified(self.solver.minimise(data).choice, 0)


def _attempt() -> Attempt:
    """RSPM by the lying solver, with its claims checked."""
    exact = Exhaustive(Conjunctions(1))
    return Attempt(Perturbation(exact.queries, 0.5), separated.Verified(Liar(exact), exact))


class Deltas(Row):
    deltas: list[float]  # the least at each epsilon


class Alone(Row):
    """The least delta that hides one label of one record from the lying solver, believed or
    checked."""

    way: str

    def measure(self, seed: int) -> Deltas:
        attempt = _attempt()
        exact = Exhaustive(attempt.perturbation.queries)
        law = (
            PerturbedMinimum(attempt.perturbation, Trusting(Liar(exact))).law
            if self.way == BELIEVED
            else attempt.law
        )
        laws = [dict(law(Labelled.of(((0, label),))).items()) for label in (0, 1)]
        pairs = ((laws[0], laws[1]), (laws[1], laws[0]))
        return Deltas([_delta(pairs, nano_epsilon(epsilon)) for epsilon in EPSILONS])


def _delta(pairs: Iterable[tuple[Any, Any]], nano: int) -> float:
    """The least delta at this epsilon of any pair of laws."""
    return float(max(hockey_stick(*pair, exp_epsilon(nano)) for pair in pairs))


class Cost(Row):
    epsilon: float
    delta: float  # as stated
    worst: float  # as enumerated
    deltas: list[float]  # the least at each epsilon


class Robust(Row):
    """The same with PRSMA, at eps* and delta*: one label of as many records as there are pieces."""

    epsilon: float
    delta: float

    def measure(self, seed: int) -> Cost:
        release = RobustRelease(_attempt(), 1, Terms(self.epsilon, self.delta))
        examples = [(0, 0), (0, 1)]
        databases: SmallDatabases[tuple[int, int], Labelled] = SmallDatabases(
            examples, release.terms.pieces, Labelled.of
        )
        pairs = list(databases.laws(release))
        nanos = (release.loss.nano, *map(nano_epsilon, EPSILONS))
        worst, *deltas = (_delta(pairs, nano) for nano in nanos)
        return Cost(
            release.loss.epsilon,
            release.loss.atto / ATTO,
            worst,
            deltas,
        )

    @property
    def way(self) -> str:
        return f"{ROBUST}, eps* = {self.epsilon:g}"


class Change(Row):
    changed: float  # by one surviving piece more, with a law twice that of the others
    stated: float


class Price(Row):
    """PRSMA at eps* = 1 / parts."""

    parts: int

    def measure(self, seed: int) -> Change:
        release = RobustRelease(_attempt(), 1, Terms(1 / self.parts, 1e-3))
        other: dict[int | separated.Fail, int] = {0: 1, 1: 3}
        others = [other] * release.terms.enough
        survival = release.answer_law([*others, {0: 2, 1: 2}])[0]
        ratio = survival / release.answer_law([*others, {separated.FAIL: 1}])[0]
        return Change(math.log(ratio), release.loss.epsilon)
