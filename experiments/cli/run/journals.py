"""`local-dp runs`, `show` and `resume`: the stored runs of servers."""

import json
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from local_dp.errors import InputError
from local_dp.experiments.api.declare import argument, option
from local_dp.experiments.api.show import summary
from local_dp.experiments.cli.fields import json_option
from local_dp.experiments.cli.run.join import Server
from local_dp.experiments.text.layout import screen_width, table
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.installation import runs_folder
from local_dp.protocols.local_protocol import find_protocol
from local_dp.server.remote import SUFFIX, Journal

FOLDER = "Folder of stored runs; default: a folder of the user's"


@dataclass(frozen=True)
class Runs:
    """Lists the stored runs of servers on this machine, and their progress."""

    journal: Path | None = option(None, FOLDER, metavar="DIR")

    def __call__(self) -> None:
        folder = self.journal or runs_folder()
        rows = [_row(folder, path.name.removesuffix(SUFFIX)) for path in sorted(folder.glob(f"*{SUFFIX}"))]
        if rows:
            SCREEN.tell(table(("run", "protocol", "begun", "progress"), rows, screen_width()))
        else:
            SCREEN.note(f"no run is stored in {str(folder)!r}")


@dataclass(frozen=True)
class Show:
    """Prints the result of a run, or its progress."""

    run: str = argument("The run.", metavar="RUN")
    journal: Path | None = option(None, FOLDER, metavar="DIR")
    as_json: bool = json_option("the outcome")

    def __call__(self) -> None:
        with closing(Journal.open(self.journal or runs_folder(), self.run)) as journal:
            result, began, progress = journal.result, journal.began, _progress(journal)
        if result is not None:
            SCREEN.tell(json.dumps(result) if self.as_json else summary(result, screen_width()))
        elif self.as_json:
            raise InputError(f"run {self.run!r} has no outcome yet: {progress}")
        else:
            SCREEN.tell(f"run {self.run}, {began['protocol']}, begun {began['at']}: {progress}")


@dataclass(frozen=True)
class Resume:
    """Continues a run whose server was killed, from its journal.

    Closed rounds are computed again without asking any client. The open round keeps its accepted reports; waiting members answer the rest. The result is
    that of an uninterrupted run.
    """

    run: str = argument("The run.", metavar="RUN")
    journal: Path | None = option(None, FOLDER, metavar="DIR")
    broker: str = option("", "The broker, if its address has changed or has a user and a password, which are not stored", metavar="URL")
    as_json: bool = json_option("the outcome")

    def __call__(self) -> None:
        with closing(Journal.open(self.journal or runs_folder(), self.run)) as journal:
            if journal.result is not None:
                raise InputError(f"run {self.run!r} is over; `local-dp show {self.run}` prints its outcome")
            options = {**journal.began["options"], "as_json": self.as_json, "journal": self.journal}
            if self.broker:
                options["broker"] = self.broker
            Server(**_typed(options)).serve(find_protocol(journal.began["protocol"]), journal.began["given"], journal)


def _typed(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a server from their JSON; unknown ones are left out, missing ones have their defaults."""
    hints, known = get_type_hints(Server), {each.name for each in fields(Server)}
    typed: dict[str, Any] = {"settings_": tuple(options.pop("settings", ()))}
    for name, value in options.items():
        if name in known:
            is_path = isinstance(value, str) and hints[name] in (Path, Path | None)
            typed[name] = Path(value) if is_path else tuple(value) if isinstance(value, list) else value
    return typed


def _row(folder: Path, run: str) -> tuple[str, str, str, str]:
    try:
        with closing(Journal.open(folder, run)) as journal:
            return run, journal.began["protocol"], journal.began["at"], "done" if journal.result is not None else _progress(journal)
    except InputError as error:
        return run, "", "", "running" if "open" in str(error) else "unreadable"


def _progress(journal: Journal) -> str:
    closed, asked, messages = journal.standing()
    return f"{closed} of {asked} rounds closed, {messages} messages stored" if asked else "no client was asked"
