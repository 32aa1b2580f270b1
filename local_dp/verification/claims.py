"""Whether a randomizer equals the one that its name and parameters make, and always claims the same loss."""

from typing import Any

import numpy as np

from local_dp.loss import Loss
from local_dp.randomizers.randomizer import Randomizer
from local_dp.verification.findings import Finding

_ASKED = 64  # times, as a ledger asks for each charge


def check_claims(randomizer: Randomizer) -> Finding:
    """Its parameters are data and make an equal one; its epsilon, its loss and its charge stay the same."""
    fault = made_fault(randomizer) or _changing(randomizer)
    if fault:
        return Finding("claims", False, True, fault)
    return Finding("claims", True, True, f"its parameters make it, and it claims and charges {randomizer.loss}")


def made_fault(randomizer: Randomizer, made: Randomizer | None = None) -> str:
    """The difference from the randomizer that its class makes of its parameters; empty if there is none."""
    try:
        params = {name: data(value) for name, value in randomizer.params().items()}
    except TypeError as error:
        return f"its parameters are no data: {error}"
    made = type(randomizer)(**params) if made is None else made
    if type(made) is not type(randomizer) or {name: data(value) for name, value in made.params().items()} != params:
        return "its parameters make another randomizer"
    other = [name for name, value in list(vars(randomizer).items()) if not _same(value, _held(made, name))]
    if other:
        return f"it was changed after it was made: {', '.join(sorted(other))}"
    return ""


def data(value: Any) -> Any:
    """A parameter, if it is one. Raises TypeError."""
    if type(value) in (int, float, str) or (type(value) is tuple and all(type(part) in (float, str) for part in value)):
        return value
    raise TypeError(f"{value!r:.40} is a {type(value).__name__}, not a number, a text or a tuple of them")


def _held(made: Any, name: str) -> Any:
    """Its attribute of this name, computed if it was not yet."""
    return vars(made)[name] if name in vars(made) else getattr(made, name, None)


def _same(first: Any, second: Any) -> bool:
    """Whether two attributes are equal, of any type."""
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and bool(np.array_equal(first, second))
    if isinstance(first, Randomizer):
        return made_fault(first, second) == ""
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    attributes = list(vars(first).items()) if hasattr(first, "__dict__") else None  # what one of both has computed, the other one computes now
    return first is second or (bool(first == second) if attributes is None else all(_same(value, _held(second, name)) for name, value in attributes))


def _changing(randomizer: Randomizer) -> str:
    claims: set[tuple[float, int, Loss]] = {(randomizer.epsilon, randomizer.nano, randomizer.loss) for _ in range(_ASKED)}
    if len(claims) > 1:
        first, second = sorted(claims, key=lambda each: each[1])[:2]
        return f"asked for its loss again it says another: epsilon {first[0]:g}, charged {first[1]} nano-nats; epsilon {second[0]:g}, charged {second[1]}"
    ((_, nano, loss),) = claims
    return "" if type(nano) is int and nano == loss.nano else f"it charges {nano} nano-nats and says that its loss is {loss}"
