"""The outcome of a run, and its form as plain data."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from local_dp.oracles.local.oracles import Interaction, RoundSummary
from local_dp.populations.finite import Population, Resampled, Rows
from local_dp.protocols.local_protocol import LocalProtocol, plain, possible_result, was_moved
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import Records
from local_dp.server.progress import Turnout
from local_dp.shuffle.central import Central
from local_dp.simulation.faults import Faulted
from local_dp.simulation.installation import installed_version
from local_dp.simulation.settings import Settings
from local_dp.tallies import Estimate

if TYPE_CHECKING:  # what is on the wire takes a while to import
    from local_dp.server.losses import Loss
    from local_dp.server.round import Reconciliation

STAMP = "simulation: not private"
UNATTESTED = "unattested: not every member has signed that it answers in private"

Interval: TypeAlias = tuple[float | None, float | None]
# label, estimate, standard error, interval
Shown: TypeAlias = tuple[str, float | None, float | None, Interval]


@dataclass(frozen=True, kw_only=True)
class BusRecord:
    """The record of a run over a broker. `rejections` counts messages by their fault, `silences`
    the pauses of each flooding member, and of strangers ("").

    `irregularities` are p-values of each round's reports, where honest ones have a known law.
    `attestation`: every member states that it answers in private. `losses` are those that chance
    does not explain.
    """

    rejections: dict[str, int] = field(default_factory=dict)
    silences: dict[str, int] = field(default_factory=dict)
    irregularities: tuple[float | None, ...] = ()
    reconciliation: "Reconciliation | None" = None
    losses: "tuple[Loss, ...]" = ()
    signed: bool = False
    forgeries: int = 0
    attestation: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a run and how it came about.

    `failures`: why a randomizer loses more than it declares, where it was used all the same.
    `signs` that reports were lost by choice.
    """

    result: Any
    interaction: Interaction
    rounds: list[RoundSummary]
    seconds: list[float]
    counts: Turnout
    max_epsilon_spent: float
    wall: float = 0.0  # seconds of the whole run
    central: Central | None = None  # behind a shuffler
    failures: tuple[str, ...] = ()
    bus: BusRecord | None = None  # over a broker
    broker: str = ""  # which one the run started
    faults: Faulted | None = None  # where they were asked for
    signs: tuple[str, ...] = ()

    @property
    def rejected(self) -> int:
        """The number of messages that did not fit."""
        return 0 if self.bus is None else sum(self.bus.rejections.values())


IMPOSSIBLE = 1e-6  # the chance that honest reports look impossible


def judged(settings: Settings, outcome: Outcome) -> Outcome:
    """The same outcome; or a degraded one, with the worst case in place of an estimate where the
    influence of a report is known."""
    if outcome.signs:
        return outcome
    accounts = None if outcome.bus is None else outcome.bus.reconciliation
    excess = 0 if accounts is None else accounts.accepted_not_charged
    influence, estimate = settings.influence, outcome.result
    signs = [] if outcome.bus is None else [str(loss) for loss in outcome.bus.losses]
    if excess:
        signs.append(f"{excess} accepted reports were not charged by their members")
    if influence is not None:
        distance, chance = influence.chance(estimate)
        if chance <= IMPOSSIBLE:
            signs.append(
                f"the estimate lies {distance:.1f} standard errors beyond any possible value, by "
                f"chance with probability {chance:.1g} at most"
            )
    if not signs:
        return outcome
    if influence is not None:
        missing = outcome.counts.asked - outcome.counts.answered
        lying = max(excess / max(1, outcome.counts.answered), settings.worst_case or 0.0)
        estimate = influence.worst_case(estimate, missing, min(0.99, lying))
    return replace(outcome, result=estimate, signs=tuple(signs))


