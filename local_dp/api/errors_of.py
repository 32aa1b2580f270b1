"""The errors of one protocol, measured: of each randomizer that estimates the same mean, or of
whole runs where the answer is no mean."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from local_dp.api.tables import sample_rows
from local_dp.arrays import Floats
from local_dp.bounds.best import Reports
from local_dp.errors import InputError, unknown
from local_dp.experiments.lab.shapes import Data
from local_dp.interaction import Nonadaptive, run
from local_dp.loss import nano_epsilon
from local_dp.noise import KeyedNoise, stream_key
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.populations.finite import Population, Resampled
from local_dp.protocols.local_protocol import BETA, LocalProtocol
from local_dp.protocols.planning.ways import (
    Way,
    aim_of,
    asked_of,
    estimators,
    law_of,
    tolerance_of,
    ways,
)
from local_dp.records import Records
from local_dp.simulation.outcome import table_digest
from local_dp.tallies import Z95, Tally

Tier: TypeAlias = Literal["aggregate", "population"]
OWN = "own"  # the randomizers of a whole run
_BLOCK = 1 << 22  # counts that are drawn at a time


@dataclass(frozen=True)
class Case:
    """A protocol on people like the rows of a table or, without one, on its synthetic population.
    `parameters` are those that a grid gives it."""

    protocol: LocalProtocol[Any]
    tier: Tier
    records: Records | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The protocol and its given parameters."""
        return ", ".join(
            [self.protocol.name, *(f"{name} {value}" for name, value in self.parameters.items())]
        )

    @property
    def whole(self) -> bool:
        """True if whole runs are measured: the answer is no mean over clients."""
        return aim_of(self.protocol) is None

    def population(self, clients: int, seed: int) -> Population:
        """Clients drawn afresh."""
        return (
            self.protocol.synthetic(clients, seed)
            if self.records is None
            else Resampled(self.records, clients, seed)
        )

    @cached_property
    def _people(self) -> Population:
        """The population of the truth: synthetic, or each row of the table once."""
        return (
            self.population(1, 0)
            if self.records is None
            else sample_rows(self.records, len(self.records), 0)
        )

    @cached_property
    def _reports(self) -> dict[float, dict[str, Reports]]:
        return {}

    def randomizers(self, epsilon: float, only: tuple[str, ...]) -> list[str]:
        """The randomizers to measure; `OWN` for whole runs. Raises InputError for one that does not
        apply."""
        nano_epsilon(epsilon)
        if self.whole:
            return [OWN]
        applicable = {each.randomizer.name: each for each in estimators(self.protocol, epsilon)}
        if self.tier == "population":
            applicable = {
                name: each
                for name, each in applicable.items()
                if each.randomizer.domain == asked_of(self.protocol, epsilon).query.domain
            }
        for name in only:
            if name not in applicable:
                raise InputError(
                    unknown(
                        f"in tier {self.tier} {self.protocol.name} has no randomizer",
                        name,
                        applicable,
                    )
                )
        self._reports[epsilon] = applicable
        return list(only or applicable)

    def point(self, randomizer: str, epsilon: float, clients: int, runs: int) -> Data:
        """A piece of work as plain data: everything that its measurement depends on, beside the
        seed."""
        return {
            "protocol": self.protocol.name,
            **self._about,
            "randomizer": randomizer,
            "epsilon": epsilon,
            "clients": clients,
            "runs": runs,
        }

    @cached_property
    def _about(self) -> Data:
        return {
            "settings": asdict(self.protocol),
            "table": "" if self.records is None else table_digest(self.records),
            "tier": self.tier,
        }

    def measure(self, point: Data, seed: int) -> Data:
        """The 95 % point of the largest error, with its 95 % interval, and the root mean square
        error: of one estimate, or of whole runs."""
        randomizer, epsilon, clients, runs = (
            point[name] for name in ("randomizer", "epsilon", "clients", "runs")
        )
        usual = asdict(type(self.protocol)())
        # typed or not
        settings = "".join(
            f" {name} {value}"
            for name, value in asdict(self.protocol).items()
            if value != usual[name]
        )
        generator = np.random.default_rng(
            [
                *stream_key(
                    f"compare {self.protocol.name} {randomizer} {epsilon:g} {clients}{settings}",
                    seed,
                )
            ]
        )
        if randomizer == OWN:
            algorithm = self.protocol.algorithm(epsilon, clients)
            errors = np.array(
                [
                    [self.protocol.true_error(run(algorithm, oracle), oracle.population)]
                    for oracle in self._oracles(self.tier, epsilon, clients, runs, generator)
                ]
            )
        else:
            draw = self._tally_errors if self.tier == "aggregate" else self._simulation_errors
            errors = draw(self._reports[epsilon][randomizer], epsilon, clients, runs, generator)
        largest = np.sort(np.abs(errors).max(axis=1))
        low, at, high = (float(largest[place]) for place in quantile_places(len(largest)))
        return {"error": at, "low": low, "high": high, "rmse": math.sqrt(float(np.mean(errors**2)))}

    def planned(self, randomizer: str, epsilon: float, clients: int) -> float | None:
        """The same 95 % point in closed form; None where there is none."""
        if self.whole and tolerance_of(self.protocol) is None:
            return None
        way = next(
            each
            for each in self.ways(epsilon)
            if (each.chosen if randomizer == OWN else each.name == randomizer)
        )
        accuracy = way.accuracy(clients)
        return accuracy if math.isfinite(accuracy) else None

    @cached_property
    def ways(self) -> Callable[[float], list[Way]]:
        """The ways to answer, by epsilon."""
        return cache(lambda epsilon: ways(self.protocol, epsilon, self._people))

    def _tally_errors(
        self,
        reports: Reports,
        epsilon: float,
        clients: int,
        runs: int,
        generator: np.random.Generator,
    ) -> Floats:
        """The errors of each run, shape (runs, m), by tallies drawn from their law."""
        truth, law = self._truth(epsilon)
        size = reports.randomizer.cells * reports.randomizer.alphabet
        # few clients for the counts of a large tally: simulating them is less work
        if reports.aim.kind == "symbols" and max(clients / law.size, 1 << 16) < size:
            return self._simulation_errors(reports, epsilon, clients, runs, generator)
        block = max(1, _BLOCK // size)
        sizes = [min(block, runs - start) for start in range(0, runs, block)]
        if reports.aim.of == "records":
            return np.concatenate([reports.noise(law, clients, each, generator) for each in sizes])
        by_report = reports.law(law)
        return np.concatenate(
            [
                reports.estimates(generator.multinomial(clients, by_report, size=each)) - truth
                for each in sizes
            ]
        )

    def _simulation_errors(
        self,
        reports: Reports,
        epsilon: float,
        clients: int,
        runs: int,
        generator: np.random.Generator,
    ) -> Floats:
        """Simulates every client of each run, with new records."""
        truth, _ = self._truth(epsilon)
        aim = reports.aim
        query = LocalQuery(
            asked_of(self.protocol, epsilon).query, reports.randomizer, Cohort(0, clients)
        )
        algorithm = Nonadaptive[LocalQuery, Tally, Tally]((query,), lambda answers: answers[0])
        errors = []
        for oracle in self._oracles("population", epsilon, clients, runs, generator):
            tally = run(algorithm, oracle)
            if aim.of == "records":
                truth = oracle.population.own_law(query.query) @ aim.target
            errors.append(reports.estimates(tally.counts.ravel()) - truth)
        return np.array(errors)

    def _oracles(
        self,
        tier: str,
        epsilon: float,
        clients: int,
        runs: int,
        generator: np.random.Generator,
    ) -> Iterator[AggregateOracle | PopulationOracle]:
        """For each run an oracle of the tier, with new clients."""
        for _ in range(runs):
            people, noise, coins = generator.integers(1 << 53, size=3).tolist()
            population = self.population(clients, people)
            if tier == "aggregate":
                yield AggregateOracle(population, np.random.default_rng(noise), epsilon)
            else:
                yield PopulationOracle(population, KeyedNoise(noise), coins, epsilon)

    def _truth(self, epsilon: float) -> tuple[Floats, Floats]:
        """The truth, shape (m,), and the law of a client's value."""
        law, aim = law_of(self._people, asked_of(self.protocol, epsilon)), aim_of(self.protocol)
        assert aim is not None  # or there were no reports
        return law @ aim.target, law


def quantile_places(runs: int) -> tuple[int, int, int]:
    """The ranks of the 95 % point and of the ends of its 95 % interval among sorted runs, by the
    binomial law."""
    middle, reach = (1 - BETA) * runs, Z95 * math.sqrt(runs * BETA * (1 - BETA))
    low, at, high = math.floor(middle - reach) - 1, math.ceil(middle) - 1, math.ceil(middle + reach)
    return max(low, 0), at, min(high, runs - 1)
