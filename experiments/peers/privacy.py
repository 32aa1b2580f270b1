"""The exact epsilon of peers' mechanisms beside what they claim: their own code, run on every path of its random numbers."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import exp
from typing import Any

import numpy as np

from local_dp.experiments.peers.enumerated import exact_epsilon, law
from local_dp.experiments.peers.oracles import installed, module, version


@dataclass(frozen=True)
class Claim:
    """A mechanism of a library, the epsilon it was asked for in nats, and a report as a hashable value, for each of k values."""

    library: str
    mechanism: str
    epsilon: float
    k: int
    report: Callable[[int], Hashable]

    def laws(self) -> list[dict[Hashable, Fraction]]:
        """The chance of each report, value by value."""
        return [law(partial(self.report, value)) for value in range(self.k)]

    def exact(self) -> float:
        """What it really loses."""
        return exact_epsilon(self.laws())

    @property
    def version(self) -> str:
        return version(self.library)


def claims() -> list[Claim]:
    """The mechanisms that are enumerated, of the installed libraries."""
    makers = {"pure-ldp": _pure_ldp, "multi-freq-ldpy": _multi_freq}
    return [claim for library, made in makers.items() if installed(library) for claim in made()]


def _pure_ldp() -> list[Claim]:
    home, same = module("pure_ldp.frequency_oracles"), lambda symbol: symbol
    server = home.HadamardResponseServer(2.0, 3, index_mapper=same)
    response = home.HadamardResponseClient(2.0, 3, server.get_hash_funcs(), index_mapper=same)
    transform = home.HadamardMechClient(1.0, 4, 2, index_mapper=same)
    loose = home.RAPPORClient(2 / (1 + exp(0.5)), 3, [[int]], num_of_cohorts=1, index_mapper=same)
    clients: list[tuple[str, float, int, Callable[[int], Hashable]]] = [
        ("DEClient, d = 3", 1.0, 3, home.DEClient(1.0, 3, index_mapper=same).privatise),
        ("DEClient, d = 3", 40.0, 3, home.DEClient(40.0, 3, index_mapper=same).privatise),
        ("UEClient, SUE, d = 3", 1.0, 3, partial(_bits, home.UEClient(1.0, 3, index_mapper=same))),
        ("UEClient, OUE, d = 3", 1.0, 3, partial(_bits, home.UEClient(1.0, 3, use_oue=True, index_mapper=same))),
        ("HadamardResponseClient, d = 3", 1.0, 3, home.HadamardResponseClient(1.0, 3, None, index_mapper=same).privatise),
        ("HadamardResponseClient, d = 3", 2.0, 3, response.privatise),
        ("HadamardMechClient, d = 4, t = 2: the pairs", 1.0, 4, lambda value: tuple(transform.privatise(value))),
        ("HadamardMechClient, d = 4, t = 2: list or iterator", 1.0, 4, partial(_typed, transform)),
        ("RAPPORClient, m = 3, one hash", 1.0, 3, lambda value: tuple(loose.privatise(value)[0])),
    ]
    return [Claim("pure-ldp", *each) for each in clients]


def _bits(client: Any, value: int) -> Hashable:
    return tuple(client.privatise(value).tolist())


def _typed(client: Any, value: int) -> Hashable:
    report = client.privatise(value)
    return isinstance(report, list), tuple(report)


def _multi_freq() -> list[Claim]:
    home = "multi_freq_ldpy.pure_frequency_oracles."
    direct, unary, subsets = (getattr(module(home + name), f"{name}_Client").py_func for name in ("GRR", "UE", "SS"))  # as they are before they are compiled

    def shown(program: Callable[..., Any], k: int, epsilon: float, kept: Callable[[Any], Hashable]) -> Callable[[int], Hashable]:
        return lambda value: kept(program(value, k, epsilon))

    clients: list[tuple[str, float, int, Callable[[int], Hashable]]] = [
        ("GRR_Client, k = 3", 1.0, 3, shown(direct, 3, 1.0, int)),
        ("GRR_Client, k = 3", 40.0, 3, shown(direct, 3, 40.0, int)),
        ("UE_Client, OUE, k = 3", 1.0, 3, shown(unary, 3, 1.0, lambda report: tuple(report.tolist()))),
        ("SS_Client, k = 6: the set", 1.0, 6, shown(subsets, 6, 1.0, lambda report: frozenset(report.tolist()))),
        ("SS_Client, k = 6: as it is returned", 1.0, 6, shown(subsets, 6, 1.0, lambda report: tuple(report.tolist()))),
        ("SS_Client, k = 6: its first entry", 1.0, 6, shown(subsets, 6, 1.0, lambda report: int(np.asarray(report)[0]))),
    ]
    return [Claim("multi-freq-ldpy", *each) for each in clients]
