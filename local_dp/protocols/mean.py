"""The mean of a bounded numeric column."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import rr_clients
from local_dp.checks import check_share
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.populations.base import Population
from local_dp.populations.finite import Finite
from local_dp.protocols.base import BETA, Protocol, Result, describe_estimate, parameter
from local_dp.queries.numbers import STEPS
from local_dp.queries.tables import Bounded
from local_dp.randomizers.one_bit_mean import OneBitMean
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally

_SYNTHETIC_STEPS = 100


@dataclass(frozen=True)
class Mean(Protocol[Estimate]):
    """Estimates the mean of `column` clipped to the public bounds [`low`, `high`]; without a table, of a column in [0, 1] with mean `p`.

    The bounds are not read from the data, which they would reveal. Privacy: every report is epsilon-locally private.
    Utility: standard error at most C (high - low) / (2 sqrt n): minimax (limits 1, Theorem 1). `tolerance` is a share of the range and sets the
    default number of clients: within it with probability 95 %. Cost: one bit a client, one round.
    """

    name: ClassVar[str] = "mean"
    source: ClassVar[str] = "Duchi, Jordan, Wainwright 2013"
    column: str = parameter("value", "the column that is averaged", of_table=True)
    low: float | None = parameter(None, "the least value, public: values below it count as it; needed with a table", unit="of the column")
    high: float | None = parameter(None, "the greatest value, public: values above it count as it; needed with a table", unit="of the column")
    p: float = parameter(0.3, "without a table: the mean of the made-up column, as a share of the range")
    tolerance: float = parameter(0.05, "the default number of clients is for an error of at most this, with probability 95 %", unit="share of the range")

    def __post_init__(self) -> None:
        check_share("p", self.p)
        check_share("tolerance", self.tolerance)
        self.bounded  # noqa: B018  # checks the bounds

    @property
    def bounded(self) -> Bounded:
        """The query that is put to every client."""
        return Bounded(self.column, 0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high)

    def clients(self, epsilon: float) -> int:
        return rr_clients(epsilon, 2 * self.tolerance, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Nonadaptive[LocalQuery, Tally, Estimate]:
        randomizer = OneBitMean(epsilon, steps=STEPS)
        bounded = self.bounded

        query = LocalQuery(bounded, randomizer, Cohort(0, clients))
        return Nonadaptive((query,), lambda answers: randomizer.estimate(answers[0]).on_scale(bounded.low, bounded.high))

    def synthetic(self, clients: int, seed: int) -> Population:
        """Binomial(100, p) / 100, stretched to the bounds."""
        share = np.arange(_SYNTHETIC_STEPS + 1) / _SYNTHETIC_STEPS
        odds = np.cumsum(np.log(_SYNTHETIC_STEPS - np.arange(_SYNTHETIC_STEPS)) - np.log(np.arange(1, _SYNTHETIC_STEPS + 1)))
        log_law = np.concatenate([[0.0], odds]) + np.arange(_SYNTHETIC_STEPS + 1) * np.log(self.p / (1 - self.p))
        return Finite(Records({self.column: self.bounded.in_units(share)}), np.exp(log_law - log_law.max()).tolist(), clients, seed)

    def for_table(self, records: Records) -> Self:
        if self.low is None or self.high is None:
            raise InputError(f"the mean of {self.column!r} needs public bounds: add --set low=... and --set high=...")
        self.bounded(records.take(slice(0, 1)))
        return replace(self)

    def describe(self, result: Estimate) -> Result:
        return {"column": self.column, "low": self.bounded.low, "high": self.bounded.high, **describe_estimate(result)}

    def truth(self, population: Population) -> Floats:
        """The mean of the distribution that the clients are drawn from, clipped to the bounds, shape ()."""
        law = population.law(self.bounded)
        return self.bounded.in_units(np.asarray(law @ np.arange(len(law)) / STEPS))

    def true_error(self, result: Estimate, population: Population) -> float:
        return abs(float(result.value) - float(self.truth(population)))
