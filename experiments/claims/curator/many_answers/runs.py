"""What `many-answers` measures: errors of many queries answered at once, and the exact losses of
whole transcripts."""

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng
from scipy import special

from local_dp.accounting.losses import rho_within
from local_dp.arrays import Counts, Floats
from local_dp.curator.account import Account, ConcentratedAccount, TrustedOracle
from local_dp.curator.intervals import Level
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.marginals.base import Errors as CellErrors
from local_dp.curator.marginals.baselines import OneMarginal, PlainGaussian, independent, on_simplex
from local_dp.curator.marginals.fourier import FourierGaussian, NoisyCharacters, nearest_table
from local_dp.curator.mechanism import SmallDatabases, epsilon_of, worst_transcripts
from local_dp.curator.multisets import Multiset
from local_dp.curator.query_release.boosting import (
    Boosted,
    Boosting,
    BoostingTerms,
    CountedBase,
)
from local_dp.curator.query_release.counting import (
    CountingQueries,
    GaussianAnswers,
    LaplaceAnswers,
    SmallDatabase,
    table,
)
from local_dp.curator.query_release.mwem import CountingMwem
from local_dp.curator.query_release.pmw import Answered, MultiplicativeWeights, Stream, Terms
from local_dp.curator.query_release.synthetic import (
    DualQuery,
    Mwem,
    PureRounds,
    concentrated_mwem,
    concentrated_rounds,
    pure_mwem,
)
from local_dp.draws import Draws
from local_dp.experiments.lab.parts import Row, seeded
from local_dp.interaction import run
from local_dp.loss import Pure, approximate

EPSILON, DELTA = 1.0, 1e-6
BUDGET = approximate(EPSILON, DELTA)
POINTS_BITS = 8  # N = 256
RECORDS = 100_000
HISTOGRAMS, NOISES = 8, 5  # of each table: they vary most, and cost least
NOTHING, LAPLACE, GAUSSIAN, HISTOGRAM = "no data", "Laplace", "Gaussian", "histogram"
WEIGHTS: dict[str, float] = {
    "PMW": 1.0,
    "PMW, a tenth of the changes": 0.1,
    "PMW, a fiftieth of the changes": 0.02,
}
PMW, TENTH, HALTED = WEIGHTS
PRODUCT, DUAL, PURE, CONCENTRATED = (
    "product of columns",
    "DualQuery",
    "MWEM, pure",
    "MWEM, concentrated",
)
FOURIER, NEAREST = "Fourier mechanism", "Fourier, nearest table"
SMALL = "BLR"
BOOSTED, SYNOPSIS, FITTED, WORST = (
    "boosting",
    "boosting, one synopsis",
    "weights fitted once",
    "MWEM, query by query",
)
BOOSTED_RUNS, WORST_RUNS = 4, 3
BOOSTED_QUERIES = (1000, 10_000)  # from, to
ROUNDS, SAMPLES, MARGIN, ETA = 10, 100, RECORDS // 50, 0.4  # of boosting
# by the rule for marginals, which sees no data
WORST_ROUNDS = concentrated_rounds(POINTS_BITS, RECORDS, rho_within(BUDGET).rho)


Named = dict[str, list[float]]


class Errors(Row):
    """By answer and run, as shares of the records: the largest error, and the mean one of
    marginals.

    Of noise also the largest error by its law, and further ones in units of it; of PMW alpha and
    the share that it answered.
    """

    errors: Named
    means: Named = field(default_factory=dict)
    predicted: Named = field(default_factory=dict)
    noise: Named = field(default_factory=dict)
    answered: Named = field(default_factory=dict)
    alpha: dict[str, float] = field(default_factory=dict)


def _add(errors: Named, values: Mapping[str, float]) -> None:
    for name, value in values.items():
        errors.setdefault(name, []).append(value)


def zipf(generator: Generator) -> Counts:
    """n records of 256 points, point number i of weight 1 / i, the points in a random order."""
    weights = generator.permutation(1 / np.arange(1, (1 << POINTS_BITS) + 1))
    return generator.multinomial(RECORDS, weights / weights.sum())


def noisy_histogram(database: Counts, draws: Draws) -> Floats:
    """Pure noise on every cell, then the nearest shares; the cells are 2^bits."""
    bits, cells = len(database).bit_length() - 1, np.flatnonzero(database)
    noisy = Level(bits, 1, EPSILON).release(
        Multiset(bits, cells.astype(np.uint64), database[cells]), draws
    )
    return on_simplex(noisy.counts.astype(np.float64), float(database.sum()))


