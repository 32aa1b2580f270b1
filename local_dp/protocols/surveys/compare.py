"""Groups side by side: a weighted sum of their shares or means with an interval of its own, such as
a difference, or a post-stratified share."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim
from local_dp.bounds.frequencies import grouped_clients
from local_dp.bounds.response import levelled_clients, rr_clients
from local_dp.checks import check_built, check_shares, check_whole
from local_dp.errors import InputError
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    MeanProtocol,
    PlainData,
    describe_estimate,
    numbers_in,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.surveys.frequency import Conditional, frequency_randomizer
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.cells import SEPARATOR, Crossed
from local_dp.queries.tables import Question
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Z95, Estimate, Possible, Ratio, Tally


@dataclass(frozen=True)
class Combined(Estimate):
    """The shares or means of m groups, and at last their sum with `weights`: shape (m + 1,).
    `correlation` is that of the groups, shape (m, m)."""

    parts: Ratio = field(kw_only=True)
    weights: Floats = field(kw_only=True)
    correlation: Floats = field(kw_only=True)

    @classmethod
    def of(cls, parts: Ratio, weights: Floats, correlation: Floats) -> Self:
        errors = weights * parts.standard_error
        value = np.append(parts.value, weights @ parts.value)
        variance = max(0.0, float(errors @ correlation @ errors))
        error = np.append(parts.standard_error, math.sqrt(variance))
        return cls(value, error, parts.n, parts=parts, weights=weights, correlation=correlation)

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        """Those of the groups; of the sum their half-widths combined as standard errors would be.
        Source: Zou, Donner 2008 (recovered variances).

        An end that is cut at the range, and one of a group whose value is not inside its interval,
        adds up in full: it is no multiple of a standard error.
        """
        low, high = self.parts.interval(z)
        value = self.parts.value
        first, width = self.parts.scale
        up = self.weights > 0

        def end(ends: Floats, side: int) -> float:
            whole = (ends == first) | (ends == first + width) | ~((low <= value) & (value <= high))
            away = np.where(whole, 0.0, self.weights * np.abs(value - ends))
            middle = float(self.weights @ np.where(whole, ends, value))
            return middle + side * math.sqrt(max(0.0, float(away @ self.correlation @ away)))

        least = end(np.where(up, low, high), -1)
        most = end(np.where(up, high, low), 1)
        return np.append(low, least), np.append(high, most)


def combined(
    oracle: FrequencyOracle,
    tally: Tally,
    cells: Conditional,
    weights: Floats,
    scale: tuple[float, float] = (0.0, 1.0),
) -> Combined:
    """The groups' shares, with 0 and 1 moved to the ends of `scale`, and their weighted sum."""
    joint = oracle.joint(tally, np.concatenate([cells.parts, cells.wholes]))
    shares = cells.estimate(oracle, tally)
    # each times its group's share of the clients: the correlations are the same
    slopes = np.hstack([np.eye(len(weights)), -np.diag(shares.value)])
    spread = slopes @ joint.covariance @ slopes.T
    errors = np.sqrt(np.maximum(np.diag(spread), 0.0))
    products = np.outer(errors, errors)
    with np.errstate(all="ignore"):
        correlation = np.clip(spread / products, -1.0, 1.0)
    correlation = np.where(products > 0, correlation, np.eye(len(weights)))
    return Combined.of(shares.on_scale(*scale), weights, correlation)


def pairs(count: int, k: int) -> Conditional:
    """The share of the second symbol among both, in each of the first `count` pairs of k
    symbols."""
    symbols = np.eye(k)
    seconds = symbols[1 : 2 * count : 2]
    return Conditional(seconds, symbols[0 : 2 * count : 2] + seconds)


@dataclass(frozen=True)
class Shown(Estimate):
    """The estimates at `places` alone: those of the other groups are nowhere in it."""

    estimate: Estimate = field(kw_only=True)
    places: tuple[int, ...] = field(kw_only=True)

    @classmethod
    def of(cls, estimate: Estimate, places: tuple[int, ...]) -> Self:
        value, error = estimate.value, estimate.standard_error
        return cls(value, error, estimate.n, estimate=estimate, places=places)

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        return self.estimate.interval(z)

    def within(self, possible: Possible) -> "Shown":
        return Shown.of(self.estimate.within(possible), self.places)


