"""Synthetic data as a game: the private player's exact loss, and what the game's table gets right."""

from typing import assert_type

import numpy as np
import pytest

from local_dp.accounting.shares import optimal_part
from local_dp.arrays import Counts
from local_dp.curator.account import Account
from local_dp.curator.oracle_efficient.perturbed import NOTHING, Beside, DataPlayer, Perturbation, PerturbedMinimum, SyntheticGame, largest_error
from local_dp.curator.oracle_efficient.separated import Closed, Conjunctions, Exhaustive
from local_dp.curator.selection.occam import Labelled
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.interaction import Adaptive, run
from local_dp.loss import Pure, approximate
from local_dp.noise import KeyedNoise
from tests.support.inputs.refusals import refuse

D = 6
QUERIES = Closed(Conjunctions(D), (1 << D) - 1)


def table(n: int) -> Counts:
    """Two kinds of rows, whose bits are 1 with probability .85 and .3: how often each point occurs."""
    rng = np.random.default_rng(0)
    chances = np.where(rng.random((n, 1)) < 0.5, 0.85, 0.3)
    return np.bincount((rng.random((n, D)) < chances) @ (1 << np.arange(D)), minlength=1 << D)


def released(counts: Counts, epsilon: float, draws: int) -> Counts:
    """50 rounds of the game."""
    n = int(counts.sum())
    rows = Labelled(np.repeat(np.arange(1 << D), counts), np.zeros(n, dtype=np.int64))
    game = SyntheticGame(QUERIES, Exhaustive(QUERIES), n, 50, epsilon)
    algorithm = game.against(DataPlayer(D, draws, 2.0), np.random.default_rng(1))
    assert_type(algorithm, Adaptive[PerturbedMinimum, int, Counts])
    oracle = TrustedOracle(rows, Account(Pure(50 * game_loss(epsilon))), Draws(KeyedNoise(1)))
    synthetic = run(algorithm, oracle)
    assert oracle.account.spent == oracle.account.budget
    return synthetic


def game_loss(epsilon: float) -> int:
    """Of a round, in nano-nats."""
    return PerturbedMinimum(Perturbation(QUERIES, epsilon), Exhaustive(QUERIES)).loss.nano


def test_the_game_approaches_the_table() -> None:
    """n = 10^5, total epsilon 1, delta 1e-6, 50 rounds: below .08, uniform .20; with one draw a round, or 10^4 times the noise, above .15."""
    counts, part = table(100_000), optimal_part(approximate(1.0, 1e-6), 50)
    uniform = largest_error(QUERIES, counts, np.ones(1 << D, dtype=np.int64))
    assert uniform == pytest.approx(0.2, abs=0.02)
    assert largest_error(QUERIES, counts, released(counts, part.epsilon, 100)) < 0.08
    assert largest_error(QUERIES, counts, released(counts, part.epsilon, 1)) > 0.15
    assert largest_error(QUERIES, counts, released(counts, part.epsilon / 10_000, 100)) > 0.15


def test_bad_input() -> None:
    refuse(
        ("draws is 0", lambda: DataPlayer(D, 0, 1.0)),
        ("scale is 0", lambda: DataPlayer(D, 1, 0.0)),
        ("n is 0", lambda: SyntheticGame(QUERIES, Exhaustive(QUERIES), 0, 1, 1.0)),
        ("scale is 0", lambda: Beside(0, NOTHING.data)),
    )
