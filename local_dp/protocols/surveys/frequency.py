"""Shares of symbols by the best frequency oracle: labels, intervals, or combinations, with a test
of independence; among all or among those present."""

import math
from abc import abstractmethod
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, product
from typing import Any, Self

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds.best import Aim
from local_dp.bounds.frequencies import frequency_clients
from local_dp.bounds.means import TARGETS
from local_dp.checks import check_built
from local_dp.domains import MAX_LENGTH, MAX_SYMBOLS, many_symbols
from local_dp.errors import InputError
from local_dp.interaction import R
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.populations.finite import Finite, Population
from local_dp.postprocessing.steps import onto_simplex
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    OfColumns,
    PlainData,
    check_different,
    describe_estimate,
    guess_of_shares,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.needs import Deconvolution, Need
from local_dp.protocols.surveys.policies import OTHER_CHOICES, Launch, ends_of, spare_of
from local_dp.queries.cells import Binned
from local_dp.queries.labels import apart
from local_dp.queries.query import Query
from local_dp.queries.tables import Category
from local_dp.randomizers.finite import report_law
from local_dp.randomizers.frequencies.base import FiniteOracle, FrequencyOracle
from local_dp.randomizers.frequencies.best import best_choice, choices
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import Records
from local_dp.tallies import Estimate, OneReport, Possible, Ratio, Tally


def frequency_randomizer(epsilon: float, k: int, *, joint: bool = False) -> FiniteOracle:
    """The frequency oracle of least total variance for k symbols; with `joint`, among those with
    cheap covariances."""
    nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
    return best_choice(epsilon, k, joint=joint).kind(epsilon, k=k)


@dataclass(frozen=True)
class Conditional:
    """Shares of parts among wholes: row i is the share of parts[i] among wholes[i], each a row of
    weights of the symbols, shape (m, k)."""

    parts: Floats
    wholes: Floats

    def estimate(self, oracle: FrequencyOracle | Deconvolution, tally: Tally) -> Ratio:
        """The shares with their intervals. All quotients are alike, so one report's law is that of
        the first."""
        m = len(self.parts)
        each = one_report(oracle, tuple(self.parts[0].tolist()), tuple(self.wholes[0].tolist()))
        joint = oracle.joint(tally, np.concatenate([self.parts, self.wholes]))
        return joint.ratio(slice(0, m), slice(m, 2 * m), each=each)

    def of(self, law: Floats) -> Floats:
        """The shares in a law of the symbols; NaN where the whole is empty."""
        whole = self.wholes @ law
        with np.errstate(all="ignore"):
            return np.where(whole > 0, (self.parts @ law) / whole, np.nan)


@lru_cache(maxsize=256)
def one_report(
    oracle: FrequencyOracle | Deconvolution, part: tuple[float, ...], whole: tuple[float, ...]
) -> OneReport | None:
    """What one report adds to a quotient of shares, the part inside the whole: from a tally of 2^40
    clients of each kind. None where no tally can be drawn."""
    if isinstance(oracle, Deconvolution) or not oracle.has_tally_law:
        return None
    weights = np.array([part, whole])
    squares = np.zeros((3, 2, 2))
    step = 0.0
    for kind, shares in enumerate((weights[0] > 0, weights[0] < weights[1], weights[1] == 0)):
        if shares.any():
            client = int(oracle.corners[np.argmax(shares)])
            tally = oracle.draw_tally({client: 1 << 40}, np.random.default_rng(0))
            joint = oracle.joint(tally, weights)
            ends = oracle.estimate(tally).ends
            squares[kind] = joint.n * joint.covariance + np.outer(joint.value, joint.value)
            step = 0.0 if ends is None else float(np.max(ends[1] - ends[0]))
    return OneReport(squares, step)


def among(k: int, count: int) -> Conditional:
    """The first `count` of k symbols, as shares among them."""
    parts = np.eye(k)[:count]
    return Conditional(parts, np.broadcast_to(parts.sum(axis=0), parts.shape))


