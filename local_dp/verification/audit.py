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
from local_dp.randomizers.with_coin import WithCoin, without_coin
from local_dp.verification.behaviour import check_behaviour
from local_dp.verification.black_box import check_black_box
from local_dp.verification.decoding import check_decoding
from local_dp.verification.findings import Audit, Finding, Grade
from local_dp.verification.sampler import check_sampler
from local_dp.verification.worst import check_channel_loss


def audit(randomizer: Randomizer, seed: int = 7, *, drawn: bool = True) -> Audit:
    """Checks one randomizer: its loss exactly where it declares a channel, and its sampler by every
    word where words are few.

    The class is run as it is, so audit the class that you would install. Any error that it raises
    is a finding. `seed` is the seed of all drawn inputs. `drawn` False leaves out samplers' drawn
    reports where their words are enumerated.
    """
    is_channel = isinstance(randomizer, FiniteChannel | Places | PerCoin | WithCoin)
    loss: float | None = None

    def loss_found() -> tuple[Finding]:
        nonlocal loss
        loss, finding = check_channel_loss(randomizer)
        return (finding,)

    findings = list(_safely("claims", lambda: (check_claims(randomizer),)))
    if is_channel or randomizer.evidence in PROVEN:
        findings = [*_safely("loss", loss_found), *findings]
    findings += _safely("answers", lambda: check_behaviour(randomizer))
    if findings[-1].holds:
        findings += _safely(
            "sampler",
            lambda: (
                check_sampler(randomizer, seed, drawn)
                if is_channel
                else (check_black_box(randomizer, seed),)
            ),
        )
        findings += _safely("tally", lambda: check_decoding(randomizer, seed))
    again = _safely("claims", lambda: (check_claims(randomizer),))  # a loss may change with use
    findings += [each for each in again if not each.holds]
    enumerated = any(each.check == "sampler, enumerated" and each.exact for each in findings)
    grade: Grade = "black box" if not is_channel else "exact" if enumerated else "declared"
    return Audit(
        randomizer.name, randomizer.epsilon, randomizer.evidence, grade, loss, tuple(findings)
    )


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


_ASKED = 64  # times, as a ledger asks for each charge


def check_claims(randomizer: Randomizer) -> Finding:
    """Its parameters are data and make an equal one; its epsilon, its loss and its charge stay the
    same."""
    fault = made_fault(randomizer) or _changing(randomizer)
    if fault:
        return Finding("claims", False, True, fault)
    return Finding(
        "claims", True, True, f"its parameters make it, and it claims and charges {randomizer.loss}"
    )


def made_fault(randomizer: Randomizer, made: Randomizer | None = None) -> str:
    """The difference from the randomizer that its class makes of its parameters; empty if there is
    none."""
    try:
        params = {name: data(value) for name, value in randomizer.params().items()}
    except TypeError as error:
        return f"its parameters are no data: {error}"
    made = type(randomizer)(**params) if made is None else made
    if (
        type(made) is not type(randomizer)
        or {name: data(value) for name, value in made.params().items()} != params
    ):
        return "its parameters make another randomizer"
    other = [
        name
        for name, value in list(vars(randomizer).items())
        if not _same(value, _held(made, name))
    ]
    if other:
        return f"it was changed after it was made: {', '.join(sorted(other))}"
    return ""


def data(value: Any) -> Any:
    """A parameter, if it is one. Raises TypeError."""
    if type(value) in (int, float, str) or (
        type(value) is tuple and all(type(part) in (float, str) for part in value)
    ):
        return value
    raise TypeError(
        f"{value!r:.40} is a {type(value).__name__}, not a number, a text or a tuple of them"
    )


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
        return first.keys() == second.keys() and all(
            _same(first[key], second[key]) for key in first
        )
    # what one of both has computed, the other one computes now
    attributes = list(vars(first).items()) if hasattr(first, "__dict__") else None
    return first is second or (
        bool(first == second)
        if attributes is None
        else all(_same(value, _held(second, name)) for name, value in attributes)
    )


