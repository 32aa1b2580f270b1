"""What a run gave, and its form as plain data."""

from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np

from experiments.tiers.settings import Settings
from experiments.tiers.version import installed_version
from local_dp.oracles.local.base import Interaction, RoundSummary
from local_dp.populations.base import Population
from local_dp.populations.table import Resampled, Rows
from local_dp.protocols.base import Protocol, plain
from local_dp.randomizers.base import Randomizer
from local_dp.records import Records
from local_dp.shuffle.central import Central
from server.progress import Turnout

STAMP = "simulation: not private"
UNATTESTED = "unattested: not every member has signed that it answers in private"

Shown: TypeAlias = tuple[str, float | None, float | None, tuple[float | None, float | None]]  # label, estimate, standard error, interval


@dataclass(frozen=True)
class Seal:
    """Whether the messages of a run over a broker were signed, how many were forged, and whether every member said that it answers in private."""

    signed: bool
    forged: int
    attested: bool


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
    central: Central | None = None  # behind a shuffler
    unverified: tuple[str, ...] = ()  # why a randomizer's loss is not what it says, where it was used all the same
    seal: Seal | None = None  # over a broker


def as_data(settings: Settings, outcome: Outcome, truth_known: bool = True) -> dict[str, Any]:
    """A run as plain data: what `--json` prints, as outcome.schema.json describes it.

    `truth_known` is whether the population of the settings is the one the clients were drawn from. A private run computes neither the truth nor a digest of
    its table: beside the estimate, they would give the exact answer away.
    """
    protocol, counts = settings.protocol, outcome.counts
    open_truth = truth_known and not settings.randomness.private
    error = protocol.true_error(outcome.result, settings.population) if open_truth else None
    compared = protocol.compared(outcome.result, settings.population) if open_truth else {}
    data: dict[str, Any] = {
        "version": installed_version(),
        "protocol": protocol.name,
        "parameters": {field.name: getattr(protocol, field.name) for field in fields(protocol)},
        "model": protocol.model(),
        "interaction": outcome.interaction,
        "tier": settings.tier,
        "epsilon": settings.epsilon,
        "clients": {**vars(counts), "rejected_messages": outcome.rejected},
        "rounds": [
            {
                "n": summary.n,
                "epsilon": summary.epsilon,
                "bits_per_client": summary.bits_per_client,
                "randomizers": [_randomizer(each) for each in summary.randomizers],
                "seconds": seconds,
                "digest": summary.digest,
            }
            for summary, seconds in zip(outcome.rounds, outcome.seconds, strict=True)
        ],
        "table": _table(settings.population) if open_truth else None,
        "result": {
            **protocol.describe(outcome.result),
            **compared,
            "explanation": protocol.explain(outcome.result),
            "truth": _truth(protocol, settings.population) if open_truth else None,
            "true_error": error,
        },
        "max_epsilon_spent": outcome.max_epsilon_spent,
        "private": settings.randomness.private,
        "seed": None if settings.randomness.private else settings.randomness.seed,
        "wall_s": outcome.wall,
    }
    if outcome.seal is not None:
        data["signed"] = outcome.seal.signed
        data["clients"]["forged_messages"] = outcome.seal.forged
        if settings.randomness.private and not (outcome.seal.signed and outcome.seal.attested):
            data |= {"private": None, "stamp": UNATTESTED}
    if not settings.randomness.private:
        data["stamp"] = STAMP
    if outcome.central is not None and settings.behind is not None:
        data["shuffled"] = {**vars(outcome.central), "exact": outcome.central.exact, "crowd": settings.behind.crowd}
    if outcome.unverified:
        data["unverified"] = list(outcome.unverified)
    return data


def stamp_of(data: dict[str, Any]) -> str:
    """Whether a run was private, as it is said wherever it is shown."""
    said = "private: operating-system entropy" if data["private"] else data["stamp"]
    seeded = "" if data["seed"] is None else f", seed {data['seed']}"
    return f"{said}{seeded}{'' if data.get('signed', True) else ', unsigned: anybody on the broker may have answered'}"


def _randomizer(randomizer: Randomizer) -> dict[str, Any]:
    """Its name, and its parameters but for long lists."""
    return {"name": randomizer.name, **{key: value for key, value in randomizer.params().items() if not isinstance(value, tuple) and key != "word_bits"}}


def _truth(protocol: Protocol[Any], population: Population) -> Any:
    """The truth in the form of the estimate or of the hypothesis."""
    truth = protocol.truth(population)
    if truth is None or isinstance(truth, np.ndarray | np.generic):
        return None if truth is None else plain(np.asarray(truth))
    return protocol.describe(truth)["hypothesis"]


def _table(population: Population) -> dict[str, Any] | None:
    """How large the table is that the clients were drawn from, and its digest."""
    if not isinstance(population, Rows | Resampled):
        return None
    return {"rows": len(population.whole), "columns": list(population.whole.columns), "digest": table_digest(population.whole)}


def table_digest(records: Records) -> str:
    """A digest of a table: equal for two if and only if their columns are, names, types and values (up to a collision)."""
    digest = blake2b(digest_size=16)
    for name, values in records.columns.items():
        digest.update(f"{name!r} {values.dtype.str} {len(values)};".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def estimates(result: dict[str, Any]) -> list[Shown]:
    """The result's estimates: (label, estimate, standard error, interval) each."""
    if not isinstance(result["estimate"], list):
        label = result.get("question") or result["column"]
        return [(label, result["estimate"], result["standard_error"], tuple(result["interval"]))]
    errors = result.get("standard_error", [None] * len(result["labels"]))  # a quantile has an interval and no standard error
    return list(zip(result["labels"], result["estimate"], errors, map(tuple, result["interval"]), strict=True))
