"""`local-dp run`: a whole run from one command."""

import json
from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import options
from experiments.cli.output import ProgressLines, estimates, summary
from experiments.tiers.execute import execute
from experiments.tiers.outcome import as_data
from experiments.tiers.settings import EMBEDDED, Randomness, Settings, Tier
from local_dp.errors import InputError
from server.terms import Terms


def run(
    protocol: options.ProtocolName,
    clients: options.Clients = None,
    epsilon: options.Epsilon = 1.0,
    tier: Annotated[Tier, typer.Option(help="How the clients run: a process each, packed in hosts, simulated, or only their sum drawn.")] = "hosts",
    hosts: Annotated[int, typer.Option("--hosts", metavar="H", help="How many host processes share the clients.")] = 2,
    broker: Annotated[
        str, typer.Option("--broker", metavar="URL", help="embedded, or mqtt://[user:password@]host[:port], or mqtts://...[?ca=FILE].")
    ] = EMBEDDED,
    records: options.RecordsFile = None,
    question: options.QuestionText = None,
    column: options.ColumnName = None,
    settings: options.SetValues = None,
    seed: options.Seed = None,
    private: options.Private = False,
    deadline: options.Deadline = 30.0,
    quorum: options.Quorum = 0.9,
    allow: options.Allow = None,
    as_json: options.Json = False,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE.png", help="Draw the estimates with their intervals.")] = None,
) -> None:
    """Runs a protocol: clients, server and message bus, from one command."""
    built, table = options.configured(protocol, records, question, column, settings, private)
    randomness = Randomness.choose(seed, private)
    population = options.population_of(built, table, clients, epsilon, randomness.seed)
    chosen = Settings(built, population, epsilon, randomness, tier, hosts, broker, Terms(deadline, quorum), options.allowed_names(allow))
    if plot is not None:
        check_plot(plot, built.name)
    with ProgressLines() as lines:
        outcome = execute(chosen, lines.update)
    data = as_data(chosen, outcome)
    if as_json:
        typer.echo(json.dumps(data))
    else:
        summary(data)
    if plot is not None:
        from experiments.lab.figures import plot_estimates

        labels, values, _, intervals = zip(*estimates(data["result"]), strict=True)
        lows, highs = zip(*intervals, strict=True)
        plot_estimates(f"{built.name}, epsilon {epsilon:g}, {data['rounds'][0]['n']:,} clients", labels, values, lows, highs, None, plot)


def check_plot(plot: Path, protocol: str) -> None:
    """Raises InputError before the run if its figure could not be drawn after it."""
    if protocol.startswith(("masked-parity", "parity", "learn-", "local-sgd")):
        raise InputError(f"{protocol} learns a hypothesis: there is no estimate to draw; leave out --plot")
    if plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"--plot is {str(plot)!r}; give a file that ends in .png, .svg or .pdf")
    if not plot.parent.is_dir():
        raise InputError(f"there is no folder {str(plot.parent)!r} for the figure; make it first")
