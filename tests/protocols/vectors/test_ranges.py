"""Private ranges: what they cover with the clients asked for, whatever the scale of the column."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from local_dp.interaction import Adaptive, run
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import Cohort
from local_dp.populations.table import Resampled
from local_dp.protocols.vectors.mean_found import EDGES, ROUNDS, Range, locate, range_clients
from local_dp.records import Records

CLIENTS = range_clients(1.0, 0.05)
COLUMNS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "age": lambda generator: generator.integers(18, 80, 3000), "year": lambda generator: generator.integers(1970, 1983, 3000),
    "standardised": lambda generator: generator.normal(0.0, 0.05, 3000), "income": lambda generator: np.exp(generator.normal(10.0, 1.0, 3000)),
    "negative": lambda generator: -generator.gamma(2.0, 1000.0, 3000), "yes": lambda generator: generator.integers(0, 2, 3000),
    "holes": lambda generator: np.where(generator.random(3000) < 0.1, np.nan, generator.normal(50.0, 5.0, 3000)),
}  # fmt: skip


def located(values: np.ndarray, clients: int, seed: int) -> Range:
    """The range of one column, by so many clients in all."""
    population = Resampled(Records({"v": values}), clients, seed)
    oracle = AggregateOracle(population, np.random.default_rng(seed), 1.0)
    (found,) = run(Adaptive(lambda: locate(("v",), 1.0, Cohort(0, clients))), oracle)
    assert len(oracle.rounds) == ROUNDS
    assert oracle.interaction == "sequentially interactive"
    return found


@pytest.mark.parametrize("name", COLUMNS)
def test_a_range_covers_most_and_little_more(name: str) -> None:
    """In 10 of 10 runs with the clients asked for, at most a fifth of the values present is cut off at an end, and the range is at most 1.7 times theirs.

    A run may miss either with probability 1/20 by the count's own promise; in practice far less often, for the promise is a union over all edges.
    """
    values = COLUMNS[name](np.random.default_rng(5))
    present = values[~np.isnan(values)].astype(float)
    for seed in range(10):
        found = located(values, CLIENTS, seed)
        assert (present < found.low).mean() <= 0.2
        assert (present > found.high).mean() <= 0.2
        assert found.high - found.low <= 1.7 * (present.max() - present.min())


@pytest.mark.parametrize("values", [np.full(100, np.nan), np.full(100, np.inf), np.full(100, -1e300), np.zeros(100)])
def test_odd_columns_still_have_a_range(values: np.ndarray) -> None:
    """Nothing but missing, infinite, enormous or equal values: the ends are finite and in order."""
    found = located(values, 3000, 1)
    assert 2 * EDGES[0] <= found.low < found.high <= 2 * EDGES[-1]
    assert math.isfinite(found.high - found.low)
