"""Loss laws on a lattice: of enumerated mechanisms, of their sums, and what they refuse."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from local_dp.accounting.losses import Lattice, discrete_laplace, response
from local_dp.arrays import Ints
from local_dp.curator.clipped import NoisySum
from local_dp.curator.laws import hockey_stick
from local_dp.domains import Domain, levels
from local_dp.loss import NANO, Approximate, Pure, exp_epsilon
from local_dp.queries.query import Query
from local_dp.records import Records
from tests.support.inputs.refusals import refuse

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
    """Of one record worth 0..m the clipped sum keeps all that the noise reveals: the same curve; with the noise of another sensitivity it is another."""
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
    leaky = response(HALF, 1, Fraction(1, 100))
    assert (one + leaky).delta(HALF**2) == leaky.delta(HALF) == Fraction(1, 100)
    pure = Pure(NANO // 10)  # a quarter of a step
    assert (one + pure).delta(HALF) == (pure + one).delta(HALF) == one.times(2).delta(HALF)
    assert (Approximate(0, 10**16) + one).delta(Fraction(1)) == Fraction(1, 100) + Fraction(99, 100) * one.delta(Fraction(1))


def test_bad_input() -> None:
    """Laws that no pair of laws has, steps that differ, no parts and no noise."""
    laws: list[tuple[Fraction, tuple[int, ...], int]] = [(Fraction(1), (1,), 0), (HALF, (), 0), (HALF, (-1, 2), 0), (HALF, (0,), 3), (HALF, (1,), -1)]
    refuse(
        *(("growth above 1", partial(Lattice, growth, 0, weights, infinite)) for growth, weights, infinite in laws),
        ("too low", lambda: Lattice(HALF, -1, (1,))),
        ("one step", lambda: response(HALF) + response(Fraction(2))),
        ("parts is 0", lambda: response(HALF).times(0)),
        ("1 or more of each", lambda: discrete_laplace(NANO, 0)),
    )
