"""Closed-form variances of every randomizer; linear functions of estimated shares, their covariance
and quotients."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import prefers_grr
from local_dp.domains import symbols
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.randomizers.frequencies.base import FiniteOracle
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.frequencies.unary import OUE, SUE, UnaryEncoding
from local_dp.randomizers.numbers.rounded import (
    Rounded,
    RoundedGRR,
    RoundedHadamard,
    RoundedOracle,
    rounded_randomizer,
)
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.table import Law, TableChannel
from local_dp.tallies import Ratio, Tally
from local_dp.verification.decoding import law_of, single_estimates
from tests.support.inputs.randomizers import DESIGNS
from tests.support.long import short
from tests.support.theory.closed_forms import BY_TABLE, Known
from tests.support.theory.variances import Sample

EPSILON = 1.0
MANY, FEW = 400_000, 60_000  # clients: of a finite channel, by its tally, and of others, one by one
# of others: what makes `SURE` standard errors 3 %, and as much again where that is little
NEEDED = {
    "d-bit-flip": 120_000,
    "she": 140_000,
    "wide-hashing": 40_000,
    "nearest-direction": 20_000,
    **dict.fromkeys(
        ("random-coordinate", "sampled-signs"), 36_000
    ),  # their twins show by their bias
    **dict.fromkeys(("privunit", "projunit", "count-mean-sketch"), 12_000),
}
DEAR = (
    "d-bit-flip", "she", "wide-hashing", "nearest-direction", "sampled-signs", "projunit",
    "privunit", "pckv-ue",
    "random-coordinate", "count-mean-sketch",
)  # fmt: skip
ROUNDING = 1e-4  # of what a report stands for, in fixed point
# standard errors that 3 % must be: the seed is fixed, and a correct randomizer misses with
# probability 7e-6 for each of some estimates
SURE = 4.5


@cache
def known(name: str) -> Known:
    return Known.of(name, EPSILON)


def measured(randomizer: Randomizer, honest: Known, law: int) -> None:
    """Reports of clients drawn from the law vary as the closed form says within 3 %, each estimate
    or all together, about the truth. Raises AssertionError."""
    n = NEEDED.get(honest.randomizer.name, MANY if isinstance(randomizer, FiniteChannel) else FEW)
    values = honest.values[
        np.random.default_rng(8).choice(len(honest.values), n, p=honest.laws[law])
    ]
    sample, closed = Sample.of(randomizer, values, honest.randomizer), honest.variances[law]
    each, _ = sample.variances(total=False)
    assert (abs(sample.value - honest.means[law]) <= 6 * np.sqrt(each / n) + ROUNDING).all(), (
        f"biased: {sample.value} for {honest.means[law]}"
    )
    seen, error = sample.variances(total=len(closed) < len(each))
    uncertain = closed > 1e-9  # the last prefix sum is 1
    assert (seen[~uncertain] < 1e-9).all()
    assert (SURE * error[uncertain] < 0.03 * closed[uncertain]).all(), f"{n} clients are too few"
    assert (abs(seen - closed)[uncertain] < 0.03 * closed[uncertain]).all(), (
        f"variances {seen} for {closed}"
    )


def measured_twice(randomizer: Randomizer, honest: Known) -> None:
    """Under the worst law, and where all clients hold the last value."""
    for law in (honest.worst, len(honest.values) - 1):
        measured(randomizer, honest, law)


def by_table(honest: Known) -> tuple[Floats, Floats] | None:
    """The means and the variances under every law by the channel's own table, None where there is
    none or where an estimate is a quotient."""
    randomizer = honest.randomizer
    if not isinstance(randomizer, FiniteChannel) or randomizer.name == "characters":
        return None
    laws, singles = (
        np.stack([law_of(randomizer, int(value)) for value in honest.values]),
        single_estimates(randomizer),
    )
    means, squares = (np.einsum("vcw,cwp->vp", laws, singles**power) for power in (1, 2))
    return honest.laws @ means, honest.laws @ squares - (honest.laws @ means) ** 2


@pytest.mark.parametrize("name", RANDOMIZERS.built_in)
def test_the_closed_form_is_the_variance_of_the_channel(name: str) -> None:
    """Of a finite channel, under each law of the search, so that the worst of them is the worst by
    the table too: that of two values at any odds."""
    honest = known(name)
    table = by_table(honest)
    if table is None:
        assert name not in BY_TABLE
        return
    np.testing.assert_allclose(honest.means, table[0], atol=1e-9)
    np.testing.assert_allclose(honest.variances, table[1], rtol=1e-6, atol=1e-9)


@pytest.mark.slow(
    only=(
        "d-bit-flip-last",
        "wide-hashing-last",
        "she-last",
        "nearest-direction-last",
        "projunit-last",
        "sampled-signs-last",
    )
)
@pytest.mark.parametrize("which", short(["worst", "last"], lambda which: which == "worst"))
@pytest.mark.parametrize("name", short(RANDOMIZERS.built_in, lambda name: name not in DEAR))
def test_reports_have_the_closed_form_variance(name: str, which: str) -> None:
    """Within 3 %, under the law with the largest variance that was found, and where all clients
    hold the last value."""
    honest = known(name)
    measured(
        honest.randomizer, honest, honest.worst if which == "worst" else len(honest.values) - 1
    )


SHAPED = {
    "discrete-gaussian",
    "piecewise",
    "hybrid",
    "square-wave",
    "she",
}  # have other reports at another epsilon


TWINS = [name for name in RANDOMIZERS.built_in if name not in SHAPED]


@pytest.mark.slow(
    only=(
        "projunit",
        "d-bit-flip",
        "nearest-direction",
        "sampled-signs",
        "wide-hashing",
        "random-coordinate",
    )
)
@pytest.mark.parametrize(
    "name", short(TWINS, lambda name: name in ("grr", "sue", "one-bit-mean", "olh"))
)
def test_wrong_twins_show(name: str) -> None:
    """Reports of a twin that spends four fifths of what is declared fail the comparison under one
    of the two laws."""
    honest = known(name)
    twin = replace(honest.randomizer, epsilon=0.8 * EPSILON)
    with pytest.raises(AssertionError, match=r"biased|variances"):
        measured_twice(twin, honest)


ORACLES: list[FiniteOracle] = [
    GRR(1.0, k=5), Hadamard(1.0, k=5), RoundedGRR(1.0, steps=4, groups=2),
    RoundedHadamard(1.0, steps=4, groups=2),
    RoundedOracle(1.0, steps=4, groups=2, oracle="olh"), RoundedOracle(1.0, steps=4, groups=2),
    *(kind(1.0, k=5) for kind in DESIGNS),
]  # fmt: skip
WEIGHTS = np.array([[1.0, 0, 0, 0, 0], [1, 1, 1, 1, 0], [0.5, -2, 0, 3, 1]])


def _law(oracle: FiniteOracle) -> Floats:
    """The law of (cell, report) under an uneven law of values."""
    shares = 1.0 / np.arange(1, oracle.domain.size + 1)
    laws = [law_of(oracle, int(value)) for value in oracle.domain.values()]
    return np.asarray(np.tensordot(shares / shares.sum(), np.stack(laws), 1))


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.name)
def test_the_covariance_of_linear_functions_is_that_of_one_report(oracle: FiniteOracle) -> None:
    """On a tally in exact proportion to the law, values and n times the covariance are those of the
    enumerated single reports."""
    law, singles = _law(oracle), single_estimates(oracle)
    counts = np.rint(law * 2.0**50).astype(np.int64)
    joint = oracle.joint(Tally(counts), WEIGHTS)
    each = singles @ WEIGHTS.T
    mean = np.einsum("cw,cwm->m", law, each)
    exact = np.einsum("cw,cwm,cwk->mk", law, each - mean, each - mean)
    np.testing.assert_allclose(joint.value, mean, atol=1e-9)
    np.testing.assert_allclose(joint.covariance * joint.n, exact, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("oracle", [SUE(1.0, k=5), OUE(1.0, k=5), OUE(3.0, k=5)], ids=str)
def test_the_covariance_of_bits_is_that_of_one_report(oracle: UnaryEncoding) -> None:
    """Of independent bits, all 32 reports enumerated, on a tally in exact proportion to uneven
    shares."""
    shares, (p, q), n = np.array([0.5, 0.25, 0.15, 0.1, 0.0]), oracle.chances, 1 << 50
    reports = (np.arange(32)[:, None] >> np.arange(5)) & 1
    ones = q + (p - q) * np.eye(5)
    law = np.array([np.prod(np.where(reports, own, 1 - own), axis=1) for own in ones]).T @ shares
    each = (reports - q) / (p - q) @ WEIGHTS.T
    joint = oracle.joint(Tally(np.rint(shares @ ones * n).astype(np.int64), n), WEIGHTS)
    np.testing.assert_allclose(joint.value, WEIGHTS @ shares, atol=1e-9)
    np.testing.assert_allclose(
        joint.covariance * n,
        (each * law[:, None]).T @ each - np.outer(law @ each, law @ each),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.long
@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.name)
def test_a_quotients_interval_holds_its_level(oracle: FiniteOracle) -> None:
    """In 4,000 drawn tallies the 95 % interval of w0 / w1 holds the truth in 95 % within 4
    deviations (6e-5 by chance); without the covariance it does not."""
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
    """Where the denominator is within its error of 0, the interval is the whole range, and a
    quotient by less than nothing has no value."""
    unknown = Ratio.of(tuple(map(np.array, (0.1, 0.05, 0.01, 0.0, 0.01))), 100, 0.0, 1.0)
    assert (float(unknown.interval()[0]), float(unknown.interval()[1])) == (0.0, 1.0)
    nothing = Ratio.of(tuple(map(np.array, (0.1, -0.05, 0.0001, 0.0, 0.0001))), 100, 0.0, 1.0)
    assert np.isnan(nothing.value)
    assert (float(nothing.interval()[0]), float(nothing.interval()[1])) == (0.0, 1.0)


def test_a_quotient_moves_with_its_scale() -> None:
    share = Ratio.of(tuple(map(np.array, (0.3, 0.8, 0.001, 0.0002, 0.002))), 100, 0.0, 1.0)
    moved = share.on_scale(-10.0, 30.0)
    assert float(moved.value) == pytest.approx(-10 + 40 * float(share.value))
    assert float(moved.standard_error) == pytest.approx(40 * float(share.standard_error))
    for old, new in zip(share.interval(), moved.interval(), strict=True):
        assert float(new) == pytest.approx(-10 + 40 * float(old))


STEPS = 4


def spread(randomizer: Rounded) -> float:
    """The mean, over groups, of n times the variance of the mean within one, to first order: groups
    alike, and every number in the middle."""
    law = np.mean(
        [
            report_law(randomizer, group * (STEPS + 1) + STEPS // 2)
            for group in range(randomizer.groups)
        ],
        axis=0,
    )
    tally = Tally(
        np.rint(law * 2.0**50).astype(np.int64).reshape(randomizer.cells, randomizer.alphabet)
    )
    ends = np.eye(2 * randomizer.groups + 1)[:-1]
    slopes: Floats = (
        (ends[1::2] - ends[::2]) / 2 * randomizer.groups
    )  # of the share of the upper end, where both ends are as frequent
    return float(np.diag(randomizer.joint(tally, slopes).covariance).mean()) * tally.answered


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 4.0])
def test_never_worse_than_the_two_simple_ones(epsilon: float) -> None:
    """Over a grid of epsilons and groups the chosen one has at most 1 % more variance than what
    `prefers_grr` would take, by exact laws."""
    for groups in (1, 2, 4, 8, 16, 31):
        before = (RoundedGRR if prefers_grr(epsilon, 2 * groups + 1) else RoundedHadamard)(
            epsilon, steps=STEPS, groups=groups
        )
        chosen = rounded_randomizer(epsilon, groups, STEPS)
        assert spread(chosen) <= 1.01 * spread(before), (groups, chosen)


def test_many_groups_take_a_fifth_fewer_clients() -> None:
    """Of 16 groups at epsilon 1: 4 E / (E - 1)^2 and a little more, where one bit has (E + 1)^2 /
    (E - 1)^2."""
    chosen = rounded_randomizer(1.0, 16, STEPS)
    assert isinstance(chosen, RoundedOracle)
    ratio = spread(chosen) / spread(RoundedHadamard(1.0, steps=STEPS, groups=16))
    assert ratio == pytest.approx(4 * math.e / (math.e + 1) ** 2, rel=0.05)


def test_a_law_alone_has_the_variance_of_its_table() -> None:
    """A randomizer that is a law and nothing else needs no closed form; a twin that spends four
    fifths of what is declared shows."""

    class Skipping(TableChannel):
        name = "skipping"
        domain = symbols(2)

        def law(self) -> Law:
            lie = 2 / (3 * (1 + self.growth))
            return [
                [2 / Fraction(3) - lie, lie, Fraction(1, 3)],
                [lie, 2 / Fraction(3) - lie, Fraction(1, 3)],
            ]

    honest = Known(Skipping(EPSILON))
    measured_twice(Skipping(EPSILON), honest)
    with pytest.raises(AssertionError, match=r"biased|variances"):
        measured_twice(Skipping(0.8 * EPSILON), honest)
