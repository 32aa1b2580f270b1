"""Private multiplicative weights: many queries answered from one hypothesis, which pays for those that it answers badly only."""

import math
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from local_dp.accounting.gaussian import rho_within
from local_dp.arrays import Counts, Floats
from local_dp.checks import check_positive, check_share, check_whole
from local_dp.curator.query_release.counting import MAX_RECORDS, CountingQueries
from local_dp.curator.query_release.first_far import Asked, FirstFar, NoisyCount
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play
from local_dp.loss import NANO, Loss, Pure, nano_epsilon

Asks: TypeAlias = FirstFar | NoisyCount
_MOST_UPDATES = 1 << 20


@dataclass(frozen=True)
class Stream:
    """What is public before the first answer: n records of N points are asked k queries."""

    size: int
    points: int
    queries: int

    def __post_init__(self) -> None:
        check_whole("the number of records", self.size, 1, MAX_RECORDS)
        check_whole("points", self.points, 2, 1 << 28)
        check_whole("queries", self.queries, 1, 1 << 28)


@dataclass(frozen=True)
class Terms:
    """How far from a noisy count a hypothesis may be, `alpha` of the records; how often it may be changed; epsilon of each noise; the step of a change.

    `for_stream` sees no data: U = 2 ln(N) / alpha^2 changes are as many as can be needed, as each of step 2 alpha takes alpha^2 / 2 off the relative entropy,
    at most ln N, if it lies alpha / 2 away. Alpha is the least for which that holds but with probability beta: its half covers both noises of a test.
    The error is then at most 3/2 alpha. With a `share` of these changes alpha falls as its fourth root; that may do on the data at hand, or halt.
    """

    alpha: float
    updates: int
    epsilon: float
    step: float

    def __post_init__(self) -> None:
        check_share("alpha", self.alpha)
        check_whole("updates", self.updates, 1, _MOST_UPDATES)
        nano_epsilon(self.epsilon)
        check_positive("the step", self.step)

    @classmethod
    def of(cls, alpha: float, updates: int, budget: Loss) -> Self:
        """The terms by which so many updates are within the budget: a pure one by adding up, an approximate one in rho, from a `ConcentratedAccount`."""
        check_share("alpha", alpha)
        check_whole("updates", updates, 1, _MOST_UPDATES)
        return cls(alpha, updates, _each(budget, updates) / NANO, 2 * alpha)

    @classmethod
    def for_stream(cls, stream: Stream, budget: Loss, beta: float = 0.05, share: float = 1.0) -> Self:
        """The least alpha, to a thousandth of it, that is right but with probability beta. Raises InputError where none below 1 is."""
        check_share("beta", beta)
        check_positive("the share of the updates", share)

        def updates(alpha: float) -> int:
            return math.ceil(share * 2 * math.log(stream.points) / alpha**2)

        def enough(alpha: float) -> bool:
            """Whether all noises of tests, k of one kind and U of the other, stay below alpha n / 2 together, and the counts' too, but for beta."""
            changes = updates(alpha)
            if changes > _MOST_UPDATES or (isinstance(budget, Pure) and budget.nano < 4 * changes):
                return False
            most = math.log(3 * stream.queries / beta) + math.log(3 * changes / beta)
            return most * NANO / _each(budget, changes) <= alpha * stream.size / 2

        low, high = 0.0, 1 - 1e-9
        if not enough(high):
            raise InputError(f"{stream.size:,} records are too few for an error below 1 within {budget}; give more records or a larger budget")
        while high - low > high / 1000:
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return cls.of(high, updates(high), budget)

    @property
    def losses(self) -> tuple[Pure, ...]:
        """Of all that may be asked, fixed beforehand: a test and a count for each change."""
        nano = nano_epsilon(self.epsilon)
        return (Pure(3 * nano), Pure(nano)) * self.updates


