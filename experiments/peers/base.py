"""A peer's frequency oracle: its reports, its own estimate, and the estimate of a single report."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

import numpy as np

from local_dp.arrays import Floats, Ints

LIBRARIES = {"pure-ldp": "pure_ldp", "multi-freq-ldpy": "multi_freq_ldpy", "opendp": "opendp", "diffprivlib": "diffprivlib"}


@dataclass(frozen=True)
class Task:
    """A frequency oracle asked for: its name here, epsilon in nats, k symbols."""

    oracle: str
    epsilon: float
    k: int


@dataclass(frozen=True)
class Peer:
    """One library's oracle for a task.

    `respond` gives a report for each value, in the library's own form. `estimate` is the library's estimate of the k shares from such reports, shape (k,).
    `singles` are each report's unbiased estimates of the k shares, by the odds of that library's channel, shape (n, k). Their mean is `estimate`, unless the
    library is `normalised`: then it clips at 0 and divides by the sum.
    """

    library: str
    respond: Callable[[Ints], list[Any]]
    estimate: Callable[[list[Any]], Floats]
    singles: Callable[[list[Any]], Floats]
    normalised: bool = False

    def errors(self, reports: list[Any], law: Floats) -> Floats:
        """The standard error of `estimate` at each symbol, from these reports; where it is normalised, to first order about the law."""
        singles = self.singles(reports)
        if self.normalised:
            singles = singles - law * singles.sum(axis=1, keepdims=True)
        errors: Floats = singles.std(axis=0) / np.sqrt(len(reports))
        return errors


def installed(library: str) -> bool:
    """Whether a peer can be imported."""
    return find_spec(LIBRARIES[library]) is not None


def version(library: str) -> str:
    """The version of an installed peer."""
    return metadata.version(library)


def module(name: str) -> Any:
    """A peer's module, imported when it is asked for; peers have no types."""
    return import_module(name)


def by_odds(support: Floats, p: float, q: float) -> Floats:
    """Each report's unbiased estimates from which symbols it supports, shape (n, k): the own one with probability p, any other with q."""
    singles: Floats = (support - q) / (p - q)
    return singles
