"""The command line. Exit codes: 0 done; 2 bad usage or input; 3 a round under quorum; 4 refused (budget, unknown or unverifiable randomizer); 5 the bus."""

import sys

from local_dp.errors import BusError, InputError, LocalDPError, QuorumError, RefusedError

EXIT_CODES: dict[type[LocalDPError], int] = {InputError: 2, QuorumError: 3, RefusedError: 4, BusError: 5}
INTERRUPTED = 130


def main() -> None:
    """The entry point: errors become one line and an exit code, also while the commands are still being imported."""
    try:
        from experiments.cli.commands import app

        app(prog_name="local-dp")
    except LocalDPError as error:
        print(f"local-dp: {error}", file=sys.stderr)
        sys.exit(EXIT_CODES[type(error)])
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
