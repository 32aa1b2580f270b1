"""One command is one frozen dataclass: its fields are the options, its docstring the help, calling an instance runs it. The options stand there once."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from inspect import cleandoc, getdoc
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click

from local_dp.checks import real_number, whole_number
from local_dp.errors import InputError, unknown
from local_dp.experiments.text.layout import definitions, paragraph, screen_width

OPTIONS = "Options"
PARAMETERS = "Parameters"


def option(default: Any = MISSING, help: str = "", *, name: str = "", metavar: str = "", unit: str = "") -> Any:
    """A field that is an option: without a default it must be given. `name` is how it is spelled, where not like the field."""
    return field(default=default, metadata={"help": help, "name": name, "metavar": metavar, "unit": unit})


def argument(help: str, *, metavar: str, default: Any = MISSING) -> Any:
    """A field that is an argument; a tuple of them takes all that are given."""
    return field(default=default, metadata={"help": help, "metavar": metavar, "is_argument": True})


class Option(click.Option):
    """An option that knows under which heading it is listed, and its unit."""

    def __init__(self, spelled: list[str], *, heading: str = OPTIONS, unit: str = "", told: str = "", **attributes: Any) -> None:
        super().__init__(spelled, **attributes)
        self.heading, self.unit, self.told = heading, unit, told

    def meaning(self, brief: bool = False) -> str:
        """Help, unit and default, as one paragraph; `brief`: the first clause of the help."""
        notes = ", ".join(filter(None, (self.unit, f"default: {self.told}" if self.told else "", "required" if self.required else "")))
        help = (self.help or "").rstrip(".")
        help = re.split(r"[;:.] |\. ", help)[0] if brief else help
        return f"{help[:1].upper()}{help[1:]}{f' [{notes}]' if notes else ''}"


class Argument(click.Argument):
    """An argument with a line of help."""

    def __init__(self, spelled: list[str], *, help: str, **attributes: Any) -> None:
        super().__init__(spelled, **attributes)
        self.meaning = help


def show_help(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    """Prints the help of a command and ends it."""
    from local_dp.experiments.text.screen import SCREEN

    if asked and not ctx.resilient_parsing:
        SCREEN.tell(ctx.get_help())
        ctx.exit()


def show_every_option(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    """Prints the whole help of a command and ends it."""
    from local_dp.experiments.text.screen import SCREEN

    if asked and not ctx.resilient_parsing:
        assert isinstance(ctx.command, Command)
        SCREEN.tell(_help_of(ctx.command, ctx))
        ctx.exit()


HELP = Option(["-h", "--help"], is_flag=True, is_eager=True, expose_value=False, callback=show_help, help="Show this and end")
HELP_ALL = Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show_every_option, help="Show every option and end")


class Command(click.Command):
    """A command whose help breaks no word and lists options under their headings; `example` is how it may be called.

    `everyday` are the options that `--help` lists where not all fit a screen; `--help-all` lists all.
    """

    example = ""
    everyday: frozenset[str] = frozenset()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        return [*params, HELP_ALL] if self.everyday else params

    def get_help_option(self, ctx: click.Context) -> click.Option:
        return HELP

    def get_help(self, ctx: click.Context) -> str:
        return _help_of(self, ctx, everyday=self.everyday)


class Group(click.Group):
    """A command of commands, with the same help; an unknown name is answered with the nearest."""

    example = ""

    def get_help_option(self, ctx: click.Context) -> click.Option:
        return HELP

    def get_help(self, ctx: click.Context) -> str:
        groups = {heading: [(name, self.line_of(ctx, name)) for name in names] for heading, names in self.groups(ctx).items()}
        return _help_of(self, ctx, groups)

    def groups(self, ctx: click.Context) -> dict[str, list[str]]:
        """The names of the commands under their headings."""
        return {"Commands": self.list_commands(ctx)}

    def line_of(self, ctx: click.Context, name: str) -> str:
        """What a command does, in one line."""
        command = self.get_command(ctx, name)
        return "" if command is None else first_line(command.help or "")

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise InputError(unknown("no command", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


def first_line(text: str) -> str:
    """The claim of a docstring: its first paragraph."""
    return " ".join(cleandoc(text).split("\n\n")[0].split())


def _help_of(
    command: Command | Group, ctx: click.Context, commands: Mapping[str, list[tuple[str, str]]] | None = None, everyday: frozenset[str] = frozenset()
) -> str:
    """The help of a command: its text, the `commands` under their headings, and its options, of which `everyday` may name those that are listed."""
    width = min(screen_width(), 120)
    parts = [paragraph(f"Usage: {ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}", width, "  ")]
    text = cleandoc(command.help or "").split("\n\n")
    parts += [paragraph(" ".join(each.split()), width) for each in (text[:1] if everyday else text)]
    headings: dict[str, list[tuple[str, str]]] = {**(commands or {})}
    for param in command.get_params(ctx):
        if isinstance(param, Argument):
            headings.setdefault("Arguments", []).append((param.make_metavar(ctx), param.meaning))
        elif isinstance(param, Option) and (not everyday or param.name in everyday or param.heading == PARAMETERS or param in (HELP, HELP_ALL)):
            heading = OPTIONS if everyday and param.heading != PARAMETERS else param.heading
            headings.setdefault(heading, []).append((_spelled(param, ctx, bool(everyday)), param.meaning(bool(everyday))))
    parts += [f"{heading}:\n{definitions(entries, width)}" for heading, entries in headings.items()]
    if command.example:
        parts.append(f"Example:\n{paragraph(command.example, width - 4, '    ')}".replace("\n", "\n  ", 1))
    return "\n\n".join(parts)


def _spelled(param: Option, ctx: click.Context, brief: bool) -> str:
    names = ", ".join(param.opts) + "".join(f" / {name}" for name in param.secondary_opts if not brief)
    return names if param.is_flag else f"{names} {param.make_metavar(ctx)}"


def command_of(name: str, kind: type[Any]) -> Command:
    """The command that makes an instance of the dataclass from the options that are typed, and calls it."""
    return Command(name, params=parameters_of(kind), callback=lambda **typed: kind(**typed)(), help=getdoc(kind))


class Kinds(Group):
    """A command with one command for each of some dataclasses, which have an `example` of what to type behind its own name."""

    def __init__(self, name: str, kinds: Mapping[str, type[Any]], help: str) -> None:
        super().__init__(name, help=help, no_args_is_help=True)
        self.kinds, self.example = kinds, f"local-dp {name} {next(iter(kinds.values())).example}"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.kinds)

    def line_of(self, ctx: click.Context, name: str) -> str:
        return first_line(self.kinds[name].__doc__ or "")

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.kinds:
            return None
        command = command_of(name, self.kinds[name])
        command.example = f"local-dp {self.name} {self.kinds[name].example}"
        return command


def parameters_of(kind: type[Any], heading: str = OPTIONS) -> list[click.Parameter]:
    """The options and arguments that the fields of a dataclass are."""
    hints = get_type_hints(kind)
    made = [_parameter(each, hints[each.name], heading) for each in fields(kind)]
    return sorted(made, key=lambda each: isinstance(each, Option))  # arguments first


def _parameter(each: Field[Any], hint: Any, heading: str) -> click.Parameter:
    told, hint = each.metadata, _without_none(hint)
    many = get_origin(hint) is tuple
    attributes: dict[str, Any] = {
        "type": _type_of(each.name, get_args(hint)[0] if many else hint),
        "metavar": told["metavar"] or None,
        "required": each.default is MISSING,
    }
    if each.default is not MISSING:
        attributes["default"] = each.default
    if told.get("is_argument"):
        return Argument([each.name], help=told["help"], nargs=-1 if many else 1, **attributes)
    if hint is bool:
        attributes = {"is_flag": True, "default": each.default}
    spelled = [each.name, told["name"] or f"--{each.name.replace('_', '-')}"]
    shown = _default(each.default) if hint is not bool else ""
    return Option(spelled, heading=heading, unit=told["unit"], told=shown, help=told["help"], multiple=many, **attributes)


def _without_none(hint: Any) -> Any:
    """X of "X or nothing"."""
    return next(part for part in get_args(hint) if part is not type(None)) if get_origin(hint) in (Union, UnionType) else hint


def _type_of(name: str, hint: Any) -> Any:
    """What click reads an option with."""
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    readers = {int: _whole, float: _number, Path: _path}
    return readers[hint](name) if hint in readers else click.STRING


def _whole(name: str) -> Callable[[Any], int]:
    """Reads a whole number, also one that is written as 1e6."""

    def whole(text: Any) -> int:
        return whole_number(name, str(text))

    return whole


def _number(name: str) -> Callable[[Any], float]:
    def number(text: Any) -> float:
        return real_number(name, str(text))

    return number


def _path(name: str) -> Callable[[Any], Path]:
    """Reads a path that a file may have, whether there is one or not."""

    def path(text: Any) -> Path:
        try:
            os.lstat(text)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise InputError(f"{name} is {str(text)!r:.80}, which is no file: {getattr(error, 'strerror', error)}; give another") from None
        return Path(text)

    return path


def _default(value: Any) -> str:
    """A default as it is typed; none for what is left open."""
    if value is MISSING or value is None or value == ():
        return ""
    return ";".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Spelling:
    """How a kind of value is called in the help of an option, and whether it is a switch."""

    metavar: str
    is_switch: bool = False


def spelling_of(hint: Any) -> Spelling:
    """The spelling of a protocol's parameter, whose text the protocol reads itself."""
    hint = _without_none(hint)
    if hint is bool:
        return Spelling("", True)
    return Spelling("A;B;..." if get_origin(hint) is tuple else {int: "N", float: "X"}.get(hint, "TEXT"))


def protocol_options(kind: type[Any], taken: set[str]) -> list[click.Parameter]:
    """The options that the parameters of a protocol are, as text, but for names that are taken."""
    hints, made = get_type_hints(kind), list[click.Parameter]()
    for each in fields(kind):
        name = f"--{each.name.replace('_', '-')}"
        spelling, told = spelling_of(hints[each.name]), each.metadata
        if name in taken:
            continue
        spelled = [each.name, f"{name}/--no-{name[2:]}" if spelling.is_switch else name, *([f"--{told['alias']}"] if told.get("alias") else [])]
        attributes: dict[str, Any] = {} if spelling.is_switch else {"metavar": spelling.metavar, "type": click.STRING}
        shown = "" if spelling.is_switch else _default(each.default)
        made.append(Option(spelled, heading=PARAMETERS, unit=told.get("unit", ""), told=shown, help=told.get("help", ""), default=None, **attributes))
    return made
