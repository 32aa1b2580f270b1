"""The trusted curator's account and oracle, which pay before anything is drawn; and the enumerator
of neighbours, outcomes and transcripts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_dp.accounting.losses import conversion
from local_dp.accounting.rules import optimal_delta
from local_dp.arrays import Words
from local_dp.curator.account import Account, ConcentratedAccount, DeclaredAccount, TrustedOracle
from local_dp.curator.mechanism import (
    Law,
    Mechanism,
    Neighbours,
    SmallDatabases,
    hockey_stick,
    transcripts,
    whole_weights,
    worst_transcripts,
)
from local_dp.curator.multisets import MAX_BITS, LabelledMultiset, Multiset
from local_dp.draws import Draws
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Adaptive, Nonadaptive, Play, run
from local_dp.loss import ATTO, NANO, Approximate, Concentrated, Loss, Pure, approximate
from local_dp.noise import KeyedNoise
from tests.support.runs.scripted import seeded

SMALL = st.integers(0, 6)
LOSSES = st.one_of(st.builds(Pure, SMALL), st.builds(Approximate, SMALL, SMALL))


@dataclass(frozen=True)
class Coin(Mechanism[int, int, Loss | Concentrated]):
    """The database plus one word's lowest bit, at a price."""

    price: Loss | Concentrated

    @property
    def loss(self) -> Loss | Concentrated:
        return self.price

    def release(self, database: int, draws: Draws) -> int:
        if database < 0:
            raise InputError("no database below 0")
        return database + draws.below(2)


@dataclass(frozen=True)
class EdgeCoin(Coin):
    """The same, for graphs."""

    neighbours: ClassVar[Neighbours] = "edge"


class Watched(Draws):
    """Writes down what has been spent whenever a word is drawn."""

    def __init__(self, account: Account) -> None:
        super().__init__(KeyedNoise(0))
        self.account = account
        self.spent_when_drawn: list[int] = []

    def words(self, count: int) -> Words:
        self.spent_when_drawn.append(self.account.spent.nano)
        return super().words(count)


def watched(budget: Loss, database: int = 0) -> tuple[TrustedOracle[int], Watched]:
    account = Account(budget)
    draws = Watched(account)
    return TrustedOracle(database, account, draws), draws


@given(LOSSES, st.lists(LOSSES, max_size=12))
def test_the_budget_is_never_passed(budget: Loss, losses: list[Loss]) -> None:
    """Over any charges, exactly those are committed that fit beside what was committed before, in
    epsilon and in delta."""
    account, nano, atto = Account(budget), 0, 0
    for loss in losses:
        if nano + loss.nano <= budget.nano and atto + loss.atto <= budget.atto:
            account.charge(loss)
            nano, atto = nano + loss.nano, atto + loss.atto
        else:
            with pytest.raises(RefusedError, match="exceeds the budget"):
                account.charge(loss)
        assert (account.spent.nano, account.spent.atto) == (nano, atto)


def test_a_round_is_paid_for_whole_before_it_is_drawn() -> None:
    """Three of a round are drawn when all three are committed; a round of which only a part is
    affordable draws and commits nothing."""
    oracle, draws = watched(Pure(5))
    assert len(oracle.answer((Coin(Pure(1)),) * 3)) == 3
    assert draws.spent_when_drawn == [3, 3, 3]
    with pytest.raises(RefusedError, match="on top of") as refused:
        oracle.answer((Coin(Pure(1)),) * 3)
    assert refused.value.code == "budget"
    assert (len(draws.spent_when_drawn), oracle.account.spent, oracle.queries, oracle.rounds) == (
        3,
        Pure(3),
        3,
        1,
    )
    oracle.answer((Coin(Pure(2)),))
    assert draws.spent_when_drawn == [3, 3, 3, 5]


def test_a_failed_release_is_not_refunded() -> None:
    oracle, _ = watched(Pure(5), database=-1)
    with pytest.raises(InputError, match="below 0"):
        oracle.answer((Coin(Pure(2)),))
    assert oracle.account.spent == Pure(2)


