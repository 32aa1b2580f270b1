"""The frequency oracles of pure-ldp: k-ary response, unary encodings, local hashing, Hadamard response."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.experiments.peers.base import Peer, Task, by_odds, module

NAME = "pure-ldp"


def oracles(task: Task) -> list[Peer]:
    """Its oracle for a task, if it has one."""
    makers: dict[str, Callable[[Task], Peer]] = {
        "grr": _direct,
        "sue": partial(_unary, best=False),
        "oue": partial(_unary, best=True),
        "olh": _hashing,
        "hadamard-response": _hadamard,
    }
    return [makers[task.oracle](task)] if task.oracle in makers else []


def _same(symbol: int) -> int:
    return symbol


def _home() -> Any:
    return module("pure_ldp.frequency_oracles")


def _direct(task: Task) -> Peer:
    client = _home().DEClient(task.epsilon, task.k, index_mapper=_same)
    server = _home().DEServer(task.epsilon, task.k, index_mapper=_same)
    return Peer(NAME, partial(_respond, client), partial(_estimate, server), lambda reports: by_odds(np.eye(task.k)[reports], client.p, client.q))


def _unary(task: Task, best: bool) -> Peer:
    client = _home().UEClient(task.epsilon, task.k, use_oue=best, index_mapper=_same)
    server = _home().UEServer(task.epsilon, task.k, use_oue=best, index_mapper=_same)
    return Peer(NAME, partial(_respond, client), partial(_estimate, server), lambda reports: by_odds(np.array(reports, dtype=np.float64), client.p, client.q))


def _hashing(task: Task) -> Peer:
    client = _home().LHClient(task.epsilon, task.k, use_olh=True, index_mapper=_same)
    server = _home().LHServer(task.epsilon, task.k, use_olh=True, index_mapper=_same)
    return Peer(NAME, partial(_respond, client), partial(_estimate, server), lambda reports: by_odds(hashed(reports, task.k, client.g), client.p, 1 / client.g))


def hashed(reports: list[Any], k: int, g: int) -> Floats:
    """Which symbols have the reported hash under the reported seed, shape (n, k)."""
    digest = module("xxhash").xxh32_intdigest
    return np.array([[digest(str(symbol), int(seed)) % g == answer for symbol in range(k)] for answer, seed in reports], dtype=np.float64)


def _hadamard(task: Task) -> Peer:
    server = _home().HadamardResponseServer(task.epsilon, task.k, index_mapper=_same)
    client = _home().HadamardResponseClient(task.epsilon, task.k, server.get_hash_funcs(), index_mapper=_same)
    return Peer(NAME, partial(_respond, client), partial(_estimate, server), partial(_rows, server, task.k))


def _rows(server: Any, k: int, reports: list[Any]) -> Floats:
    """The estimate is linear in the histogram of reports: that of each report alone, by the server's own decoder."""
    fast = int(k > 128)
    table = {report: np.asarray(server.hr.decode_string([report], iffast=fast, normalization=-1)) for report in set(reports)}
    return np.array([table[report] for report in reports])


def _respond(client: Any, values: Ints) -> list[Any]:
    return [client.privatise(value) for value in values.tolist()]


def _estimate(server: Any, reports: list[Any]) -> Floats:
    server.reset()
    server.aggregate_all(reports)
    shares: Floats = np.asarray(server.estimate_all(range(server.d), suppress_warnings=True)) / len(reports)
    return shares
