"""The trusted curator as an oracle: a database, its budget, and the random source of its answers."""

from typing import Generic, TypeVar

from local_dp.curator.account import Account
from local_dp.curator.mechanism import Mechanism
from local_dp.draws import Draws
from local_dp.errors import RefusedError
from local_dp.loss import Concentrated, Loss

D = TypeVar("D")
A = TypeVar("A")


class TrustedOracle(Generic[D]):
    """Answers rounds of mechanisms, and counts them. A `Nonadaptive[Mechanism, A, R]` over it is CNI, an `Adaptive[Mechanism, A, R]` is CI.

    Privacy: the sum of the losses by its account, within the budget. A round is paid for as a whole before anything is drawn, or refused as a whole.
    """

    def __init__(self, database: D, account: Account, draws: Draws) -> None:
        self.account = account
        self.queries = 0
        self.rounds = 0
        self._database = database
        self._draws = draws

    def answer(self, mechanisms: tuple[Mechanism[D, A, Loss | Concentrated], ...]) -> tuple[A, ...]:
        """The release of each mechanism. Raises RefusedError, code "neighbours" or "budget", before anything is drawn."""
        for mechanism in mechanisms:
            if mechanism.neighbours != self.account.neighbours:
                kind, name = self.account.neighbours, type(mechanism).__name__
                raise RefusedError("neighbours", f"the budget is for {kind!r} neighbours, and {name} protects {mechanism.neighbours!r} ones")
        self.account.charge(*(mechanism.loss for mechanism in mechanisms))
        self.rounds += 1
        self.queries += len(mechanisms)
        return tuple(mechanism.release(self._database, self._draws) for mechanism in mechanisms)
