"""What a trusted curator tells of a person's own table: one mechanism, its price paid from an account before anything is drawn."""

import csv
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from local_dp.curator.account import Account
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.experiments.api.told import WIDTH, Told
from local_dp.experiments.text.layout import held, paragraph, table
from local_dp.experiments.text.notation import number
from local_dp.experiments.tiers.settings import Randomness
from local_dp.experiments.tiers.version import installed_version
from local_dp.interaction import Algorithm, Nonadaptive, run
from local_dp.loss import Approximate, Loss, Pure, approximate, nano_epsilon
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records
from local_dp.storage.budget_file import KeptBudget

A = TypeVar("A")
D = TypeVar("D")
R = TypeVar("R")
SHOWN = 40  # rows in a summary, or in a figure
DRAWN = "of_rows"  # the true numbers of the rows, for a figure


@dataclass(frozen=True, kw_only=True)
class Trust:
    """How the curator is to release: epsilon in nats; delta, or None for pure privacy; a seed for a simulation, or system entropy; the budget that pays."""

    epsilon: float = 1.0
    delta: float | None = 1e-6
    seed: int | None = None
    private: bool = False
    budget: Path | str | None = None

    def __post_init__(self) -> None:
        approximate(self.epsilon, 1e-6 if self.delta is None else self.delta)

    @property
    def loss(self) -> Loss:
        """What a release may lose."""
        return Pure(nano_epsilon(self.epsilon)) if self.delta is None else approximate(self.epsilon, self.delta)

    def check_records(self, n: int) -> None:
        """Raises InputError for a delta that lets a whole record be published."""
        if self.delta is not None and self.delta * n >= 1:
            raise InputError(f"delta is {self.delta:g} with {n:,} records; from 1/n on a whole record may be published: give less than {1 / n:.2g}, or pure")


def after(mechanism: Mechanism[D, A, Loss], made: Callable[[A], R]) -> Nonadaptive[Mechanism[D, A, Loss], A, R]:
    """One mechanism, asked once, and what is made of its release."""
    return Nonadaptive((mechanism,), lambda answers: made(answers[0]))


@dataclass(frozen=True)
class Offer(Generic[D, R]):
    """An algorithm of the curator's, called so, and the account that pays for it: the account's budget is its price, fixed before it begins."""

    name: str
    algorithm: Algorithm[Any, Any, R]  # of mechanisms
    account: Account

    @classmethod
    def of(cls, mechanism: Mechanism[D, R, Loss]) -> "Offer[D, R]":
        """One mechanism, asked once."""
        return cls(type(mechanism).__name__, after(mechanism, lambda released: released), Account(mechanism.loss, mechanism.neighbours))


class Task(ABC, Generic[D, R]):
    """What is asked of the table. Its subclasses are dataclasses of what the person says."""

    name: str

    @abstractmethod
    def offer(self, trust: Trust, size: int) -> Offer[D, R]:
        """What answers it for `size` records, pure where there is no delta. Raises InputError where there is no pure form."""

    def for_table(self, launch: Launch, trust: Trust) -> Self:
        """The same task, knowing the table's columns. Raises InputError for what they cannot be asked."""
        return self

    def size(self, records: Records) -> int:
        """The number that is public: of records, where neighbours differ in one that is replaced."""
        return len(records)

    @abstractmethod
    def database(self, records: Records) -> D:
        """The table as the mechanism takes it. Raises InputError for what it cannot take."""

    @abstractmethod
    def to_data(self, result: R, records: Records) -> dict[str, Any]:
        """The result as plain data: `columns`, `rows`, `explanation`; `brief` if other rows are for a person; `drawn` if there is a figure.

        Of the records it reads names alone.
        """

    @abstractmethod
    def truth(self, result: R, records: Records) -> dict[str, Any]:
        """In a simulation: how good that is; under `DRAWN` the true numbers of the rows."""


class ByMechanism(Task[D, R]):
    """A task that one mechanism answers."""

    @abstractmethod
    def mechanism(self, trust: Trust) -> Mechanism[D, R, Loss]:
        """Pure where there is no delta. Raises InputError where there is no pure form."""

    def offer(self, trust: Trust, size: int) -> Offer[D, R]:
        return Offer.of(self.mechanism(trust))


