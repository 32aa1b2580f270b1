"""The commands, put together."""

import typer

from experiments import bench, joining, listing, running

app = typer.Typer(
    help="A laboratory of the local model of differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (running.run, listing.protocols, listing.randomizers, listing.describe, joining.server, joining.host, joining.client, bench.bench):
    app.command()(command)
