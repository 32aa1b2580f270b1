"""Which version of the project this is."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """The version of the installed package, or "unknown" in a checkout that is not installed."""
    try:
        return version("local-dp")
    except PackageNotFoundError:
        return "unknown"
