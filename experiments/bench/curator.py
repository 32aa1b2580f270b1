"""The curator's speeds, beside the nearest plain work of numpy: releases, intervals, marginals, attacks. Bounds are 1.5 times the measured ratio."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from local_dp.accounting.losses import rho_within
from local_dp.accounting.rules import epsilon, losses_of
from local_dp.arrays import Ints
from local_dp.attacks import least_largest, least_squares, random_subsets, traced
from local_dp.curator.intervals import CountTree, PrefixFactorization
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.marginals.baselines import OneMarginal
from local_dp.curator.marginals.fourier import FourierGaussian
from local_dp.curator.marginals.pairs import PairGaussian, SignTable, onto_elliptope
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.query_release.synthetic import ConcentratedRounds, Mwem
from local_dp.curator.sanitizers.medians import Medians, SparseMedians
from local_dp.curator.sanitizers.point_counts import ThresholdedHistogram
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.learner import tuned
from local_dp.draws import Draws
from local_dp.experiments.bench.speeds import Case
from local_dp.loss import approximate
from local_dp.noise import KeyedNoise, philox_words, stream_key

POINTS, VALUES, DELTA = 1_000_000, 1000, 1e-6
PRICED = (("pure 0.001 x 1e6", 0.36), ("discrete-gaussian 1000 x 1e6", 24.0), ("pure 0.0012345 x 5e5 + gaussian 1000 x 5e5", 33.0))
COLUMNS, WIDE, ROUNDS, ROWS = 17, 200, 80, 1_000_000
NOISES, BITS = 10_000_000, 20
PROGRAM, SQUARES, TRACED, SUSPECTS = 200, 1000, 10_000, 200  # rows of the linear program and of least squares; bits and rows of a trace


def curator_cases() -> Iterator[Case]:
    """All of them, on one core."""
    generator, draws = np.random.default_rng(0), Draws(KeyedNoise(0))
    yield from _releases(generator, draws)
    yield from _intervals(draws)
    yield from _marginals(generator, draws)
    yield from _attacks(generator)


def _releases(generator: np.random.Generator, draws: Draws) -> Iterator[Case]:
    """Releases from a sorted database, and prices, beside sorting a million points. Labels are those of a threshold in the middle, a fifth flipped."""
    words = generator.integers(0, 1 << 64, POINTS, dtype=np.uint64)
    many, few = Multiset.of(words, 64), Multiset.of(generator.integers(0, 1 << 64, VALUES, dtype=np.uint64), 64)
    heavy = Multiset(64, few.values, np.full(len(few.values), POINTS))
    wide = [int.from_bytes(generator.bytes(1 << 13), "little") for _ in range(VALUES)]
    noisy, long = _labelled(words, generator, 64), _labelled(np.array(wide, dtype=object), generator, 1 << 16)
    histogram, million = ThresholdedHistogram(1.0, DELTA), f"10^{len(str(POINTS)) - 1} points of 2^64"

    def dyadic(bits: int) -> DyadicThresholds:
        return DyadicThresholds(bits, 0.1, 1.0, DELTA, agnostic=True)

    cases: list[tuple[str, Any, Any, float]] = [
        (f"RecConcave, {million}", tuned(0.1, 1.0, DELTA), noisy, 103.0),
        (f"dyadic thresholds, {million}", dyadic(64), noisy, 61.0),
        (f"thresholded histogram, {million}", histogram, many, 4.1),
        (f"medians, pure, {million}", Medians(1.0, 4), many, 3.2),
        (f"medians, sparse, {million}", SparseMedians(1.0, 4, delta=DELTA), many, 11.0),
        ("thresholded histogram, 10^9 records of 10^3 values", histogram, heavy, 0.02),
        ("RecConcave, 10^3 points of 2^65536", tuned(0.1, 1.0, DELTA), long, 5.2),
        ("dyadic thresholds, 10^3 points of 2^65536", dyadic(1 << 16), long, 3.0),
    ]
    sort = partial(np.sort, words)
    yield from (Case(what, partial(mechanism.release, database, draws), sort, asked) for what, mechanism, database, asked in cases)
    yield from (Case(f"exact price of {terms}", partial(epsilon, losses_of(terms), DELTA), sort, asked) for terms, asked in PRICED)


def _labelled(points: Ints, generator: np.random.Generator, bits: int) -> LabelledMultiset:
    half = points.dtype.type(1 << (bits - 1)) if points.dtype != object else 1 << (bits - 1)
    ones = np.array(points >= half, dtype=bool)
    return LabelledMultiset.of(points, (ones ^ (generator.random(len(points)) < 0.2)).astype(np.int64), bits)


def _intervals(draws: Draws) -> Iterator[Case]:
    """10^7 discrete Laplace at eps 1 beside Philox and searchsorted; a 16-ary tree of 2^20 points, the factorization of 2^16 beside as many words."""
    borders = np.array([int(share * 2**64) for share in 1 - np.exp(-np.arange(1.0, 33.0))], dtype=np.uint64)

    def look_up() -> object:
        return np.searchsorted(borders, philox_words(stream_key("bench", 0), 0, NOISES), side="right")

    yield Case("discrete Laplace, eps 1", lambda: discrete_laplaces(draws, Fraction(1), NOISES), look_up, 0.5, NOISES)
    points = Multiset.of(np.random.default_rng(0).integers(0, 1 << BITS, 1 << BITS), BITS)
    few = Multiset.of(points.values[: 1 << 10] % np.uint64(1 << 16), 16)
    words = partial(philox_words, stream_key("bench", 0), 0, 1 << BITS)
    yield Case(f"16-ary tree of 2^{BITS}", partial(CountTree(BITS, 1.0).release, points, draws), words, 16.0)
    yield Case("factorization of 2^16", partial(PrefixFactorization(16, 1.0, 1e-6).release, few, draws), words, 13.0)


def _marginals(generator: np.random.Generator, draws: Draws) -> Iterator[Case]:
    """A histogram and 3-way marginals beside a bincount, projected pairs beside an eigendecomposition, MWEM beside the passes over its weights."""
    rows = generator.integers(0, 1 << COLUMNS, 10 * ROWS).astype(np.uint64)
    many, some, few = (BinaryTable(COLUMNS, rows[:count]) for count in (10 * ROWS, ROWS, 6366))
    histogram, fourier = OneMarginal(COLUMNS, (1 << COLUMNS) - 1, 1.0), FourierGaussian(Marginals.ways(COLUMNS, 3), 1.0, 1e-6)
    noisy = PairGaussian(WIDE, 1.0, 1e-6).release(SignTable.of(generator.integers(0, 2, (20 * WIDE, WIDE))), draws).means
    mwem = Mwem(Marginals.ways(COLUMNS, 3), ConcentratedRounds.within(rho_within(approximate(1.0, 1e-6)), ROUNDS))
    weights, moves = np.ones(1 << COLUMNS), mwem.rounds.replays(6366) * ROUNDS * (ROUNDS + 1) // 2

    def passes() -> None:
        for _ in range(moves):
            weights.sum()
            np.multiply(weights, 1.0, out=weights)

    def count(table: BinaryTable) -> Callable[[], object]:
        return partial(np.bincount, table.rows.view(np.int64))

    yield Case(f"noisy histogram of 10^7 rows of {COLUMNS}", partial(histogram.release, many, draws), count(many), 0.5, 10 * ROWS)
    yield Case(f"projected pairs of {WIDE} columns", partial(onto_elliptope, noisy), partial(np.linalg.eigh, noisy), 16.0)
    yield Case(f"3-way marginals of 10^6 rows of {COLUMNS}", lambda: fourier.release(some, draws).cells, count(some), 5.2)
    yield Case(f"MWEM, 2^{COLUMNS} rows, {ROUNDS} rounds", partial(mwem.release, few, draws), passes, 10.0)


def _attacks(generator: np.random.Generator) -> Iterator[Case]:
    """Decoding 4 n counts with noise within sqrt(n) / 2 beside a matrix product, and p-values of 200 suspects beside their inner products."""
    for name, decoder, n, asked in (("linear program", least_largest, PROGRAM, 680.0), ("least squares", least_squares, SQUARES, 2.0)):
        matrix = random_subsets(4 * n, n, generator).astype(np.float64)
        sums = matrix @ (generator.random(n) < 0.5) + generator.uniform(-0.5, 0.5, 4 * n) * np.sqrt(n)
        yield Case(f"reconstruction by {name}, n = {n:,}", partial(decoder, matrix, sums), partial(np.matmul, matrix.T, matrix), asked)
    shares = generator.uniform(0.01, 0.99, TRACED)
    suspects = generator.random((SUSPECTS, TRACED)) < shares
    means, numbers = suspects[: SUSPECTS // 2].mean(axis=0), suspects.astype(np.float64)
    yield Case(f"tracing, {SUSPECTS} rows of {TRACED:,} bits", partial(traced, shares, means, suspects), partial(np.matmul, numbers, numbers.T), 4.0)
