"""Means within groups: which oracle reports the rounded number, and that it is never a worse one than before."""

import math

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import prefers_grr
from local_dp.randomizers.finite import report_law
from local_dp.randomizers.numbers.rounded import Rounded, RoundedGRR, RoundedHadamard, RoundedOracle, rounded_randomizer
from local_dp.tallies import Tally

STEPS = 4


def spread(randomizer: Rounded) -> float:
    """The mean, over groups, of n times the variance of the mean within one, to first order: groups alike, and every number in the middle."""
    law = np.mean([report_law(randomizer, group * (STEPS + 1) + STEPS // 2) for group in range(randomizer.groups)], axis=0)
    tally = Tally(np.rint(law * 2.0**50).astype(np.int64).reshape(randomizer.cells, randomizer.alphabet))
    ends = np.eye(2 * randomizer.groups + 1)[:-1]
    slopes: Floats = (ends[1::2] - ends[::2]) / 2 * randomizer.groups  # of the share of the upper end, where both ends are as frequent
    return float(np.diag(randomizer.joint(tally, slopes).covariance).mean()) * tally.answered


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 4.0])
def test_never_worse_than_the_two_simple_ones(epsilon: float) -> None:
    """Over a grid of epsilons and groups the chosen one has at most 1 % more variance than what `prefers_grr` would take, by exact laws."""
    for groups in (1, 2, 4, 8, 16, 31):
        before = (RoundedGRR if prefers_grr(epsilon, 2 * groups + 1) else RoundedHadamard)(epsilon, steps=STEPS, groups=groups)
        chosen = rounded_randomizer(epsilon, groups, STEPS)
        assert spread(chosen) <= 1.01 * spread(before), (groups, chosen)


def test_many_groups_take_a_fifth_fewer_clients() -> None:
    """Of 16 groups at epsilon 1: 4 E / (E - 1)^2 and a little more, where one bit has (E + 1)^2 / (E - 1)^2."""
    chosen = rounded_randomizer(1.0, 16, STEPS)
    assert isinstance(chosen, RoundedOracle)
    ratio = spread(chosen) / spread(RoundedHadamard(1.0, steps=STEPS, groups=16))
    assert ratio == pytest.approx(4 * math.e / (math.e + 1) ** 2, rel=0.05)
