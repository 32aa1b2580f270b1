"""A protocol and the law of its clients' records, run by the thousand: tallies drawn from their law, or every client simulated."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.experiments.lab.coverage.repetition import AT_LEAST, COUNTED, Case, Runs
from local_dp.interaction import Nonadaptive, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import LocalAlgorithm, LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.populations.finite import Finite, Population
from local_dp.randomizers.finite import FiniteChannel
from local_dp.records import Records
from local_dp.tallies import Z95, Estimate, Tally

BLOCK = 1 << 22  # counts that are drawn at a time
NARROW = 16  # a tally of so few counts is likely to be drawn more than once


def report_law(randomizer: FiniteChannel, law: Floats) -> Floats:
    """Pr[cell, report] of a client whose value has this law over the domain, flattened."""
    cells, reports = np.arange(randomizer.cells)[:, None], np.arange(randomizer.alphabet)[None, :]
    held = np.flatnonzero(law).tolist()
    mass = sum(law[v] * np.exp(randomizer.log_probability(reports, np.array([[v + randomizer.domain.low]]), cells)) for v in held)
    flat: Floats = np.ravel(mass) / np.sum(mass)
    return flat


@dataclass(frozen=True)
class Crowd:
    """Clients who answer one query: groups of so many with so flattened a law of (cell, report)."""

    randomizer: FiniteChannel
    groups: Sequence[tuple[int, Floats]]

    @classmethod
    def drawn_from(cls, query: LocalQuery, population: Population) -> Self:
        """Those whom a query asks, as if drawn from the population's law."""
        assert isinstance(query.randomizer, FiniteChannel)
        return cls(query.randomizer, [(len(query.cohort), report_law(query.randomizer, population.law(query.query)))])

    @property
    def shape(self) -> tuple[int, int]:
        return self.randomizer.cells, self.randomizer.alphabet

    def tallies(self, generator: np.random.Generator, runs: int) -> Counts:
        """Flattened tallies, one a row: independent clients, therefore a sum of multinomials."""
        empty = np.zeros((runs, self.shape[0] * self.shape[1]), dtype=np.int64)
        return sum((generator.multinomial(n, law, size=runs) for n, law in self.groups), empty)


@dataclass(frozen=True)
class Drawn:
    """Runs whose tallies are drawn from their laws, as the aggregate tier does, many at a time; equal ones are decoded once."""

    crowds: Sequence[Crowd]
    decode: Callable[[tuple[Tally, ...]], Any]

    def __call__(self, generator: np.random.Generator, repetitions: int) -> Runs:
        width = sum(cells * alphabet for cells, alphabet in (crowd.shape for crowd in self.crowds))
        block = max(1, BLOCK // width)
        for start in range(0, repetitions, block):
            rows = np.concatenate([crowd.tallies(generator, min(block, repetitions - start)) for crowd in self.crowds], axis=1)
            times = np.ones(len(rows), dtype=np.int64)
            if width <= NARROW:
                rows, times = np.unique(rows, axis=0, return_counts=True)
            for row, count in zip(rows, times.tolist(), strict=True):
                yield _estimates(self.decode(self._tallies(row))), count

    def _tallies(self, row: Counts) -> tuple[Tally, ...]:
        ends = np.cumsum([cells * alphabet for cells, alphabet in (crowd.shape for crowd in self.crowds)])
        return tuple(Tally(part.reshape(crowd.shape)) for part, crowd in zip(np.split(row, ends[:-1]), self.crowds, strict=True))


@dataclass(frozen=True)
class Simulated:
    """Runs in the population tier: every client simulated, each time with a record of its own drawn afresh. `population` takes a seed."""

    algorithm: LocalAlgorithm[Any]
    population: Callable[[int], Population]
    epsilon: float
    estimates: Callable[[Any], Sequence[Estimate]] | None = None

    def __call__(self, generator: np.random.Generator, repetitions: int) -> Runs:
        for _ in range(repetitions):
            people, noise, coins = generator.integers(1 << 62, size=3).tolist()
            result = run(self.algorithm, PopulationOracle(self.population(people), KeyedNoise(noise), coins, self.epsilon))
            yield (self.estimates or _estimates)(result), 1


@dataclass(frozen=True)
class Placed(Estimate):
    """Places on a grid, with intervals that are places too."""

    found: tuple[Floats, Floats] | None = None

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        """As they were found, whatever z is."""
        assert self.found is not None
        return self.found


@dataclass(frozen=True)
class Played:
    """Runs of a protocol of several rounds, its tallies drawn from their laws; `estimates` reads its result."""

    protocol: Any
    population: Population
    epsilon: float
    estimates: Callable[[Any], Sequence[Estimate]]

    def __call__(self, generator: np.random.Generator, repetitions: int) -> Runs:
        algorithm = self.protocol.algorithm(self.epsilon, self.population.size)
        for _ in range(repetitions):
            yield self.estimates(run(algorithm, AggregateOracle(self.population, generator, self.epsilon))), 1


def _estimates(result: Any) -> Sequence[Estimate]:
    result = getattr(result, "estimate", result)
    return (result,) if isinstance(result, Estimate) else tuple(result)


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
