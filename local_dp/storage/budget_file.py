"""A curator's budget in a file: the total loss allowed to all releases of one table, by any number of processes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from local_dp.curator.account import Account
from local_dp.curator.mechanism import Neighbours
from local_dp.errors import InputError, RefusedError
from local_dp.loss import Approximate, Loss, Pure

_MARK = 0x1D9B  # SQLite's application id: the file is one of ours
_WAIT = 30.0  # seconds for another process to finish its charge
_TABLES = (
    "CREATE TABLE budget (nano INTEGER NOT NULL, atto INTEGER NOT NULL, pure INTEGER NOT NULL)",
    "CREATE TABLE charge (at TEXT NOT NULL, what TEXT NOT NULL, neighbours TEXT NOT NULL, nano INTEGER NOT NULL, atto INTEGER NOT NULL)",
)


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
        return sum((charged.loss for charged in self.charges), Pure(0))

    @property
    def left(self) -> Loss:
        return _loss(self.budget.nano - self.spent.nano, self.budget.atto - self.spent.atto)

    def check(self, loss: Loss, neighbours: Neighbours) -> None:
        """Raises RefusedError("budget") for more than is left, ("neighbours") for losses that do not add up with those before."""
        if any(charged.neighbours != neighbours for charged in self.charges):
            before = self.charges[0].neighbours
            raise RefusedError("neighbours", f"this budget was spent on {before!r} neighbours, and this release protects {neighbours!r}: keep another for it")
        account = Account(self.budget, neighbours)
        account.spent = self.spent
        account.charge(loss)


@dataclass(frozen=True)
class KeptBudget:
    """A budget in a file: losses add up and never exceed it, under concurrent processes and crashes.

    A charge is one transaction of SQLite, written through to the disk before `charge` returns; what comes after it is never refunded.
    """

    path: Path

    @classmethod
    def create(cls, path: Path, budget: Loss) -> Self:
        """A new file, nothing spent. Raises InputError where there is a file already: a budget that is begun again protects nobody."""
        try:
            path.open("x").close()
        except FileExistsError:
            raise InputError(f"{str(path)!r} exists; a budget is never begun again: name another file") from None
        except OSError as error:
            raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None
        budget_file = cls(path)
        with budget_file._open() as connection:
            for statement in ("BEGIN EXCLUSIVE", *_TABLES, f"PRAGMA application_id = {_MARK}"):
                connection.execute(statement)
            connection.execute("INSERT INTO budget VALUES (?, ?, ?)", (budget.nano, budget.atto, isinstance(budget, Pure)))
            connection.execute("COMMIT")
        return budget_file

    def standing(self) -> Standing:
        with self._open() as connection:
            return _read(connection)

    def charge(self, loss: Loss, neighbours: Neighbours, what: str) -> Standing:
        """Commits a loss before anything is drawn; the standing after it. Raises RefusedError as `Standing.check` does, and commits nothing."""
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")  # one process at a time, from reading on
            _read(connection).check(loss, neighbours)
            at = datetime.now(UTC).isoformat(timespec="seconds")
            connection.execute("INSERT INTO charge VALUES (?, ?, ?, ?, ?)", (at, what, neighbours, loss.nano, loss.atto))
            connection.execute("COMMIT")
            return _read(connection)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if not self.path.is_file():
            raise InputError(f"there is no budget {str(self.path)!r}; make one: local-dp budget {self.path} --epsilon E --delta D")
        try:
            with closing(sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", timeout=_WAIT, isolation_level=None, uri=True)) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")
                yield connection
        except sqlite3.OperationalError as error:
            raise InputError(f"the budget {str(self.path)!r} cannot be charged: {error}") from None
        except (sqlite3.DatabaseError, ValueError, TypeError):  # the latter of values of another type than was written
            raise InputError(f"{str(self.path)!r} is no budget; make one: local-dp budget FILE --epsilon E --delta D") from None


def _read(connection: sqlite3.Connection) -> Standing:
    if connection.execute("PRAGMA application_id").fetchone() != (_MARK,):
        raise sqlite3.DatabaseError
    nano, atto, pure = connection.execute("SELECT nano, atto, pure FROM budget").fetchone()
    charges = connection.execute("SELECT at, what, neighbours, nano, atto FROM charge ORDER BY rowid").fetchall()
    budget = Pure(nano) if pure else Approximate(nano, atto)
    return Standing(budget, tuple(Charged(at, what, neighbours, _loss(nano, atto)) for at, what, neighbours, nano, atto in charges))


def _loss(nano: int, atto: int) -> Loss:
    return Approximate(nano, atto) if atto else Pure(nano)
