"""Runs of a protocol in the tiers, and what of them must be identical."""

from typing import Any

from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.simulation.execute import execute
from local_dp.simulation.outcome import Outcome
from local_dp.simulation.settings import Randomness, Settings, Tier
from tests.support.inputs.builders import SEED


def run_tier(
    protocol: LocalProtocol[Any], clients: int, tier: Tier, epsilon: float = 1.0, **options: Any
) -> Outcome:
    settings = Settings(
        protocol,
        protocol.synthetic(clients, SEED),
        epsilon,
        Randomness(SEED, False),
        tier=tier,
        **options,
    )
    return execute(settings, lambda progress: None)


def told(protocol: LocalProtocol[Any], outcome: Outcome) -> tuple[Any, list[str | None]]:
    """What must be identical: the result and the digests of all reports."""
    return protocol.describe(outcome.result), [summary.digest for summary in outcome.rounds]
