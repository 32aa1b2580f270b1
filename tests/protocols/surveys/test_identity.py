"""The identity test has its levels and powers, and the interval of two groups' difference covers it, also for a group that is hardly there."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.populations.finite import Finite
from local_dp.populations.table import Resampled
from local_dp.protocols.surveys.identity import Identity, row_statistic
from local_dp.protocols.surveys.survey import Compare
from local_dp.records import Records

RUNS, LEAST_FOUND, MOST_REJECTED = 200, 176, 24  # 95 % and 5 % of 200: beyond these with probability 1e-4 each


def rejections(protocol: Identity, shares: np.ndarray, clients: int) -> int:
    """In how many runs, each with its own coin, the named law is rejected."""
    generator, total = np.random.default_rng(7), 0
    for coin in range(RUNS):
        each = Identity(coins=protocol.coins, coin=coin, k=protocol.k, alpha=protocol.alpha, shares=protocol.shares)
        population = Finite(Records({"symbol": np.arange(protocol.k)}), shares.tolist(), clients, coin)
        total += run(each.algorithm(1.0, clients), AggregateOracle(population, generator, 1.0)).rejected
    return total


@pytest.mark.parametrize("coins", ["public", "private"])
def test_both_errors_are_as_promised(coins: str) -> None:
    """With the clients asked for, uniform is rejected in about 5 % of runs and a law alpha away in about 95 %; with a sixth of them it is not found."""
    protocol = Identity(coins=coins, k=32, alpha=0.4)
    n, away = protocol.clients(1.0), 1 + 0.8 * (1 - 2 * (np.arange(32) % 2))
    assert rejections(protocol, np.ones(32), n) <= MOST_REJECTED
    assert rejections(protocol, away, n) >= LEAST_FOUND
    assert rejections(protocol, away, n // 6) < LEAST_FOUND


def test_missing_and_unlisted_values_have_named_shares() -> None:
    """With labels of their own they are part of the law that is tested, and a law that leaves their shares open is refused."""
    column = Records({"city": np.array(["Oslo"] * 5 + ["Rome"] * 3 + ["Bonn", ""])})
    policies: dict[str, Any] = {"column": "city", "labels": ("Oslo", "Rome"), "missing": "category", "other": "category", "alpha": 0.3}
    n, generator = 40_000, np.random.default_rng(3)

    def rejected(*shares: str) -> int:
        protocols = (Identity(**policies, shares=shares, coin=coin) for coin in range(RUNS))
        return sum(run(each.algorithm(1.0, n), AggregateOracle(Resampled(column, n, 0), generator, 1.0)).rejected for each in protocols)

    assert rejected("0.5", "0.3", "0.1", "0.1") <= MOST_REJECTED
    assert rejected("0.5", "0.2", "0.3", "0") >= LEAST_FOUND
    with pytest.raises(InputError, match="no share for other and missing: give all 4"):
        Identity(**policies)


def test_the_statistic_counts_degrees() -> None:
    """Under the named law each drawn row counts 1 on average, whatever its mean: exact over all counts of a few reports. Rows nobody drew count nothing."""
    gain, size = 2.0, 5
    for mean in (0.0, 0.6, -1.0):
        chance = (1 + mean / gain) / 2
        counts = np.arange(size + 1)
        one = row_statistic(np.asarray(2.0 * counts - size, dtype=np.float64)[:, None], np.full((size + 1, 1), float(size)), np.full((size + 1, 1), mean), gain)
        assert stats.binom.pmf(counts, size, chance) @ one == pytest.approx(1)
    assert row_statistic(np.zeros(2), np.zeros(2), np.zeros(2), gain) == 0


PLAYED = 800
LOWEST = 0.95 - 4.5 * math.sqrt(0.95 * 0.05 / PLAYED)  # fewer: less than once in 10^5, if it covers in 95 %


def played(shares: tuple[float, float], first: float, clients: int, epsilon: float) -> tuple[float, float]:
    """How often the interval holds the difference, and how often half of it would."""
    protocol, generator = Compare(), np.random.default_rng(4)
    kinds = Records({"group": np.array(["A", "A", "B", "B"]), "yes": np.array([0, 1, 0, 1], dtype=np.uint8)})
    law = [first * (1 - shares[0]), first * shares[0], (1 - first) * (1 - shares[1]), (1 - first) * shares[1]]
    population, truth, held, narrow = Finite(kinds, law, clients, 1), shares[1] - shares[0], 0, 0
    for _ in range(PLAYED):
        result = run(protocol.algorithm(epsilon, clients), AggregateOracle(population, generator, epsilon))
        low, high = result.interval
        middle, half = (low + high) / 2, (high - low) / 4
        held += low <= truth <= high
        narrow += middle - half <= truth <= middle + half
    return held / PLAYED, narrow / PLAYED


@pytest.mark.parametrize(
    ("shares", "first", "clients", "epsilon"),
    [((0.3, 0.4), 0.5, 20_000, 1.0), ((0.02, 0.97), 0.5, 5000, 1.0), ((0.3, 0.4), 0.97, 2000, 0.5)],
)
def test_the_interval_covers(shares: tuple[float, float], first: float, clients: int, epsilon: float) -> None:
    """In 95 % of runs or more, up to chance, groups large or small; half the interval does not."""
    held, narrow = played(shares, first, clients, epsilon)
    assert held >= LOWEST
    assert narrow < LOWEST or first > 0.95
