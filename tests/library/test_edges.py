"""The edges of ledgers, losses and private words, against direct computations: what changes of one
place (`scripts/mutate`) showed to be untested."""

import numpy as np
import pytest

from local_dp.errors import InputError, RefusedError
from local_dp.ledger import Charge, Ledger
from local_dp.loss import (
    ATTO,
    MAX_EPSILON,
    NANO,
    atto_delta,
    split_epsilon,
)
from local_dp.noise import Draw, KeyedNoise, StoreNoise
from local_dp.randomizers.signs.binary_rr import BinaryRR

MOST = int(MAX_EPSILON * NANO)


def test_each_run_has_a_limit_of_its_own() -> None:
    """Runs share the budget for life alone; the error names the amounts and the budget."""
    ledger = Ledger(1.0, lifetime=1.5)
    ledger.charge("a", [Charge(0, 2, NANO)])
    with pytest.raises(RefusedError, match=r"epsilon 1e-09 on top of 1 spent .* run budget of 1$"):
        ledger.charge("a", [Charge(1, 2, 1)])
    ledger.charge("b", [Charge(1, 3, NANO // 2)])
    with pytest.raises(RefusedError, match=r"on top of 1\.5 spent .* lifetime budget of 1\.5$"):
        ledger.charge("b", [Charge(1, 2, NANO // 2)])
    ledger.enter("c", [Charge(5, 6, NANO)])
    assert ledger.runs == {"a": 1.0, "b": 0.5, "c": 1.0}


def test_the_largest_charge_is_accepted() -> None:
    ledger = Ledger(MAX_EPSILON)
    ledger.charge("a", [Charge(0, 1, MOST)])
    assert ledger.max_spent == MAX_EPSILON
    with pytest.raises(RefusedError, match=f"whole number from 1 to {MOST}$") as error:
        ledger.charge("a", [Charge(0, 1, MOST + 1)])
    assert error.value.code == "budget"


@pytest.mark.parametrize("delta", [0.0, 9e-19, 1.0, 1.5, True, "1e-9", None])
def test_a_delta_out_of_range_is_refused(delta: float) -> None:
    with pytest.raises(InputError, match="between 1e-18 and 1"):
        atto_delta(delta)


def test_deltas_are_whole_units() -> None:
    assert (atto_delta(1e-18), atto_delta(0.5)) == (1, ATTO // 2)


def test_a_budget_is_split_into_whole_nano_nats() -> None:
    assert (split_epsilon(1.0, 1), split_epsilon(1.0, 3)) == (1.0, 333_333_333 / NANO)
    with pytest.raises(InputError, match="into 0 parts; give 1 or more"):
        split_epsilon(1.0, 0)


def test_a_part_of_the_private_words_is_that_of_the_whole() -> None:
    """Chunks of clients begin anywhere, also beyond the first block of the expansion."""
    for bits in (8, 16, 32, 64):
        noise, draw = StoreNoise(bytes(32)).bound(b"request"), Draw(1)
        whole = noise.words(draw, 0, 9000, bits)
        for start, stop in ((0, 1), (4095, 4097), (5000, 9000), (8999, 9000)):
            assert np.array_equal(noise.words(draw, start, stop, bits), whole[start:stop])


@pytest.mark.parametrize("cells", [1, 2, 1 << 16, 1 << 17, 1 << 40])
def test_the_cell_of_a_coin_is_its_remainder(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there are more cells than 16 bits can number."""
    monkeypatch.setattr(BinaryRR, "cells", cells)
    coins = np.random.default_rng(1).integers(1 << 63, size=1000, dtype=np.uint64)
    assert np.array_equal(BinaryRR(1.0).cells_of(coins), coins % np.uint64(cells))


@pytest.mark.parametrize("seed", [True, -1, 1.0, "1", 1 << 64])
def test_a_seed_is_a_whole_number(seed: int) -> None:
    with pytest.raises(InputError, match="give a whole number from 0"):
        KeyedNoise(seed)
