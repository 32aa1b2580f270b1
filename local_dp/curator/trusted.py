"""The trusted curator as an oracle: a database, what may be spent on it, and the random source of its answers."""

from typing import Generic, TypeVar

from local_dp.curator.account import Account
from local_dp.curator.mechanism import Mechanism
from local_dp.draws import Draws
from local_dp.errors import RefusedError
from local_dp.loss import Concentrated, Loss

D = TypeVar("D")
A = TypeVar("A")


class TrustedOracle(Generic[D]):
    """Answers rounds of mechanisms, and counts them. What asks it is CNI as a `Nonadaptive[Mechanism, A, R]` and CI as an `Adaptive[Mechanism, A, R]`.

    Privacy: what the account says the losses come to, within its budget. A round is paid for whole before anything in it is drawn, or refused whole.
    """

    def __init__(self, database: D, account: Account, draws: Draws) -> None:
        self.account = account
        self.queries = 0
        self.rounds = 0
        self._database = database
        self._draws = draws

    def answer(self, mechanisms: tuple[Mechanism[D, A, Loss | Concentrated], ...]) -> tuple[A, ...]:
        """What each mechanism releases. Raises RefusedError, code "neighbours" or "budget", before anything is drawn."""
        for mechanism in mechanisms:
            if mechanism.neighbours != self.account.neighbours:
                raise RefusedError(
                    "neighbours", f"the budget is of {self.account.neighbours!r} neighbours, {type(mechanism).__name__} protects {mechanism.neighbours!r}"
                )
        self.account.charge(*(mechanism.loss for mechanism in mechanisms))
        self.rounds += 1
        self.queries += len(mechanisms)
        return tuple(mechanism.release(self._database, self._draws) for mechanism in mechanisms)
