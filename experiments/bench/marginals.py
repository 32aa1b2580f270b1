"""The speeds of marginals and pairs, each beside the numpy call that most of its time goes to."""

from functools import partial

import numpy as np

from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.marginals.baselines import OneMarginal
from local_dp.curator.marginals.fourier import FourierGaussian
from local_dp.curator.marginals.pairs import PairGaussian, SignTable
from local_dp.curator.marginals.projection import onto_elliptope
from local_dp.draws import Draws
from local_dp.experiments.bench.speeds import Speed, best_of
from local_dp.experiments.text.screen import SCREEN
from local_dp.noise import KeyedNoise

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