def _changing(randomizer: Randomizer) -> str:
    claims: set[tuple[float, int, Loss]] = {
        (randomizer.epsilon, randomizer.nano, randomizer.loss) for _ in range(_ASKED)
    }
    if len(claims) > 1:
        first, second = sorted(claims, key=lambda each: each[1])[:2]
        return (
            f"asked for its loss again it says another: epsilon {first[0]:g}, charged {first[1]} "
            f"nano-nats; epsilon {second[0]:g}, charged {second[1]}"
        )
    ((_, nano, loss),) = claims
    return (
        ""
        if type(nano) is int and nano == loss.nano
        else f"it charges {nano} nano-nats and says that its loss is {loss}"
    )


_SHOWN = 700  # characters of what failed
_ANY: frozenset[Evidence] = frozenset(get_args(Evidence))  # what is accepted was asked before


def verify(randomizer: Randomizer, accepted: frozenset[Evidence] = PROVEN) -> None:
    """Raises RefusedError unless its evidence is accepted ("evidence") and its checks pass
    ("unverifiable"), with the failed check in one line.

    The exact loss of a built-in randomizer is computed; its sampler was enumerated before the
    release. Any other one is audited whole. Each class and its parameters are verified once, and
    the randomizer must equal the one that these make. The inner randomizer of a coin sent along is
    verified, too.
    """
    try:
        if (inner := without_coin(randomizer)) is not randomizer:
            verify(inner, accepted)
        check_evidence(randomizer, accepted)
        params = tuple(
            (name, type(value), data(value)) for name, value in sorted(randomizer.params().items())
        )
        made, fault = _verdict(type(randomizer), params)
        fault = fault or made_fault(randomizer, made)
        if fault:
            shown = _line(fault if randomizer.name in fault else f"{randomizer.name}: {fault}")
            raise RefusedError(
                "unverifiable",
                shown if is_built_in(randomizer) else f"{shown}; {_more(randomizer)} shows more",
            )
    except RefusedError:
        raise
    # the code is somebody else's, and may raise anything
    except (Exception, SystemExit) as error:  # noqa: BLE001
        raise RefusedError(
            "unverifiable",
            _line(
                f"{type(randomizer).__name__} cannot be verified: {type(error).__name__}: {error}"
            ),
        ) from None


def is_built_in(randomizer: Randomizer) -> bool:
    """Whether it is of a class that this library registers, and not of one derived from it."""
    name = type(randomizer).name
    return name in RANDOMIZERS.built_in and RANDOMIZERS[name] is type(randomizer)


@lru_cache(maxsize=256)
def _verdict(
    kind: type[Randomizer], params: tuple[tuple[str, type, Parameter], ...]
) -> tuple[Randomizer, str]:
    """A randomizer of these parameters, and its fault, if any; cached."""
    settings: dict[str, Any] = {name: value for name, _, value in params}
    made = kind(**settings)
    if not is_built_in(made):
        wrong = next((each for each in audit(kind(**settings)).findings if not each.holds), None)
        return (
            made,
            ""
            if wrong is None
            else wrong.said
            if wrong.witness is None
            else f"{wrong.said}: {wrong.witness}",
        )
    try:
        check_loss(copy(made), _ANY)  # what is computed on the way is not kept
    except RefusedError as error:
        return made, str(error)
    return made, ""


def _line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]


def _more(randomizer: Randomizer) -> str:
    """The command that shows all findings."""
    kind = type(randomizer)
    registered = kind.name in RANDOMIZERS and RANDOMIZERS[kind.name] is kind
    words = [
        "local-dp audit",
        kind.name if registered else f"{kind.__module__}:{kind.__qualname__}",
        f"--epsilon {randomizer.epsilon:g}",
    ]
    for each in fields(kind):
        value = getattr(randomizer, each.name)
        if each.name not in ("epsilon", "word_bits") and value != each.default:
            words.append(f"--set {quote(f'{each.name}={value}')}")
    return " ".join(words)
