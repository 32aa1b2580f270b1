"""The audit of a randomizer: its exact loss, whether its sampler follows its channel, and how far that is known."""

import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import numpy as np

from local_dp.randomizers.evidence import PROVEN
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.places import PerCoin, Places
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import WithCoin
from local_dp.verification.behaviour import check_behaviour
from local_dp.verification.black_box import check_black_box
from local_dp.verification.claims import check_claims
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
    return Audit(randomizer.name, randomizer.epsilon, randomizer.evidence, _grade(is_channel, findings), loss, tuple(findings))


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


def _grade(is_channel: bool, findings: list[Finding]) -> Grade:
    if not is_channel:
        return "black box"
    return "exact" if any(each.check == "sampler, enumerated" and each.exact for each in findings) else "declared"
