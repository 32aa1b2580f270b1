"""The exact epsilon of peers' mechanisms beside what they claim: their own code, run on every path
of its random numbers, with the chance of that path."""

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from importlib import import_module, metadata
from itertools import permutations
from math import ceil, exp, inf, log
from typing import Any
from unittest.mock import patch

import numpy as np

from local_dp.experiments.peers.oracles import installed

_DOUBLES = 1 << 53  # a uniform double is one of the multiples of 2^-53 below 1


@dataclass
class Path:
    """One way through the program: the choices that are prescribed, those that followed, and the
    chance of them all."""

    prefix: tuple[int, ...]
    choices: list[int] = field(default_factory=list)
    chance: Fraction = Fraction(1)
    others: list[tuple[int, ...]] = field(default_factory=list)

    def choose(self, chances: Sequence[Fraction]) -> int:
        """The index prescribed here, or the first possible one; the other possible ones are noted
        as paths still to go."""
        possible = [index for index, chance in enumerate(chances) if chance]
        place = len(self.choices)
        if place < len(self.prefix):
            index = self.prefix[place]
        else:
            index = possible[0]
            self.others += [(*self.choices, other) for other in possible[1:]]
        self.choices.append(index)
        self.chance *= chances[index]
        return index

    def among(self, options: Sequence[Any]) -> Any:
        return options[self.choose([Fraction(1, len(options))] * len(options))]


class Uniform:
    """A uniform double, of which a program may ask once whether it is below a threshold."""

    def __init__(self, path: Path) -> None:
        self._path, self._is_spent = path, False

    def _below(self, count: int) -> bool:
        if self._is_spent:
            raise NotImplementedError(
                "compares one number twice; only programs that compare it once are enumerated"
            )
        self._is_spent = True
        share = Fraction(min(max(count, 0), _DOUBLES), _DOUBLES)
        return self._path.choose([share, 1 - share]) == 0

    def __lt__(self, threshold: float) -> bool:
        return self._below(ceil(Fraction(threshold) * _DOUBLES))

    def __le__(self, threshold: float) -> bool:
        return self._below(int(Fraction(threshold) * _DOUBLES) + 1)

    def __ge__(self, threshold: float) -> bool:
        return not self < threshold

    def __gt__(self, threshold: float) -> bool:
        return not self <= threshold


def law(program: Callable[[], Hashable]) -> dict[Hashable, Fraction]:
    """The chance of each result, exact: doubles are multiples of 2^-53, whole numbers and
    permutations uniform."""
    chances: dict[Hashable, Fraction] = defaultdict(Fraction)
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        path = Path(waiting.pop())
        with _drawing_from(path):
            result = program()
        chances[result] += path.chance
        waiting += path.others
    return dict(chances)


def exact_epsilon(laws: Sequence[dict[Hashable, Fraction]]) -> float:
    """ln of the largest ratio of two values' chances of one report; infinite if one of them cannot
    report it."""
    reports = {report for each in laws for report in each}
    chances = [[each.get(report, Fraction(0)) for each in laws] for report in reports]
    if any(not min(each) for each in chances):
        return inf
    worst = max(max(each) / min(each) for each in chances)
    return log(worst.numerator) - log(worst.denominator)


@contextmanager
def _drawing_from(path: Path) -> Iterator[None]:
    """Has Python's and numpy's generators follow a path, as far as the programs here use them."""
    with (
        patch.object(random, "random", partial(Uniform, path)),
        patch.object(
            random, "randint", lambda low, high: path.among(range(int(low), int(high) + 1))
        ),
        patch.object(np.random, "random", partial(Uniform, path)),
        patch.object(np.random, "random_sample", partial(Uniform, path)),
        patch.object(
            np.random, "randint", lambda low, high, dtype=int: path.among(range(low, high))
        ),
        patch.object(np.random, "binomial", lambda count, p: int(Uniform(path) < p)),
        patch.object(np.random, "choice", partial(_choice, path)),
    ):
        yield


def _choice(
    path: Path,
    options: Any,
    size: int | None = None,
    replace: bool = True,
    p: Sequence[float] | None = None,
) -> Any:
    """numpy's choice: one of some, some of some without putting back in any order, or independent
    entries of two with given chances."""
    if size is None:
        return path.among(options)
    if p is not None:
        return np.array([options[0] if Uniform(path) < p[0] else options[1] for _ in range(size)])
    if replace:
        raise NotImplementedError("draws with putting back are not enumerated")
    return np.array(path.among(list(permutations(options, size))), dtype=int)


