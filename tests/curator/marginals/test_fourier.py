"""The Fourier mechanism: its noise, its price, its weights, and when it is chosen."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from local_dp.accounting.losses import gaussian_delta
from local_dp.arrays import Counts, Floats
from local_dp.curator.marginals import fourier
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.marginals.fourier import LITTLE, MUCH, FourierGaussian, best_shares, choose, largest_move, odd_meetings, weights_of
from local_dp.draws import Draws
from local_dp.loss import Approximate, approximate
from local_dp.noise import KeyedNoise
from tests.support.inputs.refusals import refuse

LOSS = approximate(1.0, 1e-6)
WORKLOADS = {
    "three of five": Marginals.ways(5, 3),
    "all of four": Marginals.ways(4, 4),
    "of many sizes": Marginals.of(5, [(0, 1, 4), (2,), (1, 3), (1, 3), ()]),
}


def moves(workload: Marginals) -> list[Counts]:
    """By how much each character's sum moves, for every record replaced by every other."""
    characters = [BinaryTable(workload.d, np.array([x], dtype=np.uint64)).characters(workload.characters) for x in range(1 << workload.d)]
    return [one - other for one, other in product(characters, characters)]


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_the_loss_over_all_neighbours(workload: Marginals) -> None:
    """The squared moves over the variances, in fractions: at most mu^2 on every pair, and nearly that on one; the price of add-remove noise is passed."""
    mechanism = FourierGaussian(workload, 1.0, 1e-6)
    assert mechanism.loss == Approximate(10**9, 10**12)
    squares = [sum((Fraction(int(move) ** 2, int(v)) for move, v in zip(each, mechanism.variances, strict=True) if v), Fraction(0)) for each in moves(workload)]
    assert all(each[0] == 0 for each in moves(workload))  # n is public
    worst = max(squares)
    assert 0.97e-6 < gaussian_delta(math.sqrt(worst), 1.0) <= 1e-6 < gaussian_delta(math.sqrt(2 * worst), 1.0)
    added = [sum((Fraction(1, int(v)) for v in mechanism.variances if v), Fraction(0))]  # noise that is enough for a record added has to be multiplied
    assert worst > added[0]


@pytest.mark.parametrize("d", [3, 9])
def test_the_largest_move(d: int) -> None:
    """By sizes and by a transform, against all changes one by one; for a workload that is not symmetric too, and never more than all weights."""
    generator = np.random.default_rng(d)
    uneven = Marginals.of(d, [generator.choice(d, 3, replace=False).tolist() for _ in range(4)])
    for workload in (Marginals.ways(d, 2), Marginals.ways(d, 3), uneven):
        weights = weights_of(workload)
        meets = [np.bitwise_count(workload.characters & np.uint64(u)) % 2 for u in range(1 << d)]
        assert largest_move(workload, weights) == max(int(weights @ each) for each in meets) <= weights.sum()


@pytest.mark.parametrize(("d", "t"), [(1, 1), (5, 2), (10, 3), (17, 3), (12, 6)])
def test_weights_are_best(d: int, t: int) -> None:
    """No step in the logarithms of the shares, in which the price is convex, is better by 1e-4; nor is C^(1/2)."""
    sizes = range(1, t + 1)
    costs = np.array([math.comb(d, s) * math.comb(d - s, t - s) for s in sizes])
    meets = np.array([[odd_meetings(d, s, w) for s in sizes] for w in range(1, d + 1)])

    def price(shares: Floats) -> float:
        return float((costs / shares).sum() * (meets @ shares).max())

    shares, root = best_shares(d, t), np.sqrt([math.comb(d - s, t - s) for s in sizes])
    moved = [math.log(price(shares * np.exp(step))) for s in range(t) for step in (0.05 * np.eye(t)[s], -0.05 * np.eye(t)[s])]
    assert math.log(price(shares)) < min([*moved, math.log(price(root))]) + 1e-4  # convex in the logarithms: no step is better
    assert (d, t) != (17, 3) or price(root) / price(shares) == pytest.approx(1.1546, abs=2e-3)


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_errors_have_their_variance(workload: Marginals) -> None:
    """Over 300 releases, squares of all cells' errors in standard ones average 1 within 6 standard errors: unbiased, and no larger than said."""
    table, draws = BinaryTable.of(np.random.default_rng(1).integers(0, 2, (50, workload.d))), Draws(KeyedNoise(2))
    mechanism = FourierGaussian(workload, 1.0, 1e-6)
    released = [mechanism.release(table, draws) for _ in range(300)]
    noisy_cells = np.repeat([mask > 0 for mask in workload.masks], np.diff(workload.starts))  # the number of records has no error
    deviations = np.repeat(released[0].deviations, np.diff(workload.starts))[noisy_cells]
    scores = (np.array([each.cells for each in released]) - workload.answers(table))[:, noisy_cells] / deviations
    squares = np.mean(scores**2, axis=1)
    standard = float(squares.std()) / 300**0.5
    assert abs(squares.mean() - 1) < 6 * standard < 0.5
    assert np.abs(scores.mean(axis=0)).max() < 6 / 300**0.5
    assert mechanism.deviation == pytest.approx(math.sqrt(float((np.append(deviations, [0.0] * (len(noisy_cells) - noisy_cells.sum())) ** 2).mean())))


def test_what_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest table for `fair`; plain noise for many records; of many columns a tree where noise is large, and where it is small there is no other way."""
    kinds = {(17, 3, 6366): "nearest", (17, 3, 10**5): "fourier", (32, 3, 10**6): "fourier", (32, 3, 40_000): "fourier", (32, 3, 500): "mst"}
    assert {(d, t, size): choose(Marginals.ways(d, t), size, LOSS).kind for d, t, size in kinds} == kinds
    assert "0.0065 of the records on a cell, 0.125 on average" in choose(Marginals.ways(17, 3), 6366, LOSS).reason
    monkeypatch.setattr(fourier, "MOST_CHARACTERS", 5)
    assert choose(Marginals.ways(3, 2), 10**9, LOSS).kind == "mst"


@pytest.mark.parametrize(("d", "times", "kinds"), [(17, LITTLE, ["nearest", "fourier"]), (24, MUCH, ["mst", "fourier"])])
def test_the_choice_turns_at_its_constants(d: int, times: int, kinds: list[str]) -> None:
    """At the number of records where noise is one part in `times` of the average cell."""
    workload = Marginals.ways(d, 3)
    turn = times * 8 * FourierGaussian(workload, 1.0, 1e-6).deviation
    assert [choose(workload, int(turn * factor), LOSS).kind for factor in (0.99, 1.01)] == kinds


def test_bad_input() -> None:
    """A delta that is none, a table of other columns, a workload that is public."""
    table = BinaryTable(4, np.array([1], dtype=np.uint64))
    refuse(
        ("delta is 0", lambda: FourierGaussian(Marginals.ways(3, 2), 1.0, 0.0)),
        ("one number for both", lambda: FourierGaussian(Marginals.ways(3, 2), 1.0, 1e-6).release(table, Draws(KeyedNoise(0)))),
        ("public", lambda: FourierGaussian(Marginals(3, (0,)), 1.0, 1e-6)),
    )