def _each(budget: Loss, updates: int) -> int:
    """Of 3 and 1 for each update, in nano-nats: 4 e in epsilon, (9 + 1) e^2 / 2 in rho, rounded up twice."""
    nano = budget.nano // (4 * updates) if isinstance(budget, Pure) else math.isqrt(max(0, rho_within(budget).atto_rho // updates - 2) // 5)
    if nano < 1:
        raise InputError(f"{budget} for {updates:,} updates leaves less than 1e-9 nats for each; give a larger budget or fewer updates")
    return nano


@dataclass(frozen=True, eq=False)
class Answered:
    """Shares of the records, one for each of the first `done` queries of k, shape (k,), NaN for the rest; the last hypothesis; how often it was changed."""

    shares: Floats
    done: int
    weights: Floats
    updates: int

    @property
    def halted(self) -> bool:
        """Whether queries were left without an answer: the changes were used up."""
        return self.done < len(self.shares)

    @property
    def answered(self) -> float:
        """The share of the queries that were answered."""
        return self.done / len(self.shares)

    def largest_error(self, truth: Counts, size: int) -> float:
        """Over the queries that were answered, as a share of the records: it says nothing of the others. 0 where there is none."""
        return float(np.abs(self.shares[: self.done] - truth[: self.done] / size).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class MultiplicativeWeights:
    """Private multiplicative weights on a stream of counting queries, of a table of n records: a curator's adaptive algorithm.

    A hypothesis answers, until a query is found whose noisy count lies alpha away; that is answered by a fresh noisy count, and moves the weights of the points
    that it counts by e^+-step, up if the count is larger than expected. It halts when the changes are used up.
    Privacy: `Terms.losses` at most, adaptively chosen: paid from an `Account` that adds epsilons, or a `ConcentratedAccount`. One round is a whole epoch, so
    that a query nobody need look at costs nothing; the analyst may be adaptive all the same (see `FirstFar`).
    Utility: 3/2 alpha where the terms are right; flat in k. It is measured beside its baselines, and a noisy histogram of N cells beats it wherever there is
    memory for the weights, as N ln N / (n eps)^2 is less than alpha^2. Cost: O(k N) an update.
    Source: Hardt, Rothblum 2010; lecture notes 3.2 with errata: what is compared with the hypothesis is the noisy count, and noise is of 1 / (eps n).
    """

    queries: CountingQueries
    size: int
    terms: Terms

    def __post_init__(self) -> None:
        Stream(self.size, self.queries.points, self.queries.k)

    def algorithm(self) -> Adaptive[Asks, int | None, Answered]:
        """What asks a `TrustedOracle`; a fresh start each time."""
        return Adaptive(self._play)

    def _play(self) -> Play[Asks, int | None, Answered]:
        queries, terms = self.queries, self.terms
        weights, shares, at, updates = np.full(queries.points, 1 / queries.points), np.full(queries.k, np.nan), 0, 0
        threshold = max(1, round(terms.alpha * self.size))
        while at < queries.k and updates < terms.updates:
            (found,) = yield (FirstFar(Asked(queries, at, weights), threshold, terms.epsilon),)
            stop = queries.k if found is None else found
            if stop > at:
                shares[at:stop] = queries.part(at, stop).shares(weights)
            at = stop
            if found is not None:
                (count,) = yield (NoisyCount(queries, found, terms.epsilon),)
                assert count is not None  # only a test answers None
                shares[found], at, updates = count / self.size, found + 1, updates + 1
                weights = moved(weights, queries.values[found], count / self.size, terms.step)
        return Answered(shares, at, weights, updates)


def moved(weights: Floats, counted: Floats | np.ndarray, share: float, step: float) -> Floats:
    """The weights after one change: those of the points that are counted times e^step if their share is larger than expected, e^-step if not; of sum 1."""
    up = share > float(weights[counted].sum())
    changed = weights * np.where(counted, math.exp(step if up else -step), 1.0)
    return np.asarray(changed / changed.sum())
