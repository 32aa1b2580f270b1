"""What `many-answers` measures: errors of many queries answered at once, and the exact losses of whole transcripts."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.curator.account import Account, ConcentratedAccount
from local_dp.curator.intervals.level import Level
from local_dp.curator.laws import SmallDatabases, epsilon_of, worst_transcripts
from local_dp.curator.marginals.base import BinaryTable, Errors, Marginals
from local_dp.curator.marginals.baselines import OneMarginal, PlainGaussian, independent, on_simplex
from local_dp.curator.marginals.fourier import FourierGaussian, nearest_table
from local_dp.curator.multisets import Multiset
from local_dp.curator.query_release.counting import CountingQueries, GaussianAnswers, LaplaceAnswers, table
from local_dp.curator.query_release.dual_query import DualQuery
from local_dp.curator.query_release.mwem import Mwem, PureRounds, concentrated_mwem, pure_mwem
from local_dp.curator.query_release.pmw import Answered, MultiplicativeWeights, Stream, Terms
from local_dp.curator.query_release.small_databases import SmallDatabase
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.interaction import run
from local_dp.loss import Pure, approximate
from local_dp.noise import KeyedNoise

EPSILON, DELTA = 1.0, 1e-6
BUDGET = approximate(EPSILON, DELTA)
POINTS_BITS = 8  # N = 256
RECORDS = 100_000
NOTHING, LAPLACE, GAUSSIAN, HISTOGRAM = "no data", "Laplace", "Gaussian", "histogram"
WEIGHTS: dict[str, float] = {"PMW": 1.0, "PMW, a tenth of the changes": 0.1, "PMW, a fiftieth of the changes": 0.02}
PMW, TENTH, HALTED = WEIGHTS
PRODUCT, DUAL, PURE, CONCENTRATED = "product of columns", "DualQuery", "MWEM, pure", "MWEM, concentrated"
FOURIER, NEAREST = "Fourier mechanism", "Fourier, nearest table"
SMALL = "BLR"


def zipf(generator: np.random.Generator) -> Counts:
    """n records of 256 points, point number i of weight 1 / i, the points in a random order."""
    weights = generator.permutation(1 / np.arange(1, (1 << POINTS_BITS) + 1))
    return generator.multinomial(RECORDS, weights / weights.sum())


def noisy_histogram(database: Counts, draws: Draws) -> Floats:
    """Pure noise on every cell, then the nearest shares; the cells are 2^bits."""
    bits, held = len(database).bit_length() - 1, np.flatnonzero(database)
    noisy = Level(bits, 1, EPSILON).release(Multiset(bits, held.astype(np.uint64), database[held]), draws)
    return on_simplex(noisy.counts.astype(np.float64), float(database.sum()))


def measure_queries(point: Point, seed: int) -> Measurement:
    """The largest error of k random queries as a share of the records, by each answer; of PMW also alpha, and the share of them that it answered."""
    k, found = point["k"], dict[str, list[float]]()
    told: dict[str, list[float]] = {name: [] for name in WEIGHTS}
    for trial in range(point["runs"]):
        generator = np.random.default_rng([seed, k, trial])
        draws = Draws(KeyedNoise(seed), k << 8 | trial)
        database, queries = zipf(generator), CountingQueries.random(k, 1 << POINTS_BITS, generator)
        truth = queries.counts(database)
        answers: dict[str, Floats | Counts] = {
            NOTHING: queries.shares(np.full(queries.points, RECORDS / queries.points)),
            LAPLACE: LaplaceAnswers(queries, EPSILON, DELTA).release(database, draws),
            GAUSSIAN: GaussianAnswers(queries, EPSILON, DELTA).release(database, draws),
            HISTOGRAM: queries.shares(noisy_histogram(database, draws)),
        }
        for name, each in answers.items():
            found.setdefault(name, []).append(float(np.abs(each - truth).max()) / RECORDS)
        for name, share in WEIGHTS.items():
            answered = _weighed(database, queries, share, draws)
            found.setdefault(name, []).append(answered.largest_error(truth, RECORDS))
            told[name].append(answered.answered)
    alphas = {name: _terms(k, share).alpha for name, share in WEIGHTS.items()}
    return {"errors": found, "answered": told, "alpha": alphas}


@cache
def _terms(k: int, share: float) -> Terms:
    return Terms.for_stream(Stream(RECORDS, 1 << POINTS_BITS, k), BUDGET, share=share)


def _weighed(database: Counts, queries: CountingQueries, share: float, draws: Draws) -> Answered:
    weights = MultiplicativeWeights(queries, RECORDS, _terms(queries.k, share))
    return run(weights.algorithm(), TrustedOracle(database, ConcentratedAccount(BUDGET), draws))


def measure_small(point: Point, seed: int) -> Measurement:
    """The largest error of all 27 conjunctions of 3 bits, by a small database and by its baselines."""
    n, queries, found = point["n"], CountingQueries.conjunctions(3), dict[str, list[float]]()
    for trial in range(point["runs"]):
        draws = Draws(KeyedNoise(seed), n << 8 | trial)
        database = np.random.default_rng([seed, n, trial]).multinomial(n, np.arange(1, 9) / 36)
        truth = queries.counts(database)
        answers: dict[str, Floats | Counts] = {
            LAPLACE: LaplaceAnswers(queries, EPSILON, DELTA).release(database, draws),
            HISTOGRAM: queries.shares(noisy_histogram(database, draws)),
        }
        for rows in point["rows"]:
            small = np.array(SmallDatabase(queries, rows, EPSILON).release(database, draws))
            answers[f"{SMALL}, {rows} rows"] = queries.shares(small * n / rows)
        for name, each in answers.items():
            found.setdefault(name, []).append(float(np.abs(each - truth).max()) / n)
    return {"errors": found}


def population(n: int, d: int) -> BinaryTable:
    """n records of d columns from three kinds of people, fixed for each d: every column is 1 with a chance that the kind has for it."""
    fixed = np.random.default_rng([17, d])
    chances, shares = fixed.uniform(0.05, 0.95, (3, d)), (0.5, 0.3, 0.2)
    generator = np.random.default_rng([18, d, n])
    return BinaryTable.of(generator.random((n, d)) < chances[generator.choice(3, n, p=shares)])


def measure_marginals(point: Point, seed: int) -> Measurement:
    """The largest and the mean error of a cell of all 3-way marginals of the population, by each answer."""
    n, d = point["n"], point["d"]
    database, workload = population(n, d), Marginals.ways(d, 3)
    truth, found, means = workload.answers(database), dict[str, list[float]](), dict[str, list[float]]()
    for trial in range(point["runs"]):
        for name, answer in ANSWERS.items():
            draws = Draws(KeyedNoise(seed), n << 8 | trial)
            errors = Errors.of(answer(database, workload, draws), truth, n)
            found.setdefault(name, []).append(errors.largest)
            means.setdefault(name, []).append(errors.mean)
    return {"errors": found, "means": means}


def _product(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    columns = FourierGaussian(Marginals.ways(database.d, 1), EPSILON, DELTA).release(database, draws)
    return independent(columns).cells(workload)


def _histogram(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    noisy = OneMarginal(database.d, (1 << database.d) - 1, EPSILON).release(database, draws)
    return workload.of_histogram(on_simplex(noisy.counts.astype(np.float64), database.size))


def _gaussian(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    return PlainGaussian(workload, EPSILON, DELTA).release(database, draws)


def _fourier(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    return FourierGaussian(workload, EPSILON, DELTA).release(database, draws).cells


def _nearest(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    return workload.of_histogram(nearest_table(FourierGaussian(workload, EPSILON, DELTA).release(database, draws)))


def _dual(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    dual = DualQuery.within(workload, database.size, EPSILON)
    oracle = TrustedOracle(database, Account(Pure(BUDGET.nano)), draws)
    return run(dual.algorithm(database.size, int(draws.words(1)[0] >> np.uint64(32))), oracle).answers(workload)


def _pure(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    made = pure_mwem(workload, database.size, EPSILON)
    return run(made.algorithm(database.size), TrustedOracle(database, Account(Pure(BUDGET.nano)), draws)).answers(workload)


def _concentrated(database: BinaryTable, workload: Marginals, draws: Draws) -> Floats:
    made = concentrated_mwem(workload, database.size, BUDGET)
    return run(made.algorithm(database.size), TrustedOracle(database, ConcentratedAccount(BUDGET), draws)).answers(workload)


ANSWERS: dict[str, Callable[[BinaryTable, Marginals, Draws], Floats]] = {
    PRODUCT: _product,
    HISTOGRAM: _histogram,
    GAUSSIAN: _gaussian,
    DUAL: _dual,
    PURE: _pure,
    CONCENTRATED: _concentrated,
    FOURIER: _fourier,
    NEAREST: _nearest,
}


def measure_privacy(point: Point) -> Measurement:
    """The largest loss of a whole transcript over all pairs of small neighbours, as a share of what it is claimed to cost."""
    return {"share": PROVED[point["what"]]()}


def _prove_weights() -> float:
    """N = 2, k = 3, n = 1: an epoch that ends with a change costs 4, one that does not 1."""
    queries = CountingQueries(np.array([(True, False)] * 3))
    databases: SmallDatabases[Any, Any] = SmallDatabases([(0,), (1,)], 1, lambda records: table(np.array([record for (record,) in records]), 2))
    weights = MultiplicativeWeights(queries, 1, Terms(0.9, 3, EPSILON, 0.5))
    worst = worst_transcripts(weights.algorithm(), databases)
    return max(epsilon_of(ratio) / (4 * (len(told) // 2) + len(told) % 2) for told, ratio in worst.items())


def _rows(n: int) -> SmallDatabases[Any, Any]:
    """All tables of n records of two bits."""
    return SmallDatabases([(row,) for row in range(4)], n, lambda records: BinaryTable(2, np.array([row for (row,) in records], dtype=np.uint64)))


def _prove_mwem() -> float:
    """N = 4, n = 1, two rounds, all 1-way marginals."""
    made = Mwem(Marginals.ways(2, 1), PureRounds(2, EPSILON, EPSILON))
    return epsilon_of(max(worst_transcripts(made.algorithm(1), _rows(1)).values())) / made.loss.epsilon


def _prove_dual() -> float:
    """N = 4, n = 2, three rounds."""
    dual = DualQuery(Marginals.ways(2, 1), 3, 1, 0.5)
    return epsilon_of(max(worst_transcripts(dual.algorithm(2, 1), _rows(2)).values())) / sum(loss.epsilon for loss in dual.losses(2))


def _prove_small() -> float:
    """N = 4, n = 2, three rows, all conjunctions."""
    databases: SmallDatabases[Any, Any] = SmallDatabases(
        [(point,) for point in range(4)], 2, lambda records: table(np.array([point for (point,) in records]), 4)
    )
    small = SmallDatabase(CountingQueries.conjunctions(2), 3, EPSILON)
    return epsilon_of(max(databases.worst_ratios(small).values())) / small.loss.epsilon


PROVED: dict[str, Callable[[], float]] = {"PMW": _prove_weights, "MWEM": _prove_mwem, "DualQuery": _prove_dual, SMALL: _prove_small}
