"""Tails of laws, clients for a largest error, and certificates of the factorization norm."""

import math
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim, Reports
from local_dp.bounds.curator import noisy_means_failure, noisy_tail
from local_dp.bounds.frequencies import frequency_clients, shares_errors
from local_dp.bounds.quantiles import (
    Certificate,
    factorize,
    known_totals,
    local_variance_bound,
    one_bit_variance_bound,
    one_query_clients,
    toeplitz_gamma,
)
from local_dp.bounds.response import response_gain
from local_dp.bounds.tails import (
    Errors,
    both_beyond,
    normal_quantile,
    normal_tail,
    widest_reach,
)
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.numbers.noise import DiscreteLaplace
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.signs.prefix_signs import PrefixSigns, SignRows, sylvester
from tests.support.inputs.refusals import refuse
from tests.support.wrong import wrong

ZIPF = (1 / np.arange(1, 9)) / (1 / np.arange(1, 9)).sum()


def test_two_opposite_errors_are_one() -> None:
    """Of two symbols under full correlation the largest error is one error: 1.96 deviations, where
    a union asks for 2.24."""
    errors = shares_errors(4.0, np.array([0.5, 0.5]))
    deviation = math.sqrt(float(errors.variance[0]))
    assert errors.reach(0.05) == pytest.approx(1.959964 * deviation, rel=1e-5)
    assert errors.reach(0.05, quick=True) > 2.2 * deviation


def test_the_reach_of_many_errors_is_that_of_independent_ones() -> None:
    """Without correlation, for more errors than are looked at in pairs: between 1 - (1 - p)^m =
    0.05 and the union, which is half a per cent apart."""
    reach = Errors(np.ones(500), np.eye(16)).reach(0.05)
    assert 2 * stats.norm.sf(reach) == pytest.approx(1 - 0.95 ** (1 / 500), rel=1e-4)


@pytest.mark.parametrize("correlation", [-1.0, -0.6, 0.0, 0.95, 1.0])
@pytest.mark.parametrize(("a", "b"), [(0.0, 0.5), (1.96, 2.3), (3.0, 4.0)])
def test_two_normal_errors_are_both_large_as_often_as_the_integral_says(
    a: float, b: float, correlation: float
) -> None:
    """Plackett's identity, against the integral of Pr[|Y| > b | X = x] over |x| > a; at correlation
    1 against what is known."""
    spread = math.sqrt(1 - correlation**2)

    def density(x: float) -> float:
        above = stats.norm.sf((b - correlation * x) / spread)
        below = stats.norm.cdf((-b - correlation * x) / spread)
        return float(stats.norm.pdf(x) * (above + below))

    if spread == 0:
        integral = normal_tail(max(a, b))
    else:
        integral = integrate.quad(density, a, 12, limit=400, points=[max(a, b)])[0]
    assert both_beyond(a, b, correlation) == pytest.approx(2 * integral, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(
    "law",
    [ZIPF, np.full(8, 1 / 8), np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0]), np.array([0.4, 0.3, 0.3])],
)
def test_the_reach_is_enough_and_hardly_more(epsilon: float, law: Floats) -> None:
    """Between Hunter's bound from above and Bonferroni's, tails less all pairs, from below less
    than 2 % of the clients are left: it is proven, and tight."""
    errors = shares_errors(epsilon, law)
    reach = errors.reach(0.05)
    deviation = np.sqrt(np.diagonal(errors.near)).tolist()
    assert errors.beyond(reach) <= 0.05
    fewer = reach * math.sqrt(0.98)
    least = sum(2 * normal_tail(fewer / each) for each in deviation)
    for (i, one), (j, other) in combinations(enumerate(deviation), 2):
        correlation = errors.near[i, j] / (one * other)
        least -= both_beyond(fewer / one, fewer / other, correlation)
    assert least > 0.05


