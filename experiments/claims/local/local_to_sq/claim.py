"""Statistical queries simulate local randomizers: the exact distance on small domains, and how many
queries it takes."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.bounds.simulations import conditional_draw_distance, draw_distance, relative_error
from local_dp.experiments.claims.local.local_to_sq.laws import (
    OneReply,
    TwoReplies,
    law_points,
    laws_drawn,
)
from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    Check,
    Experiment,
    Figure,
    Finding,
    LogFigure,
    LogLogFigure,
    Points,
    Positive,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    about_log,
    curve,
    curve_of,
    drawn,
    grid,
    measured,
    table_of,
)
from local_dp.theorems.likelihood import (
    acceptance,
    accepted_law,
    ceiling_after,
    mean_ratio,
    query_value,
    total_variation,
)

Law = Sequence[Fraction]
Channel = Sequence[Law]  # one row for each value: the law of the report
Estimates = dict[int, Fraction]  # by the sign of the error
# (ratio, ceiling) -> probability, as `rejection.acceptance`
Accept = Callable[[Fraction, Fraction], Fraction]


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
                factor, own = rows[row][place], rows[place]
                rows[row] = [
                    entry - factor * each for entry, each in zip(rows[row], own, strict=True)
                ]
    return [row[-1] for row in rows]


def extremal_channel(growth: Fraction, values: int, reports: int, generator: Generator) -> Channel:
    """A random channel whose column w holds only m_w and growth * m_w: a vertex of the
    growth-bounded channels on that many values and reports.

    Draws 0/1 row patterns until the system that makes every row sum to 1 has a positive solution m.
    """
    while True:
        patterns = generator.integers(0, 2, (reports, reports))
        matrix = 1 + (float(growth) - 1) * patterns
        singular = abs(np.linalg.det(matrix)) < 1e-9
        if singular or np.linalg.solve(matrix, np.ones(reports)).min() < 1e-9:
            continue  # a quick look before the exact one
        entries = (Fraction(1), growth)
        scale = _solve([[entries[high] for high in row] for row in patterns.tolist()])
        if scale is not None and min(scale) > 0:
            rows = patterns[generator.integers(0, reports, values)].tolist()
            columns = [(m, m * growth) for m in scale]
            return [
                tuple(pair[high] for pair, high in zip(columns, row, strict=True)) for row in rows
            ]


def random_law(size: int, generator: Generator) -> Law:
    """A random distribution with small whole weights; often with little mass outside one value."""
    weights = generator.integers(1, 10, size) ** generator.integers(1, 4)
    return [Fraction(int(weight), int(weights.sum())) for weight in weights]


def mixture(shares: Law, channel: Channel) -> Law:
    """The law of the report of a value drawn from `shares`."""
    return [_product(shares, column) for column in zip(*channel, strict=True)]


def _product(shares: Law, column: Law) -> Fraction:
    return sum((share * each for share, each in zip(shares, column, strict=True)), Fraction(0))


def signs(size: int) -> Iterator[tuple[int, ...]]:
    """Every pattern of +1 and -1."""
    return product((-1, 1), repeat=size)


def _estimates(ratios: Iterable[Fraction], growth: Fraction, tau: Fraction) -> list[Estimates]:
    """Of mean likelihood ratios, from their answers pushed down and pushed up by tau."""
    answers = [query_value(ratio, growth) for ratio in ratios]
    return [{s: mean_ratio(answer + s * tau, growth) for s in (-1, 1)} for answer in answers]


def _pick(estimates: Sequence[Estimates], pattern: Sequence[int]) -> list[Fraction]:
    return [estimate[s] for estimate, s in zip(estimates, pattern, strict=True)]


def draw_laws(
    channel: Channel, shares: Law, growth: Fraction, tau: Fraction, accept: Accept
) -> Iterator[Law]:
    """The law of one simulated draw under every pattern of answers that are off by exactly tau. The
    reference is value 0."""
    q, p = channel[0], mixture(shares, channel)
    ratios = (own / candidate for own, candidate in zip(p, q, strict=True))
    estimates = _estimates(ratios, growth, tau)
    for pattern in signs(len(q)):
        yield accepted_law(q, [accept(mean, growth) for mean in _pick(estimates, pattern)])


@dataclass(frozen=True)
class Tree:
    """Two questions to the same individual, the second one chosen by the first reply: `second[a]`
    is its channel after reply a."""

    first: Channel
    second: Sequence[Channel]
    shares: Law
    growths: tuple[Fraction, Fraction]

    def law(self) -> Law:
        """The exact law of the transcript (a, b), a slowest."""
        law: list[Fraction] = []
        for replies, second in zip(zip(*self.first, strict=True), self.second, strict=True):
            joint = [share * each for share, each in zip(self.shares, replies, strict=True)]
            law += mixture(joint, second)
        return law

    def _means(self, tau: Fraction) -> tuple[list[Estimates], list[list[Estimates]]]:
        """The estimated mean likelihood ratios of (a) and of (a, b)."""
        one, two = self.growths
        law, candidates = iter(self.law()), self.first[0]
        own = mixture(self.shares, self.first)
        ratios = (share / candidate for share, candidate in zip(own, candidates, strict=True))
        second = []
        for candidate, channel in zip(candidates, self.second, strict=True):
            pairs = [next(law) / (candidate * b) for b in channel[0]]
            second.append(_estimates(pairs, one * two, tau))
        return _estimates(ratios, one, tau), second

    def simulated(self, tau: Fraction, accept: Accept) -> Iterator[Law]:
        """The law of the simulated transcript under every pattern of answers that are off by
        exactly tau."""
        one, two = self.growths
        first, second = self._means(tau)
        ceiling = ceiling_after(two, relative(one * two, tau), relative(one, tau))
        candidates = [channel[0] for channel in self.second]
        for early in signs(len(first)):
            means = _pick(first, early)
            law = accepted_law(self.first[0], [accept(mean, one) for mean in means])
            # for each first reply, the laws after it under every pattern of its own late answers
            branches = []
            for own, mean, estimates, q in zip(law, means, second, candidates, strict=True):
                accepts = [
                    {s: accept(estimate[s] / mean, ceiling) for s in (-1, 1)}
                    for estimate in estimates
                ]
                afters = (accepted_law(q, _pick(accepts, late)) for late in signs(len(q)))
                branches.append([[own * b for b in after] for after in afters])
            for transcript in product(*branches):
                yield list(chain.from_iterable(transcript))


def relative(growth: Fraction, tau: Fraction) -> Fraction:
    """tau' = (growth^2 - 1) tau / 2, the relative error of an estimated mean
    (`bounds.simulations.relative_error`, exactly)."""
    return (growth**2 - 1) * tau / 2


def within_draw_bound(distance: Fraction, growth: Fraction, tau: Fraction) -> bool:
    """True if a draw's distance is within min(tau'/(1 + sqrt(1 - tau'^2)), sinh(eps) tau), decided
    without a root."""
    return distance <= (growth - 1 / growth) * tau / 2 and within_half_angle(
        distance, relative(growth, tau)
    )


def within_half_angle(distance: Fraction, error: Fraction) -> bool:
    """True if distance <= error / (1 + sqrt(1 - error^2)), which is 2 distance / (1 + distance^2)
    <= error."""
    return error > 1 or 2 * distance <= error * (1 + distance**2)


class Distances(Row):
    tau: float
    worst: float  # total variation, over all patterns of errors of size tau
    bound: float  # on it
    outside: int  # patterns that exceed the bound
    patterns: int

    @property
    def ratio(self) -> float:
        return self.worst / self.bound if self.bound else 0.0


def _tolerance(share: float, growth: Fraction) -> Fraction:
    """In units of the one where tau' = 1, or of 0.9."""
    unit = min(2 / (growth**2 - 1), Fraction(9, 10))
    return Fraction(share).limit_denominator(100) * unit


class Draw(Row):
    """Random channels with |Z| <= 6 and |W| <= 5, all sign patterns. `share` is the tolerance in
    units of the one where tau' = 1, or of 0.9."""

    epsilon: float
    share: float
    channels: int
    batch: int

    def measure(self, seed: int, accept: Accept) -> Distances:
        generator = default_rng([seed, 1, self.batch, round(1000 * self.epsilon)])
        growth = Fraction(math.exp(self.epsilon)).limit_denominator(1000)
        tau = _tolerance(self.share, growth)
        distances: list[Fraction] = []
        for _ in range(self.channels):
            values, reports = int(generator.integers(2, 7)), int(generator.integers(2, 6))
            channel = extremal_channel(growth, values, reports, generator)
            shares = random_law(values, generator)
            truth = mixture(shares, channel)
            laws = draw_laws(channel, shares, growth, tau, accept)
            distances += (total_variation(law, truth) for law in laws)
        outside = sum(not within_draw_bound(distance, growth, tau) for distance in distances)
        bound = draw_distance(math.log(growth), float(tau))
        return Distances(float(tau), float(max(distances)), bound, outside, len(distances))


class Trees(Row):
    """Random trees of two replies, |Z| <= 5, 2 reports and then 3; all sign patterns of all eight
    answers."""

    epsilon: float
    share: float
    trees: int
    batch: int

    def measure(self, seed: int, accept: Accept) -> Distances:
        generator = default_rng([seed, 2, self.batch, round(1000 * self.epsilon)])
        one, two = (
            Fraction(math.exp(self.epsilon * part)).limit_denominator(100) for part in (0.6, 0.4)
        )
        tau = _tolerance(self.share, one * two)
        bound = draw_distance(math.log(one), float(tau))
        bound += conditional_draw_distance(math.log(one * two), float(tau))
        distances: list[Fraction] = []
        for _ in range(self.trees):
            values = int(generator.integers(2, 6))
            second = [extremal_channel(two, values, 3, generator) for _ in range(2)]
            first = extremal_channel(one, values, 2, generator)
            tree = Tree(first, second, random_law(values, generator), (one, two))
            truth = tree.law()
            distances += (total_variation(law, truth) for law in tree.simulated(tau, accept))
        outside = sum(distance > bound for distance in distances)
        return Distances(float(tau), float(max(distances)), bound, outside, len(distances))


class Queries(Row):
    """Queries per answer, with the standard error of their logarithm, and the predicted number."""

    epsilon: float
    answers: int
    mean: Positive
    law: float  # of their mean

    @property
    def ends(self) -> tuple[float, float]:
        """Of the 95 % interval."""
        return about_log(self.mean.value, self.mean.error)

    @property
    def growth(self) -> float:
        return math.exp(self.epsilon)


Merged = Rows[Draw | Trees, Distances]


@dataclass(frozen=True)
class LocalToSq(Experiment):
    """`accept` and `same` are the protocol under test; a wrong one must make the verdict "not
    shown"."""

    name = "local-to-sq"
    chapter = LOCAL_MODEL
    title = (
        "Anything a non-interactive survey of randomized answers learns, averages alone can learn"
    )
    claim = (
        "An algorithm that sees only privately randomized answers can be run without asking "
        "anybody: every answer is drawn from approximate averages over the population "
        "(statistical queries). However the averages err within their tolerance tau, the drawn "
        "answers are within a computable total variation of real ones, also where a second "
        "question depends on the first answer. It takes about e^epsilon averages an answer."
    )
    source = "KLNRS 2008, Lemmas 4.4 and 4.5, with the constants of limits 6"
    accept: Accept = acceptance
    same: bool = True

    def points(self, scale: Scale) -> Points:
        full = scale == "full"
        batches = range(10 if full else 1)
        epsilons = (0.1, 0.5, 1.0, 2.0, 3.0) if full else (0.1, 1.0, 3.0)
        fine, coarse = (0.05, 0.25, 1.0), (0.05, 0.25, 1.0, 4.0)
        draws = []
        for epsilon in epsilons:
            draws += grid(Draw, [epsilon], fine if epsilon < 2 else coarse, [15], batches)
        sizes = (0.5, 1.0, 2.0) if full else (0.5, 2.0)
        trees = grid(Trees, sizes, (0.0, 0.5, 0.95), [6], batches)
        return [*draws, *trees, *law_points(scale)]

    def measure(self, point: Any, seed: int) -> Any:
        if isinstance(point, (Draw, Trees)):
            return point.measure(seed, self.accept)
        if isinstance(point, TwoReplies):
            return point.measure(seed, same=self.same)
        return point.measure(seed)

    def finding(self, sheet: Sheet) -> Finding:
        draws, trees = _merge(sheet[Draw]), _merge(sheet[Trees])
        pairs = sheet[TwoReplies]
        one, two, refusals = laws_drawn(sheet[OneReply], pairs)
        queries = [
            _queries(point, replies.asked)
            for point, replies in pairs
            if (point.people, point.bias, point.tier) == ("correlated", "exact", "sq")
        ]
        ratios = {f"epsilon {each.epsilon:g}": each.mean / each.law for each in queries}
        checks = [
            _within(
                "The rejection step, one answer: total variation within the bound for every "
                "channel and every way to err",
                draws,
            ),
            _within("The rejection step, two answers of one individual: the same", trees),
        ]
        checks += [
            drawn(
                "The shipped simulation draws one answer from its law: the real one where the "
                "averages are exact, the predicted one where they err, also where an estimate "
                "must be moved back and where no candidate is accepted in time",
                one,
                "; ".join(refusals),
                also=not refusals,
            ),
            drawn(
                "It draws two answers of one individual, the second question chosen by the first "
                "answer, from their joint law, as real clients do",
                two,
            ),
            measured(
                "It asks e^epsilon averages for a first answer, and (1 + tau')/(1 - tau') times "
                "that for a second (in units of the mean of both)",
                ratios,
                1,
                1,
            ),
        ]
        tables, figures = _tables(draws, trees, queries), _figures(draws, queries)
        return Finding(checks, tables, figures, headline=_headline([*draws, *trees], queries))


def _merge(rows: Merged) -> Merged:
    """One row for each (epsilon, share): the worst of its batches."""
    batches: dict[tuple[float, float], Merged] = {}
    for point, distances in rows:
        batches.setdefault((point.epsilon, point.share), []).append((point, distances))
    worst_rows = []
    for _, each in sorted(batches.items()):
        (point, last), own = each[-1], [distances for _, distances in each]
        worst, outside = max(one.worst for one in own), sum(one.outside for one in own)
        patterns = sum(one.patterns for one in own)
        worst_rows.append((point, Distances(last.tau, worst, last.bound, outside, patterns)))
    return worst_rows


def _outside(rows: Merged) -> tuple[int, int]:
    own = [distances for _, distances in rows]
    return sum(each.outside for each in own), sum(each.patterns for each in own)


def _within(statement: str, rows: Merged) -> Check:
    outside, patterns = _outside(rows)
    worst = max(distances.ratio for _, distances in rows if distances.bound)
    # `outside` may be decided by another way to the bound
    below = all(distances.worst <= distances.bound * (1 + 1e-12) for _, distances in rows)
    return Check(
        statement,
        patterns > 0 and outside == 0 and below,
        f"{outside} of {patterns} exact cases outside; the worst reaches {worst:.3f} of its bound",
    )


def _queries(point: TwoReplies, count: int) -> Queries:
    """Each answer asks a geometric number, independent of the others: the variance is known, and
    the mean of thousands is all but normal."""
    growth, n = math.exp(point.epsilon), point.draws
    rise = 1 + relative_error(2 * point.epsilon, point.tolerance)
    ceiling = growth * rise / (1 - relative_error(point.epsilon, point.tolerance))
    total = growth + ceiling
    error = math.sqrt((growth * (growth - 1) + ceiling * (ceiling - 1)) / n) / total
    return Queries(point.epsilon, 2 * n, Positive(count / (2 * n), error), total / 2)


def _headline(rows: Merged, queries: list[Queries]) -> str:
    outside, patterns = _outside(rows)
    averages = "an unknown number of averages"
    if queries:
        last = queries[-1]
        averages = f"{last.mean.value:.2f} averages at epsilon {last.epsilon:g}"
    return (
        f"A simulated answer takes {averages}. In {outside} of {patterns:,} exact cases its law "
        "is farther from a real answer's than the bound allows."
    )


DISTANCES = (
    "epsilon | tolerance = tau | exact cases = patterns | worst distance = worst | bound | worst "
    "/ bound = ratio"
)


def _tables(draws: Merged, trees: Merged, queries: list[Queries]) -> list[Table]:
    averages = (
        "epsilon | answers | averages an answer = mean.value | low = ends.0 | high = ends.1 | "
        "predicted = law | e^epsilon = growth"
    )
    return [
        table_of("One answer: exact total variation against the bound", DISTANCES, draws),
        table_of(
            "Two answers of one individual: exact total variation against the bound",
            DISTANCES,
            trees,
        ),
        table_of("Averages asked an answer, interactive", averages, queries),
    ]


def _figures(draws: Merged, queries: list[Queries]) -> list[Figure]:
    curves = []
    for epsilon in sorted({point.epsilon for point, _ in draws}):
        rows = [distances for point, distances in draws if point.epsilon == epsilon]
        curves.append(curve_of(f"worst found, epsilon {epsilon:g}", "tau | worst", rows))
        curves.append(curve_of(f"bound, epsilon {epsilon:g}", "tau | bound", rows, "bound"))
    means = [(each.epsilon, each.mean.value, *each.ends) for each in queries]
    averages = [
        curve("measured", means, group="averages"),
        curve_of("e^epsilon", "epsilon | growth", queries, "theory", "averages"),
    ]
    distance = "Distance of a simulated answer from a real one"
    axis = "tolerance of the averages"
    title, epsilon_axis = "Averages asked an answer", "epsilon of an answer"
    return [
        LogLogFigure("distance", distance, axis, "total variation", curves, "one-round"),
        LogFigure("queries", title, epsilon_axis, "averages", averages, "interactive"),
    ]


EXPERIMENT = LocalToSq()
