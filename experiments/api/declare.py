"""Declares options once: fields of a dataclass, from which options of commands, keywords of functions and their help are made."""

from collections.abc import Callable
from dataclasses import MISSING, field, fields
from typing import Any

from local_dp.errors import InputError


def option(
    default: Any = MISSING,
    help: str = "",
    *,
    name: str = "",
    metavar: str = "",
    unit: str = "",
    read: Callable[[str], Any] | None = None,
    collect: Callable[[Any], Any] | None = None,
    ends: tuple[str, str] = ("", ""),
    shell: bool = True,
) -> Any:
    """A field that is an option; without a default it must be given.

    For the command line: `name` is its spelling there, if not the field's. `read` reads one text, and `collect` makes the value of all texts of a repeated
    option. `ends` are the help of `--low` and `--high`, for a field that is a pair of bounds. An option without `shell` is for Python alone.
    """
    about = {"help": help, "name": name, "metavar": metavar, "unit": unit, "read": read, "collect": collect, "ends": ends, "shell": shell}
    return field(default=default, metadata=about)


def argument(help: str, *, metavar: str, default: Any = MISSING) -> Any:
    """A field that is an argument of a command; a tuple takes all that are given."""
    return field(default=default, metadata={"help": help, "metavar": metavar, "is_argument": True})


def settings_of(settings: tuple[str, ...]) -> dict[str, str]:
    """The parameters in --set KEY=VALUE. Raises InputError."""
    values = {}
    for setting in settings:
        key, separator, value = (part.strip() for part in setting.partition("="))
        if not separator or not key:
            raise InputError(f"--set takes KEY=VALUE, not {setting!r}")
        values[key] = value
    return values


def shown_default(value: Any) -> str:
    """A default as it is typed; empty where nothing is set."""
    if value is MISSING or value is None or value == ():
        return ""
    return ";".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)


def keywords(kind: type[Any]) -> str:
    """The fields of a dataclass of options, a line each, for the documentation of a function that takes them."""
    lines = []
    for each in fields(kind):
        notes = ", ".join(filter(None, (each.metadata["unit"], f"default: {shown_default(each.default)}" if shown_default(each.default) else "")))
        lines.append(f"    {each.name}: {each.metadata['help']}{f' [{notes}]' if notes else ''}")
    return "\n".join(lines)
