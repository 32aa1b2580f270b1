"""The factorization norm: certificates that bound it from below, and what they prove of every local randomizer."""

import math

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import Certificate, factorize, known_totals, local_variance_bound
from local_dp.bounds.response import response_gain
from local_dp.errors import InputError
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.signs.sign_rows import SignRows, sylvester

PREFIXES = np.tril(np.ones((12, 12)))[:-1]
RANDOM = np.random.default_rng(3).normal(size=(9, 7))
WORKLOADS = {"identity": np.eye(8), "prefixes": PREFIXES, "random": RANDOM, "parities": sylvester(16)[1:].astype(np.float64)}


@pytest.mark.parametrize("name", WORKLOADS)
def test_both_sides_meet(name: str) -> None:
    """The bounds are within 1 % of each other, and both are what they say: the certificate's trace norm, and the worst variance of the Gram matrix."""
    workload = WORKLOADS[name]
    found = factorize(workload)
    assert found.lower <= found.upper <= 1.0101 * found.lower
    assert found.certificate.norm(workload) == pytest.approx(found.lower, rel=1e-6)
    assert np.diag(found.gram).max() == pytest.approx(1.0)
    assert np.linalg.eigvalsh(found.gram).min() > -1e-9
    worst = np.einsum("ij,jk,ik->i", workload, known_totals(found.gram + 1e-12 * np.eye(len(found.gram))), workload).max()
    assert math.sqrt(worst) <= found.upper * (1 + 1e-3)


def test_the_sides_do_not_cross() -> None:
    """Where they meet, as for the shares of k symbols, rounding alone would have the lower one above: of two on every machine, of eight on some."""
    for k in range(2, 33):
        found = factorize(np.eye(k))
        assert found.lower <= found.upper <= found.lower * (1 + 1e-9)


def test_known_norms() -> None:
    """The shares of k symbols: 1 - 1/k; the k - 1 parities of k points: sqrt(k - 1)."""
    for k in (4, 16):
        assert factorize(np.eye(k)).lower == pytest.approx(1 - 1 / k)
        assert factorize(sylvester(k)[1:].astype(np.float64)).lower == pytest.approx(math.sqrt(k - 1))


def test_no_weights_prove_more_than_is_true() -> None:
    """Random weights stay below the upper bound, whatever they are."""
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
    """At the certificate's law some query's Cramer-Rao variance is at least the bound; with C^2 + 1 in place of C^2 - 1 not, from epsilon 1 on."""
    k = 8
    near = []
    for workload in (np.eye(k), np.tril(np.ones((k, k)))[:-1]):
        certificate = factorize(workload, within=0.001).certificate
        law = certificate.symbols / certificate.symbols.sum()
        bound = local_variance_bound(epsilon, workload, certificate)
        for randomizer in (GRR(epsilon, k=k), Hadamard(epsilon, k=k), SignRows(epsilon, k=k)):
            information = _information(randomizer, law)
            assert np.trace(np.diag(law) @ information) <= (1 + 1e-6) / (response_gain(epsilon) ** 2 - 1)
            scale = np.sqrt(law)
            inverse = np.linalg.pinv(information * np.outer(scale, scale), rcond=1e-9, hermitian=True)
            rows = workload * scale
            worst = float(np.einsum("ij,jk,ik->i", rows, inverse, rows).max())
            assert worst >= bound * (1 - 1e-6)
            near.append(worst < bound * (response_gain(epsilon) ** 2 + 1) / (response_gain(epsilon) ** 2 - 1))
    assert any(near) == (epsilon >= 1)


def test_nothing_to_ask_is_refused() -> None:
    """Constant queries, and what is no matrix."""
    for wrong in (np.ones((3, 4)), np.ones(4), np.full((2, 2), np.nan), np.ones((2, 1))):
        with pytest.raises(InputError, match="workload"):
            factorize(wrong)
