"""Small exact cases of the simulation of local randomizers by statistical queries: random extremal channels, and every answer an adversary may give."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, product
from typing import TypeAlias

import numpy as np

from local_dp.theorems.likelihood import accepted_law, ceiling_after, mean_ratio, query_value

Law: TypeAlias = Sequence[Fraction]
Channel: TypeAlias = Sequence[Law]  # one row for each value: the law of the report
Accept: TypeAlias = Callable[[Fraction, Fraction], Fraction]  # (ratio, ceiling) -> probability, as `rejection.acceptance`


def _solve(matrix: list[list[Fraction]]) -> list[Fraction] | None:
    """x with matrix x = (1, ..., 1), by Gauss and Jordan; None if the matrix is singular."""
    size = len(matrix)
    rows = [[*row, Fraction(1)] for row in matrix]
    for place in range(size):
        pivot = next((row for row in range(place, size) if rows[row][place]), None)
        if pivot is None:
            return None
        rows[place], rows[pivot] = rows[pivot], rows[place]
        rows[place] = [entry / rows[place][place] for entry in rows[place]]
        for row in range(size):
            if row != place and rows[row][place]:
                factor = rows[row][place]
                rows[row] = [entry - factor * own for entry, own in zip(rows[row], rows[place], strict=True)]
    return [row[-1] for row in rows]


def extremal_channel(growth: Fraction, values: int, reports: int, generator: np.random.Generator) -> Channel:
    """A random channel whose column w holds only m_w and growth * m_w: a vertex of the growth-bounded channels on that many values and reports.

    Draws 0/1 row patterns until the system that makes every row sum to 1 has a positive solution m.
    """
    while True:
        patterns = generator.integers(0, 2, (reports, reports))
        matrix = 1 + (float(growth) - 1) * patterns
        if abs(np.linalg.det(matrix)) < 1e-9 or np.linalg.solve(matrix, np.ones(reports)).min() < 1e-9:
            continue  # a quick look before the exact one
        scale = _solve([[growth if high else Fraction(1) for high in row] for row in patterns.tolist()])
        if scale is not None and min(scale) > 0:
            rows = patterns[generator.integers(0, reports, values)].tolist()
            return [tuple(m * growth if high else m for m, high in zip(scale, row, strict=True)) for row in rows]


def random_law(size: int, generator: np.random.Generator) -> Law:
    """A random distribution with small whole weights; often with little mass outside one value."""
    weights = generator.integers(1, 10, size) ** generator.integers(1, 4)
    return [Fraction(int(weight), int(weights.sum())) for weight in weights]


def mixture(shares: Law, columns: Channel) -> Law:
    """The law of the report of a value drawn from `shares`."""
    return [sum((share * row[w] for share, row in zip(shares, columns, strict=True)), Fraction(0)) for w in range(len(columns[0]))]


def signs(size: int) -> Iterator[tuple[int, ...]]:
    """Every pattern of +1 and -1."""
    return product((-1, 1), repeat=size)


def draw_laws(channel: Channel, shares: Law, growth: Fraction, tau: Fraction, accept: Accept) -> Iterator[Law]:
    """The law of one simulated draw under every pattern of answers that are off by exactly tau. The reference is value 0."""
    q, p = channel[0], mixture(shares, channel)
    true_answers = [query_value(own / candidate, growth) for own, candidate in zip(p, q, strict=True)]
    estimates = [{s: mean_ratio(answer + s * tau, growth) for s in (-1, 1)} for answer in true_answers]
    for pattern in signs(len(q)):
        yield accepted_law(q, [accept(estimate[s], growth) for estimate, s in zip(estimates, pattern, strict=True)])


@dataclass(frozen=True)
class Tree:
    """Two questions to the same individual, the second one chosen by the first reply: `second[a]` is its channel after reply a."""

    first: Channel
    second: Sequence[Channel]
    shares: Law
    growths: tuple[Fraction, Fraction]

    def law(self) -> Law:
        """The exact law of the transcript (a, b), a slowest."""
        return [
            sum((share * one[a] * two[b] for share, one, two in zip(self.shares, self.first, second, strict=True)), Fraction(0))
            for a, second in enumerate(self.second)
            for b in range(len(second[0]))
        ]

    def _means(self, tau: Fraction) -> tuple[list[dict[int, Fraction]], list[list[dict[int, Fraction]]]]:
        """The estimated mean likelihood ratios of (a) and of (a, b), for an answer pushed down and one pushed up."""
        one, two = self.growths
        law = iter(self.law())
        first, second = [], []
        for a, (own, candidate) in enumerate(zip(mixture(self.shares, self.first), self.first[0], strict=True)):
            first.append({s: mean_ratio(query_value(own / candidate, one) + s * tau, one) for s in (-1, 1)})
            pairs = [next(law) / (candidate * b) for b in self.second[a][0]]
            second.append([{s: mean_ratio(query_value(pair, one * two) + s * tau, one * two) for s in (-1, 1)} for pair in pairs])
        return first, second

    def simulated(self, tau: Fraction, accept: Accept) -> Iterator[Law]:
        """The law of the simulated transcript under every pattern of answers that are off by exactly tau."""
        one, two = self.growths
        first, second = self._means(tau)
        ceiling = ceiling_after(two, relative(one * two, tau), relative(one, tau))
        for early in signs(len(first)):
            means = [estimate[s] for estimate, s in zip(first, early, strict=True)]
            law = accepted_law(self.first[0], [accept(mean, one) for mean in means])
            branches: list[list[Law]] = []  # for each first reply, the law after it under every pattern of its own late answers
            for own, estimates, mean, candidates in zip(law, second, means, (channel[0] for channel in self.second), strict=True):
                accepts = [{s: accept(estimate[s] / mean, ceiling) for s in (-1, 1)} for estimate in estimates]
                afters = (accepted_law(candidates, [chances[s] for chances, s in zip(accepts, late, strict=True)]) for late in signs(len(estimates)))
                branches.append([[own * b for b in after] for after in afters])
            for transcript in product(*branches):
                yield list(chain.from_iterable(transcript))


def relative(growth: Fraction, tau: Fraction) -> Fraction:
    """tau' = (growth^2 - 1) tau / 2, the relative error of an estimated mean (`bounds.simulations.relative_error`, exactly)."""
    return (growth**2 - 1) * tau / 2


def within_draw_bound(distance: Fraction, growth: Fraction, tau: Fraction) -> bool:
    """Whether a draw's distance is within min(tau'/(1 + sqrt(1 - tau'^2)), sinh(eps) tau), decided without a root."""
    return distance <= (growth - 1 / growth) * tau / 2 and within_half_angle(distance, relative(growth, tau))


def within_half_angle(distance: Fraction, error: Fraction) -> bool:
    """Whether distance <= error / (1 + sqrt(1 - error^2)), which is 2 distance / (1 + distance^2) <= error."""
    return error > 1 or 2 * distance <= error * (1 + distance**2)
