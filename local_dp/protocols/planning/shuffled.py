"""Planning behind a shuffler: epsilon is then what all reports together lose, beside a delta, and a report alone may lose more."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Reports
from local_dp.bounds.tails import Errors, widest_reach
from local_dp.errors import InputError
from local_dp.optimise import least_clients
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol
from local_dp.protocols.planning.local import Way, asked_of, estimators, law_of, reach_of, sample_laws, sampled
from local_dp.randomizers.finite import FiniteChannel
from local_dp.shuffle.accountant import MAX_CLIENTS, check_clients, holds, largest_local
from local_dp.shuffle.histogram import Target, multi_message

ONE_REPORT = {"symbols": ("binary-rr", "grr"), "levels": ("one-bit-mean",)}  # by the domain's kind, the first that applies
MOST_LOCAL = 20.0  # nats
_CLOSE = 1e-3  # of a local epsilon
MOST = 10**6  # clients that blanket messages are planned for


@dataclass(frozen=True)
class Together:
    """What all reports together may lose: epsilon in nats, and delta."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class OneReport(Way):
    """One report from each client, at the largest local epsilon at which so many shuffled ones keep to the target."""

    together: Together
    make: Callable[[float], FiniteChannel]
    reach: Callable[[float], float]  # of a local epsilon: the largest error is within this / sqrt n

    def clients(self, accuracy: float) -> int:
        """A larger local epsilon takes fewer clients for the accuracy, and more for the privacy: the largest at which the former are enough for both."""
        low, high = self.together.epsilon, MOST_LOCAL
        while high - low > _CLOSE * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._keeps(middle, self._enough(middle, accuracy)) else (low, middle)
        return self._enough(low, accuracy)

    def accuracy(self, clients: int) -> float:
        return self.reach(self.local(clients)) / math.sqrt(clients)

    def local(self, clients: int) -> float:
        """What each report of so many clients may lose, in nats."""
        if clients < 2:
            return self.together.epsilon
        return largest_local(self.make, min(clients, MAX_CLIENTS), self.together.epsilon, self.together.delta)

    def _enough(self, local: float, accuracy: float) -> int:
        return max(2, math.ceil((self.reach(local) / accuracy) ** 2))

    def _keeps(self, local: float, clients: int) -> bool:
        return holds(self.make(local), min(clients, MAX_CLIENTS), self.together.epsilon, self.together.delta)


@dataclass(frozen=True)
class Blankets(Way):
    """Each client's symbol as it is, among blanket messages: sampling errors and, of each share, one that falls as 1 / n."""

    together: Together
    laws: tuple[Floats, ...]
    sampling: float  # the reach without blanket messages

    def clients(self, accuracy: float) -> int:
        return least_clients(lambda n: self.accuracy(n) <= accuracy, max(2, math.ceil((self.sampling / accuracy) ** 2)))

    def accuracy(self, clients: int) -> float:
        try:
            target = Target(min(clients, MOST), self.together.epsilon, self.together.delta)
            noise = multi_message(len(self.laws[0]), target).variance(target.clients) * target.clients**2 / clients  # of one record
        except InputError:  # they are too few
            return math.inf
        return widest_reach([Errors.of_covariance(np.diag(law + noise) - np.outer(law, law)) for law in self.laws], BETA) / math.sqrt(clients)


def shuffled_ways(protocol: LocalProtocol[Any], together: Together, population: Population | None = None) -> list[Way]:
    """The ways behind a shuffler, for clients of a population or of the least favourable law: one report each, and of shares blanket messages too.

    Raises InputError where the protocol's answer is no mean over clients, or no report of it is shuffled here.
    """
    check_clients(2, together.delta)
    named, aim = {reports.randomizer.name: reports for reports in estimators(protocol, together.epsilon)}, protocol.aim()
    assert aim is not None  # there are estimators
    law = None if population is None else law_of(population, asked_of(protocol, together.epsilon))
    first = next((name for name in ONE_REPORT.get(aim.kind, ()) if name in named), None)
    found: list[Way] = [] if first is None else [_one_report(together, named[first], law)]
    if aim.target.shape[1] > 1:
        own = tuple(sample_laws(aim, law))
        found.append(Blankets("blanket messages", "shuffled", None, False, together, own, widest_reach(sampled(aim, law), BETA)))
    if not found:
        raise InputError(f"{protocol.name} has no randomizer without public coins that is planned for behind a shuffler")
    return found


def _one_report(together: Together, reports: Reports, law: Floats | None) -> OneReport:
    def make(local: float) -> FiniteChannel:
        return replace(reports.randomizer, epsilon=local, word_bits=0)

    def reach(local: float) -> float:
        found = Reports.of(make(local), reports.aim)
        assert found is not None
        return reach_of(found, law)

    return OneReport(f"one report, {reports.randomizer.name}", "shuffled", reports.randomizer.bits, False, together, make, reach)