class Queries(Row):
    """k random queries on 100,000 records of 256 points."""

    k: int
    runs: int

    def measure(self, seed: int) -> Errors:
        k, errors, predictions, noise, shares = self.k, Named(), Named(), Named(), Named()
        for trial in range(self.runs):
            generator = default_rng([seed, k, trial])
            draws = seeded(seed, k << 8 | trial)
            database = zipf(generator)
            queries = CountingQueries.random(k, 1 << POINTS_BITS, generator)
            truth = queries.counts(database)
            laplace = LaplaceAnswers(queries, EPSILON, DELTA)
            gaussian = GaussianAnswers(queries, EPSILON, DELTA)
            uniform = queries.shares(np.full(queries.points, RECORDS / queries.points))
            _add(errors, _largest({NOTHING: uniform}, truth))
            noisy = {
                LAPLACE: laplace.release(database, draws),
                GAUSSIAN: gaussian.release(database, draws),
            }
            histogram = queries.shares(noisy_histogram(database, draws))
            _add(errors, _largest({**noisy, HISTOGRAM: histogram}, truth))
            deviation = math.sqrt(gaussian.variance)
            laws = {
                LAPLACE: largest_exponential(k) / laplace.part.epsilon,
                GAUSSIAN: largest_normal(k) * deviation,
            }
            _add(predictions, {name: law / RECORDS for name, law in laws.items()})
            for name, share in WEIGHTS.items():
                run = _weigh(database, queries, share, draws)
                _add(errors, {name: run.largest_error(truth, RECORDS)})
                _add(shares, {name: run.answered})
            if BOOSTED_QUERIES[0] <= k <= BOOSTED_QUERIES[1] and trial < BOOSTED_RUNS:
                others = seeded(seed, k << 8 | 1 << 7 | trial)
                _add(errors, _boost(database, queries, truth, others))
                if trial < WORST_RUNS:
                    _add(errors, _largest({WORST: _by_mwem(database, queries, others)}, truth))
            for _ in range(NOISES):
                again = {
                    LAPLACE: laplace.release(database, draws),
                    GAUSSIAN: gaussian.release(database, draws),
                }
                largest = _largest(again, truth, 1)
                _add(noise, {name: largest[name] / law for name, law in laws.items()})
        alpha = {name: _terms(k, share).alpha for name, share in WEIGHTS.items()}
        return Errors(errors, predicted=predictions, noise=noise, answered=shares, alpha=alpha)


def _largest(
    answers: Mapping[str, Floats | Counts], truth: Counts, n: int = RECORDS
) -> dict[str, float]:
    """The largest error of each way, as a share of n records."""
    return {name: float(np.abs(each - truth).max()) / n for name, each in answers.items()}


def _by_mwem(database: Counts, queries: CountingQueries, draws: Draws) -> Floats:
    mwem = CountingMwem(queries, WORST_ROUNDS, EPSILON, DELTA)
    (weights,) = TrustedOracle(database, Account(BUDGET), draws).answer((mwem,))
    return RECORDS * queries.shares(weights)


@cache
def boosting_terms(rounds: int, samples: int) -> BoostingTerms:
    """At (EPSILON, DELTA), about half of the squares of all losses for the samples: the scores of
    round t move by t."""
    squares = samples * sum(t * t for t in range(1, rounds)) + rounds * samples
    each = 0.1 / math.sqrt(squares)
    step = math.log((1 + 2 * ETA) / (1 - 2 * ETA)) / 2
    base = CountedBase(each * math.sqrt(squares / (rounds * samples)))
    return BoostingTerms(rounds, samples, MARGIN, math.ceil(4 * step / each), step, base).within(
        BUDGET
    )


def _boost(
    database: Counts, queries: CountingQueries, truth: Counts, draws: Draws
) -> dict[str, float]:
    """Of boosting, of its synopses in the mean, and of weights fitted to noisy counts of as many
    queries, or all, at once: each at the same price."""
    results = list[Boosted]()
    for terms in ((ROUNDS, SAMPLES), (1, ROUNDS * SAMPLES)):
        boosting = Boosting(queries, boosting_terms(*terms), DELTA)
        results += TrustedOracle(database, Account(BUDGET), draws).answer((boosting,))
    many, once = results
    synopses = float(np.abs(many.answers - truth).max(axis=1).mean())
    largest = _largest({BOOSTED: many.counts, FITTED: once.counts}, truth)
    return {**largest, SYNOPSIS: synopses / RECORDS}


