"""The trusted curator's account and oracle: a round is paid for whole, before anything is drawn."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_dp.accounting.gaussian import conversion
from local_dp.accounting.shares import optimal_delta
from local_dp.arrays import Words
from local_dp.curator.account import Account, ConcentratedAccount, DeclaredAccount
from local_dp.curator.mechanism import Mechanism, Neighbours
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Adaptive, Nonadaptive, Play, run
from local_dp.loss import ATTO, NANO, Approximate, Concentrated, Loss, Pure, approximate
from local_dp.noise import KeyedNoise

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
    """Over any charges, exactly those are committed that fit beside what was committed before, in epsilon and in delta."""
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
    """Three of a round are drawn when all three are committed; a round of which only a part is affordable draws and commits nothing."""
    oracle, draws = watched(Pure(5))
    assert len(oracle.answer((Coin(Pure(1)),) * 3)) == 3
    assert draws.spent_when_drawn == [3, 3, 3]
    with pytest.raises(RefusedError, match="on top of") as refused:
        oracle.answer((Coin(Pure(1)),) * 3)
    assert refused.value.code == "budget"
    assert (len(draws.spent_when_drawn), oracle.account.spent, oracle.queries, oracle.rounds) == (3, Pure(3), 3, 1)
    oracle.answer((Coin(Pure(2)),))
    assert draws.spent_when_drawn == [3, 3, 3, 5]


def test_a_failed_release_is_not_refunded() -> None:
    oracle, _ = watched(Pure(5), database=-1)
    with pytest.raises(InputError, match="below 0"):
        oracle.answer((Coin(Pure(2)),))
    assert oracle.account.spent == Pure(2)


def test_losses_of_other_kinds_are_refused() -> None:
    """A pure budget pays for no delta, and a budget of records for no loss that compares graphs: nothing is drawn."""
    oracle, draws = watched(Pure(5))
    with pytest.raises(RefusedError, match="exceeds the budget"):
        oracle.answer((Coin(Approximate(1, 1)),))
    with pytest.raises(RefusedError, match="'replace'") as refused:
        oracle.answer((Coin(Pure(1)), EdgeCoin(Pure(1))))
    assert refused.value.code == "neighbours"
    assert (draws.spent_when_drawn, oracle.account.spent) == ([], Pure(0))


def test_a_curators_algorithms_are_run_by_the_one_interpreter() -> None:
    """A non-adaptive algorithm over mechanisms takes one round, an adaptive one as many as it asks, under one account."""

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
    """Ten thousand within (1, 1e-6) may lose 23.7 times their share of epsilon each, a nano-nat more would pass delta; without delta, their share."""
    budget = approximate(1, 1e-6)
    part = DeclaredAccount(budget, 10_000).part
    assert round(part.nano / (NANO / 10_000), 1) == 23.7
    assert optimal_delta(part, 10_000, Pure(NANO)) <= budget.atto < optimal_delta(Pure(part.nano + 1), 10_000, Pure(NANO))
    assert DeclaredAccount(Pure(NANO), 10_000).part == Pure(NANO // 10_000)


def test_a_declared_account_pays_for_places() -> None:
    """So many queries of at most the part are paid for, whole rounds only; one more, a dearer one and one with a delta are refused and commit nothing."""
    account = DeclaredAccount(approximate(1, 1e-6), 100)
    part, spent = account.part, list[Loss]()
    oracle = TrustedOracle(0, account, Draws(KeyedNoise(0)))
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
    """Rho and pure losses are paid for in any order as long as their rhos fit; what is spent is their conversion, and never passes the budget."""
    budget = approximate(1, 1e-6)
    account = ConcentratedAccount(budget)
    oracle, tenth = TrustedOracle(0, account, Draws(KeyedNoise(0))), Concentrated(account.rho.atto_rho // 10)
    oracle.answer((Coin(tenth), Coin(Pure(NANO // 100))))
    assert account.spent_rho == Concentrated(tenth.atto_rho + ATTO // 20_000)
    rho = account.spent_rho.rho
    assert (conversion(rho, 1e-6) <= account.spent.epsilon < conversion(rho, 1e-6) + 2e-9, account.spent.atto) == (True, budget.atto)
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
