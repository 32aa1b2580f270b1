"""The histogram of a numeric column."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from local_dp.checks import check_built, check_share
from local_dp.errors import InputError
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.protocols.surveys.shares import Shares
from local_dp.queries.cells import Binned
from local_dp.records import Records
from local_dp.tallies import Estimate


@dataclass(frozen=True)
class Histogram(Shares):
    """Estimates the share of each of `bins` equal intervals of the public [low, high], and of what lies below and above; without a table, of a bell curve.

    Nothing is clipped: what is beyond the bounds has two shares of its own. Intervals hold their lower end, the last one both. Privacy: every report is
    epsilon-locally private. Utility: variance v / n an interval, v of the best oracle (limits 2). `tolerance` sets the default number of
    clients: all shares within it with probability 95 %. Cost: at most about log2 k bits a client, one round.
    """

    name: ClassVar[str] = "histogram"
    source: ClassVar[str] = "Kairouz et al. 2014 (GRR); Ye, Barg 2018 (subset selection); Wang et al. 2017 (OLH); Feldman et al. 2022 (PGR)"
    example: ClassVar[str] = "--records fair.csv --column age --low 15 --high 45 --bins 6"
    column: str = parameter("value", "the column of numbers", of_table=True)
    low: float | None = parameter(None, "the lower end of the first interval, public; needed with a table", unit="of the column")
    high: float | None = parameter(None, "the upper end of the last interval, public; needed with a table", unit="of the column")
    bins: int = parameter(10, "how many equal intervals")
    missing: str = parameter("refuse", "a missing value: refuse, category (a share of its own), or exclude (shares among those present)")
    randomizer: str = parameter("best", "one for k symbols, of this library or of an installed package, or best: the one of least variance")
    tolerance: float = parameter(0.05, "the default number of clients is for errors of at most this, all shares together, with probability 95 %", unit="share")

    def check(self) -> None:
        check_share("tolerance", self.tolerance)
        check_policy("missing", self.missing, ("refuse", "category", "exclude"))
        check_built(self.query)

    @property
    def query(self) -> Binned:
        """The query that is put to every client."""
        low, high = 0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high
        return Binned(self.column, low, high, self.bins, () if self.missing == "refuse" else ("missing",))

    def synthetic(self, clients: int, seed: int) -> Population:
        """Normal around 0.4 of the range with standard deviation 0.15 of it, at the middles of 10 points an interval."""
        place = (np.arange(10 * self.bins) + 0.5) / (10 * self.bins)
        bell = np.exp(-(((place - 0.4) / 0.15) ** 2) / 2)
        numbers = self.query.low * (1 - place) + self.query.high * place
        return Finite(Records({self.column: numbers}), bell.tolist(), clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.records.numbers(self.column)
        if self.low is None or self.high is None:
            raise InputError(f"the histogram of {self.column!r} needs public bounds: add low=... and high=...; what lies beyond them is counted too")
        table.refuse_missing(self.missing, self.column, "missing=category (a share of its own) or missing=exclude (shares among those present)")
        return self

    def describe(self, result: Estimate) -> PlainData:
        edges = [f"{edge:.6g}" for edge in self.query.edges.tolist()]
        ends = [f"[{low}, {high})" for low, high in pairwise(edges[:-1])]
        shown = [f"below {edges[0]}", *ends, f"[{edges[-2]}, {edges[-1]}]", f"above {edges[-1]}", "(missing)"]
        return {"column": self.column, "edges": self.query.edges.tolist(), "labels": shown[: len(result.value)], **describe_estimate(result)}
