"""What a trusted curator may still spend: checked, then committed, then drawn; nothing is refunded."""

from local_dp.curator.base import Neighbours
from local_dp.errors import RefusedError
from local_dp.loss import Loss, Pure


class Account:
    """A budget on the privacy loss of one database: losses add up (KLNRS Claim 2.1) and never pass `budget`.

    It protects against one kind of neighbours; losses of other kinds do not add to it. With a `Pure` budget nothing that has a delta is ever paid for.
    """

    def __init__(self, budget: Loss, neighbours: Neighbours = "replace") -> None:
        self.budget = budget
        self.neighbours = neighbours
        self.spent: Loss = Pure(0)

    def charge(self, loss: Loss) -> None:
        """Commits the loss, or raises RefusedError("budget") and commits nothing."""
        after = self.spent + loss
        if after.nano > self.budget.nano or after.atto > self.budget.atto:
            raise RefusedError("budget", f"{loss} on top of {self.spent} spent exceeds the budget of {self.budget}")
        self.spent = after
