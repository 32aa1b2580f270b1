"""Shares of the cells of a table: one symbol a client by the best frequency oracle, shares of all or of those who have a place."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim
from local_dp.bounds.frequencies import frequency_clients
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol
from local_dp.queries.query import Query
from local_dp.randomizers.frequencies.base import FiniteOracle, FrequencyOracle
from local_dp.randomizers.frequencies.best import best_choice
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.tallies import Estimate, Tally


def frequency_randomizer(epsilon: float, k: int, *, joint: bool = False) -> FiniteOracle:
    """The frequency oracle of least total variance for k symbols; with `joint` of those whose covariances are cheap."""
    return best_choice(epsilon, k, joint=joint).built(epsilon, k)


@dataclass(frozen=True)
class Conditional:
    """Shares of parts among wholes: row i is the share of parts[i] among wholes[i], each a row of weights of the symbols, shape (m, k)."""

    parts: Floats
    wholes: Floats

    def estimate(self, oracle: FrequencyOracle, tally: Tally) -> Estimate:
        """The shares with Fieller's intervals."""
        m = len(self.parts)
        return oracle.joint(tally, np.concatenate([self.parts, self.wholes])).ratio(slice(0, m), slice(m, 2 * m))

    def of(self, law: Floats) -> Floats:
        """The shares in a law of the symbols; NaN where nobody is in the whole."""
        whole = self.wholes @ law
        with np.errstate(all="ignore"):
            return np.where(whole > 0, (self.parts @ law) / whole, np.nan)


def among(k: int, shown: int) -> Conditional:
    """The shares of the first `shown` of k symbols among them."""
    parts = np.eye(k)[:shown]
    return Conditional(parts, np.broadcast_to(parts.sum(axis=0), parts.shape))


def largest_error(value: Floats, truth: Floats) -> float:
    """The largest distance from the truth among what has both."""
    away = np.abs(np.asarray(value) - truth)
    return float(np.nanmax(away)) if np.any(~np.isnan(away)) else 0.0


class Shares(LocalProtocol[Estimate]):
    """The share of each symbol of `query`; with `missing` exclude the last symbol has no place, and the shares are those among the others.

    Its subclasses are dataclasses with these parameters.
    """

    missing: str
    randomizer: str
    tolerance: float

    @property
    @abstractmethod
    def query(self) -> Query:
        """What every client is asked: a symbol."""

    @property
    def excluded(self) -> int:
        """How many symbols, the last ones, are left out of the whole."""
        return int(self.missing == "exclude")

    def oracle(self, epsilon: float) -> Randomizer:
        """The randomizer of a client's symbol."""
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
        randomizer = self.oracle(epsilon)
        query = LocalQuery(self.query, randomizer, Cohort(0, clients))
        if not self.excluded:
            return Nonadaptive((query,), lambda answers: randomizer.estimate(answers[0]))
        if not isinstance(randomizer, FrequencyOracle):
            raise InputError(
                f"shares of those present need an oracle that knows the covariance of its estimates, as grr, hadamard, sue and oue; not {randomizer.name}"
            )
        return Nonadaptive((query,), lambda answers: self.conditional.estimate(randomizer, answers[0]))

    @property
    def conditional(self) -> Conditional:
        """What is shown, as shares of the whole."""
        k = self.query.domain.size
        return among(k, k - self.excluded)

    def truth(self, population: Population) -> Floats:
        """The shares in the distribution that the clients are drawn from, shape (shown,)."""
        return self.conditional.of(population.law(self.query))

    def true_error(self, result: Estimate, population: Population) -> float:
        return largest_error(result.value, self.truth(population))
