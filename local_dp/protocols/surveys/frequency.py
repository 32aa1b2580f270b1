"""How often each label of a categorical column occurs."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from local_dp.checks import check_built, check_share
from local_dp.domains import symbols
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.protocols.surveys.shares import Shares
from local_dp.queries.tables import Category
from local_dp.records import Records
from local_dp.tallies import Estimate


@dataclass(frozen=True)
class Frequency(Shares):
    """Estimates the share of each label of `column`; without a table, of `k` symbols with shares proportional to 1, 1/2, ..., 1/k.

    The labels are public: `labels` lists them, or in a simulation `labels_from_data` reads them from the table. A missing value, or one that is not listed, is
    refused before the run, counted as a label of its own ("category"), or, if missing, left out: then the shares are among those present ("exclude").
    Privacy: every report is epsilon-locally private. Utility: variance v / n a label, v of the best oracle (limits 2).
    `tolerance` sets the default number of clients: all labels within it with probability 95 %. Cost: at most about log2 k bits a client, one round.
    """

    name: ClassVar[str] = "frequency"
    source: ClassVar[str] = "Kairouz et al. 2014 (GRR); Ye, Barg 2018 (subset selection); Wang et al. 2017 (OLH); Feldman et al. 2022 (PGR)"
    example: ClassVar[str] = "--records fair.csv --column occupation --labels '1;2;3;4;5;6'"
    column: str = parameter("symbol", "the column whose labels are counted", of_table=True)
    labels: tuple[str, ...] = parameter((), "the labels, public, separated by ';'")
    labels_from_data: bool = parameter(False, "read the labels from the table: in a simulation only, for it publishes them")
    missing: str = parameter("refuse", "a missing value: refuse, category (a label of its own), or exclude (shares among those present)")
    other: str = parameter("refuse", "a value that is not listed: refuse, or category (a label of its own)")
    k: int = parameter(8, "without a table: how many symbols there are")
    randomizer: str = parameter("best", "one for k symbols, of this library or of an installed package, or best: the one of least variance")
    tolerance: float = parameter(0.05, "the default number of clients is for errors of at most this, all labels together, with probability 95 %", unit="share")

    def check(self) -> None:
        symbols(self.k)
        check_share("tolerance", self.tolerance)
        check_policy("missing", self.missing, ("refuse", "category", "exclude"))
        check_policy("other", self.other, ("refuse", "category"))
        check_built(self.query)

    @property
    def query(self) -> Category:
        """The query that is put to every client."""
        spare = tuple(name for name, policy in (("other", self.other), ("missing", self.missing)) if policy != "refuse")
        return Category(self.column, self.labels or tuple(map(str, range(self.k))), spare)

    def synthetic(self, clients: int, seed: int) -> Population:
        labels = self.query.labels
        kinds = Records({self.column: np.array(labels) if self.labels else np.arange(len(labels))})
        return Finite(kinds, [1 / rank for rank in range(1, len(labels) + 1)], clients, seed)

    def for_table(self, table: Launch) -> Self:
        labels = table.labels(self.column, self.labels, self.labels_from_data)
        table.refuse_missing(self.missing, self.column, "missing=category (a label of its own) or missing=exclude (shares among those present)")
        table.refuse_other(self.other, self.column, labels, "other=category (a label of its own), or list all labels")
        return replace(self, labels=labels)

    def describe(self, result: Estimate) -> PlainData:
        shown = [*self.query.labels, *(f"({name})" for name in self.query.spare)][: len(result.value)]
        return {"column": self.column, "labels": shown, **describe_estimate(result)}
