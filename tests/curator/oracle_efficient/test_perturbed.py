"""RSPM, its separators and oracles, and synthetic data as a game: exact losses, proofs that do not
hold, and twins with less noise."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Counts, Ints
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.mechanism import SmallDatabases
from local_dp.curator.oracle_efficient import separated
from local_dp.curator.oracle_efficient.branching import (
    LEAF,
    BranchAndBound,
    FullSearch,
    Proof,
    check,
)
from local_dp.curator.oracle_efficient.perturbed import (
    NOTHING,
    Beside,
    DataPlayer,
    Perturbation,
    PerturbedMinimum,
    SyntheticGame,
    largest_error,
)
from local_dp.curator.oracle_efficient.separated import (
    Closed,
    Conjunctions,
    Exhaustive,
    Parities,
    Separated,
    Thresholds,
    Weighted,
)
from local_dp.curator.selection.exponential import Labelled
from local_dp.interaction import run
from local_dp.loss import Pure, approximate
from tests.support.inputs.refusals import refuse
from tests.support.runs.scripted import seeded

SMALL: list[Separated] = [
    *(Conjunctions(d) for d in (1, 2, 3, 5)),
    *(Parities(d) for d in (1, 2, 3, 5)),
    *(Thresholds(points) for points in (1, 2, 3, 9)),
]


def value(queries: Separated, q: int, x: int) -> int:
    if isinstance(queries, Conjunctions):
        return int(q & ~x == 0)
    return (q & x).bit_count() & 1 if isinstance(queries, Parities) else int(x >= q)


@pytest.mark.parametrize("queries", SMALL, ids=str)
def test_separators_separate(queries: Separated) -> None:
    """Any two queries differ on a separator; the class is full where every pattern is a query's."""
    patterns = queries.values(queries.separators)
    assert len(np.unique(patterns, axis=0)) == queries.size == len(patterns)
    assert queries.full == (queries.size == 2 ** len(queries.separators))


def least_shift(queries: Separated, points: Ints) -> int | None:
    """The least `shift` among whole s_i of -2 .. 2, for examples at these points with labels of
    0/1, by enumeration; None if there is none."""
    values, patterns = (
        queries.values(places).astype(np.int64) for places in (points, queries.separators)
    )
    every = product(range(-2, 3), repeat=patterns.shape[1])
    shifts = np.array(sorted(every, key=lambda shift: sum(map(abs, shift))))
    signed, least = np.hstack([values, -values]), 0  # labels 0 and 1
    pairs = signed[:, None, :] - signed[:, :, None]
    moves = np.unique(pairs.reshape(queries.size, -1), axis=1)
    for q in range(queries.size):
        noise = (shifts @ (patterns - patterns[q]).T)[:, :, None]
        keep = (noise + moves - moves[q] >= 0).all(axis=1)
        if not keep.any(axis=0).all():
            return None
        least = max(least, int(np.abs(shifts[keep.argmax(axis=0)]).sum(axis=1).max()))
    return least


@pytest.mark.parametrize(
    "queries",
    [Conjunctions(1), Conjunctions(3), Parities(1), Parities(3), Thresholds(1), Thresholds(4)],
    ids=str,
)
def test_shifts_are_enough_and_least(queries: Separated) -> None:
    """For all queries and replaced examples: the noise moves by 2 m in sum for conjunctions and
    parities, and by 2 for thresholds, and by no less."""
    points = queries.separators if isinstance(queries, Thresholds) else np.arange(queries.size)
    assert least_shift(queries, points) == queries.shift


@pytest.mark.parametrize(
    ("queries", "common"),
    [(Conjunctions(1), 1), (Conjunctions(2), 3), (Parities(1), 0), (Parities(2), 0)],
    ids=str,
)
def test_complements_are_separated_by_one_more_point(queries: Separated, common: int) -> None:
    """The second half is one minus the first, all patterns differ, and 2 (m + 1) is enough, and the
    least for parities of two bits."""
    closed, points = Closed(queries, common), np.arange(queries.size)
    values, least = closed.values(points), least_shift(closed, points)
    assert np.array_equal(values[queries.size :], ~values[: queries.size])
    patterns = np.unique(closed.values(closed.separators), axis=0)
    assert len(patterns) == closed.size == 2 ** len(closed.separators)
    assert least is not None
    assert least == closed.shift or (least < closed.shift and queries != Parities(2))