class OfGroups(MeanProtocol):
    """The mean of everybody, or the mean within each group of the column `by`. With `weights` also
    the mean of a population whose groups have these sizes. A group with an estimated count below
    `minimum` is withheld, and then so is this mean, from which it could be computed. Subclasses are
    dataclasses with these fields."""

    by: str
    labels: tuple[str, ...]
    labels_from_data: bool
    weights: tuple[str, ...]
    minimum: int
    missing: str
    other: str
    tolerance: float

    @abstractmethod
    def group_oracle(self, epsilon: float) -> FrequencyOracle:
        """The randomizer of a value together with its group."""

    def check(self) -> None:
        check_whole("minimum", self.minimum, 0, 1 << 40)
        if self.minimum and not self.by:
            raise InputError("minimum is about groups: name their column (by), or leave it out")
        if self.weights:
            check_built(self.population_shares)

    def check_groups(self) -> None:
        """Raises InputError for groups that are not listed."""
        if self.by and not self.labels:
            raise InputError(
                f"the groups of {self.by!r} are public: list them, as in labels='first;second'"
            )

    @property
    def whole(self) -> bool:
        """True if everybody is averaged together: then one bit a client is enough."""
        return not self.by and self.missing != "exclude"

    @property
    def population_shares(self) -> Floats:
        """The share of each group in the population, from public shares or numbers of people.
        Raises InputError."""
        if not self.by or self.labels_from_data:
            raise InputError(
                "weights are the sizes of public groups: name their column (by) and list them in "
                "the order of the weights (labels)"
            )
        sizes = numbers_in("weights", self.weights)
        if len(sizes) != len(self.labels) or not np.all((sizes > 0) & np.isfinite(sizes)):
            raise InputError(
                f"weights is {';'.join(self.weights)!r}; give a positive number for each of the "
                f"{len(self.labels)} groups, its size in the population"
            )
        return np.asarray(sizes / sizes.sum())

    def clients(self, epsilon: float) -> int:
        if self.whole:
            clients = rr_clients(epsilon, 2 * self.tolerance, BETA)
            return max(math.ceil(clients * self.times(epsilon)), levelled_clients(epsilon))
        return grouped_clients(epsilon, max(1, len(self.labels)), self.tolerance, BETA)

    def times(self, epsilon: float) -> float:
        """How many times the clients of one optimal bit the randomizer that is plugged in takes."""
        if self.need is None:
            return 1.0
        return self.need.times(vars(self)["randomizer"], BinaryRR(epsilon), self.name)

    def aim(self) -> Aim | None:
        return super().aim() if self.whole else None

    def algorithm(self, epsilon: float, clients: int) -> Local[Estimate]:
        if self.whole:
            return super().algorithm(epsilon, clients)
        oracle = self.group_oracle(epsilon)
        cells = self.cells(oracle.shares)

        def read(tally: Tally) -> Estimate:
            means = cells.estimate(oracle, tally).on_scale(*self.scale)
            if not self.by:
                return means.at(0)
            # b of a quotient is the share of its group
            shown = means.moments[1] * tally.answered >= self.minimum
            if self.minimum and not shown.all():
                places = np.flatnonzero(shown)
                return Shown.of(means.at(places), tuple(places.tolist()))
            if self.weights:
                return combined(oracle, tally, cells, self.population_shares, self.scale)
            return means

        return ask_all(self.query, oracle, clients, read)

    def cells(self, k: int) -> Conditional:
        """The mean of each group as the share of its second symbol among its two, of k."""
        return pairs(len(self.labels) if self.by else 1, k)

    def for_groups(self, table: Launch) -> Self:
        """The protocol with the labels of its groups, once the policies cover every group."""
        if not self.by:
            return self
        labels = table.groups(self.by, self.labels, self.labels_from_data, self.other)
        settings: dict[str, Any] = {"labels": labels}
        return replace(self, **settings)

    def describe(self, result: Estimate) -> PlainData:
        if not self.by:
            return describe_estimate(result)
        labels = [*self.labels, *(["all, weighted"] if self.weights else [])]
        data = {"by": self.by, "labels": labels, **describe_estimate(result)}
        if not isinstance(result, Shown):
            return data
        shown = [labels[place] for place in result.places]
        return data | {"labels": shown, "withheld": [each for each in labels if each not in shown]}

    def truth_of(self, result: Estimate, population: Population) -> Floats:
        truth = self.truth(population)
        return truth[[*result.places]] if isinstance(result, Shown) else truth

    def of_groups(self, means: Floats) -> Floats:
        """The numbers of a result, from the mean of each group, or of all in the place of one."""
        if self.weights:
            return np.append(means, self.population_shares @ means)
        return means if self.by else np.asarray(means[0])


