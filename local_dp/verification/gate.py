"""The one gate: the checks of a randomizer before any client answers by it, in every tier and on every client."""

from copy import copy
from dataclasses import fields
from functools import lru_cache
from shlex import quote
from typing import Any, get_args

from local_dp.domains import Parameter
from local_dp.errors import RefusedError
from local_dp.randomizers.evidence import PROVEN, check_evidence, check_loss
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.with_coin import without_coin
from local_dp.verification.audit import audit, data, made_fault

_SHOWN = 700  # characters of what failed
_ANY: frozenset[Evidence] = frozenset(get_args(Evidence))  # what is accepted was asked before


def verify(randomizer: Randomizer, accepted: frozenset[Evidence] = PROVEN) -> None:
    """Raises RefusedError unless its evidence is accepted ("evidence") and its checks pass ("unverifiable"), with the failed check in one line.

    The exact loss of a built-in randomizer is computed; its sampler was enumerated before the release. Any other one is audited whole. Each class and its
    parameters are verified once, and the randomizer must equal the one that these make. The inner randomizer of a coin sent along is verified, too.
    """
    try:
        if (inner := without_coin(randomizer)) is not randomizer:
            verify(inner, accepted)
        check_evidence(randomizer, accepted)
        params = tuple((name, type(value), data(value)) for name, value in sorted(randomizer.params().items()))
        made, fault = _verdict(type(randomizer), params)
        fault = fault or made_fault(randomizer, made)
        if fault:
            shown = _line(fault if randomizer.name in fault else f"{randomizer.name}: {fault}")
            raise RefusedError("unverifiable", shown if is_built_in(randomizer) else f"{shown}; {_more(randomizer)} shows more")
    except RefusedError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the code is somebody else's, and may raise anything
        raise RefusedError("unverifiable", _line(f"{type(randomizer).__name__} cannot be verified: {type(error).__name__}: {error}")) from None


def is_built_in(randomizer: Randomizer) -> bool:
    """Whether it is of a class that this library registers, and not of one derived from it."""
    name = type(randomizer).name
    return name in RANDOMIZERS.built_in and RANDOMIZERS[name] is type(randomizer)


@lru_cache(maxsize=256)
def _verdict(kind: type[Randomizer], params: tuple[tuple[str, type, Parameter], ...]) -> tuple[Randomizer, str]:
    """A randomizer of these parameters, and its fault, if any; cached."""
    settings: dict[str, Any] = {name: value for name, _, value in params}
    made = kind(**settings)
    if not is_built_in(made):
        wrong = next((each for each in audit(kind(**settings)).findings if not each.holds), None)
        return made, "" if wrong is None else wrong.said if wrong.witness is None else f"{wrong.said}: {wrong.witness}"
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
    words = ["local-dp audit", kind.name if registered else f"{kind.__module__}:{kind.__qualname__}", f"--epsilon {randomizer.epsilon:g}"]
    for each in fields(kind):
        value = getattr(randomizer, each.name)
        if each.name not in ("epsilon", "word_bits") and value != each.default:
            words.append(f"--set {quote(f'{each.name}={value}')}")
    return " ".join(words)
