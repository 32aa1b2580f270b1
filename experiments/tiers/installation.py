"""This installation: its version, and the default folders of files that outlive a process, in the user's folder for state."""

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@cache  # it reads a file, for every run
def installed_version() -> str:
    """The version of the installed package, or "unknown" in a checkout that is not installed."""
    try:
        return version("local-dp")
    except PackageNotFoundError:
        return "unknown"


def state_folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "local-dp"


def stores_folder() -> Path:
    return state_folder() / "stores"


def runs_folder() -> Path:
    return state_folder() / "runs"
