"""Shares of symbols by the best frequency oracle: labels of a column, intervals of a number, shares among all or among those present."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim
from local_dp.bounds.frequencies import frequency_clients
from local_dp.checks import check_built
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.cells import Binned
from local_dp.queries.query import Query
from local_dp.queries.tables import Category
from local_dp.randomizers.frequencies.base import FiniteOracle, FrequencyOracle
from local_dp.randomizers.frequencies.best import best_choice
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.tallies import Estimate, OneReport, Ratio, Tally


def frequency_randomizer(epsilon: float, k: int, *, joint: bool = False) -> FiniteOracle:
    """The frequency oracle of least total variance for k symbols; with `joint`, among those with cheap covariances."""
    nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
    return best_choice(epsilon, k, joint=joint).kind(epsilon, k=k)


@dataclass(frozen=True)
class Conditional:
    """Shares of parts among wholes: row i is the share of parts[i] among wholes[i], each a row of weights of the symbols, shape (m, k)."""

    parts: Floats
    wholes: Floats

    def estimate(self, oracle: FrequencyOracle, tally: Tally) -> Ratio:
        """The shares with their intervals. All quotients are alike, so one report's law is that of the first."""
        m = len(self.parts)
        each = one_report(oracle, tuple(self.parts[0].tolist()), tuple(self.wholes[0].tolist()))
        return oracle.joint(tally, np.concatenate([self.parts, self.wholes])).ratio(slice(0, m), slice(m, 2 * m), each=each)

    def of(self, law: Floats) -> Floats:
        """The shares in a law of the symbols; NaN where the whole is empty."""
        whole = self.wholes @ law
        with np.errstate(all="ignore"):
            return np.where(whole > 0, (self.parts @ law) / whole, np.nan)


@lru_cache(maxsize=256)
def one_report(oracle: FrequencyOracle, part: tuple[float, ...], whole: tuple[float, ...]) -> OneReport | None:
    """What one report adds to a quotient of shares, the part inside the whole: from a tally of 2^40 clients of each kind. None where no tally can be drawn."""
    if not oracle.has_tally_law:
        return None
    weights, squares, step = np.array([part, whole]), np.zeros((3, 2, 2)), 0.0
    for kind, shares in enumerate((weights[0] > 0, weights[0] < weights[1], weights[1] == 0)):
        if shares.any():
            client = int(oracle.corners[np.argmax(shares)])
            tally = oracle.draw_tally({client: 1 << 40}, np.random.default_rng(0))
            joint, ends = oracle.joint(tally, weights), oracle.estimate(tally).ends
            squares[kind] = joint.n * joint.covariance + np.outer(joint.value, joint.value)
            step = 0.0 if ends is None else float(np.max(ends[1] - ends[0]))
    return OneReport(squares, step)


def among(k: int, shown: int) -> Conditional:
    parts = np.eye(k)[:shown]
    return Conditional(parts, np.broadcast_to(parts.sum(axis=0), parts.shape))


class Shares(LocalProtocol[Estimate]):
    """The share of each symbol of `query`; with `missing` exclude, among the symbols other than the last.

    Its subclasses are dataclasses with these parameters.
    """

    missing: str
    randomizer: str
    tolerance: float

    @property
    @abstractmethod
    def query(self) -> Query:
        """The question to every client: a symbol."""

    @property
    def excluded(self) -> int:
        """The number of symbols, at the end, that are left out."""
        return int(self.missing == "exclude")

    def oracle(self, epsilon: float) -> Randomizer:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        k = self.query.domain.size
        if self.randomizer == "best":
            return frequency_randomizer(epsilon, k, joint=bool(self.excluded))
        return RANDOMIZERS.build(self.randomizer, {"epsilon": epsilon, "k": k})

    def clients(self, epsilon: float) -> int:
        return frequency_clients(epsilon, self.query.domain.size, self.tolerance, BETA, joint=bool(self.excluded))

    def aim(self) -> Aim | None:
        return None if self.excluded else Aim.shares(self.query.domain.size)

    def algorithm(self, epsilon: float, clients: int) -> Local[Estimate]:
        oracle = self.oracle(epsilon)
        if not self.excluded:
            return ask_all(self.query, oracle, clients, oracle.estimate)
        if not isinstance(oracle, FrequencyOracle):
            raise InputError(f"shares of those present need a randomizer with known covariance, such as grr, hadamard, sue or oue; not {oracle.name}")
        return ask_all(self.query, oracle, clients, lambda tally: self.conditional.estimate(oracle, tally))

    @property
    def conditional(self) -> Conditional:
        """The symbols that are shown, as shares of their whole."""
        k = self.query.domain.size
        return among(k, k - self.excluded)

    def truth(self, population: Population) -> Floats:
        return self.conditional.of(population.law(self.query))


@dataclass(frozen=True)
class Frequency(Shares):
    """Estimates the share of each label of `column`; without a table, of `k` symbols with shares proportional to 1, 1/2, ..., 1/k.

    The labels are public: `labels` lists them, or in a simulation `labels_from_data` reads them from the table. A missing or unlisted value stops the run, or
    has a label of its own ("category"); a missing one may be left out, for shares among those present ("exclude").
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
        self.check_choices(missing=("refuse", "category", "exclude"), other=("refuse", "category"))
        check_built(self.query)

    @property
    def query(self) -> Category:
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


@dataclass(frozen=True)
class Histogram(Shares):
    """Estimates the share of each of `bins` equal intervals of the public [low, high], and of numbers below and above; without a table, of a bell curve.

    Nothing is clipped: numbers beyond the bounds have two shares of their own. Intervals contain their lower end, the last one both. Privacy: every report is
    epsilon-locally private. Utility: variance v / n an interval, v of the best oracle (limits 2). `tolerance` sets the default number of clients: all shares
    within it with probability 95 %. Cost: at most about log2 k bits a client, one round.
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
        self.check_choices(missing=("refuse", "category", "exclude"))
        check_built(self.query)

    @property
    def query(self) -> Binned:
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
