"""Which version of the project this is."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache  # it reads a file, for every run
def installed_version() -> str:
    """The version of the installed package, or "unknown" in a checkout that is not installed."""
    try:
        return version("local-dp")
    except PackageNotFoundError:
        return "unknown"
