"""The command line. Exit codes: 0 done; 2 bad usage or input; 3 a round under quorum; 4 refused (budget, unknown or unverifiable randomizer); 5 the bus."""

import sys

import typer

from experiments import bench, joining, listing, running
from local_dp.errors import BusError, InputError, LocalDPError, QuorumError, RefusedError

EXIT_CODES: dict[type[LocalDPError], int] = {InputError: 2, QuorumError: 3, RefusedError: 4, BusError: 5}

app = typer.Typer(
    help="A laboratory of the local model of differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (running.run, listing.protocols, listing.randomizers, listing.describe, joining.server, joining.host, joining.client, bench.bench):
    app.command()(command)


def main() -> None:
    """The entry point: errors become one line and an exit code."""
    try:
        app()
    except LocalDPError as error:
        print(f"local-dp: {error}", file=sys.stderr)
        sys.exit(EXIT_CODES[type(error)])


if __name__ == "__main__":
    main()
