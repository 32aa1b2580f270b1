"""Where what outlives a process is kept when nobody says otherwise: the user's folder for state."""

import os
from pathlib import Path


def state_folder() -> Path:
    """Ours among those of the programs that the user runs."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "local-dp"


def stores_folder() -> Path:
    """Of clients: what each has answered and spent."""
    return state_folder() / "stores"


def runs_folder() -> Path:
    """Of servers: what each run has been told."""
    return state_folder() / "runs"