@cache
def largest_exponential(k: int) -> float:
    """The expected largest of k standard exponential variables."""
    return float(np.sum(1 / np.arange(1, k + 1)))


@cache
def largest_normal(k: int) -> float:
    """The expected largest absolute value of k standard normal variables."""
    places = np.linspace(0, 10, 100_001)
    return float(np.trapezoid(1 - (1 - 2 * special.ndtr(-places)) ** k, places))


@cache
def _terms(k: int, share: float) -> Terms:
    return Terms.for_stream(Stream(RECORDS, 1 << POINTS_BITS, k), BUDGET, share=share)


def _weigh(database: Counts, queries: CountingQueries, share: float, draws: Draws) -> Answered:
    weights = MultiplicativeWeights(queries, RECORDS, _terms(queries.k, share))
    return run(weights.algorithm(), TrustedOracle(database, ConcentratedAccount(BUDGET), draws))


class Small(Row):
    """All 27 conjunctions of 3 bits of n records, by small databases of so many rows and by their
    baselines."""

    n: int
    rows: tuple[int, ...]
    runs: int

    def measure(self, seed: int) -> Errors:
        n, queries, errors = self.n, CountingQueries.conjunctions(3), Named()
        for trial in range(self.runs):
            draws = seeded(seed, n << 8 | trial)
            database = default_rng([seed, n, trial]).multinomial(n, np.arange(1, 9) / 36)
            truth = queries.counts(database)
            noise = LaplaceAnswers(queries, EPSILON, DELTA).release(database, draws)
            answers: dict[str, Floats | Counts] = {
                LAPLACE: noise,
                HISTOGRAM: queries.shares(noisy_histogram(database, draws)),
            }
            for rows in self.rows:
                small = np.array(SmallDatabase(queries, rows, EPSILON).release(database, draws))
                answers[f"{SMALL}, {rows} rows"] = queries.shares(small * n / rows)
            _add(errors, _largest(answers, truth, n))
            for _ in range(HISTOGRAMS - 1):
                again = queries.shares(noisy_histogram(database, draws))
                _add(errors, _largest({HISTOGRAM: again}, truth, n))
        return Errors(errors)


def population(n: int, d: int) -> BinaryTable:
    """n records of d columns from three kinds of people, fixed for each d: each kind has its own
    probability of 1 for every column."""
    fixed = default_rng([17, d])
    chances, shares = fixed.uniform(0.05, 0.95, (3, d)), (0.5, 0.3, 0.2)
    generator = default_rng([18, d, n])
    return BinaryTable.of(generator.random((n, d)) < chances[generator.choice(3, n, p=shares)])


class AllMarginals(Row):
    """All 3-way marginals of n records of d columns, cell by cell."""

    n: int
    d: int
    runs: int

    def measure(self, seed: int) -> Errors:
        database, workload = population(self.n, self.d), Marginals.ways(self.d, 3)
        truth, largest, means = workload.answers(database), Named(), Named()
        for trial in range(self.runs):
            for name, answer in ANSWERS.items():
                cells = answer(database, workload, seeded(seed, self.n << 8 | trial))
                errors = CellErrors.of(cells, truth, self.n)
                _add(largest, {name: errors.largest})
                _add(means, {name: errors.mean})
        return Errors(largest, means)


def _characters(database: BinaryTable, workload: Marginals, draws: Draws) -> NoisyCharacters:
    return FourierGaussian(workload, EPSILON, DELTA).release(database, draws)


