"""The budget of a trusted curator: a loss is checked, then committed, then the answer is drawn;
nothing is refunded."""

import math
from typing import Generic

from local_dp.accounting.losses import conversion, rho_within
from local_dp.accounting.rules import optimal_delta, optimal_part
from local_dp.checks import check_whole
from local_dp.curator.mechanism import A, D, Mechanism, Neighbours
from local_dp.draws import Draws
from local_dp.errors import InputError, RefusedError
from local_dp.loss import ATTO, NANO, Approximate, Concentrated, Loss, Pure


class Account:
    """A budget on the privacy loss of one database: losses add up (KLNRS Claim 2.1) and never
    exceed `budget`.

    All losses compare one kind of neighbours. A `Pure` budget pays for no loss that has a delta.
    """

    def __init__(self, budget: Loss, neighbours: Neighbours = "replace") -> None:
        self.budget = budget
        self.neighbours = neighbours
        self.spent: Loss = Pure(0)

    def charge(self, *losses: Loss | Concentrated) -> None:
        """Commits the losses of one round, or raises RefusedError("budget") and commits nothing."""
        loss: Loss = Pure(0)
        for each in losses:
            if isinstance(each, Concentrated):
                raise RefusedError(
                    "budget", f"{each} does not add up to an epsilon; use a ConcentratedAccount"
                )
            loss += each
        after = self.spent + loss
        if after.nano > self.budget.nano or after.atto > self.budget.atto:
            raise RefusedError(
                "budget", f"{loss} on top of {self.spent} spent exceeds the budget of {self.budget}"
            )
        self.spent = after


class DeclaredAccount(Account):
    """A budget for a declared number of queries, each of a pure loss of at most `part`: the largest
    that `budget` allows for all of them.

    A `Pure` budget is shared equally. With a delta, the part is that of the optimal composition of
    equal parts (Kairouz, Oh, Viswanath 2015), also for queries chosen one after the other. A query
    that loses less counts as one, too.
    """

    def __init__(self, budget: Loss, queries: int, neighbours: Neighbours = "replace") -> None:
        super().__init__(budget, neighbours)
        check_whole("queries", queries, 1, 10**8)
        if budget.nano < queries and isinstance(budget, Pure):
            raise InputError(
                f"{budget} in {queries} parts leaves less than 1e-9 nats for each; give a larger "
                "budget or fewer queries"
            )
        self.part = (
            optimal_part(budget, queries)
            if isinstance(budget, Approximate)
            else Pure(budget.nano // queries)
        )
        self.queries = queries
        self.count = 0

    def charge(self, *losses: Loss | Concentrated) -> None:
        """Commits the queries of one round, or raises RefusedError("budget") and commits
        nothing."""
        for loss in losses:
            if not isinstance(loss, Pure) or loss.nano > self.part.nano:
                raise RefusedError(
                    "budget",
                    f"{loss} exceeds the {self.part} of each of the {self.queries:,} declared "
                    "queries",
                )
        if self.count + len(losses) > self.queries:
            raise RefusedError(
                "budget",
                f"{len(losses):,} on top of {self.count:,} queries exceed the "
                f"{self.queries:,} that were declared",
            )
        self.count += len(losses)
        self.spent = Pure(self.count * self.part.nano)
        if self.spent.nano > self.budget.nano:
            self.spent = Approximate(
                self.budget.nano, optimal_delta(self.part, self.count, Pure(self.budget.nano))
            )


class ConcentratedAccount(Account):
    """A budget with a delta, spent in rho: pure and concentrated losses add up in rho and never
    exceed `rho`.

    Each loss may depend on earlier releases: a bound on the sum is enough (a filter: Feldman, Zrnic
    2021, for Renyi divergences).
    """

    def __init__(self, budget: Approximate, neighbours: Neighbours = "replace") -> None:
        super().__init__(budget, neighbours)
        self.rho = rho_within(budget)
        self.spent_rho = Concentrated(0)

    def charge(self, *losses: Loss | Concentrated) -> None:
        """Commits the rho of one round, or raises RefusedError("budget") and commits nothing."""
        after = self.spent_rho
        for loss in losses:
            if isinstance(loss, Approximate):
                raise RefusedError(
                    "budget", f"{loss} has a delta, which no rho covers; use an Account"
                )
            after += loss
        if after.atto_rho > self.rho.atto_rho:
            raise RefusedError(
                "budget", f"{after} in all exceeds the {self.rho} that {self.budget} is worth"
            )
        self.spent_rho = after
        nano = (
            math.ceil(max(0.0, conversion(after.atto_rho / ATTO, self.budget.delta)) * NANO)
            if after.atto_rho
            else 0
        )
        self.spent = Approximate(
            min(nano, self.budget.nano), self.budget.atto if after.atto_rho else 0
        )


class PaidOracle(Generic[D]):
    """Answers an algorithm whose whole loss the caller has paid."""

    def __init__(self, database: D, draws: Draws) -> None:
        self._database, self._draws = database, draws

    def answer(self, mechanisms: tuple[Mechanism[D, A, Loss | Concentrated], ...]) -> tuple[A, ...]:
        return tuple(mechanism.release(self._database, self._draws) for mechanism in mechanisms)


class TrustedOracle(PaidOracle[D]):
    """Answers rounds of mechanisms, and counts them. A `Nonadaptive[Mechanism, A, R]` over it is
    CNI, an `Adaptive[Mechanism, A, R]` is CI.

    Privacy: the sum of the losses by its account, within the budget. A round is paid for as a whole
    before anything is drawn, or refused as a whole.
    """

    def __init__(self, database: D, account: Account, draws: Draws) -> None:
        super().__init__(database, draws)
        self.account = account
        self.queries = self.rounds = 0

    def answer(self, mechanisms: tuple[Mechanism[D, A, Loss | Concentrated], ...]) -> tuple[A, ...]:
        """The release of each mechanism. Raises RefusedError, code "neighbours" or "budget", before
        anything is drawn."""
        for mechanism in mechanisms:
            if mechanism.neighbours != self.account.neighbours:
                kind, name = self.account.neighbours, type(mechanism).__name__
                raise RefusedError(
                    "neighbours",
                    f"the budget is for {kind!r} neighbours, and {name} protects "
                    f"{mechanism.neighbours!r} ones",
                )
        self.account.charge(*(mechanism.loss for mechanism in mechanisms))
        self.rounds += 1
        self.queries += len(mechanisms)
        return super().answer(mechanisms)
