"""Linear functions of estimated shares, their covariance and their quotients; and the oracle of a rounded number."""

import math

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import prefers_grr
from local_dp.randomizers.finite import report_law
from local_dp.randomizers.frequencies.base import FiniteOracle
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.numbers.rounded import Rounded, RoundedGRR, RoundedHadamard, RoundedOracle, rounded_randomizer
from local_dp.tallies import Ratio, Tally
from local_dp.verification.decoding import law_of, single_estimates
from tests.support.inputs.randomizers import DESIGNS
from tests.support.long import short

ORACLES: list[FiniteOracle] = [
    GRR(1.0, k=5),
    Hadamard(1.0, k=5),
    RoundedGRR(1.0, steps=4, groups=2),
    RoundedHadamard(1.0, steps=4, groups=2),
    RoundedOracle(1.0, steps=4, groups=2, oracle="olh"),
    RoundedOracle(1.0, steps=4, groups=2),
    *(kind(1.0, k=5) for kind in DESIGNS),
]
WEIGHTS = np.array([[1.0, 0, 0, 0, 0], [1, 1, 1, 1, 0], [0.5, -2, 0, 3, 1]])


def _law(oracle: FiniteOracle) -> Floats:
    """The law of (cell, report) under an uneven law of values."""
    shares = 1.0 / np.arange(1, oracle.domain.size + 1)
    laws = [law_of(oracle, int(value)) for value in oracle.domain.values()]
    mixed: Floats = np.tensordot(shares / shares.sum(), np.stack(laws), 1)
    return mixed


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.name)
def test_the_covariance_of_linear_functions_is_that_of_one_report(oracle: FiniteOracle) -> None:
    """On a tally in exact proportion to the law, values and n times the covariance are those of the enumerated single reports."""
    law, singles = _law(oracle), single_estimates(oracle)
    counts = np.rint(law * 2.0**50).astype(np.int64)
    joint = oracle.joint(Tally(counts), WEIGHTS)
    each = singles @ WEIGHTS.T
    mean = np.einsum("cw,cwm->m", law, each)
    exact = np.einsum("cw,cwm,cwk->mk", law, each - mean, each - mean)
    np.testing.assert_allclose(joint.value, mean, atol=1e-9)
    np.testing.assert_allclose(joint.covariance * joint.n, exact, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("oracle", short(ORACLES, lambda oracle: oracle in ORACLES[:3]), ids=lambda oracle: oracle.name)
def test_a_quotients_interval_holds_its_level(oracle: FiniteOracle) -> None:
    """In 4,000 drawn tallies the 95 % interval of w0 / w1 holds the truth within 4 binomial deviations of 95 %; a twin without the covariance does not.

    Failure probability of the first claim: 6e-5 (normal tail at 4), fixed seed.
    """
    law, singles = _law(oracle), single_estimates(oracle)
    truth = np.einsum("cw,cwm->m", law, singles @ WEIGHTS.T)
    generator, runs, n = np.random.default_rng(5), 4000, 3000
    held = careless = 0
    for counts in generator.multinomial(n, law.ravel() / law.sum(), size=runs):
        joint = oracle.joint(Tally(counts.reshape(law.shape)), WEIGHTS)
        share = joint.ratio([0], 1)
        low, high = share.interval()
        held += bool(low[0] <= truth[0] / truth[1] <= high[0])
        a, b, aa, _, _ = share.moments
        half = 0.8 * 1.96 * np.sqrt(aa[0]) / b[0]
        careless += bool(abs(a[0] / b[0] - truth[0] / truth[1]) <= half)
    deviation = np.sqrt(0.95 * 0.05 * runs)
    assert abs(held - 0.95 * runs) < 4 * deviation, held / runs
    assert careless < 0.95 * runs - 4 * deviation, careless / runs


def test_a_quotient_by_what_may_be_nothing_says_so() -> None:
    """Where the denominator is within its error of 0, the interval is the whole range, and a quotient by less than nothing has no value."""
    unknown = Ratio.of(tuple(map(np.array, (0.1, 0.05, 0.01, 0.0, 0.01))), 100, 0.0, 1.0)
    assert (float(unknown.interval()[0]), float(unknown.interval()[1])) == (0.0, 1.0)
    nothing = Ratio.of(tuple(map(np.array, (0.1, -0.05, 0.0001, 0.0, 0.0001))), 100, 0.0, 1.0)
    assert np.isnan(nothing.value)
    assert (float(nothing.interval()[0]), float(nothing.interval()[1])) == (0.0, 1.0)


def test_a_quotient_moves_with_its_scale() -> None:
    """On another scale, value, error and ends of the interval are those of the old scale moved."""
    share = Ratio.of(tuple(map(np.array, (0.3, 0.8, 0.001, 0.0002, 0.002))), 100, 0.0, 1.0)
    moved = share.on_scale(-10.0, 30.0)
    assert float(moved.value) == pytest.approx(-10 + 40 * float(share.value))
    assert float(moved.standard_error) == pytest.approx(40 * float(share.standard_error))
    for old, new in zip(share.interval(), moved.interval(), strict=True):
        assert float(new) == pytest.approx(-10 + 40 * float(old))


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
