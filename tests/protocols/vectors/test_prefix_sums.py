"""The prefix-sum mechanism: its privacy by enumeration, its estimate without bias, its variance against the factorization bound."""

import math

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import one_query_clients, prefix_gamma, toeplitz_gamma
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.population import PopulationOracle
from local_dp.protocols.vectors.workload import PrefixSums
from local_dp.randomizers.evidence import check_loss, exact_epsilon
from local_dp.randomizers.signs.prefix_signs import MAX_K, PATTERNS, PrefixSigns, correlation, excess, filter_weights, from_spectrum, patterns, spectrum
from local_dp.tallies import Tally

SIZES = (2, 4, 16, 64, 256, 1024, 2048)


def expected_tally(randomizer: PrefixSigns, law: Floats, n: float) -> Tally:
    """The tally of n clients if every cell and report came exactly as often as it is likely."""
    flip = randomizer.flip / randomizer.total
    bits = randomizer.encode(np.arange(randomizer.k)[None, :], np.arange(randomizer.cells)[:, None])
    ones = (flip + (1 - 2 * flip) * bits) @ law
    return Tally(np.stack([1 - ones, ones], axis=1) * n / randomizer.cells)  # type: ignore[arg-type]  # shares in place of counts


@pytest.mark.parametrize("k", [2, 5, 16, 100])
def test_privacy_is_exactly_the_nominal_one(k: int) -> None:
    """Over every cell, report and pair of values the loss is at most epsilon and within a millionth of it."""
    for epsilon in (0.1, 1.0, 4.0):
        randomizer = PrefixSigns(epsilon, k=k)
        check_loss(randomizer)
        assert epsilon - 1e-6 < exact_epsilon(randomizer) <= epsilon


@pytest.mark.parametrize("k", [2, 3, 13, 64, 256])
def test_the_estimate_is_unbiased_whatever_the_law(k: int) -> None:
    """The estimate is linear in the tally, and on the expected tally of any law it is the exact prefix sums."""
    law = np.random.default_rng(k).dirichlet(np.full(k, 0.3))
    randomizer = PrefixSigns(1.0, k=k)
    assert randomizer.estimate(expected_tally(randomizer, law, 1e9)).value == pytest.approx(np.cumsum(law), abs=1e-9)


@pytest.mark.parametrize("k", [4, 16, 64])
def test_the_variance_formula_is_that_of_least_squares(k: int) -> None:
    """`correlation` equals W G^-1 W^T computed with plain matrices, the same for all pairs of prefix sums equally far apart; `excess` is its diagonal."""
    randomizer = PrefixSigns(1.0, k=k)
    signs = 1.0 - 2.0 * randomizer.encode(np.arange(k)[None, :], np.arange(randomizer.cells)[:, None])
    workload = np.tril(np.ones((k, k))) - 0.5
    covariances = workload @ np.linalg.inv(signs.T @ signs / len(signs)) @ workload.T
    assert np.diag(covariances) == pytest.approx(np.full(k, excess(k)), rel=1e-9)
    apart = np.abs(np.arange(k)[:, None] - np.arange(k)[None, :])
    assert covariances == pytest.approx(correlation(k)[apart], abs=1e-9)


@pytest.mark.parametrize("count", [50, 5000])
def test_a_tally_is_drawn_from_its_law(count: int) -> None:
    """Over 300 tallies of two values, with fewer clients than cells and with more, all reports fit the channel's law: chi-square, failure 1e-6."""
    randomizer, generator = PrefixSigns(1.0, k=13), np.random.default_rng(6)
    told = sum((randomizer.draw_tally({2: count, 7: 2 * count}, generator) for _ in range(300)), randomizer.empty())
    flip = randomizer.flip / randomizer.total
    bits = randomizer.encode(np.array([[2, 7]]), np.arange(randomizer.cells)[:, None]) @ np.array([1 / 3, 2 / 3])
    for chance, fits in ((flip, True), (0.0 + flip / 2, False)):
        ones = chance + (1 - 2 * chance) * bits
        expected = np.stack([1 - ones, ones], axis=1) * 900 * count / randomizer.cells
        assert (stats.chisquare(told.counts.ravel(), expected.ravel()).pvalue > 1e-6) == fits


