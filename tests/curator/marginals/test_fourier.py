"""Binary tables and their marginals: the Fourier mechanism, its noise, price and weights; trees,
and what both are compared with."""

import math
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest

from local_dp.accounting.losses import gaussian_delta, rho_within
from local_dp.arrays import Counts, Floats
from local_dp.curator.marginals import baselines, fourier
from local_dp.curator.marginals.base import BinaryTable, Errors, Marginals
from local_dp.curator.marginals.baselines import (
    CharacterSums,
    OneMarginal,
    PlainGaussian,
    SpanningTree,
    TreeTable,
)
from local_dp.curator.marginals.fourier import (
    LITTLE,
    MUCH,
    FourierGaussian,
    best_shares,
    choose,
    largest_move,
    nearest_table,
    odd_meetings,
    weights_of,
)
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.selection.exponential import BoundedRange
from local_dp.interaction import Adaptive
from local_dp.loss import ATTO, Approximate, approximate
from tests.support.inputs.refusals import refuse
from tests.support.runs.scripted import seeded

WORKLOADS = {
    "all pairs of five": Marginals.ways(5, 2),
    "all of five": Marginals.ways(5, 5),
    "of many sizes": Marginals.of(6, [(3, 0), (), (5,), (0, 2, 4), (3, 0)]),
}


def counted(table: BinaryTable, workload: Marginals) -> list[int]:
    cells = []
    for mask in workload.masks:
        columns = [c for c in range(workload.d) if mask >> c & 1]
        counts = [0] * (1 << len(columns))
        for row in table.bits.tolist():
            counts[sum(row[c] << k for k, c in enumerate(columns))] += 1
        cells += counts
    return cells


@pytest.mark.parametrize("size", [1, 400])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_answers_are_counts(workload: Marginals, size: int) -> None:
    """By characters of the rows, by a transform of the histogram, and counted record by record: the
    same whole numbers."""
    table = BinaryTable.of(np.random.default_rng(size).integers(0, 2, (size, workload.d)))
    expected = counted(table, workload)
    assert (
        workload.answers(table).tolist()
        == expected
        == workload.of_histogram(table.histogram).tolist()
    )
    assert workload.cells == len(expected) == workload.starts[-1]


def test_characters_of_rows_and_of_histograms_agree() -> None:
    """Few of many columns, where no histogram is made, against the same columns alone."""
    bits = np.random.default_rng(0).integers(0, 2, (300, 40))
    wide, narrow = BinaryTable.of(bits), BinaryTable.of(bits[:, 30:40])
    pairs = list(combinations(range(10), 2))
    far = Marginals.of(40, [(i + 30, j + 30) for i, j in pairs])
    assert far.answers(wide).tolist() == Marginals.of(10, pairs).answers(narrow).tolist()


def test_rows_fall_into_their_cells() -> None:
    workload = Marginals.of(6, [(1,), (5, 0, 3)])
    table = BinaryTable.of(np.random.default_rng(1).integers(0, 2, (50, 6)))
    summed = [np.bincount(workload.cells_of(k), weights=table.histogram) for k in range(2)]
    assert np.concatenate(summed).tolist() == workload.answers(table).tolist()


LOSS = approximate(1.0, 1e-6)
OTHER_WORKLOADS = {
    "three of five": Marginals.ways(5, 3),
    "all of four": Marginals.ways(4, 4),
    "of many sizes": Marginals.of(5, [(0, 1, 4), (2,), (1, 3), (1, 3), ()]),
}


def moves(workload: Marginals) -> list[Counts]:
    """By how much each character's sum moves, for every record replaced by every other."""
    characters = [
        BinaryTable(workload.d, np.array([x], dtype=np.uint64)).characters(workload.characters)
        for x in range(1 << workload.d)
    ]
    return [one - other for one, other in product(characters, characters)]