@dataclass(frozen=True)
class Compare(LocalProtocol[Combined]):
    """Estimates how much more often `question` is answered yes in the second group than in the
    first, as in an A/B test.

    One report encodes group and answer together, so membership is as private as the answer. Records
    of neither group, or without an answer, stop the run, or are excluded by a policy. Privacy:
    every report is epsilon-locally private. Utility: the 95 % interval covers the difference, also
    where a group is rare: then it is wide. It combines both groups' intervals by recovered
    variances, with their covariance. `tolerance` sets the default number of clients, for groups of
    equal size. Cost: log2 of four cells or one bit a client, one round.
    """

    name = "compare"
    summary = "Compares the shares of yes in two groups, as in an A/B test"
    source = "Fieller 1954; Zou, Donner 2008 (recovered variances)"
    example = "--records fair.csv --question 'affairs > 0' --by religious --labels '1;4'"
    question: str = parameter("yes == 1", "Yes/no question about the columns", of_table=True)
    by: str = parameter("group", "Column that names the group of each record", of_table=True)
    labels: tuple[str, ...] = parameter(("A", "B"), "The two groups, public", of_table=True)
    missing: str = policy("records without an answer", exclude="shares among the others")
    other: str = policy("records in neither group", exclude="")
    p: float = parameter(0.3, "Without a table: share of yes in the first group")
    q: float = parameter(0.4, "Without a table: share of yes in the second group")
    tolerance: float = target_error(0.05)

    def check(self) -> None:
        check_shares(p=self.p, q=self.q)
        if len(self.labels) != 2 or self.labels[0] == self.labels[1]:
            raise InputError(f"the groups are {self.labels!r}; give two different ones")

    @property
    def query(self) -> Crossed:
        return Crossed(
            (self.by, self.question),
            (SEPARATOR.join(self.labels), ""),
            ("none",) if "exclude" in (self.missing, self.other) else (),
        )

    @property
    def cells(self) -> Conditional:
        """The shares of yes among the cells of each group."""
        return pairs(2, self.query.domain.size)

    def possible(self, result: Combined) -> Possible:
        return Possible(np.array([0.0, 0.0, -1.0]), np.ones(3))

    def clients(self, epsilon: float) -> int:
        return grouped_clients(epsilon, 2, self.tolerance, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[Combined]:
        oracle = frequency_randomizer(epsilon, self.query.domain.size)
        return ask_all(
            self.query,
            oracle,
            clients,
            lambda tally: combined(oracle, tally, self.cells, np.array([-1.0, 1.0])),
        )

    def synthetic(self, clients: int, seed: int) -> Population:
        kinds = Records(
            {
                self.by: np.repeat(np.array(self.labels), 2),
                "yes": np.tile(np.arange(2, dtype=np.uint8), 2),
            }
        )
        return Finite(kinds, [1 - self.p, self.p, 1 - self.q, self.q], clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.refuse_open(self.missing, Question(self.question), "missing=exclude")
        return replace(self, labels=table.groups(self.by, self.labels, None, self.other))

    def describe(self, result: Combined) -> PlainData:
        return {
            "labels": [*self.labels, f"{self.labels[1]} less {self.labels[0]}"],
            **describe_estimate(result),
        }

    def truth(self, population: Population) -> Floats:
        shares = self.cells.of(population.law(self.query))
        return np.append(shares, shares[1] - shares[0])
