"""What a list of mechanisms costs, by every rule of composition: for a person and as plain data."""

import math
from typing import Any

from experiments.text.layout import paragraph, table
from local_dp.accounting.rules import RULES, delta, epsilon
from local_dp.accounting.terms import losses_of

TOLD = {
    "basic": "losses add up",
    "advanced": "Dwork, Rothblum and Vadhan",
    "tanh": "the same, with the largest expected loss, eps tanh(eps/2)",
    "zcdp": "rho adds up, then is converted",
    "exact": "optimal, the worst laws together",
}
_DIGITS = 4


def priced(text: str, delta_allowed: float, epsilon_allowed: float | None = None) -> dict[str, Any]:
    """The epsilon beside delta, or with an epsilon the delta beside it, by each rule; None where a rule promises nothing. Raises InputError."""
    losses = losses_of(text)
    asked = {"mechanisms": text, "answers": sum(losses.values())}
    if epsilon_allowed is None:
        found = {rule: epsilon(losses, delta_allowed, rule) for rule in RULES}
        return {**asked, "delta": delta_allowed, "epsilon": {rule: price if math.isfinite(price) else None for rule, price in found.items()}}
    found = {rule: delta(losses, epsilon_allowed, rule) for rule in RULES}
    return {**asked, "epsilon": epsilon_allowed, "delta": {rule: price if price < 1 else None for rule, price in found.items()}}


def shown(data: dict[str, Any], width: int) -> str:
    """The prices for a person, each rounded up."""
    asked, given = ("epsilon", "delta") if isinstance(data["epsilon"], dict) else ("delta", "epsilon")
    head = f"{data['mechanisms']}: {data['answers']:,} {'answer' if data['answers'] == 1 else 'answers'}, {given} {data[given]:g}"
    rows = [(f"{rule}: {TOLD[rule]}", "none" if price is None else rounded_up(price)) for rule, price in data[asked].items()]
    return f"{paragraph(head, width, '  ')}\n\n{table(('rule', asked), rows, width)}"


def rounded_up(price: float) -> str:
    """Four significant digits, rounded up unless they are right to a billionth."""
    if price <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(price)) + 1 - _DIGITS)
    steps = math.ceil(price / unit * (1 - 1e-9))  # a digit that is there is not rounded further
    return f"{steps * unit:.{_DIGITS}g}"
