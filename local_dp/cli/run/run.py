"""`local-dp run`: a whole run from one command; and what all commands that run once for each
protocol share."""

import math
import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from inspect import getdoc
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import click

from local_dp.api.asking import Announce, RunOptions, ask
from local_dp.api.declare import option
from local_dp.api.schemas import read_schema
from local_dp.api.tables import read_records
from local_dp.cli.fields import (
    Command,
    Group,
    Option,
    Plotted,
    Reading,
    instance_of,
    json_option,
    parameters_of,
    protocol_options,
    show,
)
from local_dp.cli.run.stored import store
from local_dp.errors import InputError
from local_dp.foreign import listed
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol, find_protocol
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records
from local_dp.server.progress import Attendance, Progress, RoundProgress
from local_dp.simulation.settings import OnProgress, Randomness
from local_dp.text.layout import number
from local_dp.text.screen import SCREEN

# listed by `--help`
EVERYDAY = frozenset(
    (
        "epsilon",
        "records",
        "clients",
        "seed",
        "private",
        "tier",
        "as_json",
        "plot",
        "run",
        "key",
        "roster",
    )
)


class ByProtocol(Group):
    """`local-dp NAME PROTOCOL`. Options may also stand before the protocol's name. `role` is a
    `ProtocolCommand`."""

    def __init__(self, name: str, role: type[Any]) -> None:
        super().__init__(
            name, help=role.__doc__, subcommand_metavar="PROTOCOL [OPTIONS]", no_args_is_help=True
        )
        self.role = role
        self.example = f"local-dp {name} {role.example}"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in PROTOCOLS.usable() if self.role.takes(find_protocol(name))]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in PROTOCOLS and not self.role.takes(find_protocol(args[0])):
            raise InputError(
                f"`{ctx.command_path}` is not for {args[0]}; it is for "
                f"{listed(self.list_commands(ctx))}"
            )
        return super().resolve_command(ctx, args)

    def line_of(self, name: str) -> str:
        return find_protocol(name).summary

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return _command(f"{self.name} {name}", find_protocol(name), self.role)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        switches = {
            "-h",
            "--help",
            *(
                name
                for each in parameters_of(self.role)
                if isinstance(each, Option) and each.is_flag
                for name in each.opts
            ),
        }
        place = 0
        while place < len(args) and args[place].startswith("-"):
            place += 1 if args[place] in switches or "=" in args[place] else 2
        return super().parse_args(
            ctx, [*args[place : place + 1], *args[:place], *args[place + 1 :]]
        )


def _command(words: str, kind: type[LocalProtocol[Any]], role: type[Any]) -> Command:
    shared = parameters_of(role, f"Options of {words.split(maxsplit=1)[0]}")
    own = protocol_options(kind, {name for each in shared for name in each.opts})
    names = [each.name for each in own if each.name]

    def play(**options: Any) -> int | None:
        texts = {name: options.pop(name) for name in names}
        parameters = {
            name: str(text).lower() if isinstance(text, bool) else text
            for name, text in texts.items()
            if text is not None
        }
        code: int | None = instance_of(role, options)(kind, parameters)
        return code

    command = Command(
        kind.name,
        params=[*own, *shared],
        callback=play,
        help=f"{getdoc(kind)}\n\nModel: {kind.model()}. Source: {kind.source}.",
    )
    command.summary, command.everyday = kind.summary, EVERYDAY
    command.example = (
        f"local-dp {words} {kind.example or '--seed 1 --tier population'}"
        if words.startswith("run ")
        else ""
    )
    return command


Kind: TypeAlias = type[LocalProtocol[Any]]
# the values of parameters, as they are typed; labels of a file are a tuple
Texts: TypeAlias = Mapping[str, str | tuple[str, ...]]
OF_RUNS = frozenset(each.name for each in fields(RunOptions))


@dataclass(frozen=True, kw_only=True)
class ProtocolCommand(Reading, ABC):
    """A command with a subcommand for each protocol. An instance is called with the protocol and
    the values of its parameters."""

    of_protocols = True
    example: ClassVar[str]

    @classmethod
    def takes(cls, kind: Kind) -> bool:
        """True if the command is for this protocol, with some parameters."""
        return True

    @abstractmethod
    def __call__(self, kind: Kind, parameters: Texts) -> int | None:
        """Runs the command; the exit code if it is not 0."""

    def built(self, kind: Kind, parameters: Texts) -> tuple[LocalProtocol[Any], Records | None]:
        """The protocol with its parameters, and the table if there is one. Raises InputError unless
        the question about the table is given."""
        protocol = kind.from_settings(parameters)
        if self.records is None:
            return protocol, None
        SCREEN.working(f"reading {self.records.name}")
        table = self.read(self.records, self.reads(protocol))
        for each in fields(kind):
            if each.metadata.get("of_table") and each.name not in parameters:
                name = each.metadata["alias"] or each.name
                raise InputError(
                    f"{kind.name} of a table needs --{name}: {each.metadata['brief']}; the "
                    f"table has the columns {listed(list(table.names))}"
                )
        return protocol, table

    def reads(self, protocol: LocalProtocol[Any]) -> Collection[str] | None:
        """The columns of the table that are read; None: all."""
        return protocol.reads

    def prepared(
        self, kind: Kind, parameters: Texts, private: bool = False
    ) -> tuple[LocalProtocol[Any], Records | None]:
        """The settings, with the protocol checked against the table. Raises InputError if a private
        run would publish values of the table."""
        protocol, table = self.built(kind, parameters)
        return (
            (protocol, None)
            if table is None
            else (protocol.for_table(Launch(self.askable(table), private)), table)
        )

    def askable(self, table: Records) -> Records:
        """The columns that a protocol may ask about."""
        return table