@pytest.mark.parametrize("queries", SMALL, ids=str)
def test_totals_are_sums_of_values(queries: Separated) -> None:
    """For weights of both signs, and errors of labelled examples, against the definition."""
    rng = np.random.default_rng(4)
    points = queries.points if isinstance(queries, Thresholds) else queries.size
    x, weights = rng.integers(0, points, 20), rng.integers(-9, 10, 20)
    values = np.array([[value(queries, q, point) for point in x] for q in range(queries.size)])
    assert queries.totals(Weighted(x, weights)).tolist() == (values @ weights).tolist()
    assert queries.errors(x, weights & 1).tolist() == (values != weights & 1).sum(axis=1).tolist()


def some(d: int, n: int, seed: int) -> Weighted:
    rng = np.random.default_rng(seed)
    return Weighted(rng.integers(0, 1 << d, n), rng.integers(-3, 4, n))


@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_branch_and_bound_finds_the_first_of_the_least(d: int) -> None:
    """On 20 random weightings, ties included, the same query and value as by going through all."""
    for seed in range(20):
        data = some(d, 3 * seed, seed)
        assert (
            BranchAndBound(d).minimise(data)
            == FullSearch(d).minimise(data)
            == Exhaustive(Conjunctions(d)).minimise(data)
        )


def test_branch_and_bound_certifies_large_dimensions() -> None:
    """What cannot be gone through is certified by trees of fewer than 1,000 nodes: a conjunction of
    three of 60 literals, noise as RSPM adds at epsilon 1."""
    rng, d = np.random.default_rng(60), 60
    x = rng.integers(0, 1 << d, 2000)
    y = (x & 7 == 7) ^ (rng.random(2000) < 0.1)
    noise = np.rint(rng.laplace(0, 2 * d, d)).astype(np.int64)
    examples = separated.labelled(x, y.astype(np.int64))
    data = examples.with_points(Conjunctions(d).separators, noise)
    proof = BranchAndBound(d).prove(data)
    assert proof is not None
    assert len(proof.splits) < 1000
    assert check(proof, data, d) == separated.Certified(proof.choice, proof.value)


def test_wrong_proofs_fail() -> None:
    """Every other query with its own total, a wrong total, a cut or a lengthened tree, other data,
    and of two equal queries the second: none is certified."""
    d, data = 5, some(5, 60, 7)
    proof = BranchAndBound(d).prove(data)
    assert proof is not None
    assert len(proof.splits) > 3
    assert check(proof, data, d) == separated.Certified(proof.choice, proof.value)
    first, *rest = proof.splits
    wrong = [replace(proof, value=proof.value + 1)]
    wrong += [replace(proof, choice=choice) for choice in (-1, 1 << d)]
    for splits in ((), (LEAF,), (-2,), (d, *rest), (first, *rest[:-1]), (first, *rest, LEAF)):
        wrong.append(replace(proof, splits=splits))
    for q, total in enumerate(Conjunctions(d).totals(data)):
        if q != proof.choice:
            wrong.append(replace(proof, choice=q, value=int(total)))
    assert all(check(one, data, d) == separated.FAIL for one in wrong)
    assert check(proof, some(5, 60, 8), d) == separated.FAIL
    assert BranchAndBound(9, nodes=2).minimise(some(9, 60, 1)) == separated.FAIL, (
        "a search that is cut short reports it"
    )
    for choice, answer in enumerate((separated.Certified(0, 0), separated.FAIL)):
        assert check(Proof(choice, 0, (LEAF,)), some(2, 0, 0), 2) == answer


@dataclass(frozen=True)
class Constant:
    """Claims one query, come what may."""

    choice: int

    def minimise(self, data: Weighted) -> separated.Claimed:
        return separated.Claimed(self.choice)


def test_a_checked_liar_only_fails() -> None:
    """Of a plain oracle's claims the true ones are left."""
    data, exact = some(3, 30, 3), Exhaustive(Conjunctions(3))
    truth = exact.minimise(data)
    for q in range(8):
        answer = separated.Verified(Constant(q), exact).minimise(data)
        assert answer == (truth if q == truth.choice else separated.FAIL)


