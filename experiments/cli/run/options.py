"""What each role of a run is told on the command line, as frozen dataclasses: each option stands once, in the bundle of those who need it."""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from local_dp.errors import InputError
from local_dp.experiments.api.asking import RunOptions
from local_dp.experiments.cli.fields import option
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.settings import OnProgress, Randomness
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records

ADDRESS = "URL"


@dataclass(frozen=True, kw_only=True)
class Role(ABC):
    """What every role is told. Its class is given the protocol and the values of its parameters when it is called."""

    example: ClassVar[str]
    epsilon: float = option(1.0, "Every client's privacy budget", metavar="E", unit="nats")
    records: Path | None = option(None, "A CSV or Parquet table; each row is a client's record", metavar="FILE")
    schema: Path | None = option(None, "The types of the table's columns, as JSON: an object of number, whole or text", metavar="FILE")
    settings: tuple[str, ...] = option((), "A parameter of the protocol; may be repeated", name="--set", metavar="KEY=VALUE")
    seed: int | None = option(None, "Repeats a simulation; without it, one is drawn and shown", metavar="S")
    private: bool = option(False, "Operating-system entropy for every client's noise; takes no seed")

    @abstractmethod
    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        """Plays the role, with these values of the protocol's parameters."""

    def values(self, given: Mapping[str, str]) -> dict[str, str]:
        """The parameters of the protocol."""
        return settings_of(self.settings, given)

    def asked(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> tuple[LocalProtocol[Any], Records | None]:
        """The protocol with its parameters, and the table if there is one."""
        values = self.values(given)
        built = kind.from_settings(values)
        if self.records is None:
            return built, None
        from local_dp.experiments.api.tables import read_records, read_schema

        SCREEN.working(f"reading {self.records.name}")
        table = read_records(self.records, None if self.schema is None else read_schema(self.schema), total=self.private)
        check_asked(kind, values, table)
        return built, table

    def configured(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> tuple[LocalProtocol[Any], Records | None]:
        """The same, with what the protocol needs to know of the table. Raises InputError where a private run would publish what only the table holds."""
        built, table = self.asked(kind, given)
        return (built, None) if table is None else (built.for_table(Launch(table, self.private)), table)

    def randomness(self) -> Randomness:
        """Where chance comes from."""
        return Randomness.choose(self.seed, self.private)


def settings_of(settings: tuple[str, ...], given: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a protocol: those of --set, and those with an option of their own, which count more. Raises InputError."""
    values = {}
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator:
            raise InputError(f"--set takes KEY=VALUE, not {setting!r}")
        values[key.strip()] = value.strip()
    return {**values, **given}


def check_asked(kind: type[LocalProtocol[Any]], values: Mapping[str, str], table: Records) -> None:
    """Raises InputError unless it is said what is asked of the table."""
    for each in fields(kind):
        if each.metadata.get("of_table") and each.name not in values:
            spelled = each.metadata["alias"] or each.name
            raise InputError(f"{kind.name} of a table needs --{spelled}: {each.metadata['help']}; the table has the columns {', '.join(table.columns)}")


@dataclass(frozen=True, kw_only=True)
class Asking(Role):
    """Who asks the clients: a whole run, or a server."""

    clients: int | None = option(None, "How many; without it, all rows, or what the bounds ask for 95 %", metavar="N")
    deadline: float = option(30.0, "The longest that a round may take", metavar="T", unit="seconds")
    quorum: float = option(0.9, "The least share of those asked that must have answered by then", metavar="SHARE")
    as_json: bool = option(False, "Print the outcome as JSON, alone on standard output; local-dp schema describes it", name="--json")
    watch: bool = option(False, "Show the run as it happens on a page of this machine; needs local-dp[watch]")
    shuffle: bool = option(False, "A shuffler stands between clients and server: a report hides among the others, and the result says how well")
    delta: float = option(1e-6, "With which probability shuffled reports may lose more than the result says", metavar="D")
    worst_case: float | None = option(None, "Intervals that hold whatever missing clients would have said, and if this share of all lies", metavar="SHARE")
    resample: bool = option(False, "Draw the clients' rows with replacement, and so any number of them")

    def how(self, progress: OnProgress, **own: Any) -> RunOptions:
        """How the run is to be; `own` is what one role alone is told."""
        shared = {
            name: getattr(self, name) for name in ("epsilon", "clients", "resample", "seed", "private", "deadline", "quorum", "shuffle", "delta", "worst_case")
        }
        return RunOptions(**shared, **own, progress=progress, notice=SCREEN.note, watch=look if self.watch else None)


def look(url: str) -> bool:
    """Says where the page of a run is; in a terminal under a desktop, opens it. Whether somebody looks."""
    import webbrowser

    SCREEN.note(f"watch at {url}")
    desktop = sys.platform == "darwin" or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))  # else it would open inside the terminal
    return sys.stderr.isatty() and desktop and webbrowser.open(url)


def allowed_names(allow: str | None) -> tuple[str, ...] | None:
    """The allow-list in the option `--allow`."""
    return None if allow is None else tuple(name.strip() for name in allow.split(",") if name.strip())
