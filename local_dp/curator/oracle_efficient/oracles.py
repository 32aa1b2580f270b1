"""Oracles of optimisation, and what their types promise: the least weighted total of a class of queries (Neel, Roth, Wu 2019, Definitions 5 to 8).

    Perfect      always answers, with a proof                       RSPM takes no other
    Certifying   answers with a proof, or says that it failed       PRSMA makes its failures private
    Plain        claims                                             nothing private follows

Of two queries of equal total the one of the lower number is the answer: one tie-break, the same for all data, on which privacy rests.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from local_dp.curator.oracle_efficient.separated import Separated, Weighted


@dataclass(frozen=True)
class Certified:
    """Query number `choice` has total `value`, no query has less, and none of a lower number has as little."""

    choice: int
    value: int


@dataclass(frozen=True)
class Fail:
    """The oracle gave up, or its proof did not hold."""


FAIL = Fail()


@dataclass(frozen=True)
class Claimed:
    """An answer without proof."""

    choice: int


class Perfect(Protocol):
    """Proves its answer, always; it is a `Certifying` oracle that never fails."""

    @abstractmethod
    def minimise(self, data: Weighted) -> Certified:
        """The least query."""


class Certifying(Protocol):
    """Proves its answer or fails."""

    @abstractmethod
    def minimise(self, data: Weighted) -> Certified | Fail:
        """The least query, if it is found."""


class Plain(Protocol):
    """Claims."""

    @abstractmethod
    def minimise(self, data: Weighted) -> Claimed:
        """Some query."""


@dataclass(frozen=True)
class Exhaustive:
    """All totals, in whole numbers; the proof is that all were looked at."""

    queries: Separated

    def minimise(self, data: Weighted) -> Certified:
        totals = self.queries.totals(data)
        choice = int(np.argmin(totals))  # the first of those that tie
        return Certified(choice, int(totals[choice]))


@dataclass(frozen=True)
class Verified:
    """A plain oracle whose claims are checked against all totals: what is left of a solver that lies is that it fails. For tests and small classes."""

    claimed: Plain
    exact: Perfect

    def minimise(self, data: Weighted) -> Certified | Fail:
        truth = self.exact.minimise(data)
        return truth if self.claimed.minimise(data).choice == truth.choice else FAIL
