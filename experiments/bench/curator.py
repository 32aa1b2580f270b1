"""The curator's speeds on a million distinct points of 2^64, on few points of 2^65536, and of prices, each beside a sort of as many words."""

from collections.abc import Callable
from functools import partial

import numpy as np

from local_dp.accounting.rules import epsilon
from local_dp.accounting.terms import losses_of
from local_dp.arrays import Ints
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.sanitizers.histogram import ThresholdedHistogram
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.sparse_medians import SparseMedians
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.learner import tuned
from local_dp.draws import Draws
from local_dp.experiments.bench.speeds import Speed, best_of
from local_dp.experiments.text.screen import SCREEN
from local_dp.noise import KeyedNoise

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
