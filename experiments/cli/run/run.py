"""`local-dp run`: a whole run from one command; and what all commands that run once for each protocol share."""

import math
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from local_dp.errors import InputError
from local_dp.experiments.api.asking import RunOptions, ask
from local_dp.experiments.api.declare import option, settings_of
from local_dp.experiments.api.result import check_picture
from local_dp.experiments.api.tables import read_records, read_schema
from local_dp.experiments.cli.fields import json_option, set_option, show
from local_dp.experiments.text.layout import number
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.settings import OnProgress, Randomness
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records
from local_dp.server.progress import Attendance, Progress, RoundProgress

OF_RUNS = frozenset(each.name for each in fields(RunOptions))


@dataclass(frozen=True, kw_only=True)
class ProtocolCommand(ABC):
    """A command with a subcommand for each protocol. An instance is called with the protocol and the values of its parameters."""

    of_protocols: ClassVar[bool] = True
    example: ClassVar[str]
    records: Path | None = option(None, "A CSV or Parquet table; each row is a client's record", metavar="FILE")
    settings_: tuple[str, ...] = set_option("protocol")

    @abstractmethod
    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        """Runs the command."""

    def built(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> tuple[LocalProtocol[Any], Records | None]:
        """The protocol with its parameters, and the table if there is one. Raises InputError unless the question about the table is given."""
        values = {**settings_of(self.settings_), **given}
        protocol = kind.from_settings(values)
        if self.records is None:
            return protocol, None
        SCREEN.working(f"reading {self.records.name}")
        table = self.read(self.records)
        for each in fields(kind):
            if each.metadata.get("of_table") and each.name not in values:
                spelled = each.metadata["alias"] or each.name
                raise InputError(f"{kind.name} of a table needs --{spelled}: {each.metadata['help']}; the table has the columns {', '.join(table.columns)}")
        return protocol, table

    def read(self, path: Path) -> Records:
        return read_records(path)

    def prepared(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str], private: bool = False) -> tuple[LocalProtocol[Any], Records | None]:
        """The same, with the protocol checked against the table. Raises InputError if a private run would publish values of the table."""
        protocol, table = self.built(kind, given)
        return (protocol, None) if table is None else (protocol.for_table(Launch(table, private)), table)


@dataclass(frozen=True, kw_only=True)
class Role(ProtocolCommand, RunOptions):
    """A role of a run. `offered` are the options of a run that its command has."""

    hidden: ClassVar[frozenset[str]] = frozenset()
    schema: Path | None = option(None, "JSON file with the types of the table's columns: number, whole or text", metavar="FILE")
    watch: bool = option(False, RunOptions.__dataclass_fields__["watch"].metadata["help"])

    def read(self, path: Path) -> Records:
        return read_records(path, None if self.schema is None else read_schema(self.schema), total=self.private)

    def randomness(self) -> Randomness:
        return Randomness.choose(self.seed, self.private)

    def with_progress(self, progress: OnProgress, **more: Any) -> "Role":
        """The same options, with progress and notices on the screen."""
        watch: Any = look if self.watch else None
        return replace(self, progress=progress, notice=SCREEN.note, watch=watch, **more)


def look(url: str) -> bool:
    """Prints the address of a run's page, and opens it in a terminal under a desktop. Returns whether a browser opened."""
    import webbrowser

    SCREEN.note(f"watch at {url}")
    desktop = sys.platform == "darwin" or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))  # else it would open inside the terminal
    return sys.stderr.isatty() and desktop and webbrowser.open(url)


NAMED = 3  # spans of missing clients
NOTED = 5  # rounds that leave a line
_BAR = 20


class RunProgress:
    """Shows missing clients, then the progress of the round. Each of the first few rounds leaves a line."""

    def __init__(self) -> None:
        self._round: RoundProgress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or isinstance(error, Exception):
            self._leave()

    def show(self, progress: Progress) -> None:
        if isinstance(progress, Attendance):
            SCREEN.working(_missing(progress))
            return
        if self._round is not None and self._round.round != progress.round:
            self._leave()
        self._round = progress
        filled = _BAR * progress.answered // max(progress.asked, 1)
        left = f", {progress.seconds_left:.0f} s left" if math.isfinite(progress.seconds_left) else ""
        SCREEN.working(f"{'█' * filled}{'─' * (_BAR - filled)} {_line(progress)}{left}")

    def _leave(self) -> None:
        if self._round is not None and self._round.round <= NOTED:
            SCREEN.note(_line(self._round))


def _line(progress: RoundProgress) -> str:
    return f"round {progress.round}: {progress.answered:,}/{progress.asked:,} replied, epsilon {number(progress.epsilon)}"


def _missing(attendance: Attendance) -> str:
    gaps = attendance.gaps(NAMED, "..")
    waiting = f"; waiting for {gaps}" if gaps else ""
    return f"{attendance.present:,} of {attendance.clients:,} clients are ready{waiting}"


@dataclass(frozen=True, kw_only=True)
class Run(Role):
    """Runs a protocol: clients, server and message bus, from one command.

    Each protocol has a command of its own, with its parameters: `local-dp run survey --help`.
    """

    example: ClassVar[str] = "survey --clients 1000 --seed 1"
    as_json: bool = json_option("the outcome (`local-dp schema` describes it)")
    plot: Path | None = option(None, "Draw the estimates with their intervals, as .png, .svg or .pdf", metavar="FILE")

    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        protocol, table = self.built(kind, given)
        if self.plot is not None:
            if kind.explain is not LocalProtocol.explain:
                raise InputError(f"{kind.name} learns a hypothesis: there is no estimate to draw; leave out --plot")
            check_picture(self.plot)
        SCREEN.working(f"starting the clients in tier {self.chosen_tier}")
        with RunProgress() as progress:
            result = ask(protocol, table, self.with_progress(progress.show))
        show(result, self.as_json)
        if self.plot is not None:
            SCREEN.working(f"drawing {self.plot.name}")
            result.plot(self.plot)
