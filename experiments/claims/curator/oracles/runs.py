"""What `oracles` measures: losses by enumeration, a lying solver, conjunctions learned, tables made by a game; each beside its cheap baselines."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from local_dp.accounting.shares import optimal_part
from local_dp.arrays import Counts
from local_dp.curator.account import Account
from local_dp.curator.laws import SmallDatabases, epsilon_of, hockey_stick
from local_dp.curator.oracle_efficient.perturbed import Attempt, DataPlayer, Perturbation, PerturbedMinimum, SyntheticGame, largest_error
from local_dp.curator.oracle_efficient.robust import RobustRelease, Terms
from local_dp.curator.oracle_efficient.separated import (
    FAIL,
    Certified,
    Claimed,
    Closed,
    Conjunctions,
    Exhaustive,
    Fail,
    Parities,
    Plain,
    Separated,
    Thresholds,
    Verified,
    Weighted,
)
from local_dp.curator.selection.occam import Labelled, OccamLearner
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.interaction import run
from local_dp.loss import ATTO, Pure, approximate, exp_epsilon, nano_epsilon
from local_dp.noise import KeyedNoise

EPSILON, DELTA = 1.0, 1e-6
CLASSES: dict[str, tuple[Separated, int]] = {  # and how many points they have
    "conjunctions of 2 bits": (Conjunctions(2), 4),
    "parities of 2 bits": (Parities(2), 4),
    "thresholds on 1 point": (Thresholds(1), 1),
}
WHOLE, HALF = "whole noise", "half the noise"
D, RELEVANT, FLIPPED = 14, 3, 0.1  # bits, those that the labels depend on, the share of labels that are wrong
ONE = 2 ** (-1 / RELEVANT)  # the share of ones of each bit, with which half of the labels are 1
RSPM, EXPONENTIAL, COUNTED, NOTHING = "RSPM", "exponential mechanism", "noisy counts of each bit", "no data: never 1"
LEARNERS = (RSPM, EXPONENTIAL, COUNTED, NOTHING)
COLUMNS, ROUNDS, SCALE = 8, 200, 4.0  # of the game, and the noise of its data's player
GAME, ONE_DRAW, HISTOGRAM, PRODUCT, UNIFORM = "game, 100 draws a round", "game, 1 draw a round", "noisy histogram", "product of noisy columns", "uniform table"
TABLES = (GAME, ONE_DRAW, HISTOGRAM, PRODUCT, UNIFORM)
BELIEVED, CHECKED, ROBUST = "believed", "checked", "checked, with PRSMA"


def measure_loss(point: Point) -> Measurement:
    """The largest loss over all databases of two examples. RSPM's law at 2 eps is that of noise of half the scale."""
    queries, points = CLASSES[point["class"]]
    spent = EPSILON * (2 if point["noise"] == HALF else 1)
    databases = SmallDatabases([(x, y) for x in range(points) for y in (0, 1)], 2, Labelled.of)
    return {"loss": epsilon_of(max(databases.worst_ratios(PerturbedMinimum(Perturbation(queries, spent), Exhaustive(queries))).values()))}


@dataclass(frozen=True)
class Liar:
    """Right, but where the first example's label is 1 it claims a query that there is not."""

    exact: Exhaustive

    def minimise(self, data: Weighted) -> Claimed:
        return Claimed(self.exact.queries.size if data.weights[0] < 0 else self.exact.minimise(data).choice)


@dataclass(frozen=True)
class Trusting:
    """Takes claims for proofs."""

    claimed: Plain

    def minimise(self, data: Weighted) -> Certified:
        return Certified(self.claimed.minimise(data).choice, 0)


def _attempt() -> Attempt:
    """RSPM by the lying solver, whose claims are checked: where it lies, it fails."""
    exact = Exhaustive(Conjunctions(1))
    return Attempt(Perturbation(exact.queries, 0.5), Verified(Liar(exact), exact))


def measure_solver(point: Point) -> Measurement:
    """At several epsilons the least delta that hides one label: of one record, with the solver believed or checked; and with PRSMA, of one in as many records
    as it has pieces."""
    growths = [exp_epsilon(nano_epsilon(epsilon)) for epsilon in point["epsilons"]]
    if point["way"] == ROBUST:
        release = RobustRelease(_attempt(), 1, Terms(point["epsilon"], point["delta"]))
        pieces = release.terms.pieces
        databases: SmallDatabases[tuple[int, int], Labelled] = SmallDatabases([(0, 0), (0, 1)], pieces, Labelled.of)
        pairs = list(databases.laws(release))
        worst = max(hockey_stick(*pair, exp_epsilon(release.loss.nano)) for pair in pairs)
        priced = {"worst": float(worst), "epsilon": release.loss.epsilon, "delta": release.loss.atto / ATTO, "pieces": pieces, "runs": release.terms.runs}
        return {"deltas": [float(max(hockey_stick(*pair, growth) for pair in pairs)) for growth in growths], **priced}
    attempt = _attempt()
    exact = Exhaustive(attempt.perturbation.queries)
    law = PerturbedMinimum(attempt.perturbation, Trusting(Liar(exact))).law if point["way"] == BELIEVED else attempt.law
    laws: list[dict[int | Fail, int]] = [dict(law(Labelled.of(((0, label),))).items()) for label in (0, 1)]
    here, there = laws
    return {"deltas": [float(max(hockey_stick(here, there, growth), hockey_stick(there, here, growth))) for growth in growths]}