class OfShares(LocalProtocol[R]):
    """A protocol whose answer is the share of each symbol of one `query`, with `missing` exclude
    among those present. Subclasses are dataclasses."""

    missing: str
    randomizer: str
    tolerance: float
    of: str = "population"

    @property
    @abstractmethod
    def query(self) -> Query:
        """The question to every client: a symbol."""

    @property
    @abstractmethod
    def conditional(self) -> Conditional:
        """The symbols that are shown, as shares of their whole."""

    @abstractmethod
    def of_shares(self, estimate: Estimate) -> R:
        """The result of estimated shares of all symbols, none of them left out."""

    @property
    def excluded(self) -> bool:
        return self.missing == "exclude"

    def possible(self, result: R) -> Possible:
        return Possible(0.0, 1.0, ())

    @property
    def guess(self) -> tuple[float, float]:
        return guess_of_shares(self.query.value_count - self.excluded)

    @property
    def need(self) -> Need:
        return Need(self.query.domain, joint=self.excluded)

    def _clients(self, epsilon: float, joint: bool) -> int:
        """Those of the best randomizer, times the ratio of the variance that is plugged in."""
        k = self.query.value_count
        clients = frequency_clients(epsilon, k, self.tolerance, BETA, joint=joint)
        if k > MAX_SYMBOLS:
            return clients
        usual = frequency_randomizer(epsilon, k, joint=joint)
        return math.ceil(clients * self.need.times(self.randomizer, usual, self.name))

    def aim(self) -> Aim | None:
        few = self.query.value_count <= MAX_SYMBOLS
        return Aim.shares(self.query.value_count, self.of) if few and not self.excluded else None

    def truth(self, population: Population) -> Floats:
        law = population.law(self.query)
        return self.conditional.of(law) if self.excluded else law[: self.query.value_count]


class Shares(OfShares[Estimate]):
    """The shares of symbols by any randomizer for them. Subclasses are dataclasses with these
    fields."""

    def of_shares(self, estimate: Estimate) -> Estimate:
        return estimate

    def oracle(self, epsilon: float) -> Randomizer:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        k = self.query.value_count
        if k > MAX_SYMBOLS:
            if self.randomizer not in ("best", WideHashing.name):
                raise InputError(
                    f"randomizer is {self.randomizer!r}, which takes {MAX_SYMBOLS} labels at most, "
                    f"and there are {k}; choose randomizer='wide-hashing'"
                )
            return WideHashing(epsilon, length=(k - 1).bit_length())
        if self.randomizer == "best":
            return best_choice(epsilon, k, joint=self.excluded, of=self.of).kind(epsilon, k=k)
        return self.need.randomizer(self.randomizer, epsilon, self.name)

    def clients(self, epsilon: float) -> int:
        return self._clients(epsilon, self.excluded)

    def algorithm(self, epsilon: float, clients: int) -> Local[Estimate]:
        oracle, k = self.oracle(epsilon), self.query.value_count
        reader = self.need.reader(oracle)
        if not self.excluded:
            return ask_all(self.query, oracle, clients, lambda tally: self.read(reader, tally))
        if k > MAX_SYMBOLS:
            raise InputError(
                f"missing=exclude takes {MAX_SYMBOLS} labels at most, and there are {k}; choose "
                "missing=category"
            )
        return ask_all(
            self.query, oracle, clients, lambda tally: self.conditional.estimate(reader, tally)
        )

    @property
    def of_population(self) -> Self:
        """The same of the law that the clients come from."""
        settings: dict[str, Any] = {"of": "population"}
        return self if self.of == "population" else replace(self, **settings)

    def read(self, reader: Any, tally: Tally) -> Estimate:
        estimate: Estimate = reader.estimate(tally)
        if (k := self.query.value_count) > MAX_SYMBOLS:  # of more symbols than there are labels
            shares, errors = estimate.value[:k], estimate.standard_error[:k]
            estimate = Estimate(shares, errors, estimate.n, estimate.ends)
        return estimate.of_sample if self.of == "records" else estimate

    def truth(self, population: Population) -> Floats:
        """The shares of the clients, or in the distribution that they are drawn from."""
        if self.excluded or self.of == "population":
            return super().truth(population)
        return population.own_law(self.query)[: self.query.value_count]

    def reason(self, epsilon: float) -> str:
        k = self.query.value_count
        if self.randomizer != "best" or k > MAX_SYMBOLS:
            return ""
        best = best_choice(epsilon, k, joint=self.excluded, of=self.of)
        if best.kind is GRR:
            return ""
        (simple,) = (choice for choice in choices(epsilon, k) if choice.kind is GRR)
        own = Fraction(k - 1, k) if self.of == "records" else 0
        times = float((simple.total - own) / (best.total - own))
        return f"{best.kind.name}: {times:.2g} times fewer people than {GRR.name} here."

    @property
    def conditional(self) -> Conditional:
        k = self.query.domain.size
        return among(k, k - self.excluded)


REPETITIONS = 999
_LEAST = 0.1  # of a uniform share: the least divisor, in place of a smaller estimated margin


