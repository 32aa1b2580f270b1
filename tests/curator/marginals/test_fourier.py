"""Binary tables and their marginals: the Fourier mechanism, its noise, price and weights; trees,
and what both are compared with."""

import math
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

from local_dp.accounting.losses import gaussian_delta
from local_dp.arrays import Floats
from local_dp.curator.marginals import baselines, fourier
from local_dp.curator.marginals.base import BinaryTable, Errors, Marginals
from local_dp.curator.marginals.baselines import CharacterSums, OneMarginal, SpanningTree, TreeTable
from local_dp.curator.marginals.fourier import (
    LITTLE,
    MUCH,
    FourierGaussian,
    best_shares,
    choose,
    nearest_table,
    odd_meetings,
)
from local_dp.loss import ATTO, Approximate, approximate
from tests.support.inputs.refusals import refuse
from tests.support.runs.scripted import Script, seeded
from tests.support.wrong import wrong

LOSS = approximate(1.0, 1e-6)
WORKLOADS = {
    "one by one": Marginals.ways(4, 1),
    "three of five": Marginals.ways(5, 3),
    "all of four": Marginals.ways(4, 4),
    "of many sizes": Marginals.of(6, [(0, 1, 4), (2,), (1, 3), (3, 1), (), (5,)]),
}
every_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())


@every_workload
def test_answers_are_counts(workload: Marginals) -> None:
    """By characters of the rows, by a transform of the histogram, by the cells of all rows, and
    counted record by record: the same whole numbers."""
    table = BinaryTable.of(np.random.default_rng(1).integers(0, 2, (400, workload.d)))
    by_hand, by_cells = list[int](), list[int]()
    for number, mask in enumerate(workload.masks):
        bits = table.bits[:, [c for c in range(workload.d) if mask >> c & 1]]
        size = bits.shape[1]
        by_hand += np.bincount(bits @ (1 << np.arange(size)), minlength=1 << size).tolist()
        by_cells += np.bincount(workload.cells_of(number), weights=table.histogram).tolist()
    assert workload.answers(table).tolist() == by_hand == by_cells
    assert workload.of_histogram(table.histogram).tolist() == by_hand
    assert workload.cells == len(by_hand) == workload.starts[-1]


@wrong(
    "local_dp.curator.marginals.fourier:FourierGaussian.variances",
    "4 * largest_move(self.workload, weights)",
    "2 * largest_move(self.workload, weights)",
    "a replaced record moves a character by 2, so by 4 squared",
    at="three of five",
)
@every_workload
def test_the_loss_over_all_neighbours(workload: Marginals) -> None:
    """The squared moves over the variances, in fractions: at most mu^2 on every pair, and nearly
    that on one; the number of records does not move."""
    mechanism, squares = FourierGaussian(workload, 1.0, 1e-6), list[Fraction]()
    rows = np.arange(1 << workload.d, dtype=np.uint64)[:, None]
    characters = [BinaryTable(workload.d, row).characters(workload.characters) for row in rows]
    for one, other in product(characters, repeat=2):
        assert one[0] == other[0]
        moves = (one - other)[mechanism.variances > 0].tolist()
        variances = mechanism.variances[mechanism.variances > 0].tolist()
        shares = (Fraction(move**2, v) for move, v in zip(moves, variances, strict=True))
        squares.append(sum(shares, Fraction(0)))
    worst = max(squares)
    assert mechanism.loss == Approximate(10**9, 10**12)
    assert 0.97e-6 < gaussian_delta(math.sqrt(worst), 1.0) <= 1e-6
    assert gaussian_delta(math.sqrt(2 * worst), 1.0) > 1e-6


