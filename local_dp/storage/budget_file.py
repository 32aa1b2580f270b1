"""A curator's budget in a file: the total loss allowed to all releases of one table, by any number
of processes."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from local_dp.curator.account import Account
from local_dp.curator.mechanism import Neighbours
from local_dp.errors import InputError, RefusedError
from local_dp.loss import Approximate, Loss, Pure
from local_dp.storage.log import BusyError, Entry, Log, kind_of
from local_dp.storage.mark import Mark

KIND = 0x1D9E  # SQLite's application id: the file is the log of a budget
_UNGUARDED = 0x1D9B  # the same of older versions, whose files had no digest
_WAIT = 30.0  # seconds for another process to finish its charge
_PAUSE = 0.005  # seconds between two tries
_TURN = threading.RLock()  # of this process: a file that is closed twice loses its lock
_MAKE = "make one: local-dp budget FILE --epsilon E --delta D"


@dataclass(frozen=True)
class Charged:
    """A charged release: its time (UTC), question, neighbours and loss."""

    at: str
    what: str
    neighbours: Neighbours
    loss: Loss


@dataclass(frozen=True)
class Standing:
    budget: Loss
    charges: tuple[Charged, ...]

    @property
    def spent(self) -> Loss:
        """The sum of all charges (KLNRS Claim 2.1)."""
        return sum((charge.loss for charge in self.charges), Pure(0))

    @property
    def left(self) -> Loss:
        return _loss(self.budget.nano - self.spent.nano, self.budget.atto - self.spent.atto)

    def check(self, loss: Loss, neighbours: Neighbours) -> None:
        """Raises RefusedError("budget") for more than is left, ("neighbours") for losses that do
        not add up with those before."""
        if any(charge.neighbours != neighbours for charge in self.charges):
            before = self.charges[0].neighbours
            raise RefusedError(
                "neighbours",
                (
                    f"this budget was spent on {before!r} neighbours, and this release protects "
                    f"{neighbours!r}: keep another for it"
                ),
            )
        account = Account(self.budget, neighbours)
        account.spent = self.spent
        account.charge(loss)


@dataclass(frozen=True)
class KeptBudget:
    """A budget in a file: losses add up and never exceed it, under concurrent processes and
    crashes.

    The file is a log (`storage.log`) with a mark beside it (`storage.mark`): a damaged, deleted,
    older or copied file is refused, and never has more budget. A charge is on the disk before
    `charge` returns; what comes after it is never refunded.
    """

    path: Path

    @classmethod
    def create(cls, path: Path, budget: Loss) -> Self:
        """A new file, nothing spent. Raises InputError where there is or was a file: a budget that
        is begun again protects nobody."""
        new = cls(path)
        for file in (new._mark.file, path):
            if file.exists():
                raise InputError(
                    f"{str(file)!r} exists; a budget is never begun again: name another file"
                )
        if not path.absolute().parent.is_dir():
            raise InputError(f"cannot write {str(path)!r}: there is no such folder")
        first = _entry(0, (budget.nano, budget.atto, isinstance(budget, Pure)))
        Log.create(path, KIND, first).close()
        new._mark.set([first])
        return new

    def standing(self) -> Standing:
        with self._open() as log:
            return _read(log)

    def charge(self, loss: Loss, neighbours: Neighbours, what: str) -> Standing:
        """Commits a loss before anything is drawn; the standing after it. Raises RefusedError as
        `Standing.check` does, and commits nothing."""
        with self._open() as log:  # one process at a time, from reading on
            _read(log).check(loss, neighbours)
            at = datetime.now(UTC).isoformat(timespec="seconds")
            log.append([_entry(len(log.entries()), (at, what, neighbours, loss.nano, loss.atto))])
            self._mark.set(log.entries())
            return _read(log)

    @property
    def _mark(self) -> Mark:
        return Mark(Path(os.path.realpath(self.path)))

    @contextmanager
    def _open(self) -> Iterator[Log]:
        """The log, for this process alone. Raises InputError."""
        self._check_kind()
        with _TURN:
            log = self._acquire()
            try:
                self._mark.check(log.entries())
                yield log
            finally:
                log.close()

    def _check_kind(self) -> None:
        has_mark, name = self._mark.file.exists(), str(self.path)
        try:
            kind = kind_of(self.path)
        except FileNotFoundError:
            if has_mark:
                raise InputError(
                    f"the budget {name!r} is gone, and a budget is never begun again: put the "
                    "file back"
                ) from None
            raise InputError(
                f"there is no budget {name!r}; {_MAKE.replace('FILE', name)}"
            ) from None
        except OSError as error:
            raise InputError(f"cannot read {name!r}: {error.strerror}") from None
        if kind == _UNGUARDED:
            raise InputError(
                f"{name!r} is a budget of an older version, which nothing guards; see what is "
                "left of it with that version, and make a new one of at most that: local-dp "
                "budget NEWFILE --epsilon E --delta D"
            )
        if kind != KIND:
            raise InputError(
                f"the budget {name!r} is damaged; put the latest file back"
                if has_mark
                else f"{name!r} is no budget; {_MAKE}"
            )

    def _acquire(self) -> Log:
        """The open log, once no other process has it."""
        until = time.monotonic() + _WAIT
        while True:
            try:
                return Log(self._mark.path, KIND)
            except BusyError:
                if time.monotonic() > until:
                    raise
            time.sleep(_PAUSE)


def _entry(place: int, data: tuple[int | str, ...]) -> Entry:
    return Entry("", place, "", json.dumps(data).encode())


def _read(log: Log) -> Standing:
    (nano, atto, pure), *charges = (json.loads(entry.data) for entry in log.entries())
    budget = Pure(nano) if pure else Approximate(nano, atto)
    return Standing(
        budget,
        tuple(
            Charged(at, what, neighbours, _loss(nano, atto))
            for at, what, neighbours, nano, atto in charges
        ),
    )


def _loss(nano: int, atto: int) -> Loss:
    return Approximate(nano, atto) if atto else Pure(nano)
