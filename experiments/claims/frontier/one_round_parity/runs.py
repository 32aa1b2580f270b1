"""Parity in one round and in a few: what is measured. The best of all channels, least counts, success at the bound, and both ways to draw a run."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from local_dp.bounds.interaction import few_rounds_clients
from local_dp.bounds.parity import (
    best_parity_information,
    deny_information,
    parity_deny_clients,
    parity_halving_clients,
    parity_information,
    parity_one_round_bound,
    parity_one_round_clients,
    parity_report_bound,
    random_channel,
    support_information,
)
from local_dp.errors import LocalDPError
from local_dp.experiments.lab.claim import Measurement, Point, Scale
from local_dp.experiments.lab.cross_check import Trial, cross_check
from local_dp.experiments.lab.minimal_clients import exact_recovery, measured_clients
from local_dp.experiments.lab.store import as_data
from local_dp.noise import stream_key
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.registry import find_protocol

EPSILON, TARGET = 1.0, 0.9
DENY, MASKS, TWO, THREE, HALVING = "named suspects", "random masks", "two rounds", "three rounds", "halving"
ONE_ROUND, SEVERAL = (DENY, MASKS), (TWO, THREE, HALVING)
LN3 = math.log(3)
EPSILONS = (0.5, 1.0, LN3, 3.0)
SMALL = (2, 3)  # the d for which the best of all channels is found
CHANNELS = 250  # random ones at each d and epsilon: 2,000 in all
DIMENSIONS: dict[Scale, dict[str, tuple[int, ...]]] = {
    "quick": {**dict.fromkeys(ONE_ROUND, (4, 6, 8, 10)), **dict.fromkeys(SEVERAL, (4, 6, 8))},
    "full": dict.fromkeys((*ONE_ROUND, *SEVERAL), (4, 6, 8, 10, 12)),
}
AT_BOUND: dict[Scale, dict[str, tuple[int, ...]]] = {
    "quick": {TWO: (8, 10), THREE: (7, 8, 10), HALVING: (7, 8)},
    "full": {TWO: (6, 7, 8, 9, 10, 12), THREE: (6, 7, 8, 9, 10, 12), HALVING: (6, 7, 8, 9, 10)},
}
BEATEN_FROM = {TWO: 8, THREE: 7, HALVING: 7}  # the d from which as many clients as one round needs at least are more than enough
TRIALS: dict[Scale, dict[str, int]] = {
    "quick": {**dict.fromkeys(ONE_ROUND, 6000), TWO: 2000, THREE: 1200, HALVING: 800},
    "full": {**dict.fromkeys(ONE_ROUND, 12_000), TWO: 8000, THREE: 6000, HALVING: 4000},
}
FORMULAS: dict[str, Callable[[int, float, float], int]] = {DENY: parity_deny_clients, MASKS: parity_one_round_clients, HALVING: parity_halving_clients}
RUNS: dict[Scale, int] = {"quick": 1200, "full": 4000}  # at the bound


def made(kind: str, d: int) -> LocalProtocol[Any]:
    """The protocol of this kind."""
    names = {DENY: "parity-deny", MASKS: "parity-one-round", HALVING: "parity"}
    if kind in names:
        return find_protocol(names[kind]).from_settings({"d": str(d)})
    return find_protocol("parity-rounds").from_settings({"d": str(d), "rounds": "2" if kind == TWO else "3"})


def guess(kind: str, d: int) -> int:
    """The clients that a formula says it needs."""
    if kind in SEVERAL[:2]:
        return few_rounds_clients(d, EPSILON, 2 if kind == TWO else 3, 1 - TARGET)
    return FORMULAS[kind](d, EPSILON, 1 - TARGET)


def points(scale: Scale) -> list[Point]:
    """Channels by d and epsilon; least counts by kind and d; successes at the bound; each kind client by client."""
    channels: list[Point] = [{"kind": "channels", "d": d, "epsilon": epsilon} for d in SMALL for epsilon in EPSILONS]
    counts = [{"kind": kind, "d": d, "trials": TRIALS[scale][kind]} for kind, sizes in DIMENSIONS[scale].items() for d in sizes]
    at_bound = [{"kind": "bound", "of": kind, "d": d, "trials": RUNS[scale]} for kind, sizes in AT_BOUND[scale].items() for d in sizes]
    crossed = [{"kind": "cross", "of": kind, "d": 4} for kind in (DENY, TWO, THREE)]
    return [*channels, *counts, *at_bound, *crossed]


def measure(point: Point, seed: int) -> Measurement:
    """One point: a function of the point and the seed alone."""
    d = point["d"]
    own = int.from_bytes(stream_key(f"one round parity {point['kind']} {point.get('of')}", seed, d)[:8], "little")
    if point["kind"] == "channels":
        return _channels(d, point["epsilon"], np.random.default_rng([own]))
    if point["kind"] == "cross":
        return _crossed(point["of"], d, own)
    if point["kind"] == "bound":
        return _at_bound(point["of"], d, point["trials"], own)
    kind = point["kind"]
    return as_data(measured_clients(exact_recovery(made(kind, d), EPSILON, own), guess(kind, d), target=TARGET, trials=point["trials"], least=2 * d))


def _channels(d: int, epsilon: float, generator: np.random.Generator) -> Measurement:
    """Nats: what the best of all channels tells, the best of some random ones, naming a suspect or a parity that agrees, and the bound."""
    drawn = (random_channel(d, epsilon, int(generator.integers(2, 4 << d)), generator) for _ in range(CHANNELS))
    return {
        "best": best_parity_information(d, epsilon),
        "random": max(float(parity_information(d, channel).sum()) for channel in drawn),
        "deny": deny_information(d, epsilon),
        "support": support_information(d, epsilon),
        "bound": parity_report_bound(d, epsilon),
    }


def _at_bound(kind: str, d: int, trials: int, own: int) -> Measurement:
    """How often it succeeds with as many clients as the bound asks of every protocol of one round."""
    n = math.ceil(parity_one_round_bound(d, EPSILON, TARGET))
    try:
        return {"n": n, "successes": exact_recovery(made(kind, d), EPSILON, own)(n, trials)}
    except LocalDPError as error:
        return {"n": n, "successes": 0, "failed": str(error)}


def _crossed(kind: str, d: int, own: int) -> Measurement:
    """The same protocol client by client and drawn from its law."""
    protocol, clients = made(kind, d), guess(kind, d)

    def exact(result: Any, population: Population) -> bool:
        return protocol.true_error(result, population) == 0

    return as_data(
        cross_check(lambda: Trial(protocol.algorithm(EPSILON, clients), lambda drawn: protocol.synthetic(clients, drawn), exact, clients, EPSILON), own)
    )
