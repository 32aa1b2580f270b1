"""MST and what it is compared with: trees, plain noise, one histogram."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from local_dp.accounting.losses import rho_within
from local_dp.arrays import Floats
from local_dp.curator.marginals.base import BinaryTable, Errors, Marginals
from local_dp.curator.marginals.baselines import (
    CharacterSums,
    OneMarginal,
    PlainGaussian,
    PlainLaplace,
    SpanningTree,
    TreeTable,
    independent,
    of_total,
    on_simplex,
)
from local_dp.curator.marginals.fourier import FourierGaussian, nearest_table
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.selection.exponential import BoundedRange
from local_dp.draws import Draws
from local_dp.interaction import Adaptive
from local_dp.loss import ATTO
from local_dp.noise import KeyedNoise
from tests.support.inputs.refusals import refuse

COPIES = np.random.default_rng(5).integers(0, 2, (4000, 3))
TABLE = BinaryTable.of(np.hstack([COPIES, COPIES]))
"""Columns c and c + 3 are equal, all others independent."""


def dense(tree: TreeTable) -> Floats:
    """The probabilities of all rows, edge by edge: the product of the pairs over that of the columns, each as often as it has edges beyond the first."""
    d, signs = len(tree.means), np.array([1.0, -1.0])
    degrees = np.bincount(np.array(tree.edges, dtype=np.int64).ravel(), minlength=d)
    laws = []
    for row in product((0, 1), repeat=d):
        s = signs[list(row)]
        pairs = [(1 + tree.means[i] * s[i] + tree.means[j] * s[j] + joint * s[i] * s[j]) / 4 for (i, j), joint in zip(tree.edges, tree.joint, strict=True)]
        laws.append(math.prod(pairs) / math.prod(((1 + tree.means[c] * s[c]) / 2) ** (degrees[c] - 1) for c in range(d)))
    return np.array(laws).reshape((2,) * d).transpose(range(d)[::-1]).ravel()  # column 0 as the lowest bit


@pytest.mark.parametrize("d", [1, 2, 5, 7])
def test_marginals_of_a_tree(d: int) -> None:
    """By elimination, against the law of all rows, for marginals of every size."""
    generator = np.random.default_rng(d)
    edges = tuple((int(generator.integers(0, c)), c) if c % 2 else (c, int(generator.integers(0, c))) for c in range(1, d))
    means = generator.uniform(-0.9, 0.9, d)
    one, other = (means[[edge[end] for edge in edges]] for end in (0, 1))
    low, high = np.abs(one + other) - 1, 1 - np.abs(one - other)
    tree = TreeTable(1000, means, edges, low + (high - low) * generator.uniform(0.05, 0.95, d - 1))
    workload = Marginals(d, tuple(range(1 << d)))
    assert tree.cells(workload) == pytest.approx(1000 * workload.of_histogram(dense(tree)), abs=1e-9)


def test_the_tree_of_copies_is_found() -> None:
    """Three pairs of equal columns are edges, every cell is near the truth, which independent columns miss; and the budget is spent whole, in d + 1 rounds."""
    workload = Marginals.ways(6, 3)
    truth, draws = workload.answers(TABLE), Draws(KeyedNoise(3))
    tree = SpanningTree(6, 1.0, 1e-6).release(TABLE, draws)
    assert {(0, 3), (1, 4), (2, 5)} <= set(tree.edges)
    assert len(tree.edges) == 5
    assert Errors.of(tree.cells(workload), truth, TABLE.size).largest < 0.05
    columns = FourierGaussian(Marginals.ways(6, 1), 1.0, 1e-6).release(TABLE, draws)
    assert Errors.of(independent(columns).cells(workload), truth, TABLE.size).largest > 0.1


def test_all_parts_fit_the_budget() -> None:
    """The rho of the columns, of the d - 1 choices and of the pairs: within that of (eps, delta), and a choice more is not."""
    mechanism = SpanningTree(6, 1.0, 1e-6)
    algorithm, spent, play = mechanism.algorithm(), 0, mechanism.algorithm().play()
    assert isinstance(algorithm, Adaptive)
    draws, query, choices = Draws(KeyedNoise(1)), next(play), list[int]()
    while True:
        part: Mechanism[BinaryTable, object, object] = query[0]  # type: ignore[type-var]
        spent += query[0].loss.atto_rho
        if isinstance(part, BoundedRange):
            choices.append(part.loss.atto_rho)
        try:
            query = play.send((query[0].release(TABLE, draws),))
        except StopIteration:
            break
    whole = rho_within(mechanism.loss).atto_rho
    assert len(choices) == 5
    assert spent <= whole < spent + min(choices)


def test_character_sums_cost_what_they_say() -> None:
    """For all changes of a record of four columns the squared moves over 2 V are at most rho, and nearly rho for a tree."""
    mechanism = CharacterSums(((0, 1), (1, 2), (1, 3)), ATTO // 50)
    sums = [[(-1) ** (bits[0] + bits[1]), (-1) ** (bits[1] + bits[2]), (-1) ** (bits[1] + bits[3])] for bits in product((0, 1), repeat=4)]
    worst = max(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) for one, other in product(sums, repeat=2))
    assert Fraction(worst, 2 * (mechanism.variance - 1)) > Fraction(mechanism.loss.atto_rho, ATTO) >= Fraction(worst, 2 * mechanism.variance)
    table, draws = BinaryTable.of(np.ones((10, 4), dtype=int)), Draws(KeyedNoise(0))
    sums_of_releases = np.array([mechanism.release(table, draws).sums for _ in range(400)])
    assert abs(sums_of_releases.mean() - 10) < 6 * math.sqrt(mechanism.variance / sums_of_releases.size)


def test_plain_noise_has_its_size() -> None:
    """Means over all 480 cells within 6 standard errors: k marginals make Laplace noise of mean absolute size 2 k / eps, Gaussian of sqrt(2 k) 4.22."""
    workload, table, draws = Marginals.ways(10, 2), BinaryTable.of(np.random.default_rng(0).integers(0, 2, (100, 10))), Draws(KeyedNoise(9))
    truth, k = workload.answers(table), 45
    laplace = np.array([np.abs(PlainLaplace(workload, 1.0).release(table, draws) - truth) for _ in range(30)])
    assert abs(laplace.mean() - 2 * k) < 6 * laplace.std() / math.sqrt(laplace.size) + 0.01
    normal = np.array([PlainGaussian(workload, 1.0, 1e-6).release(table, draws) - truth for _ in range(30)])
    assert abs(normal.std() / math.sqrt(2 * k) - 4.2246) < 6 * 4.2246 / math.sqrt(2 * normal.size)
    assert sum((part.loss.nano for part in PlainLaplace(workload, 1.0).parts), 0) <= 10**9


def test_the_simplex() -> None:
    """The projection sums to n, is never below 0, and no other of many is nearer."""
    generator = np.random.default_rng(4)
    weights = generator.normal(0, 3, 20)
    near = on_simplex(weights, 10.0)
    assert near.min() >= 0
    assert near.sum() == pytest.approx(10) == of_total(weights, 10.0).sum()
    others = 10 * generator.dirichlet(np.full(20, 0.3), 500)
    assert np.all(((others - weights) ** 2).sum(axis=1) > ((near - weights) ** 2).sum())


def test_the_nearest_table() -> None:
    """Weights of 0 or more that sum to n and take a quarter off the error of few records; without rows that no record can be they err less still."""
    workload, rows = Marginals.ways(6, 3), np.arange(1 << 6, dtype=np.uint64)
    possible = (rows & np.uint64(3)) != 3
    table, errors = BinaryTable(6, np.random.default_rng(1).choice(rows[possible], 100)), []
    truth = workload.answers(table)
    for seed in range(5):
        noisy = FourierGaussian(workload, 1.0, 1e-6).release(table, Draws(KeyedNoise(seed)))
        free, weights = nearest_table(noisy), nearest_table(noisy, possible)
        assert weights[~possible].max() == 0 < free.min()
        assert free.sum() == pytest.approx(100) == weights.sum()
        errors.append([Errors.of(cells, truth, 100).mean for cells in (noisy.cells, workload.of_histogram(free), workload.of_histogram(weights))])
    before, after, least = np.mean(errors, axis=0)
    assert least < after < 0.75 * before


def test_bad_input() -> None:
    """A tree of one column, a marginal of another table, more marginals than epsilon has parts, no histogram of 2^23 rows."""
    wide = FourierGaussian(Marginals.of(23, [(0,)]), 1.0, 1e-6).release(BinaryTable(23, np.array([1], dtype=np.uint64)), Draws(KeyedNoise(0)))
    refuse(
        ("d is 1", lambda: SpanningTree(1, 1.0, 1e-6)),
        ("one number for both", lambda: OneMarginal(3, 3, 1.0).release(TABLE, Draws(KeyedNoise(0)))),
        ("for 15 marginals", lambda: PlainLaplace(Marginals.ways(6, 2), 1e-8)),
        ("up to 22", lambda: nearest_table(wide)),
    )
