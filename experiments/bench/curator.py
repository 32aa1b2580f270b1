"""The curator's speeds, each beside numpy doing as much: releases, intervals, marginals, many answers, attacks."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from local_dp.accounting.gaussian import rho_within
from local_dp.accounting.rules import epsilon, losses_of
from local_dp.arrays import Ints, Words
from local_dp.attacks.reconstruction import Decoder, least_largest, least_squares, random_subsets
from local_dp.attacks.tracing import traced
from local_dp.curator.intervals.factorization import PrefixFactorization
from local_dp.curator.intervals.tree import CountTree
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.marginals.baselines import OneMarginal
from local_dp.curator.marginals.fourier import FourierGaussian
from local_dp.curator.marginals.pairs import PairGaussian, SignTable, onto_elliptope
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.query_release.mwem import ConcentratedRounds, Mwem
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.point_counts import ThresholdedHistogram
from local_dp.curator.sanitizers.sparse_medians import SparseMedians
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.learner import tuned
from local_dp.draws import Draws
from local_dp.experiments.bench.speeds import Speed, best_of
from local_dp.experiments.text.screen import SCREEN
from local_dp.loss import approximate
from local_dp.noise import KeyedNoise, philox_words, stream_key

POINTS, VALUES = 1_000_000, 1000
DELTA = 1e-6
PRICED = ("pure 0.001 x 1e6", "discrete-gaussian 1000 x 1e6", "pure 0.0012345 x 5e5 + gaussian 1000 x 5e5")


def curator_speeds() -> list[Speed]:
    """A release on one core, the database being sorted; labels of a threshold in the middle, a fifth of them flipped."""
    generator = np.random.default_rng(0)
    words = generator.integers(0, 1 << 64, POINTS, dtype=np.uint64)
    many, few = Multiset.of(words, 64), Multiset.of(generator.integers(0, 1 << 64, VALUES, dtype=np.uint64), 64)
    heavy = Multiset(64, few.values, np.full(len(few.values), POINTS))
    wide = [int.from_bytes(generator.bytes(1 << 13), "little") for _ in range(VALUES)]
    noisy, long = _labelled(words, generator, 64), _labelled(np.array(wide, dtype=object), generator, 1 << 16)
    draws = Draws(KeyedNoise(0))
    learner, dyadic = tuned(0.1, 1.0, DELTA), partial(DyadicThresholds, alpha=0.1, epsilon=1.0, delta=DELTA, agnostic=True)
    histogram, name = ThresholdedHistogram(1.0, DELTA), f"10^{len(str(POINTS)) - 1} points of 2^64"
    cases: list[tuple[str, Callable[[], object], float]] = [
        (f"RecConcave, {name}", lambda: learner.release(noisy, draws), 5.0),
        (f"dyadic thresholds, {name}", lambda: dyadic(64).release(noisy, draws), 1.0),
        (f"thresholded histogram, {name}", lambda: histogram.release(many, draws), 1.0),
        (f"medians, pure, {name}", lambda: Medians(1.0, 4).release(many, draws), 1.0),
        (f"medians, sparse, {name}", lambda: SparseMedians(1.0, 4, delta=DELTA).release(many, draws), 1.0),
        ("thresholded histogram, 10^9 records of 10^3 values", lambda: histogram.release(heavy, draws), 0.1),
        ("RecConcave, 10^3 points of 2^65536", lambda: learner.release(long, draws), 2.0),
        ("dyadic thresholds, 10^3 points of 2^65536", lambda: dyadic(1 << 16).release(long, draws), 2.0),
        *((f"exact price of {terms}", partial(epsilon, losses_of(terms), DELTA), 1.0) for terms in PRICED),
    ]
    reference, speeds = best_of(lambda: np.sort(words)), []
    for what, work, asked in cases:
        SCREEN.working(f"measuring {what}")
        seconds = best_of(work)
        speeds.append(Speed(what, seconds, "s", reference, asked, seconds <= asked))
    return speeds


def _labelled(points: Ints, generator: np.random.Generator, bits: int) -> LabelledMultiset:
    """Labelled 1 from the middle of the domain on, a fifth flipped."""
    ones = np.array(points >= points.dtype.type(1 << (bits - 1)) if points.dtype != object else points >= 1 << (bits - 1), dtype=bool)
    return LabelledMultiset.of(points, (ones ^ (generator.random(len(points)) < 0.2)).astype(np.int64), bits)


COLUMNS, ROUNDS, ROWS = 17, 80, 6366


def many_speeds() -> list[Speed]:
    """MWEM over all 3-way marginals of 17 columns, N = 2^17, T = 80, beside two passes over as many weights for each replayed measurement."""
    generator, draws = np.random.default_rng(0), Draws(KeyedNoise(0))
    database = BinaryTable(COLUMNS, generator.integers(0, 1 << COLUMNS, ROWS).astype(np.uint64))
    made = Mwem(Marginals.ways(COLUMNS, 3), ConcentratedRounds.within(rho_within(approximate(1.0, 1e-6)), ROUNDS))
    weights, moves = np.ones(1 << COLUMNS), made.rounds.replays(ROWS) * ROUNDS * (ROUNDS + 1) // 2

    def passes() -> None:
        for _ in range(moves):
            weights.sum()
            np.multiply(weights, 1.0, out=weights)

    SCREEN.working("measuring MWEM")
    seconds = best_of(lambda: made.release(database, draws))
    return [Speed(f"MWEM, 2^{COLUMNS} rows, {ROUNDS} rounds", seconds, "s", best_of(passes), 4.0, seconds <= 4.0)]


COLUMNS, WIDE, ROWS = 17, 200, 1_000_000


def marginal_speeds() -> list[Speed]:
    """Pairs of 200 columns projected, beside one eigendecomposition; a histogram and all 3-way marginals of rows of 17 columns, beside a bincount."""
    generator, draws = np.random.default_rng(0), Draws(KeyedNoise(0))
    signs = SignTable.of(generator.integers(0, 2, (20 * WIDE, WIDE)))
    noisy = PairGaussian(WIDE, 1.0, 1e-6).release(signs, draws).means
    rows = generator.integers(0, 1 << COLUMNS, ROWS).astype(np.uint64)
    fourier = FourierGaussian(Marginals.ways(COLUMNS, 3), 1.0, 1e-6)
    many = BinaryTable(COLUMNS, generator.integers(0, 1 << COLUMNS, 10 * ROWS).astype(np.uint64))
    SCREEN.working("measuring projection and marginals")
    counted = 10 * ROWS / 1e6 / best_of(lambda: OneMarginal(COLUMNS, (1 << COLUMNS) - 1, 1.0).release(many, draws))
    bare = 10 * ROWS / 1e6 / best_of(lambda: np.bincount(many.rows.view(np.int64)))
    projected = best_of(partial(onto_elliptope, noisy))
    released = best_of(lambda: fourier.release(BinaryTable(COLUMNS, rows), draws).cells)
    return [
        Speed(f"noisy histogram of 10^7 rows of {COLUMNS}", counted, "million/s", bare, bare / 2, counted >= bare / 2),
        Speed(f"projected pairs of {WIDE} columns", projected, "s", best_of(partial(np.linalg.eigh, noisy)), 0.3, projected <= 0.3),
        Speed(f"3-way marginals of 10^6 rows of {COLUMNS}", released, "s", best_of(lambda: np.bincount(rows.view(np.int64))), 0.3, released <= 0.3),
    ]


NOISES = 10_000_000
BITS = 20


def interval_speeds() -> list[Speed]:
    """10^7 discrete Laplace at eps 1, at least half as fast as Philox and searchsorted; a 16-ary tree of 2^20 points; the factorization of 2^16."""
    draws, million = Draws(KeyedNoise(0)), NOISES / 1e6
    SCREEN.working("measuring discrete Laplace noise")
    borders = np.array([int(share * 2**64) for share in 1 - np.exp(-np.arange(1.0, 33.0))], dtype=np.uint64)
    reference = million / best_of(partial(_look_up, borders))
    value = million / best_of(lambda: discrete_laplaces(draws, Fraction(1), NOISES))
    speeds = [Speed("discrete Laplace, eps 1", value, "million/s", reference, reference / 2, value >= reference / 2)]
    points = Multiset.of(np.random.default_rng(0).integers(0, 1 << BITS, 1 << BITS), BITS)
    few = Multiset.of(points.values[: 1 << 10] % np.uint64(1 << 16), 16)
    trees: list[tuple[str, CountTree | PrefixFactorization, Multiset, float]] = [
        (f"16-ary tree of 2^{BITS}", CountTree(BITS, 1.0), points, 1.0),
        ("factorization of 2^16", PrefixFactorization(16, 1.0, 1e-6), few, 1.0),
    ]
    for what, mechanism, database, asked in trees:
        SCREEN.working(f"measuring the {what}")
        seconds = best_of(partial(mechanism.release, database, draws))
        speeds.append(Speed(what, seconds, "s", best_of(lambda: philox_words(stream_key("bench", 0), 0, 1 << BITS)), asked, seconds <= asked))
    return speeds


def _look_up(borders: Words) -> object:
    return np.searchsorted(borders, philox_words(stream_key("bench", 0), 0, NOISES), side="right")


PROGRAM, SQUARES, BITS, SUSPECTS = 200, 1000, 10_000, 200  # rows of the linear program, of least squares; bits and rows of a trace


def attack_speeds() -> list[Speed]:
    """Decoding 4 n counts with noise within sqrt(n) / 2, and p-values of 200 suspects, on one core."""
    generator = np.random.default_rng(0)
    speeds = [_decoding("linear program", least_largest, PROGRAM, generator), _decoding("least squares", least_squares, SQUARES, generator)]
    shares = generator.uniform(0.01, 0.99, BITS)
    rows = generator.random((SUSPECTS, BITS)) < shares
    means = rows[: SUSPECTS // 2].mean(axis=0)
    numbers = rows.astype(np.float64)
    speeds.append(_speed(f"tracing, {SUSPECTS} rows of {BITS:,} bits", lambda: traced(shares, means, rows), lambda: numbers @ numbers.T, 0.5))
    return speeds


def _decoding(name: str, decoder: Decoder, n: int, generator: np.random.Generator) -> Speed:
    """Of n bits."""
    matrix = random_subsets(4 * n, n, generator).astype(np.float64)
    sums = matrix @ (generator.random(n) < 0.5) + generator.uniform(-0.5, 0.5, 4 * n) * np.sqrt(n)
    return _speed(f"reconstruction by {name}, n = {n:,}", lambda: decoder(matrix, sums), lambda: matrix.T @ matrix, 2.0)


def _speed(what: str, work: Callable[[], object], bare: Callable[[], object], asked: float) -> Speed:
    SCREEN.working(f"measuring {what}")
    seconds = best_of(work)
    return Speed(what, seconds, "s", best_of(bare), asked, seconds <= asked)
