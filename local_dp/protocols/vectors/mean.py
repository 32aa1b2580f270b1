"""The mean of a bounded numeric column, of all or group by group."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim
from local_dp.bounds.frequencies import grouped_clients
from local_dp.bounds.response import levelled_clients, rr_clients
from local_dp.checks import check_built, check_share
from local_dp.errors import InputError
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import BETA, MeanProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.frequency import Conditional
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.queries.cells import Grouped
from local_dp.queries.numbers import STEPS
from local_dp.queries.tables import Bounded
from local_dp.randomizers.numbers.one_bit_mean import OneBitMean
from local_dp.randomizers.numbers.rounded import rounded_randomizer
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally

_SYNTHETIC_STEPS = 100
_GROUP_STEPS = 1 << 12  # the lattice of a number within its group: every client can enumerate the channel of many groups


@dataclass(frozen=True)
class Mean(MeanProtocol):
    """Estimates the mean of `column` between the public bounds [`low`, `high`]; without a table, of a column in [0, 1] with mean `p`.

    With `by`, the mean within each group of that column. The bounds are not read from the data, which they would reveal. A number beyond them stops the run or
    is clipped ("clip"); a missing one stops it or is left out ("exclude"). Privacy: every report is epsilon-locally private. Utility: of everybody, standard
    error at most C (high - low) / (2 sqrt n): minimax (limits 1, Theorem 1). `tolerance`, a share of the range, sets the default number of clients: within
    it with probability 95 %, and of everybody the interval keeps its level. Cost: one bit a client, or log2 of the groups; one round.
    """

    name: ClassVar[str] = "mean"
    source: ClassVar[str] = "Duchi, Jordan, Wainwright 2013"
    example: ClassVar[str] = "--records fair.csv --column age --low 15 --high 45"
    column: str = parameter("value", "the column that is averaged", of_table=True)
    low: float | None = parameter(None, "the least value, public; needed with a table", unit="of the column")
    high: float | None = parameter(None, "the greatest value, public; needed with a table", unit="of the column")
    outside: str = parameter("refuse", "a number beyond the bounds: refuse, or clip (it counts as the nearer bound)")
    missing: str = parameter("refuse", "a missing number: refuse, or exclude (the mean of those present)")
    by: str = parameter("", "a column whose groups are averaged one by one")
    labels: tuple[str, ...] = parameter((), "the groups, public, separated by ';'")
    labels_from_data: bool = parameter(False, "read the groups from the table: in a simulation only, for it publishes them")
    other: str = parameter("refuse", "a group that is not listed: refuse, or exclude")
    p: float = parameter(0.3, "without a table: the mean of the made-up column, as a share of the range")
    tolerance: float = parameter(0.05, "error in 95 % of runs; sets the default number of clients", unit="share of the range")

    def check(self) -> None:
        check_share("p", self.p)
        check_share("tolerance", self.tolerance)
        check_policy("outside", self.outside, ("refuse", "clip"))
        check_policy("missing", self.missing, ("refuse", "exclude"))
        check_policy("other", self.other, ("refuse", "exclude"))
        check_built(self.bounded)

    @property
    def bounded(self) -> Bounded:
        return Bounded(self.column, 0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high)

    @property
    def plain(self) -> bool:
        """Whether all numbers are averaged together: then one bit a client is enough."""
        return not self.by and self.missing == "refuse"

    @property
    def query(self) -> Bounded | Grouped:
        if self.plain:
            return self.bounded
        if self.by and not self.labels:
            raise InputError(f"the groups of {self.by!r} are public: list them, as in labels='first;second'")
        return Grouped(self.column, self.bounded.low, self.bounded.high, self.by, self.labels, _GROUP_STEPS if self.by else STEPS)

    def clients(self, epsilon: float) -> int:
        if self.plain:
            return max(rr_clients(epsilon, 2 * self.tolerance, BETA), levelled_clients(epsilon))
        return grouped_clients(epsilon, max(1, len(self.labels)), self.tolerance, BETA)

    def aim(self) -> Aim | None:
        return super().aim() if self.plain else None

    def randomizer_for(self, epsilon: float) -> Randomizer:
        return OneBitMean(epsilon, steps=STEPS)

    @property
    def scale(self) -> tuple[float, float]:
        return self.bounded.low, self.bounded.high

    def algorithm(self, epsilon: float, clients: int) -> Local[Estimate]:
        query = self.query
        if isinstance(query, Bounded):
            return super().algorithm(epsilon, clients)
        rounded, ends = rounded_randomizer(epsilon, query.groups, query.steps), upper_ends(query.groups)

        def read(tally: Tally) -> Estimate:
            means = ends.estimate(rounded, tally).on_scale(*self.scale)
            return means if self.by else means.at(0)

        return ask_all(query, rounded, clients, read)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Binomial(100, p) / 100, stretched to the bounds."""
        if self.by:
            raise InputError("groups (by) are of a table: add --records")
        share = np.arange(_SYNTHETIC_STEPS + 1) / _SYNTHETIC_STEPS
        odds = np.cumsum(np.log(_SYNTHETIC_STEPS - np.arange(_SYNTHETIC_STEPS)) - np.log(np.arange(1, _SYNTHETIC_STEPS + 1)))
        log_law = np.concatenate([[0.0], odds]) + np.arange(_SYNTHETIC_STEPS + 1) * np.log(self.p / (1 - self.p))
        return Finite(Records({self.column: self.bounded.in_units(share)}), np.exp(log_law - log_law.max()).tolist(), clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.records.numbers(self.column)
        if self.low is None or self.high is None:
            raise InputError(f"the mean of {self.column!r} needs public bounds: add low=... and high=..., or let mean-found find them")
        table.refuse_missing(self.missing, self.column, "missing=exclude (the mean of those present)")
        table.refuse_outside(self.outside, self.column, self.low, self.high, "outside=clip (the mean of the clipped numbers), or wider bounds")
        return replace(self, labels=table.groups(self.by, self.labels, self.labels_from_data, self.other)) if self.by else self

    def describe(self, result: Estimate) -> PlainData:
        groups = {"by": self.by, "labels": list(self.labels)} if self.by else {}
        return {"column": self.column, "low": self.bounded.low, "high": self.bounded.high, **groups, **describe_estimate(result)}

    def truth(self, population: Population) -> Floats:
        """The mean in the distribution that the clients are drawn from, of those present, clipped to the bounds; shape () or (groups,)."""
        query = self.query
        if isinstance(query, Bounded):
            return super().truth(population)
        cells = population.law(query)[:-1].reshape(query.groups, query.steps + 1)
        with np.errstate(all="ignore"):
            means = self.bounded.in_units(cells @ np.arange(query.steps + 1) / query.steps / cells.sum(axis=1))
        return means if self.by else np.asarray(means[0])


def upper_ends(groups: int) -> Conditional:
    """The mean within each group as a share of its range: the share of the upper end among both."""
    ends = np.eye(2 * groups + 1)
    return Conditional(ends[1:-1:2], ends[0:-1:2] + ends[1:-1:2])
