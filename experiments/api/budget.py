"""The budget of a table, made or shown; and the budget that clients have spent, by their store."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_dp.clients.journal import KIND, SqliteStore
from local_dp.errors import InputError
from local_dp.experiments.api.printable import WIDTH, Printable
from local_dp.experiments.text.layout import number, paragraph, table
from local_dp.loss import MAX_EPSILON, NANO, Loss, Pure, approximate, nano_epsilon
from local_dp.storage.budget_file import KeptBudget


@dataclass(frozen=True, repr=False)
class Spending(Printable):
    """A budget, its charges, and the rest."""

    def text(self, width: int = WIDTH) -> str:
        charges = [(charge["at"], charge["what"], number(charge["epsilon"]), f"{charge['delta']:g}") for charge in self.data["charges"]]
        total, left = (_price(self.data[name]) for name in ("budget", "left"))
        rows = [table(("when", "what", "epsilon", "delta"), charges, width)] if charges else []
        return "\n\n".join((paragraph(f"{self.data['file']}: a budget of {total}; {left} is left", width), *rows))


@dataclass(frozen=True, repr=False)
class Spent(Printable):
    """The spent budget of a store, by run and by label, and the rest for life; with several clients, of the one that has spent most."""

    def text(self, width: int = WIDTH) -> str:
        data = self.data
        line = f"{data['file']}: epsilon {number(data['spent'])} of {number(data['lifetime'])} spent for life; {number(data['left'])} is left"
        runs = [(each["run"], number(each["epsilon"]), str(each["rounds"])) for each in data["runs"]]
        labels = [(each["label"], each["run"], number(each["epsilon"])) for each in data["labels"]]
        tables = (table(names, rows, width) for names, rows in ((("run", "epsilon", "rounds"), runs), (("label", "in run", "epsilon"), labels)) if rows)
        return "\n\n".join((paragraph(line, width), *tables))


def budget(file: str | Path, *, epsilon: float | None = None, delta: float | None = None) -> Spending | Spent:
    """Makes a new budget in `file` if epsilon is given, pure without a delta; else shows a budget, or the store of a client. Raises InputError."""
    if epsilon is None and delta is None and _is_store(Path(file)):
        return _spent(Path(file))
    kept = KeptBudget(Path(file))
    if epsilon is not None:
        kept = KeptBudget.create(Path(file), Pure(nano_epsilon(epsilon)) if delta is None else approximate(epsilon, delta))
    elif delta is not None:
        raise InputError(f"a new budget needs an epsilon beside delta {delta:g}; leave out delta to see a budget")
    standing = kept.standing()
    charges = [{"at": each.at, "what": each.what, "neighbours": each.neighbours, **_plain(each.loss)} for each in standing.charges]
    return Spending({"file": str(file), "budget": _plain(standing.budget), "left": _plain(standing.left), "charges": charges})


def _is_store(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(72)[68:] == KIND.to_bytes(4)
    return False


def _spent(path: Path) -> Spent:
    store = SqliteStore(path, MAX_EPSILON)
    rounds, labels = Counter[str](), dict[str, dict[str, Any]]()
    for commit in store.commits():
        rounds[commit.run] += 1
        for charge in commit.charges:
            if charge.memo:
                labels.setdefault(charge.memo, {"label": charge.memo, "run": commit.run, "epsilon": charge.nano / NANO})
    ledger = store.ledger
    store.close()
    runs = [{"run": run, "epsilon": spent, "rounds": rounds[run]} for run, spent in ledger.runs.items()]
    life, spent = ledger.lifetime / NANO, ledger.max_spent
    left = (ledger.lifetime - round(spent * NANO)) / NANO
    return Spent({"file": str(path), "lifetime": life, "spent": spent, "left": left, "runs": runs, "labels": list(labels.values())})


def _plain(loss: Loss) -> dict[str, float]:
    return {"epsilon": loss.epsilon, "delta": loss.delta}


def _price(price: dict[str, float]) -> str:
    return f"epsilon {number(price['epsilon'])}" + (f" and delta {price['delta']:g}" if price["delta"] else "")
