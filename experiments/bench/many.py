"""The speed of MWEM on many rows, beside the numpy passes that most of its time goes to."""

import numpy as np

from local_dp.accounting.concentrated import rho_within
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.query_release.mwem import ConcentratedRounds, Mwem
from local_dp.draws import Draws
from local_dp.experiments.bench.speeds import Speed, best_of
from local_dp.experiments.text.screen import SCREEN
from local_dp.loss import approximate
from local_dp.noise import KeyedNoise

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
