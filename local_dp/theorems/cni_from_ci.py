"""CI = CNI: interacting with a trusted curator buys nothing for learning, since the learner can be handed over whole (KLNRS Section 1)."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from local_dp.curator.account import Account
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.interaction import A, Adaptive, Nonadaptive, R, run
from local_dp.loss import Loss

D = TypeVar("D")
L = TypeVar("L", bound=Loss)


@dataclass(frozen=True)
class HandedOver(Mechanism[D, R, L], Generic[D, A, R, L]):
    """A curator's interactive algorithm as one mechanism: the curator plays it alone and releases the result, and nothing else.

    Privacy: the mechanisms it asks are paid from an account of `budget`, and what it computes of their answers is free (KLNRS Claim 2.1).
    Raises RefusedError("budget") when it asks for more. Cost: that of the algorithm.
    """

    algorithm: Adaptive[Mechanism[D, A, Loss], A, R]
    budget: L

    @property
    def loss(self) -> L:
        return self.budget

    def release(self, database: D, draws: Draws) -> R:
        return run(self.algorithm, TrustedOracle(database, Account(self.budget, self.neighbours), draws))


def cni_from_ci(algorithm: Adaptive[Mechanism[D, A, Loss], A, R], budget: L) -> Nonadaptive[HandedOver[D, A, R, L], R, R]:
    """The same algorithm without interaction: one mechanism, fixed beforehand, whose only answer is the result."""
    return Nonadaptive((HandedOver(algorithm, budget),), lambda results: results[0])
