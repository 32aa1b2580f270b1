"""What the interface shares: options declared once, from which commands, keywords and help are
made; and results that print themselves."""

import io
import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from local_dp.checks import check_no_cells, converted, has_cells, treatment
from local_dp.errors import EXTREME, InputError, unknown
from local_dp.foreign import shown
from local_dp.simulation.installation import stamp_of
from local_dp.text.layout import as_csv, python_errors

if TYPE_CHECKING:  # frames take a while to import
    import polars

    from local_dp.experiments.lab.style import Drawing


def option(
    default: Any = MISSING,
    brief: str = "",
    *,
    help: str = "",
    choices: tuple[str, ...] = (),
    meanings: Mapping[str, str] | None = None,
    usual: Any = None,
    name: str = "",
    metavar: str = "",
    unit: str = "",
    read: Callable[[str], Any] | None = None,
    collect: Callable[[Any], Any] | None = None,
    ends: tuple[str, str] = ("", ""),
    split: bool = False,
    shell: bool = True,
) -> Any:
    """A field that is an option; without a default it must be given. One whose default is None may
    have a `usual` value, which counts where nothing is given.

    `brief` has at most 56 characters and no formula; `help` is more, for `--help-all`. `choices`
    are the words it may have; those of a `policy` have `meanings`. For the command line: `name` is
    its spelling there, if not the field's. `read` reads one text, and `collect` makes the value of
    all texts of a repeated option; with `split`, one text may have several parts. `ends` are the
    briefs of `--low` and `--high`, for a field that is a pair of bounds. An option without `shell`
    is for Python alone.
    """
    return field(default=default, metadata=dict(locals()))


def policy(of: str, **meanings: str) -> Any:
    """An option that decides about some records: they are refused, or treated by one of the words,
    each with its meaning."""
    return option("refuse", meanings=meanings, **treatment(of, meanings))


CLUSTER = "Dask scheduler whose workers measure: tcp://host:8786"
CSV: dict[str, Any] = {
    "brief": "Form of a CSV file: separator, decimal sign, encoding",
    "help": "In full or in part: 'sep=; decimal=, encoding=latin-1 missing=NA'",
    "metavar": "FORM",
}


def pair(text: str) -> tuple[str, str]:
    """A name and the text after the equals sign."""
    name, _, value = text.partition("=")
    return name, value


DATES: dict[str, Any] = {  # an option of what reads a table
    "brief": "Column of dates and their form; may be repeated", "help": "Such as 'date=%m/%d/%Y'",
    "name": "--date", "metavar": "COLUMN=FORM", "read": pair, "collect": dict,
}  # fmt: skip


def argument(brief: str, *, metavar: str, default: Any = MISSING, help: str = "") -> Any:
    """A field that is an argument of a command; a tuple takes all that are given."""
    about = {"brief": brief, "help": help, "metavar": metavar, "is_argument": True}
    return field(default=default, metadata=about)


def meaning(about: Mapping[str, Any]) -> str:
    """The whole help of an option: its brief, and what more there is to know."""
    return ". ".join(filter(None, (about["brief"], about.get("help"))))


def settings_of(settings: tuple[str, ...]) -> dict[str, str]:
    """The parameters in --set NAME=VALUE. Raises InputError."""
    values: dict[str, str] = {}
    for setting in settings:
        key, separator, value = (part.strip() for part in setting.partition("="))
        if not separator or not key:
            raise InputError(f"--set takes NAME=VALUE, not {setting!r}")
        if key in values:
            raise InputError(f"{key} is set to {values[key]!r} and to {value!r}; give one")
        values[key] = value
    return values


def usual(each: Field[Any]) -> str:
    """The default of an option, or what counts in its place, as it is typed."""
    return shown_default(each.metadata.get("usual") if each.default is None else each.default)


