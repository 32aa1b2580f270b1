"""Pure noise in the shape of the cube, and on each count."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.accounting.shares import optimal_part
from local_dp.arrays import Ints
from local_dp.curator.counts import k_norm
from local_dp.curator.counts.base import ColumnCounts, NoisyCounts
from local_dp.curator.counts.k_norm import KNormCounts
from local_dp.curator.counts.laplace import ComposedLaplaceCounts, LaplaceCounts, NoCounts
from local_dp.curator.laws import SmallDatabases
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Pure, approximate, exp_epsilon, nano_epsilon
from local_dp.noise import KeyedNoise

HALF = Pure(nano_epsilon(0.5))


def small(k: int, n: int) -> SmallDatabases[tuple[int, ...], ColumnCounts]:
    """All databases of n records of k bits."""
    return SmallDatabases(list(product((0, 1), repeat=k)), n, lambda rows: ColumnCounts.of(np.array(rows)))


SIZES = [(1, 1), (1, 3), (2, 1), (2, 3), (3, 1)]


@pytest.mark.parametrize(("k", "n"), SIZES)
def test_pure_noise_costs_epsilon(k: int, n: int) -> None:
    """Over all neighbours delta is 0 at the loss, and the loss is met to 1e-40; half the noise is caught, and for several counts noise made for one."""
    databases = small(k, n)
    for mechanism in (KNormCounts(k, 0.5), LaplaceCounts(k, 0.5)):
        assert databases.worst_delta(mechanism) == 0
        assert exp_epsilon(mechanism.loss.nano) * (1 - Fraction(1, 10**40)) < max(databases.worst_ratios(mechanism).values())
        assert databases.worst_delta(type(mechanism)(k, 1.0), HALF) > 0.05
    assert k == 1 or databases.worst_delta(LaplaceCounts(k, 0.5 * k), HALF) > 0.05


@pytest.mark.parametrize(("k", "n"), [(1, 2), (2, 1), (2, 3), (3, 1), (3, 2)])
def test_a_delta_buys_exactly_that(k: int, n: int) -> None:
    """The step of each count keeps to delta over all neighbours, and with one record reaches it; one 1 % larger does not keep to it."""
    mechanism, databases = ComposedLaplaceCounts(k, 0.5, 1e-2), small(k, n)
    assert mechanism.step == optimal_part(approximate(0.5, 1e-2), k).nano
    spent = databases.worst_delta(mechanism)
    assert spent <= Fraction(1, 100)
    assert n > 1 or spent > Fraction(999, 100_000)

    @dataclass(frozen=True)
    class Bold(ComposedLaplaceCounts):
        @property
        def step(self) -> Fraction:
            return super().step * Fraction(101, 100)

    assert n > 1 or databases.worst_delta(Bold(k, 0.5, 1e-2)) > Fraction(1, 100)


def p_value(mechanism: KNormCounts, database: ColumnCounts, runs: int = 3000) -> float:
    """Chi-squared of the cut releases against the law."""
    law, draws = mechanism.law(database), Draws(KeyedNoise(5))
    told = Counter(NoisyCounts(np.clip(mechanism.release(database, draws).counts, 0, database.size)) for _ in range(runs))
    expected = np.array([weight / sum(law.values()) for weight in law.values()]) * runs
    assert set(told) <= set(law)
    return float(chisquare([told[outcome] for outcome in law], expected).pvalue)


def test_releases_have_their_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 releases fit (chi-squared, failure 1e-6); with a cube drawn as if there were one count less they do not."""
    database = ColumnCounts(2, np.array([0, 1]))
    assert p_value(KNormCounts(2, 0.8), database) > 1e-6
    monkeypatch.setattr(k_norm, "_radius", lambda k, nano, right=k_norm._radius: right(k - 1, nano))
    assert p_value(KNormCounts(2, 0.8), database) < 1e-6


def test_all_of_a_shell_is_alike() -> None:
    """Uncut, 8,000 draws of three counts: the largest has its law, and how many are as large as it that of a uniform point of the shell (failure 1e-6)."""
    mechanism, draws, runs = KNormCounts(3, 1.0), Draws(KeyedNoise(6)), 8000
    drawn = np.abs([mechanism.noise(draws) for _ in range(runs)])
    largest = drawn.max(axis=1)
    shares = np.diff([mechanism.within(r) for r in range(9)], prepend=0.0)
    found = np.bincount(np.minimum(largest, 9), minlength=10)
    assert chisquare(found, runs * np.append(shares, 1 - shares.sum())).pvalue > 1e-6
    at_two = drawn[largest == 2]
    ends = np.bincount((at_two == 2).sum(axis=1), minlength=4)[1:]
    assert chisquare(ends, len(at_two) * np.array([3 * 2 * 9, 3 * 4 * 3, 8]) / 98).pvalue > 1e-6
    assert chisquare(ends, len(at_two) * np.array([3, 3, 1]) / 7).pvalue < 1e-6