@dataclass(frozen=True)
class Claim:
    """A mechanism of a library, the epsilon it was asked for in nats, and a report as a hashable
    value, for each of k values."""

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
        return metadata.version(self.library)


def claims() -> list[Claim]:
    """The mechanisms that are enumerated, of the installed libraries."""
    makers = {"pure-ldp": _pure_ldp, "multi-freq-ldpy": _multi_freq}
    return [claim for library, make in makers.items() if installed(library) for claim in make()]


def _pure_ldp() -> list[Claim]:
    home, same = import_module("pure_ldp.frequency_oracles"), lambda symbol: symbol
    server = home.HadamardResponseServer(2.0, 3, index_mapper=same)
    response = home.HadamardResponseClient(2.0, 3, server.get_hash_funcs(), index_mapper=same)
    transform = home.HadamardMechClient(1.0, 4, 2, index_mapper=same)
    loose = home.RAPPORClient(2 / (1 + exp(0.5)), 3, [[int]], num_of_cohorts=1, index_mapper=same)
    clients: list[tuple[str, float, int, Callable[[int], Hashable]]] = [
        ("DEClient, d = 3", 1.0, 3, home.DEClient(1.0, 3, index_mapper=same).privatise),
        ("DEClient, d = 3", 40.0, 3, home.DEClient(40.0, 3, index_mapper=same).privatise),
        ("UEClient, SUE, d = 3", 1.0, 3, partial(_bits, home.UEClient(1.0, 3, index_mapper=same))),
        (
            "UEClient, OUE, d = 3",
            1.0,
            3,
            partial(_bits, home.UEClient(1.0, 3, use_oue=True, index_mapper=same)),
        ),
        (
            "HadamardResponseClient, d = 3",
            1.0,
            3,
            home.HadamardResponseClient(1.0, 3, None, index_mapper=same).privatise,
        ),
        ("HadamardResponseClient, d = 3", 2.0, 3, response.privatise),
        (
            "HadamardMechClient, d = 4, t = 2: the pairs",
            1.0,
            4,
            lambda value: tuple(transform.privatise(value)),
        ),
        (
            "HadamardMechClient, d = 4, t = 2: list or iterator",
            1.0,
            4,
            lambda value: (isinstance(report := transform.privatise(value), list), tuple(report)),
        ),
        ("RAPPORClient, m = 3, one hash", 1.0, 3, lambda value: tuple(loose.privatise(value)[0])),
    ]
    return [Claim("pure-ldp", *each) for each in clients]


def _bits(client: Any, value: int) -> Hashable:
    return tuple(client.privatise(value).tolist())


def _multi_freq() -> list[Claim]:
    home = "multi_freq_ldpy.pure_frequency_oracles."
    # not compiled
    direct, unary, subsets = (
        getattr(import_module(home + name), f"{name}_Client").py_func
        for name in ("GRR", "UE", "SS")
    )

    def reports_of(
        program: Callable[..., Any], k: int, epsilon: float, view: Callable[[Any], Hashable]
    ) -> Callable[[int], Hashable]:
        return lambda value: view(program(value, k, epsilon))

    clients: list[tuple[str, float, int, Callable[[int], Hashable]]] = [
        ("GRR_Client, k = 3", 1.0, 3, reports_of(direct, 3, 1.0, int)),
        ("GRR_Client, k = 3", 40.0, 3, reports_of(direct, 3, 40.0, int)),
        (
            "UE_Client, OUE, k = 3",
            1.0,
            3,
            reports_of(unary, 3, 1.0, lambda report: tuple(report.tolist())),
        ),
        (
            "SS_Client, k = 6: the set",
            1.0,
            6,
            reports_of(subsets, 6, 1.0, lambda report: frozenset(report.tolist())),
        ),
        (
            "SS_Client, k = 6: as it is returned",
            1.0,
            6,
            reports_of(subsets, 6, 1.0, lambda report: tuple(report.tolist())),
        ),
        (
            "SS_Client, k = 6: its first entry",
            1.0,
            6,
            reports_of(subsets, 6, 1.0, lambda report: int(np.asarray(report)[0])),
        ),
    ]
    return [Claim("multi-freq-ldpy", *each) for each in clients]
