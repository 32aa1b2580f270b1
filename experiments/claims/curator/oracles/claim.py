"""Oracles (Neel, Roth, Wu 2019): the price of private answers by a solver, the leaks of one that
lies, and cheap baselines that do as well."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Counts
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.oracle_efficient.perturbed import (
    DataPlayer,
    Perturbation,
    PerturbedMinimum,
    SyntheticGame,
    largest_error,
)
from local_dp.curator.oracle_efficient.separated import Closed, Conjunctions, Exhaustive, Separated
from local_dp.curator.selection.exponential import Labelled, OccamLearner
from local_dp.draws import Draws
from local_dp.experiments.claims.curator.oracles.online import (
    BITS,
    SEQUENCES,
    Regret,
    Spread,
    online_finding,
)
from local_dp.experiments.claims.curator.oracles.privacy import (
    BELIEVED,
    CHECKED,
    CLASSES,
    EPSILON,
    EPSILONS,
    HALF,
    WHOLE,
    Alone,
    Cost,
    Deltas,
    Loss,
    Price,
    Robust,
)
from local_dp.experiments.lab.parts import (
    HEURISTICS,
    Check,
    Claimed,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Points,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    every,
    grid,
    holds,
    mean,
    ratio,
    seeded,
    tabulate,
)
from local_dp.interaction import run
from local_dp.loss import Pure, approximate

DELTA = 1e-6
# bits, those that the labels depend on, the share of labels that are wrong
D, RELEVANT, FLIPPED = (14, 3, 0.1)
ONE = 2 ** (-1 / RELEVANT)  # the share of ones of each bit, with which half of the labels are 1
RSPM, EXPONENTIAL, COUNTED, NOTHING = (
    "RSPM",
    "exponential mechanism",
    "noisy counts of each bit",
    "no data: never 1",
)
LEARNERS = (RSPM, EXPONENTIAL, COUNTED, NOTHING)
COLUMNS, ROUNDS, SCALE = 8, 200, 4.0  # of the game, and the noise of its data's player
GAME, ONE_DRAW, HISTOGRAM, PRODUCT, UNIFORM = (
    "game, 100 draws a round",
    "game, 1 draw a round",
    "noisy histogram",
    "product of noisy columns",
    "uniform table",
)
TABLES = (GAME, ONE_DRAW, HISTOGRAM, PRODUCT, UNIFORM)
EXAMPLES = {"quick": (100, 300, 1000, 3000, 10_000), "full": (100, 300, 1000, 3000, 10_000, 30_000)}
LEARNED = {"quick": 150, "full": 1000}  # runs
ERRING = 300  # examples, from which two ways that both err are compared run by run
ROWS = {"quick": (1000, 6366, 100_000), "full": (1000, 6366, 30_000, 100_000, 1_000_000)}
# runs; a quarter of them on the fewest rows, which only the figure shows
PLAYED = {"quick": 12, "full": 24}
FEW, MANY = 1000, 3000  # examples of which RSPM has too few, and enough
SOME, ALL = 6366, 100_000  # rows, by which the game is compared


Sized = dict[int, dict[str, list[float]]]  # errors by the number of examples or rows


class Errors(Row):
    errors: dict[str, list[float]]  # by method, run by run


class Learning(Row):
    """How much more often than the best conjunction the selected one errs: exactly, from the two
    masks."""

    examples: int
    runs: int

    def measure(self, seed: int) -> Errors:
        queries, n = Conjunctions(D), self.examples
        learners: dict[str, Callable[[Labelled, Draws], int]] = {
            RSPM: PerturbedMinimum(Perturbation(queries, EPSILON), Exhaustive(queries)).release,
            EXPONENTIAL: OccamLearner(queries, EPSILON).release,
            COUNTED: _by_counts,
            NOTHING: lambda _, __: queries.size - 1,
        }
        errors = {name: list[float]() for name in learners}
        for each in range(self.runs):
            generator = default_rng([seed, n, each])
            examples, draws = _examples(n, generator), seeded(int(generator.integers(1 << 63)))
            for name, learn in learners.items():
                errors[name].append(excess(learn(examples, draws)))
        return Errors(errors)


def _examples(n: int, generator: Generator) -> Labelled:
    """Labels say whether the first RELEVANT bits are all 1, some of them wrong."""
    bits = generator.random((n, D)) < ONE
    labels = bits[:, :RELEVANT].all(axis=1) ^ (generator.random(n) < FLIPPED)
    return Labelled(bits @ (1 << np.arange(D)), labels.astype(np.int64))


def _by_counts(examples: Labelled, draws: Draws) -> int:
    """The bits that are 0 where the label is 1 less than half as often as one that does not matter
    would be: D counts, each at eps / D."""
    zeros = (examples.x[examples.y == 1, None] >> np.arange(D)) & 1 == 0
    few = (1 - ONE) / 2 * len(examples.x) / 2
    mask = 0
    for i, count in enumerate(zeros.sum(axis=0).tolist()):
        if count + draws.discrete_laplace(Fraction(1, D)) < few:
            mask |= 1 << i
    return mask


def excess(mask: int) -> float:
    """The error of a conjunction above the best one's, over the population."""
    common = (mask | ((1 << RELEVANT) - 1)).bit_count()
    mask_share = ONE ** mask.bit_count()
    return (1 - 2 * FLIPPED) * (mask_share + ONE**RELEVANT - 2 * ONE**common)


