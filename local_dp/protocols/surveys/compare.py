"""A/B comparison: the difference of a share between two groups, whose membership is private as well."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import grouped_clients
from local_dp.checks import check_share
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, parameter, plain
from local_dp.protocols.surveys.frequency import Conditional, frequency_randomizer, largest_error
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.queries.cells import SEPARATOR, Crossed
from local_dp.queries.tables import Question
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.records import Records
from local_dp.tallies import Estimate, Ratio, Tally


@dataclass(frozen=True)
class Comparison:
    """The shares of the two groups, and the second less the first with its standard error and interval."""

    shares: Ratio
    difference: float
    standard_error: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Compare(LocalProtocol[Comparison]):
    """Estimates how much more often `question` is answered yes in the second group than in the first, as in an A/B test.

    Everybody tells group and answer in one report: membership is as private as the answer. Who is in neither group, or has no answer, is refused before the
    run, or excluded by a policy. Privacy: every report is epsilon-locally private. Utility: the 95 % interval covers the difference of the distribution the
    clients are drawn from, among those who are not excluded, also where a group is hardly there: then it is wide. Each group's interval is Fieller's; they
    are put together by recovered variances with the covariance of the two. `tolerance` sets the default number of clients, for groups of equal size.
    Cost: log2 of four cells or one bit a client, one round.
    """

    name: ClassVar[str] = "compare"
    source: ClassVar[str] = "Fieller 1954; Zou, Donner 2008 (recovered variances)"
    example: ClassVar[str] = "--records fair.csv --question 'affairs > 0' --by religious --labels '1;4'"
    question: str = parameter("yes == 1", "a yes/no question about the columns", of_table=True)
    by: str = parameter("group", "the column that says who is in which group", of_table=True)
    labels: tuple[str, ...] = parameter(("A", "B"), "the two groups, public, separated by ';'")
    missing: str = parameter("refuse", "where a missing value leaves the question open: refuse, or exclude (the shares among the others)")
    other: str = parameter("refuse", "who is in neither group: refuse, or exclude")
    p: float = parameter(0.3, "without a table: the share of yes in the first group")
    q: float = parameter(0.4, "without a table: the share of yes in the second group")
    tolerance: float = parameter(0.05, "the default number of clients is for shares within this, both together, with probability 95 %", unit="share")

    def check(self) -> None:
        for name, share in (("p", self.p), ("q", self.q), ("tolerance", self.tolerance)):
            check_share(name, share)
        check_policy("missing", self.missing, ("refuse", "exclude"))
        check_policy("other", self.other, ("refuse", "exclude"))
        if len(self.labels) != 2 or self.labels[0] == self.labels[1]:
            raise InputError(f"the groups are {self.labels!r}; give two different ones")

    @property
    def query(self) -> Crossed:
        """The query that is put to every client: group and answer, or that there is none."""
        return Crossed((self.by, self.question), (SEPARATOR.join(self.labels), ""), ("none",) if "exclude" in (self.missing, self.other) else ())

    @property
    def cells(self) -> Conditional:
        """The shares of yes among the cells of each group."""
        cells = np.eye(self.query.domain.size)  # no and yes of the first group, then of the second, then those without a place
        return Conditional(cells[1:4:2], cells[0:4:2] + cells[1:4:2])

    def clients(self, epsilon: float) -> int:
        return grouped_clients(epsilon, 2, self.tolerance, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[Comparison]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        cells = self.cells
        oracle = frequency_randomizer(epsilon, self.query.domain.size)
        return Nonadaptive((LocalQuery(self.query, oracle, Cohort(0, clients)),), lambda told: compared(oracle, told[0], cells))

    def synthetic(self, clients: int, seed: int) -> Population:
        """Two groups of the same size."""
        kinds = Records({self.by: np.repeat(np.array(self.labels), 2), "yes": np.tile(np.arange(2, dtype=np.uint8), 2)})
        return Finite(kinds, [1 - self.p, self.p, 1 - self.q, self.q], clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.refuse_open(self.missing, Question(self.question), "missing=exclude")
        return replace(self, labels=table.groups(self.by, self.labels, False, self.other))

    def describe(self, result: Comparison) -> PlainData:
        shares, (low, high) = result.shares, result.interval
        rows = np.stack(shares.interval(), axis=-1)
        return {
            "labels": [*self.labels, f"{self.labels[1]} less {self.labels[0]}"],
            "estimate": plain(np.append(shares.value, result.difference)),
            "standard_error": plain(np.append(shares.standard_error, result.standard_error)),
            "interval": plain(np.vstack([rows, [low, high]])),
            "n": shares.n,
        }

    def truth(self, population: Population) -> Floats:
        """The two shares and their difference in the distribution that the clients are drawn from, shape (3,)."""
        shares = self.cells.of(population.law(self.query))
        return np.append(shares, shares[1] - shares[0])

    def true_error(self, result: Comparison, population: Population) -> float:
        return largest_error(np.append(result.shares.value, result.difference), self.truth(population))


def compared(oracle: FrequencyOracle, tally: Tally, cells: Conditional) -> Comparison:
    """The comparison of two groups from the tally of their cells."""
    joint = oracle.joint(tally, np.concatenate([cells.parts, cells.wholes]))
    shares = joint.ratio([0, 1], [2, 3])
    slopes = np.array([[1, 0, -shares.value[0], 0], [0, 1, 0, -shares.value[1]]]) / np.maximum(joint.value[2:], 1e-300)[:, None]
    spread = slopes @ joint.covariance @ slopes.T
    known = bool(np.isfinite(spread).all() and (np.diag(spread) > 0).all())
    correlation = float(np.clip(spread[0, 1] / math.sqrt(spread[0, 0] * spread[1, 1]), -1.0, 1.0)) if known else 0.0
    error = math.sqrt(max(0.0, spread[0, 0] + spread[1, 1] - 2 * spread[0, 1])) if known else math.nan
    return Comparison(shares, float(shares.value[1] - shares.value[0]), error, _recovered(shares, correlation))


def _recovered(shares: Estimate, correlation: float) -> tuple[float, float]:
    """The interval of the second less the first: their own intervals' reaches put together as standard errors would be. The whole range where unknown."""
    low, high = shares.interval()
    first, second = shares.value
    if not (low[0] <= first <= high[0] and low[1] <= second <= high[1]):  # NaN, or an estimate outside [0, 1], whose interval is cut
        return float(low[1] - high[0]), float(high[1] - low[0])

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(0.0, a * a + b * b - 2 * correlation * a * b))

    difference = second - first
    return float(difference - reach(second - low[1], high[0] - first)), float(difference + reach(high[1] - second, first - low[0]))
