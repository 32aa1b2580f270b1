"""The audit of a randomizer, and the one gate: its checks before any client answers by it, in every
tier and on every client."""

import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from copy import copy
from dataclasses import fields
from functools import lru_cache
from io import StringIO
from shlex import quote
from typing import Any, get_args

import numpy as np

from local_dp.domains import Parameter
from local_dp.errors import RefusedError
from local_dp.loss import Loss
from local_dp.randomizers.evidence import PROVEN, check_evidence, check_loss
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.places import PerCoin, Places
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.with_coin import WithCoin
from local_dp.verification.behaviour import check_behaviour
from local_dp.verification.black_box import check_black_box, check_memory
from local_dp.verification.decoding import check_decoding
from local_dp.verification.findings import Audit, Finding, Grade
from local_dp.verification.sampler import check_sampler
from local_dp.verification.worst import check_channel_loss


def audit(randomizer: Randomizer, seed: int = 7, *, draws: bool = True) -> Audit:
    """Checks one randomizer: its loss exactly where it declares a channel, and its sampler by every
    word where words are few.

    The class is run as it is, so audit the class that you would install. Any error that it raises
    is a finding. `seed` is the seed of all drawn inputs. `draws` False leaves out samplers' drawn
    reports where their words are enumerated.
    """
    is_channel = isinstance(randomizer, FiniteChannel | Places | PerCoin | WithCoin)
    loss: float | None = None

    def check_exact_loss() -> tuple[Finding]:
        nonlocal loss
        loss, finding = check_channel_loss(randomizer)
        return (finding,)

    def check_reports() -> tuple[Finding, ...]:
        if is_channel:
            return check_sampler(randomizer, seed, draws)
        return (check_black_box(randomizer, seed),)

    claims = _safely("claims", lambda: (check_claims(randomizer),))
    findings = list(claims)
    if is_channel or randomizer.evidence in PROVEN:
        findings = [*_safely("loss", check_exact_loss), *claims]
    findings += _safely("answers", lambda: check_behaviour(randomizer))
    if findings[-1].holds:
        findings += _safely("sampler", check_reports)
        findings += _safely("memory", lambda: check_memory(randomizer))
        findings += _safely("tally", lambda: check_decoding(randomizer, seed))
    again = _safely("claims", lambda: (check_claims(randomizer),))  # a loss may change with use
    findings += [each for each in again if not each.holds]
    return Audit(
        randomizer.name,
        randomizer.epsilon,
        randomizer.evidence,
        _grade(is_channel, findings),
        loss,
        tuple(findings),
    )


def _grade(is_channel: bool, findings: list[Finding]) -> Grade:
    if not is_channel:
        return "black box"
    if any(each.check == "sampler, enumerated" and each.exact for each in findings):
        return "exact"
    return "declared"


def _safely(check: str, look: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """The findings of a check. An error of the randomizer's own code is a finding too."""
    try:
        with (
            np.errstate(all="ignore"),
            warnings.catch_warnings(),
            redirect_stdout(StringIO()),
            redirect_stderr(StringIO()),
        ):
            warnings.simplefilter("ignore")
            return look()
    # the code is somebody else's, and may raise anything
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return (Finding(check, False, True, f"its own code fails with {type(error).__name__}"),)


_TIMES = 64  # that a loss is looked up, as a ledger does for each charge


def check_claims(randomizer: Randomizer) -> Finding:
    """Its parameters are data and make an equal one; its epsilon, its loss and its charge stay the
    same."""
    fault = _rebuild_fault(randomizer) or _changing(randomizer)
    if fault:
        return Finding("claims", False, True, fault)
    return Finding(
        "claims", True, True, f"its parameters make it, and it claims and charges {randomizer.loss}"
    )


def _rebuild_fault(randomizer: Randomizer) -> str:
    """The difference from the randomizer that its class makes of its parameters; empty if there is
    none."""
    try:
        params = _params(randomizer)
    except TypeError as error:
        return f"its parameters are no data: {error}"
    return _difference(randomizer, type(randomizer)(**params), params)


def _difference(
    randomizer: Randomizer, other: Randomizer, params: dict[str, Any] | None = None
) -> str:
    """How it differs from another one that should be equal; `params` are its own parameters."""
    if type(other) is not type(randomizer) or _params(other) != (params or _params(randomizer)):
        return "its parameters make another randomizer"
    changes = [
        name
        for name, value in list(vars(randomizer).items())
        if not _same(value, _attribute(other, name))
    ]
    return f"it was changed after it was made: {', '.join(sorted(changes))}" if changes else ""


_PLAIN = (int, float, str)


def _params(randomizer: Randomizer) -> dict[str, Any]:
    """Its parameters, by name. Raises TypeError for what is no parameter."""
    params: dict[str, Any] = dict(randomizer.params().items())
    for value in params.values():
        parts, kinds = (value, (float, str)) if type(value) is tuple else ((value,), _PLAIN)
        if not all(type(part) in kinds for part in parts):
            raise TypeError(
                f"{value!r:.40} is a {type(value).__name__}, not a number, a text or a tuple of "
                "them"
            )
    return params


def _attribute(owner: Any, name: str) -> Any:
    """Its stored attribute of this name, once it has been computed; a property of a subclass may
    store the value of its base."""
    value = getattr(owner, name, None)
    return vars(owner).get(name, value)


def _same(first: Any, second: Any) -> bool:
    """True if two attributes are equal, of any type."""
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and bool(np.array_equal(first, second))
    if isinstance(first, Randomizer):
        return _difference(first, second) == ""
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            _same(first[key], second[key]) for key in first
        )
    return first is second or _same_object(first, second)


