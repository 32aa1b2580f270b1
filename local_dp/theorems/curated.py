"""A trusted curator's algorithms: from SQ algorithms (SuLQ; KLNRS Section 4), and from interactive
ones without interaction (CI = CNI, Section 1)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

import numpy as np

from local_dp.arrays import Ints
from local_dp.checks import check_shares, check_whole
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.clipped import NoisySum
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.selection.exponential import ExponentialMechanism
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import A, Adaptive, Nonadaptive, R, run, translate
from local_dp.loss import Loss, Pure
from local_dp.oracles.statistical.oracles import (
    Statistical,
    StatisticalAlgorithm,
    StatisticalQuery,
    StatisticalRounds,
)
from local_dp.theorems.from_sq import put_to_records
from local_dp.two_party import OneWay, Problem


@overload
def curated_from_sq(
    algorithm: Statistical[R], epsilon: float, records: int
) -> Nonadaptive[NoisySum, int, R]: ...
@overload
def curated_from_sq(
    algorithm: StatisticalRounds[R], epsilon: float, records: int
) -> Adaptive[NoisySum, int, R]: ...
def curated_from_sq(
    algorithm: StatisticalAlgorithm[R], epsilon: float, records: int
) -> Nonadaptive[NoisySum, int, R] | Adaptive[NoisySum, int, R]:
    """The same algorithm with every statistical query answered by a noisy sum over all of the
    curator's records, at `epsilon` nats a query.

    Privacy: t queries cost t epsilon (KLNRS Claim 2.1), paid by the oracle's account; a
    `DeclaredAccount` says which epsilon a delta allows. Utility: standard error sqrt(8) / (n
    epsilon) on the [-1, 1] scale beside sampling; see `enough_records`. Its type keeps the
    adaptivity.
    """
    if records < 1:
        raise InputError(f"records is {records}; give 1 or more")

    def ask(
        queries: tuple[StatisticalQuery, ...], before: tuple[NoisySum, ...]
    ) -> tuple[NoisySum, ...]:
        return tuple(NoisySum(put_to_records(query), epsilon) for query in queries)

    def read(
        queries: tuple[StatisticalQuery, ...],
        mechanisms: tuple[NoisySum, ...],
        sums: tuple[int, ...],
    ) -> tuple[float, ...]:
        pairs = zip(mechanisms, sums, strict=True)
        return tuple(
            2 * total / (mechanism.sensitivity * records) - 1 for mechanism, total in pairs
        )

    return translate(algorithm, ask, read)


D = TypeVar("D")
L = TypeVar("L", bound=Loss)


@dataclass(frozen=True)
class HandedOver(Mechanism[D, R, L], Generic[D, A, R, L]):
    """A curator's interactive algorithm as one mechanism, paid from `budget` (KLNRS Claim 2.1).
    Raises RefusedError("budget") when it asks for more."""

    algorithm: Adaptive[Mechanism[D, A, Loss], A, R]
    budget: L

    @property
    def loss(self) -> L:
        return self.budget

    def release(self, database: D, draws: Draws) -> R:
        return run(
            self.algorithm, TrustedOracle(database, Account(self.budget, self.neighbours), draws)
        )


def cni_from_ci(
    algorithm: Adaptive[Mechanism[D, A, Loss], A, R], budget: L
) -> Nonadaptive[HandedOver[D, A, R, L], R, R]:
    """The same algorithm without interaction: one mechanism, fixed beforehand, whose only answer is
    the result."""
    return Nonadaptive((HandedOver(algorithm, budget),), lambda results: results[0])


B = TypeVar("B")
H = TypeVar("H")


@dataclass(frozen=True)
class PublicLearner(Generic[D, H, B]):
    """A pure learner, a database of its `records` that everybody knows, say n copies of one
    example, and what a hypothesis says of a b."""

    learner: Mechanism[D, H, Pure]
    database: D
    records: int
    predict: Callable[[H, B], int]

    def tries(self, success: float, failure: float) -> int:
        """ceil(e^(eps n) ln(1 / failure) / success) public hypotheses hold a good one except with
        probability `failure` (group privacy)."""
        check_shares(success=success, failure=failure)
        ratio = math.exp(self.learner.loss.epsilon * self.records)
        return math.ceil(ratio * math.log(1 / failure) / success)


def one_way_from_learner(
    public: PublicLearner[D, H, B], problem: Problem[A, B], tries: int, coins: Draws
) -> OneWay[A, B]:
    """Alice and Bob draw the same `tries` hypotheses by public coins, from public data; Alice sends
    the number of the one that errs least given her a.

    Error: that of a good hypothesis for a, and the probability that none was drawn
    (`PublicLearner.tries`). Cost: log2(tries) bits, about 1.44 eps n: so a problem that takes c
    bits takes about c / (1.44 eps) examples. Source: lecture notes 9.2; Feldman, Xiao 2014.
    """
    check_whole("tries", tries, 1, 1 << 20)
    hypotheses = [public.learner.release(public.database, coins) for _ in range(tries)]

    def send(a: A) -> int:
        return min(
            range(tries),
            key=lambda number: problem.misses(a, lambda b: public.predict(hypotheses[number], b)),
        )

    return OneWay(tries, send, lambda number, b: public.predict(hypotheses[number], b))


def learner_from_one_way(
    protocol: OneWay[A, B], epsilon: float
) -> ExponentialMechanism[Sequence[tuple[B, int]]]:
    """The exponential mechanism over the messages, each a hypothesis: what Bob would answer to it.
    From examples (b, label) a message.

    Privacy: epsilon: a replaced example moves the right answers of a message by at most 1. Utility:
    some message errs as little as the protocol does given a, so (2 / (eps alpha)) ln(messages /
    beta) examples find one within alpha of it on them. Source: lecture notes 9.2; Kasiviswanathan
    et al. 2008, Theorem 3.7.
    """

    def score(examples: Sequence[tuple[B, int]]) -> Ints:
        return np.array(
            [
                sum(protocol.answer(message, b) == label for b, label in examples)
                for message in range(protocol.messages)
            ],
            dtype=np.int64,
        )

    return ExponentialMechanism(score, epsilon)
