"""The mean without public bounds: bounds that hold nearly everything, an interval that holds the truth, and a refusal where noise would hide too much."""

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.table import Rows
from local_dp.protocols.vectors.mean_found import EDGES, MeanFound, narrowed, widest
from local_dp.queries.cells import Cell
from local_dp.records import Records
from local_dp.tallies import Estimate

N = 40_000
_GENERATOR = np.random.default_rng(4)
COLUMNS: dict[str, Floats] = {
    "far from 0": _GENERATOR.normal(1000, 20, N),
    "on both sides": _GENERATOR.normal(-3, 5, N),
    "skewed": _GENERATOR.exponential(3, N),
    "yes and no": _GENERATOR.integers(0, 2, N).astype(np.float64),
    "tiny": _GENERATOR.normal(0.001, 0.0004, N),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_interval_holds_the_mean_nobody_gave_bounds_for(name: str) -> None:
    """In at least 32 of 40 seeds (at 95 % fewer come once in 10^3) of a column with a tenth missing; nobody is asked twice."""
    numbers = COLUMNS[name].copy()
    numbers[::10] = np.nan
    truth, protocol, kept = float(np.nanmean(numbers)), MeanFound(column="x"), 0
    for seed in range(40):
        records = Records({"x": numbers[np.random.default_rng(seed).permutation(N)]})
        oracle = PopulationOracle(Rows(records), KeyedNoise(seed), seed, 2.0)
        found = run(protocol.algorithm(2.0, N), oracle)
        low, high = found.estimate.interval()
        kept += bool(low <= truth <= high)
        assert oracle.interaction == "sequentially interactive"
        assert oracle.ledger.max_spent == 2.0
        assert found.bounds.low <= np.nanquantile(numbers, 0.02) <= np.nanquantile(numbers, 0.98) <= found.bounds.high
    assert kept >= 32, kept
    assert float(protocol.truth(Rows(Records({"x": numbers})))) == pytest.approx(truth)


def _shares(held_at: dict[float, float]) -> Estimate:
    """Magnitudes that are known to within .01: each share at the magnitude its number falls into."""
    shares = np.zeros(len(EDGES) + 2)
    for number, share in held_at.items():
        shares[np.searchsorted(EDGES, number, side="right")] += share
    return Estimate(shares, np.full(len(shares), 0.01), 10_000)


@pytest.mark.parametrize(
    ("held_at", "low", "high"),
    [
        ({3.0: 1.0}, -2.0, 8.0),
        ({-3.0: 1.0}, -8.0, 2.0),
        ({3.0: 0.5, 100.0: 0.5}, -64.0, 256.0),
        ({3.0: 0.97, 100.0: 0.03}, -2.0, 8.0),
        ({-40.0: 0.5, 3.0: 0.5}, -128.0, 32.0),
    ],
)
def test_the_range_is_of_what_is_seen_and_a_magnitude_more(held_at: dict[float, float], low: float, high: float) -> None:
    """A share of .03 beside an error of .01 may be noise; what is seen gets a magnitude more and a quarter of it on the other side."""
    found = widest(_shares(held_at))
    assert (found.low, found.high) == (low, high)


def test_a_range_is_narrowed_only_where_little_is_surely_lost() -> None:
    """With exact shares of a bell the range shrinks around it; with shares in doubt it stays."""
    parts = Cell("x", tuple(np.linspace(0, 60, 61).tolist()))

    def below(middle: float) -> Floats:
        inside = np.exp(-(((np.arange(62) - middle) / 3) ** 2) / 2)
        return np.append(np.cumsum(inside) / inside.sum(), 1.0)

    sure = narrowed(parts, Estimate(below(30.5), np.full(63, 1e-4), 10**8))
    assert 0 < sure.low <= 20
    assert 40 <= sure.high < 60
    for middle in (10.5, 50.5):  # at either end, where a cut would show whatever is added to it
        doubtful = narrowed(parts, Estimate(below(middle), np.full(63, 0.1), 100))
        assert (doubtful.low, doubtful.high) == (0.0, 60.0), middle


def test_too_few_clients_are_told_how_many_it_takes() -> None:
    """The count named is enough, and one cohort less is not."""
    protocol = MeanFound()
    with pytest.raises(InputError, match=r"give bounds, or [\d,]+ clients"):
        protocol.algorithm(1.0, 6366)
    least = int(np.ceil(2 * protocol.finding_clients(1.0) / protocol.finding))
    protocol.algorithm(1.0, least + 7)
