"""Parities without a mask: lower bounds for one round and in turn, the best channels, and the
clients of every protocol."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import poisson

from local_dp.arrays import Floats
from local_dp.bounds import parity as one_round_parity
from local_dp.bounds import parity as parity_channels
from local_dp.bounds.channels import (
    best_channel,
    divergence_curvature,
    report_squares,
    staircase_columns,
)
from local_dp.bounds.interaction import (
    Plan,
    few_rounds_clients,
    few_rounds_plan,
    few_rounds_success,
)
from local_dp.bounds.response import response_gain
from local_dp.cube import parity
from local_dp.errors import InputError
from tests.support.long import short

EPSILONS = (0.5, 1.0, math.log(3), 2.0, 3.0)


def _masked_success(d: int, n: int, score: tuple[float, float]) -> float:
    """Pr[r has the largest score of 2^d masks] at epsilon 1. A client who agrees with its mask
    scores `score[0]`, another `score[1]`; counts are Poisson."""
    mean, true = n / 2.0**d, math.e / (math.e + 1)
    counts = np.arange(int(mean + 12 * math.sqrt(mean) + 20))
    scores, place = np.unique(
        np.round(np.add.outer(counts * score[0], counts * score[1]), 9), return_inverse=True
    )
    laws = []
    for share in (true, 0.5):
        joint = np.outer(poisson.pmf(counts, mean * share), poisson.pmf(counts, mean * (1 - share)))
        laws.append(np.bincount(place.ravel(), joint.ravel(), len(scores)))
    right, other = laws
    upto = np.minimum(1.0, np.cumsum(other))
    below = upto - other
    # a random one of those with the largest score
    tied = (upto ** (2**d) - below ** (2**d)) / np.maximum(other * 2**d, 1e-300)
    return float(right @ np.where(other > 1e-9, tied, below ** (2**d - 1)))


@pytest.mark.parametrize(
    ("d", "n", "summed", "likeliest"), [(6, 3_880, 0.873, 0.893), (8, 19_700, 0.872, 0.894)]
)
def test_the_likeliest_mask_is_right_more_often(
    d: int, n: int, summed: float, likeliest: float
) -> None:
    """The two decoders of masks at the counts of limits 4.2; the count of the normal approximation
    is that of the plain sum."""
    logs = math.log(2 * math.e / (math.e + 1)), math.log(2 / (math.e + 1))
    assert _masked_success(d, n, (1.0, -1.0)) == pytest.approx(summed, abs=6e-4)
    assert _masked_success(d, n, logs) == pytest.approx(likeliest, abs=6e-4)
    enough = parity_channels.parity_one_round_clients(d, 1.0, 0.1)
    assert _masked_success(d, enough, (1.0, -1.0)) == pytest.approx(0.9, abs=2e-3)
    assert _masked_success(d, enough, logs) > 0.915


def test_the_constants_of_the_bound() -> None:
    """kappa is .6020 at epsilon 1, G is continuous at ln 3, and the bound is 3.60, 5.68, 7.75, 9.82
    and 11.89 C^2 2^d at d = 4 to 12."""
    assert parity_channels.report_curvature(1.0) == pytest.approx(0.6020, abs=5e-5)
    assert report_squares(math.log(3) + 1e-9) == pytest.approx(
        report_squares(math.log(3)), rel=1e-7
    )
    units = [
        parity_channels.parity_one_round_bound(d, 1.0, 0.9) / response_gain(1.0) ** 2 / 2**d
        for d in (4, 6, 8, 10, 12)
    ]
    assert units == pytest.approx([3.605, 5.677, 7.750, 9.822, 11.894], abs=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_curvature_is_the_largest(epsilon: float) -> None:
    """Over a fine grid of changes in [-1/C, 1/C] ((1 + t) ln(1 + t) - t) / t^2 falls, so that it is
    largest at -1/C."""
    grid = np.linspace(-1, 1, 2000) / response_gain(epsilon)
    curve = ((1 + grid) * np.log1p(grid) - grid) / grid**2
    assert (np.diff(curve) < 1e-9).all()
    assert curve[0] == pytest.approx(parity_channels.report_curvature(epsilon), rel=1e-12)


@pytest.mark.long
def test_no_channel_tells_more_than_the_bound() -> None:
    """The best of all channels and 2,000 random ones, epsilon .5 to 3, tell less. With kappa at
    +1/C, or G = 1/C^2 beyond ln 3, the best does not."""
    generator = np.random.default_rng(2)
    for d in (2, 3):
        for epsilon in EPSILONS:
            best = parity_channels.best_parity_information(d, epsilon)
            assert best < parity_channels.parity_report_bound(d, epsilon)
            for _ in range(200):
                assert parity_channels.parity_information(
                    d,
                    parity_channels.random_channel(
                        d, epsilon, int(generator.integers(2, 4 << d)), generator
                    ),
                ).sum() <= best * (1 + 1e-9)
    least = 1 / response_gain(1.0)
    at_plus = ((1 + least) * math.log1p(least) - least) / least**2
    assert parity_channels.best_parity_information(3, 1.0) > at_plus * report_squares(1.0) / 8
    assert (
        parity_channels.best_parity_information(2, 3.0)
        > parity_channels.report_curvature(3.0) * response_gain(3.0) ** -2 / 4
    )


def test_random_channels_are_private_and_whole() -> None:
    """Every row sums to 1 and every column's ratio is at most E, also where the others leave
    nothing for the last one."""
    generator = np.random.default_rng(3)
    for reports in (2, 3, 9):
        for _ in range(100):
            channel = parity_channels.random_channel(2, 1.0, reports, generator)
            assert channel.sum(axis=0) == pytest.approx(1.0)
            assert (channel.max(axis=1) <= math.e * channel.min(axis=1) * (1 + 1e-9)).all()


def test_deny_is_near_the_best_of_all_channels() -> None:
    """Its shares of the bound are those published, and naming a parity that agrees reveals less."""
    shares = [
        parity_channels.deny_information(d, 1.0) / parity_channels.parity_report_bound(d, 1.0)
        for d in (2, 3, 4, 6, 10)
    ]
    assert shares == pytest.approx([0.683, 0.834, 0.915, 0.978, 0.9986], abs=5e-4)
    assert [
        parity_channels.support_information(d, 1.0) / parity_channels.parity_report_bound(d, 1.0)
        for d in (2, 3)
    ] == pytest.approx([0.583, 0.657], abs=5e-4)


@pytest.mark.parametrize(
    ("d", "share"), short([(2, 0.6947), (3, 0.8377)], lambda each: each[0] == 2, several=True)
)
def test_the_best_of_all_channels_has_the_published_share(d: int, share: float) -> None:
    assert parity_channels.best_parity_information(d, 1.0) / parity_channels.parity_report_bound(
        d, 1.0
    ) == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize("d", short((2, 3), lambda d: d == 2))
def test_deny_is_near_the_best_up_to_ln_3(d: int) -> None:
    """Within 5 % of the best channel up to ln 3, and not above."""
    for epsilon in EPSILONS:
        near = parity_channels.deny_information(
            d, epsilon
        ) / parity_channels.best_parity_information(d, epsilon)
        assert (0.95 < near <= 1 + 1e-9) == (epsilon <= math.log(3))
    assert parity_channels.best_parity_information(d, 0.5) / parity_channels.parity_report_bound(
        d, 0.5
    ) == pytest.approx({2: 0.7203, 3: 0.8564}[d], abs=1e-3)


@pytest.mark.parametrize(
    ("d", "epsilon"), short([(2, 1.0), (2, 3.0), (3, 0.5)], lambda each: each[0] == 2, several=True)
)
def test_the_program_by_its_symmetries(d: int, epsilon: float) -> None:
    """Shifts and linear maps of the cube leave the information of a report, so three conditions are
    as good as 2^(d + 1): the same optimum."""
    columns = staircase_columns(epsilon, 2 << d)
    orbits = np.stack([columns[:, 0], columns[:, 1], columns[:, 2:].mean(axis=1)])
    found = linprog(-parity_channels.parity_information(d, columns), A_eq=orbits, b_eq=np.ones(3))
    assert -found.fun == pytest.approx(
        parity_channels.best_parity_information(d, epsilon), rel=1e-7
    )


def test_in_the_limit_deny_needs_no_more_than_the_bound_says() -> None:
    """The clients over the bound's fall with d towards 1/.9, which is what Fano's inequality
    loses."""
    ratios = [
        parity_channels.parity_deny_clients(d, 1.0, 0.1)
        / parity_channels.parity_one_round_bound(d, 1.0, 0.9)
        for d in (4, 8, 16, 32, 48)
    ]
    assert all(later < earlier for earlier, later in pairwise(ratios))
    assert 1 / 0.9 < ratios[-1] < 1.4


@pytest.mark.long
def test_plans_are_whole() -> None:
    """Lists shrink, every round asks somebody, all clients are asked, and no plan near the one
    chosen is better; what cannot be is refused."""
    for d, rounds in ((2, 2), (5, 3), (6, 6), (8, 2)):
        plan = few_rounds_plan(d, rounds)
        assert list(plan.kept) == sorted(plan.kept, reverse=True)
        assert plan.kept[0] < 2**d
        assert plan.kept[-1] == 1
        for n in (rounds, 100, 12_345):
            assert sum(plan.sizes(n)) == n
            assert min(plan.sizes(n)) >= 1
    n = few_rounds_clients(8, 1.0, 2, 0.1)
    others = [Plan((share,), (bits,)) for share in range(5, 20) for bits in range(1, 8)]
    assert few_rounds_success(8, 1.0, n, few_rounds_plan(8, 2)) == max(
        few_rounds_success(8, 1.0, n, plan) for plan in others
    )
    for wrong in (1, 5):
        with pytest.raises(InputError, match="rounds"):
            few_rounds_plan(4, wrong)
    with pytest.raises(InputError, match="too few"):
        few_rounds_plan(4, 3).sizes(2)


def test_what_the_proof_does_not_cover_is_refused() -> None:
    for epsilon in (0.0, -1.0, 25.0):
        with pytest.raises(InputError, match="epsilon"):
            one_round_parity.parity_one_round_bound(4, epsilon, 0.9)
    with pytest.raises(InputError, match="success"):
        parity_channels.parity_one_round_bound(4, 1.0, 1.0)
    with pytest.raises(InputError, match="d is 4"):
        parity_channels.best_parity_information(4, 1.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_curvature_in_turn_is_the_largest(epsilon: float) -> None:
    """(t - ln(1 + t)) / t^2 falls in t, so it is the largest at -1/C."""
    t = np.linspace(-1, 1, 1000) / response_gain(epsilon)
    values = (t - np.log1p(t)) / t**2
    assert (np.diff(values) < 1e-9).all()
    assert values[0] == pytest.approx(divergence_curvature(epsilon))


def best_divergence(d: int, epsilon: float) -> float:
    """The most that KL(M, M_r) can be on average over r for one report, M its law under random
    labels and M_r under the parity r: over ALL channels."""
    x = np.arange(1 << d)
    held = 2 * x + parity((x & x[:, None]).astype(np.uint64))  # row r: the examples of the parity r

    def divergence(columns: Floats) -> Floats:
        mean = columns.mean(axis=1, keepdims=True)
        return np.asarray((mean * np.log(mean / columns[:, held].mean(axis=2))).mean(axis=1))

    return best_channel(epsilon, 2 << d, divergence).value


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_no_channel_tells_more_than_the_proof_allows(epsilon: float) -> None:
    """The best of all channels has less than c G 2^-d. With c at +1/C it would have more, and at
    epsilon 3 with G = 1/C^2 too."""
    shrink = 1 / response_gain(epsilon)
    for d in (1, 2, 3):
        best = best_divergence(d, epsilon) * 2**d
        assert (
            shrink - math.log1p(shrink)
            < best
            < divergence_curvature(epsilon) * report_squares(epsilon)
        )
    assert (best > divergence_curvature(epsilon) * shrink**2) is (epsilon == 3.0)