def measure_price(point: Point) -> Measurement:
    """What one piece more that survives, with a law twice that of the M others, changes; and what PRSMA says that it may."""
    release = RobustRelease(_attempt(), 1, Terms(1 / point["parts"], 1e-3))
    other: dict[int | Fail, int] = {0: 1, 1: 3}
    others = [other] * release.terms.enough
    told = release.answer_law([*others, {0: 2, 1: 2}])[0] / release.answer_law([*others, {FAIL: 1}])[0]
    return {"changed": math.log(told), "said": release.loss.epsilon}


def measure_learning(point: Point, seed: int) -> Measurement:
    """How much more often than the best conjunction the chosen one errs, in each run: exactly, from the two masks."""
    queries, n = Conjunctions(D), int(point["n"])
    learners: dict[str, Callable[[Labelled, Draws], int]] = {
        RSPM: PerturbedMinimum(Perturbation(queries, EPSILON), Exhaustive(queries)).release,
        EXPONENTIAL: OccamLearner(queries, EPSILON).release,
        COUNTED: _by_counts,
        NOTHING: lambda _, __: queries.size - 1,
    }
    found: dict[str, list[float]] = {name: [] for name in learners}
    for each in range(point["runs"]):
        generator = np.random.default_rng([seed, n, each])
        examples, draws = _examples(n, generator), Draws(KeyedNoise(int(generator.integers(1 << 63))))
        for name, learn in learners.items():
            found[name].append(excess(learn(examples, draws)))
    return {"excess": found}


def _examples(n: int, generator: np.random.Generator) -> Labelled:
    """Labels say whether the first RELEVANT bits are all 1, some of them wrong."""
    bits = generator.random((n, D)) < ONE
    return Labelled(bits @ (1 << np.arange(D)), (bits[:, :RELEVANT].all(axis=1) ^ (generator.random(n) < FLIPPED)).astype(np.int64))


def _by_counts(examples: Labelled, draws: Draws) -> int:
    """The bits that are 0 where the label is 1 less than half as often as one that does not matter would be: D counts, each at eps / D."""
    zeros = (examples.x[examples.y == 1, None] >> np.arange(D)) & 1 == 0
    few = (1 - ONE) / 2 * len(examples.x) / 2
    return sum(1 << i for i, count in enumerate(zeros.sum(axis=0).tolist()) if count + draws.discrete_laplace(Fraction(1, D)) < few)


def excess(mask: int) -> float:
    """The error of a conjunction above the best one's, over the population."""
    common = (mask | ((1 << RELEVANT) - 1)).bit_count()
    return (1 - 2 * FLIPPED) * (ONE ** mask.bit_count() + ONE**RELEVANT - 2 * ONE**common)


def measure_tables(point: Point, seed: int) -> Measurement:
    """The largest error over all conjunctions and their complements, in each run, of tables that stand for one of n rows."""
    generators = [np.random.default_rng([seed, int(point["n"]), each]) for each in range(point["runs"])]
    found = [table_errors(_rows(int(point["n"]), generator), generator) for generator in generators]
    return {"errors": {name: [errors[name] for errors in found] for name in TABLES}}


def table_errors(rows: Counts, generator: np.random.Generator) -> dict[str, float]:
    """The largest error of each way, in one run: rows are numbers of COLUMNS bits."""
    queries, draws = Closed(Conjunctions(COLUMNS), (1 << COLUMNS) - 1), Draws(KeyedNoise(int(generator.integers(1 << 63))))
    counts = np.bincount(rows, minlength=1 << COLUMNS)
    made = {name: _played(queries, rows, DataPlayer(COLUMNS, count, SCALE), draws, generator) for name, count in ((GAME, 100), (ONE_DRAW, 1))}
    made |= {HISTOGRAM: _histogram(counts, draws), PRODUCT: _product(rows, draws), UNIFORM: np.ones_like(counts)}
    return {name: largest_error(queries, counts, table) for name, table in made.items()}


def _rows(n: int, generator: np.random.Generator) -> Counts:
    """Two kinds of rows, whose bits are 1 with probability .85 and .3."""
    rows: Counts = (generator.random((n, COLUMNS)) < np.where(generator.random((n, 1)) < 0.5, 0.85, 0.3)) @ (1 << np.arange(COLUMNS))
    return rows


def _played(queries: Separated, rows: Counts, player: DataPlayer, draws: Draws, generator: np.random.Generator) -> Counts:
    """The game's table, at (EPSILON, DELTA) for all rounds together, by optimal composition."""
    part = optimal_part(approximate(EPSILON, DELTA), ROUNDS)
    game = SyntheticGame(queries, Exhaustive(queries), len(rows), ROUNDS, part.epsilon).against(player, generator)
    trusted = TrustedOracle(Labelled(rows, np.zeros(len(rows), dtype=np.int64)), Account(Pure(ROUNDS * part.nano)), draws)
    return run(game, trusted)


def _histogram(counts: Counts, draws: Draws) -> Counts:
    """Every cell with noise; a replaced row moves two."""
    noisy = [max(0, int(count) + draws.discrete_laplace(Fraction(EPSILON) / 2)) for count in counts]
    return np.array(noisy if any(noisy) else [1] * len(noisy))


def _product(rows: Counts, draws: Draws) -> Counts:
    """Independent columns with noisy shares of ones, each at eps / COLUMNS."""
    cells, table = np.arange(1 << COLUMNS), np.ones(1 << COLUMNS)
    for bit in range(COLUMNS):
        share = (int(np.sum(rows >> bit & 1)) + draws.discrete_laplace(Fraction(EPSILON) / COLUMNS)) / len(rows)
        table *= np.where(cells >> bit & 1 == 1, min(max(share, 0.0), 1.0), 1 - min(max(share, 0.0), 1.0))
    return np.rint(1e9 * table).astype(np.int64)
