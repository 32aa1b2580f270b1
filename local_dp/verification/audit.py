"""The audit of a randomizer: what it loses, whether its sampler does what it declares, and how far that is known."""

import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import numpy as np

from local_dp.randomizers.bit_vector import BitVector
from local_dp.randomizers.evidence import PROVEN
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.per_coin import PerCoin
from local_dp.randomizers.places import PlaceVector
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import WithCoin
from local_dp.verification.behaviour import behaviour_found
from local_dp.verification.black_box import black_box_found
from local_dp.verification.claims import claims_found
from local_dp.verification.decoding import decoding_found
from local_dp.verification.findings import Audit, Finding, Grade
from local_dp.verification.sampler import sampler_found
from local_dp.verification.worst import loss_found


def audit(randomizer: Randomizer, seed: int = 7) -> Audit:
    """All that can be found out about one randomizer: its loss exactly where a channel is declared, its sampler by every word where words are few.

    The class is run as it is, so audit what you would install; whatever it raises is a finding. `seed` is that of all that is drawn.
    """
    is_channel = isinstance(randomizer, FiniteChannel | BitVector | PerCoin | WithCoin) and not isinstance(getattr(randomizer, "inner", None), PlaceVector)
    findings = list(_safely("claims", lambda: (claims_found(randomizer),)))
    loss = None
    if is_channel or randomizer.evidence in PROVEN:
        loss, found = _loss(randomizer)
        findings.insert(0, found)
    findings += _safely("answers", lambda: behaviour_found(randomizer))
    if findings[-1].holds:
        findings += _safely("sampler", lambda: sampler_found(randomizer, seed) if is_channel else (black_box_found(randomizer, seed),))
        findings += _safely("tally", lambda: decoding_found(randomizer, seed))
    findings += _safely("claims", lambda: _still(claims_found(randomizer)))  # once more: a loss may change with use
    return Audit(randomizer.name, randomizer.epsilon, randomizer.evidence, _grade(is_channel, findings), loss, tuple(findings))


def _still(claims: Finding) -> tuple[Finding, ...]:
    """What was found once already is said again only if it has become wrong."""
    return () if claims.holds else (claims,)


def _loss(randomizer: Randomizer) -> tuple[float | None, Finding]:
    found: list[float | None] = [None]

    def look() -> tuple[Finding]:
        found[0], finding = loss_found(randomizer)
        return (finding,)

    (finding,) = _safely("loss", look)
    return found[0], finding


def _safely(check: str, look: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """What was found; that the randomizer's own code fails is a finding too."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            return look()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the code is somebody else's, and may raise anything
        return (Finding(check, False, True, f"its own code fails with {type(error).__name__}"),)


def _grade(is_channel: bool, findings: list[Finding]) -> Grade:
    if not is_channel:
        return "black box"
    return "exact" if any(each.check == "sampler, enumerated" and each.exact for each in findings) else "declared"