def test_the_widest_is_found_though_quick_bounds_mislead() -> None:
    """The quick bound of opposite errors is the largest, its reach is not: the largest of all exact
    ones is returned."""
    opposite = Errors(np.ones(2), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    apart = Errors(np.full(2, 0.9), 0.9 * np.eye(2))
    assert opposite.reach(0.05, quick=True) > apart.reach(0.05, quick=True)
    assert widest_reach([opposite, apart], 0.05) == apart.reach(0.05) > opposite.reach(0.05)


@pytest.mark.parametrize("epsilon", [0.1, 4.0])
def test_the_channel_has_the_errors_of_the_closed_form(epsilon: float) -> None:
    """What reports add, enumerated from the channel, gives the variances and covariances of the
    formulas, for both oracles."""
    reports = Reports.of(frequency_randomizer(epsilon, 8), Aim.shares(8))
    assert reports is not None
    enumeration = reports.errors(ZIPF)
    formula = shares_errors(epsilon, ZIPF)
    assert enumeration.variance == pytest.approx(formula.variance, rel=1e-5)
    assert sorted(enumeration.near.ravel()) == pytest.approx(
        sorted(formula.near.ravel()), rel=1e-4, abs=1e-4
    )
    reaches = (each.reach(0.05) for each in reports.unfavourable())
    assert max(reaches) == pytest.approx(
        math.sqrt(frequency_clients(epsilon, 8, 0.001, 0.05)) * 0.001, rel=1e-3
    )


class Counting(np.random.Generator):
    """Counts the numbers that it draws from binomial laws."""

    numbers = 0

    def multinomial(self, *arguments: Any, **settings: Any) -> Any:
        counts = super().multinomial(*arguments, **settings)
        self.numbers += counts.size
        return counts


@wrong(
    "local_dp.bounds.best:Reports.noise",
    "generator.permutation(np.repeat(np.arange(totals.size), totals))",
    "np.repeat(np.arange(totals.size), totals)",
    "runs whose reports are drawn together have reports unlike those of one run",
)
def test_reports_of_few_clients_are_drawn_together() -> None:
    """The reports of all runs take one draw for each symbol. The mean square of the errors is that
    of the closed form, within what one in a million samples exceeds."""
    generator, law, runs = Counting(np.random.PCG64(1)), np.full(64, 1 / 64), 500
    reports = Reports.of(Hadamard(1.0, k=64), Aim.shares(64, "records"))
    assert reports is not None
    squares = np.mean(reports.noise(law, 640, runs, generator) ** 2, axis=1)
    assert generator.numbers == 64 * runs + 64 * 128
    away = np.mean(squares) - np.mean(reports.errors(law).variance) / 640
    assert abs(away) < normal_quantile(5e-7) * np.std(squares) / math.sqrt(runs)


def test_only_unbiased_estimators_of_the_aim_apply() -> None:
    """Randomized response estimates the share of ones, k-ary response has it as one of two; prefix
    sums and shares of other symbols are something else."""
    other = Aim("symbols", np.array([[0.0], [0.5]]))
    randomizers = (BinaryRR(1.0), GRR(1.0, k=2), PrefixSigns(1.0, k=2))
    applies = [
        Reports.of(randomizer, Aim.share_of_ones()) is not None for randomizer in randomizers
    ]
    assert applies == [True, True, False]
    assert Reports.of(BinaryRR(1.0), Aim.shares(2)) is None is Reports.of(GRR(1.0, k=2), other)


@pytest.mark.parametrize(("randomizer", "aim"), [
    (BinaryRR(0.7), Aim.share_of_ones()), (OneBitMean(0.7, steps=16), Aim.mean(16)),
    (DiscreteLaplace(0.7, steps=16), Aim.mean(16)),
])  # fmt: skip
def test_no_law_of_numbers_is_less_favourable(
    randomizer: BinaryRR | OneBitMean | DiscreteLaplace, aim: Aim
) -> None:
    """The law on the two extremes at the best odds: 300 random laws and every mixture of the
    extremes have no larger variance."""
    reports = Reports.of(randomizer, aim)
    size = len(aim.target)
    assert reports is not None
    (worst,) = reports.unfavourable()
    first = np.linspace(1, 0, 201)[:, None] * np.eye(size)[0]
    last = np.linspace(0, 1, 201)[:, None] * np.eye(size)[-1]
    mixtures = first + last
    laws = np.vstack([mixtures, np.random.default_rng(5).dirichlet(np.full(size, 0.2), 300)])
    variances = (float(reports.errors(law).variance[0]) for law in laws)
    assert max(variances) == pytest.approx(float(worst.variance[0]), rel=1e-4)
    if randomizer.name == "one-bit-mean":  # numbers on 1,000 steps keep their mean on 16
        fine = np.random.default_rng(1).dirichlet(np.ones(1001))
        mean = float(fine @ np.arange(1001))
        assert float(reports.law(fine) @ reports.contributions[:, 0]) == pytest.approx(
            mean / 1000, abs=1e-9
        )


@pytest.mark.parametrize(
    ("deviation", "scale"),
    [(0.1, 1.0), (1.0, 1.0), (1.0, 0.1), (1.0, 0.051), (1.0, 0.049), (2.0, 0.002)],
)
@pytest.mark.parametrize("tau", [0.1, 1.0, 6.0])
def test_the_tail_of_noise_on_a_sample_is_the_integral(
    tau: float, deviation: float, scale: float
) -> None:
    """Normal plus Laplace beyond tau: the closed form, against an integral over the noise."""

    def density(y: float) -> float:
        above = stats.norm.sf((tau - scale * y) / deviation)
        below = stats.norm.sf((tau + scale * y) / deviation)
        return math.exp(-y) * float(above + below)

    edge = min(tau / scale, 30.0)
    parts = ((0, edge / 2), (edge / 2, edge), (edge, edge + 40))
    integral = sum(integrate.quad(density, *ends, limit=400, epsabs=1e-16)[0] for ends in parts)
    assert noisy_tail(tau, deviation, scale) == pytest.approx(
        integral, rel=1e-6 if scale >= deviation / 20 else 2e-2, abs=1e-12
    )
    assert noisy_tail(tau, 0, scale) == pytest.approx(math.exp(-tau / scale))
    variances = np.array([9 * deviation**2, 0.0, 9 * deviation**2])
    assert noisy_means_failure(9, variances, 9 * scale, tau) == pytest.approx(
        2 * noisy_tail(tau, deviation, scale) + noisy_tail(tau, 0, scale)
    )


PREFIXES = np.tril(np.ones((12, 12)))[:-1]
WORKLOADS = (
    np.eye(8),
    PREFIXES,
    np.random.default_rng(3).normal(size=(9, 7)),
    sylvester(16)[1:].astype(np.float64),
)


@pytest.mark.parametrize("workload", WORKLOADS, ids=["identity", "prefixes", "random", "parities"])
def test_both_sides_meet(workload: Floats) -> None:
    """Within 1 %, and both are what they say: the certificate's trace norm, and the worst variance
    of the Gram matrix; no other weights prove more."""
    bounds = factorize(workload)
    generator = np.random.default_rng(1)
    assert bounds.lower <= bounds.upper <= 1.0101 * bounds.lower
    assert bounds.certificate.norm(workload) == pytest.approx(bounds.lower, rel=1e-6)
    assert np.diag(bounds.gram).max() == pytest.approx(1.0)
    assert np.linalg.eigvalsh(bounds.gram).min() > -1e-9
    gram = bounds.gram + 1e-12 * np.eye(len(bounds.gram))
    variances = workload @ known_totals(gram) @ workload.T
    assert math.sqrt(np.diag(variances).max()) == pytest.approx(bounds.upper, rel=0.0101)
    weights = bounds.certificate
    assert (weights.queries.sum(), weights.symbols.sum()) == pytest.approx((1, 1))
    for concentration in (0.1, 10.0):
        weights = Certificate(
            *(generator.dirichlet(np.full(size, concentration)) for size in workload.shape)
        )
        assert weights.norm(workload) <= bounds.upper * (1 + 1e-9)


def test_one_random_query_has_as_many_clients_as_its_normal_tails_need() -> None:
    z = stats.norm.isf(0.1 / 16) * response_gain(0.5)
    assert one_query_clients(0.5, 8, 0.1, 0.1) == math.ceil(8 * (z / 0.2) ** 2)


def test_known_norms() -> None:
    """The shares of k symbols: 1 - 1/k; the k - 1 parities of k points: sqrt(k - 1). Where the
    sides meet, rounding does not make them cross."""
    for k in (4, 16):
        parities = sylvester(k)[1:].astype(np.float64)
        assert factorize(parities).lower == pytest.approx(math.sqrt(k - 1))
    assert toeplitz_gamma(3) == 1 + (1 / 2) ** 2 + (6 / 16) ** 2
    for k in range(2, 33):
        bounds = factorize(np.eye(k))
        assert bounds.lower <= bounds.upper <= bounds.lower * (1 + 1e-9)
        assert bounds.lower == pytest.approx(1 - 1 / k)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(
    "workload", [np.eye(8), np.tril(np.ones((8, 8)))[:-1]], ids=["shares", "prefixes"]
)
def test_no_local_randomizer_is_below_the_bound(workload: Floats, epsilon: float) -> None:
    """At the certificate's law some query's Cramer-Rao variance, by the Fisher information of one
    report, is at least the bound; of the best of three randomizers at most 2.5 times it."""
    certificate = factorize(workload, within=0.001).certificate
    limit = 1 / (response_gain(epsilon) ** 2 - 1)
    law = certificate.symbols / certificate.symbols.sum()
    bound, least = local_variance_bound(epsilon, workload, certificate), math.inf
    for randomizer in (GRR(epsilon, k=8), Hadamard(epsilon, k=8), SignRows(epsilon, k=8)):
        information = np.zeros((8, 8))
        for cell in range(randomizer.cells):
            channel = randomizer.channel(cell).astype(np.float64) / randomizer.total
            reports = law @ channel
            away = (channel - reports) / reports
            information += (away * reports) @ away.T / randomizer.cells
        assert np.trace(np.diag(law) @ information) <= (1 + 1e-6) * limit
        scale = np.sqrt(law)
        inverse = np.linalg.pinv(information * np.outer(scale, scale), rcond=1e-9, hermitian=True)
        rows = workload * scale
        least = min(least, np.diag(rows @ inverse @ rows.T).max())
    assert bound * (1 - 1e-6) <= least <= 2.5 * bound


@wrong(
    "local_dp.bounds.quantiles:one_bit_variance_bound",
    "response_gain(epsilon)",
    "1.1 * response_gain(epsilon)",
    "a bound for too little information",
)
def test_one_private_bit_has_little_information() -> None:
    """On two symbols the bound is the variance of the best report; no private pair of chances has
    more information about any law, and some nearly as much."""
    low, part = np.random.default_rng(1).random((2, 20_000))
    certificate = Certificate(np.ones(2), np.ones(2))
    for epsilon in (0.3, 1.0, 3.0):
        high = np.minimum(math.exp(epsilon) * low, 1 - math.exp(-epsilon) * (1 - low))
        mean = low + part * (high - low)
        information = (high - mean) * (mean - low) / (mean * (1 - mean))
        most = 1 / (4 * one_bit_variance_bound(epsilon, np.eye(2), certificate))
        assert 0.95 * most <= information.max() <= (1 + 1e-9) * most


def test_bad_input() -> None:
    workloads = (np.ones((3, 4)), np.ones(4), np.full((2, 2), np.nan), np.ones((2, 1)))
    refuse(
        *(("workload", partial(factorize, wrong)) for wrong in workloads),
        ("failure probability", lambda: widest_reach([Errors(np.ones(1), np.ones((1, 1)))], 0.0)),
    )
