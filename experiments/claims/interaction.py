"""Interaction beyond the paper: decision lists and small margins with and without it, and what one round can do by itself for prefix sums."""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.arrays import Floats
from local_dp.bounds.prefixes import prefix_gamma, toeplitz_gamma
from local_dp.bounds.response import response_gain
from local_dp.interaction import Nonadaptive, run
from local_dp.learners import examples
from local_dp.learners.base import Classifier
from local_dp.learners.decision_lists import DecisionLists
from local_dp.learners.fourier import LowDegree
from local_dp.learners.polynomials import OneRoundPolynomial
from local_dp.learners.tasks import alternating_list
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.populations.finite import Finite
from local_dp.protocols.prefix_sums import PrefixSums
from local_dp.protocols.sgd import LocalSGD
from local_dp.queries.tables import Question
from local_dp.randomizers.binary_rr import BinaryRR
from local_dp.randomizers.prefix_signs import excess
from local_dp.tallies import Tally
from local_dp.theorems.local_from_sq import local_from_sq

EPSILON = 1.0
TARGET = 0.02  # the error rate to reach
INTERACTIVE = ("rule by rule", "gradient descent")
ONE_ROUND = ("averaging", "degree 1", "degree 2")
SPREADS = 2.5  # standard errors of an answer that the rule-by-rule learner calls pure
PREFIX_CLIENTS = 1 << 16