class Tables(Row):
    """The largest error over all conjunctions and their complements, in each run, of tables that
    stand for one of n rows."""

    rows: int
    runs: int

    def measure(self, seed: int) -> Errors:
        generators = (default_rng([seed, self.rows, each]) for each in range(self.runs))
        errors = [table_errors(_rows(self.rows, generator), generator) for generator in generators]
        return Errors({name: [each[name] for each in errors] for name in TABLES})


def table_errors(rows: Counts, generator: Generator) -> dict[str, float]:
    """The largest error of each way, in one run: rows are numbers of COLUMNS bits."""
    queries = Closed(Conjunctions(COLUMNS), (1 << COLUMNS) - 1)
    draws = seeded(int(generator.integers(1 << 63)))
    counts = np.bincount(rows, minlength=1 << COLUMNS)
    players = {name: DataPlayer(COLUMNS, n, SCALE) for name, n in ((GAME, 100), (ONE_DRAW, 1))}
    games = {name: _play(queries, rows, each, draws, generator) for name, each in players.items()}
    tables = {
        **games,
        HISTOGRAM: _histogram(counts, draws),
        PRODUCT: _product(rows, draws),
        UNIFORM: np.ones_like(counts),
    }
    return {name: largest_error(queries, counts, table) for name, table in tables.items()}


def _rows(n: int, generator: Generator) -> Counts:
    """Two kinds of rows, whose bits are 1 with probability .85 and .3."""
    bits = generator.random((n, COLUMNS))
    chances = np.where(generator.random((n, 1)) < 0.5, 0.85, 0.3)
    return np.asarray((bits < chances) @ (1 << np.arange(COLUMNS)))


def _play(
    queries: Separated, rows: Counts, player: DataPlayer, draws: Draws, generator: Generator
) -> Counts:
    """The game's table, at (EPSILON, DELTA) for all rounds together, by optimal composition."""
    part = optimal_part(approximate(EPSILON, DELTA), ROUNDS)
    game = SyntheticGame(queries, Exhaustive(queries), len(rows), ROUNDS, part.epsilon)
    database = Labelled(rows, np.zeros(len(rows), dtype=np.int64))
    trusted = TrustedOracle(database, Account(Pure(ROUNDS * part.nano)), draws)
    return run(game.against(player, generator), trusted)


def _histogram(counts: Counts, draws: Draws) -> Counts:
    """Every cell with noise; a replaced row moves two."""
    noisy = [max(0, int(count) + draws.discrete_laplace(Fraction(EPSILON) / 2)) for count in counts]
    return np.array(noisy if any(noisy) else [1] * len(noisy))


def _product(rows: Counts, draws: Draws) -> Counts:
    """Independent columns with noisy shares of ones, each at eps / COLUMNS."""
    cells, table = np.arange(1 << COLUMNS), np.ones(1 << COLUMNS)
    for bit in range(COLUMNS):
        ones = int(np.sum(rows >> bit & 1))
        ones += draws.discrete_laplace(Fraction(EPSILON) / COLUMNS)
        share = min(max(ones / len(rows), 0.0), 1.0)
        table *= np.where(cells >> bit & 1 == 1, share, 1 - share)
    return np.rint(1e9 * table).astype(np.int64)


