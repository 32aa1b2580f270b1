"""Two groups compared: the interval of the difference covers it, also for a group that is hardly there."""

import math

import numpy as np
import pytest

from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.populations.finite import Finite
from local_dp.protocols.surveys.survey import Compare
from local_dp.records import Records

RUNS = 800
LOWEST = 0.95 - 4.5 * math.sqrt(0.95 * 0.05 / RUNS)  # fewer: less than once in 10^5, if it covers in 95 %


def played(shares: tuple[float, float], first: float, clients: int, epsilon: float) -> tuple[float, float]:
    """How often the interval holds the difference, and how often half of it would."""
    protocol, generator = Compare(), np.random.default_rng(4)
    kinds = Records({"group": np.array(["A", "A", "B", "B"]), "yes": np.array([0, 1, 0, 1], dtype=np.uint8)})
    law = [first * (1 - shares[0]), first * shares[0], (1 - first) * (1 - shares[1]), (1 - first) * shares[1]]
    population, truth, held, narrow = Finite(kinds, law, clients, 1), shares[1] - shares[0], 0, 0
    for _ in range(RUNS):
        result = run(protocol.algorithm(epsilon, clients), AggregateOracle(population, generator, epsilon))
        low, high = result.interval
        middle, half = (low + high) / 2, (high - low) / 4
        held += low <= truth <= high
        narrow += middle - half <= truth <= middle + half
    return held / RUNS, narrow / RUNS


@pytest.mark.parametrize(
    ("shares", "first", "clients", "epsilon"),
    [((0.3, 0.4), 0.5, 20_000, 1.0), ((0.02, 0.97), 0.5, 5000, 1.0), ((0.5, 0.5), 0.9, 3000, 1.0), ((0.3, 0.4), 0.97, 2000, 0.5), ((0.2, 0.3), 0.5, 1000, 4.0)],
)
def test_the_interval_covers(shares: tuple[float, float], first: float, clients: int, epsilon: float) -> None:
    """In 95 % of runs or more, up to chance, groups large or small; half the interval does not."""
    held, narrow = played(shares, first, clients, epsilon)
    assert held >= LOWEST
    assert narrow < LOWEST or first > 0.95


def test_the_standard_error_is_the_one_seen() -> None:
    """Over 800 runs the mean square of errors in standard errors is 1 within 5 deviations."""
    protocol, generator = Compare(p=0.2, q=0.5), np.random.default_rng(5)
    population = protocol.synthetic(50_000, 1)
    results = [run(protocol.algorithm(1.0, 50_000), AggregateOracle(population, generator, 1.0)) for _ in range(RUNS)]
    squares = [((result.difference - 0.3) / result.standard_error) ** 2 for result in results]
    assert abs(np.mean(squares) - 1) < 5 * math.sqrt(2 / RUNS)
    ignoring = [(result.difference - 0.3) ** 2 / float(result.shares.standard_error[0] ** 2) for result in results]
    assert abs(np.mean(ignoring) - 1) > 5 * math.sqrt(2 / RUNS)


def test_wrong_groups_are_refused() -> None:
    """Two different ones are compared."""
    for labels in (("A",), ("A", "A"), ("A", "B", "C")):
        with pytest.raises(InputError, match="two different"):
            Compare(labels=labels)
