"""The speeds of whole noise and of intervals, each beside numpy drawing the same number of Philox words and looking them up."""

from fractions import Fraction
from functools import partial

import numpy as np

from local_dp.arrays import Words
from local_dp.curator.intervals.factorization import PrefixFactorization
from local_dp.curator.intervals.tree import CountTree
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.multisets import Multiset
from local_dp.draws import Draws
from local_dp.experiments.bench.speeds import Speed, best_of
from local_dp.experiments.text.screen import SCREEN
from local_dp.noise import KeyedNoise, philox_words, stream_key

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
