"""Prefix sums in one round: one well-chosen bit a client against one threshold question each."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import prefix_gamma, toeplitz_gamma
from local_dp.bounds.response import response_gain
from local_dp.experiments.lab.checks import measured
from local_dp.experiments.lab.claim import Check, Figure, Scale, Table, curve
from local_dp.experiments.lab.coverage.stated import Stated, resampled
from local_dp.experiments.lab.cross_check import Crossing, Trial, cross_check
from local_dp.experiments.lab.findings import Rows
from local_dp.experiments.lab.statistics import ratio
from local_dp.interaction import Nonadaptive, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.populations.finite import Population
from local_dp.protocols.vectors.workload import PrefixSums
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.signs.prefix_signs import excess
from local_dp.tallies import Tally

EPSILON = 1.0
PREFIX_CLIENTS = 1 << 14
WITHIN = 0.01  # how far from the formula's the gain lies at most: only the sizes of the cohorts are rounded
LEAST = 9.0  # times fewer clients for 256 sums and more: by the formula 9.96
CROSS_CHECKED, CROSS_CLIENTS = 16, 3000  # where the baseline, drawn from its law, is run client by client
TRIALS: dict[Scale, int] = {"quick": 800, "full": 1600}
POOLED: dict[Scale, tuple[int, ...]] = {"quick": (16,), "full": (16, 256)}  # sizes k whose intervals are measured


@dataclass(frozen=True)
class SquareErrors:
    """The mean square error in each trial: one bit for all, and one threshold each."""

    together: list[float]
    apart: list[float]

    def gain(self) -> tuple[float, float, float]:
        """With its 95 % interval."""
        return ratio(self.apart, self.together).stated


@dataclass(frozen=True)
class Prefixes:
    """Both methods for k prefix sums."""

    k: int
    trials: int

    def measure(self, seed: int) -> SquareErrors:
        return SquareErrors(*_square_errors(self.k, self.trials, seed))


@dataclass(frozen=True)
class ThresholdUsers:
    """The baseline client by client and from its law: how often its mean square error is at most what its formula expects."""

    k: int

    def __str__(self) -> str:
        return f"one threshold each, k = {self.k}"

    def measure(self, seed: int) -> Crossing:
        k, n = self.k, CROSS_CLIENTS
        protocol = PrefixSums(k=k)
        truth = np.cumsum(protocol.synthetic(1, 0).law(protocol.category))[:-1]
        expected = float(np.mean(response_gain(EPSILON) ** 2 / 4 - (truth - 0.5) ** 2)) * (k - 1) / n

        def small(result: Floats, population: Population) -> bool:
            return bool(np.mean((result - truth) ** 2) <= expected)

        return cross_check(lambda: Trial(_one_threshold_each(k, n), lambda drawn: protocol.synthetic(n, drawn), small, n, EPSILON), seed)


Gains = Rows[Prefixes, SquareErrors]


def prefix_points(scale: Scale) -> list[Prefixes | ThresholdUsers]:
    """Each size of a prefix-sum task; and the baseline client by client."""
    sizes = (16, 64, 256, 1024) if scale == "full" else (16, 64, 256)
    return [*(Prefixes(k, TRIALS[scale]) for k in sizes), ThresholdUsers(CROSS_CHECKED)]


def _one_threshold_each(k: int, n: int) -> Nonadaptive[LocalQuery, Tally, Floats]:
    """The baseline for prefix sums: every client answers one of the k - 1 threshold questions by randomized response."""
    ends = [n * place // (k - 1) for place in range(k)]
    randomizer = BinaryRR(EPSILON)
    queries = tuple(LocalQuery(Question(f"value <= {t}"), randomizer, Cohort(ends[t], ends[t + 1])) for t in range(k - 1))
    return Nonadaptive(queries, lambda tallies: np.array([float(randomizer.estimate(tally).value) for tally in tallies]))


def _stride(k: int) -> int:
    """The baseline is run in every so many trials: its errors are independent, so few tell as much."""
    return max(1, k // 8)


def _square_errors(k: int, trials: int, seed: int) -> tuple[list[float], list[float]]:
    """The mean square error over the k - 1 uncertain prefix sums in each trial: one bit for all, and one threshold each."""
    protocol, together, apart = PrefixSums(k=k), [], []
    for trial in range(trials):
        drawn = int(np.random.default_rng([seed, k, trial]).integers(2**63))
        population = protocol.synthetic(PREFIX_CLIENTS, drawn)
        truth = np.cumsum(population.law(protocol.category))[:-1]
        ours = run(protocol.algorithm(EPSILON, PREFIX_CLIENTS), PopulationOracle(population, KeyedNoise(drawn), drawn, EPSILON))
        together.append(float(np.mean((ours.value[:-1] - truth) ** 2)))
        if trial % _stride(k) == 0:
            baseline = run(_one_threshold_each(k, PREFIX_CLIENTS), AggregateOracle(population, np.random.default_rng(drawn), EPSILON))
            apart.append(float(np.mean((baseline - truth) ** 2)))
    return together, apart


def prefix_intervals(scale: Scale) -> list[Stated]:
    """The interval of the gain with as many trials as the scale makes, drawn from the square errors of twice as many."""
    cases, trials = [], TRIALS[scale]
    for k in POOLED[scale]:
        pools = _square_errors(k, 2 * trials, 0)
        sample = partial(_sampled_gain, pools, (trials, math.ceil(trials / _stride(k))))
        cases.append(Stated("interaction", f"gain of prefix sums, k = {k}", trials, ratio(pools[1], pools[0]).value, sample))
    return cases


def _sampled_gain(pools: tuple[list[float], list[float]], trials: tuple[int, int], generator: np.random.Generator) -> tuple[float, float]:
    together, apart = (resampled(pool, count, generator) for pool, count in zip(pools, trials, strict=True))
    return ratio(apart, together).stated[1:]


def predicted_gain(k: int) -> float:
    """The ratio of the two exact mean variances, sampling included: (C^2 - (2 F - 1)^2) (k - 1) / 4 over C^2 v - (F - 1/2)^2."""
    protocol = PrefixSums(k=k)
    centred = np.cumsum(protocol.synthetic(1, 0).law(protocol.category))[:-1] - 0.5
    square = response_gain(EPSILON) ** 2
    return float(np.mean(square / 4 - centred**2) * (k - 1) / np.mean(square * excess(k) - centred**2))


def prefix_checks(prefixes: Gains) -> list[Check]:
    gains = {point.k: ratio(errors.apart, errors.together) for point, errors in prefixes}
    largest = max(gains)
    predicted = {f"k = {k}, predicted {(formula := predicted_gain(k)):.2f}": gain / formula for k, gain in gains.items()}
    return [
        measured(f"One bit for all {largest} prefix sums needs at least {LEAST:g} times fewer clients than separate questions", {"": gains[largest]}, LEAST),
        measured(f"The gain is the one its formula predicts, at every size, within {WITHIN:.0%} (in units of it)", predicted, 1 - WITHIN, 1 + WITHIN),
    ]


def prefix_table(prefixes: Gains) -> Table:
    rows = []
    for point, errors in prefixes:
        k, (gain, low, high) = point.k, errors.gain()
        toeplitz = k / 4 / (math.pi / 2 * toeplitz_gamma(k) ** 2)
        figures = (predicted_gain(k), k / 4 / excess(k), toeplitz, k / 4 / prefix_gamma(k) ** 2)
        rows.append((k, f"{gain:.2f} ({low:.2f} to {high:.2f})", *(round(figure, 2) for figure in figures)))
    columns = (
        "prefix sums k",
        "measured gain",
        "gain by formula",
        "at the median, by formula",
        "gain of square-root Toeplitz factors",
        "no one-bit method exceeds",
    )
    return Table("Prefix sums: how many times fewer clients than one threshold question each", columns, rows)


def prefix_figure(prefixes: Gains) -> Figure:
    sizes = [point.k for point, _ in prefixes]
    curves = [
        curve("measured", [(point.k, *errors.gain()) for point, errors in prefixes]),
        curve("formula", [(k, predicted_gain(k)) for k in sizes], "theory"),
        curve("no one-bit method exceeds", [(k, k / 4 / prefix_gamma(k) ** 2) for k in sizes], "bound"),
    ]
    title = "Prefix sums: clients saved against one threshold question each"
    return Figure("interaction-prefix", title, "prefix sums k", "times fewer clients", curves, log_x=True, log_y=True)