def as_data(settings: Settings, outcome: Outcome, truth_known: bool = True) -> dict[str, Any]:
    """A run as plain data: what `--json` prints, as outcome.schema.json describes it.

    `truth_known`: the clients were drawn from the population of the settings. A private run
    computes neither the truth nor a digest of its table, since these would reveal the exact answer.
    """
    protocol, private = settings.protocol, settings.randomness.private
    open_truth = truth_known and not settings.randomness.private
    comparison = protocol.compared(outcome.result, settings.population) if open_truth else {}
    influence, outcome = _influence(settings, outcome), judged(settings, outcome)
    data: dict[str, Any] = {
        "version": installed_version(),
        "protocol": protocol.name,
        "parameters": {each.name: getattr(protocol, each.name) for each in fields(protocol)},
        "model": protocol.model(),
        "interaction": outcome.interaction,
        "tier": settings.tier,
        "epsilon": settings.epsilon,
        "clients": {**vars(outcome.counts), "rejected_messages": outcome.rejected},
        "rounds": _rounds(outcome),
        "table": _table(settings.population) if open_truth else None,
        "result": _result(settings, outcome, comparison, open_truth),
        "max_epsilon_spent": outcome.max_epsilon_spent,
        "private": private,
        "seed": None if private else settings.randomness.seed,
        "wall_s": outcome.wall,
    }
    bus = outcome.bus
    if bus is not None:
        data["signed"] = bus.signed
        data["clients"]["forged_messages"] = bus.forgeries
        if private and not (bus.signed and bus.attestation):
            data |= {"private": None, "stamp": UNATTESTED}
    if not private:
        data["stamp"] = STAMP
    if outcome.central is not None and settings.behind is not None:
        data["shuffled"] = {
            **vars(outcome.central),
            "exact": outcome.central.exact,
            "crowd": settings.behind.crowd,
        }
    optional = {"influence": influence} | ({} if bus is None else _record(bus))
    optional |= {"broker": outcome.broker, "unverified": [*outcome.failures]}
    optional["degraded"] = [*outcome.signs]
    data |= {name: value for name, value in optional.items() if value}
    if outcome.faults is not None:
        data["faults"] = asdict(outcome.faults)
    return data


def _rounds(outcome: Outcome) -> list[dict[str, Any]]:
    irregularities = (outcome.bus and outcome.bus.irregularities) or [None] * len(outcome.rounds)
    rounds = []
    for summary, seconds, irregularity in zip(
        outcome.rounds, outcome.seconds, irregularities, strict=True
    ):
        data = {
            "n": summary.n,
            "epsilon": summary.epsilon,
            "bits_per_client": summary.bits_per_client,
            "randomizers": [_randomizer(each) for each in summary.randomizers],
            "seconds": seconds,
            "digest": summary.digest,
        }
        if irregularity is not None:
            data["irregularity"] = irregularity
        rounds.append(data)
    return rounds


def _randomizer(randomizer: Randomizer) -> dict[str, Any]:
    """The name of a randomizer and its single-valued parameters."""
    data: dict[str, Any] = {"name": randomizer.name}
    for name, value in randomizer.params().items():
        if not isinstance(value, tuple) and name != "word_bits":
            data[name] = value
    return data


def _result(
    settings: Settings, outcome: Outcome, comparison: dict[str, Any], open_truth: bool
) -> dict[str, Any]:
    protocol, population = settings.protocol, settings.population
    result = outcome.result if settings.raw else possible_result(protocol, outcome.result)
    data = {**described(protocol, result)}
    if not settings.raw and was_moved(result):
        data["moved"] = True
    data |= comparison
    data["explanation"] = protocol.explain(outcome.result) or protocol.reason(settings.epsilon)
    data["truth"] = _truth(protocol, outcome.result, population) if open_truth else None
    with_error = open_truth
    if isinstance(outcome.result, Estimate):
        truth = data["truth"] if isinstance(data["truth"], list) else [data["truth"]]
        is_known = any(each is not None for each in truth)
        with_error &= is_known and not bool(np.isnan(outcome.result.value).all())
    data["true_error"] = float(protocol.true_error(result, population)) if with_error else None
    if protocol.error_unit:
        data["error_unit"] = protocol.error_unit
    return data


def _influence(settings: Settings, outcome: Outcome) -> dict[str, Any] | None:
    """How far missing or lying clients can have moved the estimate; None if it is no average over
    one report of each client."""
    influence = settings.influence
    if influence is None:
        return None
    estimate: Estimate = outcome.result
    missing = outcome.counts.asked - outcome.counts.answered
    limits = (-np.inf, np.inf) if settings.raw else (influence.least, influence.most)
    ends = influence.had_all_answered(estimate.value, estimate.n, missing)
    data = {
        "missing": missing,
        "had_all_answered": plain(np.clip(ends, *limits).T),
        "of_one_per_cent": plain(influence.of_share(0.01)),
    }
    if settings.worst_case is not None:
        ends = influence.interval(estimate, missing, settings.worst_case)
        interval = plain(np.clip(ends, *limits).T)
        data["worst_case"] = {"lying": settings.worst_case, "interval": interval}
    return data