def _same_object(first: Any, second: Any) -> bool:
    if not hasattr(first, "__dict__"):
        return bool(first == second)
    # what one of both has computed, the other one computes now
    attributes = list(vars(first).items())
    return all(_same(value, _attribute(second, name)) for name, value in attributes)


def _changing(randomizer: Randomizer) -> str:
    claims: set[tuple[float, int, Loss]] = {
        (randomizer.epsilon, randomizer.nano, randomizer.loss) for _ in range(_TIMES)
    }
    if len(claims) > 1:
        first, second = sorted(claims, key=lambda each: each[1])[:2]
        return (
            f"asked for its loss again it says another: epsilon {first[0]:g}, charged {first[1]} "
            f"nano-nats; epsilon {second[0]:g}, charged {second[1]}"
        )
    ((_, nano, loss),) = claims
    if type(nano) is int and nano == loss.nano:
        return ""
    return f"it charges {nano} nano-nats and says that its loss is {loss}"


_SHOWN = 700  # characters of what failed
_ANY: frozenset[Evidence] = frozenset(get_args(Evidence))  # what is accepted was asked before


def verify(randomizer: Randomizer, evidence: frozenset[Evidence] = PROVEN) -> None:
    """Raises RefusedError unless its evidence is accepted ("evidence") and its checks pass
    ("unverifiable"), with the failed check in one line.

    The exact loss of a built-in randomizer is computed; its sampler was enumerated before the
    release. Any other one is audited whole. Each class and its parameters are verified once, and
    the randomizer must equal the one that these make. The inner randomizer of a coin sent along is
    verified, too.
    """
    try:
        if type(randomizer) is WithCoin:
            verify(randomizer.coined, evidence)
        check_evidence(randomizer, evidence)
        params = _params(randomizer)
        key = tuple((name, type(value), value) for name, value in sorted(params.items()))
        reference, fault = _verdict(type(randomizer), key)
        fault = fault or _difference(randomizer, reference, params)
        if fault:
            line = _line(fault if randomizer.name in fault else f"{randomizer.name}: {fault}")
            hint = "" if is_built_in(randomizer) else f"; {_command(randomizer)} shows more"
            raise RefusedError("unverifiable", line + hint)
    except RefusedError:
        raise
    # the code is somebody else's, and may raise anything
    except (Exception, SystemExit) as error:  # noqa: BLE001
        kind = type(randomizer).__name__
        line = _line(f"{kind} cannot be verified: {type(error).__name__}: {error}")
        raise RefusedError("unverifiable", line) from None


def is_built_in(randomizer: Randomizer) -> bool:
    """True if it is of a class that this library registers, and not of one derived from it."""
    name = type(randomizer).name
    return name in RANDOMIZERS.built_in and RANDOMIZERS[name] is type(randomizer)


@lru_cache(maxsize=256)
def _verdict(
    kind: type[Randomizer], params: tuple[tuple[str, type, Parameter], ...]
) -> tuple[Randomizer, str]:
    """A randomizer of these parameters, and its fault, if any; cached."""
    settings: dict[str, Any] = {name: value for name, _, value in params}
    reference = kind(**settings)
    fault = ""
    if is_built_in(reference):
        try:
            check_loss(copy(reference), _ANY)  # what is computed on the way is not kept
        except RefusedError as error:
            fault = str(error)
    else:
        failures = (each for each in audit(kind(**settings)).findings if not each.holds)
        if failure := next(failures, None):
            fault = f"{failure.said}: {failure.witness}" if failure.witness else failure.said
    return reference, fault


def _line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]


def _command(randomizer: Randomizer) -> str:
    """The command that shows all findings."""
    kind = type(randomizer)
    is_known = kind.name in RANDOMIZERS and RANDOMIZERS[kind.name] is kind
    words = [
        "local-dp audit",
        kind.name if is_known else f"{kind.__module__}:{kind.__qualname__}",
        f"--epsilon {randomizer.epsilon:g}",
    ]
    for each in fields(kind):
        value = getattr(randomizer, each.name)
        if each.name not in ("epsilon", "word_bits") and value != each.default:
            words.append(f"--set {quote(f'{each.name}={value}')}")
    return " ".join(words)
