"""Private ranges: what they cover with the clients asked for, whatever the scale of the column."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from local_dp.errors import InputError
from local_dp.interaction import Adaptive, run
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import Cohort
from local_dp.populations.table import Resampled
from local_dp.postprocessing.shapes import ascending
from local_dp.protocols.vectors.mean_found import EDGES, ROUNDS, Range, locate, range_clients
from local_dp.records import Records

CLIENTS = range_clients(1.0, 0.05)
COLUMNS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "age": lambda generator: generator.integers(18, 80, 3000),
    "year": lambda generator: generator.integers(1970, 1983, 3000),
    "standardised": lambda generator: generator.normal(0.0, 0.05, 3000),
    "income": lambda generator: np.exp(generator.normal(10.0, 1.0, 3000)),
    "negative": lambda generator: -generator.gamma(2.0, 1000.0, 3000),
    "yes": lambda generator: generator.integers(0, 2, 3000),
    "holes": lambda generator: np.where(generator.random(3000) < 0.1, np.nan, generator.normal(50.0, 5.0, 3000)),
}


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


def test_far_fewer_clients_miss() -> None:
    """With a thousandth of the clients, most of 20 ranges of ages cut off more than a fifth at an end or are ten times too wide."""
    ages, missed = COLUMNS["age"](np.random.default_rng(5)), 0
    for seed in range(20):
        found = located(ages, CLIENTS // 1000, seed)
        missed += (ages < found.low).mean() > 0.2 or (ages > found.high).mean() > 0.2 or found.high - found.low > 620
    assert missed > 10


def test_several_columns_have_clients_of_their_own() -> None:
    """Two columns are found side by side as well as one; too few clients for the cohorts are refused."""
    records = Records({"age": COLUMNS["age"](np.random.default_rng(1)), "income": COLUMNS["income"](np.random.default_rng(2))})
    oracle = AggregateOracle(Resampled(records, 2 * CLIENTS, 3), np.random.default_rng(3), 1.0)
    age, income = run(Adaptive(lambda: locate(("age", "income"), 1.0, Cohort(0, 2 * CLIENTS))), oracle)
    assert 15 < age.high - age.low < 100
    assert 10_000 < income.high < 300_000
    with pytest.raises(InputError, match="give the bounds"):
        next(locate(("a", "b"), 1.0, Cohort(0, 2 * ROUNDS - 1)))


@pytest.mark.parametrize("values", [np.full(100, np.nan), np.full(100, np.inf), np.full(100, -1e300), np.zeros(100)])
def test_odd_columns_still_have_a_range(values: np.ndarray) -> None:
    """Nothing but missing, infinite, enormous or equal values: the ends are finite and in order."""
    found = located(values, 3000, 1)
    assert 2 * EDGES[0] <= found.low < found.high <= 2 * EDGES[-1]
    assert math.isfinite(found.high - found.low)


def test_the_nearest_ascending_sequence() -> None:
    """Pooling adjacent violators is scikit-learn's isotonic regression."""
    from sklearn.isotonic import IsotonicRegression

    for seed in range(20):
        values = np.random.default_rng(seed).normal(size=50) + np.linspace(0, 2, 50)
        assert ascending(values) == pytest.approx(IsotonicRegression().fit_transform(np.arange(50), values))