def _record(bus: BusRecord) -> dict[str, Any]:
    """The accepted reports beside the members' own accounts, round by round; the rejected messages;
    the silenced members."""
    accounts, silences = bus.reconciliation, sorted(bus.silences)
    data: dict[str, Any] = {}
    if accounts is not None:
        totals = {
            name: getattr(accounts, name)
            for name in ("members", "silent", "accepted_not_charged", "charged_not_accepted")
        }
        data["reconciliation"] = {
            **totals,
            "rounds": [
                {**vars(each), "checksum": f"{each.checksum:016x}"} for each in accounts.rounds
            ],
        }
    data["rejections"] = dict(sorted(bus.rejections.items()))
    if silences:
        data["silenced"] = {
            "members": [name for name in silences if name],
            "strangers": "" in silences,
        }
    return data


def stamp_of(data: dict[str, Any]) -> str:
    """Whether a run was private, in words."""
    stamp = "private: operating-system entropy" if data["private"] else data["stamp"]
    seeded = "" if data["seed"] is None else f", seed {data['seed']}"
    unsigned = ", unsigned: anybody on the broker may have answered"
    return stamp + seeded + ("" if data.get("signed", True) else unsigned)


def _truth(protocol: LocalProtocol[Any], result: Any, population: Population) -> Any:
    """The truth in the form of the estimate or of the hypothesis."""
    truth = protocol.truth_of(result, population)
    if truth is None or isinstance(truth, np.ndarray | np.generic):
        return None if truth is None else plain(np.asarray(truth))
    return protocol.describe(truth)["hypothesis"]


def _table(population: Population) -> dict[str, Any] | None:
    """How large the table is that the clients were drawn from, and its digest."""
    if not isinstance(population, Rows | Resampled):
        return None
    return {
        "rows": len(population.whole),
        "columns": list(population.whole.columns),
        "digest": table_digest(population.whole),
    }


def table_digest(records: Records) -> str:
    """A digest of a table: equal for two if and only if their columns are, names, kinds and values
    (up to a collision), in whatever files they are."""
    digest = blake2b(repr((list(records.columns), len(records))).encode(), digest_size=16)
    with ThreadPoolExecutor() as pool:
        for part in pool.map(lambda part: part.marks(), records.parts()):
            digest.update(part)
    return digest.hexdigest()


def described(protocol: LocalProtocol[Any], result: Any) -> dict[str, Any]:
    """The result as plain data; `uninformative`: the labels of estimates that are no better than a
    constant guess, if there are any.

    Such an estimate has as much noise as the guess has error, and an interval with the guess; or
    one with every possible value.
    """
    data = protocol.describe(result)
    if "estimate" not in data or isinstance(possible := protocol.possible(result), list):
        return data
    least, most, _ = possible
    guess, noise = protocol.guess or ((least + most) / 2, (most - least) / 12**0.5)
    ends = np.array(data["interval"], dtype=np.float64).reshape(-1, 2)  # None as NaN
    low, high = np.where(np.isnan(ends), (-np.inf, np.inf), ends).T
    errors = np.array(data.get("standard_error"), dtype=np.float64)
    empty = (low <= least) & (high >= most)
    empty |= (errors >= noise) & (low <= guess) & (guess <= high)
    labels = [row[0] for row, is_empty in zip(estimates(data), empty, strict=True) if is_empty]
    return {**data, "uninformative": labels} if labels else data


def estimates(result: dict[str, Any]) -> list[Shown]:
    """The result's estimates: (label, estimate, standard error, interval) each."""
    if not isinstance(result["estimate"], list):
        label = result.get("question") or result.get("column", "estimate")
        interval = tuple(result["interval"])
        return [(label, result["estimate"], result["standard_error"], interval)]
    # a quantile has an interval and no standard error
    errors = result.get("standard_error", [None] * len(result["labels"]))
    intervals = map(tuple, result["interval"])
    return [*zip(result["labels"], result["estimate"], errors, intervals, strict=True)]
