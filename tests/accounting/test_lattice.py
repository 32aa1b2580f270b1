"""Loss laws on a lattice: of enumerated mechanisms, of their sums, and what they refuse."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from local_dp.accounting.lattice import Lattice, discrete_laplace, response
from local_dp.arrays import Ints
from local_dp.curator.laws import hockey_stick
from local_dp.curator.sums import NoisySum
from local_dp.domains import Domain, levels
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, Pure, exp_epsilon
from local_dp.queries.query import Query
from local_dp.records import Records

HALF = Fraction(3, 2)


@dataclass(frozen=True)
class Steps(Query):
    """A column of whole numbers 0..most."""

    name: ClassVar[str] = "steps"
    most: int

    @property
    def domain(self) -> Domain:
        return levels(self.most)

    def __call__(self, records: Records) -> Ints:
        return records["v"]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_noise_on_a_sum_is_its_enumeration(most: int) -> None:
    """Of one record worth 0..m the clipped sum keeps all that the noise tells: the same curve; with the noise of another sensitivity it is another."""
    mechanism = NoisySum(Steps(most), 0.7)
    low, high = (mechanism.law(Records({"v": np.array([value], dtype=np.int64)})) for value in (0, most))
    wholes = [exp_epsilon(nano) for nano in (0, NANO // 10, NANO // 3, 6 * NANO // 10)]
    enumerated = [hockey_stick(low, high, whole) for whole in wholes]
    assert [discrete_laplace(7 * NANO // 10, most).delta(whole) for whole in wholes] == enumerated
    assert [discrete_laplace(7 * NANO // 10, most + 1).delta(whole) for whole in wholes] != enumerated


def test_sums_of_laws() -> None:
    """Lattices add up to the law of the product; a pure and an approximate loss are added as the worst law of theirs, rounded up to the step."""
    one = response(HALF)
    assert one + one == one.times(2)
    assert one.times(5).delta(Fraction(1)) == (one.times(2) + one + one.times(2)).delta(Fraction(1))
    told = response(HALF, 1, Fraction(1, 100))
    assert (one + told).delta(HALF**2) == told.delta(HALF) == Fraction(1, 100)
    pure = Pure(NANO // 10)  # a quarter of a step
    assert (one + pure).delta(HALF) == (pure + one).delta(HALF) == one.times(2).delta(HALF)
    assert (Approximate(0, 10**16) + one).delta(Fraction(1)) == Fraction(1, 100) + Fraction(99, 100) * one.delta(Fraction(1))


def test_where_the_loss_is_infinite() -> None:
    """What one law alone can give costs delta at every epsilon, and enumerated laws show it."""
    lost = Lattice.of_laws({"a": 3, "b": 1}, {"a": 2, "c": 2}, HALF)
    assert (lost.delta(Fraction(10**9)), lost.delta(Fraction(1))) == (Fraction(1, 4), Fraction(1, 2))
    assert lost.epsilon == pytest.approx(np.log(1.5), rel=1e-15)


def test_bad_input_is_refused() -> None:
    """Laws that no pair of laws has, steps that differ, ratios off the lattice, no parts and no noise."""
    laws: list[tuple[Fraction, tuple[int, ...], int]] = [(Fraction(1), (1,), 0), (HALF, (), 0), (HALF, (-1, 2), 0), (HALF, (0,), 3), (HALF, (1,), -1)]
    for growth, weights, infinite in laws:
        with pytest.raises(InputError, match="growth above 1"):
            Lattice(growth, 0, weights, infinite)
    with pytest.raises(InputError, match="too low"):
        Lattice(HALF, -1, (1,))
    with pytest.raises(InputError, match="one step"):
        response(HALF) + response(Fraction(2))
    with pytest.raises(InputError, match="no power"):
        Lattice.of_laws({0: 2, 1: 1}, {0: 1, 1: 2}, HALF)
    with pytest.raises(InputError, match="parts is 0"):
        response(HALF).times(0)
    with pytest.raises(InputError, match="1 or more of each"):
        discrete_laplace(NANO, 0)