@pytest.mark.parametrize("workload", OTHER_WORKLOADS.values(), ids=OTHER_WORKLOADS.keys())
def test_the_loss_over_all_neighbours(workload: Marginals) -> None:
    """The squared moves over the variances, in fractions: at most mu^2 on every pair, and nearly
    that on one; the price of add-remove noise is passed."""
    mechanism = FourierGaussian(workload, 1.0, 1e-6)
    assert mechanism.loss == Approximate(10**9, 10**12)
    squares = [
        sum(
            (
                Fraction(int(move) ** 2, int(v))
                for move, v in zip(each, mechanism.variances, strict=True)
                if v
            ),
            Fraction(0),
        )
        for each in moves(workload)
    ]
    assert all(each[0] == 0 for each in moves(workload))  # n is public
    worst = max(squares)
    assert (
        0.97e-6
        < gaussian_delta(math.sqrt(worst), 1.0)
        <= 1e-6
        < gaussian_delta(math.sqrt(2 * worst), 1.0)
    )
    # noise that is enough for a record added has to be multiplied
    added = [sum((Fraction(1, int(v)) for v in mechanism.variances if v), Fraction(0))]
    assert worst > added[0]


@pytest.mark.parametrize("d", [3, 9])
def test_the_largest_move(d: int) -> None:
    """By sizes and by a transform, against all changes one by one; for a workload that is not
    symmetric too, and never more than all weights."""
    generator = np.random.default_rng(d)
    uneven = Marginals.of(d, [generator.choice(d, 3, replace=False).tolist() for _ in range(4)])
    for workload in (Marginals.ways(d, 2), Marginals.ways(d, 3), uneven):
        weights = weights_of(workload)
        meets = [np.bitwise_count(workload.characters & np.uint64(u)) % 2 for u in range(1 << d)]
        assert (
            largest_move(workload, weights)
            == max(int(weights @ each) for each in meets)
            <= weights.sum()
        )


@pytest.mark.parametrize(("d", "t"), [(1, 1), (5, 2), (10, 3), (17, 3), (12, 6)])
def test_weights_are_best(d: int, t: int) -> None:
    """No step in the logarithms of the shares, in which the price is convex, is better by 1e-4; nor
    is C^(1/2)."""
    sizes = range(1, t + 1)
    costs = np.array([math.comb(d, s) * math.comb(d - s, t - s) for s in sizes])
    meets = np.array([[odd_meetings(d, s, w) for s in sizes] for w in range(1, d + 1)])

    def price(shares: Floats) -> float:
        return float((costs / shares).sum() * (meets @ shares).max())

    shares, root = best_shares(d, t), np.sqrt([math.comb(d - s, t - s) for s in sizes])
    moved = [
        math.log(price(shares * np.exp(step)))
        for s in range(t)
        for step in (0.05 * np.eye(t)[s], -0.05 * np.eye(t)[s])
    ]
    # convex in the logarithms: no step is better
    assert math.log(price(shares)) < min([*moved, math.log(price(root))]) + 1e-4
    assert (d, t) != (17, 3) or price(root) / price(shares) == pytest.approx(1.1546, abs=2e-3)


@pytest.mark.parametrize("workload", OTHER_WORKLOADS.values(), ids=OTHER_WORKLOADS.keys())
def test_errors_have_their_variance(workload: Marginals) -> None:
    """Over 300 releases, squares of all cells' errors in standard ones average 1 within 6 standard
    errors: unbiased, and no larger than said."""
    table, draws = (
        BinaryTable.of(np.random.default_rng(1).integers(0, 2, (50, workload.d))),
        seeded(2),
    )
    mechanism = FourierGaussian(workload, 1.0, 1e-6)
    released = [mechanism.release(table, draws) for _ in range(300)]
    # the number of records has no error
    noisy_cells = np.repeat([mask > 0 for mask in workload.masks], np.diff(workload.starts))
    deviations = np.repeat(released[0].deviations, np.diff(workload.starts))[noisy_cells]
    scores = (np.array([each.cells for each in released]) - workload.answers(table))[
        :, noisy_cells
    ] / deviations
    squares = np.mean(scores**2, axis=1)
    standard = float(squares.std()) / 300**0.5
    assert abs(squares.mean() - 1) < 6 * standard < 0.5
    assert np.abs(scores.mean(axis=0)).max() < 6 / 300**0.5
    assert mechanism.deviation == pytest.approx(
        math.sqrt(
            float(
                (np.append(deviations, [0.0] * (len(noisy_cells) - noisy_cells.sum())) ** 2).mean()
            )
        )
    )


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
    assert {
        (d, t, size): choose(Marginals.ways(d, t), size, LOSS).kind for d, t, size in kinds
    } == kinds
    assert (
        "0.0065 of the records on a cell, which holds 0.125 on average"
        in choose(Marginals.ways(17, 3), 6366, LOSS).reason
    )
    monkeypatch.setattr(fourier, "MOST_CHARACTERS", 5)
    assert choose(Marginals.ways(3, 2), 10**9, LOSS).kind == "mst"


