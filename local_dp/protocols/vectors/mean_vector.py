"""The mean of several numeric columns together, as one vector: of a box of public bounds, or of a
Euclidean ball."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, get_args

import numpy as np

from local_dp.arrays import Bools, Floats
from local_dp.bounds.best import Aim
from local_dp.bounds.means import (
    TARGETS,
    Body,
    VectorChoice,
    best_mean,
    best_vector,
    mean_variances,
    vector_choices,
)
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_built, check_positive, check_share, check_whole
from local_dp.domains import MAX_DIMENSION, vectors
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.learners.learner import features
from local_dp.loss import Pure, nano_epsilon
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.populations.finite import Finite, Population, weighted_records
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    PlainData,
    describe_estimate,
    numbers_in,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.needs import Need
from local_dp.protocols.surveys.compare import OfGroups
from local_dp.protocols.surveys.policies import Launch, ends_of
from local_dp.protocols.surveys.target import of_records
from local_dp.queries.cells import Grouped
from local_dp.queries.query import STEPS, matrix, written
from local_dp.queries.tables import Bounded, Stepped
from local_dp.queries.vectors import Coordinates
from local_dp.randomizers.numbers.rounded import OneBitMean, Rounded, rounded_randomizer
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS, made_for
from local_dp.randomizers.table import NumberTable
from local_dp.records import Records
from local_dp.tallies import Estimate, Possible, Tally

_SYNTHETIC_STEPS = 100
# the lattice of a number within its group: every client can enumerate the channel of many groups
_GROUP_STEPS = 1 << 12


@dataclass(frozen=True)
class Mean(OfGroups):
    """Estimates the mean of `column` between the public bounds [`low`, `high`]; without a table, of
    a column in [0, 1] with mean `p`.

    With `by`, the mean within each group of that column, and with `weights` also that of a
    population whose groups have these sizes. The bounds are not read from the data, which they
    would reveal. A number beyond them stops the run or is clipped ("clip"); a missing one stops it
    or is left out ("exclude"). Privacy: every report is epsilon-locally private. Utility: of
    everybody, standard error at most C (high - low) / (2 sqrt n): first-order minimax (limits 1,
    Theorem 1). `of` records, the default, is the mean of these people: then `best` takes the least
    noise at the worst number, from epsilon .7 on `hybrid` or `piecewise`, and the interval leaves
    the sample out. With groups or "exclude" the mean is always the population's. `tolerance`, a
    share of the range, sets the default number of clients: within it with probability 95 %, and of
    everybody the interval keeps its level. Cost: one bit a client, or log2 of the groups or of a
    number's reports; one round.
    """

    name = "mean"
    asks = ("one-bit-mean", "hybrid", "piecewise", "staircase", "rounded-grr", "rounded-oracle")
    summary = "Estimates the mean of a column between public bounds"
    source = "Duchi, Jordan, Wainwright 2013"
    example = "--records fair.csv --column age --low 15 --high 45"
    column: str = parameter("value", "Column that is averaged", of_table=True)
    low: float | None = parameter(None, "Public lower bound; needed with a table")
    high: float | None = parameter(None, "Public upper bound; needed with a table")
    outside: str = policy("numbers beyond the bounds", clip="they count as the nearer bound")
    missing: str = policy("missing numbers", exclude="the mean of those present")
    by: str = parameter("", "Column of groups, for a mean within each group")
    labels: tuple[str, ...] = parameter((), "The public groups")
    labels_from_data: bool = parameter(
        False, "Read the groups from the table, and publish them", help="In a simulation only"
    )
    weights: tuple[str, ...] = parameter(
        (),
        "Size of each group in the population, public",
        help="Adds the mean of all, weighted by these sizes",
    )
    minimum: int = parameter(
        0,
        "Withhold groups below this count",
        help="By estimate; names are shown, numbers are not",
    )
    other: str = policy("unlisted groups", exclude="")
    of: str = parameter("records", "Whose average it is", choices=TARGETS)
    randomizer: str = parameter(
        "best", "Randomizer of numbers", help="best: the one of least error for this target"
    )
    p: float = parameter(0.3, "Without a table: the mean, 0 to 1")
    tolerance: float = target_error(0.05, "share of the range")

    def check(self) -> None:
        check_share("p", self.p)
        check_built(self.bounded)
        super().check()
        if not self.whole and self.randomizer != "best":
            raise InputError(
                f"{self.randomizer} takes a number alone; with groups or missing=exclude leave out "
                "randomizer"
            )

    @property
    def bounded(self) -> Bounded:
        return Bounded(self.column, *ends_of(self.low, self.high))

    @property
    def grouped(self) -> Grouped:
        """A number with its group."""
        self.check_groups()
        steps = _GROUP_STEPS if self.by else STEPS
        return Grouped(self.column, *self.scale, self.by, self.labels, steps)

    @property
    def query(self) -> Bounded | Grouped:
        return self.bounded if self.whole else self.grouped

    def randomizer_for(self, epsilon: float) -> Randomizer:
        which = best_mean(epsilon, self.of) if self.randomizer == "best" else self.randomizer
        kind = RANDOMIZERS.resolve(which)[0]
        is_fine = kind is OneBitMean or getattr(kind, "table", None) is NumberTable.table
        fine = {"steps": STEPS} if is_fine else {}
        randomizer = made_for(which, epsilon, **{"k": 2, "d": 2, "length": 2, **fine})
        if randomizer.domain.kind != "levels" or randomizer.estimates != "averages":
            raise InputError(
                f"{randomizer.name} is no randomizer of numbers in [0, 1] whose estimate is their "
                f"average; give one, such as {', '.join(mean_variances(epsilon))}"
            )
        if not isinstance(randomizer.loss, Pure):
            raise InputError(f"{which} loses {randomizer.loss}; give a randomizer of pure loss")
        return randomizer

    def query_for(self, randomizer: Randomizer) -> Bounded:
        """The number, on the randomizer's lattice."""
        steps = randomizer.domain.high
        return self.bounded if steps == STEPS else Stepped(self.column, *self.scale, steps)

    def read(self, randomizer: Randomizer, tally: Tally) -> Estimate:
        estimate: Estimate = randomizer.estimate(tally)
        return of_records(randomizer, tally, estimate) if self.of == "records" else estimate

    def aim(self) -> Aim | None:
        return Aim.mean(STEPS, self.of) if self.whole else None

    def times(self, epsilon: float) -> float:
        if self.randomizer == "best":
            return 1.0
        made = self.randomizer_for(epsilon), OneBitMean(epsilon)
        own, usual = (Need(each.domain).spread(each) for each in made)
        return own / usual if math.isfinite(own) else 1.0

    def reason(self, epsilon: float) -> str:
        name = best_mean(epsilon, self.of)
        if not self.whole or self.randomizer != "best" or name == OneBitMean.name:
            return ""
        variances = mean_variances(epsilon, self.of)
        times = variances[OneBitMean.name] / variances[name]
        return f"{name}: {times:.2g} times fewer people than {OneBitMean.name} here."

    @property
    def scale(self) -> tuple[float, float]:
        return self.bounded.low, self.bounded.high

    def group_oracle(self, epsilon: float) -> Rounded:
        return rounded_randomizer(epsilon, self.grouped.groups, self.grouped.steps)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Binomial(100, p) / 100, stretched to the bounds."""
        self.check_without_table("groups (by)", self.by)
        steps = _SYNTHETIC_STEPS
        level = np.arange(steps + 1)
        odds = np.cumsum(np.log(steps - level[:-1]) - np.log(level[1:]))
        log_law = np.concatenate([[0.0], odds]) + level * np.log(self.p / (1 - self.p))
        kinds = Records({self.column: self.bounded.in_units(level / steps)})
        return Finite(kinds, np.exp(log_law - log_law.max()), clients, seed)

    def for_table(self, table: Launch) -> Self:
        more = ", or let mean-found find them"
        table.bounded(self.column, self.low, self.high, "the mean", more)
        table.refuse_missing(
            self.missing, self.column, "missing=exclude (the mean of those present)"
        )
        choices = "outside=clip (the mean of the clipped numbers), or wider bounds"
        table.refuse_outside(self.outside, self.column, *self.scale, choices)
        return self.for_groups(table)

    def describe(self, result: Estimate) -> PlainData:
        low, high = self.scale
        return {"column": self.column, "low": low, "high": high, **super().describe(result)}

    def truth(self, population: Population) -> Floats:
        """The mean of the clients, or in the distribution that they are drawn from, of those
        present, clipped to the bounds; shape () or (groups,)."""
        if self.whole:
            law = population.own_law if self.of == "records" else population.law
            latest = population.latest[0]  # on the lattice of the randomizer
            return self.mean(law(latest if isinstance(latest, Stepped) else self.query))
        query = self.grouped
        cells = population.law(query)[:-1].reshape(query.groups, query.steps + 1)
        with np.errstate(all="ignore"):
            shares = cells @ np.arange(query.steps + 1) / query.steps / cells.sum(axis=1)
        return self.of_groups(self.bounded.in_units(shares))


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
    """Estimates the means of `columns` together: of records in a box, each column between public
    bounds, or with `radius` in the ball of this radius about 0.

    One report covers the whole record: epsilon / d for each of d columns would have about d times
    the variance. The randomizer has the least mean squared error at this epsilon and d by closed
    form (`bounds.means.vector_choices`). Privacy: every report is epsilon-locally private. Utility:
    unbiased up to the grid. Below epsilon 2 the variance of a coordinate is about d C^2 in a box,
    in units of half its range squared. In a ball it is about (pi / 2) d C^2 in all. `tolerance`
    sets the default number of clients: all coordinates within it with probability 95 %. Cost: 1 to
    12 bits a client, one round.
    """

    name = "mean-vector"
    summary = "Estimates the means of several columns from one report each"
    source = "Duchi, Jordan, Wainwright 2018; Nguyen et al. 2016; Bhowmick et al. 2018"
    example = "--records fair.csv --columns 'age;educ;yrs_married' --low '15;8;0' --high '45;20;25'"
    columns: tuple[str, ...] = parameter((), "Columns that are averaged", of_table=True)
    low: tuple[str, ...] = parameter(
        (),
        "Public lower bound of each column, or one for all",
        help="Needed with a table, unless a radius is given",
    )
    high: tuple[str, ...] = parameter((), "Public upper bound of each column, or one for all")
    radius: float | None = parameter(
        None, "Instead of bounds: the public largest norm of a record", help="The Euclidean norm"
    )
    outside: str = policy(
        "records beyond the bounds", clip="they count as the nearest record inside"
    )
    missing: str = policy("missing numbers", middle="they count as the middle of the bounds")
    randomizer: str = parameter(
        "best",
        "Randomizer of vectors; best: the one of least error",
        help="Of a ball in a box: the box shrunk into the ball",
    )
    steps: int = parameter(
        1 << 14,
        "Steps of the grid from the middle to either bound",
        help="A power of two up to 16384",
    )
    d: int = parameter(4, "Without a table: number of columns")
    tolerance: float = target_error(0.05, "share of a range")

    def check(self) -> None:
        check_whole("d", self.d, 1, MAX_DIMENSION)
        if self.radius is not None:
            check_positive("radius", self.radius)
            if self.low or self.high:
                raise InputError(
                    "there are bounds and a radius; give either: a box of bounds, or a ball"
                )
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
        """The middle and half the range of each column, each of shape (d,); of a ball, 0 and the
        radius."""
        if self.radius is not None:
            return np.zeros(self.size), np.full(self.size, self.radius)
        low = self._ends("low", self.low, "0")
        high = self._ends("high", self.high, "1")
        if not (low < high).all() or abs(np.append(low, high)).max() > 1e300:
            bounds = f"low={';'.join(self.low)} and high={';'.join(self.high)}"
            raise InputError(
                f"the bounds are {bounds}; give numbers up to 1e300, low below high for every "
                "column"
            )
        return (low + high) / 2, (high - low) / 2

    def possible(self, result: FoundVector) -> Possible:
        centres, reaches = self.box
        return Possible(centres - reaches, centres + reaches)

    def _ends(self, name: str, texts: tuple[str, ...], default: str) -> Floats:
        numbers = numbers_in(name, texts or (default,))
        if len(numbers) not in (1, self.size):
            raise InputError(
                f"there are {len(numbers)} numbers in {name} and {self.size} columns; give one "
                "for each, or one for all"
            )
        return np.broadcast_to(numbers, (self.size,))

    def _query(self, body: Body, shrunk: float) -> Coordinates:
        centres, reaches = self.box
        return Coordinates(self.named, written(centres), written(reaches), body, self.steps, shrunk)

    def chosen(self, epsilon: float) -> VectorChoice:
        """The randomizer, by closed form or by name; of one without a form the error is that of the
        best."""
        best = best_vector(epsilon, self.body, self.size)
        if self.randomizer == "best":
            return best
        for choice in vector_choices(epsilon, self.body, self.size):
            if choice.name == self.randomizer:
                return choice
        kind = self.need.randomizer(self.randomizer, epsilon, self.name).domain.kind
        shrunk = self.size**-0.5 if self.body == "cube" and kind == "ball" else 1.0
        return replace(best, name=self.randomizer, shrunk=shrunk, settings=())

    @property
    def need(self) -> Need:
        cube, ball = (Need(vectors(body, self.size, self.steps)) for body in get_args(Body))
        one, other = (cube, ball) if self.body == "cube" else (ball, cube)
        return replace(one, others=(other,))

    def asked(self, epsilon: float, clients: int) -> LocalQuery:
        choice = self.chosen(epsilon)
        settings = dict(choice.settings)
        randomizer = self.need.randomizer(choice.name, epsilon, self.name, **settings)
        body: Body = "cube" if randomizer.domain.kind == "cube" else "ball"
        query = self._query(body, choice.shrunk)
        return LocalQuery(query, randomizer, Cohort(0, clients))

    def clients(self, epsilon: float) -> int:
        z = normal_quantile(BETA / (2 * self.size))
        return math.ceil(self.chosen(epsilon).coordinate * (z / (2 * self.tolerance)) ** 2)

    def algorithm(self, epsilon: float, clients: int) -> Local[FoundVector]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        query = self.asked(epsilon, clients)
        choice = self.chosen(epsilon)
        centres, reaches = self.box
        assert isinstance(query.query, Coordinates)
        ends = centres, centres + reaches / query.query.scale

        def decode(tallies: tuple[Tally, ...]) -> FoundVector:
            estimate = query.randomizer.estimate(tallies[0])
            # a coordinate that no client reported has no estimate
            missing = ~np.isfinite(estimate.standard_error)
            value = np.where(missing, np.nan, estimate.value)
            error = np.where(missing, np.nan, estimate.standard_error)
            estimate = replace(estimate, value=value, standard_error=error)
            return FoundVector(estimate.on_scale(*ends), choice)

        return Nonadaptive((query,), decode)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Of d + 1 kinds, equally likely, the i-th has its first i columns at the upper bound and
        the others at the lower; in a ball smaller."""
        centres, reaches = self.box
        signs = np.where(np.tri(self.size + 1, self.size, -1) > 0, 1.0, -1.0)
        if self.radius is not None:
            signs *= self.size**-0.5
        columns = (centres + reaches * signs).T
        kinds = Records(dict(zip(self.named, columns, strict=True)))
        return Finite(kinds, np.ones(len(signs)), clients, seed)

    def for_table(self, table: Launch) -> Self:
        if self.radius is None and not (self.low and self.high):
            raise InputError(
                "the means need public bounds: add bounds=(low, high), one for each column or one "
                "for all, or the radius of a ball"
            )
        for column in self.columns:
            table.types.numbers(column)
            table.refuse_missing(
                self.missing, column, "missing=middle (it counts as the middle of the bounds)"
            )
        if self.radius is None:
            centres, reaches = self.box
            choices = "outside=clip (the means of the clipped numbers), or wider bounds"
            for place, column in enumerate(self.columns):
                low = centres[place] - reaches[place]
                high = centres[place] + reaches[place]
                table.refuse_outside(self.outside, column, low, high, choices)
        else:
            table.refuse(
                self.outside,
                self._beyond,
                f"the norm is above {self.radius:g}",
                "outside=clip, or a larger radius",
            )
        return self

    def _beyond(self, records: Records) -> Bools:
        norms = np.linalg.norm(np.nan_to_num(matrix(records, self.columns)), axis=0)
        return np.asarray(norms > (self.radius or 0.0) * (1 + 1e-12))

    def describe(self, result: FoundVector) -> PlainData:
        total = result.total_error
        return {
            "labels": list(self.named),
            "randomizer": result.choice.name,
            **describe_estimate(result.estimate),
            "total_error": None if math.isnan(total) else total,
        }

    def explain(self, result: FoundVector) -> str:
        return (
            "All columns together: the standard error of the whole vector, its Euclidean distance "
            f"from the truth, is {result.total_error:.3g}."
        )

    def truth(self, population: Population) -> Floats:
        """The means in the distribution that the clients are drawn from, of records moved inside,
        shape (d,)."""
        records, weights = weighted_records(population)
        centres, reaches = self.box
        query = self._query(self.body, 1.0)
        places = weights @ query.values(records) / weights.sum()
        return np.asarray(centres + reaches * places / query.scale / self.steps)
