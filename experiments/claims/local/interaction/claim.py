"""Interaction beyond the paper: decision lists and small margins with and without it, and what one round can do by itself for prefix sums."""

import math
from typing import ClassVar

import numpy as np

from local_dp.experiments.claims.local.interaction.lists import (
    EPSILON,
    TARGET,
    accuracy_figure,
    clients_figure,
    grid_of,
    list_checks,
    list_headline,
    list_points,
    list_table,
    measure_lists,
)
from local_dp.experiments.claims.local.interaction.prefixes import (
    cross_check_prefix,
    measure_prefix,
    prefix_checks,
    prefix_figure,
    prefix_intervals,
    prefix_points,
    prefix_table,
)
from local_dp.experiments.lab.calibration import intervals_check
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.claim import Check, Experiment, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.coverage.stated import Stated
from local_dp.experiments.lab.cross_check import cross_check_shown
from local_dp.experiments.lab.minimal_clients import reached_check
from local_dp.interaction import run
from local_dp.learners import examples
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.protocols.learning.sgd import LocalSGD

Descents = dict[int, tuple[list[int], list[list[float]]]]


def _descend(d: int, n: int, seed: np.random.Generator) -> tuple[float, float]:
    """The error of one run of private gradient descent, client by client, and the most that a client spent."""
    drawn = int(seed.integers(2**63))
    population, margin = examples.list_halfspace_examples(d, n, drawn)
    learner = LocalSGD(d=d + 1, gamma=margin, rounds=math.ceil(4 / margin**2))
    oracle = PopulationOracle(population, KeyedNoise(drawn), drawn, EPSILON)
    error = examples.error_rate(run(learner.algorithm(EPSILON, n), oracle), population)
    return error, oracle.ledger.max_spent


class Interaction(Experiment[Point, Measurement]):
    """What later rounds buy, and what they do not."""

    name: ClassVar[str] = "interaction"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "Some tasks need a second question; some only need a better first one"
    claim: ClassVar[str] = (
        "To learn a list of rules, asking clients in rounds, each round about what the rules found so far leave open, takes fewer clients than any of the "
        "one-round methods tried, and the more rules, the greater the advantage; simple averaging fails with as many clients as were tried. "
        "The distribution function of a column, in contrast, takes one round only: one well-chosen bit a client does the work of many separate questions."
    )
    source: ClassVar[str] = "Daniely, Feldman 2019; Dagan, Feldman 2020; Edmonds, Nikolov, Ullman 2020 (limits 8.3 to 8.5)"

    def points(self, scale: Scale) -> list[Point]:
        full = scale == "full"
        margins = [{"part": "descent", "d": d, "grid": [10**4, 10**5, 10**6], "trials": 5 if full else 2} for d in ((2, 3, 4, 5) if full else (2, 3, 4))]
        return [*list_points(scale), *margins, *prefix_points(scale)]

    def measure(self, point: Point, seed: int) -> Measurement:
        if "k" in point:
            return cross_check_prefix(point, seed) if point["part"] == "cross" else measure_prefix(point, seed)
        if point["part"] != "descent":
            return measure_lists(point, seed)
        d = point["d"]
        generators = ([np.random.default_rng([seed, 1, d, n, trial]) for trial in range(point["trials"])] for n in point["grid"])
        runs = [[_descend(d, n, generator) for generator in row] for n, row in zip(point["grid"], generators, strict=True)]
        return {"errors": [[error for error, _ in row] for row in runs], "spent": max(spent for row in runs for _, spent in row)}

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        counts = {(p["learner"], p["d"]): m for p, m in measurements if p["part"] == "least"}
        crossed = [cross_check_shown(_crossed(p), m) for p, m in measurements if p["part"] == "cross"]
        reached = reached_check([(f"{learner}, d = {d}", m) for (learner, d), m in counts.items()])
        errors = grid_of(measurements)
        descents = {p["d"]: (p["grid"], m["errors"]) for p, m in measurements if p["part"] == "descent"}
        spent = max((m["spent"] for p, m in measurements if p["part"] == "descent"), default=math.inf)
        prefixes = {p["k"]: (m["together"], m["apart"]) for p, m in measurements if p["part"] == "prefix"}
        found = reached.shown
        return Finding(
            checks=[
                reached,
                *(list_checks(counts, errors) if found else []),
                _descent_check(descents, spent),
                *prefix_checks(prefixes),
                *crossed,
                intervals_check(),
            ],
            tables=[*([list_table(counts)] if found else []), _descent_table(descents), prefix_table(prefixes)],
            figures=[accuracy_figure(errors), *([clients_figure(counts)] if found else []), prefix_figure(prefixes)],
            notes=[
                "One-round methods: averaging is the degree-1 Fourier estimate; degree k is least squares over polynomials from moments up to 2k. That no "
                "one-round method with polynomially many clients exists is a theorem for non-interactive protocols (Daniely, Feldman 2019), which no run can "
                "show. Rule by rule is sequentially interactive: nobody is asked twice.",
                "Client counts of the lists are measured minima with 95 % intervals; those of methods that do not get there are not searched for.",
                "The rules x0, x1, ... with labels +1, -1, +1, ... each decide equally often. The same list is a halfspace whose margin falls as 1.618^-d.",
                "Prefix sums: the client counts of the baseline are those of a yes/no question, whose variance is C^2 / 4n; counted with the variance C^2 / n "
                "of a +1/-1 question, every gain here would be four times greater.",
            ],
            headline=list_headline(counts) if found else reached.evidence,
        )

    def stated(self, scale: Scale) -> list[Stated]:
        return prefix_intervals(scale)


def _crossed(point: Point) -> str:
    return f"{point['learner']}, " + (f"k = {point['k']}" if "k" in point else f"d = {point['d']}")


def _margin(d: int) -> float:
    return examples.list_halfspace_examples(d)[1]


def _descent_check(descents: Descents, spent: float) -> Check:
    final = {d: (max(grid), float(np.mean(errors[-1]))) for d, (grid, errors) in sorted(descents.items())}
    return Check(
        f"Private gradient descent in rounds learns the same lists as halfspaces of small margin, to an error of {2.5 * TARGET:.0%}, at epsilon 1",
        bool(final) and max(error for _, error in final.values()) <= 2.5 * TARGET and spent <= 1,
        "mean error: "
        + ", ".join(f"{error:.3f} at margin {_margin(d):.2g} with {n:,} clients" for d, (n, error) in final.items())
        + f"; nobody spent more than {spent:g}",
    )


def _descent_table(descents: Descents) -> Table:
    rows = [
        (d, round(_margin(d), 4), math.ceil(4 / _margin(d) ** 2), n, len(errors), round(float(np.mean(errors)), 4))
        for d, (grid, seen) in sorted(descents.items())
        for n, errors in zip(grid, seen, strict=True)
    ]
    return Table("Private gradient descent at epsilon = 1", ("rules d", "margin", "rounds", "clients", "runs", "mean error"), rows)


EXPERIMENT = Interaction()
