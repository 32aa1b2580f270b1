"""The prefix-sum mechanism: its privacy by enumeration, its estimate without bias, its variance against the factorization bound."""

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import prefix_gamma
from local_dp.interaction import run
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.protocols.vectors.workload import PrefixSums
from local_dp.randomizers.signs.prefix_signs import PATTERNS, PrefixSigns, correlation, excess, filter_weights, from_spectrum, patterns, spectrum
from local_dp.tallies import Tally

SIZES = (2, 4, 16, 64, 256, 1024, 2048)


def expected_tally(randomizer: PrefixSigns, law: Floats, n: float) -> Tally:
    """The tally of n clients if every cell and report came exactly as often as it is likely."""
    flip = randomizer.flip / randomizer.total
    bits = randomizer.encode(np.arange(randomizer.k)[None, :], np.arange(randomizer.cells)[:, None])
    ones = (flip + (1 - 2 * flip) * bits) @ law
    return Tally(np.stack([1 - ones, ones], axis=1) * n / randomizer.cells)  # type: ignore[arg-type]  # shares in place of counts


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


def test_the_variance_is_near_the_factorization_bound() -> None:
    """gamma_2^2 <= v <= 1.13 gamma_2^2 at every size, with gamma_2 the mean singular value of the workload."""
    for k in SIZES:
        assert prefix_gamma(k) == pytest.approx(np.linalg.svd(np.tril(np.ones((k, k))) - 0.5, compute_uv=False).mean(), rel=1e-9)
        assert 1 - 1e-9 <= excess(k) / prefix_gamma(k) ** 2 <= 1.13


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


def test_every_machine_has_the_same_patterns() -> None:
    """No fixed-point weight is near a rounding boundary and no filtered sum near 0, so floating point cannot change a sign."""
    for k in SIZES:
        exact = from_spectrum(np.abs(spectrum(np.full(k, 0.5))) ** 0.6) * (1 << 20)
        assert np.abs(np.abs(exact - filter_weights(k)) - 0.5).min() > 1e-6
        assert patterns(k).shape == (PATTERNS, k)
        assert set(np.unique(patterns(k)).tolist()) <= {-1, 1}