@pytest.mark.parametrize(
    ("d", "times", "kinds"), [(17, LITTLE, ["nearest", "fourier"]), (24, MUCH, ["mst", "fourier"])]
)
def test_the_choice_turns_at_its_constants(d: int, times: int, kinds: list[str]) -> None:
    """At the number of records where noise is one part in `times` of the average cell."""
    workload = Marginals.ways(d, 3)
    turn = times * 8 * FourierGaussian(workload, 1.0, 1e-6).deviation
    assert [choose(workload, int(turn * factor), LOSS).kind for factor in (0.99, 1.01)] == kinds


COPIES = np.random.default_rng(5).integers(0, 2, (4000, 3))
TABLE = BinaryTable.of(np.hstack([COPIES, COPIES]))
"""Columns c and c + 3 are equal, all others independent."""


def dense(tree: TreeTable) -> Floats:
    """The probabilities of all rows, edge by edge: the product of the pairs over that of the
    columns, each as often as it has edges beyond the first."""
    d, signs = len(tree.means), np.array([1.0, -1.0])
    degrees = np.bincount(np.array(tree.edges, dtype=np.int64).ravel(), minlength=d)
    laws = []
    for row in product((0, 1), repeat=d):
        s = signs[list(row)]
        pairs = [
            (1 + tree.means[i] * s[i] + tree.means[j] * s[j] + joint * s[i] * s[j]) / 4
            for (i, j), joint in zip(tree.edges, tree.joint, strict=True)
        ]
        laws.append(
            math.prod(pairs)
            / math.prod(((1 + tree.means[c] * s[c]) / 2) ** (degrees[c] - 1) for c in range(d))
        )
    # column 0 as the lowest bit
    return np.array(laws).reshape((2,) * d).transpose(range(d)[::-1]).ravel()


@pytest.mark.parametrize("d", [1, 2, 5, 7])
def test_marginals_of_a_tree(d: int) -> None:
    """By elimination, against the law of all rows, for marginals of every size."""
    generator = np.random.default_rng(d)
    edges = tuple(
        (int(generator.integers(0, c)), c) if c % 2 else (c, int(generator.integers(0, c)))
        for c in range(1, d)
    )
    means = generator.uniform(-0.9, 0.9, d)
    one, other = (means[[edge[end] for edge in edges]] for end in (0, 1))
    low, high = np.abs(one + other) - 1, 1 - np.abs(one - other)
    tree = TreeTable(1000, means, edges, low + (high - low) * generator.uniform(0.05, 0.95, d - 1))
    workload = Marginals(d, tuple(range(1 << d)))
    assert tree.cells(workload) == pytest.approx(
        1000 * workload.of_histogram(dense(tree)), abs=1e-9
    )


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
    assert (
        Errors.of(baselines.independent(columns).cells(workload), truth, TABLE.size).largest > 0.1
    )


