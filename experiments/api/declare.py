"""What the interface shares: options declared once, from which commands, keywords and help are made; and results that print themselves."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_dp.errors import InputError
from local_dp.foreign import shown

if TYPE_CHECKING:  # frames take a while to import
    import polars


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


CSV = "Form of a CSV file, where it is not to be detected: 'sep=; decimal=, encoding=latin-1', in full or in part"


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


def pair(text: str) -> tuple[str, str]:
    """A name and the text after the equals sign."""
    name, _, value = text.partition("=")
    return name, value


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


WIDTH = 100  # characters of the block


@dataclass(frozen=True, repr=False)
class Printable(ABC):
    """Plain data by `to_dict`, as `--json` prints it; a block of text by `print`."""

    data: dict[str, Any]

    @abstractmethod
    def text(self, width: int = WIDTH) -> str:
        """For a person: lines of at most `width` characters where words allow."""

    def __repr__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """The plain data."""
        return self.data

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap; line-height: 1.35">{shown(repr(self), "page")}</pre>'


@dataclass(frozen=True)
class Picture:
    """A figure as PNG: a notebook shows it."""

    png: bytes = field(repr=False)

    def _repr_png_(self) -> bytes:
        return self.png


class Tabular(Printable):
    """A result that is also a frame, by `to_polars` or `to_pandas`, and a figure, by `plot`."""

    @abstractmethod
    def frame(self) -> Mapping[str, list[Any]]:
        """The columns of the frame. Raises InputError for a result without one."""

    @abstractmethod
    def draw(self, path: Path) -> None:
        """Draws the figure into `path`. Raises InputError for a result without one."""

    def to_polars(self) -> "polars.DataFrame":
        """The result as a frame of polars. Raises InputError for a result without one."""
        import polars

        return polars.DataFrame([polars.Series(name, values, strict=False) for name, values in self.frame().items()]).fill_nan(None)

    def to_pandas(self) -> Any:
        """The result as a frame of pandas. Raises InputError for a result without one, and where pandas is missing."""
        try:
            import pandas
        except ImportError:
            raise InputError("to_pandas needs pandas; install it: pip install pandas, or use to_polars") from None
        return pandas.DataFrame(self.frame())

    def plot(self, path: str | Path | None = None) -> Picture | None:
        """Draws the result, beside the truth where it is known, into `path` (.png, .svg or .pdf). Without a path, returns a picture for a notebook."""
        if path is not None:
            self.draw(Path(path))
            return None
        with tempfile.TemporaryDirectory() as folder:
            drawn = Path(folder) / "result.png"
            self.draw(drawn)
            return Picture(drawn.read_bytes())
