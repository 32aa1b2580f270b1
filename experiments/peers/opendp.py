"""OpenDP's randomized responses, of a category and of a vector of bits; it has no estimator for the first, so ours is its odds'."""

import math
from typing import Any

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.experiments.peers.base import Peer, Task, by_odds, module

NAME = "opendp"


def oracles(task: Task) -> list[Peer]:
    """Its oracle for a task, if it has one."""
    makers = {"grr": _direct, "sue": _bits}
    return [makers[task.oracle](task)] if task.oracle in makers else []


def prelude() -> Any:
    """The library, with what it asks to be allowed expressly."""
    home = module("opendp.prelude")
    home.enable_features("contrib")
    return home


def _direct(task: Task) -> Peer:
    p = math.exp(task.epsilon) / (math.exp(task.epsilon) + task.k - 1)
    measurement = prelude().m.make_randomized_response(list(range(task.k)), p)

    def singles(reports: list[Any]) -> Floats:
        return by_odds(np.eye(task.k)[reports], p, (1 - p) / (task.k - 1))

    return Peer(NAME, lambda values: [measurement(value) for value in values.tolist()], lambda reports: singles(reports).mean(axis=0), singles)


def _bits(task: Task) -> Peer:
    home, flip = prelude(), 1 / (1 + math.exp(task.epsilon / 2))
    measurement = home.m.make_randomized_response_bitvec(home.bitvector_domain(max_weight=1), home.discrete_distance(), f=2 * flip)
    held = np.packbits(np.eye(task.k, dtype=np.uint8), axis=1, bitorder="little")

    def respond(values: Ints) -> list[Any]:
        return [measurement(held[value].tobytes()) for value in values.tolist()]

    def estimate(reports: list[Any]) -> Floats:
        return np.asarray(home.m.debias_randomized_response_bitvec(reports, 2 * flip))[: task.k] / len(reports)

    return Peer(NAME, respond, estimate, lambda reports: by_odds(bits_of(reports, task.k), 1 - flip, flip))


def bits_of(reports: list[Any], k: int) -> Floats:
    """The first k bits of each report, shape (n, k)."""
    packed = np.array([np.frombuffer(report, dtype=np.uint8) for report in reports])
    return np.unpackbits(packed, axis=1, count=k, bitorder="little").astype(np.float64)
