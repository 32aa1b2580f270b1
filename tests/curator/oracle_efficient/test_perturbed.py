"""RSPM: its exact loss over all small databases, and twins with less noise or another tie-break."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.oracle_efficient.perturbed import Perturbation, PerturbedMinimum, clipped_noise
from local_dp.curator.oracle_efficient.separated import Certified, Conjunctions, Exhaustive, Parities, Separated, Thresholds, Weighted, labelled
from local_dp.curator.selection.occam import Labelled
from local_dp.loss import exp_epsilon
from tests.support.inputs.refusals import refuse


def rspm(queries: Separated, epsilon: float) -> PerturbedMinimum:
    return PerturbedMinimum(Perturbation(queries, epsilon), Exhaustive(queries))


def databases(points: int, n: int) -> SmallDatabases[tuple[int, int], Labelled]:
    """All of n examples."""
    return SmallDatabases([(x, y) for x in range(points) for y in (0, 1)], n, Labelled.of)


@dataclass(frozen=True)
class BusyTie:
    """Perfect, except that the data break its ties: the last query if there are fewer ones than zeros."""

    queries: Separated

    def minimise(self, data: Weighted) -> Certified:
        totals = self.queries.totals(data)
        least = np.flatnonzero(totals == totals.min())
        choice = int(least[-1 if data.weights[0] < 0 else 0])
        return Certified(choice, int(totals[choice]))


def test_a_tie_break_that_looks_at_the_data_is_not_private() -> None:
    """With whole noise ties are frequent, and one fixed order of the queries is needed."""
    queries = Parities(2)
    assert databases(4, 1).worst_delta(PerturbedMinimum(Perturbation(queries, 1.0), BusyTie(queries))) > Fraction(1, 20)


@dataclass(frozen=True)
class Box:
    """The noises of a mechanism within +-reach: what is exact for the queries' shares there is off by `missed` at most for all noises."""

    mechanism: PerturbedMinimum
    reach: int

    @property
    def shrink(self) -> float:
        return 1 / float(exp_epsilon(self.mechanism.perturbation.step))

    @property
    def missed(self) -> float:
        m = len(self.mechanism.perturbation.queries.separators)
        return 2 * m * self.shrink ** (self.reach + 1) / (1 + self.shrink)

    def shares(self, database: Labelled) -> Floats:
        """Pr[noise within reach, answer q] for each query q."""
        queries = self.mechanism.perturbation.queries
        eta = np.array(list(product(range(-self.reach, self.reach + 1), repeat=len(queries.separators))))
        weights = np.prod((1 - self.shrink) / (1 + self.shrink) * self.shrink ** np.abs(eta), axis=1)
        totals = eta @ queries.values(queries.separators).T + queries.totals(labelled(database.x, database.y))
        return np.bincount(np.argmin(totals, axis=1), weights=weights, minlength=queries.size).astype(np.float64)


@pytest.mark.parametrize(("points", "reach"), [(2, 12), (3, 8)])
def test_thresholds_lose_epsilon_by_noise_that_does_not_grow_with_m(points: int, reach: int) -> None:
    """Ratio e^(-eps / 2) for 2 and 3 separators: at eps = 4 the loss is 1.0000 eps within the reach, and half of that noise loses twice as much."""
    pairs = list(databases(points, 2).pairs("replace"))
    for epsilon in (4.0, 8.0):
        box = Box(rspm(Thresholds(points), epsilon), reach)
        shares = {records: box.shares(Labelled.of(records)) for records in {one for pair in pairs for one in pair}}
        loss = math.log(max(float((shares[here] / shares[there]).max()) for here, there in pairs))
        assert math.exp(4) * box.missed < 1e-3
        assert loss == pytest.approx(epsilon, abs=1e-3)


def test_the_clipped_noise_is_a_law() -> None:
    """Each end has the sum of a tail: r^most / (1 + r) of all."""
    weights = clipped_noise(Fraction(3), 4)
    assert Fraction(weights[4], sum(weights.values())) == Fraction(1, 3) ** 4 / (1 + Fraction(1, 3))
    assert Fraction(weights[-3], weights[2]) == Fraction(1, 3)


def test_bad_input() -> None:
    assert Perturbation(Conjunctions(3), 1.0).step == Fraction(10**9, 6)
    refuse(
        ("epsilon is 0", lambda: rspm(Conjunctions(2), 0)),
        ("listed up to", lambda: rspm(Thresholds(3), 1).law(Labelled.of(((0, 1),)))),
        ("listed up to", lambda: rspm(Conjunctions(9), 1).law(Labelled.of(((0, 1),)))),
    )
