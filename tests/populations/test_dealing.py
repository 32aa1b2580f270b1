"""Rows are dealt to clients by a bijection whose places are computed one by one, and any two
clients have any two rows equally often."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from local_dp.errors import InputError
from local_dp.populations.dealing import BITS, Dealing, through
from tests.support.wrong import wrong

FAILS = 1e-6  # probability that a right dealing fails a statistical test


@wrong(
    "local_dp.populations.dealing:Dealing._walk",
    "part[outside] = through(part[outside], rounds, self.grid)",
    "part[outside] %= self.size",
    "some rows have two clients, and others none",
    at="0",
)
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_each_row_has_one_client(seed: int) -> None:
    """For each number of rows below 130, and around powers, the clients have all rows, each once;
    the inverse returns; parts agree with the whole."""
    for size in (*range(1, 130), 399, 1023, 1024, 1025, 99_999, 100_000):
        dealing = Dealing(size, seed)
        rows = dealing.rows(0, size)
        assert np.array_equal(np.sort(rows), np.arange(size))
        assert np.array_equal(dealing.clients(rows), np.arange(size))
        assert np.array_equal(dealing.rows(size // 3, size), rows[size // 3 :])
        assert 0 <= np.prod(dealing.grid) - size < max(dealing.grid[0], 4)


def test_a_part_of_a_huge_table_is_dealt_alone() -> None:
    """A few clients of 2^40 rows take tables of 2^20 words; their rows return to them."""
    dealing = Dealing(1 << 40, 1)
    rows = dealing.rows(10**12, 10**12 + 1000)
    assert len(np.unique(rows)) == 1000
    assert rows.max() < 1 << 40
    assert np.array_equal(dealing.clients(rows), np.arange(10**12, 10**12 + 1000))
    with pytest.raises(InputError, match="the number of rows is 0"):
        Dealing(0, 1)


def _differences(
    grid: tuple[int, int], start: tuple[int, int], rounds: int
) -> dict[tuple[int, int], Fraction]:
    """The law of the difference of two points that differ by `start`, exactly: a round makes one
    coordinate uniform, unless the other one is equal."""
    law = {start: Fraction(1)}
    for number in range(rounds):
        axis = number % 2
        after = dict[tuple[int, int], Fraction]()
        for point, share in law.items():
            ends = [point[axis]] if point[1 - axis] == 0 else range(grid[axis])
            for end in ends:
                to = (end, point[1]) if axis == 0 else (point[0], end)
                after[to] = after.get(to, Fraction(0)) + share / len(ends)
        law = after
    return law


def _all_rounds(grid: tuple[int, int], count: int) -> list[list[tuple[int, Sequence[int]]]]:
    """Every network of so many rounds, with every table."""
    each = []
    for axis in (number % 2 for number in range(count)):
        moves = product(range(grid[axis]), repeat=grid[1 - axis])
        each.append([(axis, move) for move in moves])
    return [list(rounds) for rounds in product(*each)]


@pytest.mark.parametrize(("grid", "count"), [((2, 2), 5), ((3, 2), 3), ((2, 3), 3)])
def test_the_law_of_two_clients_is_that_of_a_chain(grid: tuple[int, int], count: int) -> None:
    """Over all tables of all rounds, two points go to each two points exactly as often as the chain
    says; and every network is a bijection."""
    networks = _all_rounds(grid, count)
    size = grid[0] * grid[1]
    images = np.empty((len(networks), size), dtype=np.int64)
    for image, rounds in zip(images, networks, strict=True):
        moves = [(axis, np.array(move)) for axis, move in rounds]
        image[:] = through(np.arange(size), moves, grid)
    assert all(sorted(image) == list(range(size)) for image in images.tolist())

    def apart(one: int, other: int) -> tuple[int, int]:
        (row, column), (own_row, own_column) = divmod(other, grid[1]), divmod(one, grid[1])
        return (own_row - row) % grid[0], (own_column - column) % grid[1]

    for one, other in permutations(range(size), 2):
        counts = Counter(zip(images[:, one].tolist(), images[:, other].tolist(), strict=True))
        law = _differences(grid, apart(one, other), count)
        for ends in permutations(range(size), 2):
            chance = law.get(apart(*ends), Fraction(0)) / size
            assert Fraction(counts[ends], len(networks)) == chance


def test_two_clients_have_any_two_rows() -> None:
    """A dealing has so many rounds that the chain is within 1 / min(a, b)^(r / 2 - 1), at most
    2^-32, of uniform."""
    for size in (1, 10, 1000, 10**6, 10**9):
        dealing = Dealing(size, 1)
        assert min(dealing.grid) ** (len(dealing._rounds) // 2 - 1) >= 2**BITS


@wrong(
    "local_dp.populations.dealing:Dealing._rounds",
    "2 + 2 * math.ceil(BITS / math.log2(min(self.grid)))",
    "4",
    "neighbours in a sorted table go to the same cohort too often",
)
def test_a_cohort_of_a_sorted_table_is_a_sample_of_it() -> None:
    """Of 12 rows, clients 0 and 3, whom the first round keeps apart, have each ordered pair equally
    often over 1,000 seeds: chi-square, fails once in 10^6."""
    size, seeds = 12, 1_000
    pairs = np.array([Dealing(size, seed).rows(0, 4)[[0, 3]] for seed in range(seeds)])
    counts = np.bincount(pairs[:, 0] * size + pairs[:, 1], minlength=size * size)
    unequal = counts.reshape(size, size)[~np.eye(size, dtype=np.bool_)]
    assert counts.sum() == unequal.sum()
    expected = seeds / len(unequal)
    statistic = ((unequal - expected) ** 2 / expected).sum()
    assert statistic < stats.chi2.isf(FAILS, len(unequal) - 1)
