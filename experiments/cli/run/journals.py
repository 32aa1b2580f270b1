"""`local-dp runs`, `show` and `resume`: what servers keep of their runs."""

from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from local_dp.errors import InputError
from local_dp.experiments.cli.fields import argument, option
from local_dp.experiments.cli.run.join import Server
from local_dp.experiments.cli.run.output import show
from local_dp.experiments.text.layout import screen_width, table
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.places import runs_folder
from local_dp.protocols.registry import find_protocol
from local_dp.server.journal import SUFFIX, Journal

FOLDER = "Where servers keep their runs; without it, a folder of the user's"


@dataclass(frozen=True)
class Runs:
    """Lists the runs that servers on this machine have kept, and where each stands."""

    journal: Path | None = option(None, FOLDER, metavar="DIR")

    def __call__(self) -> None:
        folder = self.journal or runs_folder()
        rows = [_row(folder, path.name.removesuffix(SUFFIX)) for path in sorted(folder.glob(f"*{SUFFIX}"))]
        if rows:
            SCREEN.tell(table(("run", "protocol", "begun", "stands"), rows, screen_width()))
        else:
            SCREEN.note(f"no run is kept in {str(folder)!r}")


@dataclass(frozen=True)
class Show:
    """Prints what a run gave, or where it stands."""

    run: str = argument("The run.", metavar="RUN")
    journal: Path | None = option(None, FOLDER, metavar="DIR")
    as_json: bool = option(False, "Print the outcome as JSON, alone on standard output", name="--json")

    def __call__(self) -> None:
        with closing(Journal.open(self.journal or runs_folder(), self.run)) as kept:
            result, began, standing = kept.result, kept.began, _standing(kept)
        if result is not None:
            show(result, self.as_json)
        elif self.as_json:
            raise InputError(f"run {self.run!r} has no outcome yet: {standing}")
        else:
            SCREEN.tell(f"run {self.run}, {began['protocol']}, begun {began['at']}: {standing}")


@dataclass(frozen=True)
class Resume:
    """Goes on with a run whose server was killed, from what it has kept.

    The rounds that were closed are played again without asking anybody, and the open one goes on with the reports that were accepted; members that still wait
    answer the rest. The result is that of a run that was never interrupted.
    """

    run: str = argument("The run.", metavar="RUN")
    journal: Path | None = option(None, FOLDER, metavar="DIR")
    broker: str = option("", "The broker, where its address has changed or has a user and a password, which are not kept", metavar="URL")
    as_json: bool = option(False, "Print the outcome as JSON, alone on standard output", name="--json")

    def __call__(self) -> None:
        with closing(Journal.open(self.journal or runs_folder(), self.run)) as kept:
            if kept.result is not None:
                raise InputError(f"run {self.run!r} is over; `local-dp show {self.run}` prints its outcome")
            options = {**kept.began["options"], "as_json": self.as_json, "journal": self.journal}
            if self.broker:
                options["broker"] = self.broker
            Server(**_typed(options)).serve(find_protocol(kept.began["protocol"]), kept.began["given"], kept)


def _typed(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a server as it had them, from what JSON keeps of them; those that it did not have are as they are by default."""
    hints, known = get_type_hints(Server), {each.name for each in fields(Server)}
    typed = {}
    for name, value in options.items():
        if name in known:
            is_path = isinstance(value, str) and hints[name] in (Path, Path | None)
            typed[name] = Path(value) if is_path else tuple(value) if isinstance(value, list) else value
    return typed


def _row(folder: Path, run: str) -> tuple[str, str, str, str]:
    try:
        with closing(Journal.open(folder, run)) as kept:
            return run, kept.began["protocol"], kept.began["at"], "done" if kept.result is not None else _standing(kept)
    except InputError as error:
        return run, "", "", "it runs" if "open" in str(error) else "it cannot be read"


def _standing(kept: Journal) -> str:
    closed, asked, messages = kept.standing()
    return f"{closed} of {asked} rounds closed that were asked, {messages} messages kept" if asked else "nothing was asked"
