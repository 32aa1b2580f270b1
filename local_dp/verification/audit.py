"""The audit of a randomizer: its exact loss, whether its sampler follows its channel, whether its claims stay the same, and how far that is known."""

import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from local_dp.loss import Loss
from local_dp.randomizers.evidence import PROVEN
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.places import PerCoin, Places
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import WithCoin
from local_dp.verification.behaviour import check_behaviour
from local_dp.verification.black_box import check_black_box
from local_dp.verification.decoding import check_decoding
from local_dp.verification.findings import Audit, Finding, Grade
from local_dp.verification.sampler import check_sampler
from local_dp.verification.worst import check_channel_loss


def audit(randomizer: Randomizer, seed: int = 7, *, drawn: bool = True) -> Audit:
    """Checks one randomizer: its loss exactly where it declares a channel, and its sampler by every word where words are few.

    The class is run as it is, so audit the class that you would install. Any error that it raises is a finding. `seed` is the seed of all drawn inputs.
    `drawn` False leaves out samplers' drawn reports where their words are enumerated.
    """
    is_channel = isinstance(randomizer, FiniteChannel | Places | PerCoin | WithCoin)
    findings = list(_safely("claims", lambda: (check_claims(randomizer),)))
    loss = None
    if is_channel or randomizer.evidence in PROVEN:
        loss, finding = _loss(randomizer)
        findings.insert(0, finding)
    findings += _safely("answers", lambda: check_behaviour(randomizer))
    if findings[-1].holds:
        findings += _safely("sampler", lambda: check_sampler(randomizer, seed, drawn) if is_channel else (check_black_box(randomizer, seed),))
        findings += _safely("tally", lambda: check_decoding(randomizer, seed))
    again = _safely("claims", lambda: (check_claims(randomizer),))  # a loss may change with use
    findings += [each for each in again if not each.holds]
    enumerated = any(each.check == "sampler, enumerated" and each.exact for each in findings)
    grade: Grade = "black box" if not is_channel else "exact" if enumerated else "declared"
    return Audit(randomizer.name, randomizer.epsilon, randomizer.evidence, grade, loss, tuple(findings))


def _loss(randomizer: Randomizer) -> tuple[float | None, Finding]:
    losses: list[float | None] = [None]

    def look() -> tuple[Finding]:
        losses[0], finding = check_channel_loss(randomizer)
        return (finding,)

    (finding,) = _safely("loss", look)
    return losses[0], finding


def _safely(check: str, look: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """The findings of a check. An error of the randomizer's own code is a finding too."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            return look()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the code is somebody else's, and may raise anything
        return (Finding(check, False, True, f"its own code fails with {type(error).__name__}"),)


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
