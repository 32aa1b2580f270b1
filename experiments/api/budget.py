"""A budget for releases of one table: made, or shown; and what clients have spent, by their store."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_dp.clients.journal import KIND, SqliteStore
from local_dp.errors import InputError
from local_dp.experiments.api.told import WIDTH, Told
from local_dp.experiments.text.layout import paragraph, table
from local_dp.experiments.text.notation import number
from local_dp.loss import MAX_EPSILON, NANO, Loss, Pure, approximate, nano_epsilon
from local_dp.storage.budget_file import KeptBudget


@dataclass(frozen=True, repr=False)
class Spending(Told):
    """A budget, what has been charged to it, and what is left."""

    def text(self, width: int = WIDTH) -> str:
        charges = [(charge["at"], charge["what"], number(charge["epsilon"]), f"{charge['delta']:g}") for charge in self.data["charges"]]
        total, left = (_price(self.data[name]) for name in ("budget", "left"))
        rows = [table(("when", "what", "epsilon", "delta"), charges, width)] if charges else []
        return "\n\n".join((paragraph(f"{self.data['file']}: a budget of {total}; {left} is left", width), *rows))


@dataclass(frozen=True, repr=False)
class Spent(Told):
    """What the clients of a store have spent, on which runs and under which labels, and what is left for life; of several, the one that has spent most."""

    def text(self, width: int = WIDTH) -> str:
        data = self.data
        told = f"{data['file']}: epsilon {number(data['spent'])} of {number(data['lifetime'])} spent for life; {number(data['left'])} is left"
        runs = [(each["run"], number(each["epsilon"]), str(each["rounds"])) for each in data["runs"]]
        labels = [(each["label"], each["run"], number(each["epsilon"])) for each in data["labels"]]
        tables = (table(names, rows, width) for names, rows in ((("run", "epsilon", "rounds"), runs), (("label", "in run", "epsilon"), labels)) if rows)
        return "\n\n".join((paragraph(told, width), *tables))


def budget(file: str | Path, *, epsilon: float | None = None, delta: float | None = None) -> Spending | Spent:
    """With an epsilon makes a new budget in `file`, pure without a delta; without one shows what is there, also of a client's store. Raises InputError."""
    if epsilon is None and delta is None and _is_store(Path(file)):
        return _spent(Path(file))
    kept = KeptBudget(Path(file))
    if epsilon is not None:
        kept = KeptBudget.create(Path(file), Pure(nano_epsilon(epsilon)) if delta is None else approximate(epsilon, delta))
    elif delta is not None:
        raise InputError(f"a new budget needs an epsilon beside delta {delta:g}; leave out delta to see what is left of one")
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
    told = {"file": str(path), "lifetime": life, "spent": spent, "left": (ledger.lifetime - round(spent * NANO)) / NANO}
    return Spent({**told, "runs": runs, "labels": list(labels.values())})


def _plain(loss: Loss) -> dict[str, float]:
    return {"epsilon": loss.epsilon, "delta": loss.delta}


def _price(price: dict[str, float]) -> str:
    return f"epsilon {number(price['epsilon'])}" + (f" and delta {price['delta']:g}" if price["delta"] else "")