def _noise(n: int, queries: int) -> float:
    """The standard error of an answer when n clients are dealt out over the queries, as a tolerance."""
    return min(0.99, response_gain(EPSILON) / math.sqrt(n // queries))


def _population(d: int, n: int) -> Finite:
    return examples.labelled(examples.cube(d), examples.first_one_law(d), alternating_list(d), n)


def _by_rules(d: int, n: int, seed: np.random.Generator) -> float:
    plain = DecisionLists(d=d)
    learner = DecisionLists(d=d, slack=min(0.99, SPREADS * _noise(n, plain.queries)) / plain.proven)
    algorithm = local_from_sq(learner.algorithm(), EPSILON, lambda query: n // learner.queries)
    population = _population(d, n)
    return examples.error_rate(run(algorithm, AggregateOracle(population, seed, EPSILON)), population)


def _by_descent(d: int, n: int, seed: np.random.Generator) -> float:
    drawn = int(seed.integers(2**63))
    population, margin = examples.list_halfspace_examples(d, n, drawn)
    learner = LocalSGD(d=d + 1, gamma=margin, rounds=math.ceil(4 / margin**2))
    result = run(learner.algorithm(EPSILON, n), PopulationOracle(population, KeyedNoise(drawn), drawn, EPSILON))
    return examples.error_rate(result, population)


def _in_one_round(d: int, n: int, seed: np.random.Generator, name: str) -> float:
    if name == "averaging":
        degree_one = LowDegree(d=d, degree=1)
        algorithm: Nonadaptive[StatisticalQuery, float, Classifier] = _widened(degree_one.algorithm())
        queries = degree_one.queries
    else:
        degree = int(name.split()[1])
        queries = OneRoundPolynomial(d, degree).queries
        algorithm = _widened(OneRoundPolynomial(d, degree, _noise(n, queries)).algorithm())
    population = _population(d, n)
    local = local_from_sq(algorithm, EPSILON, lambda query: n // queries)
    return examples.error_rate(run(local, AggregateOracle(population, seed, EPSILON)), population)


def _widened(algorithm: Nonadaptive[StatisticalQuery, float, Any]) -> Nonadaptive[StatisticalQuery, float, Classifier]:
    return Nonadaptive(algorithm.queries, algorithm.decode)


def _error(learner: str, d: int, n: int, seed: np.random.Generator) -> float:
    """The error of one run with n clients."""
    if learner == "rule by rule":
        return _by_rules(d, n, seed)
    return _by_descent(d, n, seed) if learner == "gradient descent" else _in_one_round(d, n, seed, learner)


def _one_threshold_each(k: int, n: int) -> Nonadaptive[LocalQuery, Tally, Floats]:
    """The baseline for prefix sums: every client answers one of the k - 1 threshold questions by randomized response."""
    ends = [n * place // (k - 1) for place in range(k)]
    randomizer = BinaryRR(EPSILON)
    queries = tuple(LocalQuery(Question(f"value <= {t}"), randomizer, Cohort(ends[t], ends[t + 1])) for t in range(k - 1))
    return Nonadaptive(queries, lambda tallies: np.array([float(randomizer.estimate(tally).value) for tally in tallies]))


def _square_errors(k: int, trials: int, seed: int) -> tuple[list[float], list[float]]:
    """The mean square error over the k - 1 uncertain prefix sums in each trial: one bit for all, and one threshold each."""
    protocol, together, apart = PrefixSums(k=k), [], []
    for trial in range(trials):
        drawn = int(np.random.default_rng([seed, k, trial]).integers(2**63))
        population = protocol.synthetic(PREFIX_CLIENTS, drawn)
        truth = np.cumsum(population.law(protocol.category))[:-1]
        ours = run(protocol.algorithm(EPSILON, PREFIX_CLIENTS), PopulationOracle(population, KeyedNoise(drawn), drawn, EPSILON))
        together.append(float(np.mean((ours.value[:-1] - truth) ** 2)))
        if trial % max(1, k // 32) == 0:  # its errors are independent, so few trials tell as much
            baseline = run(_one_threshold_each(k, PREFIX_CLIENTS), AggregateOracle(population, np.random.default_rng(drawn), EPSILON))
            apart.append(float(np.mean((baseline - truth) ** 2)))
    return together, apart


def _ratio(top: Sequence[float], bottom: Sequence[float], z: float = 1.96) -> tuple[float, float, float]:
    """The ratio of two means, with its interval, 95 % by default (delta method)."""
    ratio = float(np.mean(top) / np.mean(bottom))
    spread = ratio * math.hypot(*(float(np.std(part, ddof=1) / (math.sqrt(len(part)) * np.mean(part))) for part in (top, bottom)))
    return ratio, ratio - z * spread, ratio + z * spread


def _predicted_gain(k: int) -> float:
    """The ratio of the two exact mean variances, sampling included: (C^2 - (2 F - 1)^2) (k - 1) / 4 over C^2 v - (F - 1/2)^2."""
    protocol = PrefixSums(k=k)
    centred = np.cumsum(protocol.synthetic(1, 0).law(protocol.category))[:-1] - 0.5
    square = response_gain(EPSILON) ** 2
    return float(np.mean(square / 4 - centred**2) * (k - 1) / np.mean(square * excess(k) - centred**2))


def _enough(grid: Sequence[int], errors: Sequence[Sequence[float]]) -> int | None:
    """The least n of the grid from which on the mean error stays within TARGET."""
    reached = None
    for n, seen in zip(reversed(grid), reversed(errors), strict=True):
        if np.mean(seen) > TARGET:
            break
        reached = n
    return reached


class Interaction(Experiment):
    """What later rounds buy, and what they do not."""

    name: ClassVar[str] = "interaction"
    title: ClassVar[str] = "Some tasks need a second question; some only need a better first one"
    claim: ClassVar[str] = (
        "To learn a list of rules, asking clients in rounds, each round about what the rules found so far leave open, takes fewer clients than any of the "
        "one-round methods tried, and the more rules, the greater the advantage; simple averaging fails however many clients there are. "
        "The distribution function of a column, in contrast, takes one round only: one well-chosen bit a client does the work of many separate questions."
    )
    source: ClassVar[str] = "Daniely, Feldman 2019; Dagan, Feldman 2020; Edmonds, Nikolov, Ullman 2020 (limits 8.3 to 8.5)"

    def points(self, scale: Scale) -> list[Point]:
        full = scale == "full"
        dimensions = (4, 6, 8, 10, 12) if full else (4, 8, 12)
        grid = [int(1e5 * 2**power) for power in (range(13) if full else range(1, 12, 2))]
        lists = [
            {"part": "lists", "learner": learner, "d": d, "grid": grid, "trials": 5 if full else 3}
            for learner in ("rule by rule", *ONE_ROUND)
            for d in dimensions
        ]
        margins = [
            {"part": "lists", "learner": "gradient descent", "d": d, "grid": [10**4, 10**5, 10**6], "trials": 5 if full else 2}
            for d in ((2, 3, 4, 5) if full else (2, 3, 4))
        ]
        prefixes = [{"part": "prefix", "k": k, "trials": 400 if full else 200} for k in ((16, 64, 256, 1024) if full else (16, 64, 256))]
        return [*lists, *margins, *prefixes]

    def measure(self, point: Point, seed: int) -> Measurement:
        if point["part"] == "prefix":
            together, apart = _square_errors(point["k"], point["trials"], seed)
            return {"together": together, "apart": apart}
        learner, d = point["learner"], point["d"]
        position = (*INTERACTIVE, *ONE_ROUND).index(learner)
        generators = ([np.random.default_rng([seed, position, d, n, trial]) for trial in range(point["trials"])] for n in point["grid"])
        return {"errors": [[_error(learner, d, n, generator) for generator in row] for n, row in zip(point["grid"], generators, strict=True)]}

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        lists = {(p["learner"], p["d"]): (p["grid"], m["errors"]) for p, m in measurements if p["part"] == "lists"}
        prefixes = {p["k"]: (m["together"], m["apart"]) for p, m in measurements if p["part"] == "prefix"}
        dimensions = sorted(d for learner, d in lists if learner == "rule by rule")
        needed = {key: _enough(*seen) for key, seen in lists.items()}
        return Finding(
            checks=[*_list_checks(lists, needed, dimensions), _descent_check(lists), *_prefix_checks(prefixes)],
            tables=[_list_table(lists, needed, dimensions), _descent_table(lists), _prefix_table(prefixes)],
            figures=[_accuracy(lists, max(dimensions)), _clients(needed, dimensions, lists), _prefix_figure(prefixes)],
            notes=[
                "One-round methods: averaging is the degree-1 Fourier estimate; degree k is least squares over polynomials from moments up to 2k. That no "
                "one-round method with polynomially many clients exists is a theorem (Daniely, Feldman 2019), which no run can show.",
                "The rules x0, x1, ... with labels +1, -1, +1, ... each decide equally often. The same list is a halfspace whose margin falls as 1.618^-d.",
                "Prefix sums: the client counts of the baseline are those of a yes/no question, whose variance is C^2 / 4n; counted with the variance C^2 / n "
                "of a +1/-1 question, every gain here would be four times greater.",
            ],
        )


Lists = dict[tuple[str, int], tuple[list[int], list[list[float]]]]
Needed = dict[tuple[str, int], int | None]
Prefixes = dict[int, tuple[list[float], list[float]]]


def _one_round_best(needed: Needed, d: int) -> int | None:
    return min((n for name in ONE_ROUND if (n := needed[name, d]) is not None), default=None)


def _text(n: int | None, grid: Sequence[int]) -> str:
    return f"{n:,}" if n is not None else f"more than {max(grid):,}"


def _list_checks(lists: Lists, needed: Needed, dimensions: list[int]) -> list[Check]:
    top, grid = dimensions[-1], lists["rule by rule", dimensions[-1]][0]
    interactive, best = needed["rule by rule", top], _one_round_best(needed, top)
    gains = [(_one_round_best(needed, d) or 2 * max(grid)) / (needed["rule by rule", d] or 2 * max(grid)) for d in dimensions]
    averages = [float(np.mean(lists["averaging", d][1][-1])) for d in dimensions]
    return [
        Check(
            f"A list of {top} rules takes fewer clients in rounds than by every one-round method tried",
            interactive is not None and (best is None or interactive < best),
            f"error {TARGET:.0%}: {_text(interactive, grid)} clients in rounds, {_text(best, grid)} in one",
        ),
        Check(
            "The advantage of rounds grows with the number of rules",
            gains[-1] > gains[0],
            "one-round over interactive clients: " + ", ".join(f"{gain:.2g} at d = {d}" for gain, d in zip(gains, dimensions, strict=True)),
        ),
        Check(
            "Averaging in one round fails however many clients there are",
            averages[-1] > 5 * TARGET and all(needed["averaging", d] is None for d in dimensions),
            "error of averaging at the most clients: " + ", ".join(f"{error:.2f} at d = {d}" for error, d in zip(averages, dimensions, strict=True)),
        ),
    ]


def _descent_check(lists: Lists) -> Check:
    final = {d: float(np.mean(errors[-1])) for (learner, d), (_, errors) in lists.items() if learner == "gradient descent"}
    return Check(
        "Private gradient descent in rounds learns the same lists as halfspaces of small margin",
        bool(final) and max(final.values()) <= 2.5 * TARGET,
        "error with 1,000,000 clients: " + ", ".join(f"{error:.3f} at margin {_margin(d):.2g}" for d, error in sorted(final.items())),
    )


def _margin(d: int) -> float:
    return examples.list_halfspace_examples(d)[1]


def _prefix_checks(prefixes: Prefixes) -> list[Check]:
    gains = {k: _ratio(apart, together) for k, (together, apart) in sorted(prefixes.items())}
    wide = {k: _ratio(apart, together, z=3.29) for k, (together, apart) in sorted(prefixes.items())}
    largest = max(gains)
    predicted = {k: _predicted_gain(k) for k in gains}
    return [
        Check(
            f"One bit for all {largest} prefix sums needs at least eight times fewer clients than separate questions",
            gains[largest][1] > 8,
            f"{gains[largest][0]:.1f} times fewer clients, 95 % interval {gains[largest][1]:.1f} to {gains[largest][2]:.1f}",
        ),
        Check(
            "The gain is the one its formula predicts, at every size (99.9 % intervals)",
            all(low <= predicted[k] <= high for k, (_, low, high) in wide.items()),
            ", ".join(f"k = {k}: {ratio:.2f} ({low:.2f} to {high:.2f}) measured, {predicted[k]:.2f} predicted" for k, (ratio, low, high) in wide.items()),
        ),
    ]


def _list_table(lists: Lists, needed: Needed, dimensions: list[int]) -> Table:
    methods = ("rule by rule", *ONE_ROUND)
    rows = [(d, *(_text(needed[name, d], lists[name, d][0]) for name in methods)) for d in dimensions]
    return Table(f"Clients for error {TARGET:.0%} at epsilon = 1", ("rules d", "in rounds, rule by rule", *(f"one round, {name}" for name in ONE_ROUND)), rows)


def _descent_table(lists: Lists) -> Table:
    rows = [
        (d, round(_margin(d), 4), math.ceil(4 / _margin(d) ** 2), n, round(float(np.mean(errors)), 4))
        for (learner, d), (grid, seen) in sorted(lists.items())
        if learner == "gradient descent"
        for n, errors in zip(grid, seen, strict=True)
    ]
    return Table("Private gradient descent at epsilon = 1", ("rules d", "margin", "rounds", "clients", "error"), rows)


def _prefix_table(prefixes: Prefixes) -> Table:
    rows = []
    for k, (together, apart) in sorted(prefixes.items()):
        ratio, low, high = _ratio(apart, together)
        toeplitz = k / 4 / (math.pi / 2 * toeplitz_gamma(k) ** 2)
        figures = (_predicted_gain(k), k / 4 / excess(k), toeplitz, k / 4 / prefix_gamma(k) ** 2)
        rows.append((k, f"{ratio:.2f} ({low:.2f} to {high:.2f})", *(round(figure, 2) for figure in figures)))
    columns = (
        "prefix sums k",
        "measured gain",
        "gain by formula",
        "at the median, by formula",
        "gain of square-root Toeplitz factors",
        "no one-bit method exceeds",
    )
    return Table("Prefix sums: how many times fewer clients than one threshold question each", columns, rows)


def _accuracy(lists: Lists, d: int) -> Figure:
    def curve(name: str) -> Curve:
        grid, errors = lists[name, d]
        seen = [sorted(row) for row in errors]
        return Curve(name, grid, [float(np.mean(row)) for row in seen], low=[row[0] for row in seen], high=[row[-1] for row in seen])

    title = f"Learning a list of {d} rules: in rounds (rule by rule) or in one round"
    return Figure("interaction-error", title, "clients", "error rate", [curve(name) for name in ("rule by rule", *ONE_ROUND)], log_x=True)


def _clients(needed: Needed, dimensions: list[int], lists: Lists) -> Figure:
    def curve(label: str, count: Callable[[int], int | None]) -> Curve:
        known = [(d, n) for d in dimensions if (n := count(d)) is not None]
        return Curve(label, [d for d, _ in known], [n for _, n in known])

    curves = [curve("in rounds", lambda d: needed["rule by rule", d]), curve("best of the one-round methods", lambda d: _one_round_best(needed, d))]
    grid = lists["rule by rule", dimensions[0]][0]
    curves.append(Curve("most clients tried", dimensions, [max(grid)] * len(dimensions), style="bound"))
    return Figure("interaction-clients", f"Clients for error {TARGET:.0%}", "rules d", "clients", curves, log_y=True)


def _prefix_figure(prefixes: Prefixes) -> Figure:
    sizes = sorted(prefixes)
    gains = [_ratio(prefixes[k][1], prefixes[k][0]) for k in sizes]
    measured = Curve("measured", sizes, [gain[0] for gain in gains], low=[gain[1] for gain in gains], high=[gain[2] for gain in gains])
    theory = Curve("formula", sizes, [_predicted_gain(k) for k in sizes], style="theory")
    bound = Curve("no one-bit method exceeds", sizes, [k / 4 / prefix_gamma(k) ** 2 for k in sizes], style="bound")
    title = "Prefix sums: clients saved against one threshold question each"
    return Figure("interaction-prefix", title, "prefix sums k", "times fewer clients", [measured, theory, bound], log_x=True, log_y=True)


EXPERIMENT = Interaction()
