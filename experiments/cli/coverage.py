"""`local-dp coverage`: how often the intervals that protocols and experiments state hold the truth."""

import json
import zlib
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from experiments.cli import options
from local_dp.errors import InputError
from local_dp.loss import nano_epsilon

SUCCESS_RATES = "success-rates"
AT_USER_LEVEL = 10  # so many times fewer repetitions where every client is simulated
MOST = 1_000_000


def coverage(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Whose intervals: of these protocols; none given, all of them.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option("--epsilon", metavar="E", help="In nats; may be repeated. Default: 0.25, 1 and 3.")] = None,
    repetitions: Annotated[int, typer.Option("--repetitions", metavar="R", help="Runs of each case; a tenth of it where every client is simulated.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="The same seed gives the same table.")] = 1,
    as_json: options.Json = False,
) -> None:
    """Measures how often stated 95 % intervals hold the truth, by repetition and, where reports are binomial, exactly."""
    from experiments.lab.coverage import measure
    from experiments.lab.coverage_cases import CASES, least_counts, success_rates

    known = (*CASES, SUCCESS_RATES)
    wanted = tuple(names or known)
    for name in wanted:
        if name not in known:
            raise InputError(f"no intervals of {name!r} to measure; there are {', '.join(known)} (other protocols find a concept and state no interval)")
    if not 10 <= repetitions <= MOST or seed < 0:
        raise InputError(f"repetitions is {repetitions} and seed {seed}; give 10 to {MOST:,} repetitions and a seed of 0 or more")
    epsilons = tuple(epsilon or (0.25, 1.0, 3.0))
    for value in epsilons:
        nano_epsilon(value)
    measured = []
    for name in (name for name in wanted if name in CASES):
        for value in epsilons:
            for case in CASES[name](value):
                generator = np.random.default_rng([seed, zlib.crc32(f"{case.name} {case.what} {case.tier} {case.n} {case.epsilon}".encode())])
                runs = repetitions if case.tier == "aggregate" else max(10, repetitions // AT_USER_LEVEL)
                measured.append(measure(case, runs, generator).describe())
    exact = [row for value in epsilons for row in least_counts(value)] if any(name in ("survey", "frequency", "mean", "sq") for name in wanted) else []
    data = {"seed": seed, "measured": measured, "exact": exact, "success_rates": success_rates() if SUCCESS_RATES in wanted else []}
    if as_json:
        typer.echo(json.dumps(data))
    else:
        _show(data)


def _show(data: dict[str, Any]) -> None:
    console = Console()
    if data["measured"]:
        columns = ("intervals of", "epsilon", "clients", "coverage", "worst [95 %]", "exact worst", "")
        console.print(_table(columns, [_measured(row) for row in data["measured"]]))
    if data["exact"]:
        heading = ("exact, over every share", "reports", "epsilon", "in the band from", "default clients", "coverage there")
        console.print(_table(heading, [_counts(row) for row in data["exact"]]))
    if data["success_rates"]:
        rates = [(f"{row['trials']:,}", f"{row['mean']:.4f}", f"{row['least']:.4f}", f"{row['most']:.4f}", _verdict(row)) for row in data["success_rates"]]
        console.print(_table(("success rate of trials", "coverage, exact, rates 0.8 to 0.99", "least", "most", ""), rates))


def _measured(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["worst_interval"]
    exact = "" if row["worst_exact"] is None else f"{row['worst_exact']:.4f}"
    verdict = "at odds with its law" if not row["agrees"] else "agrees" if row["tier"] == "population" else _verdict(row)
    clients = f"{row['n']:,}" + (" default" if row["default"] else " simulated" if row["tier"] == "population" else "")
    worst = f"{row['worst']:.4f} [{low:.4f}, {high:.4f}]"
    return f"{row['name']}, {row['what']}", f"{row['epsilon']:g}", clients, f"{row['coverage']:.4f}", worst, exact, verdict


def _counts(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["exact"]
    return row["what"], row["randomizer"], f"{row['epsilon']:g}", f"{row['holds_from']:,}", f"{row['default']:,}", f"{low:.4f} to {high:.4f}"


def _verdict(row: dict[str, Any]) -> str:
    return "inside" if row["inside"] else "outside"


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(*columns, show_edge=False, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table
