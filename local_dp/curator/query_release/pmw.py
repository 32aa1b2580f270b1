"""Private multiplicative weights: many queries answered from one hypothesis, which pays only for
the queries that it answers badly.

The sparse vector technique finds the first such query at a price that does not depend on their
number.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, TypeAlias

import numpy as np

from local_dp.accounting.losses import rho_within
from local_dp.arrays import Counts, Floats
from local_dp.checks import check_positive, check_share, check_whole
from local_dp.curator.clipped import ClippedAnswer, ClippedLaplace, laplace_tail
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.mechanism import Law, Mechanism, check_listed, whole_weights
from local_dp.curator.query_release.counting import MAX_RECORDS, CountingQueries
from local_dp.curator.selection.exponential import expand
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play
from local_dp.loss import NANO, Loss, Pure, exp_epsilon, nano_epsilon

_LISTED = 12  # queries


@dataclass(frozen=True, eq=False)
class Asked:
    """The queries from number `start` on, and the weights, shape (N,) of sum 1, that predict each
    count: public, and therefore floats."""

    queries: CountingQueries
    start: int
    weights: Floats

    def blocks(self, database: Counts) -> Iterator[tuple[int, Counts]]:
        """How far each count lies from the prediction, n times its share rounded to a whole number:
        block by block, each with its first number."""
        both = np.stack([database, self.queries.size_of(database) * self.weights], axis=1)
        for first, queries in self.queries.blocks(self.start):
            counts, expected = queries.sums(both).T  # counts are exact: see `MAX_RECORDS`
            yield first, counts.astype(np.int64) - np.rint(expected).astype(np.int64)


@dataclass(frozen=True, eq=False)
class FirstFar(Mechanism[Counts, int | None, Pure]):
    """The number of the first query whose noisy count lies `threshold` records or more, with noise,
    from its prediction; None if there is none.

    Each test is |count + Z - expected| >= threshold + W, Z fresh for each query and W drawn once,
    discrete Laplace of e^-`epsilon` a step both. Privacy: 3 epsilon, pure, for any number of
    queries. A replaced record moves each count by at most 1. With W one larger, every test that
    failed still fails. The test that fired still does with Z moved by at most 2, away from the
    prediction. One map of Z serves both sides, as W <= -threshold always fires. Utility: except
    with probability 2 beta, the answer is no later than the first query beyond threshold + 2 ln(k /
    beta) / eps. It is no query nearer than threshold - 2 ln(k / beta) / eps. Cost: one product of a
    block of the matrix with the counts, as far as the answer. Source: Dwork, Naor, Reingold,
    Rothblum, Vadhan 2009; Hardt, Rothblum 2010, with noisy answers compared, not thresholds
    (lecture notes 3.2, corrected).
    """

    summary = "Finds the first query that is predicted badly"
    questions: Asked
    threshold: int
    epsilon: float

    def __post_init__(self) -> None:
        check_whole("threshold", self.threshold, 1, MAX_RECORDS)
        nano_epsilon(self.epsilon)

    @property
    def loss(self) -> Pure:
        return Pure(3 * self._nano)

    def release(self, database: Counts, draws: Draws) -> int | None:
        noise = Fraction(self._nano, NANO)
        threshold = self.threshold + draws.discrete_laplace(noise)
        for first, gaps in self.questions.blocks(database):
            far = np.abs(gaps + discrete_laplaces(draws, noise, len(gaps))) >= threshold
            if far.any():
                return first + int(far.argmax())
        return None

    def law(self, database: Counts) -> Law[int | None]:
        """Exactly, with e^eps replaced by a fraction just below it. Raises InputError above 12
        queries.

        Thresholds of 0 and less are passed by the first query. Thresholds beyond all gaps are
        passed with chances c_i r^t, so polynomials in r^t sum up.
        """
        gaps = [gap for _, block in self.questions.blocks(database) for gap in block.tolist()]
        check_listed(f"{len(gaps)} queries", len(gaps), _LISTED)
        names = [self.questions.start + place for place in range(len(gaps))]
        top = max(self.threshold, *map(abs, gaps))
        ratio = 1 / exp_epsilon(self._nano)
        shares = dict.fromkeys([*names, None], Fraction(0))
        # a noise of -threshold and less
        shares[names[0]] = laplace_tail(self._nano, self.threshold)
        for t in range(1, top + 1):
            chance = (1 - ratio) / (1 + ratio) * ratio ** abs(t - self.threshold)
            for gap, name in zip(gaps, names, strict=True):
                far = laplace_tail(self._nano, t - gap) + laplace_tail(self._nano, t + gap)
                shares[name] += chance * far
                chance *= 1 - far
            shares[None] += chance
        # beyond all gaps a query fires with chance head r^t
        heads = [(ratio**-gap + ratio**gap) / (1 + ratio) for gap in gaps]
        for place, name in enumerate(names):
            terms = expand((1, -head) for head in heads[:place])
            fires = [Fraction(0), *(heads[place] * term for term in terms)]
            shares[name] += self._beyond(fires, top + 1, ratio)
        shares[None] += self._beyond(expand((1, -head) for head in heads), top + 1, ratio)
        return whole_weights(shares)

    @property
    def _nano(self) -> int:
        return nano_epsilon(self.epsilon)

    def _beyond(self, terms: list[Fraction], start: int, ratio: Fraction) -> Fraction:
        """The sum over t >= start of Pr[W = t - threshold] times the polynomial of these terms in
        r^t."""
        first = (1 - ratio) / (1 + ratio) * ratio ** (start - self.threshold)
        total = Fraction(0)
        for power, term in enumerate(terms):
            total += term * first * ratio ** (power * start) / (1 - ratio ** (power + 1))
        return total


@dataclass(frozen=True, eq=False)
class NoisyCount(ClippedAnswer[Counts]):
    """The count of query number `query`, plus discrete Laplace noise, clipped to 0..n. Privacy:
    epsilon, pure. Utility: standard error sqrt(2) / eps."""

    summary = "Answers one counting query with noise"
    queries: CountingQueries
    query: int
    epsilon: float

    def __post_init__(self) -> None:
        check_whole("query", self.query, 0, self.queries.k - 1)
        super().__post_init__()

    def noisy(self, database: Counts) -> tuple[int, ClippedLaplace]:
        size = self.queries.size_of(database)
        count = int(database[self.queries.values[self.query]].sum())
        return count, ClippedLaplace(nano_epsilon(self.epsilon), 1, size)


Asks: TypeAlias = FirstFar | NoisyCount
_MOST_UPDATES = 1 << 20


@dataclass(frozen=True)
class Stream:
    """The public numbers: n records of N points are asked k queries."""

    size: int
    points: int
    queries: int

    def __post_init__(self) -> None:
        check_whole("the number of records", self.size, 1, MAX_RECORDS)
        check_whole("points", self.points, 2, 1 << 28)
        check_whole("queries", self.queries, 1, 1 << 28)


@dataclass(frozen=True)
class Terms:
    """`alpha`, the error of a hypothesis that is noticed, as a share; the number of `updates`;
    `epsilon` of each noise; the `step` of a change.

    `for_stream` sees no data. U = 2 ln(N) / alpha^2 changes are always enough: each of step 2 alpha
    takes alpha^2 / 2 off the relative entropy, at most ln N, if the hypothesis lies alpha / 2 away.
    Alpha is the least for which that holds except with probability beta: its half covers both
    noises of a test. The error is then at most 3/2 alpha; with a `share` of these changes alpha
    falls as its fourth root.
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
        """The terms with which this many updates are within the budget: a pure one by adding up, an
        approximate one in rho, from a `ConcentratedAccount`."""
        check_whole("updates", updates, 1, _MOST_UPDATES)
        return cls(alpha, updates, _each(budget, updates) / NANO, 2 * alpha)

    @classmethod
    def for_stream(
        cls, stream: Stream, budget: Loss, beta: float = 0.05, share: float = 1.0
    ) -> Self:
        """The least alpha, to a thousandth of it, that is right except with probability beta.
        Raises InputError where none below 1 is."""
        check_share("beta", beta)
        check_positive("the share of the updates", share)

        def updates(alpha: float) -> int:
            return math.ceil(share * 2 * math.log(stream.points) / alpha**2)

        def enough(alpha: float) -> bool:
            """True if all noises of the tests and counts stay below alpha n / 2 together, except
            with probability beta."""
            changes = updates(alpha)
            if changes > _MOST_UPDATES or (isinstance(budget, Pure) and budget.nano < 4 * changes):
                return False
            most = math.log(3 * stream.queries / beta) + math.log(3 * changes / beta)
            return most * NANO / _each(budget, changes) <= alpha * stream.size / 2

        low, high = 0.0, 1 - 1e-9
        if not enough(high):
            raise InputError(
                f"{stream.size:,} records are too few for an error below 1 within {budget}; give "
                "more records or a larger budget"
            )
        while high - low > high / 1000:
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return cls.of(high, updates(high), budget)

    @property
    def losses(self) -> tuple[Pure, ...]:
        """Of all possible questions, fixed beforehand: a test and a count for each change."""
        nano = nano_epsilon(self.epsilon)
        return (Pure(3 * nano), Pure(nano)) * self.updates


