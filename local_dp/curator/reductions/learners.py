"""Learners out of others: amplified to any confidence, and from a sanitizer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from local_dp.checks import check_whole
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Loss

E = TypeVar("E")
L = TypeVar("L", bound=Loss)


@dataclass(frozen=True)
class Amplified(Mechanism[Multiset, E, L], Generic[E, L]):
    """Databases of any positive multiple of `records` records, shuffled and cut into parts of that many, each sanitized; `average` joins the releases.

    Privacy: the sanitizer's: whatever the shuffle, a replaced record changes one part. Utility: from an (alpha, beta)-sanitizer, alpha + 2 beta except
    with probability beta, given (18 / beta) ln(1 / beta) parts: by Chernoff few of them fail. Cost: O(m log m), m records.
    Source: Lemma 5.1 with averages of answers for its synthetic databases of one size, which cost another alpha (erratum E13).
    """

    sanitizer: Mechanism[Multiset, E, L]
    records: int
    average: Callable[[Sequence[E]], E]

    def __post_init__(self) -> None:
        check_whole("records", self.records, 1, 1 << 40)

    @property
    def loss(self) -> L:
        return self.sanitizer.loss

    def release(self, database: Multiset, draws: Draws) -> E:
        parts, rest = divmod(database.size, self.records)
        if rest or not parts:
            raise InputError(f"there are {database.size} records; give a positive multiple of {self.records}")
        held = np.repeat(database.values, database.counts)
        shuffled = held[draws.order(len(held))].reshape(parts, self.records)
        return self.average([self.sanitizer.release(Multiset.of(part, database.bits), draws) for part in shuffled])


def amplified(sanitizer: Mechanism[Multiset, E, L], records: int, average: Callable[[Sequence[E]], E]) -> Amplified[E, L]:
    """The sanitizer of parts of `records` records, applied to all parts of a larger database: Lemma 5.1."""
    return Amplified(sanitizer, records, average)


D = TypeVar("D")
H = TypeVar("H")


@dataclass(frozen=True)
class Processed(Mechanism[D, H, L], Generic[D, E, H, L]):
    """What `after` makes of a release. Privacy: the mechanism's, for `after` sees no record."""

    mechanism: Mechanism[D, E, L]
    after: Callable[[E], H]

    @property
    def loss(self) -> L:
        return self.mechanism.loss

    def release(self, database: D, draws: Draws) -> H:
        return self.after(self.mechanism.release(database, draws))

    def law(self, database: D) -> Law[H]:
        found: dict[H, int] = {}
        for released, weight in self.mechanism.law(database).items():
            outcome = self.after(released)
            found[outcome] = found.get(outcome, 0) + weight
        return found


def learner_from_sanitizer(sanitizer: Mechanism[D, E, L], best: Callable[[E], H]) -> Processed[D, E, H, L]:
    """A proper learner from a sanitizer of the class with labels: `best` gives the hypothesis that errs least on what is released.

    Privacy: the sanitizer's, pure or approximate. Utility: from an (alpha, beta)-sanitizer, error 2 alpha + gamma except with probability 2 beta, given
    (50 VC / gamma^2) ln(1 / (gamma beta)) examples, since the share of wrong labels is a count of the class with labels. Source: Lemma 5.3.
    """
    return Processed(sanitizer, best)
