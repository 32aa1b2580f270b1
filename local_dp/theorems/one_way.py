"""Pure learners and one-way protocols are the same, up to constants (Feldman, Xiao 2014): a learner makes a protocol, and a protocol a learner."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.checks import check_share, check_whole
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.selection.exponential import ExponentialMechanism
from local_dp.draws import Draws
from local_dp.loss import Pure
from local_dp.two_party.one_way import OneWay, Problem

A = TypeVar("A")
B = TypeVar("B")
D = TypeVar("D")
H = TypeVar("H")


@dataclass(frozen=True)
class PublicLearner(Generic[D, H, B]):
    """A pure learner, a database of its `records` that everybody knows, say n copies of one example, and what a hypothesis says of a b."""

    learner: Mechanism[D, H, Pure]
    database: D
    records: int
    predict: Callable[[H, B], int]

    def tries(self, success: float, failure: float) -> int:
        """How many hypotheses drawn from the public database hold a good one but for probability `failure`: ceil(e^(eps n) ln(1 / failure) / success).

        `success` is the learner's on n examples of any a. All n are replaced by public ones, which costs e^(eps n) (group privacy).
        """
        check_share("success", success)
        check_share("failure", failure)
        return math.ceil(math.exp(self.learner.loss.epsilon * self.records) * math.log(1 / failure) / success)


def one_way_from_learner(public: PublicLearner[D, H, B], problem: Problem[A, B], tries: int, coins: Draws) -> OneWay[A, B]:
    """Alice and Bob draw the same `tries` hypotheses by public coins, from public data; Alice sends the number of the one that errs least given her a.

    Error: that of a good hypothesis for a, but for the chance that none was drawn (`PublicLearner.tries`). Cost: log2(tries) bits, about 1.44 eps n: so a
    problem that takes c bits takes about c / (1.44 eps) examples. Source: lecture notes 9.2; Feldman, Xiao 2014.
    """
    check_whole("tries", tries, 1, 1 << 20)
    drawn = [public.learner.release(public.database, coins) for _ in range(tries)]

    def send(a: A) -> int:
        return min(range(tries), key=lambda number: problem.misses(a, lambda b: public.predict(drawn[number], b)))

    return OneWay(tries, send, lambda number, b: public.predict(drawn[number], b))


def learner_from_one_way(protocol: OneWay[A, B], epsilon: float) -> ExponentialMechanism[Sequence[tuple[B, int]]]:
    """The exponential mechanism over the messages, each a hypothesis: what Bob would answer to it. From examples (b, label) a message.

    Privacy: epsilon: a replaced example moves the right answers of a message by at most 1. Utility: some message errs as little as the protocol does given a,
    so (2 / (eps alpha)) ln(messages / beta) examples find one within alpha of it on them. Source: lecture notes 9.2; Kasiviswanathan et al. 2008, Theorem 3.7.
    """

    def score(examples: Sequence[tuple[B, int]]) -> Ints:
        return np.array([sum(protocol.answer(message, b) == label for b, label in examples) for message in range(protocol.messages)], dtype=np.int64)

    return ExponentialMechanism(score, epsilon)
