"""The default folders of files that outlive a process: in the user's folder for state."""

import os
from pathlib import Path


def state_folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "local-dp"


def stores_folder() -> Path:
    return state_folder() / "stores"


def runs_folder() -> Path:
    return state_folder() / "runs"
