"""Boosting for queries: synopses that are right for most queries, each made for the queries that
those before answer badly, and their median."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np

from local_dp.accounting import rules
from local_dp.accounting.losses import rho_within
from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_positive, check_share, check_whole
from local_dp.curator.account import PaidOracle
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.query_release.counting import MAX_RECORDS, CountingQueries
from local_dp.curator.query_release.pmw import NoisyCount
from local_dp.curator.selection.exponential import ExponentialChoice, numbered
from local_dp.curator.selection.groups import Listed
from local_dp.curator.selection.sampled import Sampled
from local_dp.draws import Draws
from local_dp.interaction import Adaptive, Play, run
from local_dp.loss import ATTO, NANO, Approximate, Pure, nano_epsilon
from local_dp.optimise import crossing

MAX_QUERIES = 10**4
_PASSES = 10


@dataclass(frozen=True, eq=False)
class BadlyAnswered(Sampled[Counts]):
    """The numbers of `count` queries, drawn with replacement, and more often the worse the synopses
    so far answer them.

    `expected`, whole counts of shape (t, k), are the answers of t synopses. A query's score is the
    sum of min(width, max(0, |answer - count| - margin)). Privacy: count times t times `each`, pure.
    A replaced record moves a count by at most 1, so each term by at most 1 and the sum of t terms
    by at most t. Utility: a query has weight e^(each score / 2). Cost: one product of the matrix
    with the counts.
    """

    summary = "Draws queries, more often those that are answered badly"
    queries: CountingQueries
    expected: Counts
    margin: int
    width: int
    count: int
    each: float

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(
            len(self.expected) * nano_epsilon(self.each) / NANO, len(self.expected)
        )

    def candidates(self, database: Counts) -> Listed:
        off = np.abs(self.expected - self.queries.counts(database)) - self.margin
        return numbered(np.minimum(self.width, np.maximum(0, off)).sum(axis=0))


Asks: TypeAlias = Mechanism[Counts, Any, Pure]


@dataclass(frozen=True)
class CountedBase:
    """The base generator: a noisy count of each sampled query, of loss `epsilon`, and the weights
    on the points, shape (N,) of sum 1, fitted to all counts. It is MWEM that measures all it is
    asked."""

    epsilon: float

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)

    def asks(self, queries: CountingQueries) -> tuple[Asks, ...]:
        return tuple(NoisyCount(queries, query, self.epsilon) for query in range(queries.k))

    def synopsis(self, queries: CountingQueries, answers: Sequence[int], size: int) -> Floats:
        measurements = [
            (np.flatnonzero(row), count / size)
            for row, count in zip(queries.values, answers, strict=True)
        ]
        return fitted(np.full(queries.points, 1 / queries.points), measurements, _PASSES)


def fitted(weights: Floats, measurements: Sequence[tuple[Ints, float]], passes: int) -> Floats:
    """Some passes over queries, each by its points and its share: their weights are multiplied by
    e^(the share they should have, less the share they have)."""
    weights, total = weights.copy(), 1.0
    for places, share in list(measurements) * passes:
        old = weights[places]
        has = float(np.add.reduce(old))
        growth = math.exp(share - has / total)
        weights[places], total = growth * old, total + (growth - 1) * has
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class BoostingTerms:
    """T `rounds` of k `samples`; an error up to the `margin` is right, of the `width` more is wrong
    (both in records); the `step` a of the weights; the base.

    A base that errs by more than the margin on 1/2 - eta of any distribution of the queries at most
    has a = ln((1 + 2 eta) / (1 - 2 eta)) / 2.
    """

    rounds: int
    samples: int
    margin: int
    width: int
    step: float
    base: CountedBase

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds, 1, 1 << 10)
        check_whole("samples", self.samples, 1, 1 << 16)
        check_whole("margin", self.margin, 0, MAX_RECORDS)
        check_whole("width", self.width, 1, MAX_RECORDS)
        check_positive("step", self.step)

    @property
    def each(self) -> float:
        """4 a / width: the loss of one sampled query for each synopsis before it."""
        return 4 * self.step / self.width

    @property
    def losses(self) -> Counter[Pure]:
        """Of all k (T - 1) queries that are sampled by scores, and of T synopses. The queries of
        the first round see no record."""
        losses = Counter({Pure(nano_epsilon(self.base.epsilon)): self.rounds * self.samples})
        for synopses in range(1, self.rounds):
            losses[Pure(synopses * nano_epsilon(self.each))] += self.samples
        return losses

    def within(self, budget: Approximate) -> Self:
        """These terms with the base's epsilon and 1 / width multiplied by the largest factor with
        which the exact price keeps to the budget, to 1e-4 of it.

        The base's epsilon becomes a multiple of `each`: losses with a common divisor are composed
        fast.
        """

        def keeps(factor: float) -> bool:
            return rules.epsilon(self._scale(factor).losses, budget.delta) <= budget.epsilon

        rho = sum(count * loss.epsilon**2 / 2 for loss, count in self.losses.items())
        # by adding up rho, which is never less than the exact price
        enough = math.sqrt(rho_within(budget).rho / rho)
        return self._scale(crossing(0.99 * enough, 1.4 * enough, keeps, 12)[0])

    def _scale(self, factor: float) -> Self:
        wider = replace(self, width=math.ceil(self.width / factor))
        nano = nano_epsilon(wider.each)
        steps = max(1, round(factor * self.base.epsilon * NANO / nano))
        return replace(wider, base=replace(self.base, epsilon=steps * nano / NANO))


@dataclass(frozen=True, eq=False)
class Boosted:
    """The whole counts by which each of T synopses answers k queries, shape (T, k)."""

    answers: Counts

    @property
    def counts(self) -> Floats:
        """The medians, shape (k,)."""
        return np.asarray(np.median(self.answers, axis=0))


@dataclass(frozen=True, eq=False)
class Boosting(Mechanism[Counts, Boosted, Approximate]):
    """The counts of k <= 10^4 queries, each the median of the answers of T synopses.

    Each round samples queries that the synopses so far answer badly, and makes a synopsis of the
    records for these alone. Privacy: (eps, delta), eps by the exact composition of all k T sampled
    queries and all T synopses. Utility: an error of margin + width at most after T > ln(k) / (2
    eta^2) rounds. The condition: every synopsis errs by the margin at most on 1/2 + eta of its
    round's weight. The sum of the queries' weights then falls by sqrt(1 - 4 eta^2) a round; a query
    with a wrong median keeps a weight of 1. Cost: O(k N) a round. Source: Dwork, Rothblum, Vadhan
    2010; lecture notes, Theorem 7.0.1.
    """

    summary = "Answers counting queries by the median of several synopses"
    queries: CountingQueries
    terms: BoostingTerms
    delta: float

    def __post_init__(self) -> None:
        check_whole("the number of queries", self.queries.k, 1, MAX_QUERIES)
        check_share("delta", self.delta)

    @property
    def loss(self) -> Approximate:
        return Approximate(self._nano, math.ceil(self.delta * ATTO))

    @cached_property
    def _nano(self) -> int:
        return math.ceil(rules.epsilon(self.terms.losses, self.delta) * NANO)

    def release(self, database: Counts, draws: Draws) -> Boosted:
        algorithm = self.algorithm(
            self.queries.size_of(database), int(draws.words(1)[0] >> np.uint64(32))
        )
        return run(algorithm, PaidOracle(database, draws))

    def algorithm(self, size: int, seed: int) -> Adaptive[Asks, Any, Boosted]:
        """For a table of `size` records; a seed's public coins draw the first round's queries."""
        check_whole("the number of records", size, 1, MAX_RECORDS)
        return Adaptive(lambda: self._play(size, np.random.default_rng(seed)))

    def _play(self, size: int, coins: np.random.Generator) -> Play[Asks, Any, Boosted]:
        queries, terms = self.queries, self.terms
        answers = np.empty((0, queries.k), dtype=np.int64)
        sample = coins.integers(0, queries.k, terms.samples)
        for number in range(terms.rounds):
            if number:
                (numbers,) = yield (
                    BadlyAnswered(
                        queries, answers, terms.margin, terms.width, terms.samples, terms.each
                    ),
                )
                sample = np.array(numbers)
            part = CountingQueries(queries.values[sample])
            replies = yield terms.base.asks(part)
            expected = np.rint(size * queries.shares(terms.base.synopsis(part, replies, size)))
            answers = np.concatenate([answers, expected[None].astype(np.int64)])
        return Boosted(answers)
