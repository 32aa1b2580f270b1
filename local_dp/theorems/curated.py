"""A trusted curator's algorithms: from SQ algorithms (SuLQ; KLNRS Section 4), and from interactive ones without interaction (CI = CNI, Section 1)."""

from dataclasses import dataclass
from typing import Generic, TypeVar, overload

from local_dp.curator.account import Account
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.sums import NoisySum
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import A, Adaptive, Nonadaptive, R, run, translate
from local_dp.loss import Loss
from local_dp.oracles.statistical.oracles import Statistical, StatisticalAlgorithm, StatisticalQuery, StatisticalRounds
from local_dp.theorems.local_from_sq import put_to_records


@overload
def curated_from_sq(algorithm: Statistical[R], epsilon: float, records: int) -> Nonadaptive[NoisySum, int, R]: ...
@overload
def curated_from_sq(algorithm: StatisticalRounds[R], epsilon: float, records: int) -> Adaptive[NoisySum, int, R]: ...
def curated_from_sq(algorithm: StatisticalAlgorithm[R], epsilon: float, records: int) -> Nonadaptive[NoisySum, int, R] | Adaptive[NoisySum, int, R]:
    """The same algorithm with every statistical query answered by a noisy sum over all of the curator's records, at `epsilon` nats a query.

    Privacy: t queries cost t epsilon (KLNRS Claim 2.1), which the oracle's account pays or refuses; a `DeclaredAccount` says which epsilon a delta allows.
    Utility: standard error about sqrt(8) / (n epsilon) on the [-1, 1] scale beside the sampling error; with `enough_records` all of t answers are within their
    tolerances except with probability beta. Preserves adaptivity, and its type says so.
    """
    if records < 1:
        raise InputError(f"records is {records}; give 1 or more")

    def ask(queries: tuple[StatisticalQuery, ...], before: tuple[NoisySum, ...]) -> tuple[NoisySum, ...]:
        return tuple(NoisySum(put_to_records(query), epsilon) for query in queries)

    def read(queries: tuple[StatisticalQuery, ...], asked: tuple[NoisySum, ...], sums: tuple[int, ...]) -> tuple[float, ...]:
        return tuple(2 * total / (mechanism.sensitivity * records) - 1 for mechanism, total in zip(asked, sums, strict=True))

    return translate(algorithm, ask, read)


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
