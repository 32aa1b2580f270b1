"""What a trusted curator may still spend: checked, then committed, then drawn; nothing is refunded."""

from local_dp.accounting.shares import optimal_delta, optimal_part
from local_dp.checks import check_whole
from local_dp.curator.base import Neighbours
from local_dp.errors import InputError, RefusedError
from local_dp.loss import Approximate, Loss, Pure


class Account:
    """A budget on the privacy loss of one database: losses add up (KLNRS Claim 2.1) and never pass `budget`.

    It protects against one kind of neighbours; losses of other kinds do not add to it. With a `Pure` budget nothing that has a delta is ever paid for.
    """

    def __init__(self, budget: Loss, neighbours: Neighbours = "replace") -> None:
        self.budget = budget
        self.neighbours = neighbours
        self.spent: Loss = Pure(0)

    def charge(self, *losses: Loss) -> None:
        """Commits the losses of one round, or raises RefusedError("budget") and commits nothing."""
        loss = sum(losses, Pure(0))
        after = self.spent + loss
        if after.nano > self.budget.nano or after.atto > self.budget.atto:
            raise RefusedError("budget", f"{loss} on top of {self.spent} spent exceeds the budget of {self.budget}")
        self.spent = after


class DeclaredAccount(Account):
    """A budget for a declared number of queries, each of pure loss at most `part`: the most that `budget` allows so many of.

    With a `Pure` budget its equal share, as by adding up. With a delta, by the optimal composition of equal parts (Kairouz, Oh, Viswanath 2015), which holds
    for queries that are chosen one after the other: 10^4 queries within (1, 1e-6) may lose .00237 each, 23.7 times their share of epsilon. A query that loses
    less takes a whole place.
    """

    def __init__(self, budget: Loss, queries: int, neighbours: Neighbours = "replace") -> None:
        super().__init__(budget, neighbours)
        check_whole("queries", queries, 1, 10**8)
        if budget.nano < queries and isinstance(budget, Pure):
            raise InputError(f"{budget} in {queries} parts leaves less than 1e-9 nats for each; give a larger budget or fewer queries")
        self.part = optimal_part(budget, queries) if isinstance(budget, Approximate) else Pure(budget.nano // queries)
        self.queries = queries
        self.asked = 0

    def charge(self, *losses: Loss) -> None:
        """Commits the places of one round, or raises RefusedError("budget") and commits nothing."""
        for loss in losses:
            if loss.atto or loss.nano > self.part.nano:
                raise RefusedError("budget", f"{loss} is more than the {self.part} of each of {self.queries:,} declared queries")
        if self.asked + len(losses) > self.queries:
            raise RefusedError("budget", f"{len(losses):,} on top of {self.asked:,} queries exceed the {self.queries:,} that were declared")
        self.asked += len(losses)
        self.spent = self._spent()

    def _spent(self) -> Loss:
        """What the places that are taken come to: by adding up as long as that is within the budget."""
        added = Pure(self.asked * self.part.nano)
        if added.nano <= self.budget.nano:
            return added
        return Approximate(self.budget.nano, optimal_delta(self.part, self.asked, Pure(self.budget.nano)))
