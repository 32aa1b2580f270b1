"""RSPM, its separators and oracles, and synthetic data as a game: exact losses, proofs that do not
hold, and twins with less noise."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import assert_type

import numpy as np
import pytest

from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Counts, Floats, Ints
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
from local_dp.interaction import Adaptive, run
from local_dp.loss import Pure, approximate, exp_epsilon
from tests.support.inputs.refusals import refuse
from tests.support.mechanisms.case import wrong
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
    m, values, patterns = (
        len(queries.separators),
        queries.values(points).astype(np.int64),
        queries.values(queries.separators).astype(np.int64),
    )
    shifts = np.array(
        sorted(product(range(-2, 3), repeat=m), key=lambda shift: sum(map(abs, shift)))
    )
    signed = np.concatenate([values, -values], axis=1)  # labels 0 and 1
    replaced = np.unique(
        (signed[:, None, :] - signed[:, :, None]).reshape(queries.size, -1), axis=1
    )
    enough = [
        _enough(shifts, patterns - patterns[q], replaced - replaced[q]) for q in range(queries.size)
    ]
    return None if None in enough else max(size for size in enough if size is not None)


def _enough(shifts: Ints, differences: Ints, moves: Ints) -> int | None:
    """The least |s|_1 that is enough for the worst replaced example; `shifts` ascend."""
    keep = ((shifts @ differences.T)[:, :, None] + moves >= 0).all(axis=1)
    return (
        int(np.abs(shifts[keep.argmax(axis=0)]).sum(axis=1).max())
        if keep.any(axis=0).all()
        else None
    )


@pytest.mark.parametrize(
    "queries",
    [
        Conjunctions(1),
        Conjunctions(3),
        Parities(1),
        Parities(3),
        Thresholds(1),
        Thresholds(2),
        Thresholds(4),
    ],
    ids=str,
)
def test_shifts_are_enough_and_least(queries: Separated) -> None:
    """For all queries and replaced examples: the noise moves by 2 m in sum for conjunctions and
    parities, and by 2 for thresholds, and by no less."""
    points = queries.separators if isinstance(queries, Thresholds) else np.arange(queries.size)
    assert least_shift(queries, points) == queries.shift


@pytest.mark.parametrize(
    ("queries", "agreed"),
    [(Conjunctions(1), 1), (Conjunctions(2), 3), (Parities(1), 0), (Parities(2), 0)],
    ids=str,
)
def test_complements_are_separated_by_one_more_point(queries: Separated, agreed: int) -> None:
    """The second half is one minus the first, all patterns differ, and 2 (m + 1) is enough, and the
    least for parities of two bits."""
    closed = Closed(queries, agreed)
    points = np.arange(queries.size)
    values = closed.values(points)
    assert np.array_equal(values[queries.size :], ~values[: queries.size])
    assert (
        len(np.unique(closed.values(closed.separators), axis=0))
        == closed.size
        == 2 ** len(closed.separators)
    )
    least = least_shift(closed, points)
    assert least is not None
    assert least <= closed.shift
    assert least == closed.shift or queries != Parities(2)


Unseparated = wrong(Conjunctions, separators=lambda own, right: Parities(own.d).separators)
"""Unit vectors for points with one zero: those of disjunctions."""


def test_wrong_separators_are_told() -> None:
    """Unit vectors do not separate conjunctions of 3 coordinates."""
    assert least_shift(Unseparated(3), np.arange(8)) is None


@pytest.mark.parametrize("queries", SMALL, ids=str)
def test_totals_are_sums_of_values(queries: Separated) -> None:
    """For weights of both signs, against the definition."""
    rng = np.random.default_rng(4)
    points = rng.integers(
        0, queries.points if isinstance(queries, Thresholds) else queries.size, 20
    )
    weights = rng.integers(-9, 10, 20)
    expected = [
        sum(int(w) * value(queries, q, int(x)) for x, w in zip(points, weights, strict=True))
        for q in range(queries.size)
    ]
    assert queries.totals(Weighted(points, weights)).tolist() == expected


def test_errors_are_counted_as_by_a_loop() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 16, 30), rng.integers(0, 2, 30)
    parities = [
        sum((r & int(point)).bit_count() % 2 != label for point, label in zip(x, y, strict=True))
        for r in range(16)
    ]
    assert Parities(4).errors(x, y).tolist() == parities
    assert Thresholds(16).errors(x, y).tolist() == [int(((x >= t) != y).sum()) for t in range(17)]


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


def planted(d: int, n: int) -> Weighted:
    """A conjunction of three literals, 10 % of its labels flipped, and noise on the separators as
    RSPM adds at epsilon 1."""
    rng = np.random.default_rng(d)
    x = rng.integers(0, 1 << d, n)
    y = (x & 7 == 7) ^ (rng.random(n) < 0.1)
    return separated.labelled(x, y.astype(np.int64)).with_points(
        Conjunctions(d).separators, np.rint(rng.laplace(0, 2 * d, d)).astype(np.int64)
    )


@pytest.mark.parametrize(("d", "n"), [(30, 1000), (60, 2000)])
def test_branch_and_bound_certifies_large_dimensions(d: int, n: int) -> None:
    """What cannot be gone through is certified by trees of fewer than 1,000 nodes."""
    proof = BranchAndBound(d).prove(planted(d, n))
    assert proof is not None
    assert len(proof.splits) < 1000
    assert check(proof, planted(d, n), d) == separated.Certified(proof.choice, proof.value)


def test_wrong_proofs_fail() -> None:
    """Every other query with its own total, a wrong total, a cut or a lengthened tree, and other
    data: none is certified."""
    d, data = 5, some(5, 60, 7)
    proof = BranchAndBound(d).prove(data)
    assert proof is not None
    assert len(proof.splits) > 3
    assert check(proof, data, d) == separated.Certified(proof.choice, proof.value)
    totals = Conjunctions(d).totals(data)
    wrong = [
        replace(proof, choice=q, value=int(totals[q])) for q in range(1 << d) if q != proof.choice
    ]
    wrong += [
        replace(proof, value=proof.value + 1),
        replace(proof, choice=-1),
        replace(proof, choice=1 << d),
    ]
    wrong += [
        replace(proof, splits=splits)
        for splits in (
            (),
            (LEAF,),
            proof.splits[:-1],
            (*proof.splits, LEAF),
            (d, *proof.splits[1:]),
            (-2,),
        )
    ]
    assert all(check(one, data, d) == separated.FAIL for one in wrong)
    assert check(proof, some(5, 60, 8), d) == separated.FAIL
    assert BranchAndBound(9, nodes=2).minimise(some(9, 60, 1)) == separated.FAIL, (
        "a search that is cut short reports it"
    )


def test_a_tie_is_no_proof() -> None:
    """Of two equal queries the second is refused, though no total is less."""
    nothing = Weighted(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert check(Proof(0, 0, (LEAF,)), nothing, 2) == separated.Certified(0, 0)
    assert check(Proof(1, 0, (LEAF,)), nothing, 2) == separated.FAIL


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
    assert [separated.Verified(Constant(q), exact).minimise(data) for q in range(8)] == [
        truth if q == truth.choice else separated.FAIL for q in range(8)
    ]


def rspm(queries: Separated, epsilon: float) -> PerturbedMinimum:
    return PerturbedMinimum(Perturbation(queries, epsilon), Exhaustive(queries))


def databases(points: int, n: int) -> SmallDatabases[tuple[int, int], Labelled]:
    return SmallDatabases([(x, y) for x in range(points) for y in (0, 1)], n, Labelled.of)


@dataclass(frozen=True)
class BusyTie:
    """Perfect, except that the data break its ties: the last query if there are fewer ones than
    zeros."""

    queries: Separated

    def minimise(self, data: Weighted) -> separated.Certified:
        totals = self.queries.totals(data)
        least = np.flatnonzero(totals == totals.min())
        choice = int(least[-1 if data.weights[0] < 0 else 0])
        return separated.Certified(choice, int(totals[choice]))


def test_a_tie_break_that_looks_at_the_data_is_not_private() -> None:
    """With whole noise ties are frequent, and one fixed order of the queries is needed."""
    queries = Parities(2)
    assert databases(4, 1).worst_delta(
        PerturbedMinimum(Perturbation(queries, 1.0), BusyTie(queries))
    ) > Fraction(1, 20)


@dataclass(frozen=True)
class Box:
    """The noises of a mechanism within +-reach: what is exact for the queries' shares there is off
    by `missed` at most for all noises."""

    mechanism: PerturbedMinimum
    reach: int

    @property
    def shrink(self) -> float:
        return 1 / float(exp_epsilon(self.mechanism.perturbation.step))

    @property
    def missed(self) -> float:
        m = len(self.mechanism.perturbation.queries.separators)
        return 2 * m * self.shrink ** (self.reach + 1) / (1 + self.shrink)

    def shares(self, database: Labelled) -> Floats:
        """Pr[noise within reach, answer q] for each query q."""
        queries = self.mechanism.perturbation.queries
        eta = np.array(
            list(product(range(-self.reach, self.reach + 1), repeat=len(queries.separators)))
        )
        weights = np.prod(
            (1 - self.shrink) / (1 + self.shrink) * self.shrink ** np.abs(eta), axis=1
        )
        totals = eta @ queries.values(queries.separators).T + queries.totals(
            separated.labelled(database.x, database.y)
        )
        return np.bincount(
            np.argmin(totals, axis=1), weights=weights, minlength=queries.size
        ).astype(np.float64)


@pytest.mark.parametrize(("points", "reach"), [(2, 12), (3, 8)])
def test_thresholds_lose_epsilon_by_noise_that_does_not_grow_with_m(
    points: int, reach: int
) -> None:
    """Ratio e^(-eps / 2) for 2 and 3 separators: at eps = 4 the loss is 1.0000 eps within the
    reach, and half of that noise loses twice as much."""
    pairs = list(databases(points, 2).pairs("replace"))
    for epsilon in (4.0, 8.0):
        box = Box(rspm(Thresholds(points), epsilon), reach)
        shares = {
            records: box.shares(Labelled.of(records))
            for records in {one for pair in pairs for one in pair}
        }
        loss = math.log(max(float((shares[here] / shares[there]).max()) for here, there in pairs))
        assert math.exp(4) * box.missed < 1e-3
        assert loss == pytest.approx(epsilon, abs=1e-3)


D = 6
QUERIES = Closed(Conjunctions(D), (1 << D) - 1)


def table(n: int) -> Counts:
    """Two kinds of rows, whose bits are 1 with probability .85 and .3: how often each point
    occurs."""
    rng = np.random.default_rng(0)
    chances = np.where(rng.random((n, 1)) < 0.5, 0.85, 0.3)
    return np.bincount((rng.random((n, D)) < chances) @ (1 << np.arange(D)), minlength=1 << D)


def released(counts: Counts, epsilon: float, draws: int) -> Counts:
    """50 rounds of the game."""
    n = int(counts.sum())
    rows = Labelled(np.repeat(np.arange(1 << D), counts), np.zeros(n, dtype=np.int64))
    game = SyntheticGame(QUERIES, Exhaustive(QUERIES), n, 50, epsilon)
    algorithm = game.against(DataPlayer(D, draws, 2.0), np.random.default_rng(1))
    assert_type(algorithm, Adaptive[PerturbedMinimum, int, Counts])
    oracle = TrustedOracle(rows, Account(Pure(50 * game_loss(epsilon))), seeded(1))
    synthetic = run(algorithm, oracle)
    assert oracle.account.spent == oracle.account.budget
    return synthetic


def game_loss(epsilon: float) -> int:
    """Of a round, in nano-nats."""
    return PerturbedMinimum(Perturbation(QUERIES, epsilon), Exhaustive(QUERIES)).loss.nano


def test_the_game_approaches_the_table() -> None:
    """n = 10^5, total epsilon 1, delta 1e-6, 50 rounds: below .08, uniform .20; with one draw a
    round, or 10^4 times the noise, above .15."""
    counts, part = table(100_000), optimal_part(approximate(1.0, 1e-6), 50)
    uniform = largest_error(QUERIES, counts, np.ones(1 << D, dtype=np.int64))
    assert uniform == pytest.approx(0.2, abs=0.02)
    assert largest_error(QUERIES, counts, released(counts, part.epsilon, 100)) < 0.08
    assert largest_error(QUERIES, counts, released(counts, part.epsilon, 1)) > 0.15
    assert largest_error(QUERIES, counts, released(counts, part.epsilon / 10_000, 100)) > 0.15


def test_bad_input() -> None:
    one = np.ones(1, dtype=np.int64)
    assert Perturbation(Conjunctions(3), 1.0).step == Fraction(10**9, 6)
    refuse(
        ("outside the cube", lambda: Conjunctions(2).totals(Weighted(4 * one, one))),
        ("a point lies outside", lambda: Thresholds(2).totals(Weighted(2 * one, one))),
        ("up to 24", lambda: Conjunctions(30).totals(Weighted(one, one))),
        ("whole weight", lambda: Weighted(one, one / 2)),  # type: ignore[arg-type]
        ("do not agree", lambda: Closed(Parities(2), 1)),
        ("d is 0", lambda: BranchAndBound(0)),
        ("d is 63", lambda: BranchAndBound(63)),
        ("nodes is 0", lambda: BranchAndBound(5, 0)),
        ("epsilon is 0", lambda: rspm(Conjunctions(2), 0)),
        ("listed up to", lambda: rspm(Thresholds(3), 1).law(Labelled.of(((0, 1),)))),
        ("listed up to", lambda: rspm(Conjunctions(9), 1).law(Labelled.of(((0, 1),)))),
        ("draws is 0", lambda: DataPlayer(D, 0, 1.0)),
        ("scale is 0", lambda: DataPlayer(D, 1, 0.0)),
        ("n is 0", lambda: SyntheticGame(QUERIES, Exhaustive(QUERIES), 0, 1, 1.0)),
        ("scale is 0", lambda: Beside(0, NOTHING.data)),
    )