@pytest.mark.parametrize(("d", "t"), [(5, 2), (17, 3), (12, 6)])
def test_weights_are_best(d: int, t: int) -> None:
    """No step in the logarithms of the shares, in which the price is convex, is better by 1e-4; nor
    is C^(1/2)."""
    sizes = range(1, t + 1)
    costs = np.array([math.comb(d, s) * math.comb(d - s, t - s) for s in sizes])
    meets = np.array([[odd_meetings(d, s, w) for s in sizes] for w in range(1, d + 1)])

    def price(shares: Floats) -> float:
        return math.log(float((costs / shares).sum() * (meets @ shares).max()))

    steps = 0.05 * np.vstack([np.eye(t), -np.eye(t)])
    shares, root = best_shares(d, t), np.sqrt([math.comb(d - s, t - s) for s in sizes])
    for other in (root, *(shares * np.exp(steps))):
        assert price(shares) < price(other) + 1e-4
    gain = price(root) - price(shares)
    assert (d, t) != (17, 3) or gain == pytest.approx(math.log(1.1546), abs=2e-3)


@every_workload
def test_errors_have_their_variance(workload: Marginals) -> None:
    """Without noise the cells are the answers; each noise of a character adds its variance to the
    cells as the linear map has it."""
    table = BinaryTable.of(np.random.default_rng(1).integers(0, 2, (50, workload.d)))
    mechanism = FourierGaussian(workload, 1.0, 1e-6)
    exact = mechanism.release(table, Script([0] * 400))
    assert exact.cells == pytest.approx(workload.answers(table))
    units = np.array([workload.of_characters(unit) for unit in np.eye(len(mechanism.variances))])
    noise = np.where(mechanism.variances > 0, mechanism.variances + 1 / 12, 0)
    variances = noise @ units**2
    assert exact.spread == pytest.approx(np.sqrt(variances))
    assert mechanism.deviation == pytest.approx(math.sqrt(variances.mean()))


