"""Is the law of a column the one that is named? A test with public coins, or with coins that each
client draws alone."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.interaction import (
    ROWS,
    check_distance,
    chi_square_tail,
    private_coin_clients,
    public_coin_clients,
)
from local_dp.checks import check_built
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.loss import nano_epsilon
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    PlainData,
    numbers_in,
    parameter,
    policy,
)
from local_dp.protocols.surveys.policies import Launch, spare_of
from local_dp.queries.tables import Category
from local_dp.randomizers.signs.prefix_signs import SignRows, rows_text, sylvester
from local_dp.records import Records
from local_dp.tallies import Tally


@dataclass(frozen=True)
class IdentityTest:
    """A chi-square `statistic`, its degrees of freedom, and its p-value under the named law."""

    statistic: float
    degrees: int
    p_value: float

    @property
    def rejected(self) -> bool:
        return self.p_value < BETA

    @property
    def decision(self) -> str:
        return "rejected" if self.rejected else "not rejected"


def row_statistic(signs: Floats, sizes: Floats, expected: Floats, gain: float) -> Floats:
    """The sum over rows, the last axis, of squared deviations in standard errors: `signs` summed
    over `sizes` reports against their `expected` means.

    A row without reports counts 0. The variance of a row under the named law is exactly (C^2 -
    mean^2) / size, so each other row counts 1 on average.
    """
    n = np.maximum(sizes, 1)
    scores = (gain * signs / n - expected) ** 2 * n / (gain**2 - expected**2)
    return np.asarray(np.where(sizes > 0, scores, 0.0).sum(axis=-1))


@dataclass(frozen=True)
class Identity(LocalProtocol[IdentityTest]):
    """Tests whether the shares of `column`'s labels are `shares`, uniform ones by default, or
    `alpha` away from them in total variation.

    Privacy: every report is epsilon-locally private. Utility: with the default number of clients
    the named law is rejected with probability 5 %, and a law alpha away is missed with probability
    5 %. Public coins: clients report their sign in one of 16 rows, drawn after the law is fixed:
    give a fresh `coin`. Private coins: each client draws its own row, which takes k^(1/2) times as
    many clients and in earnest log2 k more bits. Cost: one bit, one round.
    """

    name = "identity"
    summary = "Tests whether the labels of a column have the named shares"
    figureless = "a decision"
    source = "Acharya, Canonne, Freitag, Tyagi 2019 (public coins and private ones)"
    example = "--records fair.csv --column occupation --labels '1;2;3;4;5;6'"
    error_unit = "1 for a wrong decision, 0 for a right one"
    column: str = parameter("symbol", "Column whose labels are counted", of_table=True)
    labels: tuple[str, ...] = parameter((), "The public labels")
    missing: str = policy(
        "missing values", category="a label of its own, the last one, with a named share"
    )
    other: str = policy(
        "values that are not listed",
        category="a label of its own after the others, with a named share",
    )
    shares: tuple[str, ...] = parameter((), "The named share of each label; default: all alike")
    coins: str = parameter(
        "public",
        "Who draws the Hadamard row of a client",
        help="public: a common seed; private: the client itself",
        choices=("public", "private"),
    )
    coin: int = parameter(0, "Seed of the public rows, chosen after the data")
    k: int = parameter(
        16,
        "Without a table: number of symbols",
        help="Half of them are more frequent, by alpha in all",
    )
    alpha: float = parameter(
        0.25,
        "Distance to detect; sets the default number of clients",
        help="In total variation",
        unit="share",
    )

    def check(self) -> None:
        symbols(self.k)
        check_distance(self.alpha)
        check_built(self.law)

    @property
    def query(self) -> Category:
        labels = self.labels or tuple(map(str, range(self.k)))
        return Category(self.column, labels, spare_of(self.other, self.missing))

    @property
    def law(self) -> Floats:
        """The law that is tested, shape (k,)."""
        size = self.query.domain.size
        spare = self.query.spare
        if spare and not self.shares:
            raise InputError(
                f"the named law has no share for {' and '.join(spare)}: give all {size} shares, "
                "in this order at the end"
            )
        shares = numbers_in("a share", self.shares) if self.shares else np.full(size, 1 / size)
        if len(shares) != size or not (shares >= 0).all() or not abs(shares.sum() - 1) < 1e-6:
            raise InputError(
                f"the named shares are {len(shares)} numbers; give one of 0 or more for each of "
                f"the {size} labels, 1 in all"
            )
        return np.asarray(shares / shares.sum())

    def clients(self, epsilon: float) -> int:
        count = public_coin_clients if self.coins == "public" else private_coin_clients
        return count(epsilon, self.query.domain.size, self.alpha, BETA)

    def randomizer(self, epsilon: float) -> SignRows:
        """Signs in one of the public rows, or of all of Sylvester's."""
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        size = self.query.domain.size
        signs = sylvester(size)
        if self.coins == "public":
            words = philox_words(stream_key("identity rows", self.coin), 0, ROWS * size)
            signs = (1 - 2 * (words >> np.uint64(63)).astype(np.int8)).reshape(ROWS, size)
        return SignRows(epsilon, k=size, signs=rows_text(signs))

    def algorithm(self, epsilon: float, clients: int) -> Local[IdentityTest]:
        randomizer = self.randomizer(epsilon)
        return ask_all(
            self.query, randomizer, clients, lambda tally: decide(randomizer, tally, self.law)
        )

    def synthetic(self, clients: int, seed: int) -> Population:
        """Every other symbol more frequent by the factor 1 + 2 alpha, the others less: alpha from
        uniform for an even k, and the hardest law of all."""
        shares = 1 + 2 * self.alpha * (1 - 2 * (np.arange(len(self.query.labels)) % 2))
        kinds = Records({self.column: np.array(self.query.labels)})
        return Finite(kinds, shares.tolist(), clients, seed)

    def for_table(self, table: Launch) -> Self:
        labels = table.labels(self.column, self.labels, None)
        table.refuse_missing(
            self.missing, self.column, "missing=category (a label of its own, with a named share)"
        )
        table.refuse_other(
            self.other,
            self.column,
            labels,
            "other=category (a label of its own, with a named share), or list all labels",
        )
        return replace(self, labels=labels)

    def describe(self, result: IdentityTest) -> PlainData:
        test = {
            "statistic": result.statistic,
            "degrees_of_freedom": result.degrees,
            "p_value": result.p_value,
            "decision": result.decision,
        }
        return {"hypothesis": test}

    def explain(self, result: IdentityTest) -> str:
        return f"The named law is {result.decision} at 5 %: p = {result.p_value:.3g}."

    def true_error(self, result: IdentityTest, population: Population) -> float:
        """1 if a law `alpha` or more away was missed or the named one rejected, else 0: between the
        two both decisions are right."""
        away = float(np.abs(population.law(self.query) - self.law).sum()) / 2
        if away < 1e-9:
            return float(result.rejected)
        return float(away >= self.alpha - 1e-9 and not result.rejected)


def decide(randomizer: SignRows, tally: Tally, law: Floats) -> IdentityTest:
    """The test of the named law, shape (k,). A row with one sign for all symbols carries no
    information and is left out."""
    check_built(tally.weights)  # raises where nobody answered
    table = randomizer.table.astype(np.float64)
    mixed = np.abs(table.sum(axis=1)) < randomizer.k
    counts = tally.counts[mixed].astype(np.float64)
    signs = counts[:, 0] - counts[:, 1]
    sizes = counts.sum(axis=1)
    degrees = max(1, int(np.count_nonzero(sizes)))
    statistic = float(row_statistic(signs, sizes, table[mixed] @ law, randomizer.gain))
    return IdentityTest(statistic, degrees, chi_square_tail(statistic, degrees))