def rspm(queries: Separated, epsilon: float) -> PerturbedMinimum:
    return PerturbedMinimum(Perturbation(queries, epsilon), Exhaustive(queries))


@dataclass(frozen=True)
class BusyTie:
    """Perfect, except that the data break its ties: the last query if there are fewer ones than
    zeros."""

    queries: Separated

    def minimise(self, data: Weighted) -> separated.Certified:
        totals = self.queries.totals(data)
        choice = int(np.flatnonzero(totals == totals.min())[-1 if data.weights[0] < 0 else 0])
        return separated.Certified(choice, int(totals[choice]))


def test_a_tie_break_that_looks_at_the_data_is_not_private() -> None:
    """With whole noise ties are frequent, and one fixed order of the queries is needed."""
    databases = SmallDatabases(list(product(range(4), (0, 1))), 1, Labelled.of)
    assert databases.worst_delta(
        PerturbedMinimum(Perturbation(Parities(2), 1.0), BusyTie(Parities(2)))
    ) > Fraction(1, 20)


D = 6
QUERIES = Closed(Conjunctions(D), (1 << D) - 1)


def released(counts: Counts, epsilon: float, draws: int) -> float:
    """The largest error after 50 rounds of the game."""
    n = int(counts.sum())
    rows = Labelled(np.repeat(np.arange(1 << D), counts), np.zeros(n, dtype=np.int64))
    each = PerturbedMinimum(Perturbation(QUERIES, epsilon), Exhaustive(QUERIES)).loss.nano
    game = SyntheticGame(QUERIES, Exhaustive(QUERIES), n, 50, epsilon)
    oracle = TrustedOracle(rows, Account(Pure(50 * each)), seeded(1))
    synthetic = run(game.against(DataPlayer(D, draws, 2.0), np.random.default_rng(1)), oracle)
    assert oracle.account.spent == oracle.account.budget
    return largest_error(QUERIES, counts, synthetic)


def test_the_game_approaches_the_table() -> None:
    """n = 10^5, total epsilon 1, delta 1e-6, 50 rounds: below .08, uniform .20; with one draw a
    round above .15."""
    rng, part = np.random.default_rng(0), optimal_part(approximate(1.0, 1e-6), 50)
    chances = np.where(rng.random((100_000, 1)) < 0.5, 0.85, 0.3)  # of two kinds of rows
    rows = (rng.random((100_000, D)) < chances) @ (1 << np.arange(D))
    counts, uniform = np.bincount(rows, minlength=1 << D), np.ones(1 << D, dtype=np.int64)
    assert largest_error(QUERIES, counts, uniform) == pytest.approx(0.2, abs=0.02)
    assert released(counts, part.epsilon, 100) < 0.08
    assert released(counts, part.epsilon, 1) > 0.15


def test_bad_input() -> None:
    one, example = np.ones(1, dtype=np.int64), Labelled.of(((0, 1),))
    assert Perturbation(Conjunctions(3), 1.0).step == Fraction(10**9, 6)
    refuse(
        ("outside the cube", lambda: Conjunctions(2).totals(Weighted(4 * one, one))),
        ("a point lies outside", lambda: Thresholds(2).totals(Weighted(2 * one, one))),
        ("up to 24", lambda: Conjunctions(30).totals(Weighted(one, one))),
        ("whole weight", lambda: Weighted(one, one / 2)),  # type: ignore[arg-type]
        ("do not agree", lambda: Closed(Parities(2), 1)),
        *((f"d is {d}", partial(BranchAndBound, d)) for d in (0, 63)),
        ("nodes is 0", lambda: BranchAndBound(5, 0)),
        ("epsilon is 0", lambda: rspm(Conjunctions(2), 0)),
        *(
            ("listed up to", partial(rspm(queries, 1).law, example))
            for queries in (Thresholds(3), Conjunctions(9))
        ),
        ("draws is 0", lambda: DataPlayer(D, 0, 1.0)),
        ("scale is 0", lambda: DataPlayer(D, 1, 0.0)),
        ("n is 0", lambda: SyntheticGame(QUERIES, Exhaustive(QUERIES), 0, 1, 1.0)),
        ("scale is 0", lambda: Beside(0, NOTHING.data)),
    )