class Oracles(Experiment):
    name = "oracles"
    chapter = HEURISTICS
    title = "Solvers as oracles: proven, failing or lying"
    claim = (
        "A solver that always proves its answer gives private ones, if whole noise is put on a "
        "few points first: the loss is epsilon, exactly. A solver that lies reveals a record at "
        "any price, believed or checked, unless its failures are made private too, at less than "
        "twice the epsilon. But where all answers can be listed the exponential mechanism needs a "
        "tenth of the examples. On little data plain counts with noise do better too, and a table "
        "made by a game of such answers errs many times more than a noisy histogram. Run on "
        "prefixes, a private solver is an online learner, and its regret grows with the scale of "
        "its noise: a lower bound on the time of online learners, cited, so forbids small noise "
        "that fits every class."
    )
    source = "Neel, Roth, Wu 2019, Theorems 4 to 8, Sections 4 and 5; Hazan, Koren 2016"

    def points(self, scale: Scale) -> Points:
        return [
            *grid(Loss, CLASSES, (WHOLE, HALF)),
            *map(Alone, (BELIEVED, CHECKED)),
            *(Robust(*terms) for terms in ((1.0, 0.05), (0.5, 0.03))),
            *map(Price, (2, 4, 12, 24)),
            *(Learning(n, LEARNED[scale] * {ERRING: 4, FEW: 2}.get(n, 1)) for n in EXAMPLES[scale]),
            *(Tables(n, PLAYED[scale] // (4 if n == min(ROWS[scale]) else 1)) for n in ROWS[scale]),
            *map(Regret, SEQUENCES),
            *map(Spread, BITS),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        learning = {p.examples: m.errors for p, m in sheet[Learning]}
        games = {p.rows: m.errors for p, m in sheet[Tables]}
        online_checks, online_tables, online_figures = online_finding(sheet[Regret], sheet[Spread])
        lies = _lies(sheet[Alone] + sheet[Robust])
        tables = [
            _means("errors above the best conjunction's, means", "examples", LEARNERS, learning),
            _means("largest error of a conjunction, means", "rows", TABLES, games),
            lies,
        ]
        figures = [*_figures(*tables), *online_figures]
        checks = [
            *_check_enumerated(sheet),
            *_check_learners(learning),
            *_check_game(games),
            *online_checks,
        ]
        headline = _headline(learning, games)
        return Finding(checks, [*tables, *online_tables], figures, NOTES, headline=headline)


def _means(title: str, size: str, names: tuple[str, ...], errors: Sized) -> Table:
    rows = [(name, n, *mean(by[name]).stated) for name in names for n, by in errors.items()]
    return tabulate(title, f"method | {size} | error | 95 % from | to", rows)


def _lies(ways: Rows[Alone | Robust, Deltas | Cost]) -> Table:
    rows = [(p.way, *lie) for p, m in ways for lie in zip(EPSILONS, m.deltas, strict=True)]
    title = "delta of a solver that lies, at each epsilon"
    return tabulate(title, "solver | epsilon | delta", rows)


def _figures(*tables: Table) -> Iterator[Figure]:
    learners, games, lies = (
        table.curves(" | ".join(table.columns), group=True) for table in tables
    )
    title, axes = "Errors above the best conjunction's, epsilon 1", ("examples", "share of errors")
    yield Figure("oracles", title, *axes, learners, log_x=True)
    title, axes = "Tables that stand for one of n rows, epsilon 1", ("rows n", "largest error")
    yield LogLogFigure("oracles-tables", title, *axes, games)
    title, axes = "Hiding a label from a solver that lies, computed", ("epsilon", "delta")
    yield LogLogFigure("oracles-lies", title, *axes, lies)


NOTES = [
    f"Conjunctions of {D} bits, {FLIPPED:.0%} of the labels wrong, half of them 1; tables of "
    f"{COLUMNS} binary columns, all conjunctions and their complements, {ROUNDS} rounds. Epsilon "
    f"is {EPSILON:g}, delta {DELTA:g} for the game and none elsewhere. Errors of conjunctions are "
    "exact, over the population; the points of figures are means with 95 % intervals.",
    "The lying solver is wrong only on data whose first label is 1: there it claims a query that "
    "does not exist. Checked, that is a failure, which reveals as much as the claim. Its table "
    "has as many records as PRSMA has pieces; larger pieces cost the same and need a smaller base.",
    (
        "These methods are meant for classes whose answers cannot be listed, for the exponential "
        "mechanism or for a histogram. No figure here shows these."
    ),
]


def _headline(learning: Sized, games: Sized) -> str:
    largest = max(games)
    errors = {name: np.mean(each) for name, each in learning[FEW].items()}
    tables = {name: np.mean(each) for name, each in games[largest].items()}
    return (
        f"From {FEW:,} examples RSPM errs {errors[RSPM]:.1%} more than the best conjunction, "
        f"noisy counts {errors[COUNTED]:.1%}, the exponential mechanism "
        f"{errors[EXPONENTIAL]:.1%}; of {largest:,} rows a game's table errs by "
        f"{tables[GAME]:.3f}, a noisy histogram by {tables[HISTOGRAM]:.2g}."
    )


def _check_enumerated(sheet: Sheet) -> Iterator[Check]:
    """The losses of RSPM and PRSMA, and of a solver that lies, over small databases."""
    cases = []
    for p, m in sheet[Loss]:
        verdict = abs(m.loss - EPSILON * (1 + (p.noise == HALF))) < 1e-9
        cases.append((verdict, f"{p.queries}, {p.noise}: {m.loss:.4f}"))
    yield every(
        "RSPM with whole noise and one tie-break loses epsilon, exactly, and with half "
        "the noise twice that: enumerated over databases of two examples",
        cases,
    )
    cases = []
    for solver, m in sheet[Alone]:
        evidence = f"{solver.way}: {max(m.deltas):g} at epsilon {EPSILONS[-1]:g}"
        cases.append((set(m.deltas) == {1}, evidence))
    yield every(
        "a solver that lies reveals a label with certainty, believed or checked: delta is "
        "1 at every epsilon",
        cases,
    )
    cases = []
    for _, m in sheet[Robust]:
        evidence = f"{m.worst:.4f} of {m.delta:.4f} at epsilon {m.epsilon:.4f}"
        cases.append((0 < m.worst <= m.delta < 0.6, evidence))
    yield every(
        "with PRSMA the same solver keeps to epsilon and delta, enumerated over all "
        "databases of one record for each piece",
        cases,
    )
    cases = []
    for price, m in sheet[Price]:
        verdict = -1e-6 < m.changed - m.stated <= 1e-9 and m.stated * price.parts < 2
        cases.append((verdict, f"{m.changed * price.parts:.4f} at 1/{price.parts}"))
    yield every(
        "the change by one surviving piece more is at worst the stated one: less than "
        "twice eps* (in units of it)",
        cases,
    )


def _check_learners(learning: Sized) -> Iterator[Check]:
    """In which share of the runs the best conjunction was selected; and errors saved, run by run on
    the same data."""

    def hits(name: str, n: int, low: float, high: float = math.inf) -> dict[str, Claimed]:
        errors = learning[n][name]
        rate = Rate(sum(each < 1e-12 for each in errors), len(errors))
        return {f"{name} from {n:,}": Claimed(rate, low, high)}

    rspm, counts, nothing = (np.array(learning[ERRING][name]) for name in (RSPM, COUNTED, NOTHING))
    savings = {
        "against RSPM": Claimed(mean(rspm - counts), 0.04),
        "against no data": Claimed(mean(nothing - counts), 0.15),
    }
    claims = hits(RSPM, FEW, 0.6, 0.77) | hits(RSPM, MANY, 0.98)
    yield holds(
        f"RSPM finds the best conjunction of {D} bits in 60 to 77 % of runs from {FEW:,} "
        f"examples, and in 98 % from {MANY:,}",
        claims,
    )
    yield holds(
        "the exponential mechanism finds it in 45 to 68 % of runs from 100, and in 98 % "
        "from 300: a tenth of RSPM's examples",
        hits(EXPONENTIAL, 100, 0.45, 0.68) | hits(EXPONENTIAL, 300, 0.98),
    )
    yield holds(
        f"from {ERRING} examples a noisy count of each bit errs .04 less than RSPM, where "
        "both err, and .15 less than no data",
        savings,
    )


def _check_game(games: Sized) -> Iterator[Check]:
    """Ratios of mean largest errors."""

    def times(worse: str, n: int, better: str, least: float) -> dict[str, Claimed]:
        gain = ratio(games[n][worse], games[ALL][better])
        return {f"{worse}, {n:,} rows": Claimed(gain, least)}

    claims = times(PRODUCT, ALL, GAME, 5.5) | times(GAME, SOME, GAME, 2)
    claims |= times(ONE_DRAW, ALL, GAME, 11)
    yield holds(
        f"on {ALL:,} rows the game's table errs 5.5 times less than a product of columns, "
        f"11 times less than with one draw, half as much as on {SOME:,}",
        claims,
    )
    yield holds(
        "a noisy histogram errs 40 times less than the game's table there",
        times(GAME, ALL, HISTOGRAM, 40),
    )


EXPERIMENT = Oracles()