@dataclass(frozen=True, kw_only=True)
class Role(ProtocolCommand, RunOptions):
    """A role of a run. `omissions` are the options of a run that its command lacks."""

    omissions: ClassVar[frozenset[str]] = frozenset()
    schema: Path | None = option(
        None,
        "JSON file with the types of the table's columns",
        help="number, whole, truth, date, text, or text 40 for at most 40 characters",
        metavar="FILE",
    )
    watch: bool | Announce = option(
        False, RunOptions.__dataclass_fields__["watch"].metadata["brief"]
    )

    def read(self, path: Path, only: Collection[str] | None = None) -> Records:
        schema = None if self.schema is None else read_schema(self.schema)
        return read_records(
            path,
            schema,
            total=self.private,
            notice=SCREEN.note,
            csv=self.csv,
            dates=self.dates,
            only=only,
            copy=self.copied,
        )

    reads, askable = RunOptions.reads, RunOptions.askable

    def randomness(self) -> Randomness:
        return Randomness.choose(self.seed, self.private)

    def with_progress(self, progress: OnProgress, **more: Any) -> "Role":
        """The same options, with progress and notices on the screen."""
        watch: Any = look if self.watch else False
        return replace(self, progress=progress, notice=SCREEN.note, watch=watch, **more)


def look(url: str) -> bool:
    """Prints the address of a run's page, and opens it in a terminal under a desktop. Returns
    whether a browser opened."""
    import webbrowser

    SCREEN.note(f"watch at {url}")
    # else it would open inside the terminal
    desktop = sys.platform == "darwin" or any(
        name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return sys.stderr.isatty() and desktop and webbrowser.open(url)


NAMED = 3  # spans of missing clients
NOTED = 5  # rounds that leave a line


@contextmanager
def run_progress() -> Iterator[OnProgress]:
    """Shows missing clients, then the progress of the round. Each of the first few rounds leaves a
    line; the end counts the others."""
    last: RoundProgress | None = None

    def leave() -> None:
        if last is not None and last.round <= NOTED:
            SCREEN.note(_line(last))

    def end() -> None:
        leave()
        if last is not None and last.round > NOTED:
            more = last.round - NOTED
            SCREEN.note(f"and {more} more round{'s' if more > 1 else ''}")

    def show(progress: Progress) -> None:
        nonlocal last
        if isinstance(progress, Attendance):
            gaps = progress.gaps(NAMED, "..")
            waiting = f"; waiting for {gaps}" if gaps else ""
            ready = f"{progress.present:,} of {progress.clients:,} clients are ready"
            SCREEN.working(f"{ready}{waiting}")
            return
        if last is not None and last.round != progress.round:
            leave()
        last = progress
        left = (
            f", ends in {progress.seconds_left:.0f} s"
            if math.isfinite(progress.seconds_left)
            else ""
        )
        SCREEN.working(f"{_line(progress)}{left}", progress.answered / max(progress.asked, 1))

    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda text, *where: SCREEN.note(str(text))
            yield show
    except Exception:
        end()
        raise
    end()


def _line(progress: RoundProgress) -> str:
    return (
        f"round {progress.round}: {progress.answered:,}/{progress.asked:,} replied, epsilon "
        f"{number(progress.epsilon)}"
    )


@dataclass(frozen=True, kw_only=True)
class Run(Role, Plotted):
    """Runs a protocol: clients, server and message bus, from one command.

    Each protocol has a command of its own, with its parameters: `local-dp run survey --help`. The
    exit code is 6 if the result is degraded.
    """

    example = "survey --clients 1000 --seed 1"
    as_json: bool = json_option("the outcome (`local-dp schema`)")
    omissions = Plotted.omissions

    def __call__(self, kind: Kind, parameters: Texts) -> int:
        protocol, table = self.built(kind, parameters)
        self.check_files(kind.name, kind.figureless, rows=False)
        SCREEN.check()
        SCREEN.working(f"starting the clients in tier {self.chosen_tier}")
        with run_progress() as progress:
            result = ask(protocol, table, self.with_progress(progress), store)
        try:
            code = show(
                result,
                self.as_json,
                "the clients' stores are charged; `local-dp runs` lists the stored results"
                if self.stores
                else "",
            )
        finally:
            self.write_files(result)
        return code