@pytest.mark.parametrize(("k", "epsilon"), [(1, 1.0), (2, 0.1), (5, 0.5), (16, 1.0), (64, 2.0), (300, 1.0)])
def test_the_law_of_the_largest_error(k: int, epsilon: float) -> None:
    """The closed form is, to 1e-9, the sum of e^(-eps r) ((2r + 1)^k - (2r - 1)^k) in whole numbers."""
    mechanism = KNormCounts(k, epsilon)
    decay = (1 << 200) // exp_epsilon(mechanism.loss.nano)  # e^-eps in units of 2^-200
    weights, power = [1 << 3000], 1 << 3000
    for r in range(1, int((3 * k + 60) / epsilon)):
        power = power * decay >> 200
        weights.append(power * ((2 * r + 1) ** k - (2 * r - 1) ** k))
    total, below = sum(weights), 0
    for r, weight in enumerate(weights):
        below += weight
        assert mechanism.within(r) == pytest.approx(below / total, abs=1e-9)


def test_a_median_is_the_least_that_half_of_all_keep_to() -> None:
    """The figures of 16, 256 and 4,096 counts at epsilon 1, by the laws; Laplace noise within a delta of 1e-6 as well."""
    assert [KNormCounts(k, 1.0).median_error for k in (16, 256, 4096)] == [16, 256, 4096]
    assert [LaplaceCounts(k, 1.0).median_error for k in (16, 256, 4096)] == [51, 1514, 35571]
    assert [ComposedLaplaceCounts(k, 1.0, 1e-6).median_error for k in (16, 256, 4096)] == [49, 398, 2347]
    for mechanism in (KNormCounts(16, 1.0), LaplaceCounts(16, 1.0)):
        assert mechanism.within(mechanism.median_error - 1) < 0.5 <= mechanism.within(mechanism.median_error)


def test_noise_on_each_has_its_law() -> None:
    """1,000 largest errors of 16 counts: as many within the median as it says (binomial, failure 1e-6)."""
    draws = Draws(KeyedNoise(7))
    for mechanism in (LaplaceCounts(16, 1.0), ComposedLaplaceCounts(16, 1.0, 1e-6)):
        share, errors = mechanism.within(mechanism.median_error), np.array([np.abs(mechanism.noise(draws)).max() for _ in range(1000)])
        assert abs(int((errors <= mechanism.median_error).sum()) - 1000 * share) < 4.9 * (1000 * share * (1 - share)) ** 0.5
        assert int((errors <= mechanism.median_error // 2).sum()) < 250


def test_nothing_is_half_of_all() -> None:
    """It costs nothing, on all databases, and errs by half of the records at most."""
    rows: Ints = np.array([[0, 1, 1], [0, 1, 0], [0, 1, 1]])
    database = ColumnCounts.of(rows)
    assert database.counts.tolist() == [0, 3, 2]
    assert NoCounts().loss == Pure(0)
    assert small(2, 2).worst_delta(NoCounts()) == 0
    assert NoCounts().release(database, Draws(KeyedNoise(1))).largest_error(database) == 2


def test_bad_input_is_refused() -> None:
    """No counts, another number of them, an epsilon too small for a table, and too many outcomes to list."""
    with pytest.raises(InputError, match="k is 0"):
        KNormCounts(0, 1.0)
    with pytest.raises(InputError, match="there are 2 counts and the mechanism is for 3"):
        KNormCounts(3, 1.0).release(ColumnCounts(1, np.array([0, 1])), Draws(KeyedNoise(1)))
    with pytest.raises(InputError, match="at most 262,144 are listed"):
        KNormCounts(4096, 0.01)
    for mechanism in (KNormCounts(13, 1.0), LaplaceCounts(13, 1.0)):
        with pytest.raises(InputError, match="listed up to 4,096 outcomes"):
            mechanism.law(ColumnCounts(1, np.zeros(13, dtype=np.int64)))
    with pytest.raises(InputError, match="delta is 0"):
        ComposedLaplaceCounts(3, 1.0, 0.0)
