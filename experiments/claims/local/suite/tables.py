"""What the runs of the suite show: who is defeated where, the tables and the figures."""

from typing import Any

from local_dp.experiments.claims.local.suite.runs import (
    EDGE,
    EPSILON,
    ORACLES,
    Outcome,
    records_needed,
)
from local_dp.experiments.lab.parts import (
    ClientCount,
    Curve,
    Figure,
    Table,
    curve,
    tabulate,
)
from local_dp.learners.examples import Task

BEYOND = 16.0  # times the proven tolerance, in the figure of errors
TOP = 10.0  # of the axes of errors
LABEL = f"largest error / alpha ({TOP:g} or more drawn as {TOP:g})"
BEYOND_ORACLES = ("worst case", "local clients")  # asked beyond the proven tolerance too
BOUND_ORACLES = ("local clients", "curator", "sample")

Catalogue = dict[str, Task[Any]]
Runs = dict[tuple[str, str, float], list[Outcome]]  # by learner, oracle and slack
Fewests = dict[str, ClientCount]  # by learner


def largest(runs: list[Outcome], task: Task[Any]) -> float:
    """The largest miss of the runs, in units of alpha."""
    return max(run.excess for run in runs) / task.learner.alpha


def _worst(runs: Runs, task: Task[Any], oracle: str, slack: float = 1.0) -> float | None:
    own = runs.get((task.learner.name, oracle, slack))
    return largest(own, task) if own else None


def defeats(runs: Runs, task: Task[Any], oracle: str) -> list[float]:
    """The multiples of the proven tolerance at which a learner misses alpha."""
    return [
        slack
        for slack in (1.0, *_slacks(runs))
        if (_worst(runs, task, oracle, slack) or 0.0) > 1 + EDGE
    ]


def _slacks(runs: Runs) -> list[float]:
    return sorted({slack for _, oracle, slack in runs if oracle == "worst case"})


def suite_tables(runs: Runs, catalogue: Catalogue, fewest: Fewests) -> list[Table]:
    return [
        _errors(runs, catalogue),
        _costs(runs, catalogue, fewest),
        _errors_beyond(runs, catalogue),
    ]


def _cell(value: float | None) -> str:
    return "not run" if value is None else f"{value:.2f}"


def _errors(runs: Runs, catalogue: Catalogue) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name, task in catalogue.items():
        errors = (_cell(_worst(runs, task, oracle)) for oracle in ORACLES)
        worst = runs.get((name, "worst case", 1.0))
        adversary = (worst and worst[0].adversary) or "not run"
        rows.append((name, task.learner.model(), *errors, adversary))
    return tabulate(
        "Largest error over the runs, in units of alpha, at the proven tolerance",
        f"learner | model | {' | '.join(ORACLES)} | worst case over",
        rows,
    )


def _costs(runs: Runs, catalogue: Catalogue, fewest: Fewests) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name, task in catalogue.items():
        learner, exact, count = task.learner, runs[name, "exact", 1.0][0], fewest.get(name)
        queries = f"{exact.queries} of {learner.queries}"
        rounds = f"{exact.rounds} of {learner.rounds}"
        minimum = f"{count.n:,} [{count.low:,}, {count.high:,}]" if count else "not measured"
        usage = queries, rounds, f"{learner.tolerance:.2g}", minimum
        bounds = (f"{records_needed(oracle, learner):,}" for oracle in BOUND_ORACLES)
        rows.append((name, learner.model(), *usage, *bounds))
    asks = (
        "learner | model | queries, of at most | rounds, of at most | tolerance | local clients, "
        "measured minimum on its task [95 %]"
    )
    bounds_of = " | ".join(f"{oracle}, sufficient bound" for oracle in BOUND_ORACLES)
    title = (
        "What each learner asks, and how many individuals answer it (local bound: t 2 C^2 "
        "ln(2t/beta) / tau^2)"
    )
    return tabulate(title, f"{asks} | {bounds_of}", rows)


def _errors_beyond(runs: Runs, catalogue: Catalogue) -> Table:
    slacks = _slacks(runs)
    rows: list[tuple[Any, ...]] = []
    for name, task in catalogue.items():
        for oracle in BEYOND_ORACLES:
            errors = (_cell(_worst(runs, task, oracle, slack)) for slack in slacks)
            rows.append((name, oracle, *errors))
    headings = " | ".join(f"{slack:g} x proven" for slack in slacks)
    return tabulate(
        "Largest error, in units of alpha, as the tolerance grows beyond the proven one",
        f"learner | answers | {headings}",
        rows,
    )


def suite_figures(runs: Runs, catalogue: Catalogue, fewest: Fewests) -> list[Figure]:
    return [
        _errors_figure(runs, catalogue),
        _clients_figure(catalogue, fewest),
        _slack_figure(runs, catalogue),
    ]


def _errors_figure(runs: Runs, catalogue: Catalogue) -> Figure:
    def errors(oracle: str, slack: float) -> list[float]:
        return [_worst(runs, task, oracle, slack) or 0.0 for task in catalogue.values()]

    def bars(label: str, oracle: str, slack: float) -> Curve:
        heights = [min(TOP, max(0.0, error)) for error in errors(oracle, slack)]
        return Curve(label, places, heights, style="bars")

    places = list(range(len(catalogue)))
    curves = [
        bars("worst case, proven tolerance", "worst case", 1.0),
        bars(f"worst case, {BEYOND:g} times as much", "worst case", BEYOND),
        bars(f"local clients, {BEYOND:g} times as much", "local clients", BEYOND),
        Curve("promised", places, [1.0] * len(places), style="bound"),
    ]
    within, beyond = (
        sum(error > 1 + EDGE for error in errors("worst case", slack)) for slack in (1.0, BEYOND)
    )
    title = (
        f"In the worst case {within} of {len(catalogue)} learners are lost at the proven "
        f"tolerance, and {beyond} at {BEYOND:g} times as much"
    )
    ticks = tuple(catalogue)
    return Figure("suite-errors", title, "learner", LABEL, curves, "interactive", x_ticks=ticks)


def _clients_figure(catalogue: Catalogue, fewest: Fewests) -> Figure:
    def bound(label: str, oracle: str) -> Curve:
        numbers = [records_needed(oracle, task.learner) for task in catalogue.values()]
        places = list(range(len(numbers)))
        return Curve(f"{label}, sufficient bound", places, numbers, style="bars")

    counts = [
        (place, count.n, count.low, count.high)
        for place, name in enumerate(catalogue)
        if (count := fewest.get(name))
    ]
    curves = [
        bound("no privacy", "sample"),
        bound("curator", "curator"),
        bound("local clients", "local clients"),
        curve("local clients, measured minimum", counts, "bars"),
    ]
    title = f"What privacy costs: individuals for the same promise at epsilon = {EPSILON:g}"
    ticks = tuple(catalogue)
    return Figure(
        "suite-clients", title, "learner", "individuals", curves, log_y=True, x_ticks=ticks
    )


def _slack_figure(runs: Runs, catalogue: Catalogue) -> Figure:
    slacks, curves = _slacks(runs), []
    for name, task in catalogue.items():
        errors = (_worst(runs, task, "worst case", slack) or 0.0 for slack in slacks)
        curves.append(Curve(name, slacks, [min(TOP, error) for error in errors]))
    curves.append(Curve("promised", slacks, [1.0] * len(slacks), style="bound"))
    title = "The worst case, beyond the proven tolerance"
    x_label = "tolerance / proven tolerance"
    return Figure("suite-slack", title, x_label, LABEL, curves, "interactive", log_x=True)