def _histogram(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    noisy = OneMarginal(database.d, (1 << database.d) - 1, EPSILON).release(database, draws)
    return workload.of_histogram(on_simplex(noisy.counts.astype(np.float64), database.size))


def _dual(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    dual = DualQuery.within(workload, database.size, EPSILON)
    oracle = TrustedOracle(database, Account(Pure(BUDGET.nano)), draws)
    game = dual.algorithm(database.size, int(draws.words(1)[0] >> np.uint64(32)))
    return run(game, oracle).answers(workload)


def _pure(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    game = pure_mwem(workload, database.size, EPSILON).algorithm(database.size)
    oracle = TrustedOracle(database, Account(Pure(BUDGET.nano)), draws)
    return run(game, oracle).answers(workload)


def _in_rho(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    game = concentrated_mwem(workload, database.size, BUDGET).algorithm(database.size)
    oracle = TrustedOracle(database, ConcentratedAccount(BUDGET), draws)
    return run(game, oracle).answers(workload)


ANSWERS: dict[str, Callable[[BinaryTable, Marginals, Draws], Floats]] = {
    PRODUCT: lambda database, workload, draws: independent(
        _characters(database, Marginals.ways(database.d, 1), draws)
    ).cells(workload),
    HISTOGRAM: _histogram,
    GAUSSIAN: lambda database, workload, draws: PlainGaussian(workload, EPSILON, DELTA).release(
        database, draws
    ),
    DUAL: _dual,
    PURE: _pure,
    CONCENTRATED: _in_rho,
    FOURIER: lambda *terms: _characters(*terms).cells,
    NEAREST: lambda database, workload, draws: workload.of_histogram(
        nearest_table(_characters(database, workload, draws))
    ),
}


class Share(Row):
    share: float  # of the stated loss


class Privacy(Row):
    """The largest loss of a whole transcript over all pairs of small neighbours."""

    what: str

    def measure(self, seed: int) -> Share:
        return Share(PROVED[self.what]())


def _prove_weights() -> float:
    """N = 2, k = 3, n = 1: an epoch that ends with a change costs 4, one that does not 1."""
    queries = CountingQueries(np.array([(True, False)] * 3))
    weights = MultiplicativeWeights(queries, 1, Terms(0.9, 3, EPSILON, 0.5))
    worst = worst_transcripts(weights.algorithm(), _counts(2, 1))
    shares = []
    for transcript, ratio in worst.items():
        changes, queries_after = divmod(len(transcript), 2)
        shares.append(epsilon_of(ratio) / (4 * changes + queries_after))
    return max(shares)


def _counts(points: int, n: int) -> SmallDatabases[Any, Any]:
    """All tables of n records of so many points, as counts."""
    universe = [(point,) for point in range(points)]
    return SmallDatabases(
        universe,
        n,
        lambda records: table(np.array(records).ravel(), points),
    )


def _worst(game: Any, databases: SmallDatabases[Any, Any]) -> float:
    """The largest loss of a whole transcript."""
    return epsilon_of(max(worst_transcripts(game, databases).values()))


def _tables(n: int) -> SmallDatabases[Any, Any]:
    """All tables of n records of two bits."""
    universe = [(row,) for row in range(4)]
    return SmallDatabases(
        universe,
        n,
        lambda records: BinaryTable(2, np.array(records, dtype=np.uint64).ravel()),
    )


def _prove_mwem() -> float:
    """N = 4, n = 1, two rounds, all 1-way marginals."""
    mwem = Mwem(Marginals.ways(2, 1), PureRounds(2, EPSILON, EPSILON))
    return _worst(mwem.algorithm(1), _tables(1)) / mwem.loss.epsilon


def _prove_dual() -> float:
    """N = 4, n = 2, three rounds."""
    dual = DualQuery(Marginals.ways(2, 1), 3, 1, 0.5)
    price = sum(loss.epsilon for loss in dual.losses(2))
    return _worst(dual.algorithm(2, 1), _tables(2)) / price


def _prove_small() -> float:
    """N = 4, n = 2, three rows, all conjunctions."""
    small = SmallDatabase(CountingQueries.conjunctions(2), 3, EPSILON)
    return epsilon_of(max(_counts(4, 2).worst_ratios(small).values())) / small.loss.epsilon


def _prove_boosting() -> float:
    """N = 3, n = 1, three rounds: a record that moves from point 1 to 0 raises one count and lowers
    seven."""
    queries = CountingQueries(np.array([(True, False, False)] + [(False, True, False)] * 7))
    terms = BoostingTerms(3, 1, 0, 1, EPSILON / 4, CountedBase(EPSILON))
    boosting = Boosting(queries, terms, DELTA)
    price = sum(count * loss.epsilon for loss, count in boosting.terms.losses.items())
    return _worst(boosting.algorithm(1, 1), _counts(3, 1)) / price


PROVED: dict[str, Callable[[], float]] = {
    "PMW": _prove_weights,
    "MWEM": _prove_mwem,
    "DualQuery": _prove_dual,
    SMALL: _prove_small,
    BOOSTED: _prove_boosting,
}
