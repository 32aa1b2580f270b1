"""The mean of several numeric columns together, as one vector: of a box of public bounds, or of a Euclidean ball."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Bools, Floats
from local_dp.bounds.means import Body, VectorChoice, best_vector, vector_choices
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_positive, check_share, check_whole
from local_dp.domains import MAX_DIMENSION, Vectors
from local_dp.errors import InputError, unknown
from local_dp.interaction import Nonadaptive
from local_dp.learners.learner import features
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.populations.table import weighted_records
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.queries.numbers import matrix
from local_dp.queries.vectors import Coordinates
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True)
class FoundVector:
    """The mean vector, and the randomizer of the reports."""

    estimate: Estimate
    choice: VectorChoice

    @property
    def total_error(self) -> float:
        """The root of the expected square of the Euclidean distance from the truth."""
        return float(np.sqrt((self.estimate.standard_error**2).sum()))


@dataclass(frozen=True)
class MeanVector(LocalProtocol[FoundVector]):
    """Estimates the means of `columns` together: of records in a box, each column between public bounds, or with `radius` in the ball of this radius about 0.

    One report covers the whole record: epsilon / d for each of d columns would have about d times the variance. The randomizer has the least mean squared error
    at this epsilon and d by closed form (`bounds.means.vector_choices`). Privacy: every report is epsilon-locally private. Utility: unbiased up to the grid;
    at epsilon below 2 the variance is about d C^2 a coordinate in a box, in units of half its range squared, and about (pi / 2) d C^2 in all in a ball.
    `tolerance` sets the default number of clients: all coordinates within it with probability 95 %. Cost: 1 to 12 bits a client, one round.
    """

    name: ClassVar[str] = "mean-vector"
    source: ClassVar[str] = "Duchi, Jordan, Wainwright 2018; Nguyen et al. 2016; Bhowmick et al. 2018"
    example: ClassVar[str] = "--records fair.csv --columns 'age;educ;yrs_married' --low '15;8;0' --high '45;20;25'"
    columns: tuple[str, ...] = parameter((), "the columns that are averaged, separated by ';'", of_table=True)
    low: tuple[str, ...] = parameter((), "the least value of each column, public, separated by ';', or one for all; needed with a table, or the radius")
    high: tuple[str, ...] = parameter((), "the greatest value of each column, public, separated by ';', or one for all")
    radius: float | None = parameter(None, "instead of bounds: the greatest Euclidean norm of a record, public", unit="of the columns")
    outside: str = parameter("refuse", "a record beyond the bounds or the radius: refuse, or clip (it counts as the nearest inside)")
    missing: str = parameter("refuse", "a missing number: refuse, or middle (it counts as the middle of the bounds)")
    randomizer: str = parameter("best", "random-coordinate, sampled-signs, duchi-vector, nearest-direction, or best: the least error by closed form")
    steps: int = parameter(1 << 14, "the public grid: how many steps from the middle of the bounds to either end, a power of two up to 2^14")
    d: int = parameter(4, "without a table: how many columns there are")
    tolerance: float = parameter(
        0.05, "the default number of clients is for errors of at most this, all columns, with probability 95 %", unit="share of a range"
    )

    def check(self) -> None:
        check_share("tolerance", self.tolerance)
        check_whole("d", self.d, 1, MAX_DIMENSION)
        check_policy("outside", self.outside, ("refuse", "clip"))
        check_policy("missing", self.missing, ("refuse", "middle"))
        if self.radius is not None:
            check_positive("radius", self.radius)
            if self.low or self.high:
                raise InputError("there are bounds and a radius; give either: a box of bounds, or a ball")
        known = [choice.name for choice in vector_choices(1.0, self.body, self.size)]
        if self.randomizer not in ("best", *known):
            raise InputError(unknown("no randomizer of vectors is named", self.randomizer, ["best", *known]))
        self._query(self.body, 1.0)  # checks columns, bounds and grid

    @property
    def named(self) -> tuple[str, ...]:
        return self.columns or features(self.d)

    @property
    def size(self) -> int:
        return len(self.named)

    @property
    def body(self) -> Body:
        return "cube" if self.radius is None else "ball"

    @cached_property
    def box(self) -> tuple[Floats, Floats]:
        """The middle and half the range of each column, each of shape (d,); of a ball, 0 and the radius."""
        if self.radius is not None:
            return np.zeros(self.size), np.full(self.size, self.radius)
        low, high = (self._ends(name, getattr(self, name), default) for name, default in (("low", "0"), ("high", "1")))
        if not (low < high).all() or abs(np.append(low, high)).max() > 1e300:
            bounds = f"low={';'.join(self.low)} and high={';'.join(self.high)}"
            raise InputError(f"the bounds are {bounds}; give numbers up to 1e300, low below high for every column")
        return (low + high) / 2, (high - low) / 2

    def _ends(self, name: str, texts: tuple[str, ...], default: str) -> Floats:
        try:
            numbers = np.array([float(text) for text in texts or (default,)])
        except ValueError:
            raise InputError(f"{name} is {';'.join(texts)!r}; give numbers separated by ';'") from None
        if len(numbers) not in (1, self.size):
            raise InputError(f"there are {len(numbers)} numbers in {name} and {self.size} columns; give one for each, or one for all")
        return np.broadcast_to(numbers, (self.size,))

    def _query(self, body: Body, shrunk: float) -> Coordinates:
        centres, reaches = self.box
        return Coordinates(self.named, tuple(centres.tolist()), tuple((reaches / shrunk).tolist()), body, self.steps)

    def chosen(self, epsilon: float) -> VectorChoice:
        """The randomizer, by closed form or by name."""
        if self.randomizer == "best":
            return best_vector(epsilon, self.body, self.size)
        return next(choice for choice in vector_choices(epsilon, self.body, self.size) if choice.name == self.randomizer)

    def asked(self, epsilon: float, clients: int) -> LocalQuery:
        choice = self.chosen(epsilon)
        randomizer: Randomizer = RANDOMIZERS.build(choice.name, {"epsilon": epsilon, "d": self.size, "steps": self.steps, **dict(choice.settings)})
        assert isinstance(randomizer.domain, Vectors)
        return LocalQuery(self._query("cube" if randomizer.domain.kind == "cube" else "ball", choice.shrunk), randomizer, Cohort(0, clients))

    def clients(self, epsilon: float) -> int:
        z = normal_quantile(BETA / (2 * self.size))
        return math.ceil(self.chosen(epsilon).coordinate * (z / (2 * self.tolerance)) ** 2)

    def algorithm(self, epsilon: float, clients: int) -> Local[FoundVector]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        query, choice = self.asked(epsilon, clients), self.chosen(epsilon)
        centres, reaches = self.box

        def decode(tallies: tuple[Tally, ...]) -> FoundVector:
            estimate = query.randomizer.estimate(tallies[0])
            measured = np.isfinite(estimate.standard_error)  # a coordinate that no client reported has no estimate
            value, error = (np.where(measured, part, np.nan) for part in (estimate.value, estimate.standard_error))
            return FoundVector(replace(estimate, value=value, standard_error=error).on_scale(centres, centres + reaches / choice.shrunk), choice)

        return Nonadaptive((query,), decode)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Of d + 1 kinds, equally likely, the i-th has its first i columns at the upper bound and the others at the lower; in a ball smaller."""
        centres, reaches = self.box
        signs = np.where(np.tri(self.size + 1, self.size, -1) > 0, 1.0, -1.0) * (1.0 if self.radius is None else self.size**-0.5)
        kinds = centres + reaches * signs
        return Finite(Records({name: kinds[:, place] for place, name in enumerate(self.named)}), [1.0] * len(kinds), clients, seed)

    def for_table(self, table: Launch) -> Self:
        if self.radius is None and not (self.low and self.high):
            raise InputError("the means need public bounds: add low=... and high=..., one for each column or one for all, or the radius of a ball")
        for column in self.columns:
            table.records.numbers(column)
            table.refuse_missing(self.missing, column, "missing=middle (it counts as the middle of the bounds)")
        if self.radius is None:
            centres, reaches = self.box
            for column, low, high in zip(self.columns, centres - reaches, centres + reaches, strict=True):
                table.refuse_outside(self.outside, column, low, high, "outside=clip (the means of the clipped numbers), or wider bounds")
        else:
            table.refuse(self.outside, lambda: self._beyond(table.records), f"the norm is above {self.radius:g}", "outside=clip, or a larger radius")
        return self

    def _beyond(self, records: Records) -> Bools:
        return np.asarray(np.linalg.norm(np.nan_to_num(matrix(records, self.columns)), axis=0) > (self.radius or 0.0) * (1 + 1e-12))

    def describe(self, result: FoundVector) -> PlainData:
        total = result.total_error
        return {
            "labels": list(self.named),
            "randomizer": result.choice.name,
            **describe_estimate(result.estimate),
            "total_error": None if math.isnan(total) else total,
        }

    def explain(self, result: FoundVector) -> str:
        return f"All columns together: the standard error of the whole vector, its Euclidean distance from the truth, is {result.total_error:.3g}."

    def truth(self, population: Population) -> Floats:
        """The means in the distribution that the clients are drawn from, of records moved inside, shape (d,)."""
        records, weights = weighted_records(population)
        centres, reaches = self.box
        return centres + reaches * np.average(self._query(self.body, 1.0).values(records), axis=0, weights=weights) / self.steps