@dataclass(frozen=True)
class Independence:
    """`chi_square` of the estimated table, its mean under independence with this noise, and Pr[at
    least as much | independent]."""

    chi_square: float
    if_independent: float
    degrees_of_freedom: int
    p_value: float


def independence(
    oracle: FiniteOracle,
    tally: Tally,
    shape: tuple[int, int] | tuple[int, ...],
    conditional: Conditional,
) -> Independence:
    """The test by parametric bootstrap: 999 whole tallies drawn from independent columns with the
    estimated margins, through the same channel.

    With noisy shares the statistic is far larger than the textbook's law. p is at least 1/1000, and
    uniform for independent columns up to the error of the margins, the estimated ones moved to the
    nearest law. Source: Gaboardi, Rogers 2018 (Monte Carlo tests under local privacy).
    """
    n = tally.answered
    shares = _shares(oracle, tally.counts, conditional)
    observed = float(_chi_square(shares.reshape(shape), n))
    table = onto_simplex(shares).reshape(shape)
    law = np.zeros(conditional.parts.shape[1])
    law[: table.size] = np.outer(table.sum(axis=1), table.sum(axis=0)).ravel()
    if len(law) > table.size:  # the symbols left out keep their share
        whole = oracle.joint(tally, conditional.wholes[:1]).value[0]
        rest = np.clip(1 - whole, 0.0, 0.99)
        law = law * (1 - rest)
        law[table.size :] = rest / (len(law) - table.size)
    reports = sum(share * report_law(oracle, value) for value, share in enumerate(law) if share)
    generator = np.random.default_rng(0)  # fixed: the p-value is a function of the tally
    counts = generator.multinomial(n, reports / np.sum(reports), size=REPETITIONS)
    samples = _shares(oracle, counts.reshape(-1, *tally.counts.shape), conditional)
    chance = _chi_square(samples.reshape(-1, *shape), n)
    beyond = int(np.count_nonzero(chance >= observed))
    degrees = (shape[0] - 1) * (shape[1] - 1)
    return Independence(observed, float(chance.mean()), degrees, (1 + beyond) / (1 + REPETITIONS))


def _shares(oracle: FiniteOracle, counts: Counts, conditional: Conditional) -> Floats:
    """The estimated shares among records with a place, shape (..., shown); where none is estimated,
    among all."""
    values = oracle.values(counts)
    whole = values @ conditional.wholes.T
    return values @ conditional.parts.T / np.where(whole > 0, whole, 1.0)


def _chi_square(table: Floats, n: int) -> Floats:
    """The statistic of each table, shape (..., rows, columns) to (...)."""
    rows = table.sum(axis=-1, keepdims=True)
    columns = table.sum(axis=-2, keepdims=True)
    least_row = _LEAST / table.shape[-2]
    least_column = _LEAST / table.shape[-1]
    expected = np.maximum(rows, least_row) * np.maximum(columns, least_column)
    return np.asarray(n * ((table - rows * columns) ** 2 / expected).sum(axis=(-2, -1)))


@dataclass(frozen=True)
class CrossTable:
    """The share of every combination, the last column running fastest. For two columns there is a
    test of their independence, by an oracle whose tallies can be drawn."""

    estimate: Estimate
    test: Independence | None


