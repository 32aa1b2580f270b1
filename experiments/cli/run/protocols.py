"""A command with a subcommand for each protocol, whose parameters are options."""

from inspect import getdoc
from typing import Any

import click

from local_dp.experiments.cli.fields import Command, Group, Option, first_line, instance_of, parameters_of, protocol_options
from local_dp.experiments.text.layout import screen_width, shortened
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol, find_protocol

EVERYDAY = frozenset(("epsilon", "records", "clients", "seed", "private", "tier", "as_json", "plot", "run", "key", "roster"))  # listed by `--help`


class ByProtocol(Group):
    """`local-dp NAME PROTOCOL`. Options may also stand before the protocol's name. `role` is a `ProtocolCommand`."""

    def __init__(self, name: str, role: type[Any]) -> None:
        super().__init__(name, help=role.__doc__, subcommand_metavar="PROTOCOL [OPTIONS]", no_args_is_help=True)
        self.role = role
        self.example = f"local-dp {name} {role.example}"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return PROTOCOLS.usable()

    def line_of(self, ctx: click.Context, name: str) -> str:
        return shortened(first_line(find_protocol(name).__doc__ or ""), screen_width() - 30)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return _command(f"{self.name} {name}", find_protocol(name), self.role)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        switches = {"-h", "--help", *(name for each in parameters_of(self.role) if isinstance(each, Option) and each.is_flag for name in each.opts)}
        place = 0
        while place < len(args) and args[place].startswith("-"):
            place += 1 if args[place] in switches or "=" in args[place] else 2
        return super().parse_args(ctx, [*args[place : place + 1], *args[:place], *args[place + 1 :]])


def _command(words: str, kind: type[LocalProtocol[Any]], role: type[Any]) -> Command:
    shared = parameters_of(role, f"Options of {words.split(maxsplit=1)[0]}")
    own = protocol_options(kind, {name for each in shared for name in each.opts})
    names = [each.name for each in own if each.name]

    def play(**typed: Any) -> None:
        texts = {name: typed.pop(name) for name in names}
        given = {name: str(text).lower() if isinstance(text, bool) else text for name, text in texts.items() if text is not None}
        instance_of(role, typed)(kind, given)

    command = Command(kind.name, params=[*own, *shared], callback=play, help=f"{getdoc(kind)}\n\nModel: {kind.model()}. Source: {kind.source}.")
    command.everyday = EVERYDAY
    command.example = f"local-dp {words} {kind.example or '--seed 1 --tier population'}" if words.startswith("run ") else ""
    return command