def shown_default(value: Any) -> str:
    """A default as it is typed; empty where nothing is set."""
    if value is MISSING or value is None or value == ():
        return ""
    return (
        ";".join(map(str, value))
        if isinstance(value, tuple)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def keywords(kind: type[Any], without: tuple[str, ...] = ()) -> str:
    """The fields of a dataclass of options, a line each, for the documentation of a function that
    takes them."""
    lines = []
    for each in (each for each in fields(kind) if each.name not in without):
        notes = ", ".join(
            filter(None, (each.metadata["unit"], f"default: {usual(each)}" if usual(each) else ""))
        )
        lines.append(f"    {each.name}: {meaning(each.metadata)}{f' [{notes}]' if notes else ''}")
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
        return (
            '<pre style="white-space: pre-wrap; line-height: '
            f'1.35">{shown(repr(self), "page")}</pre>'
        )


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The options of a command that draws; its `omissions` name those that do not apply."""

    figure_size: float = option(4.8, "Width of a figure", name="--size", metavar="W", unit="inches")
    figure_font: float = option(
        10.0, "Size of the letters in a figure", name="--font", metavar="P", unit="points"
    )
    figure_series: tuple[str, ...] = option(
        (), "Colour only series with this in their name", name="--series", metavar="NAME"
    )
    figure_format: Literal["pdf", "svg", "png"] | None = option(
        None, "Format of a figure; default: as its file ends", name="--format"
    )

    @property
    def drawing(self) -> "Drawing":
        """Raises InputError."""
        from local_dp.experiments.lab.style import Drawing

        return Drawing(self.figure_size, self.figure_font, self.figure_series)

    def picture(self, path: Path) -> Path:
        """The file of a figure, with the ending of its format. Raises InputError for one that
        cannot be written."""
        path = path if self.figure_format is None else path.with_suffix(f".{self.figure_format}")
        if path.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError(
                f"the figure is {str(path)!r}; give a file that ends in .png, .svg or .pdf"
            )
        check_folder(path, "figure")
        return path


F = TypeVar("F", bound=Callable[..., Any])


def by_name(function: F) -> F:
    """The function, whose call raises InputError in the dialect of Python for values that are not
    given, not by name, unknown or of another type; numbers of numpy become Python's own."""
    signed = signature(function).parameters
    name = function.__name__

    @wraps(function)
    def call(*values: Any, **how: Any) -> Any:
        with python_errors():
            _check_given(name, signed, values, how)
            values = tuple(map(_argument, signed, signed.values(), values))
            how = {key: _argument(key, signed.get(key), value) for key, value in how.items()}
            try:
                return function(*values, **how)
            except (OverflowError, ZeroDivisionError):
                raise InputError(EXTREME) from None

    return cast(F, call)


def _argument(name: str, parameter: Parameter | None, value: Any) -> Any:
    """The value in the type of its parameter; a protocol's own has none here. Raises
    InputError."""
    if parameter is None:
        check_no_cells(name, value)
    return converted(name, value, Any if parameter is None else parameter.annotation)


def _check_given(
    name: str, signed: Mapping[str, Parameter], values: tuple[Any, ...], how: Mapping[str, Any]
) -> None:
    """Raises InputError for a value that is lacking, not by name, or unknown."""
    kinds = {key: each.kind for key, each in signed.items()}
    first = [key for key, kind in kinds.items() if kind <= Parameter.POSITIONAL_OR_KEYWORD]
    if len(values) > len(first):
        others = [key for key in kinds if key not in {*first, *how}]
        pairs = zip(others, values[len(first) :], strict=False)
        extra = ", ".join(
            f"{key}=..." if hasattr(value, "dtype") or has_cells(value) else f"{key}={value!r:.80}"
            for key, value in pairs
        )
        raise InputError(
            f"{name} takes {' and '.join(first)} by place; give the others by name: {extra}"
        )
    options = kinds.keys() if Parameter.VAR_KEYWORD not in kinds.values() else how.keys()
    for key in how.keys() - options:
        if key in ("low", "high") and "bounds" in signed:
            ends = "give both ends of the range: bounds=(low, high)"
            raise InputError(f"there is no option {key!r}; {ends}")
        raise InputError(unknown(f"{name} has no option", key, options))
    for key, each in signed.items():
        is_required = each.default is Parameter.empty and each.kind is not Parameter.VAR_KEYWORD
        if is_required and key not in {*first[: len(values)], *how}:
            form = "bounds=(low, high)" if key == "bounds" else f"{key}=..."
            form = "it first" if each.kind is Parameter.POSITIONAL_ONLY else form
            raise InputError(f"{name} needs {key}; add {form}")


def check_folder(path: Path, what: str) -> None:
    """Raises InputError unless a file may be written there."""
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} for the {what}; create it first")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; give a file for the {what}")


def check_table(path: Path) -> None:
    """Raises InputError unless a table may be written there, in a form that its ending names."""
    if path.suffix.lower() not in (".parquet", ".csv", ".json"):
        raise InputError(
            f"the table is {str(path)!r}; give a file that ends in .parquet, .csv or .json"
        )
    check_folder(path, "table")


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
    def draw(self, path: Path, drawing: "Drawing") -> None:
        """Draws the figure into `path`. Raises InputError for a result without one."""

    def origin(self) -> tuple[Any, str]:
        """The seed, None if it is private, and the stamp of the code."""
        return self.data.get("seed"), stamp_of()

    def write(self, path: str | Path) -> None:
        """Writes the frame as .parquet or .csv, or the plain data as .json, and beside it how it
        came about: versions, machine, seed, command.

        Raises InputError for a file that cannot be written, and for a result without a frame.
        """
        from local_dp.experiments.lab.store import write_bytes, write_provenance, write_text

        path = Path(path)
        check_table(path)
        if path.suffix.lower() == ".json":
            write_text(path, json.dumps(self.to_dict()) + "\n")
        elif path.suffix.lower() == ".csv":
            frame = self.frame()
            write_text(path, as_csv(frame, zip(*frame.values(), strict=True)))
        else:
            buffer = io.BytesIO()
            self.to_polars().write_parquet(buffer)
            write_bytes(path, buffer.getvalue())
        write_provenance(path.with_suffix(".provenance.json"), *self.origin())

    def to_polars(self) -> "polars.DataFrame":
        """The result as a frame of polars. Raises InputError for a result without one."""
        import polars

        return polars.DataFrame(
            [polars.Series(name, values, strict=False) for name, values in self.frame().items()]
        ).fill_nan(None)

    def to_pandas(self) -> Any:
        """The result as a frame of pandas. Raises InputError for a result without one, and where
        pandas is missing."""
        try:
            import pandas
        except ImportError:
            raise InputError(
                "to_pandas needs pandas; install it: pip install pandas, or use to_polars"
            ) from None
        return pandas.DataFrame(self.frame())

    def plot(self, path: str | Path | None = None, **how: Any) -> Picture | None:
        """Draws the result, beside the truth where it is known, into `path` (.png, .svg or .pdf).
        Without a path, returns a picture for a notebook.

        Keywords: `size`, the width in inches; `font`, the letters in points; `series`, parts of the
        names of the series to colour. Raises InputError.
        """
        from local_dp.experiments.lab.style import Drawing

        if path is not None:
            self.draw(Path(path), Drawing(**how))
            return None
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "result.png"
            self.draw(file, Drawing(**how))
            return Picture(file.read_bytes())
