"""A protocol and the law of its clients' records, as cases whose coverage is measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from local_dp.arrays import Floats
from local_dp.experiments.lab.coverage.repetition import AT_LEAST, COUNTED, Case
from local_dp.experiments.lab.coverage.runs import Crowd, Drawn, Simulated
from local_dp.interaction import Nonadaptive
from local_dp.oracles.local.asked import LocalQuery
from local_dp.populations.finite import Finite, Population
from local_dp.records import Records
from local_dp.tallies import Tally

FEW = (50, 200)  # clients a query
AT_USER_LEVEL = 10  # so many times fewer repetitions where every client is simulated


class Estimator(Protocol):
    """A local protocol that estimates numbers with intervals."""

    def clients(self, epsilon: float) -> int: ...

    def algorithm(self, epsilon: float, clients: int) -> Nonadaptive[LocalQuery, Tally, Any]: ...

    def truth(self, population: Population) -> Floats: ...


@dataclass(frozen=True)
class Setting:
    """A protocol and the law of its clients' records. It is measured with its default number of clients and with `few`, of which the last at user level too."""

    name: str
    what: str
    protocol: Estimator
    kinds: Records
    shares: Sequence[float]
    few: Sequence[int] = FEW
    binomial: bool = True
    dear: int = 1

    def cases(self, epsilon: float) -> Iterator[Case]:
        default = self.protocol.clients(epsilon)
        for n in (*self.few, default):
            algorithm, population = self.protocol.algorithm(epsilon, n), partial(Finite, self.kinds, self.shares, n)
            crowds = [Crowd.drawn_from(query, population(0)) for query in algorithm.queries]
            truth = np.atleast_1d(self.protocol.truth(population(0)))
            band = COUNTED if n == default else AT_LEAST
            case = partial(Case, self.name, self.what, epsilon, n, truth, binomial=self.binomial, band=band)
            yield case(draw=Drawn(crowds, algorithm.decode), default=n == default, dear=self.dear)
            if n == max(self.few, default=0):
                yield case(draw=Simulated(algorithm, population, epsilon), tier="population", dear=AT_USER_LEVEL)


def of_settings(settings: Callable[[], Iterator[Setting]], epsilon: float) -> Iterator[Case]:
    for setting in settings():
        yield from setting.cases(epsilon)