def test_all_parts_fit_the_budget() -> None:
    """The rho of the columns, of the d - 1 choices and of the pairs: within that of (eps, delta),
    and a choice more is not."""
    mechanism = SpanningTree(6, 1.0, 1e-6)
    algorithm, spent, play = mechanism.algorithm(), 0, mechanism.algorithm().play()
    assert isinstance(algorithm, Adaptive)
    draws, query, choices = seeded(1), next(play), list[int]()
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
    """For all changes of a record of four columns the squared moves over 2 V are at most rho, and
    nearly rho for a tree."""
    mechanism = CharacterSums(((0, 1), (1, 2), (1, 3)), ATTO // 50)
    sums = [
        [(-1) ** (bits[0] + bits[1]), (-1) ** (bits[1] + bits[2]), (-1) ** (bits[1] + bits[3])]
        for bits in product((0, 1), repeat=4)
    ]
    worst = max(
        sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
        for one, other in product(sums, repeat=2)
    )
    assert (
        Fraction(worst, 2 * (mechanism.variance - 1))
        > Fraction(mechanism.loss.atto_rho, ATTO)
        >= Fraction(worst, 2 * mechanism.variance)
    )
    table, draws = BinaryTable.of(np.ones((10, 4), dtype=int)), seeded(0)
    sums_of_releases = np.array([mechanism.release(table, draws).sums for _ in range(400)])
    assert abs(sums_of_releases.mean() - 10) < 6 * math.sqrt(
        mechanism.variance / sums_of_releases.size
    )


def test_plain_noise_has_its_size() -> None:
    """Means over all 480 cells within 6 standard errors: k marginals make Gaussian noise of size
    sqrt(2 k) 4.22."""
    workload, table, draws = (
        Marginals.ways(10, 2),
        BinaryTable.of(np.random.default_rng(0).integers(0, 2, (100, 10))),
        seeded(9),
    )
    truth, k = workload.answers(table), 45
    normal = np.array(
        [PlainGaussian(workload, 1.0, 1e-6).release(table, draws) - truth for _ in range(30)]
    )
    assert abs(normal.std() / math.sqrt(2 * k) - 4.2246) < 6 * 4.2246 / math.sqrt(2 * normal.size)


def test_the_simplex() -> None:
    """The projection sums to n, is never below 0, and no other of many is nearer."""
    generator = np.random.default_rng(4)
    weights = generator.normal(0, 3, 20)
    near = baselines.on_simplex(weights, 10.0)
    assert near.min() >= 0
    assert near.sum() == pytest.approx(10) == baselines.of_total(weights, 10.0).sum()
    others = 10 * generator.dirichlet(np.full(20, 0.3), 500)
    assert np.all(((others - weights) ** 2).sum(axis=1) > ((near - weights) ** 2).sum())


def test_the_nearest_table() -> None:
    """Weights of 0 or more that sum to n and take a quarter off the error of few records; without
    rows that no record can be they err less still."""
    workload, rows = Marginals.ways(6, 3), np.arange(1 << 6, dtype=np.uint64)
    possible = (rows & np.uint64(3)) != 3
    table, errors = BinaryTable(6, np.random.default_rng(1).choice(rows[possible], 100)), []
    truth = workload.answers(table)
    for seed in range(5):
        noisy = FourierGaussian(workload, 1.0, 1e-6).release(table, seeded(seed))
        free, weights = nearest_table(noisy), nearest_table(noisy, possible)
        assert weights[~possible].max() == 0 < free.min()
        assert free.sum() == pytest.approx(100) == weights.sum()
        errors.append(
            [
                Errors.of(cells, truth, 100).mean
                for cells in (
                    noisy.cells,
                    workload.of_histogram(free),
                    workload.of_histogram(weights),
                )
            ]
        )
    before, after, least = np.mean(errors, axis=0)
    assert least < after < 0.75 * before


def test_bad_input() -> None:
    table = BinaryTable(4, np.array([1], dtype=np.uint64))
    wide = FourierGaussian(Marginals.of(23, [(0,)]), 1.0, 1e-6).release(
        BinaryTable(23, np.array([1], dtype=np.uint64)), seeded(0)
    )
    refuse(
        *(
            ("0 and 1", partial(BinaryTable.of, wrong))
            for wrong in (np.array([[0, 2]]), np.zeros(3, dtype=int), np.zeros((2, 65), dtype=int))
        ),
        ("no word of 2 bits", lambda: BinaryTable(2, np.array([4], dtype=np.uint64))),
        (
            "one number for both",
            lambda: Marginals.ways(3, 2).answers(BinaryTable(2, np.array([1], dtype=np.uint64))),
        ),
        ("0 marginals", lambda: Marginals(3, ())),
        ("t is 4", lambda: Marginals.ways(3, 4)),
        ("up to 22", lambda: BinaryTable(23, np.array([4], dtype=np.uint64)).histogram),
        ("delta is 0", lambda: FourierGaussian(Marginals.ways(3, 2), 1.0, 0.0)),
        (
            "one number for both",
            lambda: FourierGaussian(Marginals.ways(3, 2), 1.0, 1e-6).release(table, seeded(0)),
        ),
        ("public", lambda: FourierGaussian(Marginals(3, (0,)), 1.0, 1e-6)),
        ("d is 1", lambda: SpanningTree(1, 1.0, 1e-6)),
        ("one number for both", lambda: OneMarginal(3, 3, 1.0).release(TABLE, seeded(0))),
        ("up to 22", lambda: nearest_table(wide)),
    )