@dataclass(frozen=True, repr=False)
class Release(Told):
    """What the curator released."""

    def text(self, width: int = WIDTH) -> str:
        return shown(self.data, width)

    def plot(self, path: str | Path) -> None:
        """Draws counts or quantiles, and where it is known the truth, into `path` (.png, .svg or .pdf). Raises InputError for what has no figure."""
        from local_dp.experiments.lab.figures import Estimates, plot_estimates

        drawn = self.data["result"].get("drawn")
        if drawn is None:
            raise InputError(f"there is no figure of a {self.data['task']}; leave out plot")
        rows, truth = self.rows[:SHOWN], (self.data["truth"] or {}).get(DRAWN)
        open_ends = [math.nan] * len(rows)
        title = f"{self.data['task']} by a trusted curator, {_price(self.data)}"
        values = [float(row[1]) for row in rows]
        labels = [_cell(row[0]) for row in rows]
        plot_estimates(Estimates(title, drawn["axis"], drawn["rows"], labels, values, open_ends, open_ends, truth and truth[:SHOWN]), Path(path))

    @property
    def rows(self) -> list[list[Any]]:
        """The rows of the result."""
        found: list[list[Any]] = self.data["result"]["rows"]
        return found

    def write(self, path: str | Path) -> None:
        """Writes all rows into `path`, as CSV under the names of their columns. Raises InputError where it cannot be written."""
        try:
            with Path(path).open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([self.data["result"]["columns"], *self.rows])
        except OSError as error:
            raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None


def release(task: Task[D, R], records: Records, trust: Trust) -> Release:
    """Asks the trusted curator: the price is charged, to the budget too if there is one, before anything is drawn. In private mode no truth is computed."""
    size = task.size(records)
    trust.check_records(size)
    task = task.for_table(Launch(records, trust.private), trust)
    offer, database = task.offer(trust, size), task.database(records)
    chance = Randomness.choose(trust.seed, trust.private)
    price, neighbours = offer.account.budget, offer.account.neighbours
    left = None if trust.budget is None else KeptBudget(Path(trust.budget)).charge(price, neighbours, _what(task, trust)).left
    began = time.perf_counter()
    result = run(offer.algorithm, TrustedOracle(database, offer.account, Draws(chance.noise())))
    stamp = {"private": True, "stamp": None, "seed": None} if trust.private else {"private": False, "stamp": "simulation: not private", "seed": chance.seed}
    known = {} if trust.private else {"truth": task.truth(result, records), "wall_s": time.perf_counter() - began}
    paid = {"privacy": privacy_of(price), "epsilon": price.epsilon, "delta": price.delta, "neighbours": neighbours}
    left_over = {"left": None if left is None else {"epsilon": left.epsilon, "delta": left.delta}}
    asked = {"task": task.name, "model": "curator", "mechanism": offer.name, "n": size, "version": installed_version()}
    data = {**asked, **paid, **left_over, **stamp, "result": task.to_data(result, records), "truth": None, "wall_s": None, **known}
    return Release(data)


def _what(task: Task[D, R], trust: Trust) -> str:
    """What a budget remembers of a release: nothing of the records."""
    return task.name if trust.private else f"{task.name} (simulation)"


def privacy_of(loss: Loss) -> str:
    """Its kind, in a word."""
    return "approximate" if isinstance(loss, Approximate) else "pure"


def shown(data: dict[str, Any], width: int) -> str:
    """A release for a person."""
    stamp = "private: operating-system entropy" if data["private"] else f"{data['stamp']}, seed {data['seed']}"
    head = f"{data['task']} by a trusted curator ({data['mechanism']}), {held(_price(data))}, {number(data['n'])} records; {held(stamp)}"
    result = data["result"]
    listed = result.get("brief", result)
    rows = [[_cell(cell) for cell in row] for row in listed["rows"][:SHOWN]]
    more = [f"and {len(listed['rows']) - SHOWN:,} more rows; --json has all"] if len(listed["rows"]) > SHOWN else []
    told = (
        []
        if data["truth"] is None
        else ["truth: " + ", ".join(held(f"{name.replace('_', ' ')} {_cell(value)}") for name, value in data["truth"].items() if name != DRAWN)]
    )
    parts = [table(listed["columns"], rows, width)] if rows else []
    left = [] if data["left"] is None else [f"left of the budget: {held(_price(data['left']))}"]
    lines = [paragraph(line, width) for line in (*more, result["explanation"], *told, *left)]
    return "\n\n".join((paragraph(head, width), *parts, "\n".join(lines)))


def _price(data: dict[str, Any]) -> str:
    return f"epsilon {number(data['epsilon'])}" + (f" and delta {data['delta']:g}" if data["delta"] else ", pure")


def _cell(value: Any) -> str:
    return number(value) if isinstance(value, int | float) or value is None else str(value)
