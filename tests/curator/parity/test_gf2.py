"""Elimination over GF(2) against exhaustive enumeration."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.curator.parity import gf2
from local_dp.errors import InputError


def bit_rows(d: int) -> Ints:
    """All 2^d vectors."""
    return np.array(list(product((0, 1), repeat=d)), dtype=np.uint8)


def brute_force(rows: Ints, sides: Ints) -> set[tuple[int, ...]]:
    """Every solution, by trying all vectors."""
    candidates = bit_rows(rows.shape[1]).astype(np.int64)
    good = np.all((candidates @ rows.T.astype(np.int64)) % 2 == sides, axis=1)
    return {tuple(candidate) for candidate in candidates[good].tolist()}


def all_picks(solutions: gf2.Solutions) -> Counter[tuple[int, ...]]:
    """Which solution each of the 2^d coin vectors picks."""
    picks = (gf2.unpack(solutions.pick(gf2.pack(coins)), solutions.d) for coins in bit_rows(solutions.d))
    return Counter(tuple(pick.tolist()) for pick in picks)


def check(rows: Ints, sides: Ints) -> None:
    expected = brute_force(rows, sides)
    solutions = gf2.solve(gf2.pack(rows), sides, rows.shape[1])
    if solutions is None:
        assert not expected
        return
    picks = all_picks(solutions)
    assert set(picks) == expected
    assert set(picks.values()) == {1 << len(solutions.pivots)}, "coins do not pick every solution equally often"
    assert 1 << solutions.dimension == len(expected)


@pytest.mark.parametrize(("m", "d"), [(1, 1), (2, 1), (1, 3), (2, 2), (3, 2), (2, 3)])
def test_every_small_system(m: int, d: int) -> None:
    """For every system of m equations in d unknowns: the solution set, its inconsistency and the uniformity of the draw are exact."""
    for flat in product((0, 1), repeat=m * d):
        rows = np.array(flat, dtype=np.uint8).reshape(m, d)
        for sides in product((0, 1), repeat=m):
            check(rows, np.array(sides, dtype=np.uint8))


@pytest.mark.parametrize("d", [5, 8, 9])
def test_random_systems_of_every_rank(d: int) -> None:
    """Random systems of low and full rank, with and without solutions, across a byte's border."""
    generator = np.random.default_rng(d)
    for m in (1, d - 1, d, d + 3):
        for rank in (1, d // 2, d):
            rows = (generator.integers(0, 2, (m, rank)) @ generator.integers(0, 2, (rank, d)) % 2).astype(np.uint8)
            consistent = (rows @ generator.integers(0, 2, d) % 2).astype(np.uint8)
            for sides in (consistent, generator.integers(0, 2, m).astype(np.uint8)):
                check(rows, sides)


def wide_system(m: int, d: int, rank: int) -> tuple[Words, Words]:
    """m rows of exactly this rank in d columns, shuffled, and a random vector."""
    generator = np.random.default_rng(m)
    basis = np.hstack([np.eye(rank), generator.integers(0, 2, (rank, d - rank))])[:, generator.permutation(d)]
    combinations = np.vstack([np.eye(rank), generator.integers(0, 2, (m - rank, rank))])[generator.permutation(m)]
    rows = gf2.pack((combinations.astype(np.float64) @ basis % 2).astype(np.uint8))
    return rows, gf2.pack(generator.integers(0, 2, d).astype(np.uint8))


@pytest.mark.parametrize(("m", "d", "rank"), [(300, 200, 130), (90, 129, 90), (200, 64, 64)])
def test_across_words(m: int, d: int, rank: int) -> None:
    """Over several words the rank is right, every pick solves the system, and a repeated row with another side makes it inconsistent."""
    rows, r = wide_system(m, d, rank)
    sides = gf2.products(rows, r)
    solutions = gf2.solve(rows, sides, d)
    assert solutions is not None
    assert solutions.dimension == d - rank
    for seed in range(5):
        coins = np.random.default_rng(seed).integers(0, 1 << 64, gf2.width(d), dtype=np.uint64)
        assert np.array_equal(gf2.products(rows, solutions.pick(coins)), sides)
    twice = np.vstack([rows, rows[:1]])
    assert gf2.solve(twice, np.append(sides, sides[0]), d) is not None
    assert gf2.solve(twice, np.append(sides, sides[0] ^ 1), d) is None


def test_pack_and_unpack_are_inverse() -> None:
    """Bits survive packing for widths around a word, one row or many."""
    for d in (1, 7, 8, 63, 64, 65, 130):
        bits = np.random.default_rng(d).integers(0, 2, (3, d)).astype(np.uint8)
        assert np.array_equal(gf2.unpack(gf2.pack(bits), d), bits)
        assert np.array_equal(gf2.unpack(gf2.pack(bits[0]), d), bits[0])


def test_no_equations_leave_everything_free() -> None:
    """An empty system has all 2^d solutions, and wrong shapes are refused."""
    solutions = gf2.solve(np.zeros((0, 1), dtype=np.uint64), np.zeros(0, dtype=np.uint8), 3)
    assert solutions is not None
    assert len(all_picks(solutions)) == 8
    with pytest.raises(InputError, match="need rows of shape"):
        gf2.solve(np.zeros((2, 1), dtype=np.uint64), np.zeros(2, dtype=np.uint8), 65)


def test_thousands_of_unknowns() -> None:
    """4,000 equations in 2,000 unknowns have one solution, which is right."""
    generator = np.random.default_rng(1)
    rows = gf2.pack(generator.integers(0, 2, (4000, 2000), dtype=np.uint8))
    r = gf2.pack(generator.integers(0, 2, 2000, dtype=np.uint8))
    solutions = gf2.solve(rows, gf2.products(rows, r), 2000)
    assert solutions is not None
    assert solutions.dimension == 0
    assert np.array_equal(solutions.pick(np.zeros(gf2.width(2000), dtype=np.uint64)), r)