def _each(budget: Loss, updates: int) -> int:
    """Of 3 and 1 for each update, in nano-nats: 4 e in epsilon, (9 + 1) e^2 / 2 in rho, rounded up
    twice."""
    if isinstance(budget, Pure):
        nano = budget.nano // (4 * updates)
    else:
        nano = math.isqrt(max(0, rho_within(budget).atto_rho // updates - 2) // 5)
    if nano < 1:
        raise InputError(
            f"{budget} for {updates:,} updates leaves less than 1e-9 nats for each; give a larger "
            "budget or fewer updates"
        )
    return nano


@dataclass(frozen=True, eq=False)
class Answered:
    """Shares of the records for the first `done` queries of k, shape (k,), NaN for the rest; the
    last hypothesis; its number of changes."""

    shares: Floats
    done: int
    weights: Floats
    updates: int

    @property
    def halted(self) -> bool:
        return self.done < len(self.shares)

    @property
    def answered(self) -> float:
        return self.done / len(self.shares)

    def largest_error(self, truth: Counts, size: int) -> float:
        """Over the answered queries alone, as a share of the records; 0 where there is none."""
        return float(np.abs(self.shares[: self.done] - truth[: self.done] / size).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class MultiplicativeWeights:
    """Private multiplicative weights on a stream of counting queries, of a table of n records: a
    curator's adaptive algorithm.

    A hypothesis answers until a query's noisy count lies alpha away. A fresh noisy count then
    answers that query, and moves the weights. The run halts when the changes are used up. Privacy:
    `Terms.losses` at most, adaptively chosen: paid from an `Account` that adds epsilons, or a
    `ConcentratedAccount`. One round is a whole epoch, so that a well predicted query costs nothing;
    the analyst may still be adaptive (see `FirstFar`). Utility: 3/2 alpha where the terms are
    right; flat in k. A noisy histogram of N cells is better wherever memory holds the weights: N ln
    N / (n eps)^2 < alpha^2. Cost: O(k N) an update. Source: Hardt, Rothblum 2010; lecture notes 3.2
    with errata: the noisy count is compared with the hypothesis, and noise is of 1 / (eps n).
    """

    queries: CountingQueries
    size: int
    terms: Terms

    def __post_init__(self) -> None:
        Stream(self.size, self.queries.points, self.queries.k)

    def algorithm(self) -> Adaptive[Asks, int | None, Answered]:
        """Asks a `TrustedOracle`; a fresh start each time."""
        return Adaptive(self._play)

    def _play(self) -> Play[Asks, int | None, Answered]:
        queries, terms = self.queries, self.terms
        weights, shares = np.full(queries.points, 1 / queries.points), np.full(queries.k, np.nan)
        at = updates = 0
        threshold = max(1, round(terms.alpha * self.size))
        while at < queries.k and updates < terms.updates:
            (number,) = yield (FirstFar(Asked(queries, at, weights), threshold, terms.epsilon),)
            stop = queries.k if number is None else number
            if stop > at:
                shares[at:stop] = queries.part(at, stop).shares(weights)
            at = stop
            if number is not None:
                (count,) = yield (NoisyCount(queries, number, terms.epsilon),)
                assert count is not None  # only a test answers None
                shares[number], at, updates = count / self.size, number + 1, updates + 1
                weights = moved(weights, queries.values[number], count / self.size, terms.step)
        return Answered(shares, at, weights, updates)


def moved(weights: Floats, marks: Floats | np.ndarray, share: float, step: float) -> Floats:
    """The weights after one change, of sum 1: those of the counted points times e^step if their
    share is larger than expected, e^-step if not."""
    up = share > float(weights[marks].sum())
    product = weights * np.where(marks, math.exp(step if up else -step), 1.0)
    return np.asarray(product / product.sum())