@dataclass(frozen=True)
class Crosstab(OfColumns[CrossTable], OfShares[CrossTable]):
    """Estimates the share of every combination of the `columns`' labels; without a table, of two
    dependent columns of k labels.

    A part is a column with public labels, or a yes/no question such as "age >= 30". A missing or
    unlisted value stops the run, or has a label of its own; a record that lacks a value may be left
    out ("exclude"). Two parts get a test of independence that allows for the noise. Privacy: every
    report is epsilon-locally private. Utility: variance v / n a combination, v of the best oracle
    (limits 2). `tolerance` sets the default number of clients: all combinations within it with
    probability 95 %. Cost: at most about log2 k bits.
    """

    name = "crosstab"
    choices = "missing=category (a label of its own) or missing=exclude (complete records only)"
    summary = "Estimates the share of every combination of several columns"
    source = (
        "Kairouz et al. 2014; Ye, Barg 2018; Wang et al. 2017 (frequencies); Gaboardi, Rogers "
        "2018 (tests under local privacy)"
    )
    example = "--records fair.csv --columns 'affairs > 0; occupation' --labels '1|2|3|4|5|6'"
    columns: tuple[str, ...] = parameter(
        ("first", "second"), "Columns or yes/no questions", of_table=True
    )
    labels: tuple[str, ...] = parameter(
        (),
        "Public labels of each column that is no question",
        help="In a shell '|' separates labels, and ';' columns",
    )
    labels_from_data: bool = parameter(
        False, "Read the labels from the table, and publish them", help="In a simulation only"
    )
    missing: str = policy(
        "missing values", category="a label of its own", exclude="shares among complete records"
    )
    other: str = policy("values that are not listed", category="a label of its own")
    k: int = parameter(3, "Without a table: number of labels of each column")
    randomizer: str = parameter(
        "best",
        "Randomizer of symbols; best: the one of least variance",
    )
    tolerance: float = target_error(0.05)

    def check(self) -> None:
        check_different("the columns", self.columns, 2)
        check_built(self.query)

    def oracle(self, epsilon: float) -> Randomizer:
        if self.randomizer == "best":
            return frequency_randomizer(epsilon, self.query.domain.size, joint=True)
        return self.need.randomizer(self.randomizer, epsilon, self.name)

    def of_shares(self, estimate: Estimate) -> CrossTable:
        return CrossTable(estimate, None)

    @property
    def guess(self) -> tuple[float, float]:
        return guess_of_shares(len(self.conditional.parts))

    def clients(self, epsilon: float) -> int:
        return self._clients(epsilon, joint=True)

    def algorithm(self, epsilon: float, clients: int) -> Local[CrossTable]:
        query = self.query
        conditional = self.conditional
        oracle = self.oracle(epsilon)
        reader = self.need.reader(oracle)

        def read(tally: Tally) -> CrossTable:
            shares = (
                conditional.estimate(reader, tally) if self.excluded else reader.estimate(tally)
            )
            test = None
            if len(query.shape) == 2 and isinstance(oracle, FiniteOracle):
                test = independence(oracle, tally, query.shape, conditional)
            return CrossTable(shares, test)

        return ask_all(query, oracle, clients, read)

    @property
    def conditional(self) -> Conditional:
        """The combinations as shares of all complete records."""
        return among(self.query.domain.size, int(np.prod(self.query.shape)))

    def synthetic(self, clients: int, seed: int) -> Population:
        """The first column uniform; each further one equal to the one before with probability 1/2,
        else uniform."""
        self.check_without_table("labels and questions", self.labels or self.parts.questions)
        cells = np.indices(self.query.shape).reshape(len(self.columns), -1)
        law = np.ones(cells.shape[1])
        for before, after in pairwise(cells):
            law *= (before == after) / 2 + 1 / (2 * self.k)
        kinds = Records(dict(zip(self.columns, cells.astype(np.str_), strict=True)))
        return Finite(kinds, law, clients, seed)

    def describe(self, result: CrossTable) -> PlainData:
        sides = self.parts.sides
        test = {} if result.test is None else {"independence": asdict(result.test)}
        return {
            "columns": list(self.columns),
            "sides": sides,
            "labels": list(map(" / ".join, product(*sides))),
            **describe_estimate(result.estimate),
            **test,
        }