def test_losses_of_other_kinds_are_refused() -> None:
    """A pure budget pays for no delta, and a budget of records for no loss that compares graphs:
    nothing is drawn."""
    oracle, draws = watched(Pure(5))
    with pytest.raises(RefusedError, match="exceeds the budget"):
        oracle.answer((Coin(Approximate(1, 1)),))
    with pytest.raises(RefusedError, match="'replace'") as refused:
        oracle.answer((Coin(Pure(1)), EdgeCoin(Pure(1))))
    assert refused.value.code == "neighbours"
    assert (draws.spent_when_drawn, oracle.account.spent) == ([], Pure(0))


def test_a_curators_algorithms_are_run_by_the_one_interpreter() -> None:
    """A non-adaptive algorithm over mechanisms takes one round, an adaptive one as many as it asks,
    under one account."""

    def play() -> Play[Coin, int, int]:
        (first,) = yield (Coin(Pure(1)),)
        second, third = yield (Coin(Approximate(1, 2)), Coin(Pure(1)))
        return first + second + third

    once: Nonadaptive[Coin, int, int] = Nonadaptive((Coin(Pure(1)), Coin(Pure(1))), sum)
    adaptive: Adaptive[Coin, int, int] = Adaptive(play)
    oracle, _ = watched(Approximate(5, 5), database=100)
    assert 200 <= run(once, oracle) <= 202
    assert oracle.rounds == 1
    assert 300 <= run(adaptive, oracle) <= 303
    assert (oracle.rounds, oracle.queries, oracle.account.spent) == (3, 5, Approximate(5, 2))


