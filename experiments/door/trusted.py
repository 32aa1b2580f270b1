"""What a trusted curator tells of a person's own table: one mechanism, its price paid from an account before anything is drawn."""

import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Generic, TypeVar

from experiments.text.layout import held, paragraph, table
from experiments.text.numbers import number
from experiments.tiers.settings import Randomness
from experiments.tiers.version import installed_version
from local_dp.curator.account import Account
from local_dp.curator.base import Mechanism
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate, Loss, approximate
from local_dp.records import Records

D = TypeVar("D")
R = TypeVar("R")
SHOWN = 40  # rows in a summary, or in a figure
DRAWN = "of_rows"  # the true numbers of the rows, for a figure
_WIDTH = 100  # characters of the block that a release prints


@dataclass(frozen=True, kw_only=True)
class Trust:
    """How the curator is to release: epsilon in nats; delta, or None for pure privacy; a seed for a simulation, or system entropy."""

    epsilon: float = 1.0
    delta: float | None = 1e-6
    seed: int | None = None
    private: bool = False

    def __post_init__(self) -> None:
        approximate(self.epsilon, 1e-6 if self.delta is None else self.delta)

    def check_records(self, n: int) -> None:
        """Raises InputError for a delta that lets a whole record be published."""
        if self.delta is not None and self.delta * n >= 1:
            raise InputError(f"delta is {self.delta:g} with {n:,} records; from 1/n on a whole record may be published: give less than {1 / n:.2g}, or pure")


class Task(ABC, Generic[D, R]):
    """What is asked of the table. Its subclasses are dataclasses of what the person says."""

    name: str

    @abstractmethod
    def mechanism(self, trust: Trust) -> Mechanism[D, R, Loss]:
        """What answers it, pure where there is no delta. Raises InputError where there is no pure form."""

    def check_pure(self, records: Records) -> None:
        """Raises InputError where this table's column has no pure form."""

    @abstractmethod
    def database(self, records: Records) -> D:
        """The table as the mechanism takes it. Raises InputError for what it cannot take."""

    @abstractmethod
    def told(self, result: R, records: Records) -> dict[str, Any]:
        """The result as plain data: `columns`, `rows`, `explanation`; `drawn` (axis, rows) if a figure can show it. Of the records it reads names alone."""

    @abstractmethod
    def truth(self, result: R, records: Records) -> dict[str, Any]:
        """In a simulation: how good that is; under `DRAWN` the true numbers of the rows."""


@dataclass(frozen=True, repr=False)
class Release:
    """What the curator released: prints itself as one block, and is plain data by `to_dict`."""

    data: dict[str, Any]

    def __repr__(self) -> str:
        return shown(self.data, _WIDTH)

    def to_dict(self) -> dict[str, Any]:
        """The release as plain data: what `--json` prints."""
        return self.data

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap; line-height: 1.35">{escape(repr(self))}</pre>'

    def plot(self, path: str | Path) -> None:
        """Draws counts or quantiles, and where it is known the truth, into `path` (.png, .svg or .pdf). Raises InputError for what has no figure."""
        from experiments.lab.figures import Estimates, plot_estimates

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


def release(task: Task[D, R], records: Records, trust: Trust) -> Release:
    """Asks the trusted curator: the loss is charged before anything is drawn. In private mode no truth is computed."""
    trust.check_records(len(records))
    mechanism, database = task.mechanism(trust), task.database(records)
    if trust.delta is None:
        task.check_pure(records)
    chance = Randomness.choose(trust.seed, trust.private)
    began = time.perf_counter()
    oracle = TrustedOracle(database, Account(mechanism.loss, mechanism.neighbours), Draws(chance.noise()))
    (result,) = oracle.answer((mechanism,))
    spent = oracle.account.spent
    stamp = {"private": True, "stamp": None, "seed": None} if trust.private else {"private": False, "stamp": "simulation: not private", "seed": chance.seed}
    known = {} if trust.private else {"truth": task.truth(result, records), "wall_s": time.perf_counter() - began}
    price = {"privacy": privacy_of(spent), "epsilon": spent.epsilon, "delta": spent.delta, "neighbours": mechanism.neighbours}
    asked = {"task": task.name, "model": "curator", "mechanism": type(mechanism).__name__, "n": len(records), "version": installed_version()}
    data = {**asked, **price, **stamp, "result": task.told(result, records), "truth": None, "wall_s": None, **known}
    return Release(data)


def privacy_of(loss: Loss) -> str:
    """Its kind, in a word."""
    return "approximate" if isinstance(loss, Approximate) else "pure"


def shown(data: dict[str, Any], width: int) -> str:
    """A release for a person."""
    stamp = "private: operating-system entropy" if data["private"] else f"{data['stamp']}, seed {data['seed']}"
    head = f"{data['task']} by a trusted curator ({data['mechanism']}), {held(_price(data))}, {number(data['n'])} records; {held(stamp)}"
    result = data["result"]
    rows = [[_cell(cell) for cell in row] for row in result["rows"][:SHOWN]]
    more = [f"and {len(result['rows']) - SHOWN:,} more rows; --json has all"] if len(result["rows"]) > SHOWN else []
    told = (
        []
        if data["truth"] is None
        else ["truth: " + ", ".join(held(f"{name.replace('_', ' ')} {_cell(value)}") for name, value in data["truth"].items() if name != DRAWN)]
    )
    parts = [table(result["columns"], rows, width)] if rows else []
    lines = [paragraph(line, width) for line in (*more, result["explanation"], *told)]
    return "\n\n".join((paragraph(head, width), *parts, "\n".join(lines)))


def _price(data: dict[str, Any]) -> str:
    return f"epsilon {number(data['epsilon'])}" + (f" and delta {data['delta']:g}" if data["delta"] else ", pure")


def _cell(value: Any) -> str:
    return number(value) if isinstance(value, int | float) or value is None else str(value)