@dataclass(frozen=True)
class Frequency(Shares):
    """Estimates the share of each label of `column`; without a table, of `k` symbols with shares
    proportional to 1, 1/2, ..., 1/k.

    The labels are public: `labels` lists them, or in a simulation `labels_from_data` reads them
    from the table. A missing or unlisted value stops the run, or has a label of its own
    ("category"); a missing one may be left out, for shares among those present ("exclude").
    Privacy: every report is epsilon-locally private. Utility: variance v / n a label, v of the best
    oracle (limits 2). `of` records, the default, is the shares among these people: the interval is
    that of the noise, and `best` has the least of it; with "exclude" they are the population's.
    `tolerance` sets the default number of clients: all labels within it with probability 95 %.
    Cost: at most about log2 k bits a client, one round. 2 <= k <= 2^22; above 4096 labels by
    wide-hashing.
    """

    name = "frequency"
    summary = "Estimates the share of each label of a column"
    source = (
        "Kairouz et al. 2014 (GRR); Ye, Barg 2018 (subset selection); Wang et al. 2017 (OLH); "
        "Feldman et al. 2022 (PGR)"
    )
    example = "--records fair.csv --column occupation --labels '1;2;3;4;5;6'"
    column: str = parameter("symbol", "Column whose labels are counted", of_table=True)
    labels: tuple[str, ...] = parameter(
        (), "The public labels", help="@FILE (in Python a Path) has one on each line"
    )
    labels_from_data: bool = parameter(
        False, "Read the labels from the table, and publish them", help="In a simulation only"
    )
    missing: str = policy(
        "missing values", category="a label of its own", exclude="shares among those present"
    )
    other: str = policy("values that are not listed", category="a label of its own")
    k: int = parameter(8, "Without a table: number of symbols")
    of: str = parameter("records", "Whose shares they are", choices=TARGETS)
    randomizer: str = parameter(
        "best",
        "Randomizer of symbols; best: the one of least variance",
    )
    tolerance: float = target_error(0.05)

    def check(self) -> None:
        many_symbols(self.k)
        check_built(self.query)

    @cached_property
    def query(self) -> Category:
        labels = self.labels or tuple(map(str, range(self.k)))
        return Category(self.column, labels, spare_of(self.other, self.missing))

    def synthetic(self, clients: int, seed: int) -> Population:
        labels = self.query.labels
        kinds = Records({self.column: np.array(labels) if self.labels else np.arange(len(labels))})
        return Finite(kinds, [1 / rank for rank in range(1, len(labels) + 1)], clients, seed)

    def for_table(self, table: Launch) -> Self:
        most = 1 << MAX_LENGTH
        labels = table.labels(self.column, self.labels, self.labels_from_data, most=most)
        table.refuse_missing(
            self.missing,
            self.column,
            "missing=category (a label of its own) or missing=exclude (shares among those present)",
        )
        table.refuse_other(
            self.other,
            self.column,
            labels,
            OTHER_CHOICES,
        )
        return replace(self, labels=labels)

    def describe(self, result: Estimate) -> PlainData:
        labels = self.query.symbols[: len(result.value)]
        return {"column": self.column, "labels": labels, **describe_estimate(result)}


@dataclass(frozen=True)
class Histogram(Shares):
    """Estimates the share of each of `bins` equal intervals of the public [low, high], and of
    numbers below and above; without a table, of a bell curve.

    Nothing is clipped: numbers beyond the bounds have two shares of their own. Intervals contain
    their lower end, the last one both. Privacy: every report is epsilon-locally private. Utility:
    variance v / n an interval, v of the best oracle (limits 2). `tolerance` sets the default number
    of clients: all shares within it with probability 95 %. Cost: at most about log2 k bits a
    client, one round.
    """

    name = "histogram"
    summary = "Estimates the share of each of several equal intervals"
    source = (
        "Kairouz et al. 2014 (GRR); Ye, Barg 2018 (subset selection); Wang et al. 2017 (OLH); "
        "Feldman et al. 2022 (PGR)"
    )
    example = "--records fair.csv --column age --low 15 --high 45 --bins 6"
    column: str = parameter("value", "Column of numbers", of_table=True)
    low: float | None = parameter(None, "Public lower end; needed with a table")
    high: float | None = parameter(None, "Public upper end; needed with a table")
    bins: int = parameter(10, "Number of equal intervals")
    missing: str = policy(
        "missing values", category="a share of its own", exclude="shares among those present"
    )
    randomizer: str = parameter(
        "best",
        "Randomizer of symbols; best: the one of least variance",
    )
    tolerance: float = target_error(0.05)

    def check(self) -> None:
        check_built(self.query)

    @property
    def query(self) -> Binned:
        spare = spare_of("refuse", self.missing)
        return Binned(self.column, *ends_of(self.low, self.high), self.bins, spare)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Normal around 0.4 of the range with standard deviation 0.15 of it, at the middles of 10
        points an interval."""
        place = (np.arange(10 * self.bins) + 0.5) / (10 * self.bins)
        bell = np.exp(-(((place - 0.4) / 0.15) ** 2) / 2)
        numbers = self.query.low * (1 - place) + self.query.high * place
        return Finite(Records({self.column: numbers}), bell, clients, seed)

    def for_table(self, table: Launch) -> Self:
        more = "; what lies beyond them is counted too"
        table.bounded(self.column, self.low, self.high, "the histogram", more)
        table.refuse_missing(
            self.missing,
            self.column,
            "missing=category (a share of its own) or missing=exclude (shares among those present)",
        )
        return self

    def describe(self, result: Estimate) -> PlainData:
        edges = apart(self.query.edges)
        ends = [f"[{low}, {high})" for low, high in pairwise(edges[:-1])]
        labels = [
            f"below {edges[0]}",
            *ends,
            f"[{edges[-2]}, {edges[-1]}]",
            f"above {edges[-1]}",
            "(missing)",
        ]
        return {
            "column": self.column,
            "edges": self.query.edges.tolist(),
            "labels": labels[: len(result.value)],
            **describe_estimate(result),
        }