def test_declared_queries_may_lose_more_each() -> None:
    """Ten thousand within (1, 1e-6) may lose 23.7 times their share of epsilon each, a nano-nat
    more would pass delta; without delta, their share."""
    budget = approximate(1, 1e-6)
    part = DeclaredAccount(budget, 10_000).part
    assert round(part.nano / (NANO / 10_000), 1) == 23.7
    assert (
        optimal_delta(part, 10_000, Pure(NANO))
        <= budget.atto
        < optimal_delta(Pure(part.nano + 1), 10_000, Pure(NANO))
    )
    assert DeclaredAccount(Pure(NANO), 10_000).part == Pure(NANO // 10_000)


def test_a_declared_account_pays_for_places() -> None:
    """So many queries of at most the part are paid for, whole rounds only; one more, a dearer one
    and one with a delta are refused and commit nothing."""
    account = DeclaredAccount(approximate(1, 1e-6), 100)
    part, spent = account.part, list[Loss]()
    oracle = TrustedOracle(0, account, seeded(0))
    oracle.answer((Coin(part),) * 10)
    spent.append(account.spent)
    oracle.answer((Coin(part),) * 88)
    spent.append(account.spent)
    assert spent == [Pure(10 * part.nano), Approximate(NANO, optimal_delta(part, 98, Pure(NANO)))]
    for refused in ((Coin(part),) * 3, (Coin(Pure(part.nano + 1)),), (Coin(Approximate(1, 1)),)):
        with pytest.raises(RefusedError, match="declared") as error:
            oracle.answer(refused)
        assert error.value.code == "budget"
        assert (account.count, oracle.queries) == (98, 98)
    oracle.answer((Coin(Pure(1)), Coin(part)))
    assert account.spent.nano <= account.budget.nano
    assert account.spent.atto <= account.budget.atto
    with pytest.raises(RefusedError, match="exceed the 100"):
        oracle.answer((Coin(part),))


def test_a_concentrated_account_is_a_filter() -> None:
    """Rho and pure losses are paid for in any order as long as their rhos fit; what is spent is
    their conversion, and never passes the budget."""
    budget = approximate(1, 1e-6)
    account = ConcentratedAccount(budget)
    oracle, tenth = TrustedOracle(0, account, seeded(0)), Concentrated(account.rho.atto_rho // 10)
    oracle.answer((Coin(tenth), Coin(Pure(NANO // 100))))
    assert account.spent_rho == Concentrated(tenth.atto_rho + ATTO // 20_000)
    rho = account.spent_rho.rho
    assert (
        conversion(rho, 1e-6) <= account.spent.epsilon < conversion(rho, 1e-6) + 2e-9,
        account.spent.atto,
    ) == (True, budget.atto)
    for refused in ((Coin(tenth),) * 10, (Coin(tenth), Coin(Approximate(1, 1)))):
        with pytest.raises(RefusedError) as error:
            oracle.answer(refused)
        assert (error.value.code, account.spent_rho.rho, oracle.queries) == ("budget", rho, 2)
    oracle.answer((Coin(Concentrated(account.rho.atto_rho - account.spent_rho.atto_rho)),))
    assert 1 - 1e-8 <= account.spent.epsilon <= budget.epsilon
    with pytest.raises(RefusedError, match="is worth"):
        oracle.answer((Coin(Concentrated(1)),))


def test_other_accounts_pay_for_no_rho() -> None:
    for account in (Account(approximate(1, 1e-6)), DeclaredAccount(approximate(1, 1e-6), 10)):
        with pytest.raises(RefusedError, match="rho 1e-18"):
            account.charge(Pure(1), Concentrated(1))
        assert account.spent == Pure(0)


Rows = tuple[tuple[int, int], ...]
UNIVERSE = [(1, 1), (0, 1), (0, 0), (1, 0)]


def as_they_are(rows: Rows) -> Rows:
    return rows


def differ(one: Rows, other: Rows) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What each has that the other has not."""
    return sorted((Counter(one) - Counter(other)).elements()), sorted(
        (Counter(other) - Counter(one)).elements()
    )


def are_neighbours(one: Rows, other: Rows, kind: Neighbours) -> bool:
    gone, come = differ(one, other)
    if kind in ("replace", "labels"):
        return len(gone) == len(come) == 1 and (kind == "replace" or gone[0][0] == come[0][0])
    return len(gone) + len(come) == 1 and (
        kind == "add-remove"
        or (max(Counter(one + other).values()) <= 2 and len({*one}) == len(one))
    )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["replace", "labels", "add-remove", "edge"])
def test_every_pair_of_neighbours_is_enumerated_once(kind: Neighbours, n: int) -> None:
    """The pairs are exactly those that a search through all pairs of databases finds by the
    definition, each in both orders."""
    sizes = (n,) if kind in ("replace", "labels") else (n - 1, n)
    every = [
        rows for size in sizes for rows in combinations_with_replacement(sorted(UNIVERSE), size)
    ]
    if kind == "edge":
        every = [rows for rows in every if len(set(rows)) == len(rows)]
    expected = {
        (one, other) for one, other in product(every, every) if are_neighbours(one, other, kind)
    }
    result = list(SmallDatabases(UNIVERSE, n, as_they_are).pairs(kind))
    assert set(result) == expected
    assert len(result) == len(expected)


def test_hockey_stick_is_the_worst_set() -> None:
    """On 200 random pairs of laws, with different totals and impossible outcomes, it is the largest
    Pr[S] - e^eps Pr'[S] over all sets S."""
    generator = np.random.default_rng(0)
    for _ in range(200):
        law, other = (
            {
                outcome: int(weight)
                for outcome, weight in enumerate(generator.integers(0, 6, 4))
                if weight or not outcome
            }
            for _ in range(2)
        )
        if not sum(law.values()) or not sum(other.values()):
            continue
        growth = Fraction(int(generator.integers(4, 12)), 4)
        sets = [
            [outcome for outcome, inside in enumerate(chosen) if inside]
            for chosen in product((0, 1), repeat=4)
        ]
        ours, theirs = (
            [
                Fraction(sum(one.get(outcome, 0) for outcome in chosen), sum(one.values()))
                for chosen in sets
            ]
            for one in (law, other)
        )
        assert hockey_stick(law, other, growth) == max(
            a - growth * b for a, b in zip(ours, theirs, strict=True)
        )


@dataclass(frozen=True)
class Leak(Mechanism[Rows, int | None, Approximate]):
    """Reveals how many records are (1, 1) with probability `atto` / 1e18, else None."""

    atto: int

    @property
    def loss(self) -> Approximate:
        return Approximate(0, self.atto)

    def release(self, database: Rows, draws: Draws) -> int | None:
        return database.count((1, 1)) if draws.coin(Fraction(self.atto, ATTO)) else None

    def law(self, database: Rows) -> Law[int | None]:
        return whole_weights(
            {None: 1 - Fraction(self.atto, ATTO), database.count((1, 1)): Fraction(self.atto, ATTO)}
        )


def test_a_delta_is_found_exactly() -> None:
    """A mechanism that fails with probability delta has that delta at every epsilon; one that fails
    twice as often is caught; its ratios are infinite."""
    small = SmallDatabases(UNIVERSE, 2, as_they_are)
    assert (
        small.worst_delta(Leak(10**12))
        == Fraction(1, 10**6)
        == small.worst_delta(Leak(10**12), Approximate(3 * 10**9, 0))
    )
    assert small.worst_delta(Leak(2 * 10**12), Leak(10**12).loss) > Fraction(1, 10**6)
    with pytest.raises(InputError, match="the loss is infinite"):
        small.worst_ratios(Leak(10**12))


def test_a_law_without_an_outcome_is_refused() -> None:
    """Probabilities that do not sum to 1 are an error of the law, not a matter of scale."""
    assert whole_weights({0: Fraction(1, 2), 1: Fraction(1, 3), 2: Fraction(1, 6)}) == {
        0: 3,
        1: 2,
        2: 1,
    }
    for law in ({0: Fraction(1, 2), 1: Fraction(1, 3)}, {0: Fraction(1), 1: Fraction(1, 10**30)}):
        with pytest.raises(InputError, match="miss 1"):
            whole_weights(law)


def test_what_cannot_be_enumerated_is_refused() -> None:
    for n in (0, 30):
        with pytest.raises(InputError, match="nothing or too many to enumerate"):
            next(SmallDatabases(UNIVERSE * 4, n, as_they_are).pairs("replace"))


@dataclass(frozen=True)
class WeightedCoin(Mechanism[tuple[int, ...], int, Pure]):
    """1 with weight `high` if the only record is 1, else `low`; 0 with weight 1."""

    high: int
    low: int = 1

    @property
    def loss(self) -> Pure:
        return Pure(0)

    def release(self, database: tuple[int, ...], draws: Draws) -> int:
        raise NotImplementedError

    def law(self, database: tuple[int, ...]) -> Mapping[int, int]:
        return {1: self.high if database == (1,) else self.low, 0: 1}


DATABASES: SmallDatabases[tuple[int], tuple[int, ...]] = SmallDatabases(
    [(0,), (1,)], 1, lambda records: records[0]
)


def again_after_one() -> Play[WeightedCoin, int, int]:
    """Asks a second coin if the first one shows 1."""
    (first,) = yield (WeightedCoin(3),)
    if first:
        yield (WeightedCoin(5),)
    return first


def test_a_round_is_a_product() -> None:
    both = Nonadaptive((WeightedCoin(3), WeightedCoin(1)), sum)
    assert transcripts(both, (1,)) == {
        ((x, y),): Fraction(3 if x else 1, 8) for x in (0, 1) for y in (0, 1)
    }


def test_what_is_asked_depends_on_what_was_told() -> None:
    """The branch that ends has one answer, the other two; and the worst ratio of each transcript,
    either way round."""
    algorithm = Adaptive(again_after_one)
    assert transcripts(algorithm, (1,)) == {
        ((0,),): Fraction(1, 4),
        ((1,), (0,)): Fraction(1, 8),
        ((1,), (1,)): Fraction(5, 8),
    }
    assert worst_transcripts(algorithm, DATABASES) == {
        ((0,),): 2,
        ((1,), (0,)): 2,
        ((1,), (1,)): Fraction(5, 2),
    }


@pytest.mark.parametrize("bits", [3, 63, 64, 65, 200, MAX_BITS])
def test_points_are_sorted_and_counted(bits: int) -> None:
    """Whole numbers of any size, in any order; 64 bits fit a machine word, more do not and are not
    cut."""
    top = (1 << bits) - 1
    held = Multiset.of([top, 0, 5, top, top - 1], bits)
    assert [int(value) for value in held.values] == [0, 5, top - 1, top]
    assert held.counts.tolist() == [1, 1, 1, 2]
    assert held.size == 5
    assert held.values.dtype == (np.uint64 if bits <= 64 else object)


def test_labels_are_counted_apart() -> None:
    held = LabelledMultiset.of_pairs([(7, 1), (2, 0), (7, 0), (7, 1)], 3)
    assert (held.values.tolist(), held.zeros.tolist(), held.ones.tolist(), held.size) == (
        [2, 7],
        [1, 1],
        [0, 2],
        4,
    )
    assert (
        held.labelled(1).values.tolist(),
        held.labelled(0).values.tolist(),
        held.labelled(0).size,
    ) == ([7], [2, 7], 2)


def test_nobody_is_a_database_too() -> None:
    assert Multiset.of([], 70).size == LabelledMultiset.of_pairs([], 8).size == 0
