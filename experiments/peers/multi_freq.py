"""The frequency oracles of multi-freq-ldpy: k-ary response, unary encodings, local hashing, subset selection; its estimates are clipped and normalised."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.experiments.peers.base import Peer, Task, by_odds, module
from local_dp.experiments.peers.pure_ldp import hashed

NAME = "multi-freq-ldpy"


def oracles(task: Task) -> list[Peer]:
    """Its oracle for a task, if it has one."""
    makers: dict[str, Callable[[Task], Peer]] = {
        "grr": _direct,
        "sue": partial(_unary, best=False),
        "oue": partial(_unary, best=True),
        "olh": _hashing,
        "subset-selection": _subsets,
    }
    return [makers[task.oracle](task)] if task.oracle in makers else []


def _home(name: str) -> Any:
    return module(f"multi_freq_ldpy.pure_frequency_oracles.{name}")


def _peer(privatise: Callable[[int], Any], aggregate: Callable[[list[Any]], Floats], singles: Callable[[list[Any]], Floats]) -> Peer:
    def respond(values: Ints) -> list[Any]:
        return [privatise(value) for value in values.tolist()]

    return Peer(NAME, respond, aggregate, singles, normalised=True)


def _direct(task: Task) -> Peer:
    home, epsilon, k = _home("GRR"), task.epsilon, task.k
    p = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    return _peer(
        lambda value: home.GRR_Client(value, k, epsilon),
        lambda reports: home.GRR_Aggregator_MI(reports, k, epsilon),
        lambda reports: by_odds(np.eye(k)[reports], p, (1 - p) / (k - 1)),
    )


def _unary(task: Task, best: bool) -> Peer:
    home, epsilon, k, root = _home("UE"), task.epsilon, task.k, np.exp(task.epsilon / 2)
    p, q = (0.5, 1 / (np.exp(epsilon) + 1)) if best else (root / (root + 1), 1 / (root + 1))
    return _peer(
        lambda value: home.UE_Client(value, k, epsilon, best),
        lambda reports: home.UE_Aggregator_MI(reports, epsilon, best),
        lambda reports: by_odds(np.array(reports), p, q),
    )


def _hashing(task: Task) -> Peer:
    home, epsilon, k = _home("LH"), task.epsilon, task.k
    g = round(np.exp(epsilon)) + 1
    return _peer(
        lambda value: home.LH_Client(value, k, epsilon),
        lambda reports: home.LH_Aggregator_MI(reports, k, epsilon),
        lambda reports: by_odds(hashed(reports, k, g), np.exp(epsilon) / (np.exp(epsilon) + g - 1), 1 / g),
    )


def _subsets(task: Task) -> Peer:
    home, epsilon, k = _home("SS"), task.epsilon, task.k
    w = max(1, round(k / (np.exp(epsilon) + 1)))
    p = w * np.exp(epsilon) / (w * np.exp(epsilon) + k - w)

    def held(reports: list[Any]) -> Floats:
        support = np.zeros((len(reports), k))
        np.put_along_axis(support, np.array(reports), 1.0, axis=1)
        return by_odds(support, p, (w - p) / (k - 1))

    return _peer(lambda value: home.SS_Client(value, k, epsilon), lambda reports: home.SS_Aggregator_MI(reports, k, epsilon), held)
