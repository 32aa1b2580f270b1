"""The sparse vector technique, for a hypothesis: the first of many queries that it answers badly, at a price that does not depend on how many there are."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedLaplace, laplace_tail
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.laws import whole_weights
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.query_release.counting import MAX_RECORDS, CountingQueries
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, exp_epsilon, nano_epsilon

_LISTED = 12  # queries


@dataclass(frozen=True, eq=False)
class Asked:
    """The queries from number `start` on, and the weights, shape (N,) of sum 1, that say what is expected of each: public, and therefore floats."""

    queries: CountingQueries
    start: int
    weights: Floats

    def blocks(self, database: Counts) -> Iterator[tuple[int, Counts]]:
        """How far each count lies from what is expected, n times its share rounded to a whole number: block by block, each with its first query's number."""
        both = np.stack([database, self.queries.size_of(database) * self.weights], axis=1)
        for first, queries in self.queries.blocks(self.start):
            counts, expected = queries.sums(both).T  # counts are exact: see `MAX_RECORDS`
            yield first, counts.astype(np.int64) - np.rint(expected).astype(np.int64)


@dataclass(frozen=True, eq=False)
class FirstFar(Mechanism[Counts, int | None, Pure]):
    """The number of the first query whose noisy count lies `threshold` records or more, with noise, from what is expected of it; None if there is none.

    Each test is |count + Z - expected| >= threshold + W, Z fresh for each query and W drawn once, discrete Laplace of e^-`epsilon` a step both.
    Privacy: 3 epsilon, pure, for however many queries. A replaced record moves each count by at most 1: with W one larger, whatever did not fire does not, and
    the one that did still does with Z moved by at most 2, away from where it is expected (one map of Z for both sides, as W <= -threshold fires always).
    Utility: the first query further than threshold + 2 ln(k / beta) / eps is at most what is told, and nothing nearer than threshold - 2 ln(k / beta) / eps
    is told, but for a chance of 2 beta. Cost: one product of a block of the matrix with the counts, as far as the answer.
    What is asked may depend on answers: until one fires, these are what is expected, and known before.
    Source: Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Hardt, Rothblum 2010, with noisy answers compared, not thresholds (lecture notes 3.2, corrected).
    """

    asked: Asked
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
        for first, gaps in self.asked.blocks(database):
            far = np.abs(gaps + discrete_laplaces(draws, noise, len(gaps))) >= threshold
            if far.any():
                return first + int(far.argmax())
        return None

    def law(self, database: Counts) -> Law[int | None]:
        """Exactly, with e^eps replaced by a fraction just below it. Raises InputError above 12 queries.

        Thresholds of 0 and less are passed by the first query; those beyond all gaps are passed with chances c_i r^t, so that polynomials in r^t sum up.
        """
        gaps = [gap for _, block in self.asked.blocks(database) for gap in block.tolist()]
        if len(gaps) > _LISTED:
            raise InputError(f"there are {len(gaps)} queries; a law is listed up to {_LISTED}")
        names = [self.asked.start + place for place in range(len(gaps))]
        top = max(self.threshold, *map(abs, gaps))
        ratio = 1 / exp_epsilon(self._nano)
        found = dict.fromkeys([*names, None], Fraction(0))
        found[names[0]] = laplace_tail(self._nano, self.threshold)  # a noise of -threshold and less
        for t in range(1, top + 1):
            chance = (1 - ratio) / (1 + ratio) * ratio ** abs(t - self.threshold)
            far = [laplace_tail(self._nano, t - gap) + laplace_tail(self._nano, t + gap) for gap in gaps]
            for place, name in enumerate([*names, None]):
                found[name] += chance * prod(1 - each for each in far[:place]) * (far[place] if name is not None else 1)
        for place, name in enumerate([*names, None]):
            heads = [(ratio**-gap + ratio**gap) / (1 + ratio) for gap in gaps[: place + 1]]
            found[name] += self._beyond(heads[:place], heads[place] if name is not None else None, top + 1, ratio)
        return whole_weights(found)

    @property
    def _nano(self) -> int:
        return nano_epsilon(self.epsilon)

    def _beyond(self, passed: list[Fraction], fired: Fraction | None, start: int, ratio: Fraction) -> Fraction:
        """The sum over t >= start of Pr[W = t - threshold] prod(1 - c r^t) times c' r^t, if one fired."""
        product = [Fraction(1)]
        for head in passed:
            product = [here - head * before for here, before in zip([*product, Fraction(0)], [Fraction(0), *product], strict=True)]
        if fired is not None:
            product = [Fraction(0), *(fired * term for term in product)]
        first = (1 - ratio) / (1 + ratio) * ratio ** (start - self.threshold)
        return sum((term * first * ratio ** (power * start) / (1 - ratio ** (power + 1)) for power, term in enumerate(product)), Fraction(0))


@dataclass(frozen=True, eq=False)
class NoisyCount(Mechanism[Counts, int, Pure]):
    """The count of query number `query`, plus discrete Laplace noise, clipped to 0..n. Privacy: epsilon, pure. Utility: standard error sqrt(2) / eps."""

    queries: CountingQueries
    query: int
    epsilon: float

    def __post_init__(self) -> None:
        check_whole("query", self.query, 0, self.queries.k - 1)
        nano_epsilon(self.epsilon)

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    def release(self, database: Counts, draws: Draws) -> int:
        count, noise = self._counted(database)
        return noise.add(count, draws)

    def law(self, database: Counts) -> Law[int]:
        count, noise = self._counted(database)
        return noise.law(count)

    def _counted(self, database: Counts) -> tuple[int, ClippedLaplace]:
        size = self.queries.size_of(database)
        return int(database[self.queries.values[self.query]].sum()), ClippedLaplace(nano_epsilon(self.epsilon), 1, size)