def test_the_variance_is_near_the_factorization_bound() -> None:
    """gamma_2^2 <= v <= 1.13 gamma_2^2 at every size, with gamma_2 the mean singular value of the workload."""
    for k in SIZES:
        assert prefix_gamma(k) == pytest.approx(np.linalg.svd(np.tril(np.ones((k, k))) - 0.5, compute_uv=False).mean(), rel=1e-9)
        assert 1 - 1e-9 <= excess(k) / prefix_gamma(k) ** 2 <= 1.13


def test_fewer_clients_than_random_threshold_queries() -> None:
    """Against one random threshold query a client, k C^2 / 4, the gain is 4.4, 11.5 and 33 at k = 64, 256 and 1,024 or more."""
    for k, gain in ((64, 4.4), (256, 11.5), (1024, 33.0)):
        assert k / 4 / excess(k) > gain
        protocol = PrefixSums(k=k)
        assert one_query_clients(1.0, k, protocol.tolerance, 0.05) / protocol.clients(1.0) == pytest.approx(k / 4 / excess(k), rel=1e-3)


def test_standard_errors_are_those_seen() -> None:
    """Over 400 tallies the mean square of the 15 errors, in standard errors, is 1 within 5 deviations; half the stated variance would fail."""
    k, n, trials = 16, 20_000, 400
    generator = np.random.default_rng(5)
    law = generator.dirichlet(np.ones(k))
    randomizer = PrefixSigns(1.0, k=k)
    squares = []
    for _ in range(trials):
        counts = dict(enumerate(generator.multinomial(n, law).tolist()))
        estimate = randomizer.estimate(randomizer.draw_tally(counts, generator))
        squares.append(float(np.mean(((estimate.value - np.cumsum(law))[:-1] / estimate.standard_error[:-1]) ** 2)))
    spread = float(np.std(squares)) / math.sqrt(trials)
    assert abs(np.mean(squares) - 1) < 5 * spread
    assert abs(2 * np.mean(squares) - 1) > 5 * 2 * spread


def test_the_protocol_meets_its_tolerance() -> None:
    """With the default number of clients all prefix sums are within the tolerance in 87 of 100 runs (below that: 5e-4 at 95 %); with a quarter, not."""
    protocol = PrefixSums(k=32, tolerance=0.05)
    n = protocol.clients(1.0)
    population = protocol.synthetic(n, seed=1)
    generator = np.random.default_rng(3)

    def within(clients: int) -> int:
        results = (run(protocol.algorithm(1.0, clients), AggregateOracle(population, generator, 1.0)) for _ in range(100))
        return sum(protocol.true_error(result, population) <= protocol.tolerance for result in results)

    assert within(n) >= 87
    assert within(n // 4) < 87


def test_clients_and_aggregate_agree() -> None:
    """Simulated clients answer with the law that the aggregate tier draws from: both are within four standard errors of the truth."""
    protocol = PrefixSums(k=50, tolerance=0.05)
    n = 100_000
    population = protocol.synthetic(n, seed=2)
    truth = np.cumsum(population.law(protocol.category))
    for oracle in (PopulationOracle(population, KeyedNoise(1), 1, 1.0), AggregateOracle(population, np.random.default_rng(1), 1.0)):
        estimate = run(protocol.algorithm(1.0, n), oracle)
        assert np.all(np.abs(estimate.value - truth)[:-1] <= 4 * estimate.standard_error[:-1])


def test_every_machine_has_the_same_patterns() -> None:
    """No fixed-point weight is near a rounding boundary and no filtered sum near 0, so floating point cannot change a sign."""
    for k in SIZES:
        exact = from_spectrum(np.abs(spectrum(np.full(k, 0.5))) ** 0.6) * (1 << 20)
        assert np.abs(np.abs(exact - filter_weights(k)) - 0.5).min() > 1e-6
        assert patterns(k).shape == (PATTERNS, k)
        assert set(np.unique(patterns(k)).tolist()) <= {-1, 1}


def test_too_many_values_are_refused() -> None:
    """More than 2,048 values are refused with what to do."""
    with pytest.raises(InputError, match="merge neighbouring"):
        PrefixSigns(1.0, k=MAX_K + 1)


def test_published_factorization_norms() -> None:
    """The square-root Toeplitz factors have norms 2.39, 2.83, 3.27 and 3.71 at 64 to 4,096 points; centring lowers them to 1.81, 2.25, 2.69 and 3.13."""
    sizes = (64, 256, 1024, 4096)
    assert [round(toeplitz_gamma(k), 2) for k in sizes] == [2.39, 2.83, 3.27, 3.71]
    assert [round(prefix_gamma(k), 2) for k in sizes] == [1.81, 2.25, 2.69, 3.13]