def test_what_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest table for `fair`; plain noise for many records; of many columns a tree where
    noise is large, and where it is small there is no other way."""
    kinds = {
        (17, 3, 6366): "nearest",
        (17, 3, 10**5): "fourier",
        (32, 3, 10**6): "fourier",
        (32, 3, 40_000): "fourier",
        (32, 3, 500): "mst",
    }
    for (d, t, size), kind in kinds.items():
        assert choose(Marginals.ways(d, t), size, LOSS).kind == kind
    # where noise is one part in `times` of the average cell
    for d, times, kind in ((17, LITTLE, "nearest"), (24, MUCH, "mst")):
        workload = Marginals.ways(d, 3)
        turn = times * 8 * FourierGaussian(workload, 1.0, 1e-6).deviation
        assert choose(workload, int(turn * 0.99), LOSS).kind == kind
        assert choose(workload, int(turn * 1.01), LOSS).kind == "fourier"
    monkeypatch.setattr(fourier, "MOST_CHARACTERS", 5)
    assert choose(Marginals.ways(3, 2), 10**9, LOSS).kind == "mst"


COPIES = np.random.default_rng(5).integers(0, 2, (4000, 3))
TABLE = BinaryTable.of(np.hstack([COPIES, COPIES]))
"""Columns c and c + 3 are equal, all others independent."""


def dense(tree: TreeTable) -> Floats:
    """The probabilities of all rows: the product of the pairs over that of the columns, each as
    often as it has edges beyond the first."""
    d = len(tree.means)
    signs = 1.0 - 2 * (np.arange(1 << d)[:, None] >> np.arange(d) & 1)
    own = tree.means * signs
    law = np.prod((1 + own) / 2, axis=1)
    for (i, j), joint in zip(tree.edges, tree.joint, strict=True):
        pair = 1 + own[:, i] + own[:, j] + joint * signs[:, i] * signs[:, j]
        law *= pair / ((1 + own[:, i]) * (1 + own[:, j]))
    return np.asarray(law)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_marginals_of_a_tree(d: int) -> None:
    """By elimination, against the law of all rows, for marginals of every size."""
    generator = np.random.default_rng(d)
    means = generator.uniform(-0.9, 0.9, d)
    edges, joint = list[tuple[int, int]](), list[float]()
    for c in range(1, d):
        other = int(generator.integers(0, c))
        edges.append((other, c) if c % 2 else (c, other))
        least, most = abs(means[[other, c]].sum()) - 1, 1 - abs(means[other] - means[c])
        joint.append(float(generator.uniform(least, most)))
    tree = TreeTable(1000, means, tuple(edges), np.array(joint))
    workload = Marginals(d, tuple(range(1 << d)))
    cells = 1000 * workload.of_histogram(dense(tree))
    assert tree.cells(workload) == pytest.approx(cells, abs=1e-9)


def test_the_tree_of_copies_is_found() -> None:
    """Three pairs of equal columns are edges, every cell is near the truth, which independent
    columns miss; and the budget is spent whole, in d + 1 rounds."""
    workload = Marginals.ways(6, 3)
    truth, draws = workload.answers(TABLE), seeded(3)
    tree = SpanningTree(6, 1.0, 1e-6).release(TABLE, draws)
    assert {(0, 3), (1, 4), (2, 5)} <= set(tree.edges)
    assert len(tree.edges) == 5
    assert Errors.of(tree.cells(workload), truth, TABLE.size).largest < 0.05
    columns = FourierGaussian(Marginals.ways(6, 1), 1.0, 1e-6).release(TABLE, draws)
    cells = baselines.independent(columns).cells(workload)
    assert Errors.of(cells, truth, TABLE.size).largest > 0.1


def test_character_sums_cost_what_they_say() -> None:
    """For all changes of a record of four columns the squared moves over 2 V are at most rho, and
    nearly rho for a tree."""
    mechanism = CharacterSums(((0, 1), (1, 2), (1, 3)), ATTO // 50)
    rows = np.array(list(product((1, -1), repeat=4)))
    sums = rows[:, [0, 1, 1]] * rows[:, [1, 2, 3]]
    worst = int(((sums[:, None] - sums) ** 2).sum(axis=2).max())
    rho, variance = Fraction(mechanism.loss.atto_rho, ATTO), mechanism.variance
    assert Fraction(worst, 2 * (variance - 1)) > rho >= Fraction(worst, 2 * variance)


def test_the_nearest_table() -> None:
    """Weights of 0 or more that sum to n and take a quarter off the error of few records; without
    rows that no record can be they err less still."""
    workload, rows = Marginals.ways(6, 3), np.arange(1 << 6, dtype=np.uint64)
    possible, errors = (rows & np.uint64(3)) != 3, []
    table = BinaryTable(6, np.random.default_rng(1).choice(rows[possible], 100))
    truth = workload.answers(table)
    for seed in range(5):
        noisy = FourierGaussian(workload, 1.0, 1e-6).release(table, seeded(seed))
        free, weights = nearest_table(noisy), nearest_table(noisy, possible)
        assert weights[~possible].max() == 0 < free.min()
        assert free.sum() == pytest.approx(100) == weights.sum()
        cells = noisy.cells, workload.of_histogram(free), workload.of_histogram(weights)
        errors.append([Errors.of(each, truth, 100).mean for each in cells])
    before, after, least = np.mean(errors, axis=0)
    assert least < after < 0.75 * before


def test_bad_input() -> None:
    one, pairs = np.array([1], dtype=np.uint64), Marginals.ways(3, 2)
    table, wide = BinaryTable(4, one), BinaryTable(23, one)
    refuse(
        *(
            ("0 and 1", partial(BinaryTable.of, wrong))
            for wrong in (np.array([[0, 2]]), np.zeros(3, dtype=int), np.zeros((2, 65), dtype=int))
        ),
        ("no word of 2 bits", lambda: BinaryTable(2, 4 * one)),
        ("one number for both", lambda: pairs.answers(table)),
        ("0 marginals", lambda: Marginals(3, ())),
        ("t is 4", lambda: Marginals.ways(3, 4)),
        ("up to 22", lambda: wide.histogram),
        (
            "one number for both",
            lambda: FourierGaussian(pairs, 1.0, 1e-6).release(table, seeded(0)),
        ),
        ("public", lambda: FourierGaussian(Marginals(3, (0,)), 1.0, 1e-6)),
        ("d is 1", lambda: SpanningTree(1, 1.0, 1e-6)),
        ("one number for both", lambda: OneMarginal(3, 3, 1.0).release(TABLE, seeded(0))),
        (
            "up to 22",
            lambda: nearest_table(
                FourierGaussian(Marginals.of(23, [(0,)]), 1.0, 1e-6).release(wide, seeded(0))
            ),
        ),
    )
