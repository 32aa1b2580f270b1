"""A sanitizer of databases many times as large: one release for each of q random parts (Beimel, Nissim, Stemmer 2013, Lemma 5.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from local_dp.checks import check_whole
from local_dp.curator.mechanism import Mechanism
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
