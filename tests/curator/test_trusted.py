"""The trusted curator's account and oracle, which pay before anything is drawn; and the enumerator
of neighbours, outcomes and transcripts."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, product
from operator import mul

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
from local_dp.curator.multisets import MAX_BITS, Multiset
from local_dp.draws import Draws
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Adaptive, Nonadaptive, Play, run
from local_dp.loss import ATTO, NANO, Approximate, Concentrated, Loss, Pure, approximate
from local_dp.noise import KeyedNoise
from tests.support.inputs.refusals import refuse
from tests.support.mechanisms.case import labelled
from tests.support.runs.scripted import seeded
from tests.support.wrong import wrong

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


class Watched(Draws):
    """Writes down what has been spent whenever a word is drawn."""

    def __init__(self, account: Account) -> None:
        super().__init__(KeyedNoise(0))
        self.account = account
        self.losses: list[Loss] = []

    def words(self, count: int) -> Words:
        self.losses.append(self.account.spent)
        return super().words(count)


@wrong(
    "local_dp.curator.account:Account.charge",
    "after.nano > self.budget.nano or after.atto > self.budget.atto",
    "after.nano > self.budget.nano",
    "a pure budget pays for an approximate mechanism",
)
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


def refused(
    oracle: TrustedOracle[int], word: str, *losses: Loss | Concentrated, code: str = "budget"
) -> None:
    """Nothing is drawn and nothing is committed of a round of mechanisms of these losses."""
    before = oracle.account.spent, oracle.queries, oracle.rounds
    with pytest.raises(RefusedError, match=word) as error:
        oracle.answer(tuple(Coin(loss) for loss in losses))
    assert (error.value.code, before) == (
        code,
        (oracle.account.spent, oracle.queries, oracle.rounds),
    )


@wrong(
    "local_dp.curator.account:TrustedOracle.answer",
    "*(mechanism.loss for mechanism in mechanisms)",
    "mechanisms[0].loss",
    "only the first mechanism of a round is paid for",
)
def test_a_round_is_paid_for_whole_before_it_is_drawn() -> None:
    """Three of a round are drawn when all three are committed; a round of which only a part is
    affordable, or which has a delta, draws nothing."""
    account = Account(Pure(5))
    draws = Watched(account)
    oracle = TrustedOracle(0, account, draws)
    assert len(oracle.answer((Coin(Pure(1)),) * 3)) == 3
    refused(oracle, "on top of", *[Pure(1)] * 3)
    refused(oracle, "exceeds the budget", Approximate(1, 1))
    oracle.answer((Coin(Pure(2)),))
    assert draws.losses == [*[Pure(3)] * 3, Pure(5)]


def test_a_failed_release_is_not_refunded() -> None:
    oracle = TrustedOracle(-1, Account(Pure(5)), seeded(0))
    with pytest.raises(InputError, match="below 0"):
        oracle.answer((Coin(Pure(2)),))
    assert oracle.account.spent == Pure(2)


def test_losses_of_other_neighbours_are_refused() -> None:
    """A budget of graphs pays for no loss that compares records: nothing is drawn."""
    oracle = TrustedOracle(0, Account(Pure(5), "edge"), seeded(0))
    refused(oracle, "'replace'", Pure(1), code="neighbours")


def test_a_curators_algorithms_are_run_by_the_one_interpreter() -> None:
    """A non-adaptive algorithm over mechanisms takes one round, an adaptive one as many as it asks,
    under one account."""

    def play() -> Play[Coin, int, int]:
        (first,) = yield (Coin(Pure(1)),)
        second, third = yield (Coin(Approximate(1, 2)), Coin(Pure(1)))
        return first + second + third

    once: Nonadaptive[Coin, int, int] = Nonadaptive((Coin(Pure(1)), Coin(Pure(1))), sum)
    oracle = TrustedOracle(100, Account(Approximate(5, 5)), seeded(0))
    assert (200 <= run(once, oracle) <= 202, oracle.rounds) == (True, 1)
    assert 300 <= run(Adaptive(play), oracle) <= 303
    assert (oracle.rounds, oracle.queries, oracle.account.spent) == (3, 5, Approximate(5, 2))


@wrong(
    "local_dp.curator.account:DeclaredAccount.charge",
    "self.count += len(losses)",
    "self.count += 0 * len(losses)",
    "more queries are answered than the optimal composition allows for",
)
def test_a_declared_account_pays_for_places() -> None:
    """So many queries of at most the part are paid for, whole rounds only; one more, a dearer one
    and one with a delta are refused and commit nothing."""
    account = DeclaredAccount(approximate(1, 1e-6), 100)
    part, oracle = account.part, TrustedOracle(0, account, seeded(0))
    prices = list[Loss]()
    for times in (10, 88):
        oracle.answer((Coin(part),) * times)
        prices.append(account.spent)
    assert prices == [Pure(10 * part.nano), Approximate(NANO, optimal_delta(part, 98, Pure(NANO)))]
    for losses in ([part] * 3, [Pure(part.nano + 1)], [Approximate(1, 1)]):
        refused(oracle, "declared", *losses)
    oracle.answer((Coin(Pure(1)), Coin(part)))
    assert account.spent.nano <= account.budget.nano
    assert account.spent.atto <= account.budget.atto
    refused(oracle, "exceed the 100", part)


def test_a_concentrated_account_is_a_filter() -> None:
    """Rho and pure losses are paid for in any order as long as their rhos fit; what is spent is
    their conversion, and never passes the budget."""
    account = ConcentratedAccount(approximate(1, 1e-6))
    oracle, tenth = TrustedOracle(0, account, seeded(0)), Concentrated(account.rho.atto_rho // 10)
    oracle.answer((Coin(tenth), Coin(Pure(NANO // 100))))
    assert account.spent_rho == Concentrated(tenth.atto_rho + ATTO // 20_000)
    assert 0 <= account.spent.epsilon - conversion(account.spent_rho.rho, 1e-6) < 2e-9
    assert account.spent.atto == account.budget.atto
    refused(oracle, "exceeds", *[tenth] * 10)
    refused(oracle, "no rho covers", tenth, Approximate(1, 1))
    oracle.answer((Coin(Concentrated(account.rho.atto_rho - account.spent_rho.atto_rho)),))
    assert 1 - 1e-8 <= account.spent.epsilon <= account.budget.epsilon
    refused(oracle, "is worth", Concentrated(1))


def test_other_accounts_pay_for_no_rho() -> None:
    for account in (Account(approximate(1, 1e-6)), DeclaredAccount(approximate(1, 1e-6), 10)):
        refused(TrustedOracle(0, account, seeded(0)), "rho 1e-18", Pure(1), Concentrated(1))


Rows = tuple[tuple[int, int], ...]
UNIVERSE = [(1, 1), (0, 1), (0, 0), (1, 0)]


def small(
    n: int, universe: list[tuple[int, int]] = UNIVERSE
) -> SmallDatabases[tuple[int, int], Rows]:
    return SmallDatabases(universe, n, lambda rows: rows)


def are_neighbours(one: Rows, other: Rows, kind: Neighbours) -> bool:
    less, more = (
        [*(Counter(here) - Counter(there)).elements()]
        for here, there in ((one, other), (other, one))
    )
    if kind in ("edge", "add-remove"):
        return len(less) + len(more) == 1
    return len(less) == len(more) == 1 and (kind == "replace" or less[0][0] == more[0][0])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["replace", "labels", "add-remove", "edge"])
def test_every_pair_of_neighbours_is_enumerated_once(kind: Neighbours, n: int) -> None:
    """The pairs are exactly those that a search through all pairs of databases finds by the
    definition, each in both orders."""
    choose = combinations if kind == "edge" else combinations_with_replacement
    every = list(choose(sorted(UNIVERSE), n))
    if kind in ("edge", "add-remove"):
        every += choose(sorted(UNIVERSE), n - 1)
    expected = Counter(
        (one, other) for one, other in product(every, every) if are_neighbours(one, other, kind)
    )
    assert Counter(small(n).pairs(kind)) == expected


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=4), st.integers(4, 11))
def test_hockey_stick_is_the_worst_set(weights: list[tuple[int, int]], quarters: int) -> None:
    """With different totals and impossible outcomes, it is the largest Pr[S] - e^eps Pr'[S] over
    all sets S."""
    ours, theirs = zip(*weights, (1, 0), (0, 1), strict=True)
    worst, growth = Fraction(0), Fraction(quarters, 4)
    for inside in product((0, 1), repeat=len(ours)):
        here, there = (Fraction(sum(map(mul, law, inside)), sum(law)) for law in (ours, theirs))
        worst = max(worst, here - growth * there)
    law, other = (
        {outcome: weight for outcome, weight in enumerate(each) if weight}
        for each in (ours, theirs)
    )
    assert hockey_stick(law, other, growth) == worst


@dataclass(frozen=True)
class Leak(Mechanism[Rows, int | None, Approximate]):
    """Reveals how many records are (1, 1) with probability `atto` / 1e18, else None."""

    atto: int

    @property
    def loss(self) -> Approximate:
        return Approximate(0, self.atto)

    def release(self, database: Rows, draws: Draws) -> int | None:
        raise NotImplementedError

    def law(self, database: Rows) -> Law[int | None]:
        return {None: ATTO - self.atto, database.count((1, 1)): self.atto}


def test_a_delta_is_found_exactly() -> None:
    """A mechanism that fails with probability delta has that delta at every epsilon; one that fails
    twice as often is caught; its ratios are infinite."""
    leak, two = Leak(10**12), small(2)
    for loss in (leak.loss, Approximate(3 * 10**9, 0)):
        assert two.worst_delta(leak, loss) == Fraction(1, 10**6)
    assert two.worst_delta(leak) == Fraction(1, 10**6)
    assert two.worst_delta(Leak(2 * 10**12), leak.loss) > Fraction(1, 10**6)
    refuse(
        ("the loss is infinite", lambda: two.worst_ratios(leak)),
        *(
            (
                "nothing or too many to enumerate",
                lambda n=n: next(small(n, UNIVERSE * 4).pairs("replace")),
            )
            for n in (0, 30)
        ),
        *(
            ("miss 1", partial(whole_weights, law))
            for law in ({0: Fraction(5, 6)}, {0: Fraction(1), 1: Fraction(1, 10**30)})
        ),
    )
    thirds = {0: Fraction(1, 2), 1: Fraction(1, 3), 2: Fraction(1, 6)}
    assert whole_weights(thirds) == {0: 3, 1: 2, 2: 1}


@dataclass(frozen=True)
class WeightedCoin(Mechanism[int, int, Pure]):
    """1 with weight `high` if the record is 1, else 1; 0 with weight 1."""

    high: int

    @property
    def loss(self) -> Pure:
        return Pure(0)

    def release(self, database: int, draws: Draws) -> int:
        raise NotImplementedError

    def law(self, database: int) -> Law[int]:
        return {1: self.high if database else 1, 0: 1}


def test_what_is_asked_depends_on_what_was_told() -> None:
    """A round is a product; the branch that ends has one answer, the other two; and the worst ratio
    of each transcript, either way round."""

    def again_after_one() -> Play[WeightedCoin, int, None]:
        (first,) = yield (WeightedCoin(3),)
        if first:
            yield (WeightedCoin(5),)

    both, algorithm = (
        Nonadaptive((WeightedCoin(3), WeightedCoin(1)), sum),
        Adaptive(again_after_one),
    )
    assert transcripts(both, 1) == {
        ((x, y),): Fraction(1 + 2 * x, 8) for x in (0, 1) for y in (0, 1)
    }
    assert transcripts(algorithm, 1) == {
        ((0,),): Fraction(1, 4),
        ((1,), (0,)): Fraction(1, 8),
        ((1,), (1,)): Fraction(5, 8),
    }
    databases = SmallDatabases([(0,), (1,)], 1, lambda records: records[0][0])
    assert worst_transcripts(algorithm, databases) == {
        ((0,),): 2,
        ((1,), (0,)): 2,
        ((1,), (1,)): Fraction(5, 2),
    }


@pytest.mark.parametrize("bits", [3, 63, 64, 65, 200, MAX_BITS])
def test_points_are_sorted_and_counted(bits: int) -> None:
    """Whole numbers of any size, in any order; 64 bits fit a machine word, more do not and are not
    cut; labels are counted apart."""
    top = (1 << bits) - 1
    points = Multiset.of([top, 0, 5, top, top - 1], bits)
    assert points.values.tolist() == [0, 5, top - 1, top]
    assert (points.counts.tolist(), points.size) == ([1, 1, 1, 2], 5)
    assert points.values.dtype == (np.uint64 if bits <= 64 else object)
    pairs = labelled(bits)([(top, 1), (2, 0), (top, 0), (top, 1)])
    assert (pairs.values.tolist(), pairs.size) == ([2, top], 4)
    assert (pairs.zeros.tolist(), pairs.ones.tolist()) == ([1, 1], [0, 2])
    assert [pairs.labelled(label).values.tolist() for label in (0, 1)] == [[2, top], [top]]
    assert Multiset.of([], bits).size == labelled(bits)([]).size == 0
