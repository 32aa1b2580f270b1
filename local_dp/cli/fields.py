"""A command is a frozen dataclass: its fields are the options, its docstring is the help, and a
call of an instance runs it."""

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from inspect import cleandoc, getdoc
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import click

from local_dp.api.declare import (
    CSV,
    DATES,
    Drawn,
    Printable,
    Tabular,
    check_table,
    meaning,
    option,
    shown_default,
    usual,
)
from local_dp.checks import real_number, whole_number
from local_dp.cli.main import DEGRADED
from local_dp.errors import InputError, unknown
from local_dp.queries.grammar import parts_of
from local_dp.text.layout import definitions, paragraph, screen_width
from local_dp.text.screen import SCREEN

if TYPE_CHECKING:  # arrays take a while to import
    from local_dp.records import Records

OPTIONS = "Options"
PARAMETERS = "Parameters"


def set_option(of: str) -> Any:
    """The option --set, for a parameter by its name."""
    return option(
        (),
        f"Parameter of the {of}; may be repeated",
        name="--set",
        metavar="NAME=VALUE",
        read=str,
        collect=tuple,
    )


def json_option(what: str) -> Any:
    more = "Nothing else is printed on standard output"
    return option(False, f"Print {what} as JSON", help=more, name="--json")


@dataclass(frozen=True, kw_only=True)
class Plotted(Drawn):
    """The options of a command that draws its result if it is asked to."""

    omissions: ClassVar[frozenset[str]] = frozenset(("figure_series",))
    plot: Path | None = option(None, "Draw the numbers, as .png, .svg or .pdf", metavar="FILE")
    out: Path | None = option(
        None,
        "Write the numbers, as .parquet, .csv or .json",
        help="Their provenance is beside the file",
        metavar="FILE",
    )

    def check_files(self, name: str, figureless: str, rows: bool = True) -> None:
        """Raises InputError, before anything is paid, unless the files that are asked for can be
        written; what is `figureless` may have no `rows` either."""
        if self.plot is not None and figureless:
            raise InputError(
                f"the result of {name} is {figureless}: there is no number to draw; leave out "
                "--plot"
            )
        if self.plot is not None:
            self.picture(self.plot)
        if self.out is not None:
            check_table(self.out)
            if figureless and not rows and self.out.suffix.lower() != ".json":
                raise InputError(
                    f"the result of {name} is {figureless}: there is no table; give an --out that "
                    "ends in .json"
                )

    def write_files(self, result: Tabular) -> None:
        """Writes the result, and draws it."""
        if self.out is not None:
            result.write(self.out)
        if self.plot is not None:
            path = self.picture(self.plot)
            SCREEN.working(f"drawing {path.name}")
            result.draw(path, self.drawing)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The options of a command that reads a table."""

    records: Path | None = option(
        None,
        "CSV, TSV, Excel or Parquet file: a record in each row",
        help="Or a folder, or a pattern such as 'parts/*.csv'",
        metavar="FILE",
    )
    csv: str = option("", **CSV)
    dates: Mapping[str, str] | None = option(None, **DATES)

    def read(self, path: Path, only: Collection[str] | None = None) -> "Records":
        """The table in a file, or these of its columns."""
        from local_dp.api.tables import read_records

        return read_records(path, notice=SCREEN.note, csv=self.csv, dates=self.dates, only=only)


class Option(click.Option):
    """An option with its declaration and the heading of its list."""

    def __init__(
        self,
        spellings: list[str],
        about: Mapping[str, Any],
        *,
        heading: str = OPTIONS,
        preset: str = "",
        **attributes: Any,
    ) -> None:
        super().__init__(spellings, **attributes)
        self.heading, self.about, self.preset = heading, about, preset

    def meaning(self, brief: bool = False) -> str:
        """Help, unit and default, as one paragraph; `brief`: without what `--help-all` adds."""
        default = f"default: {self.preset}" if self.preset else ""
        required = "required" if self.required else ""
        notes = ", ".join(filter(None, (self.about.get("unit"), default, required)))
        text = self.about["brief"] if brief else meaning(self.about)
        return f"{text} [{notes}]" if notes else text


class Argument(click.Argument):
    """An argument with a line of help."""

    def __init__(self, spellings: list[str], about: Mapping[str, Any], **attributes: Any) -> None:
        super().__init__(spellings, **attributes)
        self.meaning = meaning(about)


def _show_help(everything: bool) -> Callable[[click.Context, click.Parameter, bool], None]:
    """Prints the help of a command, or all of it, and ends."""

    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            whole = everything and isinstance(ctx.command, Command)
            SCREEN.tell(_help_of(ctx.command, ctx) if whole else ctx.get_help())
            ctx.exit()

    return show


SWITCH: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
HELP = Option(
    ["-h", "--help"], {"brief": "Show this and end"}, callback=_show_help(False), **SWITCH
)
HELP_ALL = Option(
    ["--help-all"], {"brief": "Show every option and end"}, callback=_show_help(True), **SWITCH
)


class Command(click.Command):
    """A command whose help lists options under headings and ends in an `example`.

    `everyday`: the options that `--help` lists below the `summary`, if all would not fit a screen;
    `--help-all` lists all.
    """

    example = ""
    summary = ""
    everyday: frozenset[str] = frozenset()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        return [*params, HELP_ALL] if self.everyday else params

    def get_help_option(self, ctx: click.Context) -> click.Option:
        return HELP

    def get_help(self, ctx: click.Context) -> str:
        return _help_of(self, ctx, everyday=self.everyday)


class Group(click.Group):
    """A command of commands, with the same help; an error for an unknown name suggests the
    nearest."""

    example = ""

    def get_help_option(self, ctx: click.Context) -> click.Option:
        return HELP

    def get_help(self, ctx: click.Context) -> str:
        groups = {
            heading: [(name, self.line_of(name)) for name in names]
            for heading, names in self.groups(ctx).items()
        }
        return _help_of(self, ctx, groups)

    def groups(self, ctx: click.Context) -> dict[str, list[str]]:
        """The names of the commands under their headings."""
        return {"Commands": self.list_commands(ctx)}

    @abstractmethod
    def line_of(self, name: str) -> str:
        """The summary of a command, of at most 60 characters."""

    def unknown_command(self, ctx: click.Context, name: str) -> str:
        return unknown("no command", name, self.list_commands(ctx))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise InputError(self.unknown_command(ctx, args[0]))
        return super().resolve_command(ctx, args)


def _help_of(
    command: click.Command,
    ctx: click.Context,
    commands: Mapping[str, list[tuple[str, str]]] | None = None,
    everyday: frozenset[str] = frozenset(),
) -> str:
    """The help of a command: its text, the `commands` under their headings, and its options, or
    only the `everyday` ones."""
    width = min(screen_width() or 80, 120)
    usage = f"Usage: {ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}"
    text = cleandoc(command.help or "")
    if everyday and isinstance(command, Command):
        text = f"{command.summary}."
    parts = [paragraph(usage, width, "  ")]
    parts += [paragraph(" ".join(each.split()), width) for each in text.split("\n\n")]
    headings: dict[str, list[tuple[str, str]]] = {**(commands or {})}
    for param in command.get_params(ctx):
        if isinstance(param, Argument):
            headings.setdefault("Arguments", []).append((param.make_metavar(ctx), param.meaning))
        elif isinstance(param, Option) and (not everyday or _is_everyday(param, everyday)):
            heading = OPTIONS if everyday and param.heading != PARAMETERS else param.heading
            entry = _spelling(param, ctx, bool(everyday)), param.meaning(bool(everyday))
            headings.setdefault(heading, []).append(entry)
    parts += [f"{heading}:\n{definitions(entries, width)}" for heading, entries in headings.items()]
    if isinstance(command, Command | Group) and command.example:
        example = paragraph(command.example, width - 4, "    ")
        parts.append(f"Example:\n{example}".replace("\n", "\n  ", 1))
    return "\n\n".join(parts)


def _is_everyday(param: Option, everyday: frozenset[str]) -> bool:
    return param.name in everyday or param.heading == PARAMETERS or param in (HELP, HELP_ALL)


def _spelling(param: Option, ctx: click.Context, brief: bool) -> str:
    first = param.opts[:1] if brief and param.opts[0] in _ONE.values() else param.opts
    names = ", ".join(first) + "".join(f" / {name}" for name in param.secondary_opts if not brief)
    return names if param.is_flag else f"{names} {param.make_metavar(ctx)}"


class Kinds(Group):
    """A command with a subcommand for each of some dataclasses. Their `example` is the line to type
    after the program's name and the command's."""

    def __init__(self, name: str, kinds: Mapping[str, type[Any]], help: str) -> None:
        super().__init__(name, help=help, no_args_is_help=True)
        self.kinds, self.example = kinds, f"local-dp {name} {next(iter(kinds.values())).example}"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.kinds)

    def line_of(self, name: str) -> str:
        return str(self.kinds[name].summary)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.kinds:
            return None
        command = command_of(name, self.kinds[name])
        command.example = f"local-dp {self.name} {self.kinds[name].example}"
        return command


def command_of(name: str, kind: type[Any]) -> Command:
    """The command that makes an instance of the dataclass from the typed options, and calls it."""
    return Command(
        name,
        params=parameters_of(kind),
        callback=lambda **values: instance_of(kind, values)(),
        help=getdoc(kind),
    )


def instance_of(kind: type[Any], values: dict[str, Any]) -> Any:
    for each in fields(kind):
        if any(each.metadata.get("ends", ())):
            values[each.name] = values.pop("low"), values.pop("high")
        elif each.metadata.get("collect"):
            values[each.name] = each.metadata["collect"](values[each.name])
    return kind(**values)


def parameters_of(kind: type[Any], heading: str = OPTIONS) -> list[click.Parameter]:
    """The options and arguments of a dataclass, arguments first; those in its attribute `own` are
    parameters, and `omissions` are left out."""
    hints, own, omissions = (
        get_type_hints(kind),
        getattr(kind, "own", ()),
        getattr(kind, "omissions", ()),
    )
    parameters = []
    for each in fields(kind):
        if each.name not in omissions and each.metadata.get("shell", True):
            where = PARAMETERS if each.name in own else heading
            parameters += _parameters(each, hints[each.name], where)
    return sorted(parameters, key=_rank)


def _rank(param: click.Parameter) -> int:
    """Arguments first, then parameters, then options."""
    return 1 + (param.heading != PARAMETERS) if isinstance(param, Option) else 0


def _parameters(each: Field[Any], hint: Any, heading: str) -> list[click.Parameter]:
    about, hint = each.metadata, _without_none(hint)
    read, collect = about.get("read"), about.get("collect")
    many = bool(collect) or get_origin(hint) in (tuple, Sequence)
    attributes: dict[str, Any] = {"metavar": about["metavar"] or None}
    attributes["required"] = each.default is MISSING
    if each.default is not MISSING:
        attributes["default"] = () if collect else each.default
    if any(about.get("ends", ())):
        ends = zip(("low", "high"), about["ends"], strict=True)
        attributes["heading"] = heading
        return [
            Option(
                [f"--{end}"],
                {**about, "brief": brief},
                type=_Read(end, real_number),
                **attributes,
            )
            for end, brief in ends
        ]
    inner = get_args(hint)[0] if many else hint
    attributes["type"] = read or _type_of(each.name, inner, about.get("choices"))
    if about.get("is_argument"):
        return [Argument([each.name], about, nargs=-1 if many else 1, **attributes)]
    if hint is bool:
        attributes = {"is_flag": True, "default": each.default}
    if many and (about.get("split") or not collect):
        nothing = None if each.default is None and not collect else ()
        attributes["type"] = _Parts(click.types.convert_type(attributes["type"]))
        attributes["callback"] = lambda ctx, param, values: (
            tuple(part for parts in values for part in parts) or nothing
        )
    spellings = [each.name, *(about["name"] or _option_name(each.name)).split()]
    attributes |= {"heading": heading, "multiple": many}
    return [Option(spellings, about, preset="" if hint is bool else usual(each), **attributes)]


def _option_name(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# as `curate` spells what may be repeated
_ONE = {"columns": "--column", "features": "--feature", "bounds": "--bound", "parameters": "--set"}


class _Parts(click.ParamType[Any]):
    """A list in one text, each part read by a type."""

    def __init__(self, each: click.ParamType[Any]) -> None:
        self.name, self.each = each.name, each

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        return tuple(self.each.convert(part, param, ctx) for part in parts_of(str(value)))


def _list_of(
    ctx: click.Context, param: click.Parameter, values: tuple[Any, ...]
) -> str | tuple[str, ...] | None:
    """A parameter that is a list, with semicolons; of labels in a file, @FILE, a tuple."""
    first = values[0] if param.name == "labels" and len(values) == 1 else ""
    if first[:1] == "@" and not {*";|"} & {*first}:
        from local_dp.api.files import labels_file  # a table takes a while to import

        return labels_file(first[1:])
    return ";".join(each if isinstance(each, str) else ";".join(each) for each in values) or None


def _without_none(hint: Any) -> Any:
    """X of "X | None"."""
    return (
        next(part for part in get_args(hint) if part is not type(None))
        if get_origin(hint) in (Union, UnionType)
        else hint
    )


def _type_of(name: str, hint: Any, choices: tuple[str, ...] | None) -> Any:
    if choices or get_origin(hint) is Literal:
        return click.Choice(choices or get_args(hint))
    readers: dict[Any, Callable[[str, str], Any]] = {
        int: whole_number,
        float: real_number,
        Path: _path,
    }
    return _Read(name, readers[hint]) if hint in readers else click.STRING


class _Read(click.ParamType[Any]):
    """What a function reads from the name of an option and its text."""

    def __init__(self, name: str, read: Callable[[str, str], Any]) -> None:
        self.name, self.read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self.read(self.name, str(value))


def _path(name: str, text: str) -> Path:
    """A possible path of a file, which need not exist."""
    try:
        os.lstat(text)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise InputError(
            f"{name} is {text!r:.80}, which is no file: {getattr(error, 'strerror', error)}; give "
            "another"
        ) from None
    return Path(text)


def protocol_options(kind: type[Any], names: set[str]) -> list[click.Parameter]:
    """The parameters of a protocol as options with texts, without those in `names`.

    A list is typed as in every command: an option that is repeated, or one text with commas or
    semicolons; labels may hold commas.
    """
    hints, parameters = get_type_hints(kind), list[click.Parameter]()
    for each in fields(kind):
        name, hint, about = _option_name(each.name), _without_none(hints[each.name]), each.metadata
        if name in names:
            continue
        many = get_origin(hint) is tuple
        spellings = [each.name, f"{name}/--no-{name[2:]}" if hint is bool else name]
        if about.get("alias"):
            spellings.append(f"--{about['alias']}")
        if many and each.name in _ONE:
            spellings.insert(1, _ONE[each.name])
        attributes: dict[str, Any] = {"multiple": many}
        if hint is not bool:
            attributes |= {"type": click.STRING, "preset": shown_default(each.default)}
            attributes["metavar"] = {int: "N", float: "X"}.get(hint, "TEXT")
        if many:
            attributes["metavar"] = "A;B;..."
            attributes["type"] = click.STRING if each.name == "labels" else _Parts(click.STRING)
            attributes["callback"] = _list_of
        if about["choices"]:
            attributes |= {"type": click.Choice(about["choices"]), "metavar": None}
        option = Option(spellings, about, heading=PARAMETERS, default=None, **attributes)
        parameters.append(option)
    return parameters


def show(result: Printable, as_json: bool, warning: str = "") -> int:
    """Prints a result; the exit code. `warning`: see `Screen.tell`."""
    data = result.to_dict()
    SCREEN.tell(json.dumps(data) if as_json else result.text(screen_width()), warning)
    return DEGRADED if "degraded" in data else 0
