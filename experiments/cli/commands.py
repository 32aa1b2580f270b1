"""The commands, put together."""

import typer

from experiments.cli import bench, export, listing
from experiments.cli import check as checking
from experiments.cli import coverage as measuring
from experiments.cli import experiment as laboratory
from experiments.cli import join as joining
from experiments.cli import run as running

app = typer.Typer(
    help="A laboratory of the local model of differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
COMMANDS = (
    running.run, listing.protocols, listing.randomizers, listing.describe, joining.server, joining.host, joining.client,
    laboratory.experiment, laboratory.report, checking.dimension, checking.certify, measuring.coverage, bench.bench, export.export,
)  # fmt: skip
for command in COMMANDS:
    app.command()(command)
