"""A budget for releases of one table: made, or shown."""

from dataclasses import dataclass
from pathlib import Path

from experiments.door.told import WIDTH, Told
from experiments.text.layout import paragraph, table
from experiments.text.numbers import number
from local_dp.curator.kept import KeptBudget
from local_dp.errors import InputError
from local_dp.loss import Loss, Pure, approximate, nano_epsilon


@dataclass(frozen=True, repr=False)
class Spending(Told):
    """A budget, what has been charged to it, and what is left."""

    def text(self, width: int = WIDTH) -> str:
        charges = [(charge["at"], charge["what"], number(charge["epsilon"]), f"{charge['delta']:g}") for charge in self.data["charges"]]
        total, left = (_price(self.data[name]) for name in ("budget", "left"))
        rows = [table(("when", "what", "epsilon", "delta"), charges, width)] if charges else []
        return "\n\n".join((paragraph(f"{self.data['file']}: a budget of {total}; {left} is left", width), *rows))


def budget(file: str | Path, *, epsilon: float | None = None, delta: float | None = None) -> Spending:
    """With an epsilon makes a new budget in `file`, pure without a delta; without one shows what is there. Raises InputError."""
    kept = KeptBudget(Path(file))
    if epsilon is not None:
        kept = KeptBudget.create(Path(file), Pure(nano_epsilon(epsilon)) if delta is None else approximate(epsilon, delta))
    elif delta is not None:
        raise InputError(f"a new budget needs an epsilon beside delta {delta:g}; leave out delta to see what is left of one")
    standing = kept.standing()
    charges = [{"at": each.at, "what": each.what, "neighbours": each.neighbours, **_plain(each.loss)} for each in standing.charges]
    return Spending({"file": str(file), "budget": _plain(standing.budget), "left": _plain(standing.left), "charges": charges})


def _plain(loss: Loss) -> dict[str, float]:
    return {"epsilon": loss.epsilon, "delta": loss.delta}


def _price(price: dict[str, float]) -> str:
    return f"epsilon {number(price['epsilon'])}" + (f" and delta {price['delta']:g}" if price["delta"] else "")
