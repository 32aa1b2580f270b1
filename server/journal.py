"""The journal of a run in a file: its options, every accepted report and every closed round, so that a killed server can resume."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from local_dp.errors import InputError
from local_dp.server.progress import Turnout
from local_dp.server.round import Closing, Past
from local_dp.storage.log import Entry, Log
from local_dp.wire import Reply, check_name, decode, encode

KIND = 0x1D9D  # SQLite's application id: the file is the journal of a run
SUFFIX = ".run"


class Journal:
    """The journal of one run. A report is in it before its receipt is sent, and a round before the next one begins. Methods raise InputError."""

    def __init__(self, log: Log, run: str) -> None:
        self._log = log
        self.run = run
        self.began: dict[str, Any] = json.loads(self._log.entries(0)[0].data)

    @classmethod
    def begin(cls, folder: Path, run: str, how: Mapping[str, Any]) -> Self:
        """A new one. Raises InputError for a run that has one: clients answer a round of a name once."""
        path = path_of(folder, run)
        if path.exists():
            raise InputError(f"run {run!r} was begun before, in {str(folder)!r}: `local-dp resume {run}` resumes it; a new run takes a new name")
        return cls(Log.create(path, KIND, Entry(run, 0, "began", json.dumps(how).encode())), run)

    @classmethod
    def open(cls, folder: Path, run: str) -> Self:
        """That of a run which was begun before."""
        path = path_of(folder, run)
        if not path.exists():
            raise InputError(f"there is no journal of run {run!r} in {str(folder)!r}; `local-dp runs` lists those that there are")
        return cls(Log(path, KIND), run)

    def past(self, number: int) -> Past | None:
        """The stored part of a round, if it was asked."""
        parts = {entry.part: entry.data for entry in self._log.entries(number)}
        if not parts:
            return None
        request, closed = parts.pop("asked"), parts.pop("closed", None)
        replies = tuple(reply for reply in map(decode, parts.values()) if isinstance(reply, Reply))
        data = None if closed is None else json.loads(closed)
        return Past(request, replies, None if data is None else Closing(Turnout(**data["counts"]), data["seconds"]))

    def asked(self, number: int, request: bytes) -> None:
        """A round that is about to be asked, by the digest of its request."""
        self._log.append([Entry(self.run, number, "asked", request)])

    def keep(self, replies: Iterable[Reply]) -> None:
        """Accepted reports, all in one step."""
        self._log.append([Entry(self.run, reply.round, f"{reply.ask} {reply.start} {len(reply.reports) // reply.width}", encode(reply)) for reply in replies])

    def closed(self, number: int, closing: Closing) -> None:
        """A round that counts, and to which nothing is added any more."""
        data = {"counts": vars(closing.counts), "seconds": closing.seconds}
        self._log.append([Entry(self.run, number, "closed", json.dumps(data).encode())])

    def end(self, result: Mapping[str, Any]) -> None:
        self._log.append([Entry(self.run, 0, "result", json.dumps(result).encode())])

    @property
    def result(self) -> dict[str, Any] | None:
        """The result of the run, if it is over."""
        data = self._log.get(self.run, 0, "result")
        return None if data is None else json.loads(data)

    def standing(self) -> tuple[int, int, int]:
        """How many rounds were closed, how many were asked, and how many messages of reports are kept."""
        parts = [entry.part for entry in self._log.entries() if entry.round]
        closed, rounds = parts.count("closed"), parts.count("asked")
        return closed, rounds, len(parts) - closed - rounds

    def leave(self) -> None:
        """Ends the server's work. The journal of a run without a question is deleted: it can begin again."""
        unused = False
        with suppress(InputError):  # of a file that is hurt all is kept
            unused = self.standing()[1] == 0
        self.close()
        if unused:
            self._log.path.unlink()

    def close(self) -> None:
        self._log.close()


def path_of(folder: Path, run: str) -> Path:
    """The file of a run. Raises InputError for a name that no run has."""
    check_name(run)
    return folder / (run + SUFFIX)
