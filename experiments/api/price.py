"""What a list of mechanisms costs, by every rule of composition: for a person and as plain data."""

import math
from dataclasses import dataclass
from typing import Any

from local_dp.accounting import rules
from local_dp.accounting.rules import losses_of
from local_dp.errors import InputError
from local_dp.experiments.api.told import WIDTH, Told
from local_dp.experiments.text.layout import paragraph, table
from local_dp.experiments.text.notation import bound

MOST = 1e6  # nats

TOLD = {
    "basic": "losses add up",
    "advanced": "Dwork, Rothblum and Vadhan",
    "tanh": "the same, with the largest expected loss, eps tanh(eps/2)",
    "zcdp": "rho adds up, then is converted",
    "exact": "optimal, the worst laws together",
}
_DIGITS = 4


@dataclass(frozen=True, repr=False)
class Prices(Told):
    """What a list of mechanisms costs, by each rule."""

    def text(self, width: int = WIDTH) -> str:
        return shown(self.data, width)


def price(mechanisms: str, *, delta: float = 1e-6, epsilon: float | None = None) -> Prices:
    """The epsilon beside `delta`, or with an `epsilon` the delta beside it, by each rule; None where a rule promises nothing. Raises InputError.

    The list is written as `local-dp price` takes it: "discrete-laplace 0.01 x 10000 + gaussian 5 x 3".
    """
    losses = losses_of(mechanisms)
    asked = {"mechanisms": mechanisms, "answers": sum(losses.values())}
    if epsilon is None:
        found = {rule: rules.epsilon(losses, delta, rule) for rule in rules.RULES}
        return Prices({**asked, "delta": delta, "epsilon": {rule: cost if math.isfinite(cost) else None for rule, cost in found.items()}})
    if not 0 <= epsilon <= MOST:
        raise InputError(f"epsilon is {epsilon}; give a number from 0 to {MOST:g} nats")
    found = {rule: rules.delta(losses, epsilon, rule) for rule in rules.RULES}
    return Prices({**asked, "epsilon": epsilon, "delta": {rule: cost if cost < 1 else None for rule, cost in found.items()}})


def shown(data: dict[str, Any], width: int) -> str:
    """The prices for a person, each rounded up."""
    asked, given = ("epsilon", "delta") if isinstance(data["epsilon"], dict) else ("delta", "epsilon")
    head = f"{data['mechanisms']}: {data['answers']:,} {'answer' if data['answers'] == 1 else 'answers'}, {given} {data[given]:g}"
    rows = [(f"{rule}: {TOLD[rule]}", "none" if price is None else bound(price, True, _DIGITS)) for rule, price in data[asked].items()]
    return f"{paragraph(head, width, '  ')}\n\n{table(('rule', asked), rows, width)}"
