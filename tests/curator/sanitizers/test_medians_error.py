"""Trees of medians: their error on five shapes of data, and what they are measured against."""

from typing import Any

import numpy as np
import pytest

from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.baselines import DyadicTree, NoisyHistogram
from local_dp.curator.sanitizers.floats import points_of
from local_dp.curator.sanitizers.medians import Medians, TreeOfMedians
from local_dp.curator.sanitizers.sparse_medians import SparseMedians
from local_dp.draws import Draws
from local_dp.noise import KeyedNoise
from local_dp.populations.shapes import SHAPES, shaped
from tests.support.inputs.tables import fair


def success(mechanism: TreeOfMedians[Any] | DyadicTree | NoisyHistogram, shape: str, m: int, bits: int, runs: int) -> float:
    """How often all thresholds are within a tenth."""
    held = [Multiset.of(shaped(shape, m, bits, seed), bits) for seed in range(runs)]
    return sum(mechanism.release(points, Draws(KeyedNoise(seed))).error(points) <= 0.1 for seed, points in enumerate(held)) / runs


@pytest.mark.parametrize(("bits", "m"), [(16, 1500), (32, 2700), (64, 4900)])
@pytest.mark.parametrize("shape", SHAPES)
def test_all_thresholds_within_a_tenth(shape: str, bits: int, m: int) -> None:
    """Four levels, epsilon 1, 12 runs: 6 succeed at least; where 9 of 10 do, fewer is a matter of 5 in 100,000."""
    assert success(Medians(1.0, 4), shape, m, bits, 12) >= 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "m"), [(16, 1500), (32, 2700), (64, 4900)])
@pytest.mark.parametrize("shape", SHAPES)
def test_nine_times_of_ten(shape: str, bits: int, m: int) -> None:
    """The pure tree, 200 runs."""
    assert success(Medians(1.0, 4), shape, m, bits, 200) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "m"), [(16, 6400), (64, 6400), (256, 6400), (64, 30_000)])
@pytest.mark.parametrize("shape", SHAPES)
def test_sparse_medians_are_flat(shape: str, bits: int, m: int) -> None:
    """The sparse tree at delta 1e-6, 30 runs, with 6,400 records whatever the domain, and with more: pure medians need as many from 2^90 on."""
    assert success(SparseMedians(1.0, 4), shape, m, bits, 30) >= 0.9


@pytest.mark.parametrize("shape", ["nested", "five points"])
def test_sparse_medians_at_64_bits(shape: str) -> None:
    """Of the five shapes the two that are hardest, 6,400 records: both of two runs."""
    assert success(SparseMedians(1.0, 4), shape, 6400, 64, 2) == 1


def test_what_they_are_to_beat() -> None:
    """At 64 bits and 4,900 records: noisy counts do not see nested records, in a tree or in a histogram."""
    for baseline in (DyadicTree(1.0, 64), NoisyHistogram(1.0, 10)):
        assert success(baseline, "nested", 4900, 64, 10) <= 0.5
        assert success(baseline, "clustered", 4900, 64, 10) <= 0.5
    assert success(DyadicTree(1.0, 5), "uniform", 4900, 64, 4) == success(NoisyHistogram(1.0, 5), "uniform", 4900, 64, 4) == 1


def test_a_column_without_bounds() -> None:
    """`affairs` of 6,366 women as 2^64 points in order, epsilon 1, three levels: within .064, five times of five."""
    points = Multiset.of(points_of(fair()["affairs"]), 64)
    errors = [Medians(1.0, 3).release(points, Draws(KeyedNoise(seed))).error(points) for seed in range(5)]
    assert max(errors) <= 0.064


def test_a_billion_records_are_no_more_work() -> None:
    """Only distinct values count: a thousand of a million records each, to a half of a sixteenth."""
    values = np.sort(np.random.default_rng(1).integers(0, 1 << 62, 1000, dtype=np.uint64))
    points = Multiset(64, values, np.full(1000, 10**6))
    assert Medians(1.0, 4).release(points, Draws(KeyedNoise(0))).error(points) < 0.0325
