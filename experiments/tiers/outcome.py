"""What a run gave, and its form as plain data."""

from dataclasses import dataclass
from typing import Any

from experiments.tiers.settings import Settings
from local_dp.oracles.local.base import Interaction, RoundSummary
from server.round import Turnout

STAMP = "simulation: not private"


@dataclass(frozen=True)
class Outcome:
    """What a run gave."""

    result: Any
    interaction: Interaction
    rounds: list[RoundSummary]
    seconds: list[float]
    counts: Turnout
    rejected: int
    max_epsilon_spent: float
    wall: float


def as_data(settings: Settings, outcome: Outcome, truth_known: bool = True) -> dict[str, Any]:
    """A run as plain data: what `--json` prints. `truth_known` is whether the population of the settings is the one the clients were drawn from.

    A private run computes no truth: beside the estimate, the error would give the exact answer away.
    """
    protocol, counts = settings.protocol, outcome.counts
    error = protocol.true_error(outcome.result, settings.population) if truth_known and not settings.randomness.private else None
    data: dict[str, Any] = {
        "protocol": protocol.name,
        "model": protocol.model(),
        "interaction": outcome.interaction,
        "tier": settings.tier,
        "epsilon": settings.epsilon,
        "clients": {**vars(counts), "rejected_messages": outcome.rejected},
        "rounds": [
            {"n": summary.n, "epsilon": summary.epsilon, "bits_per_client": summary.bits_per_client, "seconds": seconds, "digest": summary.digest}
            for summary, seconds in zip(outcome.rounds, outcome.seconds, strict=True)
        ],
        "result": {**protocol.describe(outcome.result), "true_error": error},
        "max_epsilon_spent": outcome.max_epsilon_spent,
        "private": settings.randomness.private,
        "seed": None if settings.randomness.private else settings.randomness.seed,
        "wall_s": outcome.wall,
    }
    if not settings.randomness.private:
        data["stamp"] = STAMP
    return data
