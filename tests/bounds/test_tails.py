"""Tails of laws, clients for a largest error, and certificates of the factorization norm."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import integrate, stats

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim, Reports
from local_dp.bounds.curator import noisy_means_failure, noisy_tail
from local_dp.bounds.frequencies import frequency_clients, shares_errors, unfavourable_laws
from local_dp.bounds.quantiles import Certificate, factorize, known_totals, local_variance_bound
from local_dp.bounds.response import response_gain
from local_dp.bounds.tails import Errors, both_beyond, normal_tail, widest_reach
from local_dp.errors import InputError
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.numbers.noise import DiscreteLaplace
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.signs.prefix_signs import PrefixSigns, SignRows, sylvester

ZIPF = (1 / np.arange(1, 9)) / (1 / np.arange(1, 9)).sum()


@pytest.mark.parametrize("correlation", [-1.0, -0.99, -0.6, 0.0, 0.3, 0.95, 1.0])
@pytest.mark.parametrize(("a", "b"), [(0.0, 0.5), (1.0, 1.0), (1.96, 2.3), (3.0, 4.0)])
def test_two_normal_errors_are_both_large_as_often_as_the_integral_says(
    a: float, b: float, correlation: float
) -> None:
    """Plackett's identity, against the integral of Pr[|Y| > b | X = x] over |x| > a; at correlation
    1 and 0 against what is known."""

    def given(x: float) -> float:
        spread = math.sqrt(1 - correlation**2)
        return float(
            stats.norm.pdf(x)
            * (
                stats.norm.sf((b - correlation * x) / spread)
                + stats.norm.cdf((-b - correlation * x) / spread)
            )
        )

    known = (
        2 * normal_tail(max(a, b))
        if abs(correlation) == 1
        else 2 * integrate.quad(given, a, 12, limit=400, points=[max(a, b)])[0]
    )
    assert both_beyond(a, b, correlation) == pytest.approx(known, rel=1e-6, abs=1e-12)


def _least_failure(errors: Errors, reach: float) -> float:
    """Pr[some error is beyond], at least: the tails less all pairs (Bonferroni), of errors that are
    all near."""
    deviation = np.sqrt(np.diagonal(errors.near))
    single = sum(2 * normal_tail(reach / each) for each in deviation.tolist())
    places = range(len(deviation))
    return single - sum(
        both_beyond(
            reach / deviation[i],
            reach / deviation[j],
            errors.near[i, j] / (deviation[i] * deviation[j]),
        )
        for i, j in combinations(places, 2)
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(
    "law",
    [ZIPF, np.full(8, 1 / 8), np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0]), np.array([0.4, 0.3, 0.3])],
)
def test_the_reach_is_enough_and_hardly_more(epsilon: float, law: Floats) -> None:
    """Between Hunter's bound from above and Bonferroni's from below less than 2 % of the clients
    are left: the reach is proven, and tight."""
    errors = shares_errors(epsilon, law)
    reach = errors.reach(0.05)
    assert errors.beyond(reach) <= 0.05
    fewer = reach * math.sqrt(0.98)
    assert _least_failure(errors, fewer) > 0.05


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


def test_the_widest_is_found_though_quick_bounds_mislead() -> None:
    """The quick bound of opposite errors is the largest, its reach is not: the largest of all exact
    ones is returned."""
    opposite, apart = (
        Errors(np.ones(2), np.array([[1.0, -1.0], [-1.0, 1.0]])),
        Errors(np.full(2, 0.9), 0.9 * np.eye(2)),
    )
    assert opposite.reach(0.05, quick=True) > apart.reach(0.05, quick=True)
    assert widest_reach([opposite, apart], 0.05) == apart.reach(0.05) > opposite.reach(0.05)
    with pytest.raises(InputError, match="failure probability"):
        widest_reach([opposite], 0.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_channel_has_the_errors_of_the_closed_form(epsilon: float) -> None:
    """What reports add, enumerated from the channel, gives the variances and covariances of the
    formulas, for both oracles."""
    randomizer = frequency_randomizer(epsilon, 8)
    reports = Reports.of(randomizer, Aim.shares(8))
    assert reports is not None
    found, formula = reports.errors(ZIPF), shares_errors(epsilon, ZIPF)
    assert found.variance == pytest.approx(formula.variance, rel=1e-5)
    assert sorted(found.near.ravel()) == pytest.approx(
        sorted(formula.near.ravel()), rel=1e-4, abs=1e-4
    )
    assert max(each.reach(0.05) for each in reports.unfavourable()) == pytest.approx(
        math.sqrt(frequency_clients(epsilon, 8, 0.001, 0.05)) * 0.001, rel=1e-3
    )


def test_only_unbiased_estimators_of_the_aim_apply() -> None:
    """Randomized response estimates the share of ones, k-ary response has it as one of two; prefix
    sums and shares of other symbols are something else."""
    aim = Aim.share_of_ones()
    for randomizer in (BinaryRR(1.0), GRR(1.0, k=2), Hadamard(1.0, k=2)):
        found = Reports.of(randomizer, aim)
        assert found is not None
        assert found.added.shape[1] == 1
    assert Reports.of(PrefixSigns(1.0, k=2), aim) is None
    assert Reports.of(BinaryRR(1.0), Aim.shares(2)) is None
    assert Reports.of(GRR(1.0, k=2), Aim("symbols", np.array([[0.0], [0.5]]))) is None


@pytest.mark.parametrize(
    "randomizer", [BinaryRR(0.7), OneBitMean(0.7, steps=16), DiscreteLaplace(0.7, steps=16)]
)
def test_no_law_of_numbers_is_less_favourable(
    randomizer: BinaryRR | OneBitMean | DiscreteLaplace,
) -> None:
    """The law on the two extremes at the best odds: 300 random laws and every mixture of the
    extremes have no larger variance."""
    aim = Aim.share_of_ones() if isinstance(randomizer, BinaryRR) else Aim.mean(16)
    reports = Reports.of(randomizer, aim)
    assert reports is not None
    (worst,) = reports.unfavourable()
    generator, size = np.random.default_rng(5), len(aim.target)
    laws = [
        *generator.dirichlet(np.full(size, 0.2), 300),
        *(
            np.where(np.arange(size) == 0, 1 - p, np.where(np.arange(size) == size - 1, p, 0))
            for p in np.linspace(0, 1, 201)
        ),
    ]
    variances = [float(reports.errors(law).variance[0]) for law in laws]
    assert max(variances) == pytest.approx(float(worst.variance[0]), rel=1e-4)


def test_a_law_on_another_lattice_keeps_its_mean() -> None:
    """Numbers on 1,000 steps, reported on 16: the reports' mean is the law's own."""
    reports = Reports.of(OneBitMean(1.0, steps=16), Aim.mean(16))
    assert reports is not None
    law = np.random.default_rng(1).dirichlet(np.ones(1001))
    assert float(reports.law(law) @ reports.added[:, 0]) == pytest.approx(
        float(law @ np.arange(1001)) / 1000, abs=1e-9
    )


@pytest.mark.parametrize(
    ("deviation", "scale"),
    [(0.0, 1.0), (0.1, 1.0), (1.0, 1.0), (1.0, 0.1), (1.0, 0.051), (1.0, 0.049), (1.0, 0.001)],
)
@pytest.mark.parametrize("tau", [0.1, 1.0, 2.5, 6.0])
def test_the_tail_of_noise_on_a_sample_is_the_integral(
    tau: float, deviation: float, scale: float
) -> None:
    """Normal plus Laplace beyond tau: the closed form, against an integral over the noise."""
    if deviation == 0:
        assert noisy_tail(tau, deviation, scale) == pytest.approx(math.exp(-tau / scale))
        return

    def given(y: float) -> float:
        return math.exp(-y) * float(
            stats.norm.sf((tau - scale * y) / deviation)
            + stats.norm.sf((tau + scale * y) / deviation)
        )

    edge = min(tau / scale, 30.0)
    known = sum(
        integrate.quad(given, *ends, limit=400, epsabs=1e-16)[0]
        for ends in ((0, edge / 2), (edge / 2, edge), (edge, edge + 40))
    )
    rel = 1e-6 if scale >= deviation / 20 else 2e-2
    assert noisy_tail(tau, deviation, scale) == pytest.approx(known, rel=rel, abs=1e-12)


def test_noisy_means_fail_as_often_as_stated() -> None:
    """One share of 400 records with discrete Laplace noise on its count: the exact law of both is
    within a tenth of the closed form, half the noise is not."""
    n, epsilon, tau = 400, 0.2, 0.05
    count, noise = np.arange(n + 1), np.arange(-300, 301)
    ratio = math.exp(-epsilon)
    noise_law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(noise)
    beyond = np.abs((count[:, None] + noise) / n - 0.3) > tau
    exact = float(stats.binom.pmf(count, n, 0.3) @ beyond @ noise_law)
    assert noisy_means_failure(n, np.array([0.21]), 1 / epsilon, tau) == pytest.approx(
        exact, rel=0.1
    )
    assert noisy_means_failure(n, np.array([0.21]), 0.5 / epsilon, tau) < 0.8 * exact


def test_laws_that_may_be_least_favourable_are_laws() -> None:
    for k in (2, 8, 200):
        laws = unfavourable_laws(k)
        assert all(law.sum() == pytest.approx(1) and len(law) == k for law in laws)
        assert {1, min(k, 64), k} <= {int(np.count_nonzero(law)) for law in laws}


PREFIXES = np.tril(np.ones((12, 12)))[:-1]
RANDOM = np.random.default_rng(3).normal(size=(9, 7))
WORKLOADS = {
    "identity": np.eye(8),
    "prefixes": PREFIXES,
    "random": RANDOM,
    "parities": sylvester(16)[1:].astype(np.float64),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_both_sides_meet(name: str) -> None:
    """The bounds are within 1 % of each other, and both are what they say: the certificate's trace
    norm, and the worst variance of the Gram matrix."""
    workload = WORKLOADS[name]
    found = factorize(workload)
    assert found.lower <= found.upper <= 1.0101 * found.lower
    assert found.certificate.norm(workload) == pytest.approx(found.lower, rel=1e-6)
    assert np.diag(found.gram).max() == pytest.approx(1.0)
    assert np.linalg.eigvalsh(found.gram).min() > -1e-9
    worst = np.einsum(
        "ij,jk,ik->i",
        workload,
        known_totals(found.gram + 1e-12 * np.eye(len(found.gram))),
        workload,
    ).max()
    assert math.sqrt(worst) <= found.upper * (1 + 1e-3)


def test_the_sides_do_not_cross() -> None:
    """Where they meet, as for the shares of k symbols, rounding alone would have the lower one
    above: of two on every machine, of eight on some."""
    for k in range(2, 33):
        found = factorize(np.eye(k))
        assert found.lower <= found.upper <= found.lower * (1 + 1e-9)


def test_known_norms() -> None:
    """The shares of k symbols: 1 - 1/k; the k - 1 parities of k points: sqrt(k - 1)."""
    for k in (4, 16):
        assert factorize(np.eye(k)).lower == pytest.approx(1 - 1 / k)
        assert factorize(sylvester(k)[1:].astype(np.float64)).lower == pytest.approx(
            math.sqrt(k - 1)
        )


def test_no_weights_prove_more_than_is_true() -> None:
    generator = np.random.default_rng(1)
    for workload in WORKLOADS.values():
        upper = factorize(workload).upper
        for concentration in (0.1, 1.0, 10.0):
            p, q = (generator.dirichlet(np.full(size, concentration)) for size in workload.shape)
            assert Certificate(p, q).norm(workload) <= upper * (1 + 1e-9)


def _information(randomizer: FiniteChannel, law: Floats) -> Floats:
    """The Fisher information of one report about the law, coins public."""
    total = np.zeros((len(law), len(law)))
    for cell in range(randomizer.cells):
        channel = randomizer.channel(cell).astype(np.float64) / randomizer.total
        seen = law @ channel
        away = (channel - seen) / seen
        total += (away * seen) @ away.T / randomizer.cells
    return total


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_no_local_randomizer_is_below_the_bound(epsilon: float) -> None:
    """At the certificate's law some query's Cramer-Rao variance is at least the bound; with C^2 + 1
    in place of C^2 - 1 not, from epsilon 1 on."""
    k = 8
    near = []
    for workload in (np.eye(k), np.tril(np.ones((k, k)))[:-1]):
        certificate = factorize(workload, within=0.001).certificate
        law = certificate.symbols / certificate.symbols.sum()
        bound = local_variance_bound(epsilon, workload, certificate)
        for randomizer in (GRR(epsilon, k=k), Hadamard(epsilon, k=k), SignRows(epsilon, k=k)):
            information = _information(randomizer, law)
            assert np.trace(np.diag(law) @ information) <= (1 + 1e-6) / (
                response_gain(epsilon) ** 2 - 1
            )
            scale = np.sqrt(law)
            inverse = np.linalg.pinv(
                information * np.outer(scale, scale), rcond=1e-9, hermitian=True
            )
            rows = workload * scale
            worst = float(np.einsum("ij,jk,ik->i", rows, inverse, rows).max())
            assert worst >= bound * (1 - 1e-6)
            near.append(
                worst
                < bound * (response_gain(epsilon) ** 2 + 1) / (response_gain(epsilon) ** 2 - 1)
            )
    assert any(near) == (epsilon >= 1)


def test_nothing_to_ask_is_refused() -> None:
    for wrong in (np.ones((3, 4)), np.ones(4), np.full((2, 2), np.nan), np.ones((2, 1))):
        with pytest.raises(InputError, match="workload"):
            factorize(wrong)
